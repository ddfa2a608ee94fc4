#!/usr/bin/env python3
"""Adds up meson's test logs: names what failed, with its last words, or was skipped; closes with "N passed, N failed,
N skipped".

Exit status 1 when something failed, when nothing ran, or when root's tests of namespaces were skipped: root may make
namespaces nearly everywhere, so a skip there hides a broken test.
"""
import json, os, sys

LAST_LINES = 40  # of a failed test: a log that is cut off above still tells what went wrong

passed, failed, skipped = 0, [], []
for path in sys.argv[1:]:
    label = os.path.basename(path)[:-5]
    for line in open(path):
        row = json.loads(line)
        name = f"{label}: {row['name']}"
        if row["result"] in ("OK", "EXPECTEDFAIL"):
            passed += 1
        elif row["result"] == "SKIP":
            skipped.append((name, (row.get("stdout") or "").strip().splitlines()[-1:]))
        else:
            said = "\n".join((row.get(out) or "").strip() for out in ("stdout", "stderr")).strip()
            failed.append((name, f"{row['result']}, status {row.get('returncode')}", said.splitlines()[-LAST_LINES:]))
for name, why in skipped:
    print(f"skipped: {name} {why[0] if why else ''}")
for name, result, said in failed:
    print(f"failed: {name} ({result})")
    print("".join(f"    {line}\n" for line in said), end="")
bad = bool(failed) or not passed
if os.geteuid() == 0 and os.environ.get("CI"):
    hidden = [name for name, why in skipped if "namespaces" in name and why and "not allowed" in why[0]]
    for name in hidden:
        print(f"not acceptable as root: {name} was skipped")
    bad = bad or bool(hidden)
print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped" if skipped else f"{passed} passed, {len(failed)} failed")
sys.exit(bad)
