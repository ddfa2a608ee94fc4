/* Reductions against a model: every type, operator, level, odd counts, unaligned pointers, scaling
 * and division. Sums are exact where the inputs allow it, and bounded elsewhere. */
#include "../check.h"

#include "base/mem.h"
#include "exec/exec.h"
#include "exec/host/reduce.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNT 5000
#define MAX_SRCS 9

/* ---- the model: one number, as double, in and out of each type ---- */

struct narrow { /* exponent bits, mantissa bits, bias, largest finite */
    int exponent, mantissa, bias;
    double most;
    bool infinite; /* has infinities, and rounding overflows into them */
};

static const struct narrow *narrow_of(ncclDataType_t type)
{
    static const struct narrow f16 = {5, 10, 15, 65504.0, true};
    static const struct narrow bf16 = {8, 7, 127, 3.3895313892515355e38, true};
    static const struct narrow e4m3 = {4, 3, 7, 448.0, false};
    static const struct narrow e5m2 = {5, 2, 15, 57344.0, false};
    switch (type) {
    case ncclFloat16: return &f16;
    case ncclBfloat16: return &bf16;
    case ncclFloat8e4m3: return &e4m3;
    case ncclFloat8e5m2: return &e5m2;
    default: return NULL;
    }
}

static double narrow_value(const struct narrow *type, uint32_t bits)
{
    int total = type->exponent + type->mantissa;
    double sign = bits >> total & 1 ? -1.0 : 1.0;
    int exponent = (int)(bits >> type->mantissa & ((1u << type->exponent) - 1));
    double fraction = (double)(bits & ((1u << type->mantissa) - 1)) / (1 << type->mantissa);
    bool special = exponent == (1 << type->exponent) - 1;
    if (type->exponent == 4 && special && fraction == 0.875) return NAN;
    if (type->exponent != 4 && special) return fraction == 0 ? sign * INFINITY : NAN;
    if (exponent == 0) return sign * ldexp(fraction, 1 - type->bias);
    return sign * ldexp(1 + fraction, exponent - type->bias);
}

/* Nearest number of the type, ties to even. */
static double narrow_round(const struct narrow *type, double value)
{
    if (value != value || value == 0) return value;
    double magnitude = fabs(value);
    if (isinf(value)) return type->infinite ? value : copysign(type->most, value);
    int exponent;
    frexp(magnitude, &exponent);
    int least = 1 - type->bias;
    double unit = ldexp(1, (exponent - 1 < least ? least : exponent - 1) - type->mantissa);
    double rounded = rint(magnitude / unit) * unit;
    if (rounded > type->most) rounded = type->infinite ? INFINITY : type->most;
    return copysign(rounded, value);
}

static double get(ncclDataType_t type, const char *at)
{
    const struct narrow *narrow = narrow_of(type);
    uint64_t bits = 0;
    memcpy(&bits, at, tt_type_bytes(type));
    float single;
    double value;
    switch (type) {
    case ncclFloat32: memcpy(&single, at, 4); return (double)single;
    case ncclFloat64: memcpy(&value, at, 8); return value;
    case ncclInt8: return (int8_t)bits;
    case ncclUint8: return (uint8_t)bits;
    case ncclInt32: return (int32_t)bits;
    case ncclUint32: return (uint32_t)bits;
    case ncclInt64: return (double)(int64_t)bits;
    case ncclUint64: return (double)bits;
    default: return narrow_value(narrow, (uint32_t)bits);
    }
}

static double model_op(ncclRedOp_t op, double a, double b)
{
    switch (op) {
    case ncclSum: return a + b;
    case ncclProd: return a * b;
    case ncclMax: return fmax(a, b);
    default: return fmin(a, b);
    }
}

/* ---- inputs ---- */

