#!/usr/bin/env python3
"""`bench/profiler-study --quick` writes what it says: sound traces of the three programs with their pages and a figure for
each operation, transport and plugin, never how large one is; intervals are those of order statistics. usage: test_profiler_study.py COMMAND BUILD"""
import contextlib, importlib.machinery, importlib.util, io, json, subprocess, sys, tempfile

command, build = sys.argv[1:3]
PLUGINS = ["none", "null", "empty", "tutti", "lines", "off"]
WHAT = ["collective", "message", "load", "init", "split", "destroy"]


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([command, "--quick", "--json", "--build", build, "--output", folder, "--bytes", "4096",
                           "--plugin", f"off={build}/plugins/libnccl-profiler-tutti.so,NCCL_PROFILE_EVENT_MASK=0"], stdout=subprocess.PIPE, text=True,
                          timeout=280)
    check(done.returncode == 0, f"it ends with {done.returncode}")
    answer = json.loads(done.stdout)
    found = {row["name"]: row for row in answer["examples"]}
    # the groups' world has no operation, so six communicators are left
    check({name: row["communicators"] for name, row in found.items()} == {"devices": 1, "threads": 1, "groups": 7}, f"programs: {found}")
    for row in found.values():
        check(row["sound"] and row["events"] > 100, f"trace: {row}")
        with open(row["page"]) as page, open(row["chrome"]) as chrome:
            check("<html" in page.read(1000).lower(), row["page"])
            check(len(json.load(chrome)["traceEvents"]) > row["events"], row["chrome"])
    keys = {(row["transport"], row["what"], row["plugin"]) for row in answer["overhead"]}
    check(keys == {(t, w, p) for t in ("memory", "sockets") for w in WHAT for p in PLUGINS}, f"rows: {sorted(keys)}")
    for row in answer["overhead"]:
        check(row["usec"]["median"] > 0 and ("adds" in row) == (row["plugin"] != "none"), f"row: {row}")
        check(row["usec"]["interval"] is None, f"one round has no interval: {row}")
    check(answer["lost"] == 0 and answer["plugins"] == PLUGINS, f"{answer['lost']} lost of {answer['plugins']}")

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("profiler_study", command)
study = importlib.util.module_from_spec(importlib.util.spec_from_loader("profiler_study", loader))
loader.exec_module(study)
# the last column from tables of the sign test: with 31 values the 10th and the 22nd, with 5 there is none
for n, median, interval in ((5, 2, None), (6, 2.5, [0, 5]), (8, 3.5, [0, 7]), (9, 4, [1, 7]), (31, 15, [9, 21])):
    found = study.estimate(list(range(n))[::-1])
    check(found == {"median": median, "interval": interval}, f"{n} values: {found}")

text = io.StringIO()
with contextlib.redirect_stdout(text):
    study.tell(answer)
rows = [line.split("|")[1:-1] for line in text.getvalue().splitlines() if line.startswith("|")]
check(len(rows) == 2 + 2 * len(WHAT) and {len(row) for row in rows} == {1 + len(PLUGINS)}, f"table: {text.getvalue()}")
