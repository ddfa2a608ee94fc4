/* More than 2^31 elements, in place, two ranks. Skipped (77) when memory is short. */
#include "../harness/world.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t count = ((size_t)1 << 31) + 5;

static size_t available_bytes(void)
{
    static const char key[] = "MemAvailable:";
    char line[128];
    unsigned long kib = 0;
    FILE *info = fopen("/proc/meminfo", "r");
    while (info && fgets(line, sizeof(line), info)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        kib = strtoul(line + strlen(key), NULL, 10);
        break;
    }
    if (info) fclose(info);
    return (size_t)kib * 1024;
}

static int body(struct world_team *team)
{
    const struct world_rank *own = &team->ranks[0];
    void *buffer;
    int failures = 0;
    world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
    world_check_cuda(cudaMalloc(&buffer, count), "cudaMalloc");
    int8_t *values = buffer;
    for (size_t i = 0; i < count; i++) {
        values[i] = (int8_t)((i + (size_t)own->rank) % 61);
    }
    world_check(ncclAllReduce(buffer, buffer, count, ncclInt8, ncclSum, own->comm, own->stream),
                "ncclAllReduce");
    world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    for (size_t i = 0; i < count; i++) {
        failures += values[i] != (int8_t)(i % 61 + (i + 1) % 61);
    }
    if (failures) printf("wrong: rank %d, %d elements\n", own->rank, failures);
    world_check_cuda(cudaFree(buffer), "cudaFree");
    return failures ? 1 : 0;
}

int main(void)
{
    size_t needed = 2 * count + ((size_t)1 << 29);
    if (available_bytes() < needed) {
        printf("skipped: %zu MiB of memory are available, %zu are needed\n",
               available_bytes() >> 20, needed >> 20);
        return 77;
    }
    return world_run(world_mode("threads"), 2, body, NULL) ? 1 : 0;
}
