#!/usr/bin/env python3
"""`tutti trace convert` into formats that other tools read, read by those tools or by a reader of our own: the same events,
names, order and times as in the JSON. usage: trace_formats.py TUTTI otf2|perfetto"""
import json, os, re, resource, shutil, signal, subprocess, sys, tempfile

from trace_made import MS, US, Rank, crossing, made

tutti, what = sys.argv[1:3]
SYSTEM_PYTHON = "/usr/bin/python3"  # which Debian's modules belong to


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def convert(to, output, *paths, code=0, **kw):
    done = subprocess.run([tutti, "trace", "convert", "--to", to, "-o", output, *paths], text=True, capture_output=True, timeout=200,
                          **kw)
    check(done.returncode == code, f"exit {done.returncode}, not {code}, of {to}: {done.stdout}{done.stderr}")
    return done.stderr


def moments_of_json(folder):
    """Of each lane, by the names of rank and lane: when its slices begin and end, with what they tell."""
    convert("chrome", f"{folder}/run.json", folder)
    with open(f"{folder}/run.json") as file:
        events = json.load(file)["traceEvents"]
    os.unlink(f"{folder}/run.json")
    ranks = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    lanes = {(e["pid"], e["tid"]): (ranks[e["pid"]], e["args"]["name"]) for e in events if e["name"] == "thread_name"}
    found, inner = {lane: [] for lane in lanes.values()}, {lane: [] for lane in lanes.values()}
    slices = [e for e in events if e["ph"] == "X"] + [{"pid": p, "tid": t, "ts": 1e15} for p, t in lanes]
    for e in slices:
        lane, begin = lanes[e["pid"], e["tid"]], round(e["ts"] * 1e3)
        while inner[lane] and inner[lane][-1][0] <= begin:
            found[lane].append((inner[lane][-1][0], "end", inner[lane].pop()[1]))
        if "dur" not in e:
            continue
        name = re.sub(r"^ProxyStep \d+$", "ProxyStep", e["name"])
        states = {k for k, v in e["args"].items() if str(v).startswith("at ")}
        found[lane].append((begin, "begin", name, {k: v for k, v in e["args"].items() if k not in states}))
        inner[lane].append((begin + round(e["dur"] * 1e3), name))
    return found


def runs(folder):
    """Folders of runs with all that a format has to say."""
    for k in range(6):
        os.mkdir(f"{folder}/{k}")
    crossing(f"{folder}/0")
    made(f"{folder}/1", nranks=3, operations=50)
    ranks = [Rank(r, 2, host=f"host{r}", skew=r * 5 * MS) for r in range(2)]
    for k in range(3):
        ranks[0].message(k * MS, k * MS + 50 * US, "Send", 1, count=100 + k)
        ranks[1].message(k * MS + 20 * US, k * MS + 60 * US, "Recv", 0, count=100 + k)
    for n, func in enumerate(("Broadcast", "AllGather", "ReduceScatter", "Reduce", "AlltoAll", "Gather", "Scatter")):
        root = 1 if func in ("Broadcast", "Reduce", "Gather", "Scatter") else -1
        for rank in ranks:
            rank.collective((10 + n) * MS + rank.rank * US, (11 + n) * MS - 9 * US, func=func, root=root)
    ranks[1].collective(30 * MS, 31 * MS)  # the other one does not come
    for rank in ranks:
        rank.end().write(f"{folder}/2")
    rank = Rank(0, 1)  # 40 that lie across each other
    crowd = [rank.start(MS + k * US, "ProxyOp", channel=0, peer=0, steps=k, chunk=1, send=0, pid=100) for k in range(40)]
    for k, event in enumerate(crowd):
        rank.stop(2 * MS + k * US, event)
    rank.end().write(f"{folder}/3")
    Rank(0, 1).end().write(f"{folder}/4")
    ranks = [Rank(0, 2), Rank(1, 2)]
    for rank in ranks:  # begin and end at one time, and an end that is the next one's begin
        for k in range(3):
            rank.collective(MS + k * 10, MS + k * 10)
            rank.collective(2 * MS + k * 10, 2 * MS + k * 10 + 7, func="Broadcast", root=0)
        rank.end().write(f"{folder}/5")
    return [f"{folder}/{k}" for k in range(6)]


# ---- OTF2 ----