/* Small numbers that every type has, so that sums and products of a few are exact or nearly. */
static void put_small(ncclDataType_t type, char *at, int value)
{
    float single = (float)value;
    double wide = value;
    int64_t whole = value;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    uint32_t exponent = value ? (bits >> 23 & 255) - 127 : 0;
    uint32_t magnitude = value ? exponent << 23 | (bits & 0x7fffff) : 0;
    const struct narrow *narrow = narrow_of(type);
    if (type == ncclFloat32) {
        memcpy(at, &single, 4);
    } else if (type == ncclFloat64) {
        memcpy(at, &wide, 8);
    } else if (!narrow) {
        memcpy(at, &whole, tt_type_bytes(type));
    } else {
        uint32_t rebias = (uint32_t)narrow->bias << narrow->mantissa;
        uint32_t packed = value ? (magnitude >> (23 - narrow->mantissa)) + rebias : 0;
        if (value < 0) packed |= 1u << (narrow->exponent + narrow->mantissa);
        memcpy(at, &packed, tt_type_bytes(type));
    }
}

static char *sources[MAX_SRCS];
static char *destinations[2];

static int make_buffers(void **state)
{
    (void)state;
    for (int k = 0; k < MAX_SRCS; k++)
        sources[k] = malloc(MAX_COUNT * 8 + 64);
    for (int k = 0; k < 2; k++)
        destinations[k] = malloc(MAX_COUNT * 8 + 64);
    return 0;
}

static int free_buffers(void **state)
{
    (void)state;
    for (int k = 0; k < MAX_SRCS; k++)
        free(sources[k]);
    for (int k = 0; k < 2; k++)
        free(destinations[k]);
    return 0;
}

static bool is_unsigned(ncclDataType_t type)
{
    return type == ncclUint8 || type == ncclUint32 || type == ncclUint64;
}

/* 1 to 4, negative too, so that the exact result of a few is in every type but for products. */
static int small_value(ncclDataType_t type, int k, size_t i)
{
    int value = (int)((i * 7 + (size_t)k * 3) % 5) - 2;
    return is_unsigned(type) ? value + 2 : value;
}

static bool matches(ncclDataType_t type, double got, double want)
{
    const struct narrow *narrow = narrow_of(type);
    double rounded = narrow ? narrow_round(narrow, want) : want;
    return got == rounded || (got != got && rounded != rounded);
}

struct reduce_case {
    ncclDataType_t type;
    ncclRedOp_t op;
    int nsrcs, ndsts;
    size_t count, skew;
    bool in_place, stream;
    const struct tt_reduce_level *level;
};

static void run_case(const struct reduce_case *what)
{
    size_t elem = tt_type_bytes(what->type);
    const void *srcs[MAX_SRCS];
    void *dsts[2];
    struct tt_reduction reduction = {.type = what->type, .op = what->op};
    double want[MAX_COUNT];
    for (int k = 0; k < what->nsrcs; k++) {
        srcs[k] = sources[k] + what->skew;
        for (size_t i = 0; i < what->count; i++) {
            int value = small_value(what->type, k, i);
            put_small(what->type, sources[k] + what->skew + i * elem, value);
            want[i] = k == 0 ? value : model_op(what->op, want[i], value);
        }
    }
    for (int k = 0; k < what->ndsts; k++)
        dsts[k] = destinations[k] + what->skew;
    if (what->in_place) dsts[0] = sources[what->nsrcs - 1] + what->skew;
    struct tt_reduce_job job = {.reduction = &reduction,
                                .srcs = srcs,
                                .nsrcs = what->nsrcs,
                                .dsts = dsts,
                                .ndsts = what->ndsts,
                                .count = what->count,
                                .stream = what->stream};
    tt_reduce_run_at(what->level, &job);
    for (int k = 0; k < what->ndsts; k++) {
        for (size_t i = 0; i < what->count; i++) {
            double got = get(what->type, (const char *)dsts[k] + i * elem);
            if (matches(what->type, got, want[i])) continue;
            fail_msg("%s type %d op %d sources %d count %zu skew %zu%s: [%zu] is %g, not %g",
                     what->level->name, what->type, what->op, what->nsrcs, what->count, what->skew,
                     what->in_place ? " in place" : "", i, got, want[i]);
        }
    }
}

