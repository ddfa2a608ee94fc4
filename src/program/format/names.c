/* Names of functions, algorithms and protocols, as logs, variables and listings spell them.
 * The order of each table is the order of its enum. */
#include "program/program.h"

static const char *const func_names[TT_FUNC_COUNT_] = {
    [TT_FUNC_BROADCAST] = "Broadcast", [TT_FUNC_REDUCE] = "Reduce",
    [TT_FUNC_ALLGATHER] = "AllGather", [TT_FUNC_REDUCESCATTER] = "ReduceScatter",
    [TT_FUNC_ALLREDUCE] = "AllReduce", [TT_FUNC_SEND] = "Send",
    [TT_FUNC_RECV] = "Recv",           [TT_FUNC_ALLTOALL] = "AlltoAll",
    [TT_FUNC_SCATTER] = "Scatter",     [TT_FUNC_GATHER] = "Gather",
};

static const char *const algo_names[TT_ALGO_COUNT_] = {
    "TREE",      "RING",  "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
    "NVLS_TREE", "PAT",   "DIRECT",         "ONESHOT",       "DOUBLING",
    "HALVING",   "BRUCK", "PAIRWISE",       "HIERARCHICAL",  "P2P",
};

static const char *const proto_names[TT_PROTO_COUNT_] = {"LL", "LL128", "SIMPLE"};

const char *tt_func_name(enum tt_func func)
{
    if (func == TT_FUNC_ALLTOALLV) return "AlltoAllv";
    const char *name = (unsigned int)func < TT_FUNC_COUNT_ ? func_names[func] : NULL;
    return name ? name : "unknown function";
}

bool tt_func_is_message(enum tt_func func)
{
    return func == TT_FUNC_SEND || func == TT_FUNC_RECV;
}

bool tt_func_from_root(enum tt_func func)
{
    return func == TT_FUNC_BROADCAST || func == TT_FUNC_SCATTER;
}

bool tt_func_to_root(enum tt_func func)
{
    return func == TT_FUNC_REDUCE || func == TT_FUNC_GATHER;
}

bool tt_func_keeps_given(enum tt_func func, bool is_root)
{
    if (func == TT_FUNC_ALLGATHER) return true;
    return is_root && func != TT_FUNC_REDUCE && (tt_func_from_root(func) || tt_func_to_root(func));
}

const char *tt_algo_name(enum tt_algo algo)
{
    if (algo == TT_ALGO_FILE) return "FILE";
    return (unsigned int)algo < TT_ALGO_COUNT_ ? algo_names[algo] : "unknown algorithm";
}

const char *tt_proto_name(enum tt_proto proto)
{
    return (unsigned int)proto < TT_PROTO_COUNT_ ? proto_names[proto] : "unknown protocol";
}
