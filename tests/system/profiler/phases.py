#!/usr/bin/env python3
"""KernelPhase events of version 7: each channel of a collective on symmetric windows has initial_sync, compute and
final_sync, one behind the other from its start to its end; others have none. usage: phases.py TUTTI PLUGIN"""
import collections, glob, json, os, subprocess, sys, tempfile

tutti, plugin = sys.argv[1:3]
NAMES = ["initial_sync", "compute", "final_sync"]


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def run(*args, **more):
    """All lines of both ranks' files."""
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"NCCL_ALGO": "direct", "NCCL_PROFILER_PLUGIN": plugin, "TUTTI_TRACE_FILE": f"{folder}/%p.jsonl"} | more
        done = subprocess.run([tutti, "perf", "--ranks", "2", "-b", "1M", "-e", "1M", "-n", "3", "-w", "1", *args, "allreduce"],
                              env=env, capture_output=True, text=True, timeout=100)
        check(done.returncode == 0, done.stdout + done.stderr)
        return [[json.loads(line) for line in open(name)] for name in sorted(glob.glob(f"{folder}/*.jsonl"))], done.stdout


def look(lines):
    """How many KernelCh have phases."""
    starts = {line["id"]: line for line in lines if line["t"] == "start"}
    stopped = {line["id"]: line["value"] for line in lines if line["t"] == "state" and line["state"] in ("KernelChStop", "KernelPhaseStop")}
    ended = {line["id"]: line["ts"] for line in lines if line["t"] == "stop"}
    phases = collections.defaultdict(list)
    for line in starts.values():
        if line["type"] == "KernelPhase":
            phases[line["parent"]].append(line)
    for parent, mine in phases.items():
        kernel = starts[parent]
        mine.sort(key=lambda line: (line["timer"], NAMES.index(line["phase"])))  # files are thread by thread
        check(kernel["type"] == "KernelCh" and [p["phase"] for p in mine] == NAMES, f"{kernel}: {mine}")
        check({p["channel"] for p in mine} == {kernel["channel"]}, f"channel of {mine}")
        times = [kernel["timer"]] + [stopped[p["id"]] for p in mine]
        check([p["timer"] for p in mine] == times[:3] and times[3] == stopped[parent] and times == sorted(times), f"times: {times}")
        check(ended[mine[2]["id"]] <= ended[parent], "a phase ends before its channel")
        check(starts[kernel["parent"]]["count"] == 1 << 18, "only the call on windows")
    return len(phases)


for args in (), ("-G", "2"):
    files, _ = run("-R", "2", *args)
    check(len(files) == 2, f"{len(files)} files")
    found = [look(lines) for lines in files]
    check(min(found) >= 4 and found[0] == found[1], f"{args}: channels with phases: {found}")
for args, more in (("-R", "0"), {}), (("-R", "1"), {}), (("-R", "2"), {"NCCL_ALGO": "ring"}):
    files, _ = run(*args, **more)
    check(not any(map(look, files)), f"{args}, {more}: no symmetric kernel")
files, out = run("-R", "2", NCCL_PROFILE_EVENT_MASK="0x8000", NCCL_DEBUG="INFO")
check("Enabled: KernelCh KernelPhase" in out and min(map(look, files)) >= 4, f"phases alone: {out}")
