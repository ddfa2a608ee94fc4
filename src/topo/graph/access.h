/* Which devices are local to each other, and which may access each other directly. Private to the
 * room. */
#pragma once

#include "system.h"

/* Nodes of a type with the largest bandwidth, among these the smallest path type. Returns how many;
 * local has room for TT_TOPO_NODES. */
int tt_topo_local(const struct tt_topo_system *system, const struct tt_topo_node *node,
                  enum tt_topo_type type, struct tt_topo_node **local);
/* The CPU nearest to a GPU; NULL: none. */
struct tt_topo_node *tt_topo_local_cpu(const struct tt_topo_system *system,
                                       const struct tt_topo_node *gpu);
/* The NIC that a GPU uses for a channel; NULL: none. */
struct tt_topo_node *tt_topo_net_of(const struct tt_topo_system *system,
                                    const struct tt_topo_node *gpu, int channel);
/* The GPU that uses a NIC for the lowest channel; NULL: none. */
struct tt_topo_node *tt_topo_gpu_of(const struct tt_topo_system *system,
                                    const struct tt_topo_node *net);

struct tt_topo_p2p {
    bool allowed, read;               /* direct access is possible; by reading, not by writing */
    const struct tt_topo_node *relay; /* GPU in between; NULL: none */
};
/* May GPU `from` access memory of GPU `to`? */
struct tt_topo_p2p tt_topo_p2p_check(const struct tt_topo_system *system,
                                     const struct tt_topo_node *from,
                                     const struct tt_topo_node *to);
/* True when the network is faster than shared memory between two GPUs. */
bool tt_topo_prefers_net(const struct tt_topo_system *system, const struct tt_topo_node *a,
                         const struct tt_topo_node *b);
/* True when the NIC may use the GPU's memory (GPUDirect RDMA). */
bool tt_topo_gdr_check(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                       const struct tt_topo_node *net, bool sending);
/* The GPU whose proxy uses the NIC for this GPU: another one under PXN, else the GPU itself. */
const struct tt_topo_node *tt_topo_relay_of(const struct tt_topo_system *system,
                                            const struct tt_topo_node *gpu,
                                            const struct tt_topo_node *net);
