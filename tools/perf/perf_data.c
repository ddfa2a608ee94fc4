/* Inputs and expected results. Element k of rank r is a small whole number that repeats every
 * PERIOD elements, chosen so that every sum, product and average is exact in the type (or, for
 * averages of floats, right within the type's rounding). So a check is a comparison with a short
 * table. */
#include "perf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD = 1021 }; /* prime: no block length falls in step with it */

/* Largest whole number up to which all whole numbers are exact in the type. */
static int exact_limit(int type)
{
    switch (type) {
    case ncclInt8: return 100;
    case ncclUint8: return 200;
    case ncclFloat16: return 2048;
    case ncclBfloat16: return 256;
    case ncclFloat8e4m3: return 16;
    case ncclFloat8e5m2: return 8;
    default: return 1 << 20;
    }
}

static uint32_t mix(uint32_t rank, uint32_t k)
{
    uint32_t x = rank * 0x9e3779b9u + k * 0x85ebca6bu + 12345u;
    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    return x ^ (x >> 13);
}

static int input_value(const struct perf_case *pc, int rank, int nranks, uint32_t k)
{
    int limit = exact_limit(pc->type);
    if (!pc->operation->reduces || pc->op == ncclMax || pc->op == ncclMin) {
        return (int)(mix((uint32_t)rank, k) % (uint32_t)(limit < 4096 ? limit : 4096));
    }
    if (pc->op == ncclProd) return ((int)k + rank) % nranks == 0 ? 1 + (int)(k % 3) : 1;
    int budget = pc->op == 5 ? limit / 2 : limit;
    if (budget > 4096) budget = 4096;
    int share = budget / nranks;
    if (share >= 1) return (int)(mix((uint32_t)rank, k) % (uint32_t)(share + 1));
    return ((int)k + rank) % nranks < budget ? 1 : 0;
}

static uint16_t half_bits(double value, int mantissa_bits, int bias)
{
    int exponent = 0;
    if (value <= 0) return 0;
    double fraction = frexp(value, &exponent); /* [0.5, 1) */
    uint32_t mantissa = (uint32_t)((fraction * 2 - 1) * (1 << mantissa_bits));
    return (uint16_t)((uint32_t)(exponent - 1 + bias) << mantissa_bits | mantissa);
}

static void encode(int type, double value, unsigned char *to)
{
    int64_t whole = (int64_t)value;
    float single = (float)value;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &single, sizeof(bits));
    switch (type) {
    case ncclFloat32: memcpy(to, &single, 4); return;
    case ncclFloat64: memcpy(to, &value, 8); return;
    case ncclFloat16:
        half = half_bits(value, 10, 15);
        memcpy(to, &half, 2);
        return;
    case ncclBfloat16:
        half = (uint16_t)(bits >> 16);
        memcpy(to, &half, 2);
        return;
    case ncclFloat8e4m3: *to = (unsigned char)half_bits(value, 3, 7); return;
    case ncclFloat8e5m2: *to = (unsigned char)half_bits(value, 2, 15); return;
    default: memcpy(to, &whole, perf_type_bytes(type)); return;
    }
}

static double decode_float(uint32_t bits, int mantissa_bits, int bias)
{
    int exponent = (int)(bits >> mantissa_bits);
    double mantissa = (double)(bits & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
    if (exponent == 0) return ldexp(mantissa, 1 - bias);
    return ldexp(1 + mantissa, exponent - bias);
}

static double decode(int type, const unsigned char *from)
{
    int64_t whole = 0;
    float single;
    double value;
    uint16_t half;
    uint32_t bits;
    switch (type) {
    case ncclFloat32: memcpy(&single, from, 4); return (double)single;
    case ncclFloat64: memcpy(&value, from, 8); return value;
    case ncclFloat16: memcpy(&half, from, 2); return decode_float(half, 10, 15);
    case ncclBfloat16:
        memcpy(&half, from, 2);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, 4);
        return (double)single;
    case ncclFloat8e4m3: return decode_float(*from, 3, 7);
    case ncclFloat8e5m2: return decode_float(*from, 2, 15);
    default: memcpy(&whole, from, perf_type_bytes(type)); return (double)whole;
    }
}

/* Largest relative error of an average (docs/accuracy.md, the ring, whose bound is the widest): one
 * rounding of 1/n, one of the product, n - 1 of the sums, and two units for the expected value,
 * which encode() cuts off. All values are positive. */
static double tolerance(const struct perf_case *pc, int nranks)
{
    static const int bits[] = {[ncclFloat16] = 11, [ncclFloat32] = 24,   [ncclFloat64] = 53,
                               [ncclBfloat16] = 8, [ncclFloat8e4m3] = 4, [ncclFloat8e5m2] = 3};
    if (!pc->operation->reduces || pc->op != ncclAvg || !bits[pc->type]) return 0;
    return expm1((nranks + 3) * log1p(ldexp(1, -bits[pc->type])));
}