static void run_level(const struct tt_reduce_level *level)
{
    static const size_t counts[] = {0, 1, 3, 17, 255, 1025, MAX_COUNT};
    struct reduce_case what = {.level = level};
    for (int type = 0; type < ncclNumTypes; type++) {
        for (int op = 0; op < TT_REDUCE_OPS; op++) {
            for (size_t c = 0; c < TT_LEN(counts); c++) {
                what.type = (ncclDataType_t)type;
                what.op = (ncclRedOp_t)op;
                what.count = counts[c];
                what.nsrcs = 1 + (int)(c + (size_t)op) % 4;
                what.ndsts = 1 + (int)c % 2;
                what.skew = c % 3;
                what.in_place = c % 2;
                what.stream = c % 4 == 3;
                run_case(&what);
            }
        }
    }
}

static void small_numbers_are_exact(void **state)
{
    (void)state;
    int nlevels;
    const struct tt_reduce_level *levels = tt_reduce_levels(&nlevels);
    for (int k = 0; k < nlevels; k++)
        run_level(&levels[k]);
}

/* ---- every bit pattern of the narrow types, against the model ---- */

static void narrow_case(ncclDataType_t type, ncclRedOp_t op, const struct tt_reduce_level *level,
                        size_t count)
{
    size_t elem = tt_type_bytes(type);
    struct tt_reduction reduction = {.type = type, .op = op};
    const void *srcs[] = {sources[0], sources[1]};
    void *dsts[] = {destinations[0]};
    struct tt_reduce_job job = {.reduction = &reduction,
                                .srcs = srcs,
                                .nsrcs = 2,
                                .dsts = dsts,
                                .ndsts = 1,
                                .count = count};
    tt_reduce_run_at(level, &job);
    for (size_t i = 0; i < count; i++) {
        double x = get(type, sources[0] + i * elem), y = get(type, sources[1] + i * elem);
        double want = (double)(float)model_op(op, x, y);
        double got = get(type, destinations[0] + i * elem);
        if (matches(type, got, want)) continue;
        fail_msg("%s type %d op %d: %g and %g give %g, not %g", level->name, type, op, x, y, got,
                 want);
    }
}

/* Each bit pattern with a partner that runs through all of them too. */
static void narrow_patterns(ncclDataType_t type, const struct tt_reduce_level *level)
{
    size_t elem = tt_type_bytes(type);
    uint32_t patterns = elem == 1 ? 256 : 65536;
    size_t count = tt_min_size(4096, patterns);
    for (uint32_t base = 0; base < patterns; base += 4096) {
        for (size_t i = 0; i < count; i++) {
            uint32_t a = (base + (uint32_t)i) % patterns, b = a * 40503u % patterns;
            memcpy(sources[0] + i * elem, &a, elem);
            memcpy(sources[1] + i * elem, &b, elem);
        }
        for (int op = 0; op < TT_REDUCE_OPS; op++)
            narrow_case(type, (ncclRedOp_t)op, level, count);
    }
}

static void narrow_sums_round_once(void **state)
{
    static const ncclDataType_t types[] = {ncclFloat16, ncclBfloat16, ncclFloat8e4m3,
                                           ncclFloat8e5m2};
    (void)state;
    int nlevels;
    const struct tt_reduce_level *levels = tt_reduce_levels(&nlevels);
    for (size_t t = 0; t < TT_LEN(types); t++) {
        for (int k = 0; k < nlevels; k++)
            narrow_patterns(types[t], &levels[k]);
    }
}

/* Every pair of 8-bit numbers at every level against the first level, to the bit. */
enum { NPAIRS = 65536 - 3 };
static uint8_t pair_x[NPAIRS], pair_y[NPAIRS], pair_sums[2][NPAIRS];

static void add_pairs(ncclDataType_t type, const struct tt_reduce_level *level, void *sums)
{
    struct tt_reduction sum = {.type = type, .op = ncclSum};
    struct tt_reduce_job job = {.reduction = &sum,
                                .srcs = (const void *[]){pair_x, pair_y},
                                .nsrcs = 2,
                                .dsts = (void *[]){sums},
                                .ndsts = 1,
                                .count = NPAIRS};
    tt_reduce_run_at(level, &job);
}

