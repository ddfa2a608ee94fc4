#!/usr/bin/env python3
"""What an instruction means is said once: nothing beside the stepper follows operands to ranks and chunks. Those who build,
check, print or translate a block read its operands as text, and refs.c asks whether an instruction posts slots at all."""
import glob, os, re, sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
READERS = {"block.h", "step.c", "build.c", "build.h", "check.c", "print.c", "refs.c", "turn.c", "msccl_export.c"}
OPERANDS = re.compile(r"tt_program_operands\(|[.>]operands\b|\bpeer_number\b|\bpeer_coef\b|\bchunk_by\b|\bchunk_coef\b")


def main():
    files = [f for folder in ("src", "plugins", "tools") for ending in ("c", "h")
             for f in glob.glob(os.path.join(ROOT, folder, "**", "*." + ending), recursive=True)]
    wrong = []
    for path in files:
        inside = os.path.relpath(path, ROOT)
        if inside.startswith("src/program/") and (os.path.basename(path) in READERS or "/gen/" in inside or "/import/" in inside):
            continue
        for number, line in enumerate(open(path, errors="replace"), 1):
            if OPERANDS.search(line):
                wrong.append(f"{inside}:{number}: {line.strip()}")
    print(f"lines that read operands beside the stepper: {len(wrong)} in {len(files)} files, limit 0")
    print("\n".join(wrong))
    return 1 if wrong or not files else 0


sys.exit(main())
