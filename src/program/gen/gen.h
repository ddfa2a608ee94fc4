/* One generator per collective and shape. It gets a builder whose head says the request (func ..
 * root), appends what all ranks run, and cannot fail: make.c has checked the request. */
#pragma once

#include "program/build.h"

typedef void tt_generate(const struct tt_shape *shape, struct tt_builder *builder);

tt_generate tt_gen_direct_allreduce, tt_gen_direct_reduce, tt_gen_direct_broadcast;
tt_generate tt_gen_direct_allgather, tt_gen_direct_reducescatter, tt_gen_direct_alltoall;
tt_generate tt_gen_direct_gather, tt_gen_direct_scatter;
tt_generate tt_gen_oneshot_allreduce, tt_gen_oneshot_reduce, tt_gen_oneshot_broadcast;
tt_generate tt_gen_oneshot_allgather, tt_gen_oneshot_reducescatter, tt_gen_oneshot_alltoall;
tt_generate tt_gen_oneshot_gather, tt_gen_oneshot_scatter;
tt_generate tt_gen_ring_allreduce, tt_gen_ring_reduce, tt_gen_ring_broadcast;
tt_generate tt_gen_ring_allgather, tt_gen_ring_reducescatter;
tt_generate tt_gen_tree_allreduce;
tt_generate tt_gen_pat_allgather, tt_gen_pat_reducescatter;
tt_generate tt_gen_p2p_send, tt_gen_p2p_recv;
