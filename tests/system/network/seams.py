#!/usr/bin/env python3
"""The three seams under a whole program over sockets only: strangers' network, tuner and profiler do what they are
asked, and the profiler's events have the right parents, order and ends. usage: seams.py KIND PROGRAM PLUGINS MODE"""
import collections, json, os, re, socket, subprocess, sys, tempfile

kind, program, plugins, mode = sys.argv[1:5]
RANKS = 2
NAMES = {1: "Group", 2: "Coll", 4: "P2p", 8: "ProxyOp", 16: "ProxyStep", 32: "ProxyCtrl", 64: "KernelCh",
         128: "NetPlugin", 256: "GroupApi", 512: "CollApi", 1024: "P2pApi", 2048: "KernelLaunch"}
PARENTS = {"Group": {None}, "GroupApi": {None}, "ProxyCtrl": {None}, "CollApi": {"GroupApi"}, "P2pApi": {"GroupApi"},
           "KernelLaunch": {"GroupApi"}, "Coll": {"CollApi"}, "P2p": {"P2pApi"}, "ProxyOp": {"Coll", "P2p"},
           "KernelCh": {"Coll", "P2p"}, "ProxyStep": {"ProxyOp"}, "NetPlugin": {"ProxyStep"}}
SEND_STATES, RECV_STATES = [8, 20, 9], [10, 11, 12]
EXCHANGES = {"AlltoAll", "AllToAll", "Gather", "Scatter", 6}  # 6: what version 1 has for them
API = {"GroupApi", "CollApi", "P2pApi", "KernelLaunch"}


