#!/usr/bin/env python3
"""TUTTI_DETERMINISTIC=1: reductions give the same bits over runs, channels, slices, transports and host boundaries.
usage: deterministic.py TUTTI BITS"""
import os, re, subprocess, sys

tutti, bits = sys.argv[1:]
RANKS = 4
clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_"))}
PLACE = 'left=$RANK; host=0; for size in $SIZES; do [ $left -lt $size ] && break; left=$((left - size)); host=$((host + 1)); done\n' \
    'NCCL_HOSTID=host$host exec "$@"'


def results(sizes=(RANKS,), **env):
    common = {"SIZES": " ".join(map(str, sizes)), "NCCL_SOCKET_IFNAME": "lo", "TUTTI_DEVICES": str(RANKS)}
    done = subprocess.run([tutti, "run", "-n", str(RANKS), "sh", "-c", PLACE, "sh", bits], env=clean | common | env, text=True,
                          capture_output=True, timeout=120)
    found = sorted(re.findall(r"rank \d+ call .*", done.stdout))
    if done.returncode or len(found) != RANKS * 45:
        sys.exit(f"hosts of {sizes}, {env}: exit status {done.returncode}, {len(found)} results\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return found


first = results(TUTTI_DETERMINISTIC="1")
for sizes, env in (((4,), {}), ((4,), {"NCCL_MAX_CTAS": "1"}), ((4,), {"NCCL_MIN_CTAS": "4", "NCCL_BUFFSIZE": "65536"}),
                   ((4,), {"NCCL_BUFFSIZE": "1048576"}), ((4,), {"NCCL_SHM_DISABLE": "1", "NCCL_P2P_DISABLE": "1"}), ((2, 2), {}),
                   ((1, 3), {"NCCL_MIN_CTAS": "2"}), ((1, 1, 1, 1), {"NCCL_BUFFSIZE": "131072"})):
    other = results(sizes, TUTTI_DETERMINISTIC="1", **env)
    wrong = [(a, b) for a, b in zip(first, other) if a != b]
    if wrong:
        sys.exit(f"hosts of {sizes}, {env}: {len(wrong)} of {len(first)} results have other bits, such as {wrong[0]}")
if results(NCCL_ALGO="Ring") == first:
    sys.exit("the numbers show no order: a ring gives the same bits")