static void add_at_all_levels(ncclDataType_t type)
{
    int nlevels;
    const struct tt_reduce_level *levels = tt_reduce_levels(&nlevels);
    uint8_t *first = pair_sums[0], *got = pair_sums[1];
    add_pairs(type, &levels[0], first);
    for (int k = 1; k < nlevels; k++) {
        add_pairs(type, &levels[k], got);
        for (size_t i = 0; i < NPAIRS; i++) {
            bool nan = (got[i] & first[i] & 0x7f) == 0x7f; /* of either sign */
            if (got[i] == first[i] || nan) continue;
            fail_msg("%s type %d: %#x and %#x give %#x, not %#x", levels[k].name, type, pair_x[i],
                     pair_y[i], got[i], first[i]);
        }
    }
}

static void fp8_sums_are_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < NPAIRS; i++) {
        pair_x[i] = (uint8_t)(i >> 8);
        pair_y[i] = (uint8_t)i;
    }
    add_at_all_levels(ncclFloat8e4m3);
    add_at_all_levels(ncclFloat8e5m2);
}

enum { NMANY = 5, MANY = 2048 };

static void want_many(ncclDataType_t type, const void *const *srcs, int nsrcs, char *want)
{
    int nlevels;
    const struct tt_reduce_type *first = &tt_reduce_levels(&nlevels)[0].narrow[type];
    for (size_t at = 0; at < MANY * first->elem_bytes; at += first->elem_bytes) {
        float sum = 0;
        for (int k = 0; k < nsrcs; k++) {
            float value;
            first->widen(&value, (const char *)srcs[k] + at, 1);
            sum = k ? sum + value : value;
        }
        first->narrow(want + at, &sum, 1);
    }
}

/* Sums of `nsrcs` sources at every level, against numbers that are widened, added and rounded one
 * by one; of NaNs only that they are. Every other time the last source is the first of
 * two destinations. */
static void add_many(ncclDataType_t type, int nsrcs, size_t skew)
{
    int nlevels;
    const struct tt_reduce_level *levels = tt_reduce_levels(&nlevels);
    size_t elem = tt_type_bytes(type), bytes = (MANY - skew) * elem;
    struct tt_reduction reduction = {.type = type, .op = ncclSum};
    const void *srcs[NMANY];
    char want[MANY * 2];
    for (int k = 0; k < nsrcs; k++)
        srcs[k] = sources[k] + skew;
    want_many(type, srcs, nsrcs, want);
    for (int k = 0; k < nlevels; k++) {
        char *dst = destinations[0] + skew, *second = destinations[1] + skew;
        memset(second, 0, bytes);
        if (k % 2) srcs[nsrcs - 1] = memcpy(dst, sources[nsrcs - 1] + skew, bytes);
        struct tt_reduce_job job = {.reduction = &reduction,
                                    .srcs = srcs,
                                    .nsrcs = nsrcs,
                                    .dsts = (void *[]){dst, second},
                                    .ndsts = 2,
                                    .count = MANY - skew};
        tt_reduce_run_at(&levels[k], &job);
        srcs[nsrcs - 1] = sources[nsrcs - 1] + skew;
        assert_memory_equal(second, dst, bytes);
        for (size_t at = 0; at < bytes; at += elem) {
            double is = get(type, dst + at), wanted = get(type, want + at);
            if (!memcmp(dst + at, want + at, elem) || (is != is && wanted != wanted)) continue;
            fail_msg("%s type %d: %d sources, [%zu] is %g, not %g", levels[k].name, type, nsrcs,
                     at / elem, is, wanted);
        }
    }
}

