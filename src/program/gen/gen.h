/* One generator per collective and shape. It gets a builder whose head says the request (func ..
 * root), appends what all ranks run, and cannot fail: make.c has checked the request. */
#pragma once

#include "program/format/build.h"

typedef void tt_generate(const struct tt_shape *shape, struct tt_builder *builder);

tt_generate tt_gen_direct_allreduce, tt_gen_direct_reduce, tt_gen_direct_broadcast;
tt_generate tt_gen_direct_allgather, tt_gen_direct_reducescatter, tt_gen_direct_alltoall;
tt_generate tt_gen_direct_gather, tt_gen_direct_scatter;
tt_generate tt_gen_oneshot_allreduce, tt_gen_oneshot_reduce, tt_gen_oneshot_broadcast;
tt_generate tt_gen_oneshot_allgather, tt_gen_oneshot_reducescatter, tt_gen_oneshot_alltoall;
tt_generate tt_gen_oneshot_gather, tt_gen_oneshot_scatter;
tt_generate tt_gen_ring_allreduce, tt_gen_ring_reduce, tt_gen_ring_broadcast;
tt_generate tt_gen_ring_allgather, tt_gen_ring_reducescatter;
tt_generate tt_gen_tree_allreduce, tt_gen_tree_broadcast, tt_gen_tree_reduce;
tt_generate tt_gen_doubling_allreduce, tt_gen_halving_allreduce;
tt_generate tt_gen_bruck_allgather, tt_gen_bruck_reducescatter, tt_gen_bruck_alltoall;
tt_generate tt_gen_pairwise_alltoall, tt_gen_pairwise_alltoallv, tt_gen_bruck_alltoallv;
tt_generate tt_gen_hierarchical_allreduce, tt_gen_hierarchical_reduce;
tt_generate tt_gen_hierarchical_broadcast, tt_gen_hierarchical_allgather;
tt_generate tt_gen_hierarchical_reducescatter, tt_gen_hierarchical_alltoall;
tt_generate tt_gen_uneven_allgather, tt_gen_uneven_reducescatter;
tt_generate tt_gen_nvls_allreduce, tt_gen_nvls_allgather, tt_gen_nvls_reducescatter;
tt_generate tt_gen_nvls_tree;
tt_generate tt_gen_pat_allgather, tt_gen_pat_reducescatter;
tt_generate tt_gen_collnet_direct_allreduce, tt_gen_collnet_chain_allreduce;
tt_generate tt_gen_collnet_direct_allgather, tt_gen_collnet_direct_reducescatter;
tt_generate tt_gen_p2p_send, tt_gen_p2p_recv;

/* One move of a loop whose register counts from 0: for block `first` and those that follow. */
typedef void tt_gen_block(struct tt_builder *builder, const void *exchange, int first);
/* Send `count` blocks and receive as many, up to TT_GEN_AHEAD of them sent before the first is
 * received: as many slots as an edge has, so chunks of such programs are one slot. */
enum { TT_GEN_AHEAD = 8 };
void tt_gen_exchange(struct tt_builder *builder, int count, const void *exchange,
                     tt_gen_block *send, tt_gen_block *receive);

/* ---- doubling.c: for programs of as many ranks as the largest power of two p <= n ---- */

int tt_gen_largest_power(int n);
/* Begin the text of the ranks below p that have a partner beyond it (`with_extra`: rank + p), or of
 * those that have none. */
void tt_gen_begin_core(struct tt_builder *builder, bool with_extra);
/* The whole text of the ranks from p on, if there are any: all chunks to their partner, then all of
 * the result from there. */
void tt_gen_extra(struct tt_builder *builder);
