#!/usr/bin/env python3
"""docs/json.md names each field of what commands print with --json.
usage: json_fields.py TUTTI MACHINE OTHER_MACHINE ALGORITHM PLUGIN"""
import json
import os
import re
import subprocess
import sys

TUTTI, MACHINE, OTHER, ALGORITHM, PLUGIN = sys.argv[1:]
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "json.md")
COMMANDS = [
    "run -n 2 true", "perf --ranks 2 -b 64 -e 64 --iters 1 allreduce", f"topo show {MACHINE}", f"topo explain {MACHINE}",
    f"topo search {MACHINE}", f"topo diff {MACHINE} {OTHER}", f"topo check {MACHINE}", f"topo export {MACHINE}", "program list",
    "program show --algo ring --op allreduce --ranks 2", f"program show {ALGORITHM}", f"program diff {ALGORITHM} {ALGORITHM}",
    "program search --op allgather --topology ring --ranks 4", f"verify {ALGORITHM}", f"plugin check {PLUGIN} -n 100",
    "doctor --preflight", "env NCCL_DEBUG", "tune --show", "version"]
# Objects whose keys are data: by function, algorithm and protocol.
DATA = {"model", "max_threads", "thread_thresholds", "choices"}
# Attributes of the file, and what only other machines, programs and jobs have.
FILE = {"arch", "vendor", "model", "numa", "busid", "cc", "gdr", "local_cpu", "pci_id", "port", "guid", "coll", "max_conn",
        "local_gpu_rank", "host", "heads", "chunk_size", "tree_max_chunk_size", "per_rank"}
failures = 0


def check(holds, sentence):
    global failures
    if not holds:
        failures += 1
        print("wrong:", sentence)


def keys(value, found):
    for one in value if isinstance(value, list) else []:
        keys(one, found)
    for key, one in value.items() if isinstance(value, dict) else []:
        found.add(key)
        if key not in DATA or key == "model" and isinstance(one, str):
            keys(one, found)
    return found


with open(PAGE, encoding="utf-8") as file:
    sections = {part.split("\n", 1)[0]: part for part in file.read().split("\n## tutti ")[1:]}
top = subprocess.run([TUTTI, "--help"], capture_output=True, text=True, check=True).stdout
for command in re.findall(r"^  (\w+) ", top.split("commands:")[1].split("examples:")[0], re.M):
    usage = subprocess.run([TUTTI, command, "--help"], capture_output=True, text=True, check=True).stdout
    check(("--json" in usage) == (command in sections), f"{command}: --json and docs/json.md")
for line in COMMANDS:
    words = line.split()
    done = subprocess.run([TUTTI, words[0], *([words[1]] if words[0] in ("topo", "program", "plugin") else []), "--json",
                           *words[2 if words[0] in ("topo", "program", "plugin") else 1:]], capture_output=True, text=True, timeout=120)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        if words[:2] != ["program", "search"]:  # without a solver
            check(False, f"{line}: {done.stdout[:300]}{done.stderr[:300]}")
        continue
    named = set(re.findall(r"`([a-z_0-9]+)`", sections[words[0]]))
    lacks = keys(told, set()) - named - (FILE if words[0] == "topo" else set())
    check(not lacks, f"{line}: docs/json.md lacks {sorted(lacks)}")
sys.exit(failures != 0)
