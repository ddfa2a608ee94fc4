#!/usr/bin/env python3
"""AllReduce, AllGather and ReduceScatter over a network that reduces: hosts are told apart by NCCL_HOSTID, plugins of every version of the collnet
ABI make the sums, and what fails at init leaves the other network. usage: collnet.py TUTTI PERF PLUGINS"""
import os, re, subprocess, sys

tutti, perf, plugins = sys.argv[1:]
clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_"))}
WRAP = ["sh", "-c", 'NCCL_HOSTID=h$((RANK / PER)) exec "$@"', "sh", perf]


def run(version, ranks, per_host, args, fails=False, **env):
    common = {"NCCL_NET_PLUGIN": f"{plugins}/libnccl-collnet_outsider_v{version}.so", "NCCL_COLLNET_ENABLE": "1",
              "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "PER": str(per_host), "NCCL_SOCKET_IFNAME": "lo",
              "TUTTI_DEVICES": str(ranks)}
    done = subprocess.run([tutti, "run", "-n", str(ranks)] + WRAP + args, env=clean | common | env, text=True,
                          capture_output=True, timeout=120)
    log = done.stdout + done.stderr
    if (done.returncode != 0) != fails or "the host is wrong" in log:
        sys.exit(f"version {version}, {ranks} ranks, {env}: exit status {done.returncode}\n{log[-6000:]}")
    if not fails and "Out of bounds values : 0 OK" not in log:
        sys.exit(f"version {version}, {ranks} ranks, {env}: wrong values\n{log[-6000:]}")
    return log


def must_say(log, *texts):
    for text in texts:
        if not re.search(text, log):
            sys.exit(f"nobody said: {text}\n{log[-6000:]}")


def sums(log):
    return sum(int(n) for n in re.findall(r"made (\d+) sums", log))


SIZES = ["-b", "8", "-e", "600K", "-f", "300", "-n", "1", "-w", "0"]
for version in range(3, 13):
    for shape in ("CollNetDirect", "CollNetChain")[version % 2:][:1] if version < 12 else ("CollNetDirect", "CollNetChain"):
        log = run(version, 4, 2, SIZES + ["-d", "int32", "allreduce"], NCCL_ALGO=f"allreduce:{shape}")
        must_say(log, rf"NET/Plugin: Loaded collnet plugin Summer \(v{version}\)", "Initialized COLLNET plugin Summer",
                 "rank 3 Connected CollNet", r"CollNet 00/0 : \d \[send\] via COLLNET/Summer/0", "2 collnet channels")
        if not sums(log):
            sys.exit(f"version {version}, {shape}: the network made no sum\n{log[-6000:]}")
        print(f"version {version}, {shape}: {sums(log)} sums")

# Blocks: where the plugin has iallgather and ireducescatter, else by another way. Three hosts of two ranks, or of one.
def blocks(log):
    return sum(int(n) for n in re.findall(r"(\d+) of them in blocks", log))


for version, ranks, per_host, name, makes in ((12, 6, 2, "allgather", True), (12, 6, 2, "reducescatter", True),
                                              (9, 3, 1, "allgather", True), (8, 4, 2, "reducescatter", True),
                                              (10, 2, 1, "allgather", False), (7, 2, 1, "reducescatter", False)):
    log = run(version, ranks, per_host, SIZES + ["-d", "int32", name],
              NCCL_ALGO=f"{name}:CollNetDirect" + ("" if makes else ",Ring"))
    print(f"version {version}, {ranks} ranks, {name}: {blocks(log)} sums in blocks")
    if (blocks(log) > 0) != makes:
        sys.exit(log[-6000:])
log = run(12, 3, 1, ["-b", "100K", "-e", "100K", "-n", "1", "-w", "0", "-d", "float", "-o", "all", "reducescatter"],
          NCCL_ALGO="reducescatter:CollNetDirect,Ring")
must_say(log, r"[1-9]\d* of them in blocks")
for version, name, lacks in ((10, "allgather", "iallgather"), (11, "reducescatter", "ireducescatter")):
    must_say(run(version, 2, 1, SIZES + [name], fails=True, NCCL_ALGO=f"{name}:CollNetDirect"),
             f"CollNet's network has no {lacks}")

# Three hosts; types and operators that the network does not take go another way; graphs; averages are sums on the way.
for shape in ("CollNetDirect", "CollNetChain"):
    which = ["-d", "all"] if shape == "CollNetChain" else ["-d", "float", "-o", "all", "-G", "1"]
    log = run(12, 6, 2, ["-b", "300K", "-e", "300K", "-n", "1", "-w", "0"] + which + ["allreduce"],
              NCCL_ALGO=f"allreduce:{shape},Ring")
    print(f"{shape}, three hosts, {which[:2]}: {sums(log)} sums")
    if not sums(log):
        sys.exit(log[-6000:])

# One rank on each host, and as the library chooses by itself.
log = run(11, 3, 1, SIZES + ["allreduce"], NCCL_ALGO="allreduce:CollNetDirect")
must_say(log, "1 collnet channels", r"made [1-9]\d* sums")
log = run(8, 4, 2, ["-b", "4M", "-e", "4M", "-n", "1", "-w", "0", "allreduce"])
print(f"unnamed, 4 MiB: {sums(log)} sums")

# What is missing at one rank leaves the point-to-point network to all.
FAILS = ({"COLLNET_FAIL": "init"}, "Failed to initialize COLLNET plugin Summer .*init, result 2"), \
    ({"COLLNET_FAIL": "listen"}, "CollNet is off: rank 0: the plugin's listen failed; the point-to-point network is used"), \
    ({"COLLNET_FAIL": "connect", "COLLNET_FAIL_HOST": "1"}, "CollNet is off: rank 2: the plugin's connect failed"), \
    ({"COLLNET_FAIL": "connect-waits", "COLLNET_FAIL_HOST": "1", "TUTTI_INIT_TIMEOUT": "8"}, "the plugin's connect failed"), \
    ({"COLLNET_MOST_BYTES": "1000"}, "maxCollBytes is smaller than a slot"), \
    ({"NCCL_COLLNET_NODE_THRESHOLD": "3"}, "CollNet is off: 2 nodes, NCCL_COLLNET_NODE_THRESHOLD is 3"), \
    ({"NCCL_NET": "Socket"}, "CollNet is off: rank 0: its network does not offer it")
for env, text in FAILS:
    log = run(12, 4, 2, SIZES + ["allreduce"], **env)
    must_say(log, text)
    if "via COLLNET" in log:
        sys.exit(f"{env}: CollNet was used\n{log[-6000:]}")

# Where nothing else is allowed, what CollNet lacks is said.
for more, env, text in ((["-o", "prod"], {}, "CollNet's network does not reduce this type by this operator"),
                        ([], {"NCCL_COLLNET_ENABLE": "0"}, "CollNet needs a network that reduces, NCCL_COLLNET_ENABLE=1")):
    must_say(run(12, 4, 2, SIZES + more + ["allreduce"], fails=True, NCCL_ALGO="allreduce:CollNetDirect", **env), text)

# What fails in a sum ends the communicator at all ranks, by a sentence.
log = run(12, 4, 2, SIZES + ["allreduce"], fails=True, COLLNET_FAIL="test", COLLNET_FAIL_HOST="1",
          NCCL_ALGO="allreduce:CollNetDirect")
must_say(log, r"rank [23]: a sum over COLLNET/Summer failed: result 6")
