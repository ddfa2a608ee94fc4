#!/usr/bin/env python3
"""What scripts/summary.py makes of logs: steady, unsteady and failed tests, reports of sanitizers, too many failures.
usage: summary.py SUMMARY"""
import json, os, subprocess, sys, tempfile

SUMMARY = sys.argv[1]
failures = 0


def run(folder, logs, *options):
    for name, log in logs.items():
        with open(os.path.join(folder, name), "w") as file:
            for test, result, words in log:
                file.write(json.dumps({"name": f"tutti:unit / {test}", "result": result, "stderr": words}) + "\n")
    paths = [os.path.join(folder, name) for name in logs]
    return subprocess.run([sys.executable, SUMMARY, *options, *paths], capture_output=True, text=True)


def check(what, good, r):
    global failures
    if not good:
        failures += 1
        print(f"FAILED: {what}: status {r.returncode}\n{r.stdout}{r.stderr}")


def main(folder):
    first = [("a", "OK", ""), ("b", "FAIL", "late"), ("c", "TIMEOUT", "")]
    r = run(folder, {"x.json": first}, "--to-repeat")
    check("both deserve a second run", r.stdout.split() == ["b", "c"], r)
    r = run(folder, {"x.json": first})
    check("no second run", r.returncode == 1 and r.stdout.endswith("\n1 passed, 2 failed\n"), r)
    r = run(folder, {"x.json": first, "x.again.json": [("b", "OK", ""), ("c", "FAIL", "")]})
    check("one is unsteady", r.returncode == 1 and "unsteady, passed when run again: x: tutti:unit / b" in r.stdout and
          "    late\n" in r.stdout and r.stdout.endswith("\n2 passed, 1 failed\n"), r)
    r = run(folder, {"x.json": first, "x.again.json": [("b", "OK", ""), ("c", "OK", "")]})
    check("both are unsteady", r.returncode == 0 and r.stdout.endswith("\n3 passed, 0 failed\n"), r)
    r = run(folder, {"y.json": [("a", "FAIL", "WARNING: ThreadSanitizer: data race"), ("b", "FAIL", "x.c:1: runtime error: y")]},
            "--to-repeat")
    check("reports are not forgiven", r.stdout == "", r)
    race = "WARNING: ThreadSanitizer: data race\n    #0 f ../src/a.c:1\nSUMMARY: ThreadSanitizer: data race "
    own, ours = race + "../tests/unit/a.c:39 in step", race + "../src/a.c:1 in f"
    r = run(folder, {"y.json": [("a", "FAIL", own), ("b", "FAIL", ours), ("c", "FAIL", own + "\n" + ours),
                                ("d", "FAIL", own + "\nx.c:1: runtime error: y")]}, "--to-repeat")
    check("a test's own race is repeated", r.stdout.split() == ["a"], r)
    r = run(folder, {"y.json": [("a", "FAIL", own)], "y.again.json": [("a", "FAIL", own)]})
    check("a test's own race that stays", r.returncode == 1, r)
    r = run(folder, {"y.json": [(str(i), "FAIL", "") for i in range(5)]}, "--to-repeat")
    check("five are too many", r.stdout == "", r)
    r = run(folder, {"y.json": [("a", "SKIP", "")]})
    check("nothing ran", r.returncode == 1 and r.stdout.endswith("\n0 passed, 0 failed, 1 skipped\n"), r)


with tempfile.TemporaryDirectory() as folder:
    main(folder)
sys.exit(failures > 0)