/* Any bits; most blocks have no number whose exponent is the largest. */
static void put_any(ncclDataType_t type, uint32_t *number)
{
    static const uint16_t exponents[ncclNumTypes] = {[ncclFloat16] = 0x7c00,
                                                     [ncclBfloat16] = 0x7f80,
                                                     [ncclFloat8e4m3] = 0x78,
                                                     [ncclFloat8e5m2] = 0x7c};
    size_t elem = tt_type_bytes(type);
    for (int k = 0; k < NMANY; k++) {
        for (size_t i = 0; i < MANY + 4; i++) {
            *number = *number * 1664525 + 1013904223;
            uint32_t bits = *number >> (32 - 8 * elem), largest = exponents[type];
            if ((bits & largest) == largest && i % 512 < 448) bits ^= largest & -largest << 1;
            memcpy(sources[k] + i * elem, &bits, elem);
        }
    }
}

static void narrow_sums_of_many_are_the_same_bits(void **state)
{
    static const ncclDataType_t types[] = {ncclFloat16, ncclBfloat16, ncclFloat8e4m3,
                                           ncclFloat8e5m2};
    (void)state;
    uint32_t number = 1;
    for (int round = 0; round < 64; round++) {
        for (size_t t = 0; t < TT_LEN(types); t++) {
            put_any(types[t], &number);
            add_many(types[t], 3 + round % (NMANY - 2), (size_t)round % 3);
        }
    }
}

/* Sums of bfloat16 that are subnormal, which processors may take for zero: of small numbers, and
 * of larger ones that nearly cancel each other. */
static void subnormal_sums_of_many(void **state)
{
    (void)state;
    for (int k = 0; k < NMANY; k++) {
        for (size_t i = 0; i < MANY + 4; i++) {
            uint32_t bits = (uint32_t)(i * 37 + (size_t)k * 11) % (i % 3 ? 128 : 512);
            if (k % 2) bits |= 0x8000;
            memcpy(sources[k] + 2 * i, &bits, 2);
        }
    }
    for (int nsrcs = 3; nsrcs <= NMANY; nsrcs++)
        add_many(ncclBfloat16, nsrcs, 0);
}

enum { NROUNDED = 1024 };

static void round_at_all_levels(ncclDataType_t type, const float *values)
{
    uint8_t first[NROUNDED], got[NROUNDED];
    int nlevels;
    const struct tt_reduce_level *levels = tt_reduce_levels(&nlevels);
    levels[0].narrow[type].narrow(first, values, NROUNDED);
    for (int k = 1; k < nlevels; k++) {
        levels[k].narrow[type].narrow(got, values, NROUNDED);
        for (size_t i = 0; i < NROUNDED; i++) {
            if (got[i] == first[i]) continue;
            fail_msg("%s type %d: %a is %#x, not %#x", levels[k].name, type, (double)values[i],
                     got[i], first[i]);
        }
    }
}

/* fp32 of all magnitudes, and those half way between two numbers of a type, at every level. */
static void fp8_roundings_are_the_same_bits(void **state)
{
    const uint64_t step = 262147, all = (uint64_t)1 << 32; /* a prime: all low bits appear */
    float values[NROUNDED];
    uint32_t n = 0;
    (void)state;
    for (uint64_t pattern = 0; pattern < all; pattern += step, n++) {
        uint32_t bits = (uint32_t)pattern, i = n % NROUNDED;
        if (i % 2) bits = (bits & 0xfff80000) + (i % 4 == 1 ? 0x80000 : 0x7ffff);
        memcpy(&values[i], &bits, sizeof(bits));
        if (i != NROUNDED - 1) continue;
        round_at_all_levels(ncclFloat8e4m3, values);
        round_at_all_levels(ncclFloat8e5m2, values);
    }
}

/* ---- pre- and post-operations ---- */

struct simple {
    int nsrcs;
    const uint64_t *mask;
    bool post;
    size_t count;
};

static void run_reduce(const struct tt_reduction *reduction, void *const *dsts,
                       const void *const *srcs, struct simple what)
{
    struct tt_reduce_job job = {.reduction = reduction,
                                .dsts = dsts,
                                .ndsts = 1,
                                .srcs = srcs,
                                .nsrcs = what.nsrcs,
                                .pre_mask = what.mask,
                                .post = what.post,
                                .count = what.count};
    tt_reduce_run(&job);
}

