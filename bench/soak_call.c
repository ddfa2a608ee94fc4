/* Random calls and their oracle. */
#include "soak_call.h"

uint64_t soak_mix(uint64_t z) /* splitmix64 */
{
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

int soak_pick(uint64_t *state, int n)
{
    *state += 0x9e3779b97f4a7c15ull;
    return (int)(soak_mix(*state) % (uint64_t)n);
}

ncclDataType_t soak_type(const struct soak_call *call)
{
    return call->width == 1 ? ncclUint8 : call->width == 4 ? ncclUint32 : ncclUint64;
}

static uint64_t cut(const struct soak_call *call, uint64_t value)
{
    return call->width == 8 ? value : value & ((1ull << 8 * call->width) - 1);
}

uint64_t soak_input(const struct soak_call *call, int rank, size_t i)
{
    return cut(call, soak_mix(call->seed + (uint64_t)rank * 0x100000001b3ull + i));
}

void soak_put(unsigned char *to, int width, size_t i, uint64_t value)
{
    if (width == 1) to[i] = (unsigned char)value;
    if (width == 4) ((uint32_t *)(void *)to)[i] = (uint32_t)value;
    if (width == 8) ((uint64_t *)(void *)to)[i] = value;
}

uint64_t soak_get(const unsigned char *from, int width, size_t i)
{
    if (width == 1) return from[i];
    return width == 4 ? ((const uint32_t *)(const void *)from)[i]
                      : ((const uint64_t *)(const void *)from)[i];
}

static uint64_t reduced(const struct soak_call *call, int n, size_t i)
{
    uint64_t result = soak_input(call, 0, i);
    for (int r = 1; r < n; r++) {
        uint64_t value = soak_input(call, r, i);
        if (call->op == ncclSum) result += value;
        if (call->op == ncclProd) result *= value;
        if (call->op == ncclMax && value > result) result = value;
        if (call->op == ncclMin && value < result) result = value;
        result = cut(call, result);
    }
    return result;
}

uint64_t soak_expected(const struct soak_call *call, int rank, int n, size_t i)
{
    size_t count = call->count;
    switch (call->func) {
    case SOAK_ALL_REDUCE:
    case SOAK_REDUCE: return reduced(call, n, i);
    case SOAK_REDUCE_SCATTER: return reduced(call, n, (size_t)rank * count + i);
    case SOAK_BROADCAST: return soak_input(call, call->root, i);
    case SOAK_ALL_GATHER:
    case SOAK_GATHER: return soak_input(call, (int)(i / count), i % count);
    case SOAK_ALL_TO_ALL:
        return soak_input(call, (int)(i / count), (size_t)rank * count + i % count);
    case SOAK_SCATTER: return soak_input(call, call->root, (size_t)rank * count + i);
    default: return soak_input(call, (rank + n - call->root % n) % n, i);
    }
}

size_t soak_in_count(const struct soak_call *call, int n)
{
    bool all = call->func == SOAK_REDUCE_SCATTER || call->func == SOAK_ALL_TO_ALL ||
               call->func == SOAK_SCATTER;
    return all ? call->count * (size_t)n : call->count;
}

size_t soak_out_count(const struct soak_call *call, int rank, int n)
{
    if ((call->func == SOAK_REDUCE || call->func == SOAK_GATHER) && rank != call->root) return 0;
    bool all =
        call->func == SOAK_ALL_GATHER || call->func == SOAK_ALL_TO_ALL || call->func == SOAK_GATHER;
    return all ? call->count * (size_t)n : call->count;
}

struct soak_call soak_call_random(uint64_t *state, int n)
{
    static const size_t counts[] = {1, 7, 300, 2000, 20000, 80000};
    static const ncclRedOp_t ops[] = {ncclSum, ncclProd, ncclMax, ncclMin};
    static const int widths[] = {1, 4, 8};
    struct soak_call call = {.func = (enum soak_func)soak_pick(state, SOAK_FUNC_COUNT_)};
    call.count = counts[soak_pick(state, 6)] + (size_t)soak_pick(state, 9);
    call.width = widths[soak_pick(state, 3)];
    call.op = ops[soak_pick(state, 4)];
    call.root = soak_pick(state, n);
    call.in_place =
        soak_pick(state, 3) == 0 && (call.func == SOAK_ALL_REDUCE || call.func == SOAK_BROADCAST);
    call.seed = soak_mix(*state);
    return call;
}
