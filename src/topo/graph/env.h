/* NCCL's variables that affect the graph. Private to the room. */
#pragma once

#include "nccl.h"

#include <stdbool.h>

struct tt_topo_env {
    int p2p_level;     /* enum tt_path_type; -1: default rule */
    int net_gdr_level; /* the same */
    int net_gdr_read;  /* -2: depends on the GPU's architecture */
    bool nvb_disable, pxn_disable, pxn_c2c, net_gdr_c2c, net_disable_intra, shm_disable;
    int netdevs_policy; /* 0: AUTO, -1: ALL, n: at most n */
    int cross_nic;
    bool split_parts, gdr_parts;      /* partitions of a GPU are nodes; they may use GPUDirect */
    bool scatter_nets, rail_per_host; /* in an NVLink domain of several hosts */
};

/* Read the variables. Errors: ncclInvalidUsage naming the variable. */
ncclResult_t tt_topo_env_read(struct tt_topo_env *env);