static double expected_value(const struct perf_case *pc, int nranks, uint32_t k)
{
    double sum = 0;
    double best = input_value(pc, 0, nranks, k);
    double product = 1;
    for (int r = 0; r < nranks; r++) {
        int v = input_value(pc, r, nranks, k);
        sum += v;
        product *= v;
        if (pc->op == ncclMax ? v > best : v < best) best = v;
    }
    switch (pc->op) {
    case ncclSum: return sum;
    case ncclProd: return product;
    case ncclMax:
    case ncclMin: return best;
    case ncclAvg: return pc->type < ncclFloat16 ? trunc(sum / nranks) : sum / nranks;
    default: return sum * 2; /* mulsum: every rank's scalar is 2 */
    }
}

/* `count` elements of a periodic table from element `first` on. */
static void tile(const unsigned char *table, size_t elem, size_t first, size_t count,
                 unsigned char *to)
{
    size_t k = first % PERIOD;
    while (count) {
        size_t n = PERIOD - k < count ? PERIOD - k : count;
        memcpy(to, table + k * elem, n * elem);
        to += n * elem;
        count -= n;
        k = 0;
    }
}

static void input_table(const struct perf_case *pc, int rank, int nranks, unsigned char *table)
{
    size_t elem = perf_type_bytes(pc->type);
    for (uint32_t k = 0; k < PERIOD; k++) {
        encode(pc->type, input_value(pc, rank, nranks, k), table + k * elem);
    }
}

void perf_fill_input(const struct perf_case *pc, int rank, int nranks, size_t blocks, void *to)
{
    unsigned char table[PERIOD * 8];
    input_table(pc, rank, nranks, table);
    tile(table, perf_type_bytes(pc->type), 0, blocks * pc->count, to);
}

/* Compare one run of elements with a periodic table. */
static int64_t compare(const struct perf_case *pc, int nranks, const unsigned char *table,
                       size_t first, size_t count, const unsigned char *got)
{
    size_t elem = perf_type_bytes(pc->type);
    double slack = tolerance(pc, nranks);
    int64_t wrong = 0;
    size_t k = first % PERIOD;
    while (count) {
        size_t n = PERIOD - k < count ? PERIOD - k : count;
        bool same = memcmp(got, table + k * elem, n * elem) == 0;
        for (size_t i = 0; i < n && !same; i++) {
            double want = decode(pc->type, table + (k + i) * elem);
            double have = decode(pc->type, got + i * elem);
            if (!(fabs(want - have) <= slack * fabs(want))) wrong++;
        }
        got += n * elem;
        count -= n;
        k = 0;
    }
    return wrong;
}

static int64_t wrong_reduced(const struct perf_case *pc, int rank, int nranks,
                             const unsigned char *got)
{
    unsigned char table[PERIOD * 8];
    size_t elem = perf_type_bytes(pc->type);
    for (uint32_t k = 0; k < PERIOD; k++) {
        encode(pc->type, expected_value(pc, nranks, k), table + k * elem);
    }
    size_t first = pc->operation->send_blocks < 0 ? (size_t)rank * pc->count : 0;
    return compare(pc, nranks, table, first, pc->count, got);
}

int64_t perf_count_wrong(const struct perf_case *pc, int rank, int nranks, const void *got)
{
    const struct perf_operation *op = pc->operation;
    unsigned char table[PERIOD * 8];
    size_t elem = perf_type_bytes(pc->type);
    int64_t wrong = 0;
    bool at_root_only = op->rooted && (op->reduces || op->recv_blocks < 0);
    if (at_root_only && rank != pc->root) return 0;
    if (op->reduces) return wrong_reduced(pc, rank, nranks, got);
    int nblocks = op->recv_blocks < 0 ? nranks : 1;
    for (int b = 0; b < nblocks; b++) {
        int source = op->recv_blocks < 0 ? b : op->rooted ? pc->root : (rank + nranks - 1) % nranks;
        size_t first = op->send_blocks < 0 ? (size_t)rank * pc->count : 0;
        input_table(pc, source, nranks, table);
        wrong += compare(pc, nranks, table, first, pc->count,
                         (const unsigned char *)got + (size_t)b * pc->count * elem);
    }
    return wrong;
}

size_t perf_send_elems(const struct perf_case *pc, int nranks)
{
    return pc->count * (size_t)(pc->operation->send_blocks < 0 ? nranks : 1);
}

size_t perf_recv_elems(const struct perf_case *pc, int nranks)
{
    return pc->count * (size_t)(pc->operation->recv_blocks < 0 ? nranks : 1);
}

void perf_in_place(const struct perf_case *pc, int rank, int nranks, size_t *send_at,
                   size_t *recv_at)
{
    const struct perf_operation *op = pc->operation;
    (void)nranks;
    *send_at = 0;
    *recv_at = 0;
    if (op->send_blocks == op->recv_blocks) return;
    int own = op->rooted ? pc->root : rank;
    if (op->recv_blocks < 0) *send_at = (size_t)own * pc->count;
    if (op->send_blocks < 0) *recv_at = (size_t)own * pc->count;
}
