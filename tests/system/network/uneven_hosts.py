#!/usr/bin/env python3
"""Hosts with different numbers of ranks, told apart by NCCL_HOSTID: their hierarchical programs give right
results for all roots, and are what long calls are made of; what has none is said. usage: uneven_hosts.py TUTTI PERF"""
import os, re, subprocess, sys

tutti, perf = sys.argv[1:]
clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_"))}
PLACE = 'left=$RANK; host=0; for size in $SIZES; do [ $left -lt $size ] && break; left=$((left - size)); host=$((host + 1)); done\n' \
    'NCCL_HOSTID=host$host exec "$@"'


def run(sizes, *args, status=0, **env):
    common = {"SIZES": " ".join(map(str, sizes)), "NCCL_SOCKET_IFNAME": "lo", "TUTTI_DEVICES": str(sum(sizes))}
    done = subprocess.run([tutti, "run", "-n", str(sum(sizes)), "sh", "-c", PLACE, "sh", perf, "-n", "1", "-w", "0", *args],
                          env=clean | common | env, text=True, capture_output=True, timeout=120)
    log = done.stdout + done.stderr
    if (done.returncode == 0) != (status == 0) or (not status and "Out of bounds values : 0 OK" not in log):
        sys.exit(f"hosts of {sizes}, {args}, {env}: exit status {done.returncode}\n{log[-6000:]}")
    return log


HAVE = ("allreduce", "broadcast", "reduce", "allgather", "reducescatter")
NAMED = {"NCCL_ALGO": ";".join(op + ":Hierarchical" for op in HAVE)}
for sizes, op in (((3, 1), "avg"), ((1, 2, 2), "sum"), ((2, 4), "sum")):
    run(sizes, "-b", "8", "-e", "600K", "-f", "300", "-o", op, "-r", "all", *HAVE, **NAMED)
SHORT = ("allreduce", "allgather", "reducescatter", "alltoall")
SORTED = {"NCCL_ALGO": ";".join(name + ":Hierarchical" for name in SHORT)}
for sizes, op in (((3, 1), "avg"), ((1, 2, 2), "sum"), ((2, 5), "sum")):
    run(sizes, "-b", "8", "-e", "600K", "-f", "300", "-o", op, *SHORT, NCCL_PROTO="LL", **SORTED)
run((2, 3), "-b", "8", "-e", "600K", "-f", "300", "alltoall", NCCL_PROTO="Simple", **SORTED)
log = run((4, 3), "-b", "448", "-e", "448", "alltoall", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING")
if not re.search(r"AlltoAll: 448 Bytes -> Algo HIERARCHICAL proto LL", log):
    sys.exit(f"short blocks were not sorted inside their hosts\n{log[-6000:]}")
log = run((4, 2), "-b", "4M", "-e", "4M", "allreduce", "allgather", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING")
for name in "AllReduce", "AllGather":
    if not re.search(name + r": \d{7} Bytes -> Algo HIERARCHICAL", log):
        sys.exit(f"another algorithm was chosen for {name}\n{log[-6000:]}")
log = run((1, 2), "-b", "600K", "-e", "600K", "allgather", status=1, NCCL_ALGO="allgather:NVLSTree")
if "no algorithm or protocol is left for AllGather" not in log:
    sys.exit(f"nobody said what is left\n{log[-6000:]}")
