/* GPUs from NVIDIA's management library (NVML), which is loaded at run time, never linked. Without
 * it no GPU is found. Private to the room. */
#pragma once

#include <stdbool.h>

enum { TT_NVML_LINKS = 36, TT_NVML_BUSID = 32 };

struct tt_nvml_gpu {
    char busid[TT_NVML_BUSID];                 /* lower case, "0000:07:00.0" */
    int sm;                                    /* compute capability times ten */
    int link_generation, link_width;           /* PCI, as it runs now; 0 unknown */
    char nvlink[TT_NVML_LINKS][TT_NVML_BUSID]; /* far end of each active link */
    int nnvlinks;
    int c2c_count, c2c_mbps; /* links to the CPU, MB/s of each; 0 none */
};

/* Call `call` for every GPU in NVML's order. Returns their number; 0 without the library or without
 * permission. A GPU that cannot be queried is left out and counted in *silent_out. */
int tt_nvml_each(void (*call)(void *context, int index, const struct tt_nvml_gpu *gpu),
                 void *context, int *silent_out);
