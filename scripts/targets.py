#!/usr/bin/env python3
"""Prints what ninja has to build for the tests of one suite, a target a line.
usage: targets.py BUILD_FOLDER SUITE
"""
import json, os, sys


def main(folder, suite):
    def introspected(what):
        with open(os.path.join(folder, "meson-info", f"intro-{what}.json")) as file:
            return json.load(file)

    targets = introspected("targets")
    files_of = {target["id"]: target["filename"] for target in targets}
    made = {file: target["filename"] for target in targets for file in target["filename"]}
    wanted = set()
    for test in introspected("tests"):
        if suite not in (name.split(":")[-1] for name in test["suite"]):
            continue
        for target in test["depends"]:
            wanted.update(files_of[target])
        for word in test["cmd"]:
            wanted.update(made.get(word, ()))
    for file in sorted(wanted):
        print(os.path.relpath(file, os.path.realpath(folder)))


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
