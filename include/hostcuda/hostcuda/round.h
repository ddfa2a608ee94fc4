/* Conversions between float and shorter floating formats by their bits: exact, round to nearest
 * even, no floating-point environment needed. Shared by cuda_fp16.h, cuda_bf16.h and cuda_fp8.h.
 *
 * A short format is described by its mantissa bits and its exponent bias. Numbers below the
 * smallest normal one share its exponent and lose leading bits instead, which the shift below
 * covers. */
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

/* Magnitude of a finite float (its bits without sign) in the short format, without a limit: the
 * caller looks for values above its largest. */
static inline uint32_t tutti_round_bits(uint32_t magnitude, int mantissa_bits, int bias)
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
    if (shift > 25) return 0;
    uint32_t kept = mantissa >> shift, rest = mantissa & ((1U << shift) - 1),
             half = 1U << (shift - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    if (exponent < lowest) return kept;
    /* A format with float's own range has subnormals where float has; there is no leading bit. */
    if (!(mantissa & 0x800000U)) return kept;
    return ((uint32_t)(exponent + bias - 1) << mantissa_bits) + kept;
}

/* Value of a finite short number without sign. */
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

/* A float that leads to the same short number as the double: cut off, with the last bit set when
 * anything was lost (round to odd). */
static inline float tutti_double_odd(double value)
{
    float cut = (float)value;
    uint32_t bits = tutti_float_bits(cut);
    double back = (double)cut;
    if (back == value || value != value) return cut;
    if ((back > 0 ? back : -back) > (value > 0 ? value : -value)) bits--;
    return tutti_bits_float(bits | 1U);
}

#endif
