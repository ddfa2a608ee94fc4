#!/usr/bin/env python3
"""Every command has a manual page that names all of its options, its environment, files and exit status, and one page has
every variable; a formatter takes them without a complaint.
usage: man.py TUTTI FOLDER"""
import json
import os
import re
import shutil
import subprocess
import sys

tutti, folder = sys.argv[1:]
failures = 0


def said(*command):
    return subprocess.run([tutti, *command, "--help"], check=True, capture_output=True, text=True).stdout


def check(holds, sentence):
    global failures
    if not holds:
        failures += 1
        print("wrong:", sentence)


def formatted(path):
    if shutil.which("groff"):
        told = subprocess.run(["groff", "-man", "-ww", "-z", path], capture_output=True, text=True)
        check(told.returncode == 0 and not told.stderr, f"{path}: {told.stderr}")


commands = re.findall(r"^  (\w+) ", said().split("commands:")[1].split("examples:")[0], re.M)
check(len(commands) >= 6, f"commands: {commands}")
for command in ["", *commands]:
    path = os.path.join(folder, f"tutti-{command}.1" if command else "tutti.1")
    check(os.path.exists(path), f"no page {path}")
    if not os.path.exists(path):
        continue
    with open(path, encoding="utf-8") as file:
        page = file.read()
    for option in set(re.findall(r"--[a-z][a-z-]*", said(command) if command else said())):
        check(option.replace("-", "\\-") in page, f"{path} lacks {option}")
    check(".SH EXAMPLES" in page or "example" in page, f"{path} has no example")
    for section in ("ENVIRONMENT", "FILES", "EXIT STATUS"):
        check(f".SH {section}\n" in page, f"{path} lacks {section}")
    told = ".SH JSON\n" in page
    check(not command or told == ("--json" in said(command)), f"{path}: a section JSON where there is --json")
    formatted(path)
path = os.path.join(folder, "tutti-environment.7")
with open(path, encoding="utf-8") as file:
    page = file.read()
names = [row["name"] for row in json.loads(subprocess.run([tutti, "env", "--json"], check=True, capture_output=True, text=True).stdout)]
check(not [name for name in names if name not in page], f"{path} lacks {[name for name in names if name not in page]}")
formatted(path)
sys.exit(failures != 0)
