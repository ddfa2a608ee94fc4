#!/usr/bin/env python3
"""Chrome's JSON as the profiler plugin writes it during a run: a sound file for each process with all events of its lines,
none across another on its lane, and arrows that join the ranks of two processes once their files are put together.
usage: trace_chrome.py TUTTI PLUGIN TOUR"""
import glob, json, os, subprocess, sys, tempfile
from collections import Counter, defaultdict

tutti, plugin, tour = sys.argv[1:4]


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def run(folder, *args, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_TRACE", "NCCL_"))}
    env |= {"TUTTI_TRACE_OUTPUTS": "jsonl,chrome", "TUTTI_PROFILE_DIR": folder} | more
    done = subprocess.run(args, env=env, timeout=100, capture_output=True, text=True)
    check(done.returncode == 0, f"{args} ends with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def events(path):
    found = json.load(open(path))
    check([e["name"] for e in found if e["ph"] == "M"][::len(found)] == ["process_name"] and found[-1]["name"] == "end", found[-1])
    return found


def nested(found):
    """Events of one lane lie beside or within each other; whole nanoseconds, so that sums are exact."""
    lanes = defaultdict(list)
    for e in found:
        if e["ph"] == "X":
            begin = round(e["ts"] * 1000)
            lanes[e["pid"], e["tid"]].append((begin, -begin - round(e["dur"] * 1000)))
    for lane, spans in lanes.items():
        ends = []
        for begin, end in sorted(spans):
            while ends and ends[-1] <= begin + 8:  # what a double keeps of a time of this year
                ends.pop()
            check(not ends or -end <= ends[-1] + 8, f"lane {lane}: {begin} to {-end} lies across what ends at {ends[-1:]}")
            ends.append(-end)
    named = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}
    check(set(lanes) <= named, "lanes without a name")


def types(folder):
    """Every type of event, from two threads: as many as there are lines that end one."""
    run(folder, tour, plugin, "100", TUTTI_TRACE_CHROME_FILE=f"{folder}/own-%p.json")
    path, = glob.glob(f"{folder}/own-*.json")
    found = events(path)
    lines = [json.loads(line) for line in open(glob.glob(f"{folder}/*.jsonl")[0])]
    ended = {line["id"] for line in lines if line["t"] == "stop"}
    want = Counter(line["type"] for line in lines if line["t"] == "start" and line["id"] in ended)
    check(Counter(e["cat"] for e in found if e["ph"] == "X") == want and len(want) == 16, want)
    check(any("after us" in name for e in found if e["ph"] == "X" for name in e["args"]), "states")
    nested(found)


def arrows(folder):
    run(folder, tutti, "perf", "--ranks", "2", "-t", "2", "-b", "64K", "-e", "64K", "-n", "5", "allreduce", "sendrecv", NCCL_PROFILER_PLUGIN=plugin)
    paths = glob.glob(f"{folder}/tutti-trace.*.chrome.json")
    check(len(paths) == 2, paths)
    found = [e for path in paths for e in events(path)]
    check(len({e["pid"] for e in found}) == 2, "two processes")
    nested(found)
    begins = {e["id"]: e for e in found if e["ph"] == "s"}
    ends = {e["id"]: e for e in found if e["ph"] == "f"}
    both = set(begins) & set(ends)
    check(len(begins) == sum(e["ph"] == "s" for e in found) and len(both) > 40, f"{len(begins)} and {len(ends)} arrows, {len(both)} with both ends")
    check(len(both) >= .9 * max(len(begins), len(ends)), f"{len(both)} of {len(begins)} and {len(ends)}")
    check(all(begins[k]["ts"] <= ends[k]["ts"] for k in both), "an arrow goes back")
    check(any(begins[k]["pid"] != ends[k]["pid"] for k in both), "none between the processes")
    ranks = {e["args"]["rank"] for e in found if e["ph"] == "X" and e["cat"] == "Coll"}
    check(ranks == {0, 1, 2, 3}, ranks)


def pipe(folder):
    """A pipe without a reader ends the output, not the job."""
    path = f"{folder}/pipe"
    os.mkfifo(path)
    run(folder, tour, plugin, "10", TUTTI_TRACE_OUTPUTS="chrome,inspector", TUTTI_TRACE_CHROME_FILE=path, TUTTI_TRACE_INSPECTOR_FILE=path)


for case in (types, arrows, pipe):
    with tempfile.TemporaryDirectory() as folder:
        case(folder)
    print(case.__name__, "passed")
