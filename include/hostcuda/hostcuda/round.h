/* Conversions between float and narrower floating-point formats, on the bits of the numbers: the
 * rounding does not depend on the floating-point environment. Shared by cuda_fp16.h, cuda_bf16.h
 * and cuda_fp8.h.
 *
 * A narrow format is described by its number of mantissa bits and its exponent bias. Subnormal
 * numbers have the exponent of the smallest normal number and fewer mantissa bits. */
#ifndef TUTTI_HOSTCUDA_ROUND_H_
#define TUTTI_HOSTCUDA_ROUND_H_

#include <stdint.h>
#include <string.h>

static inline uint32_t tutti_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float tutti_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

enum tutti_rounding { TUTTI_NEAREST, TUTTI_TO_ZERO, TUTTI_DOWN, TUTTI_UP };

/* Whether the kept part is rounded up. `rest` is what is cut off, in units of which the last kept
 * bit is worth 2 * `half`. */
static inline int tutti_round_away(uint32_t kept, uint32_t rest, uint32_t half,
                                   enum tutti_rounding how)
{
    if (how == TUTTI_NEAREST) return rest > half || (rest == half && (kept & 1));
    return how == TUTTI_UP && rest;
}

/* Magnitude of a finite float (its bits without the sign) in the narrow format. It is not limited:
 * the caller checks for values above the largest. Up and down refer to the magnitude. */
static inline uint32_t tutti_round_to(uint32_t magnitude, int mantissa_bits, int bias,
                                      enum tutti_rounding how)
{
    int exponent = (int)(magnitude >> 23) - 127;
    uint32_t mantissa = magnitude & 0x7fffffU;
    int shift = 23 - mantissa_bits, lowest = 1 - bias;
    if (exponent == -127) {
        exponent = -126;
    } else {
        mantissa |= 0x800000U;
    }
    if (exponent < lowest) shift += lowest - exponent;
    if (shift > 25) return how == TUTTI_UP && mantissa;
    uint32_t kept = mantissa >> shift, rest = mantissa & ((1U << shift) - 1),
             half = 1U << (shift - 1);
    if (tutti_round_away(kept, rest, half, how)) kept++;
    if (exponent < lowest) return kept;
    /* A format with float's own range has subnormals where float has; there is no leading bit. */
    if (!(mantissa & 0x800000U)) return kept;
    return ((uint32_t)(exponent + bias - 1) << mantissa_bits) + kept;
}

static inline uint32_t tutti_round_bits(uint32_t magnitude, int mantissa_bits, int bias)
{
    return tutti_round_to(magnitude, mantissa_bits, bias, TUTTI_NEAREST);
}

/* The rounding direction of the magnitude of a number with this sign. */
static inline enum tutti_rounding tutti_round_magnitude(enum tutti_rounding how, int negative)
{
    if (how == TUTTI_NEAREST || how == TUTTI_TO_ZERO) return how;
    return (how == TUTTI_UP) == !negative ? TUTTI_UP : TUTTI_TO_ZERO;
}

/* Value of a finite number of the narrow format, without sign. */
static inline float tutti_short_value(uint32_t magnitude, int mantissa_bits, int bias)
{
    uint32_t exponent = magnitude >> mantissa_bits;
    uint32_t mantissa = magnitude & ((1U << mantissa_bits) - 1);
    float unit = tutti_bits_float((uint32_t)(127 - mantissa_bits) << 23); /* 2^-mantissa_bits */
    float scale;
    if (exponent == 0) {
        scale = tutti_bits_float((uint32_t)(1 - bias + 127) << 23);
        return (float)mantissa * unit * scale;
    }
    scale = tutti_bits_float((uint32_t)((int)exponent - bias + 127) << 23);
    return (1.0f + (float)mantissa * unit) * scale;
}

/* A float that rounds to the same narrow number as the double does: truncated, with the last bit
 * set where a bit was lost (round to odd). */
static inline float tutti_double_odd(double value)
{
    float cut = (float)value;
    uint32_t bits = tutti_float_bits(cut);
    double back = (double)cut;
    if (back == value || value != value) return cut;
    if ((back > 0 ? back : -back) > (value > 0 ? value : -value)) bits--;
    return tutti_bits_float(bits | 1U);
}

#ifdef __cplusplus

#include <limits>
#include <type_traits>

/* A float that rounds to the same narrow number as the integer does (round to odd). */
template <class I> inline float tutti_integer_odd(I value)
{
    uint64_t magnitude = static_cast<uint64_t>(value);
    int shift = 0;
    if (value < 0) magnitude = 0 - magnitude;
    for (; magnitude >> 24; shift++) {
        magnitude = magnitude >> 1 | (magnitude & 1);
    }
    float wide = static_cast<float>(magnitude) * static_cast<float>(uint64_t(1) << shift);
    return value < 0 ? -wide : wide;
}

/* Round to zero and saturate. NaN becomes 0, in 64-bit types the value with only the highest bit
 * set. */
template <class I> inline I tutti_to_integer(float value)
{
    constexpr I smallest = std::numeric_limits<I>::min(), largest = std::numeric_limits<I>::max();
    if (value != value) return sizeof(I) == 8 ? static_cast<I>(uint64_t(1) << 63) : 0;
    if (value >= static_cast<float>(largest)) return largest;
    return value <= static_cast<float>(smallest) ? smallest : static_cast<I>(value);
}

template <> inline bool tutti_to_integer<bool>(float value)
{
    return value != 0;
}

#endif

#endif
