/* 200 lives of four ranks leave nothing behind: descriptors, threads, mappings and memory equal
 * those after the tenth. */
#include "../harness/checked.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, LIVES = 200, STABLE = 10, COUNT = 20000 };

static const size_t buffer_bytes = (size_t)COUNT * 4;

struct holdings {
    long descriptors, threads, mappings, resident_kib;
};

static long entries(const char *folder)
{
    long count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return -1;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static struct holdings look(void)
{
    struct holdings now = {.descriptors = entries("/proc/self/fd"),
                           .threads = entries("/proc/self/task")};
    char line[512];
    long resident = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps))
        now.mappings++;
    if (maps) fclose(maps);
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm) {
        if (fgets(line, sizeof(line), statm)) resident = strtol(strchr(line, ' '), NULL, 10);
        fclose(statm);
    }
    now.resident_kib = resident * (sysconf(_SC_PAGESIZE) / 1024);
    return now;
}

/* The operations that no checked form exists for, and what else a communicator can own. */
static void others(const struct world_rank *ranks, ncclComm_t *comms, void *const *in,
                   void *const *out)
{
    const size_t part = COUNT / RANKS;
    ncclComm_t children[RANKS] = {NULL};
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < RANKS; k++) {
        cudaStream_t s = ranks[k].stream;
        ncclComm_t c = comms[k];
        float scalar = 2;
        ncclRedOp_t op;
        memset(in[k], 0, buffer_bytes);
        world_check(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, c),
                    "ncclRedOpCreatePreMulSum");
        world_check(ncclReduce(in[k], out[k], COUNT, ncclFloat, op, 1, c, s), "ncclReduce");
        world_check(ncclReduceScatter(in[k], out[k], part, ncclFloat, ncclAvg, c, s),
                    "ncclReduceScatter");
        world_check(ncclAllGather(in[k], out[k], part, ncclFloat, c, s), "ncclAllGather");
        world_check(ncclGather(in[k], out[k], part, ncclFloat, 2, c, s), "ncclGather");
        world_check(ncclScatter(in[k], out[k], part, ncclFloat, 3, c, s), "ncclScatter");
        world_check(ncclRedOpDestroy(op, c), "ncclRedOpDestroy");
    }
    world_check(ncclGroupEnd(), "ncclGroupEnd");
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < RANKS; k++)
        world_check(ncclCommSplit(comms[k], k % 2, 0, &children[k], NULL), "ncclCommSplit");
    world_check(ncclGroupEnd(), "ncclGroupEnd");
    for (int k = 0; k < RANKS; k++) {
        world_check_cuda(cudaStreamSynchronize(ranks[k].stream), "cudaStreamSynchronize");
        world_check(ncclCommDestroy(children[k]), "ncclCommDestroy");
    }
}

static int live(void)
{
    struct world_rank ranks[RANKS];
    ncclComm_t comms[RANKS];
    void *in[RANKS], *out[RANKS];
    int failures = 0;
    world_check(ncclCommInitAll(comms, RANKS, NULL), "ncclCommInitAll");
    for (int k = 0; k < RANKS; k++) {
        ranks[k] = (struct world_rank){.rank = k, .device = k, .comm = comms[k]};
        world_check_cuda(cudaSetDevice(k), "cudaSetDevice");
        world_check_cuda(cudaStreamCreate(&ranks[k].stream), "cudaStreamCreate");
        world_check_cuda(cudaMalloc(&in[k], buffer_bytes), "cudaMalloc");
        world_check_cuda(cudaMalloc(&out[k], buffer_bytes), "cudaMalloc");
    }
    others(ranks, comms, in, out);
    struct world_team team = {.nranks = RANKS, .count = RANKS, .ranks = ranks};
    failures += checked_allreduce(&team, in, out, COUNT);
    failures += checked_alltoall(&team, in, out, COUNT / RANKS);
    failures += checked_broadcast(&team, in, out, COUNT, 1);
    failures += checked_ring(&team, in, out, COUNT);
    for (int k = 0; k < RANKS; k++) {
        world_check_cuda(cudaFree(in[k]), "cudaFree");
        world_check_cuda(cudaFree(out[k]), "cudaFree");
        world_check_cuda(cudaStreamDestroy(ranks[k].stream), "cudaStreamDestroy");
        world_check(ncclCommDestroy(comms[k]), "ncclCommDestroy");
    }
    return failures;
}

static int grew(const char *what, long before, long after, long allowed)
{
    if (after <= before + allowed) return 0;
    printf("leaked: %s grew from %ld to %ld\n", what, before, after);
    return 1;
}

int main(void)
{
    struct holdings before = {0}, after;
    int failures = 0;
    for (int k = 1; k <= LIVES; k++) {
        failures += live();
        if (k == STABLE) before = look();
    }
    after = look();
    failures += grew("descriptors", before.descriptors, after.descriptors, 0);
    /* Workers are started when work is first left behind, one per core at most; the C library keeps
     * an arena and a stack for each thread it has seen at once. A leak of lives would be 190. */
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    failures += grew("threads", before.threads, after.threads, cores - 1);
    failures += grew("mappings", before.mappings, after.mappings, 8 * cores);
    failures += grew("resident KiB", before.resident_kib, after.resident_kib, 1024);
    printf("descriptors %ld, threads %ld, mappings %ld, resident %ld KiB after %d lives\n",
           after.descriptors, after.threads, after.mappings, after.resident_kib, LIVES);
    return failures ? 1 : 0;
}
