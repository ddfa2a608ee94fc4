#!/usr/bin/env python3
"""Profilers that trust the host in all that the interface promises, with state in their contexts and looks at parents:
whole lives, replayed graphs and communicators that end inside their groups, with pools that are empty at times, without
handles for parents, and with masks that another thread changes. usage: outsiders.py FOLDER WATCHED REPLAYED ENDED"""
import os, subprocess, sys, tempfile

folder, watched, replayed, ended = sys.argv[1:5]
# of mask 36863, by version: the bits of the types that must come over sockets
TYPES = {"2": [0, 1, 2, 3, 4, 5], "4": [0, 1, 2, 3, 4, 5, 6, 7], "7": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}


def run(version, style, *program):
    """How many events of each type came."""
    with tempfile.TemporaryDirectory() as where:
        env = os.environ | {"NCCL_PROFILER_PLUGIN": f"{folder}/libnccl-profiler_outsider_v{version}.so", "OUTSIDER_STYLE": style,
                            "OUTSIDER_MASK": str(36863), "OUTSIDER_LOG": f"{where}/log", "NCCL_P2P_DISABLE": "1",
                            "NCCL_SHM_DISABLE": "1"}
        done = subprocess.run(program, env=env, capture_output=True, text=True, errors="replace", timeout=100)
        if done.returncode:
            sys.exit(f"version {version}, style '{style}', {program}: {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
        lines = [list(map(int, line.split()[1:])) for line in open(f"{where}/log")]
        return [sum(column) for column in zip(*lines)]


for version, types in TYPES.items():
    for style in ("", "deaf", "pool", "masks", "pool masks"):
        counts = run(version, style, watched, "threads", "2")
        if style in ("", "deaf") and not all(counts[bit] for bit in types):
            sys.exit(f"version {version}: types did not come: {counts}")
    run(version, "", watched, "processes", "2")
    run(version, "pool masks", replayed, "threads", "2")
for style in ("", "pool"):
    run("7", style, ended)
