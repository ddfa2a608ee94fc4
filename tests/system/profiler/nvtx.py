#!/usr/bin/env python3
"""nvtx.py TUTTI PLUGINS: a tool that injects itself by NVTX sees each of NCCL's functions as a range, and one that
cannot be used changes nothing."""
import collections, os, re, subprocess, sys, tempfile

TUTTI, PLUGINS = sys.argv[1:3]
TOOL = f"{PLUGINS}/libnvtx_record.so"


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def job(*args, **env):
    """Ranges of each process: (depth, name, payload or None), and the job's words."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NVTX_INJECTION64_PATH": TOOL, "NVTX_RECORD_FILE": f"{folder}/ranges"} | env
        done = subprocess.run([TUTTI, "perf", "--ranks", "2", *args], env=environment, text=True, capture_output=True, timeout=100)
        check(done.returncode == 0, f"{args} {env}: {done.returncode} {done.stdout} {done.stderr}")
        texts = [open(f"{folder}/{name}").read() for name in os.listdir(folder)]
    if "NVTX_RECORD_FIELDS" in env:
        return [fields(text) for text in texts if ranges(text)], done.stdout + done.stderr
    return [ranges(text) for text in texts], done.stdout + done.stderr


def ranges(text):
    found, depth = [], collections.Counter()
    lines = text.splitlines()
    if lines:
        check(lines[0] == "create NCCL", f"the domain: {lines[:3]}")
    for line in lines[1:]:
        if line.startswith("fields|"):
            continue
        words = line.split()
        check(words[2] == "NCCL", line)
        if words[0] == "push":
            check(words[6:] == ["3", "48"], f"version and size: {line}")
            found.append((depth[words[1]], words[3], int(words[5]) if words[4] == "2" else None))
        depth[words[1]] += 1 if words[0] == "push" else -1
        check(depth[words[1]] >= 0, f"ends before it begins: {line}")
    check(not any(depth.values()), f"ranges without an end: {depth}")
    return found


def fields(text):
    """Of each function what its calls were shown with."""
    found = collections.defaultdict(list)
    for line in text.splitlines():
        if line.startswith("fields|"):
            found[line.split("|")[1]].append(dict(field.split("=") for field in line.split("|")[2:]))
    return found


def with_a_tool():
    processes, _ = job("-b", "64", "-e", "64", "-n", "20", "-w", "5", "-c", "0", "allreduce")
    check(len(processes) == 2, f"a file for each process: {len(processes)}")
    for own in processes:
        calls = [r for r in own if r[1] == "ncclAllReduce" and r[2] == 64]
        check(len(calls) >= 25, f"each call, also those like an earlier one: {len(calls)}")
        names = collections.Counter(name for _, name, _ in own)
        check(any(n.startswith("ncclCommInit") for n in names) and names["ncclCommDestroy"] >= 1, f"lives: {names}")
        check({p for _, n, p in own if n.startswith("ncclCommInitRank")} <= {0, 1}, "the rank of an init")
    inits = [own for own in processes if any(n == "ncclGetUniqueId" for _, n, _ in own)]
    check(len(inits) >= 1, "who makes the id")


def shown():
    """To a tool that speaks the payload extension."""
    names = {"comm": "NCCL communicator ID", "bytes": "Message size [bytes]", "op": "Reduction operation"}
    processes, _ = job("-b", "64", "-e", "64", "-n", "2", "-o", "max", "-r", "1", "allreduce", "allgather", "reduce", "broadcast",
                       "sendrecv", NVTX_RECORD_FIELDS="1")
    check(len(processes) == 2, f"a file for each process: {len(processes)}")
    ends = [own.pop("end") for own in processes]
    comms = {call.pop(names["comm"]) for own in processes for calls in own.values() for call in calls}
    check(len(comms) == 1 and comms != {"0"}, f"one communicator: {comms}")
    check({end.pop(names["comm"]) for own in ends for end in own} == comms, f"its begin and its ends: {ends}")
    lives = [{"No. of ranks": "2", "Rank": str(rank), "CUDA device": str(rank)} for rank in range(2)]
    # init, which takes the thread's device, finalize and destroy
    check(all(len(own) == 3 and own[0] | {"CUDA device": own[2]["CUDA device"]} == own[2] and own[1] == {} for own in ends) and
          sorted((own[2] for own in ends), key=lambda end: end["Rank"]) == lives, ends)
    for own in processes:
        check({names["bytes"]: "64", names["op"]: "Max"} in own["ncclAllReduce"], own)
        check(own["ncclAllGather"] and all(set(call) == {names["bytes"]} for call in own["ncclAllGather"]), own)
        check({names["bytes"]: "64", "Root": "1", names["op"]: "Max"} in own["ncclReduce"], own)
        check({names["bytes"]: "64", "Root": "1"} in own["ncclBroadcast"], own)
        check(any(call == {names["bytes"]: "64", "Peer rank": "0"} or call == {names["bytes"]: "64", "Peer rank": "1"}
                  for call in own["ncclSend"]), own)


def groups():
    processes, _ = job("-b", "64", "-e", "64", "-n", "20", "-w", "5", "-c", "0", "sendrecv")
    for own in processes:
        names = collections.Counter(name for _, name, _ in own)
        measured = collections.Counter(name for _, name, payload in own if payload == 64)
        check(measured["ncclSend"] >= 25 and measured["ncclSend"] == measured["ncclRecv"], f"calls of groups that repeat: {measured}")
        check(names["ncclGroupStart"] == names["ncclGroupEnd"] >= 25, f"groups: {names}")


def without():
    for env in ({"NCCL_NVTX_DISABLE": "1"}, {"NVTX_INJECTION64_PATH": ""}):
        check(job("-b", "8", "-e", "8", "allreduce", **env)[0] == [], f"ranges with {env}")
    for env, says in (({"NVTX_INJECTION64_PATH": "/nowhere.so"}, "NVTX: /nowhere.so: cannot open"),
                      ({"NVTX_RECORD_FAIL": "init"}, "does not want to be used"),
                      ({"NVTX_RECORD_FAIL": "push"}, "ranges are not wanted"),
                      ({"NVTX_INJECTION64_PATH": f"{PLUGINS}/libnccl-profiler_tag.so"}, "has no InitializeInjectionNvtx2")):
        found, said = job("-b", "8", "-e", "8", "allreduce", NCCL_DEBUG="INFO", **env)
        check(says in said and not any(found), f"{env}: {re.findall('.*NVTX.*', said)} {found}")


with_a_tool()
shown()
groups()
without()
print("nvtx: ok")
