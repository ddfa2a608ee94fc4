/* CPU affinity around init: memory touched there should lie near the device. The flat host device
 * is near every core, so only NCCL_IGNORE_CPU_AFFINITY changes anything. */
#include "base/log.h"
#include "base/param.h"
#include "comm/init.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct tt_affinity {
    cpu_set_t before;
};

/* "0-3,8" */
static void print_set(const cpu_set_t *set, char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && used < text_bytes - 24; cpu++) {
        if (!CPU_ISSET(cpu, set)) continue;
        int last = cpu;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        const char *comma = used ? "," : "";
        int n = last > cpu ? snprintf(text + used, text_bytes - used, "%s%d-%d", comma, cpu, last)
                           : snprintf(text + used, text_bytes - used, "%s%d", comma, cpu);
        used += n > 0 ? (size_t)n : 0;
        cpu = last;
    }
}

struct tt_affinity *tt_affinity_enter(int device)
{
    char texts[3][256];
    cpu_set_t all, want;
    struct tt_affinity *affinity = calloc(1, sizeof(*affinity));
    if (!affinity || sched_getaffinity(0, sizeof(affinity->before), &affinity->before)) {
        free(affinity);
        return NULL;
    }
    CPU_ZERO(&all);
    int cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
    for (int cpu = 0; cpu < cpus && cpu < CPU_SETSIZE; cpu++)
        CPU_SET(cpu, &all);
    if (tt_param_bool("NCCL_IGNORE_CPU_AFFINITY")) {
        want = all;
    } else {
        CPU_AND(&want, &all, &affinity->before);
    }
    print_set(&want, texts[0], sizeof(texts[0]));
    print_set(&all, texts[1], sizeof(texts[1]));
    print_set(&affinity->before, texts[2], sizeof(texts[2]));
    tt_info(TT_LOG_INIT,
            "ncclTopoGetCpuAffinity: Affinity for GPU %d is %s. (GPU affinity = %s ; CPU affinity "
            "= %s).",
            device, texts[0], texts[1], texts[2]);
    if (CPU_EQUAL(&want, &affinity->before) || CPU_COUNT(&want) == 0 ||
        sched_setaffinity(0, sizeof(want), &want)) {
        free(affinity);
        return NULL; /* nothing was changed */
    }
    return affinity;
}

void tt_affinity_leave(struct tt_affinity *affinity)
{
    if (!affinity) return;
    if (sched_setaffinity(0, sizeof(affinity->before), &affinity->before)) {
        tt_info(TT_LOG_INIT, "CPU affinity could not be put back: %m");
    }
    free(affinity);
}
