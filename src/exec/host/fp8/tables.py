#!/usr/bin/env python3
"""Writes tables.h: tables.py OUTPUT (then clang-format).

A number of a type with m mantissa bits is code * its place in order: codes of one sign are in the
order of their values, an exponent is 2**m codes. Sums are made of significands (m + 1 bits) with
6 - m guard bits below them, so they fill 7 bits, and 8 after a carry.
"""
import math, struct, sys

BIAS = 32  # of codes that may be negative
TYPES = {"e4m3": 3, "e5m2": 2}  # mantissa bits


def lower(mantissa):
    """The smaller number's significand moved down by the distance of the exponents; what is lost
    stays as the lowest bit. By distance << (m + 1) | significand."""
    guard = 6 - mantissa
    for index in range(128):
        distance, significand = index >> (mantissa + 1), index & ((2 << mantissa) - 1)
        wide = significand << guard
        lost = wide & ((1 << min(distance, 8)) - 1)
        yield wide >> distance | (lost != 0)


def rounded(mantissa):
    """By sum: the nearest code (ties to even), counted from the larger number's exponent, as if
    exponents had no end. Plus BIAS."""
    yield 0  # not read
    for total in range(1, 256):
        exponent = total.bit_length() - 7
        unit = 2.0 ** (exponent + 6 - mantissa)
        yield exponent * (1 << mantissa) + round(total / unit) - (1 << mantissa) + BIAS


def small(mantissa):
    """By such a code plus BIAS: the code of that number where exponents end. Nothing is rounded,
    since sums are whole multiples of the smallest number."""
    one = 1 << mantissa
    for code in range(-BIAS, 64 - BIAS):
        exponent, fraction = divmod(code, one)
        yield code if exponent > 0 else int((one + fraction) * 2.0 ** (exponent - 1))


def widened(mantissa):
    """By code: the same number as bfloat16, the upper half of an fp32."""
    one, bias = 1 << mantissa, 7 if mantissa == 3 else 15
    for code in range(128):
        exponent, fraction = divmod(code, one)
        value = (one + fraction if exponent else fraction) * 2.0 ** (max(exponent, 1) - bias - mantissa)
        if mantissa == 2 and code >= 0x7c:
            value = math.inf if code == 0x7c else math.nan
        if code == 0x7f:
            value = math.nan
        yield struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def field(name, values):
    lines = [f"        {', '.join(map(str, values[at:at + 16]))}," for at in range(0, len(values), 16)]
    return f"    .{name} = {{\n" + "\n".join(lines) + "\n    },\n"


with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("/* What vbmi.h looks up; made by tables.py, which says what each table means. */\n")
    out.write("#pragma once\n\n#include <stdint.h>\n\n")
    out.write("struct tt_fp8_tables {\n    int mantissa; /* its bits */\n")
    out.write("    uint8_t lower[128], rounded[256], small[64], wide_low[128], wide_high[128];\n};\n\n")
    out.write(f"enum {{ TT_FP8_BIAS = {BIAS} }};\n")
    for type_name, mantissa in TYPES.items():
        out.write(f"\nstatic const struct tt_fp8_tables tt_fp8_{type_name} = {{\n")
        out.write(f"    .mantissa = {mantissa},\n")
        out.write(field("lower", list(lower(mantissa))))
        out.write(field("rounded", list(rounded(mantissa))))
        out.write(field("small", list(small(mantissa))))
        out.write(field("wide_low", [number & 255 for number in widened(mantissa)]))
        out.write(field("wide_high", [number >> 8 for number in widened(mantissa)]))
        out.write("};\n")