READER = """
import json, otf2, sys
lanes, comms = {}, {}
with otf2.reader.open(sys.argv[1]) as trace:
    for location in trace.definitions.locations:
        lanes[location] = []
    for location, event in trace.events:
        kind = type(event).__name__
        facts = {a.name: v for a, v in event.attributes.items()} if event.attributes else {}
        more = {}
        for key in ("request_id", "root", "size_sent", "size_received", "receiver", "sender", "msg_length"):
            if hasattr(event, key): more[key] = getattr(event, key)
        if hasattr(event, "collective_op"): more["op"] = str(event.collective_op).split(".")[-1]
        if hasattr(event, "communicator"): more["comm"] = event.communicator.name
        name = event.region.name if hasattr(event, "region") else ""
        lanes[location].append([event.time, kind, name, facts, more])
    out = [[l.group.name, l.name, l.number_of_events, str(l.type).split(".")[-1], l.group.system_tree_parent.name, e] for l, e in lanes.items()]
    comms = [[c.name, [m.group.name for m in c.group.members]] for c in trace.definitions.comms]
    clock = trace.definitions.clock_properties
    print(json.dumps({"lanes": out, "comms": comms, "clock": [clock.timer_resolution, clock.global_offset, clock.trace_length]},
                     default=str))
"""


def printed(archive):
    """What otf2-print says of each location: times and names."""
    text = subprocess.run(["otf2-print", f"{archive}/traces.otf2"], text=True, capture_output=True, timeout=200)
    check(text.returncode == 0 and not text.stderr, text.stderr)
    found = {}
    last = {}
    for location, at in re.findall(r"^[A-Z_]+ +(\d+) +(\d+) ", text.stdout, re.M):
        check(int(at) >= last.get(location, 0), f"times of location {location} go back to {at}")
        last[location] = int(at)
    for kind, location, at, name in re.findall(r'^(ENTER|LEAVE) +(\d+) +(\d+) +Region: "([^"]*)"', text.stdout, re.M):
        found.setdefault(int(location), []).append((int(at), "begin" if kind == "ENTER" else "end", name))
    return found


def states(folder, archive):
    """Each state is a parameter of its region: at its time, inside its event, with its value."""
    done = subprocess.run([tutti, "trace", "convert", "--to", "jsonl", folder], text=True, capture_output=True, timeout=200)
    events = [line for line in map(json.loads, done.stdout.splitlines()) if line["t"] == "ev"]
    first = min(0, *(e["ts"] for e in events))
    want = sorted([at - first, name, value] for e in events for name, at, value in e.get("states", ()))
    text = subprocess.run(["otf2-print", f"{archive}/traces.otf2"], text=True, capture_output=True, timeout=200).stdout
    row = r'^(ENTER|LEAVE|PARAMETER_STRING) +(\d+) +(\d+) +(?:Region: "([^"]*)"|Parameter: "state" <0>, Value: "([^"]*)").*\n' \
          r'(?: +ADDITIONAL ATTRIBUTES: (.*))?'
    got, inside = [], {}
    for kind, lane, at, region, name, facts in re.findall(row, text, re.M):
        within = inside.setdefault(lane, [])
        if kind == "ENTER":
            within.append(region)
        elif kind == "LEAVE":
            within.pop()
        else:
            value = re.search(r'"value" <\d+>; UINT64; (\d+)', facts or "")
            got.append([int(at), name, int(value.group(1)) if value else 0])
            check(within and (within[-1][:7] == name[:7]), f"{name} in {within}")
    check(sorted(got) == want, f"states of {folder}: {got} is not {want}")
    return len(got)


