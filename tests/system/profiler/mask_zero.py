#!/usr/bin/env python3
"""A profiler with mask 0 costs a look at the mask: every row of hot-path takes the instructions that it takes without
one, but a few per call, no locked one more, and no event is emitted. With a mask an AllReduce, a Send with a
Recv, and a group, use the work again that was bound for the one before. usage: mask_zero.py HOT_PATH PLUGIN WATCHING_PLUGIN"""
import os, re, subprocess, sys, tempfile

program, plugin, watching = sys.argv[1:4]
# of 8 bytes, of which a plugin hears all; 2570 where a known call is looked at, 7700 for messages without a flat list,
# 9900 for 4 launched one by one
MOST_WATCHED = {"all-reduce": 2400, "send-and-recv": 6000, "group-of-4": 8900}
FEW = 4  # instructions per call, and for what is around it twice as many
CALLS = {"all-reduce": 1, "replay": 1, "group-of-4": 4, "group-of-64": 64, "send-and-recv": 2, "all-to-all": 4}


def count(**env):
    done = subprocess.run([program], env=os.environ | env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=200)
    if done.returncode == 77:
        sys.exit(77)
    rows = re.findall(r"hot-path: (\S+): (\d+) instructions, (\d+) locked", done.stdout)
    if done.returncode or len(rows) != len(CALLS):
        sys.exit(f"wrong: hot-path ends with {done.returncode}: {done.stdout}")
    return {name: (int(instructions), int(locked)) for name, instructions, locked in rows}


with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "events")
    plain = count(NCCL_PROFILER_PLUGIN="none")
    watched = count(NCCL_PROFILER_PLUGIN=plugin, PROFILER_MASK="0", PROFILER_LOG=log)
    lines = open(log).read().splitlines()
    if not lines or any('"call":"start"' in line for line in lines):
        sys.exit("wrong: the plugin was not there, or was told of events")
for name, calls in CALLS.items():
    print(f"{name}: {plain[name]} without, {watched[name]} with a profiler of mask 0")
    if watched[name][0] > plain[name][0] + FEW * (calls + 2) or watched[name][1] > plain[name][1]:
        sys.exit(f"wrong: {name}: {watched[name]} instructions and locked ones, not {plain[name]}")

# the program itself refuses so many
for name, most in MOST_WATCHED.items():
    done = subprocess.run([program, name], env=os.environ | {"NCCL_PROFILER_PLUGIN": watching}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=200)
    count = re.search(f"hot-path: {name}: (\\d+) instructions", done.stdout)
    print(done.stdout)
    if not count or not plain[name][0] + 500 < int(count[1]) < most:
        sys.exit(f"wrong: with a mask: {done.stdout}")
