#!/usr/bin/env python3
"""A second compiler takes the tree: clang parses every file of the build with the build's own flags, warnings as errors."""
import json, os, re, shlex, style

version = style.need("clang")
# What gcc alone knows; everything else must mean the same to both.
LATER = re.compile(r"-(c|pipe|M\w*|O\w|g\w*|W(?!no-).*|fdiagnostics-color.*)$")


def units():
    """(path, flags) of each C file, once per set of flags: some are compiled at several instruction sets."""
    found = set()
    for row in style.compile_rows():
        words, kept = shlex.split(row["command"]), []
        path = os.path.relpath(os.path.realpath(os.path.join(row["directory"], row["file"])), style.ROOT)
        for before, word in zip(words, words[1:]):
            if before in ("-o", "-MF", "-MQ", "-MT") or LATER.match(word) or word in ("-o", row["file"]):
                continue
            if word.startswith("-I"):
                word = "-I" + os.path.normpath(os.path.join(row["directory"], word[2:]))
            if word.startswith("-"):
                kept.append(word)
        if path.endswith(".c") and path.startswith(style.ALL):  # not what the build itself makes
            found.add((path, tuple(kept)))
    return sorted(found)


rows = style.analyse("clang", units(), lambda unit: ["clang", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                                                     "-Wno-unknown-warning-option", *unit[1], unit[0]], version, lambda unit: unit[0])
findings = [(unit[0], line) for unit, lines in rows for line in lines if re.search(r"\b(warning|error): ", line)]
style.report("clang", f"{len(rows)} units, {len(findings)} findings (limit 0)", findings)