def compare(folder, archive, want, module):
    left = {lane: [m[:3] for m in moments] for lane, moments in want.items()}
    got = printed(archive)
    check(sorted(map(str, got.values())) == sorted(map(str, left.values())), f"otf2-print of {folder}: {got} is not {left}")
    if not module:
        return None
    done = subprocess.run([SYSTEM_PYTHON, "-c", READER, f"{archive}/traces.otf2"], text=True, capture_output=True, timeout=200)
    check(done.returncode == 0, done.stderr)
    found = json.loads(done.stdout)
    for group, name, count, kind, host, events in found["lanes"]:
        rank = group.replace("device of ", "")
        check((group != rank) == name.startswith(("kernel", "copy")) == (kind in ("GPU", "ACCELERATOR_STREAM")), (group, name, kind))
        check(host in rank and count == len(events), f"{name} of {group} on {host}: {count} and {len(events)} events")
        check([e[0] for e in events] == sorted(e[0] for e in events), f"times of {name}")
        plain = [e for e in events if e[1] in ("Enter", "Leave")]
        check(all(e[4] == {} for e in events if e[1] == "ParameterString"), f"states of {name}")
        moments = want[rank, name]
        check([(e[0], "begin" if e[1] == "Enter" else "end", e[2]) for e in plain] == left[rank, name], f"{rank} {name}")
        for e, moment in zip(plain, moments):
            if e[1] == "Enter":
                facts = dict(e[3])
                if "comm" in facts:
                    facts["comm"] = "%016x" % facts["comm"]
                check(facts == moment[3], f"facts of {e[2]} of {name}: {facts} is not {moment[3]}")
    check(len(found["lanes"]) == len(want) and found["clock"][:2] == [10**9, 0], found["clock"])
    return found


def operations(found):
    """What the second rank and the first one tell of their operations, in order of time."""
    def told(rank):
        events = [e for lane in found["lanes"] if lane[0].startswith(f"rank {rank}") for e in lane[5] if e[1] not in ("Enter", "Leave", "ParameterString")]
        events.sort(key=lambda e: e[0])
        return [(e[0], e[1], {k: v for k, v in e[4].items() if k != "request_id"}) for e in events], \
               [(e[1], e[4].get("request_id")) for e in events]

    (comm, members), = found["comms"]
    check(comm.startswith("communicator 00000000000000ab") and [m[:6] for m in members] == ["rank 0", "rank 1"], found["comms"])
    first, second = (told(rank) for rank in range(2))
    b = 1024
    none = 2**32 - 1
    sizes = {"BCAST": ((0, b), (b, b)), "ALLGATHER": ((b, 2 * b),) * 2, "REDUCE_SCATTER_BLOCK": ((2 * b, b),) * 2,
             "REDUCE": ((b, 0), (b, b)), "ALLTOALL": ((2 * b, 2 * b),) * 2, "GATHER": ((b, 0), (b, 2 * b)), "SCATTER": ((0, b), (2 * b, b))}
    for rank, (events, requests) in enumerate((first, second)):
        ends = [e for e in events if e[1] == "NonBlockingCollectiveComplete"]
        check([e[2]["op"] for e in ends] == list(sizes), ends)
        for k, (at, _, more) in enumerate(ends):
            root = 1 if more["op"] in ("BCAST", "REDUCE", "GATHER", "SCATTER") else none
            sent, received = sizes[more["op"]][rank]
            check((more["size_sent"], more["size_received"], more["root"]) == (sent, received, root) and more["comm"] == comm, more)
        begun = [r for kind, r in requests if kind in ("NonBlockingCollectiveRequest", "MpiIsend", "MpiIrecvRequest")]
        ended = [r for kind, r in requests if kind in ("NonBlockingCollectiveComplete", "MpiIsendComplete", "MpiIrecv")]
        check(len(set(begun)) == len(begun) == 10 and sorted(begun) == sorted(ended), requests)
    sends = [e for e in first[0] if "Isend" in e[1]]
    check([e[1] for e in sends] == ["MpiIsend", "MpiIsendComplete"] * 3, sends)
    check([(e[2]["receiver"], e[2]["msg_length"], e[2]["comm"]) for e in sends[::2]] == [(1, 100 + k, comm) for k in range(3)], sends)
    receives = [e for e in second[0] if "Irecv" in e[1]]
    check([e[1] for e in receives] == ["MpiIrecvRequest", "MpiIrecv"] * 3, receives)
    check([(e[2]["sender"], e[2]["msg_length"]) for e in receives[1::2]] == [(0, 100 + k) for k in range(3)], receives)


