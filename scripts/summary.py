#!/usr/bin/env python3
"""Adds up meson's test logs: names what failed, with its last words, or was skipped; closes with "N passed, N failed,
N skipped".
usage: summary.py LOG.json...             LOG.again.json holds the second runs of tests that failed in LOG.json
       summary.py --to-repeat LOG.json    the tests that deserve a second run, one name a line

A test that fails among many and passes alone is called unsteady: named, with its last words, and counted as passed.
What a sanitizer reported is never forgiven, nor are more than MOST_REPEATED failures in one log. One exception: a data
race of which ThreadSanitizer's summary names a place in tests/ is the test's own, and repeated like any other failure.

Exit status 1 when something failed, when nothing ran, or when root's tests of namespaces were skipped: root may make
namespaces nearly everywhere, so a skip there hides a broken test.
"""
import json, os, re, sys

LAST_LINES = 40  # of a failed test: a log that is cut off above still tells what went wrong
MOST_REPEATED = 4
REPORTS = ("Sanitizer", "runtime error:")
OWN_RACE = re.compile(r"SUMMARY: ThreadSanitizer: data race (\.\./)*tests/\S+ in ")


def rows(path):
    with open(path) as log:
        return [json.loads(line) for line in log]


def good(row):
    return row["result"] in ("OK", "EXPECTEDFAIL")


def said(row):
    return "\n".join((row.get(out) or "").strip() for out in ("stdout", "stderr")).strip()


def is_reported(words):
    """Did a sanitizer find something else than a test's own data races?"""
    found = [line.strip() for line in words.splitlines() if line.strip().startswith("SUMMARY: ")]
    if found and all(OWN_RACE.match(line) for line in found):
        return "runtime error:" in words
    return any(word in words for word in REPORTS)


def to_repeat(log):
    bad = [row for row in log if not good(row) and row["result"] != "SKIP"]
    if len(bad) > MOST_REPEATED:
        return []
    return [row["name"].split(" / ")[-1] for row in bad if not is_reported(said(row))]


def main(paths):
    passed, failed, skipped, unsteady = 0, [], [], []
    for path in paths:
        if path.endswith(".again.json"):
            continue
        label = os.path.basename(path)[:-5]
        log, again = rows(path), path[:-5] + ".again.json"
        second = {row["name"]: row for row in rows(again)} if os.path.exists(again) else {}
        for row in log:
            name = f"{label}: {row['name']}"
            if good(row):
                passed += 1
            elif row["result"] == "SKIP":
                skipped.append((name, (row.get("stdout") or "").strip().splitlines()[-1:]))
            else:
                words = (name, f"{row['result']}, status {row.get('returncode')}", said(row).splitlines()[-LAST_LINES:])
                repeated = row["name"] in second and good(second[row["name"]])
                (unsteady if repeated else failed).append(words)
    for name, why in skipped:
        print(f"skipped: {name} {why[0] if why else ''}")
    for word, rest in (("unsteady, passed when run again", unsteady), ("failed", failed)):
        for name, result, lines in rest:
            print(f"{word}: {name} ({result})")
            print("".join(f"    {line}\n" for line in lines), end="")
    passed += len(unsteady)
    bad = bool(failed) or not passed
    if os.geteuid() == 0 and os.environ.get("CI"):
        hidden = [name for name, why in skipped if "namespaces" in name and why and "not allowed" in why[0]]
        for name in hidden:
            print(f"not acceptable as root: {name} was skipped")
        bad = bad or bool(hidden)
    counts = f"{passed} passed, {len(failed)} failed"
    print(f"{counts}, {len(skipped)} skipped" if skipped else counts)
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["--to-repeat"]:
        print("".join(name + "\n" for name in to_repeat(rows(sys.argv[2]))), end="")
    else:
        sys.exit(main(sys.argv[1:]))
