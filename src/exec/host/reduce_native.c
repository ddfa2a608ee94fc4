/* Reductions of types that are their own accumulators: fp32, fp64 and the integers.
 * Compiled once per instruction set level; tt_reduce_native is renamed by the build. */
#include "exec/host/reduce.h"

typedef float f32 __attribute__((aligned(1), may_alias));
typedef double f64 __attribute__((aligned(1), may_alias));
typedef int8_t i8 __attribute__((may_alias));
typedef uint8_t u8 __attribute__((may_alias));
typedef int32_t i32 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef int64_t i64 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));

/* A number wins against a NaN, as fmin and fmax have it. */
#define PAIR(name, type, expression)                                                               \
    static void name(void *dst, const void *a, const void *b, size_t count)                        \
    {                                                                                              \
        type *d = dst;                                                                             \
        const type *x = a, *y = b;                                                                 \
        _Pragma("GCC ivdep") for (size_t i = 0; i < count; i++) d[i] = (type)(expression);         \
    }

PAIR(sum_f32, f32, x[i] + y[i])
PAIR(prod_f32, f32, x[i] * y[i])
PAIR(max_f32, f32, ((x[i] > y[i]) | (y[i] != y[i])) ? x[i] : y[i])
PAIR(min_f32, f32, ((x[i] < y[i]) | (y[i] != y[i])) ? x[i] : y[i])
PAIR(sum_f64, f64, x[i] + y[i])
PAIR(prod_f64, f64, x[i] * y[i])
PAIR(max_f64, f64, ((x[i] > y[i]) | (y[i] != y[i])) ? x[i] : y[i])
PAIR(min_f64, f64, ((x[i] < y[i]) | (y[i] != y[i])) ? x[i] : y[i])
PAIR(sum_u8, u8, x[i] + y[i])
PAIR(prod_u8, u8, x[i] * y[i])
PAIR(max_u8, u8, x[i] > y[i] ? x[i] : y[i])
PAIR(min_u8, u8, x[i] < y[i] ? x[i] : y[i])
PAIR(max_i8, i8, x[i] > y[i] ? x[i] : y[i])
PAIR(min_i8, i8, x[i] < y[i] ? x[i] : y[i])
PAIR(sum_u32, u32, x[i] + y[i])
PAIR(prod_u32, u32, x[i] * y[i])
PAIR(max_u32, u32, x[i] > y[i] ? x[i] : y[i])
PAIR(min_u32, u32, x[i] < y[i] ? x[i] : y[i])
PAIR(max_i32, i32, x[i] > y[i] ? x[i] : y[i])
PAIR(min_i32, i32, x[i] < y[i] ? x[i] : y[i])
PAIR(sum_u64, u64, x[i] + y[i])
PAIR(prod_u64, u64, x[i] * y[i])
PAIR(max_u64, u64, x[i] > y[i] ? x[i] : y[i])
PAIR(min_u64, u64, x[i] < y[i] ? x[i] : y[i])
PAIR(max_i64, i64, x[i] > y[i] ? x[i] : y[i])
PAIR(min_i64, i64, x[i] < y[i] ? x[i] : y[i])
#undef PAIR

#define SCALE(name, type)                                                                          \
    static void name(void *dst, const void *src, const void *scalar, size_t count)                 \
    {                                                                                              \
        type *d = dst;                                                                             \
        const type *x = src, by = *(const type *)scalar;                                           \
        _Pragma("GCC ivdep") for (size_t i = 0; i < count; i++) d[i] = (type)(x[i] * by);          \
    }
SCALE(scale_f32, f32)
SCALE(scale_f64, f64)
SCALE(scale_u8, u8)
SCALE(scale_u32, u32)
SCALE(scale_u64, u64)
#undef SCALE

#define DIVIDE(name, type, wide)                                                                   \
    static void name(void *acc, int divisor, size_t count)                                         \
    {                                                                                              \
        type *d = acc;                                                                             \
        for (size_t i = 0; i < count; i++)                                                         \
            d[i] = (type)(d[i] / (wide)divisor);                                                   \
    }
DIVIDE(divide_f32, f32, float)
DIVIDE(divide_f64, f64, double)
DIVIDE(divide_i8, i8, int)
DIVIDE(divide_u8, u8, int)
DIVIDE(divide_i32, i32, int64_t)
DIVIDE(divide_u32, u32, uint32_t)
DIVIDE(divide_i64, i64, int64_t)
DIVIDE(divide_u64, u64, uint64_t)
#undef DIVIDE

const struct tt_reduce_type tt_reduce_native[ncclNumTypes] = {
    [ncclInt8] = {1, {sum_u8, prod_u8, max_i8, min_i8}, .scale = scale_u8, .divide = divide_i8},
    [ncclUint8] = {1, {sum_u8, prod_u8, max_u8, min_u8}, .scale = scale_u8, .divide = divide_u8},
    [ncclInt32] = {4,
                   {sum_u32, prod_u32, max_i32, min_i32},
                   .scale = scale_u32,
                   .divide = divide_i32},
    [ncclUint32] = {4,
                    {sum_u32, prod_u32, max_u32, min_u32},
                    .scale = scale_u32,
                    .divide = divide_u32},
    [ncclInt64] = {8,
                   {sum_u64, prod_u64, max_i64, min_i64},
                   .scale = scale_u64,
                   .divide = divide_i64},
    [ncclUint64] = {8,
                    {sum_u64, prod_u64, max_u64, min_u64},
                    .scale = scale_u64,
                    .divide = divide_u64},
    [ncclFloat32] = {4,
                     {sum_f32, prod_f32, max_f32, min_f32},
                     .scale = scale_f32,
                     .divide = divide_f32},
    [ncclFloat64] = {8,
                     {sum_f64, prod_f64, max_f64, min_f64},
                     .scale = scale_f64,
                     .divide = divide_f64},
};