def states_in_order(folder):
    """Of events inside each other, one before the begin and one behind the end of its event."""
    os.mkdir(f"{folder}/nested")
    rank = Rank(0, 1)
    outer = rank.start(MS, "GroupApi", depth=1, captured=0)
    rank.state(MS + 5, outer, "GroupStartApiStop")
    inner = rank.start(MS + 10, "CollApi", outer, func="AllReduce", datatype="ncclInt8", count=1, root=0, captured=0)
    rank.state(MS + 5, inner, "early")
    rank.state(MS + 15, outer, "between", 7)
    rank.state(MS + 99, inner, "late")
    rank.stop(MS + 20, inner)
    rank.state(MS + 20, outer, "GroupEndApiStart")
    rank.stop(MS + 30, outer)
    rank.end().write(f"{folder}/nested")
    check(not convert("otf2", f"{folder}/archive-nested", f"{folder}/nested"), "nested")
    text = subprocess.run(["otf2-print", f"{folder}/archive-nested/traces.otf2"], text=True, capture_output=True, timeout=200).stdout
    got = re.findall(r'^([A-Z_]+) +\d+ +(\d+) .*"([^"]*)" <\d+>$', text, re.M)
    want = [("ENTER", 0, "GroupApi"), ("PARAMETER_STRING", 5, "GroupStartApiStop"), ("ENTER", 10, "AllReduce"),
            ("PARAMETER_STRING", 10, "early"), ("PARAMETER_STRING", 15, "between"), ("PARAMETER_STRING", 20, "late"),
            ("LEAVE", 20, "AllReduce"), ("PARAMETER_STRING", 20, "GroupEndApiStart"), ("LEAVE", 30, "GroupApi")]
    check([(kind, int(at), name) for kind, at, name in got] == want, f"{got} is not {want}")