class Version:
    """What profilers of a version see: until 4, Group is the parent of calls, and some states are missing."""

    def __init__(self, number):
        self.number = number
        self.plugin = f"{plugins}/libnccl-profiler_json{'' if number == 6 else f'_v{number}'}.so"
        gone = (API if number < 5 else set()) | ({"KernelCh", "NetPlugin"} if number < 3 else set())
        self.parents = {k: v for k, v in PARENTS.items() if k not in gone}
        if number < 5:
            self.parents.update(Coll={"Group"}, P2p={"Group"})
        self.send_states = SEND_STATES if number > 3 else [8, 9]
        self.kernel_states = [22] if number > 3 else []
        self.kernels = number > 2


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def run(folder, fails=False, ranks=RANKS, mode=mode, **more):
    """The program's log; it must end well, or, if it `fails`, badly but soon."""
    log = os.path.join(folder, "log.%p")
    env = os.environ | {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_DEBUG": "INFO",
                        "NCCL_DEBUG_SUBSYS": "ALL", "NCCL_DEBUG_FILE": log} | more
    done = subprocess.run([program, mode, str(ranks)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=100, text=True)
    check((done.returncode != 0) == fails, f"the program ends with {done.returncode}: {done.stdout[-2000:]}")
    return "".join(open(os.path.join(folder, n)).read() for n in os.listdir(folder) if n.startswith("log."))


def net(folder):
    log = run(folder, NCCL_NET_PLUGIN=f"{plugins}/libnccl-net_test.so", NCCL_NET="TestNet")
    check("via NET/TestNet/0" in log, "edges over the plugin")
    check("the host is wrong" not in log, "the contract: " + "".join(l for l in log.splitlines(True) if "is wrong" in l))
    check(log.count("TestNet: all is closed") >= RANKS, "finalize after everything is closed")
    # AllReduce, and Send with Recv; an algorithm that is not NCCL's is not told
    hints = set(re.findall(r"TestNet: hint op (\w+) algo (\w+)", log))
    check({("ffffffff", "ffffffff"), ("10", "ffffffff"), ("c0", "ffffffff")} <= hints, f"hints of what is to come: {hints}")
    log = run(folder, NCCL_NET_PLUGIN=f"{plugins}/libnccl-net_test.so", ranks=4, TESTNET_DEVICES="3", NCCL_ALGO="allreduce:Ring")
    check("TestNet: hint op 10 algo 2 " in log, "hints of rings")
    check(all(f"via NET/TestNet/{dev}" in log for dev in range(3)), "edges over several devices")
    check("the host is wrong" not in log, "the contract: " + "".join(l for l in log.splitlines(True) if "is wrong" in l))
    log = run(folder, NCCL_NET_PLUGIN=f"{plugins}/libnccl-net_test.so", TESTNET_CREDITS="1")
    check("came before their receives" in log, "sends wait for receives")
    check("the host is wrong" not in log, "the contract: " + "".join(l for l in log.splitlines(True) if "is wrong" in l))
    for failure in "listen", "connect", "regmr", "isend":
        log = run(folder, True, NCCL_NET_PLUGIN=f"{plugins}/libnccl-net_test.so", TESTNET_FAIL=failure)
        said = [l for l in log.splitlines() if "over NET/TestNet failed" in l and "WARN" in l]
        check(said, f"a sentence about {failure}: {log[-2000:]}")


def older(folder):
    """A network of an older version (mode: its number) carries every collective; what fails has a sentence."""
    plugin = f"{plugins}/libnccl-net_outsider_v{mode}.so"
    log = run(folder, NCCL_NET_PLUGIN=plugin, NCCL_NET="outsider", OUTSIDER_DEVICES="2", mode="processes")
    check(f"Loaded net plugin Outsider (v{mode})" in log, "the version")
    check(all(f"via NET/Outsider/{dev}" in log for dev in range(2)), "edges over both devices")
    check("the host is wrong" not in log, "the contract: " + "".join(l for l in log.splitlines(True) if "is wrong" in l))
    for field, value in (("P2p", "0"), ("Coll", str((1 << 40) + 1))) if int(mode) > 8 else ():
        log = run(folder, True, NCCL_NET_PLUGIN=plugin, NCCL_NET="outsider", mode="processes",
                  **{f"OUTSIDER_{field.upper()}_BYTES": value})
        check(f"NET/Outsider: device 0 (out0) has max{field}Bytes {value}, which is not" in log, log[-3000:])
    for failure in "listen", "connect", "regmr", "isend":
        log = run(folder, True, NCCL_NET_PLUGIN=plugin, OUTSIDER_FAIL=failure, mode="processes")
        said = [l for l in log.splitlines() if "over NET/Outsider failed" in l and "WARN" in l]
        check(said, f"a sentence about {failure}: {log[-2000:]}")


def registered(folder):
    """Memory that users register goes over a network without a copy, and only while it is registered."""
    test, outsider = f"{plugins}/libnccl-net_test.so", f"{plugins}/libnccl-net_outsider_v%d.so"
    runs = [(test, {}), (test, {"TESTNET_CREDITS": "1"}), (test, {"NCCL_LOCAL_REGISTER": "0"}),
            (outsider % 3, {}), (outsider % 8, {"TUTTI_PLUGIN_CHECK": "1"})]
    for plugin, more in runs:
        log = run(folder, NCCL_NET_PLUGIN=plugin, ranks=3, **more)
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        ways = set(re.findall(r"rank (\d+): registered memory goes to rank (\d+)", log))
        check({("0", "1"), ("1", "2"), ("2", "0")} <= ways, f"{plugin} {more}: registered memory goes {ways}")
        check("the host is wrong" not in log, "the contract: " + "".join(l for l in log.splitlines(True) if "is wrong" in l))
        broken = [l for l in log.splitlines(True) if "breaks the contract" in l]
        check(all("it took more than" in l for l in broken), "".join(broken))  # how long a call takes is the machine's


def unlike(folder):
    """Two ranks with two networks, or two versions of one: an error at init that names both, at both; no hang. The
    program is one rank."""
    other = f"{plugins}/libnccl-net_outsider_v8.so"
    differ(["none", other], ["rank 0 on host", "network Socket (v12)", "rank 1 on host", "network Outsider (v8)"])
    differ([f"{plugins}/libnccl-net_outsider_v12.so", other], ["network Outsider (v12)", "network Outsider (v8)"])


def differ(networks, names):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        root = f"127.0.0.1:{free.getsockname()[1]}"
    ranks = []
    for rank, network in enumerate(networks):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", NCCL_COMM_ID=root, NCCL_NET_PLUGIN=network,
                   NCCL_DEBUG="WARN", NCCL_SOCKET_IFNAME="=lo", NCCL_DEBUG_FILE="")
        ranks.append(subprocess.Popen([program, "1"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    said = [rank.communicate(timeout=100)[0] for rank in ranks]
    check(all(rank.returncode for rank in ranks), f"they fail: {said}")
    for name in names:
        check(all(name in text for text in said), f"{name}: {said}")


def tuner(folder):
    asked = os.path.join(folder, "asked")
    log = run(folder, NCCL_TUNER_PLUGIN=f"{plugins}/libnccl-tuner_force.so", TUNER_LOG=asked, TUNER_FORCE="0,2,1,8192")
    lines = open(asked).read().splitlines()
    check(sum(l.startswith("init ") for l in lines) == sum(l == "finalize" for l in lines) >= RANKS, "init and finalize")
    asks = collections.Counter(l for l in lines if l.startswith("ask 4"))
    check(asks and all(n % RANKS == 0 for n in asks.values()), "all ranks ask the same")
    check("-> Algo TREE proto SIMPLE channel{Lo..Hi}={0..0}" in log, "the forced choice")
    log = run(folder, NCCL_TUNER_PLUGIN=f"{plugins}/libnccl-tuner_force.so", TUNER_FAIL="ask")
    check("the built-in choice is used" in log, "a failing tuner")


def read_events(path):
    events, lives = {}, collections.Counter()
    for line in open(path):
        call = json.loads(line)
        at = (call["pid"], call.get("event"))
        if call["call"] == "start":
            call.update(name=NAMES[call["type"]], states=[], stops=0, children=[])
            parent = events.get((call["pid"], call["parent"]))
            check(parent or not call["parent"], f"a child before its parent: {line}")
            call["above"] = parent
            if parent:
                parent["children"].append(call)
            events[at] = call
        elif call["call"] == "stop":
            events[at]["stops"] += 1
        elif call["call"] == "state":
            check(not events[at]["stops"], f"a state after the stop: {line}")
            events[at]["states"].append(call["state"])
            if call["state"] == 22:
                events[at]["end"] = call["value"]
        else:
            lives[call["call"]] += 1
    return list(events.values()), lives


def check_event(event, version):
    name, above = event["name"], event["above"]
    check(event["stops"] == 1, f"{name} is stopped {event['stops']} times: {event}")
    check((above["name"] if above else None) in version.parents[name], f"parent of {name}")
    if name == "ProxyStep":
        states = [s for k, s in enumerate(event["states"]) if k == 0 or s != event["states"][k - 1]]
        check(states == (version.send_states if above["send"] else RECV_STATES), f"states of a step: {states}")
    if name == "ProxyOp":
        check(event["pid_of_op"] == event["pid"], "process of a ProxyOp")
        check(event["steps"] == len(event["children"]), f"{len(event['children'])} steps of {event}")
        check([s["step"] for s in event["children"]] == list(range(len(event["children"]))), "steps are numbered")
    if name == "GroupApi":
        check(event["states"] == [23, 24], f"states of GroupApi: {event['states']}")
    if name == "KernelCh":
        check(event["states"] == version.kernel_states, "states of KernelCh")
    if name == "Coll" and version.kernels:
        kernels = [c for c in event["children"] if c["name"] == "KernelCh"]
        check(len(kernels) == event["channels"], f"KernelCh per channel: {event}")


def series_of(events):
    """Sequence numbers by communicator and function; a communicator is known by its context."""
    series = collections.defaultdict(list)
    for event in events:
        if event["name"] == "Coll":
            series[event["pid"], event["context"], event["func"]].append(event["seq"])
    return series


def watch(folder, version, mask, **more):
    path = os.path.join(folder, "events")
    log = run(folder, NCCL_PROFILER_PLUGIN=version.plugin, PROFILER_LOG=path, PROFILER_MASK=str(mask), **more)
    events, lives = read_events(path)
    os.unlink(path)
    version.kernels &= mask & 64 != 0
    for event in events:
        check_event(event, version)
    return events, lives, log


def profiler(folder):
    for number in range(1, 8):
        version = Version(number)
        events, lives, log = watch(folder, version, 65535)
        check(f"Loaded TestProfiler (v{number})" in log, f"version {number} is loaded")
        check(lives["init"] == lives["finalize"] >= RANKS, "init and finalize")
        seen = collections.Counter(e["name"] for e in events)
        check(set(seen) == set(version.parents), f"kinds of events of version {number}: {dict(seen)}")
        for (*_, func), numbers in series_of(events).items():
            whole = func not in EXCHANGES  # of which long ones are messages, and take a number as well
            check(numbers == (list(range(len(numbers))) if whole else sorted(set(numbers))), f"numbers of {func}: {numbers}")
    for number, kinds in (6, {"GroupApi", "CollApi", "Group", "Coll"}), (4, {"Group", "Coll"}):
        seen = {e["name"] for e in watch(folder, Version(number), 2)[0]}
        check(seen == kinds, f"mask 2 gives {seen} to version {number}")


def replays(folder):
    """A graph's calls come anew with each launch, under the CollApi and P2pApi of the capture."""
    events = watch(folder, Version(6), 4095)[0]
    launches = collections.Counter(len(e["children"]) for e in events if e["name"] in ("CollApi", "P2pApi"))
    check(launches == {3: 3 * RANKS, 1: 3 * RANKS}, f"one Coll or P2p per launch: {launches}")
    for event in events:
        if event["name"] in ("Coll", "P2p"):
            kinds = {c["name"] for c in event["children"]}
            check(kinds == {"KernelCh", "ProxyOp"}, f"below a {event['name']}: {kinds}")
            group = [g for g in events if g["pid"] == event["pid"] and g["event"] == event["group"]]
            check(len(group) == 1 and group[0]["name"] == "Group", "the Group of a call")
    numbers = collections.defaultdict(list)
    for event in events:
        if event["name"] == "Coll":
            numbers[event["pid"], event["rank"]].append(event["seq"])
    check(len(numbers) == RANKS and all(n == list(range(6)) for n in numbers.values()), f"numbers {dict(numbers)}")
    check(sum(e["name"] == "KernelLaunch" for e in events) == 5 * RANKS, "a KernelLaunch per capture and direct call")
    ctrl = [e["states"] for e in events if e["name"] == "ProxyCtrl"]
    check(all(s in ([13], [14], [15, 16], [17, 18]) for s in ctrl) and [17, 18] in ctrl, "states of ProxyCtrl")


def check_chains(events):
    """Messages to one peer, and from one, in one Group: each KernelCh begins when the one before has ended."""
    chains = collections.defaultdict(list)
    for event in events:
        if event["name"] == "P2p" and event["peer"] != event["rank_of_op"] and len(event["children"]):
            kernels = [c for c in event["children"] if c["name"] == "KernelCh"]
            check(len(kernels) == 1, f"one KernelCh of a message: {event}")
            chains[event["pid"], event["group"], event["peer"], event["func"]] += kernels
    for kernels in chains.values():
        check(all(a["timer"] <= a["end"] <= b["timer"] for a, b in zip(kernels, kernels[1:])), "a chain of messages")
    return max(len(kernels) for kernels in chains.values())


def watched(folder):
    """One group over two communicators, chains of messages, exchanges as messages, tags, and an abort in mid flight."""
    for memory in "0", "1":
        off = {} if memory == "0" else {"NCCL_P2P_DISABLE": "0", "NCCL_SHM_DISABLE": "0"}
        version = Version(7)
        path = os.path.join(folder, "events")
        run(folder, NCCL_PROFILER_PLUGIN=version.plugin, PROFILER_LOG=path, PROFILER_MASK="4095", **off)
        events, lives = read_events(path)
        os.unlink(path)
        check(lives["init"] == lives["finalize"] == 2 * RANKS, f"two communicators per rank: {lives}")
        for event in events:
            check(event["stops"] == 1, f"{event['name']} is stopped {event['stops']} times: {event}")
            check((event["above"]["name"] if event["above"] else None) in PARENTS[event["name"]], f"parent of {event}")
        check(check_chains(events) == 3, "three messages in a chain")
        groups = [e for e in events if e["name"] == "GroupApi"]
        both = [g for g in groups if len({c["context"] for c in g["children"]}) == 2]
        check(len(both) == RANKS, "a group over two communicators has one GroupApi")
        tags = collections.Counter((e["name"], e["func"]) for e in events if e.get("tag") == 4711)
        exchange = {("P2pApi", "Send"): 4, ("P2pApi", "Recv"): 4, ("P2p", "Send"): 4, ("P2p", "Recv"): 4}
        whole = {("CollApi", "AlltoAll"): 2, ("Coll", "AlltoAll"): 2}
        want = {("CollApi", "AllReduce"): 2, ("Coll", "AllReduce"): 2}
        check(tags in (want | exchange, want | whole), f"tags {tags}")
        check(memory == "1" or tags == want | exchange, "over sockets an AlltoAll is messages")
        check(all(s == list(range(len(s))) for s in series_of(events).values()), "numbers from 0 without gaps")


with tempfile.TemporaryDirectory() as folder:
    {"net": net, "tuner": tuner, "profiler": profiler, "replays": replays, "watched": watched, "older": older, "registered": registered,
     "unlike": unlike}[kind](folder)
