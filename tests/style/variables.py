#!/usr/bin/env python3
"""Variables that the table calls obeyed are read somewhere, and meanings are sentences: `tutti env` must not promise what
nothing does, nor say it in shorthand."""
import os, re, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def main():
    named = set()
    for folder in ("src", "hostcuda", "tools", "plugins"):
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith((".c", ".h", ".cpp")):
                    text = open(os.path.join(where, name), errors="replace").read()
                    named.update(re.findall(r'"((?:NCCL|TUTTI|CUDA|NVTX)_[A-Z0-9_]+)"', text))
    wrong = []
    for line in open(os.path.join(ROOT, "src/base/param/variables.tsv")):
        row = line.rstrip("\n").split("\t")
        if not line.startswith("#") and len(row) > 6 and row[6] == "yes" and row[0] not in named:
            wrong.append(f"{row[0]} is called obeyed, and nothing reads it")
        if not line.startswith("#") and len(row) > 7 and not re.fullmatch(r"[^a-z].*\.", row[7]):
            wrong.append(f"the meaning of {row[0]} is no sentence")
    for what in wrong:
        print(f"  src/base/param/variables.tsv: {what}")
    print(f"variables: {len(named)} read, {len(wrong)} to mend")
    sys.exit(bool(wrong))


main()
