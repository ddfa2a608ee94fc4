/* Calls in words. The names of types and operators are those of nccl.h, shortened. */
#include "program/program.h"

#include <stdio.h>

static const char *const type_names[ncclNumTypes] = {
    "int8", "uint8", "int32",  "uint32",   "int64",      "uint64",
    "half", "float", "double", "bfloat16", "float8e4m3", "float8e5m2",
};

static const char *const op_names[ncclNumOps] = {"sum", "prod", "max", "min", "avg"};

const char *tt_type_name(int type)
{
    return type >= 0 && type < ncclNumTypes ? type_names[type] : "unknown type";
}

const char *tt_op_name(int op)
{
    return op >= 0 && op < ncclNumOps ? op_names[op] : "own operator";
}

static bool reduces(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
}

/* What stands behind count and type. */
static const char *role_name(enum tt_func func)
{
    if (func == TT_FUNC_SEND) return "to rank";
    return func == TT_FUNC_RECV ? "from rank" : "root";
}

void tt_call_text(const struct tt_call *call, bool chosen, char text_out[TT_CALL_BYTES])
{
    enum tt_func func = (enum tt_func)call->func;
    char op[24] = "", root[32] = "", choice[64] = "";
    if (!call->known) {
        snprintf(text_out, TT_CALL_BYTES, "an operation that is not known here any more");
        return;
    }
    if (reduces(func)) {
        snprintf(op, sizeof(op), ", %s", tt_op_name(call->op));
    }
    if (tt_func_is_message(func) || tt_func_from_root(func) || tt_func_to_root(func))
        snprintf(root, sizeof(root), ", %s %d", role_name(func), (int)call->root);
    if (chosen) {
        snprintf(choice, sizeof(choice), " with %s, %s, %d channel(s)",
                 tt_algo_name((enum tt_algo)call->algo), tt_proto_name((enum tt_proto)call->proto),
                 call->nchannels);
    }
    snprintf(text_out, TT_CALL_BYTES, "%s(count %llu, %s%s%s)%s", tt_func_name(func),
             (unsigned long long)call->count, tt_type_name(call->type), op, root, choice);
}

bool tt_call_same(const struct tt_call *a, const struct tt_call *b)
{
    return a->known && b->known && a->func == b->func && a->count == b->count &&
           a->type == b->type && a->op == b->op && a->root == b->root;
}

bool tt_call_needs(const struct tt_call *call, int rank, int other)
{
    if (tt_func_from_root((enum tt_func)call->func)) return call->root == rank;
    if (tt_func_to_root((enum tt_func)call->func)) return call->root == other;
    return true;
}
