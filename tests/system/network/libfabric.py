#!/usr/bin/env python3
"""Collectives over libfabric equal those over sockets, bit by bit: over TCP two ranks to 16 MiB, four to 1 MiB and
twelve, whose connections are many, with 8 bytes. usage: libfabric.py TUTTI SUMS PLUGIN PROVIDER"""
import os, re, subprocess, sys

tutti, sums, plugin, provider = sys.argv[1:]
clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_"))}
CASES = ((2, 16 << 20), (4, 1 << 20), (12, 8)) if provider != "shm" else ((2, 1 << 20),)


def run(ranks, most, **env):
    common = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo", "TUTTI_DEVICES": str(ranks)}
    done = subprocess.run([tutti, "run", "-n", str(ranks), sums, str(most)], env=clean | common | env, text=True,
                          capture_output=True, timeout=240)
    if done.returncode:
        sys.exit(f"{ranks} ranks, {env}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    lines = done.stdout.splitlines()
    results = sorted(re.sub(r".*?(\w+ of \d+ bytes at)", r"\1", line) for line in lines if " bytes at rank " in line)
    return results, done.stdout + done.stderr


for ranks, most in CASES:
    ours, log = run(ranks, most, NCCL_NET_PLUGIN=plugin, TUTTI_OFI_PROVIDER=provider, NCCL_DEBUG="INFO")
    if "via NET/Libfabric/0" not in log or "via NET/Socket" in log:
        sys.exit(f"{ranks} ranks do not talk over libfabric:\n{log[-4000:]}")
    theirs, _ = run(ranks, most)
    if not ours or ours != theirs:
        sys.exit("\n".join([f"{ranks} ranks: over libfabric, then over sockets:"] + sorted(set(ours) ^ set(theirs))))
    print(f"{ranks} ranks: {len(ours)} results are equal")
