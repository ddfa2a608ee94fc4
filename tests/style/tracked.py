#!/usr/bin/env python3
"""What git keeps is source: no file of more than 256 KiB, and at the top only the files and folders listed here."""
import os, subprocess, sys, style

MOST_BYTES = 256 * 1024
TOP = {".ci", ".clang-format", ".clang-tidy", ".dockerignore", ".gitignore", "CONTRIBUTING.md", "LICENSE", "README.md", "bench",
       "docs", "examples", "hostcuda", "include", "meson.build", "meson_options.txt", "mkdocs.yml", "packaging", "plugins", "run",
       "scripts", "src", "test", "tests", "tools"}

if not os.path.exists(os.path.join(style.ROOT, ".git")):
    print("tracked: this is no clone of the repository")
    sys.exit(style.SKIP)
style.need("git")
paths = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=style.ROOT, check=True, capture_output=True,
                       text=True).stdout.split("\0")[:-1]
findings = []
for path in paths:
    whole = os.path.join(style.ROOT, path)
    if path.split("/")[0] not in TOP:
        findings.append((path, f"{path}: neither listed in tests/style/tracked.py nor in a folder that is"))
    if os.path.isfile(whole) and os.path.getsize(whole) > MOST_BYTES:
        findings.append((path, f"{path}: {os.path.getsize(whole)} bytes (limit {MOST_BYTES})"))
style.report("tracked", f"{len(paths)} files", findings)
