#!/usr/bin/env python3
"""Makes from the list of driver functions (name, version of CUDA, symbol, symbol for the per-thread default stream) the
table in which they are found by name.

usage: entries.py LIST SOURCE_OUT"""
import sys

rows = [line.split() for line in open(sys.argv[1]) if line.strip() and not line.startswith("#")]
rows = [row + row[-1:] if len(row) == 3 else row for row in rows]
rows.sort(key=lambda row: (row[0], -int(row[1])))
with open(sys.argv[2], "w") as out:
    out.write('/* Driver functions by name, the newest of a name first. Addresses are all that matters: the types\n'
              ' * are not those of cuda.h. */\n#include "driver/find.h"\n\n#pragma GCC visibility push(default)\n')
    for symbol in sorted({symbol for row in rows for symbol in row[2:]}):
        out.write(f"extern tt_driver_function {symbol};\n")
    out.write("#pragma GCC visibility pop\n\nconst struct tt_driver_entry tt_driver_entries[] = {\n")
    for name, version, legacy, per_thread in rows:
        out.write(f'    {{"{name}", {version}, {legacy}, {per_thread}}},\n')
    out.write("    {0},\n};\n")