static void scaling_and_division(void **state)
{
    (void)state;
    for (int type = 0; type < ncclNumTypes; type++) {
        size_t elem = tt_type_bytes((ncclDataType_t)type), count = 1500;
        struct tt_reduction reduction = {
            .type = (ncclDataType_t)type, .op = ncclSum, .pre_mul = true};
        put_small(reduction.type, (char *)&reduction.scalar_bits, 3);
        reduction.post_div = 2;
        const void *srcs[] = {sources[0], sources[1], sources[2]};
        void *dsts[] = {destinations[0]};
        uint64_t mask = 5; /* the first and the third */
        for (size_t i = 0; i < count; i++) {
            for (int k = 0; k < 3; k++) {
                put_small(reduction.type, sources[k] + i * elem, small_value(reduction.type, k, i));
            }
        }
        run_reduce(&reduction, dsts, srcs, (struct simple){3, &mask, true, count});
        for (size_t i = 0; i < count; i++) {
            double sum = small_value(reduction.type, 0, i) * 3 + small_value(reduction.type, 1, i) +
                         small_value(reduction.type, 2, i) * 3;
            bool whole = type <= ncclUint64;
            double want = whole ? trunc(sum / 2) : sum / 2;
            double got = get(reduction.type, destinations[0] + i * elem);
            if (!matches(reduction.type, got, want)) {
                fail_msg("type %d element %zu: %g, not %g", type, i, got, want);
            }
        }
    }
}

static void integers_wrap(void **state)
{
    (void)state;
    int8_t a[3] = {127, -128, 100}, b[3] = {1, -1, 100}, got[3];
    const void *srcs[] = {a, b};
    void *dsts[] = {got};
    struct tt_reduction reduction = {.type = ncclInt8, .op = ncclSum};
    run_reduce(&reduction, dsts, srcs, (struct simple){2, NULL, false, 3});
    assert_int_equal(got[0], -128);
    assert_int_equal(got[1], 127);
    assert_int_equal(got[2], -56);
}

static void numbers_win_against_nan(void **state)
{
    (void)state;
    float a[4] = {NAN, 1, NAN, 2}, b[4] = {3, NAN, NAN, -2}, got[4];
    const void *srcs[] = {a, b};
    void *dsts[] = {got};
    struct tt_reduction reduction = {.type = ncclFloat32, .op = ncclMax};
    run_reduce(&reduction, dsts, srcs, (struct simple){2, NULL, false, 4});
    assert_true(got[0] == 3 && got[1] == 1 && isnan(got[2]) && got[3] == 2);
    reduction.op = ncclMin;
    run_reduce(&reduction, dsts, srcs, (struct simple){2, NULL, false, 4});
    assert_true(got[0] == 3 && got[1] == 1 && isnan(got[2]) && got[3] == -2);
}

static void copies_of_all_sizes(void **state)
{
    (void)state;
    size_t most = ((size_t)3 << 20) + 77;
    char *from = malloc(most), *to = malloc(most);
    for (size_t i = 0; i < most; i++)
        from[i] = (char)(i * 31);
    for (size_t bytes = 1; bytes < most; bytes = bytes * 3 + 1) {
        for (int stream = 0; stream < 2; stream++) {
            memset(to, 0, bytes + 1);
            tt_copy_run(to + 1, from + 3, bytes - 1, stream);
            assert_memory_equal(to + 1, from + 3, bytes - 1);
            assert_int_equal(to[0], 0);
            assert_int_equal(to[bytes], 0);
        }
    }
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_numbers_are_exact),
        cmocka_unit_test(narrow_sums_round_once),
        cmocka_unit_test(fp8_sums_are_the_same_bits),
        cmocka_unit_test(narrow_sums_of_many_are_the_same_bits),
        cmocka_unit_test(subnormal_sums_of_many),
        cmocka_unit_test(fp8_roundings_are_the_same_bits),
        cmocka_unit_test(scaling_and_division),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(numbers_win_against_nan),
        cmocka_unit_test(copies_of_all_sizes),
    };
    return cmocka_run_group_tests(tests, make_buffers, free_buffers);
}
