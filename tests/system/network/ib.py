#!/usr/bin/env python3
"""Collectives over the built-in verbs network equal those over sockets, bit by bit; the adapters are not there: a verbs
library of the tests moves the bytes between processes. usage: ib.py TUTTI SUMS LIBRARY MACHINE"""
import os, re, subprocess, sys, tempfile

tutti, sums, library, machine = sys.argv[1:]
clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_"))}
ONE, TWO = "fake_0/ib/0000:3b:00.0", "fake_0/eth/0000:3b:00.0,fake_1/eth/0000:3b:00.1"
APART = "fake_0/ib/0000:3b:00.0,fake_1/ib/0000:5e:00.0"
CASES = (  # ranks, most bytes, adapters, what the log must have, settings
    (2, 4 << 20, ONE, "via NET/IB/0", {}),
    (4, 1 << 18, APART, "via NET/IB/1", {"NCCL_IB_QPS_PER_CONNECTION": "2", "NCCL_IB_SPLIT_DATA_ON_QPS": "1"}),
    (3, 1 << 20, TWO, "goes on without queue pairs of fake_1",
     {"NCCL_IB_RESILIENCY_PORT_FAILOVER": "1", "FAKE_IB_FAULTS": "cut=fake_1:30"}),
)


# Which network is taken, and how what goes wrong is said: settings, does it end well, what the log must have.
CHOICES = (
    ({}, True, "via NET/IB/0"),  # before sockets, without being asked for
    ({"NCCL_TOPO_FILE": machine}, True, "via NET/IB/0"),  # the file's NICs are the adapters
    ({"NCCL_IB_DISABLE": "1"}, True, "via NET/Socket/0"),
    ({"NCCL_IB_HCA": "^fake"}, True, "via NET/Socket/0"),
    ({"NCCL_NET": "Socket"}, True, "via NET/Socket/0"),
    ({"NCCL_NET": "IB", "FAKE_IB_FAULTS": "port-down=fake_0"}, False, "no network is called IB"),
    ({"FAKE_IB_FAULTS": "cut=fake_0:30"}, False, "completion with error: retries exceeded"),
    ({"FAKE_IB_FAULTS": "fatal=fake_0:30"}, False, "told of a fatal event"),
    ({"FAKE_IB_FAULTS": "no-memory=1"}, False, "ulimit -l"),
)


def start(ranks, most, **env):
    common = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo", "TUTTI_DEVICES": str(ranks)}
    return subprocess.run([tutti, "run", "-n", str(ranks), sums, str(most)], env=clean | common | env, text=True,
                          capture_output=True, timeout=240)


def run(ranks, most, **env):
    done = start(ranks, most, **env)
    if done.returncode:
        sys.exit(f"{ranks} ranks, {env}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    lines = done.stdout.splitlines()
    results = sorted(re.sub(r".*?(\w+ of \d+ bytes at)", r"\1", line) for line in lines if " bytes at rank " in line)
    return results, done.stdout + done.stderr


for ranks, most, adapters, sign, settings in CASES:
    with tempfile.TemporaryDirectory(prefix="tutti-ib-") as folder:
        ours, log = run(ranks, most, NCCL_NET="IB", NCCL_IBVERBS_LIB=library, FAKE_IB_DIR=folder, FAKE_IB_DEVICES=adapters,
                        NCCL_DEBUG="INFO", **settings)
    if sign not in log or "via NET/Socket" in log:
        sys.exit(f"{ranks} ranks: the log has no '{sign}', or has sockets:\n{log[-6000:]}")
    theirs, _ = run(ranks, most)
    if not ours or ours != theirs:
        sys.exit("\n".join([f"{ranks} ranks: over verbs, then over sockets:"] + sorted(set(ours) ^ set(theirs))))
    print(f"{ranks} ranks: {len(ours)} results are equal")
for settings, well, sign in CHOICES:
    with tempfile.TemporaryDirectory(prefix="tutti-ib-") as folder:
        dump = os.path.join(folder, "machine.xml")
        done = start(2, 1 << 16, NCCL_IBVERBS_LIB=library, FAKE_IB_DIR=folder, FAKE_IB_DEVICES=ONE, NCCL_DEBUG="INFO",
                     NCCL_TOPO_DUMP_FILE=dump, **settings)
        log = done.stdout + done.stderr
        if well != (done.returncode == 0) or sign not in log:
            sys.exit(f"{settings}: exit status {done.returncode}, the log has to say '{sign}':\n{log[-6000:]}")
        if "NCCL_TOPO_FILE" in settings and 'name="fake_0"' not in open(dump).read():
            sys.exit(f"{settings}: the adapter is no NIC of the machine:\n{open(dump).read()}")
        print(f"{settings}: {sign}")
