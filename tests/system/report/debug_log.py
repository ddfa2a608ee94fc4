#!/usr/bin/env python3
"""Lines of the log that people and tools look for: shape, level, subsystem, in each way of running.
usage: debug_log.py TUTTI PROGRAM"""
import glob
import os
import re
import subprocess
import sys
import tempfile

tutti, program = sys.argv[1:3]
failures = 0

PREFIX = r"(\[\d+\] )?[^ :]+:\d+:\d+ \[\d+\] NCCL INFO "
P = r"0x[0-9a-f]+"
WHO = rf"comm {P} rank \d nranks 2 cudaDev (?P<dev>\d) nvmlDev (?P=dev) busId [0-9a-f]+"
FIELDS = {"blocking": 1, "cgaClusterSize": 2, "minCTAs": 3, "maxCTAs": 5, "splitShare": 1, "trafficClass": 7,
          "collnetEnable": 1, "CTAPolicy": 1, "shrinkShare": 1, "nvlsCTAs": 4, "nChannelsPerNetPeer": 2,
          "nvlinkCentricSched": 1, "graphUsageMode": 1, "numRmaCtx": 3, "maxP2pPeers": 2, "graphStreamOrdering": 0,
          "netName": "Socket", "commName": "logged"}

# subsystem, pattern of the text, lines that two ranks print (None: at least one)
DEFAULT = [
    ("BOOTSTRAP", r"Bootstrap ?: Using [^ ]+:[0-9.:a-f]+<0>", None),
    ("INIT", r"cudaDriverVersion \d{5}", None),
    ("INIT", r"NCCL version 2\.32\.3\+cuda\d+\.\d+", None),
    ("INIT", r"Tutti version \d+\.\d+\.\d+", None),
    ("ENV", r"NCCL_COMM_ID set by environment to [0-9.]+:\d+", 2),
    *[("ENV", rf"Comm config {name} set to {value}", 2) for name, value in FIELDS.items()],
    ("INIT", rf"\[Rank \d\] ncclCommInitRankConfig {WHO} commId 0x[0-9a-f]+ - Init START", 2),
    ("INIT", r"ncclTopoGetCpuAffinity: Affinity for GPU \d is [0-9,-]+\. "
             r"\(GPU affinity = [0-9,-]+ ; CPU affinity = [0-9,-]+\)\.", None),
    ("INIT", r"NET/Socket : Using \[0\][^ ]+:[^ ]+<0>.*", None),
    ("INIT", r"Initialized NET plugin Socket", None),
    ("INIT", r"Assigned NET plugin Socket to comm", None),
    ("INIT", r"Using network Socket", None),
    ("INIT", rf"comm {P} rank \d nRanks 2 nNodes 1 localRanks 2 localRank \d MNNVL 0", None),
    ("INIT", r"Channel 00/03 : 0 1", None),  # as many channels as minCTAs says
    ("INIT", r"Trees( \[\d\] -?\d(/-?\d){2}->\d->-?\d)+", None),
    ("INIT", r"Connected all rings, use ring PXN \d GDR \d", None),
    ("INIT", r"Connected all trees", None),
    ("INIT", r"threadThresholds 8/8/64 \| 16/8/64 \| 512 \| 512", None),
    ("INIT", r"3 coll channels, 0 collnet channels, 0 nvls channels, \d+ p2p channels, \d+ p2p channels per peer", None),
    ("INIT", rf"ncclCommInitRankConfig {WHO} commId 0x[0-9a-f]+ - Init COMPLETE", 2),
    ("INIT", r"Init timings - ncclCommInitRankConfig: rank \d nranks 2 total \d+\.\d\d \(kernels \d+\.\d\d, "
             r"alloc \d+\.\d\d, bootstrap \d+\.\d\d, allgathers \d+\.\d\d, topo \d+\.\d\d, graphs \d+\.\d\d, "
             r"connections \d+\.\d\d, rest \d+\.\d\d\)", 2),
    ("BOOTSTRAP", r"Bootstrap timings total \d+\.\d+ \(create \d+\.\d+, send \d+\.\d+, recv \d+\.\d+, "
                  r"ring \d+\.\d+, delay \d+\.\d+\)", None),
    ("INIT", rf"ncclCommSplit {WHO} parent {P} childCount 1 color 4 key \d- Init START", 2),
    ("INIT", rf"ncclCommSplit {WHO} parent {P} childCount 1 color 4 key \d - Init COMPLETE", 2),
]
MORE = [  # not in the default mask
    ("COLL", rf"AllReduce: opCount 0 sendbuff {P} recvbuff {P} count 256 datatype 7 op 0 root 0 comm {P} "
             rf"\[nranks=2\] stream {P}", 2),
    ("COLL", rf"Send: opCount [0-9a-f]+ sendbuff {P} recvbuff \(nil\) count 256 datatype 7 op 0 root \d comm {P} "
             rf"\[nranks=2\] stream {P}", 2),
    ("COLL", rf"Recv: opCount [0-9a-f]+ sendbuff \(nil\) recvbuff {P} count 256 datatype 7 op 0 root \d comm {P} "
             rf"\[nranks=2\] stream {P}", 2),
    ("TUNING", r"AllReduce: 1024 Bytes -> Algo [A-Z0-9]+ proto (LL|LL128|SIMPLE) channel\{Lo\.\.Hi\}=\{\d+\.\.\d+\}", 1),
    ("GRAPH", r"Ring 00 : \d -> \d -> \d", None),
    ("GRAPH", r"Tree 0 : -?\d -> \d -> -?\d/-?\d/-?\d", None),
    ("DESTROY", rf"comm {P} rank \d nranks 2 cudaDev \d busId [0-9a-f]+ - Destroy COMPLETE", 4),
]
CONNECTIONS = [  # environment, by thread, subsystem, pattern
    ({}, False, "P2P", r"Channel 00/\d : \d\[\d\] -> \d\[\d\] via P2P/CUMEM"),
    ({}, True, "P2P", r"Channel 00/\d : \d\[\d\] -> \d\[\d\] via P2P/direct pointer"),
    ({"NCCL_P2P_DISABLE": "1"}, False, "SHM", r"Channel 00 : \d\[\d\] -> \d\[\d\] via SHM/direct"),
    ({"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, False, "NET", "slices of 512 KiB, as no two ranks share memory"),
    ({"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, False, "NET",
     r"Channel 00/\d : \d\[\d\] -> \d\[\d\] \[send\] via NET/Socket/0"),
    ({"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}, False, "NET",
     r"Channel 00/\d : \d\[\d\] -> \d\[\d\] \[receive\] via NET/Socket/0"),
]
CALLS = [
    r"ncclGetUniqueId\(0x[0-9a-f]+\)", r"ncclGroupStart\(\)", r"ncclGroupEnd\(\)",
    rf"ncclCommInitRank\({P}, 2, 0x[0-9a-f]+, \d, \d\)",
    rf"ncclAllReduce\([0-9a-f]+,[0-9a-f]+,256,7,0,0,{P},{P}\)",
    rf"ncclSend\([0-9a-f]+,0,256,7,0,\d,{P},{P}\)",
    rf"ncclRecv\(0,[0-9a-f]+,256,7,0,\d,{P},{P}\)",
    rf"ncclCommSplit\({P}, 4, \d, {P}, \d, 2\)",
]


def run(env, threads=False):
    """Run the program with a clean environment for logs; its output."""
    full = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_"))}
    full.update({"TUTTI_DEVICES": "2", "HOME": "/nonexistent"})
    full.update(env)
    ranks = ["-n", "1", program, "threads"] if threads else ["-n", "2", program]
    done = subprocess.run([tutti, "run", *ranks], env=full, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"exit status {done.returncode} with {env}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def check(holds, sentence):
    global failures
    if not holds:
        failures += 1
        print("wrong:", sentence)


def count(log, pattern, prefix=PREFIX):
    return sum(1 for line in log.splitlines() if re.fullmatch(prefix + pattern, line))


def check_lines(log, rows, name):
    for sub, pattern, wanted in rows:
        found = count(log, pattern)
        check(found == wanted if wanted is not None else found > 0,
              f"{name}: {found} lines like '{pattern}' ({sub}), wanted {wanted if wanted is not None else 'some'}")


def levels():
    for level in (None, "", "NONE"):
        log = run({} if level is None else {"NCCL_DEBUG": level})
        check("NCCL" not in log, f"NCCL_DEBUG={level} prints: {log}")
    log = run({"NCCL_DEBUG": "VERSION"})
    check(re.fullmatch(r"(\[0\] )?NCCL version 2\.32\.3\+cuda\d+\.\d+\n", log) is not None, f"VERSION prints: {log}")
    log = run({"NCCL_DEBUG": "WARN"})
    check(count(log, ".*") == 0 and log.count("NCCL version") == 1, f"WARN prints: {log}")


def subsystems():
    log = run({"NCCL_DEBUG": "INFO"})
    check_lines(log, DEFAULT, "default mask")
    for sub, pattern, _ in MORE:
        check(count(log, pattern) == 0, f"default mask prints '{pattern}' ({sub})")
    log = run({"NCCL_DEBUG": "info", "NCCL_DEBUG_SUBSYS": "ALL"})
    check_lines(log, DEFAULT + MORE, "ALL")
    for sub in sorted({r[0] for r in DEFAULT + MORE}):
        log = run({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": sub})
        check_lines(log, [r for r in DEFAULT + MORE if r[0] == sub], f"only {sub}")
        log = run({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": f"^{sub}"})
        for row_sub, pattern, _ in DEFAULT + MORE:
            shared = re.search("NET|NCCL version|Tutti version|Bootstrap timings", pattern)  # bits of two subsystems
            if row_sub == sub and not shared:
                check(count(log, pattern) == 0, f"^{sub} prints '{pattern}'")


def connections():
    for env, threads, sub, pattern in CONNECTIONS:
        log = run({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT", **env}, threads)
        check(count(log, pattern) > 0, f"{env} threads {threads}: no line '{pattern}'")
        log = run({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": sub, **env}, threads)
        check(count(log, pattern) > 0, f"{env} threads {threads}: no line '{pattern}' in {sub}")


def trace():
    log = run({"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_SUBSYS": "CALL"})
    for pattern in CALLS:
        check(count(log, pattern, r"(\[\d+\] )?[^ :]+:\d+:\d+ NCCL CALL ") > 0, f"no call line '{pattern}'")
    log = run({"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_SUBSYS": "BOOTSTRAP"})
    for func in ("bootstrapRoot", "bootstrapAllGather"):
        pattern = rf"\d+\.\d{{6}} {func}:\d+ NCCL TRACE .*"
        check(count(log, pattern, r"(\[\d+\] )?[^ :]+:\d+:\d+ \[\d+\] ") > 0, f"no trace line of {func}")
    log = run({"NCCL_DEBUG": "TRACE", "NCCL_DEBUG_SUBSYS": "COLL"})
    for pattern in (r"program: \w+ \w+ \w+ of \d+ ranks.*", r"program: thread 0", r"program: +0  (move|reduce|enter|loop).*"):
        check(count(log, rf".*{pattern}", r"") > 0, f"no line '{pattern}' of the program")


def files():
    with tempfile.TemporaryDirectory() as folder:
        run({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": folder + "/log.%h.%p.%%"})
        names = glob.glob(folder + "/*")
        check(len(names) == 2, f"files of two processes: {names}")
        for name in names:
            pid = re.fullmatch(re.escape(folder) + rf"/log\.{re.escape(os.uname().nodename.split('.')[0])}\.(\d+)\.%", name)
            check(pid is not None, f"name of a log file: {name}")
            with open(name, encoding="utf-8") as file:
                text = file.read()
            check(all(f":{pid[1]}:" in line for line in text.splitlines()), f"{name} has lines of another process")
            check(count(text, ".*Init COMPLETE") == 2, f"{name} lacks a line")
        with open(folder + "/nccl.conf", "w", encoding="utf-8") as file:
            file.write("# a comment\nNCCL_DEBUG=INFO\nNCCL_DEBUG_SUBSYS=NET\n")
        log = run({"NCCL_CONF_FILE": folder + "/nccl.conf"})
        check(count(log, "Initialized NET plugin Socket") > 1 and count(log, ".*Init START") == 0, f"configuration file: {log}")
        log = run({"NCCL_CONF_FILE": folder + "/nccl.conf", "NCCL_DEBUG_SUBSYS": "INIT"})
        check(count(log, ".*Init START") == 4, "the environment wins over the configuration file")


def strange_words():
    log = run({"NCCL_DEBUG": "WARN", "NCCL_P2P_DISABEL": "1", "TUTTI_WACTHDOG": "4", "TUTTI_DEVICE_MEMORY": "much"})
    for name, near, times in (("NCCL_P2P_DISABEL", "NCCL_P2P_DISABLE", 1), ("TUTTI_WACTHDOG", "TUTTI_WATCHDOG", 1),
                              ("TUTTI_DEVICE_MEMORY", "bytes with K, M, G", 2)):
        lines = [line for line in log.splitlines() if name in line]
        check(len(lines) == times and all(near in line and "NCCL WARN" in line for line in lines),
              f"{name} is to be named {times} times (names by the host's first process), with {near}: {lines}")
    log = run({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NOSUCH,COLL"})
    check(log.count("NOSUCH") == 2 and count(log, MORE[0][1]) == 2, "an unknown subsystem is named and skipped")


for part in (levels, subsystems, connections, trace, files, strange_words):
    part()
print(f"debug-log: {failures} wrong")
sys.exit(1 if failures else 0)
