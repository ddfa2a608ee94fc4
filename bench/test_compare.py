#!/usr/bin/env python3
"""The tables of `bench/compare` hold times against each other that were taken with the cores as near as at their best:
rows taken while a cache line took longer are marked, and count only where there are no others. usage: test_compare.py COMMAND"""
import contextlib, importlib.machinery, importlib.util, io, sys

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("compare", sys.argv[1])
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
loader.exec_module(compare)


def row(peer, nbytes, usec, line_nsec):
    return {"op": "pingpong", "type": "float32", "bytes": nbytes, "ranks": 2, "peer": peer, "median_usec": usec, "busbw_gbps": 1.0,
            "line_nsec": line_nsec}


raw = [
    # of two launches the near one counts, although it is the slower; of peers those measured as ours was
    row("tutti", 8, 9, 310), row("tutti", 8, 10, 60), row("mpich", 8, 8, 300), row("gloo", 8, 20, 75), row("bound", 8, 5, 62),
    # a peer that was measured far alone has no ratio
    row("tutti", 64, 10, 61), row("mpich", 64, 5, 320),
    # all far: alike again
    row("tutti", 1024, 30, 310), row("mpich", 1024, 60, 300), row("bound", 1024, 15, 61),
]
compare.mark_far(raw)
text = io.StringIO()
with contextlib.redirect_stdout(text):
    best = compare.choose(raw)
    compare.table(best, [2])
    compare.summary(best, [2])
found = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.getvalue().splitlines() if line.startswith("|")][2:]
wanted = [
    ["8", "10.000", "1.00", "20.000", "gloo", "2.00", "5.000", "2.00"],
    ["64", "10.000", "1.00", "~5.000", "mpich", "-", "-", "-"],
    ["1024", "~30.000", "1.00", "~60.000", "mpich", "2.00", "15.000", "-"],
]
if found != wanted or "mean of best peer / tutti 2.00, ahead at 2 of 2 points" not in text.getvalue():
    sys.exit(f"wrong: {text.getvalue()}")
