/* See values.h. Narrow floats are written and read through their fields. */
#include "values.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    int bytes;
    int mant, bias; /* of narrow floats */
} types[] = {
    {"int8", 1, 0, 0},   {"uint8", 1, 0, 0},  {"int32", 4, 0, 0},  {"uint32", 4, 0, 0},
    {"int64", 8, 0, 0},  {"uint64", 8, 0, 0}, {"half", 2, 10, 15}, {"float", 4, 0, 0},
    {"double", 8, 0, 0}, {"bf16", 2, 7, 127}, {"e4m3", 1, 3, 7},   {"e5m2", 1, 2, 15},
};

size_t value_bytes(ncclDataType_t type)
{
    return (size_t)types[type].bytes;
}

const char *value_type_name(ncclDataType_t type)
{
    return types[type].name;
}

static uint16_t narrow_put(double value, int mant, int bias)
{
    if (value == 0) return 0;
    int exponent;
    double fraction = frexp(fabs(value), &exponent) * 2; /* 1 <= fraction < 2 */
    uint32_t bits = (uint32_t)((exponent - 1 + bias) << mant);
    bits += (uint32_t)ldexp(fraction - 1, mant);
    int sign = bias == 7 || (bias == 15 && mant == 2) ? 7 : 15;
    return (uint16_t)(bits | (value < 0 ? 1u << sign : 0));
}

static double narrow_get(uint16_t bits, int mant, int bias, int width)
{
    int sign = bits >> (width - 1);
    int exponent = (bits & ((1 << (width - 1)) - 1)) >> mant;
    double fraction = bits & ((1 << mant) - 1);
    double value = exponent ? ldexp(1 + ldexp(fraction, -mant), exponent - bias)
                            : ldexp(fraction, 1 - bias - mant);
    return sign ? -value : value;
}

void value_put(void *buffer, size_t index, ncclDataType_t type, double value)
{
    char *at = (char *)buffer + index * value_bytes(type);
    int64_t whole = (int64_t)value;
    float single = (float)value;
    uint16_t narrow = types[type].mant ? narrow_put(value, types[type].mant, types[type].bias) : 0;
    switch (type) {
    case ncclFloat32: memcpy(at, &single, 4); break;
    case ncclFloat64: memcpy(at, &value, 8); break;
    case ncclFloat16:
    case ncclBfloat16:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: memcpy(at, &narrow, value_bytes(type)); break; /* little endian */
    default: memcpy(at, &whole, value_bytes(type)); break;
    }
}

double value_get(const void *buffer, size_t index, ncclDataType_t type)
{
    size_t bytes = value_bytes(type);
    const char *at = (const char *)buffer + index * bytes;
    uint64_t raw = 0;
    float single;
    double value;
    memcpy(&raw, at, bytes);
    switch (type) {
    case ncclFloat32: memcpy(&single, at, 4); return single;
    case ncclFloat64: memcpy(&value, at, 8); return value;
    case ncclInt8: return (int8_t)raw;
    case ncclInt32: return (int32_t)raw;
    case ncclInt64: return (double)(int64_t)raw;
    case ncclUint8:
    case ncclUint32:
    case ncclUint64: return (double)raw;
    default: return narrow_get((uint16_t)raw, types[type].mant, types[type].bias, (int)bytes * 8);
    }
}