def otf2_refused(folder, run):
    """A folder that is not free, a full disk, no library: a sentence and exit status 1, or 2 for wrong words."""
    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    os.makedirs(f"{folder}/full/traces")
    check("is there and not empty" in convert("otf2", f"{folder}/full", run, code=1), "not empty")
    check(os.listdir(f"{folder}/full") == ["traces"], "left as it was")
    check("too large" in convert("otf2", f"{folder}/small", run, code=1, preexec_fn=small), "full disk")
    check("-o FOLDER is missing" in convert("otf2", "-", run, code=2), "standard output")
    open(f"{folder}/file", "w").close()
    check("not a directory" in convert("otf2", f"{folder}/file", run, code=1), "a file")
    os.mkdir(f"{folder}/fake")
    with open(f"{folder}/fake/libopen-trace-format2.so.10", "w") as file:
        file.write("no library\n")
    env = {**os.environ, "LD_LIBRARY_PATH": f"{folder}/fake:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    said = convert("otf2", f"{folder}/none", run, code=1, env=env)
    check("install libopen-trace-format2-10" in said and not os.path.exists(f"{folder}/none"), said)


def otf2(folder):
    if "built without OTF2" in subprocess.run([tutti, "trace", "convert", "--to", "otf2", "-o", f"{folder}/x", runs(folder)[1]],
                                              text=True, capture_output=True, timeout=100).stderr:
        print("skipped: built without OTF2")
        sys.exit(77)
    if not shutil.which("otf2-print"):
        print("skipped: no otf2-print (Debian's otf2-tools)")
        sys.exit(77)
    nstates = 0
    module = subprocess.run([SYSTEM_PYTHON, "-c", "import otf2"], capture_output=True).returncode == 0
    for k in range(6):
        run, archive = f"{folder}/{k}", f"{folder}/archive{k}"
        want = moments_of_json(run)
        if k == 4:
            check("no event was read" in convert("otf2", archive, run, code=1), "a run without events")
            continue
        said = convert("otf2", archive, run)
        if k == 3:  # what nests is there
            check("8 events are left out: they lie across others" in said, said)
            check(sum(map(len, printed(archive).values())) == 2 * 32, "40 events that lie across each other")
            continue
        check(not said, said)
        found = compare(run, archive, want, module)
        nstates += states(run, archive)
        if module and k == 2:
            operations(found)
    check(nstates > 150, f"{nstates} states")
    states_in_order(folder)
    otf2_refused(folder, f"{folder}/1")
    print("with the module otf2 of Python" if module else "by otf2-print alone: no module otf2 of Python")


# ---- Perfetto ----

def fields(data):
    """A message as a list of (field, value): numbers, and bytes of what has a length or eight bytes."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value, at

    at, found = 0, []
    while at < len(data):
        tag, at = varint(at)
        if tag & 7 == 0:
            value, at = varint(at)
        else:
            check(tag & 7 in (1, 2), f"kind {tag & 7} of field {tag >> 3}")
            size, at = (8, at) if tag & 7 == 1 else varint(at)
            value, at = data[at:at + size], at + size
            check(len(value) == size, "a message that is cut")
        found.append((tag >> 3, value))
    return found


def only(message, field):
    (value,) = [v for f, v in message if f == field]
    return value


def texts(interned, field):
    return {only(fields(v), 1): only(fields(v), 2).decode() for f, v in interned if f == field}


def fact_of(data, names, words):
    fact = fields(data)
    name = names[only(fact, 1)]
    inner = [fact_of(v, names, words) for f, v in fact if f == 11]
    if inner:
        return name, dict(inner)
    ((field, value),) = fact[1:]
    return name, {3: lambda: value, 4: lambda: value, 6: lambda: value.decode(), 17: lambda: words[value]}[field]()


def perfetto_read(path):
    """Moments of each lane as in the JSON, states, and the flows with the names of lanes and times."""
    with open(path, "rb") as file:
        packets = fields(file.read())
    ranks, lanes, found, flows, states = {}, {}, {}, {}, []
    for number, (field, packet) in enumerate(packets):
        check(field == 1, field)
        packet = fields(packet)
        check(only(packet, 10) == 1, "one sequence")
        flags = [v for f, v in packet if f == 13]
        if number == 0:
            check(flags == [1] and only(packet, 87) == 1, "the first packet clears what was known")
            interned = fields(only(packet, 12))
            types, names, facts, words = (texts(interned, f) for f in (1, 2, 3, 29))
            continue
        track = [fields(v) for f, v in packet if f == 60]
        if track:
            uuid, process = only(track[0], 1), [fields(v) for f, v in track[0] if f == 3]
            if process:
                check(only(process[0], 1) == uuid and only(track[0], 11) == 3, "process")
                ranks[uuid] = only(process[0], 6).decode()
            else:
                lanes[uuid] = ranks[only(track[0], 5)], only(track[0], 2).decode()
                check(uuid not in ranks and len(found) == only(track[0], 12), "lanes have their order")
                found[lanes[uuid]] = []
            continue
        check(flags == [2], "events need the texts")
        event, at = fields(only(packet, 11)), only(packet, 8)
        lane = lanes[only(event, 11)]
        if only(event, 9) == 2:
            found[lane].append((at, "end"))
            continue
        told = dict(fact_of(v, facts, words) for f, v in event if f == 4)
        states += [(names[only(event, 10)], k, v) for k, v in told.items() if isinstance(v, dict)]
        told = {k: v for k, v in told.items() if not isinstance(v, dict)}
        check(types[only(event, 3)] == told["type"], told)
        found[lane].append((at, "begin", names[only(event, 10)], told))
        for f, v in event:
            if f in (47, 48):
                flows.setdefault(int.from_bytes(v, "little"), []).append((at, f, lane[0]))
    return found, flows, states


def perfetto(folder):
    for k, run in enumerate(runs(folder)):
        said = convert("perfetto", f"{folder}/run.pftrace", run)
        found, flows, states = perfetto_read(f"{folder}/run.pftrace")
        if k == 3:
            check("8 events are left out: they lie across others" in said, said)
            check(sum(map(len, found.values())) == 2 * 32, "40 events that lie across each other")
            continue
        check(not said, said)
        want = {lane: [m[:2] if m[1] == "end" else m for m in moments] for lane, moments in moments_of_json(run).items()}
        check(found == want, f"{run}: {found} is not {want}")
        for parts in flows.values():
            parts.sort(key=lambda part: part[0])
            check([f for _, f, _ in parts] == [47] * (len(parts) - 1) + [48], parts)
            check(len({rank for _, _, rank in parts}) == len(parts), parts)
        # the one that a rank alone began has no arrow
        check([len(parts) for parts in flows.values()] == {0: [4] * 10, 1: [3] * 50, 2: [2] * 10, 4: [], 5: [2] * 6}[k], flows)
        if k == 1:
            check(states[0] == ("KernelCh", "KernelChStop", {"at_ns": 120003, "value": 2}) and len(states) == 150, states[:3])
    check("No space left" in convert("perfetto", "/dev/full", f"{folder}/1", code=1), "full disk")


with tempfile.TemporaryDirectory() as folder:
    {"otf2": otf2, "perfetto": perfetto}[what](folder)
