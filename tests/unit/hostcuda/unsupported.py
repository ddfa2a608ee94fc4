#!/usr/bin/env python3
"""Compares the functions that docs/hostcuda.md says are not supported with those that the libraries' lists mark 801.

usage: unsupported.py DOCUMENT LIST..."""
import re
import sys

document, lists = sys.argv[1], sys.argv[2:]
marked = set()
for path in lists:
    for line in open(path):
        words = line.split()
        if words[1:] == ["801"]:
            marked.add(re.sub(r"_(ptsz|ptds)$", "", words[0]))
section = open(document).read().split("## Answered 801", 1)[-1].split("\n## ", 1)[0]
written = set(re.findall(r"`(_*cu\w+)`", section))
for name in sorted(marked - written):
    print(f"{document}: {name} answers 801 and is not listed")
for name in sorted(written - marked):
    print(f"{document}: {name} is listed and does not answer 801")
print(f"{len(marked)} functions answer 801")
sys.exit(marked != written or not marked)
