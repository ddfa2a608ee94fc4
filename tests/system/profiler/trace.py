#!/usr/bin/env python3
"""Our profiler plugin under a whole program over sockets: every line of its files is JSON, starts and stops balance,
parents are there, and the counts of the last line are those of the file. With room for 16 records per thread the same,
with what is lost. usage: trace.py PROGRAM PLUGIN TUTTI MODE"""
import collections, glob, json, os, subprocess, sys, tempfile

program, plugin, tutti, mode = sys.argv[1:5]
RANKS = 2
PARENTS = {"Group": {None}, "GroupApi": {None}, "ProxyCtrl": {None}, "CollApi": {"GroupApi"}, "P2pApi": {"GroupApi"},
           "KernelLaunch": {"GroupApi"}, "Coll": {"CollApi"}, "P2p": {"P2pApi"}, "ProxyOp": {"Coll", "P2p"},
           "KernelCh": {"Coll", "P2p"}, "ProxyStep": {"ProxyOp"}, "NetPlugin": {"ProxyStep"}}


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def run(folder, files=None, **more):
    for old in glob.glob(f"{folder}/*"):
        os.unlink(old)
    env = os.environ | {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_PROFILER_PLUGIN": plugin,
                        "TUTTI_TRACE_FILE": f"{folder}/%h.%p.jsonl"} | more
    done = subprocess.run([program, mode, str(RANKS)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=200, text=True)
    check(done.returncode == 0, f"the program ends with {done.returncode}: {done.stdout[-2000:]}")
    files = sorted(glob.glob(f"{files or folder}/*.jsonl"))
    check(len(files) == (RANKS if mode == "processes" else 1), f"a file for each process: {files}")
    return [[json.loads(line) for line in open(name)] for name in files]


def look(lines, whole):
    """The events of a file by their id."""
    kinds = collections.Counter(line["t"] for line in lines)
    check(lines[0]["t"] == "head" and lines[0]["api"] == 7 and lines[-1]["t"] == "end", "first and last line")
    end = lines[-1]
    check((end["starts"], end["states"], end["stops"]) == (kinds["start"], kinds["state"], kinds["stop"]), f"{end}, {kinds}")
    starts = {line["id"]: line for line in lines if line["t"] == "start"}
    stops = collections.Counter(line["id"] for line in lines if line["t"] == "stop")
    check(len(starts) == kinds["start"] and all(n == 1 for n in stops.values()), "an event begins and ends once")
    check(set(stops) <= set(starts) and end["open"] == 0, "what ends has begun")
    check(len(starts) - len(stops) == end["lost_stops"], "what does not end is counted")
    check({line["c"] for line in starts.values()} <= {line["c"] for line in lines if line["t"] == "comm"}, "communicators")
    threads = {line["tid"] for line in lines if line["t"] == "thread"}
    check({line["tid"] for line in starts.values()} <= threads, "threads")
    lost = end["lost_starts"] + end["lost_states"] + end["lost_stops"]
    check(lost == 0 or not whole, f"nothing is lost: {end}")
    for event in starts.values():
        above = starts.get(event["parent"])
        check((above["type"] if above else None) in PARENTS[event["type"]] or not whole, f"parent of {event}")
    return starts, lost


with tempfile.TemporaryDirectory() as folder:
    seen = collections.Counter()
    ranks = set()
    for lines in run(folder, TUTTI_TRACE_RING="1048576"):
        starts, _ = look(lines, True)
        seen.update(event["type"] for event in starts.values())
        ranks |= {line["rank"] for line in lines if line["t"] == "comm"}
    check(set(PARENTS) - {"NetPlugin"} <= set(seen), f"all types of events: {seen}")
    check(ranks == set(range(RANKS)), f"ranks: {ranks}")
    # all is sound but that rank 1 does not answer what rank 0 begins before both abort
    merged = subprocess.run([tutti, "trace", "check", "--json", folder], text=True, capture_output=True, timeout=100)
    verdict = json.loads(merged.stdout)
    check({finding["kind"] for finding in verdict["findings"]} == {"absent"} and not merged.stderr, f"tutti trace: {verdict}")
    check(all("rank 1 " in finding["text"] for finding in verdict["findings"]), f"tutti trace: {verdict}")
    summary = json.loads(subprocess.check_output([tutti, "trace", "summary", "--json", folder], text=True, timeout=100))
    found = [row for comm in summary["communicators"] for row in comm["operations"]]
    check(summary["events"] == sum(seen.values()) and {row["function"] for row in found} >= {"AllReduce", "Broadcast", "Send"},
          f"summary: {summary}")
    print(f"{sum(seen.values())} events, {dict(seen)}")
    whole = collections.Counter()
    for lines in run(folder, TUTTI_TRACE_RING="1048576"):
        whole.update((event["func"], event["seq"] % 3 == 0) for event in look(lines, True)[0].values() if event["type"] == "Coll")
    sampled = collections.Counter()
    for lines in run(folder, TUTTI_TRACE_RING="1048576", TUTTI_TRACE_SAMPLE="3"):
        starts, _ = look(lines, False)
        sampled.update((event["func"], event["seq"] % 3 == 0) for event in starts.values() if event["type"] == "Coll")
        kept = {event["type"] for event in starts.values()}
        check(kept <= {"Coll", "P2p", "KernelCh", "ProxyOp", "ProxyStep", "NetPlugin"}, f"types in a sample: {kept}")
        check({e["type"] for e in starts.values() if not e["parent"]} <= {"Coll", "P2p"}, "what is below has a parent")
        check(lines[0]["sample"] == 3 and lines[-1]["passed"] > 0, f"a sample says so: {lines[-1]}")
    check(sampled == collections.Counter({key: n for key, n in whole.items() if key[1]}), f"{sampled} of {whole}")
    for lines in run(folder, TUTTI_TRACE_RING="16"):
        print(f"with 16 places {look(lines, False)[1]} records are lost")
    for lines in run(folder, NCCL_PROFILE_EVENT_MASK="0"):
        check(not look(lines, True)[0], "mask 0")
    run(folder, TUTTI_TRACE_FILE=f"{folder}/made/%h.%p.jsonl", files=f"{folder}/made")
    if mode == "processes":
        for strict in (False, True):
            done = subprocess.run([tutti, "perf", "--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "allreduce"], text=True, timeout=200, capture_output=True,
                                  env=os.environ | {"NCCL_PROFILER_PLUGIN": plugin, "TUTTI_TRACE_FILE": f"{folder}/one.jsonl"} | ({"TUTTI_STRICT": "1"} if strict else {}))
            check(bool(done.returncode) == strict and "another process writes it: its name needs %p" in done.stderr, f"one file for all: {done.stderr}")
            if strict:
                continue # the job ends while the one that has the file still begins
            lines = [json.loads(line) for line in open(f"{folder}/one.jsonl")]
            check(lines[0]["t"] == "head" and sum(line["t"] == "head" for line in lines) == 1, "the file of one process")
    checked = subprocess.run([tutti, "plugin", "check", plugin, "--kind", "profiler", "-n", "100"], text=True, timeout=200,
                             env=os.environ | {"TUTTI_TRACE_FILE": f"{folder}/check.%p"}, capture_output=True)
    check(checked.returncode == 0 and "verdict    sound" in checked.stdout, f"the check: {checked.stdout}{checked.stderr}")
