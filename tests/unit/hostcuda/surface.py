#!/usr/bin/env python3
"""Runs the suites of one face, adds up what they did with each function of surface.txt, and prints the rows passed per
tier. Fails when a suite fails, or a row has no call that must work, none that must be refused, or one that went wrong.

usage: surface.py ROWS NAME PROGRAM[,ARGUMENT...] ..."""
import os
import subprocess
import sys
import tempfile

rows_file, name, programs = sys.argv[1], sys.argv[2], sys.argv[3:]
rows = [line.split() for line in open(rows_file) if line.strip() and not line.startswith("#")]
here = os.path.dirname(os.path.abspath(__file__))
shared = os.environ.get("TUTTI_SHARED") or os.path.join(here, "../../../../shared")
table = os.path.join(shared, "abi/cudart_surface.tsv")
bad = []
if os.path.exists(table):
    lines = [line.rstrip("\n").split("\t") for line in open(table) if not line.startswith("#")]
    if [(r[0], r[4]) for r in lines[1:]] != [(r[0], r[1]) for r in rows]:
        bad.append(f"{rows_file} is not {table}'s list of names and tiers")

counts = {}
with tempfile.TemporaryDirectory() as folder:
    result = os.path.join(folder, "rows")
    for program in programs:
        done = subprocess.run(program.split(","), env={**os.environ, "CONFORM_ROWS": result}, timeout=120)
        if done.returncode:
            bad.append(f"{program}: exit status {done.returncode}")
    for line in open(result) if os.path.exists(result) else []:
        row, *numbers = line.split()
        counts[row] = [a + int(b) for a, b in zip(counts.get(row, [0, 0, 0]), numbers)]

passed, total = {}, {}
for row, tier, *only in rows:
    does, refuses, fails = counts.get(row, [0, 0, 0])
    missing = [] if does or only == ["801"] else ["must do"]
    missing += [] if refuses or only == ["-"] else ["must refuse"]
    total[tier] = total.get(tier, 0) + 1
    passed[tier] = passed.get(tier, 0) + (not missing and not fails)
    if missing:
        bad.append(f"{row} (tier {tier}): no check of what it {' and '.join(missing)}")
    if fails:
        bad.append(f"{row} (tier {tier}): {fails} checks failed")
print("\n".join(bad))
for tier in sorted(total):
    print(f"{name} tier {tier}: {passed[tier]} of {total[tier]} rows passed")
sys.exit(1 if bad else 0)
