#!/usr/bin/env python3
"""Makes from the list of a library's symbols its version script and the functions that only say they are not
supported. A line is a symbol, and "801" behind it when there is no function for it in the sources.

usage: stubs.py LIST NODE SCRIPT_OUT SOURCE_OUT     (NODE "-": no version node)"""
import sys

listed, node, script, source = sys.argv[1:]
rows = [line.split() for line in open(listed) if line.strip() and not line.startswith("#")]
with open(script, "w") as out:
    names = "".join(f"    {row[0]};\n" for row in rows)
    out.write(f"{'' if node == '-' else node + ' '}{{\nglobal:\n{names}local:\n    *;\n}};\n")
with open(source, "w") as out:
    keep = "tuttiHostUnsupported(name)"
    if node != "-":  # the runtime keeps its last error
        keep = f"tuttiHostErrorSet({keep})"
    missing = [row[0] for row in rows if row[1:] == ["801"]]
    out.write('/* Symbols without a function: each names itself once and answers 801. */\n'
              '#include "device/host/host.h"\n#include "device/host/host_face.h"\n\n'
              'static inline int unsupported(const char *name)\n{\n'
              f'    return {keep};\n}}\n')
    for name in missing:
        out.write(f'\n__attribute__((visibility("default"))) int {name}(void);\n'
                  f'int {name}(void)\n{{\n    return unsupported("{name}");\n}}\n')
