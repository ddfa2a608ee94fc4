#!/usr/bin/env python3
"""`tutti trace`: merged, matched and aligned runs whose answers are known because they were made here, and files that are
cut, mixed, out of order or no traces at all. usage: trace.py TUTTI"""
import gzip, json, os, random, re, shutil, subprocess, sys, tempfile

from trace_made import MS, US, Rank, crossing, flown, made, nests, stopped

tutti = sys.argv[1]


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def trace(*args, code=0, **kw):
    done = subprocess.run([tutti, "trace", *map(str, args)], text=True, capture_output=True, timeout=100, errors="replace", **kw)
    check(code is None or done.returncode == code, f"exit {done.returncode}, not {code}, of {args}: {done.stdout}{done.stderr}")
    return done


def rows(*args, **kw):
    found = json.loads(trace("summary", "--json", *args, **kw).stdout)
    return found, [row for comm in found["communicators"] for row in comm["operations"]]


def near(value, want, by):
    return abs(value - want) <= by


# ---- what is known ----

def summary(folder):
    made(folder)
    found, (row,) = rows(folder)
    check((row["function"], row["bytes"], row["operations"], row["broken"]) == ("AllReduce", 1024, 10, 0), row)
    check(near(row["usec"]["p50"], 100, .01) and near(row["usec"]["max"], 100, .01), row)
    check(near(row["skew_usec"]["p50"], 30, .01) and row["slowest"] == {"rank": 3, "share": 1.0, "behind_usec": 10.0}, row)
    check(near(row["waiting_usec"], 15, .01) and near(row["moving_usec"], 100, .01), row)
    check(near(row["algbw_gbps"], 1024 / 100e3, 1e-6) and near(row["busbw_gbps"], 1024 / 100e3 * 1.5, 1e-6), row)
    check([p["events"] for p in found["processes"]] == [40] * 4 and found["complaints"] == 0, found)
    text = trace(folder).stdout
    check("AllReduce" in text and "1 KiB" in text and "RING/SIMPLE" in text and "4 of 4 ranks" in text, text)
    check("sound: 160 events" in trace("check", folder).stdout, "check")
    check(json.loads(trace("check", "--json", folder).stdout)["sound"] is True, "check --json")
    only = json.loads(trace("--json", "--types", "Coll", folder).stdout)
    check(only["events"] == 40, f"types: {only}")
    both = "".join(open(f"{folder}/{r}.jsonl").read() for r in range(4))
    found, (row,) = rows("-", input=both)
    check(row["operations"] == 10 and len(found["processes"]) == 4, "several processes in one stream")


def messages(folder):
    ranks = [Rank(r, 2) for r in range(2)]
    for k in range(3):
        ranks[0].message(k * MS, k * MS + 50 * US, "Send", 1)
        ranks[1].message(k * MS + 20 * US, k * MS + 60 * US, "Recv", 0)
    for rank in ranks:
        rank.end().write(folder)
    _, (row,) = rows(folder)
    check((row["function"], row["bytes"], row["operations"], row["broken"]) == ("Send", 256, 3, 0), row)
    check(near(row["usec"]["p50"], 40, .01) and near(row["skew_usec"]["p50"], 20, .01), row)


def types(folder):
    """Calls of one size and of different types are told apart; one type alone is not worth a column."""
    runs = [f"{folder}/{name}" for name in ("one", "two", "none")]
    for run, kinds in zip(runs, ((("ncclFloat32", 256),), (("ncclFloat32", 256), ("ncclBfloat16", 512)), (("Unknown", 500),))):
        os.mkdir(run)
        ranks = [Rank(r, 2) for r in range(2)]
        for k, (kind, count) in enumerate(kinds):
            for rank in ranks:
                rank.collective(k * MS, k * MS + 100 * US, count=count, datatype=kind)
        for rank in ranks:
            rank.end().write(run)
    one, two, none = runs
    _, (row,) = rows(none)
    check((row["datatype"], row["bytes"]) == ("ncclUint8", 500), row) # so NCCL calls unsigned bytes
    check("type" not in trace(one).stdout and "ncclFloat32" not in trace(one).stdout, trace(one).stdout)
    text = trace(two).stdout
    check(re.search(r"^ +type +bytes ", text, re.M) and re.search(r"^AllReduce +ncclFloat32 +1 KiB RING", text, re.M) and
          re.search(r"^AllReduce +ncclBfloat16 +1 KiB RING", text, re.M), text)
    check("type" not in trace("diff", one, one).stdout, "diff of one type")
    text = trace("diff", one, two, code=1).stdout
    check(re.search(r"^AllReduce +ncclBfloat16 +1024 +2 .* only in the second", text, re.M) and "AllReduce     ncclFloat32 " in text, text)
    found = json.loads(trace("diff", "--json", one, two, code=1).stdout)
    check([row["datatype"] for row in found["operations"]] == ["ncclFloat32", "ncclBfloat16"], found)


def chrome(folder):
    crossing(folder)
    trace("convert", "--to", "perfetto-json", "-o", f"{folder}/run.json", folder)
    events = json.load(open(f"{folder}/run.json"))["traceEvents"]
    slices, lanes = [e for e in events if e["ph"] == "X"], {}
    for e in slices:
        lanes.setdefault((e["pid"], e["tid"]), []).append((round(e["ts"] * 1e3), round((e["ts"] + e["dur"]) * 1e3)))
    check(len(slices) == 166 and all(nests(lane) for lane in lanes.values()), "slices nest")
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    check([names[pid][:7] for pid in range(1, 5)] == [f"rank {r}," for r in range(4)], names)
    check({"operations: channel 2 sends", "operations: channel 2 sends (2)", "steps: channel 2 sends", "kernel: channel 0"} <=
          {e["args"]["name"] for e in events if e["name"] == "thread_name"}, "names of lanes")
    arrows = {}
    for e in events:
        if e["ph"] in "stf":
            arrows.setdefault(e["id"], []).append(e)
            check(any(begin <= round(e["ts"] * 1e3) <= end for begin, end in lanes[e["pid"], e["tid"]]), f"arrow {e}")
    check(len(arrows) == 10, arrows)
    for parts in arrows.values():
        check([e["ph"] for e in parts] == ["s", "t", "t", "f"] and [e["pid"] for e in parts] == [1, 2, 3, 4], parts)
    open_one = [e for e in slices if "has_no_end" in e["args"]]
    check([e["name"] for e in open_one] == ["KernelLaunch"], open_one)


def others(folder):
    """The same run through our own lines, and in the words of the inspector."""
    paths = made(folder, nranks=3)
    _, want = rows(*paths)
    merged = trace("convert", "--to", "jsonl", *paths).stdout
    _, got = rows("-", input=merged)
    check(got == want, f"{got} is not {want}")
    said(trace("check", "-", input=merged), "sound: 120 events of 3 processes")
    lines = [json.loads(line) for line in trace("convert", "--to", "inspector", *paths).stdout.splitlines()]
    check(len(lines) == 30, len(lines))
    first = lines[0]
    check(first["header"] == {"id": "0xab", "comm_name": "", "rank": 0, "n_ranks": 3, "nnodes": 1}, first)
    check(first["coll_perf"]["coll"] == "AllReduce" and first["coll_perf"]["coll_exec_time_us"] == 120 and
          near(first["coll_perf"]["coll_busbw_gbs"], 1024 / 120e3 * 4 / 3, 1e-5), first)
    check(first["metadata"]["dump_timestamp_us"] == 10**15 + 120, first)
    text = trace("convert", "--to", "prometheus", *paths).stdout
    samples = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    check(len({name for name, _ in samples}) == len(samples) == 6, samples)
    values = {name.split("{")[0]: float(value) for name, value in samples}
    check(values["nccl_operations_total"] == 10 and values["nccl_bytes_total"] == 10240 and
          near(values["nccl_collective_exec_time_microseconds"], 100, .01), values)
    said(trace("convert", "--to", "cuneiform", *paths, code=2), "no format 'cuneiform'")
    said(trace("convert", *paths, code=2), "--to FORMAT is missing")
    said(trace("convert", "--to", "jsonl", "-o", "/dev/full", *paths, code=1), "/dev/full: No space left")
    said(trace("convert", "--to", "jsonl", "-o", folder, *paths, code=1), "Is a directory")


def differ(folder):
    """A run and one whose operations take longer; a third has another size as well."""
    runs = []
    for name, us, sizes in (("a", 100, [256]), ("b", 150, [256]), ("c", 105, [256, 512])):
        runs.append(f"{folder}/{name}")
        os.mkdir(runs[-1])
        ranks = [Rank(r, 2, comm=f"00000000000000{name}{name}") for r in range(2)]
        for k in range(10):
            for n, count in enumerate(sizes):
                for rank in ranks:
                    rank.collective(k * MS + n * 500 * US, k * MS + n * 500 * US + us * US, count=count)
        for rank in ranks:
            rank.end().write(runs[-1])
    a, b, c = runs
    said(trace("diff", a, a), "1.00")
    said(trace("diff", a, b, code=1), "slower", "1.50", "150.0")
    said(trace("diff", b, a, code=1), "faster", "0.67")
    said(trace("diff", "--by", "60", a, b), "1.50")
    found = json.loads(trace("diff", "--json", a, c, code=1).stdout)
    check(found["differ"] is True and [row["verdict"] for row in found["operations"]] == ["", "only in the second"], found)
    check(found["operations"][0]["second"]["p50_usec"] == 105 and found["operations"][0]["bytes"] == 1024, found)
    said(trace("diff", a, code=2), "two runs are needed")
    said(trace("diff", a, f"{folder}/none", code=2), "none: No such file")


def clocks(folder):
    """Three hosts whose clocks are 7 ms and -3 s away, walls that lie, and one that drifts."""
    dice = random.Random(1)
    for drift in (0.0, 2e-5):
        ranks = [Rank(0, 3), Rank(1, 3, host="two", skew=7 * MS, wall=MS * 900, drift=drift),
                 Rank(2, 3, host="three", skew=-3000 * MS, wall=MS * 20)]
        for k in range(400):
            begins = [k * 25 * MS + dice.randrange(0, 40 * US) for _ in ranks]
            for rank, begin in zip(ranks, begins):
                rank.collective(begin, max(begins) + dice.randrange(20 * US, 60 * US))
        paths = [rank.end().write(folder) for rank in ranks]
        found, (row,) = rows(*paths)
        one, two, three = found["clocks"]
        check(one["offset_ns"] == 0 and two["by"] == three["by"] == "operations", found["clocks"])
        slack = 1500 * US if drift else 0  # half a window of drift
        check(near(three["offset_ns"], 3000 * MS, three["error_ns"]) and three["error_ns"] < 60 * US, three)
        check(near(two["offset_ns"], -7 * MS, two["error_ns"] + (200 * US if drift else 0)), two)
        check(near(two["drift"], -drift, 1e-5) and two["error_ns"] < 60 * US + slack, two)
        check(row["skew_usec"]["p50"] < (300 if drift else 100) and row["broken"] == 0, row)
        text = trace(*paths).stdout
        check(len(re.findall(r"^clock of t\w+: .* good to ", text, re.M)) == 2, text)


# ---- what is not sound ----

def said(result, *words):
    check(all(word in result.stderr + result.stdout for word in words), f"{words} in: {result.stdout}{result.stderr}")


def unsound(folder):
    made(folder)
    late = Rank(3, 4)
    for k in range(9):
        late.collective(k * MS + 30 * US, k * MS + 130 * US)
    late.end().write(folder)
    said(trace("check", folder, code=1), "AllReduce #9 of communicator 00000000000000ab: rank 3 has not begun it",
         "its last is AllReduce #8")
    late.lines.pop()
    late.lines[-1] = late.lines[-1][:20]
    path = late.write(folder)
    with open(path, "rb+") as out:
        out.truncate(os.path.getsize(path) - 1)
    said(trace("check", folder, code=1), f"3.jsonl:{len(late.lines)}: the file ends in the middle of a line",
         "KernelCh  begins at 0.008", "was killed or still runs")
    _, (row,) = rows(folder)
    check((row["operations"], row["broken"]) == (8, 2), row)
    os.unlink(path)
    said(trace("check", folder, code=1), "3 of its 4 ranks are here")
    check(rows(folder)[1][0]["operations"] == 10, "ranks without a file do not break operations")
    other = Rank(1, 4, pid=900)
    other.collective(0, MS, count=99)
    other.end().write(folder, "again")
    Rank(2, 4, pid=901).end().write(folder, "more")
    done = trace("check", folder, code=1)
    said(done, f"{folder}/again.jsonl: rank 1 of communicator 00000000000000ab (process 900 on one) is in {folder}/1.jsonl as well "
         "(process 101 on one): are they of several runs? Operations are taken from the latter", "more.jsonl: rank 2 ",
         "2 lines are not sound")
    check("256 of" not in done.stdout, f"ranks of two runs are compared: {done.stdout}")
    check(rows(folder)[1][0]["operations"] == 10, "a rank of another run is in the operations")


def two_runs(folder):
    """Two runs one after the other are said to be two; two parts of one job that overlap are not."""
    for name, wall, said_so in (("later", 3 * 10**9, True), ("during", 10**6, False)):
        os.makedirs(f"{folder}/{name}")
        for r in range(2):
            for comm, pid, at in (("00000000000000ab", 100, 0), ("00000000000000cd", 200, wall)):
                rank = Rank(r, 2, pid=pid + r, comm=comm, wall=at)
                for k in range(5):
                    rank.collective(k * MS, k * MS + 100 * US)
                rank.end().write(f"{folder}/{name}", pid + r)
        done = trace(f"{folder}/{name}")
        check(("began 3.0 s after all that were before it" in done.stderr and "200.jsonl: process 200 on one" in done.stderr and
               done.stderr.count("several runs") == 1) if said_so else not done.stderr, done.stderr)
        check(done.stdout.count("2 of 2 ranks here") == 2, done.stdout)
        trace("check", f"{folder}/{name}")


def bad_files(folder):
    """Copies, files without their end, of a later version, with a byte-order mark, packed: a sentence for each, and what is
    sound is used."""
    paths = made(folder, nranks=2)
    copy = f"{folder}/copy.jsonl"
    shutil.copy(paths[0], copy)
    said(trace("summary", folder), f"{copy}: rank 0 of communicator 00000000000000ab is in {paths[0]} as well, of the same process (100 "
         "on one): operations are taken from")
    check(rows(folder)[1][0]["operations"] == 10, "a copy is no rank")
    shutil.copy(paths[0], f"{folder}/copy.2.jsonl")
    shutil.copy(paths[0], f"{folder}/copy.3.jsonl")
    shutil.copy(paths[0], f"{folder}/copy.4.jsonl")
    said(trace("summary", folder), "1 more ranks are in two files")
    for name in ("copy", "copy.2", "copy.3", "copy.4"):
        os.unlink(f"{folder}/{name}.jsonl")
    sound = open(paths[0], "rb").read()

    def changed(data, *words, operations=10, command=("summary",)):
        with open(paths[0], "wb") as out:
            out.write(data)
        done = trace(*command, folder, code=None)
        check(all(word in done.stderr for word in words), f"{words} in {done.stderr}")
        check(done.stderr.count("\n") == len(words), f"one sentence for each: {done.stderr}")
        found = rows(folder)[1]
        check(sum(row["operations"] for row in found) == operations, found)

    changed(sound)
    cut = sound[:sound.rindex(b'{"t":"end"')]
    for command in ("summary", "convert --to jsonl", "convert --to prometheus", "page"):
        changed(cut, "0.jsonl: no line `end`: process 100 on one was killed, or still runs; what is there is used, up to 0.009",
                command=command.split())
    changed(sound.replace(b'"v":1', b'"v":7', 1), "0.jsonl:1: version 7 of the format, of which only 1 is known: lines and members that are "
            "known are used")
    changed(b"\xef\xbb\xbf" + sound, "0.jsonl:1: a byte-order mark, which is passed over")
    check(json.loads(trace("check", "--json", folder).stdout)["sound"], "a mark is no fault")
    two = b"\xef\xbb\xbf" + sound + b"\xef\xbb\xbf" + open(paths[1], "rb").read()  # joined by a shell
    changed(two, "0.jsonl:1: a byte-order mark", f"0.jsonl:{sound.count(b'{') + 1}: a byte-order mark",
            "1.jsonl: rank 1 of communicator 00000000000000ab is in")
    changed(gzip.compress(sound), "0.jsonl:1: packed by gzip: zcat it into `tutti trace -`; nothing of it is used")
    changed(sound.decode().encode("utf-16"), "0.jsonl:1: a text of UTF-16: bring it to UTF-8 with iconv; nothing of it is used")
    said(trace("check", folder, code=1), "1 lines are not sound", "the files of 1 of its 2 ranks are here")


def crowd(folder):
    """More lanes than any run has: a search through all of them for each one shows by the time-out alone."""
    rank, others = Rank(0, 1), 150000
    for k in range(others):
        rank.id += 1
        rank.lines.append(f'{{"t":"ev","id":{rank.id},"parent":0,"c":1,"tid":{k * 4096},"ts":{10**12 + k},"dur":1,"type":"GroupApi"}}')
    path = rank.end().write(folder)
    text = trace("convert", "--to", "chrome", path).stdout
    check(text.count('"ph":"X"') == others and text.count('"API: thread ') == others, "threads")
    done = trace("convert", "--to", "otf2", "-o", f"{folder}/archive", path, code=1)
    check("150000 lanes, of which an archive has 65536 at most" in done.stderr or "OTF2" in done.stderr, done.stderr)
    check(not os.path.exists(f"{folder}/archive"), "an archive was begun")


def at_work(folder):
    """The job still runs: what its file has not yet is no fault, what is wrong in it is one."""
    other, own = Rank(0, 2), Rank(1, 2, pid=os.getpid())
    for k in range(9):
        other.collective(k * MS, k * MS + 130 * US)
    other.end().write(folder)
    for k in range(7):
        own.collective(k * MS, k * MS + 130 * US)
    starts = [n for n, line in enumerate(own.lines) if '"start"' in line]
    lines = own.lines[:starts[-2]] + own.lines[starts[-2] + 1:]  # another thread's block comes later
    lines[-1] = lines[-1][:20]
    path = f"{folder}/1.jsonl"
    with open(path, "w") as out:
        out.write("\n".join(lines))
        out.flush()
        done = trace("check", folder)
        said(done, f"process {os.getpid()} still writes it", "rank 1 is known to have begun the fewest operations (6)",
             "rank 0 the most (9)", "sound: ")
        check(not done.stderr, done.stderr)
        found = json.loads(trace("check", "--json", folder).stdout)
        check(found["sound"] and len(found["notes"]) == 2 and not found["findings"], found)
        out.write("\nno line\n")
        out.flush()
        said(trace("check", folder, code=1), "2 lines are not sound")
    with open(path):  # who only reads it does not write it
        said(trace("check", folder, code=1), "was killed or still runs", "has not begun it")


def order(folder):
    """Ends and parents that stand in the file before their begins, as threads may write them."""
    path = made(folder, nranks=1)[0]
    head, *events, end = open(path).read().splitlines()
    first = [n for n, line in enumerate(events) if '"start"' in line][0]
    moved = events[:first] + list(reversed(events[first:]))
    with open(path, "w") as out:
        out.write("\n".join([head, *moved, end]) + "\n")
    check(rows(path)[1][0]["operations"] == 10, "lines in another order")
    said(trace("check", path), "sound: 40 events")


def hostile(folder):
    """Whatever a file holds: an answer, a sentence with file and line, and no escape of a terminal."""
    path = f"{folder}/h.jsonl"
    head = Rank(0, 1).lines[:3]

    def with_lines(*lines, code=1, words=()):
        with open(path, "wb") as out:
            for line in [*head, *lines]:
                out.write((line.encode() if isinstance(line, str) else line) + b"\n")
        done = trace("check", path, code=code)
        said(done, *words)
        check("\x1b" not in done.stdout + done.stderr, "control characters")
        trace("summary", path)

    with_lines("{", words=("h.jsonl:4: a name does not begin",))
    with_lines("nonsense", b"\xff\xfe\0\0", "[1]", '{"t":1}', "{}", "7", words=("h.jsonl:4: no object", "more of its lines are no events"))
    with_lines('{"t":"start","id":1,"ts":99999999999999999999}', words=("a value that is none",))
    with_lines('{"t":"start","id":1,"ts":1e5,"type":"Coll"}', '{"t":"start","id":1,"ts":-5,"type":"Coll"}',
               words=("no time, or one beyond any clock",))
    with_lines('{"t":"start","id":1,"ts":5,"type":"Sandwich"}', words=("no type of events",))
    with_lines('{"t":"start","id":1,"parent":7,"c":1,"tid":1,"ts":5,"type":"Coll"}', '{"t":"stop","id":1,"ts":6}',
               '{"t":"stop","id":1,"ts":7}', '{"t":"stop","id":2,"ts":7}', '{"t":"state","id":3,"ts":7,"state":"x"}',
               words=("h.jsonl:4: the parent of event 7", "h.jsonl:6: a second end", "h.jsonl:7: an end of event 2"))
    with_lines('{"t":"start","id":1,"parent":2,"c":1,"tid":1,"ts":5,"type":"Coll"}',
               '{"t":"start","id":2,"parent":1,"c":1,"tid":1,"ts":5,"type":"Coll"}', words=("before its parent",))
    with_lines('{"t":"start","id":1,"c":9,"tid":1,"ts":5,"type":"Coll"}', words=("no communicator of number 9",))
    with_lines('{"t":"comm","c":3,"comm":"zz","rank":5,"nranks":2147483647}', words=("rank 5 of 2147483647",))
    with_lines('{"t":"start","id":1,"c":1,"tid":1,"ts":5,"type":"Coll","func":"\x1b[31m<script>\\"","seq":1}',
               words=("_[31m<script>__",))
    with_lines('{"t":"ev","id":8,"c":1,"tid":1,"ts":5,"dur":9,"type":"Coll","func":"AllReduce","states":[["a",6,7],["b",7]]}',
               '{"t":"tomorrow","x":[{"y":"]"}]}', '{"t":"end"}', code=0, words=("sound: 1 events",))
    with_lines('{"t":"end"}', code=0, words=("sound: 0 events",))
    with_lines('{"t":"end"}', "x" * (3 << 20), "y", words=("a line of more than 1048576 bytes", "h.jsonl:6: no object"))
    os.unlink(path)
    said(trace(path, code=1), "No such file")
    said(trace(folder, code=1), "no *.jsonl")
    job = os.path.join(folder, "job.7")
    os.mkdir(job)
    open(os.path.join(job, "h.jsonl"), "w").close()
    said(trace(folder, code=1), f"there are some in {job}: give that")
    os.unlink(os.path.join(job, "h.jsonl"))
    os.rmdir(job)
    open(path, "w").close()
    said(trace(path, code=1), "no line `head`")
    said(trace("--flavour", path, code=2), "no option '--flavour'; `tutti")
    for output, source in ((path, path), (os.path.join(folder, "all.jsonl"), folder)):  # read and written
        said(trace("convert", "--to", "jsonl", "-o", output, source, code=2), "would be read with")
    check(not os.path.exists(os.path.join(folder, "all.jsonl")), "an output in the folder that is read")
    said(trace("--types", "Coll,Sandwich", path, code=2), "no type of events is called 'Sandwich'")
    dice = random.Random(7)
    sound = open(made(folder, nranks=1)[0], "rb").read()
    for _ in range(60):
        broken = bytearray(sound)
        for _ in range(dice.randrange(1, 30)):
            at = dice.randrange(len(broken))
            broken[at:at + dice.randrange(0, 4)] = bytes(dice.randrange(256) for _ in range(dice.randrange(0, 4)))
        with open(path, "wb") as out:
            out.write(broken)
        for command in (["check"], ["summary"], ["convert", "--to", "chrome"]):
            done = trace(*command, path, code=None)
            check(done.returncode in (0, 1) and "\x1b" not in done.stdout, f"{command}: {done}")


def shapes(folder):
    """Lines that look nearly like earlier ones: read as if they stood alone."""
    path = made(folder, nranks=1)[0]
    lines = open(path).read().splitlines()
    want = rows(path)
    dice = random.Random(3)
    for separators in ((",", ":"), (", ", ": "), (" ,", ":  ")):
        with open(path, "w") as out:
            for line in lines:
                members = list(json.loads(line).items())
                head = members[:1]
                dice.shuffle(members)
                out.write(json.dumps(dict(head + members), separators=separators) + "\n")
        check(rows(path) == want, f"separators {separators}")
    start = '{"t":"start","id":%s,"parent":0,"c":1,"tid":5,"ts":%s,"type":"Coll","func":"%s","seq":1}'
    plain = [start % (k, 5, "AllReduce") for k in range(1, 4)]
    for line, words in ((start % (9, "7.5", "AllReduce"), "sound: 4 events"), (start % (9, 7, "All\\\"x"), "sound: 4 events"),
                        (start % (9, "1" + 19 * "0", "AllReduce"), "no time, or one beyond any clock"),
                        (start % (9, "1" + 20 * "0", "AllReduce"), "a value that is none"),
                        (start % (9, "-7", "AllReduce"), "no time, or one beyond any clock"),
                        (start % (9, "7", "AllReduce") + "x", "more behind the object"),
                        (start % (9, "", "AllReduce"), "a value that is none"),
                        ((start % (9, 7, "AllReduce"))[:-1], "neither a comma nor the end")):
        with open(path, "w") as out:
            stops = [json.dumps({"t": "stop", "id": k, "ts": 8}, separators=(",", ":")) for k in (1, 2, 3, 9)]
            out.write("\n".join([*Rank(0, 1).lines[:3], *plain, line, *stops, '{"t":"end"}']) + "\n")
        said(trace("check", path, code=None), words)
    # Texts are remembered in few places: two of one line may have the same one.
    event = '{"t":"ev","id":%d,"parent":0,"c":1,"tid":5,"ts":%d,"dur":5,"type":"Coll","seq":%d,"func":"AllReduce","datatype":"%s",' \
        '"count":%d,"root":0,"algo":"%s","proto":"%s","channels":%d%s}'
    events = [(k, 1000 * k, k, dice.choice(("ncclInt8", "ncclFloat32")), dice.randrange(100000), dice.choice(("RING", "TREE", "PAT")),
               dice.choice(("LL", "SIMPLE")), dice.randrange(1, 33)) for k in range(1, 10001)]
    found = []
    for more in ("", ',"new":0.5'): # the second cannot be read by its shape
        with open(path, "w") as out:
            out.write("\n".join([*Rank(0, 1).lines[:3], *(event % (*e, more) for e in events), '{"t":"end"}']) + "\n")
        found.append(rows(path))
    check(found[0] == found[1], "words of lines that are read by their shapes")


def memory(folder):
    rank = Rank(0, 1)
    for k in range(4000):
        rank.collective(k * MS, k * MS + US)
    path = rank.end().write(folder)
    found, _ = rows("--memory", "1", path)
    check(0 < found["left_out"] and found["events"] * 72 < 1.2 * (1 << 20), f"{found['events']}, {found['left_out']}")
    said(trace("--memory", "1", path), "records were left out", "half of the limit of memory (1 MiB) is used")


def dumps(folder):
    """What a flight recorder kept of a process is read as well, and the newest file of a communicator counts."""
    def dump(name, pid, comms, why="asked"):
        lines = [dict(t="head", v=1, flight=why, host="one", pid=pid, exe="made", start_wall_ns=10**18, start_mono_ns=10**12,
                      clock="monotonic", api=0, mask=0)]
        for c, (comm, rank, begun) in enumerate(comms, 1):
            lines.append(dict(t="comm", c=c, comm=comm, name="", rank=rank, nranks=2))
            lines += [dict(t="ev", id=c * 1000 + k, c=c, tid=c, ts=10**11 + k * MS, dur=5, type="Coll", func="AllReduce",
                           datatype="ncclInt8", count=8, root=-1, seq=k, redop=0) for k in range(1, begun + 1)]
            lines.append(dict(t="flight", c=c, begun=begun, ended=begun, queued=0, abort=0))
            lines.append(dict(t="messages", c=c, peer=1 - rank, sent=begun, received=begun))
        lines.append(dict(t="end", starts=1, states=0, stops=1, open=0))
        with open(f"{folder}/{name}", "w") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))

    first, second, third = ("00000000000000%02x" % k for k in (1, 2, 3))
    dump("a.jsonl.9", 1, [(first, 0, 3), (second, 0, 1)])
    dump("a.jsonl.10", 1, [(second, 0, 2), (third, 0, 1)])
    dump("a.jsonl", 1, [(third, 0, 5)])
    dump("b.jsonl", 2, [(first, 1, 3), (second, 1, 2), (third, 1, 5)])
    dump("c.jsonl.x", 3, [(first, 1, 3)])
    done = trace("check", "--json", folder, code=1)
    found = json.loads(done.stdout)
    check(found["processes"] == 4 and found["events"] == 20 and not done.stderr, done)
    check({f["kind"] for f in found["findings"]} == {"written"}, found)
    os.unlink(f"{folder}/a.jsonl.10")  # now the oldest one tells of the second communicator
    done = trace("check", folder, code=1)
    said(done, f"{second}: rank 0 is behind, at operation 1")
    check(third not in done.stdout, done.stdout)
    said(trace("convert", "--to", "jsonl", "-o", f"{folder}/all.jsonl.3", folder, code=2), "would be read with")


    for name in os.listdir(folder):
        os.unlink(f"{folder}/{name}")
    dump("a.jsonl", 1, [(first, 0, 5), (second, 0, 2)], "asked for by its user")
    dump("b.jsonl", 2, [(first, 1, 5), (second, 1, 3)], "asked for by its user")
    notes = json.loads(trace("check", "--json", folder).stdout)["notes"]
    check([n.split(": ", 1)[1] for n in notes] == ["idle: its ranks have ended operation 5, and nobody waits",
          "at work: its ranks are at operation 2 to 3, and nobody has waited for 1 s"], notes)


def stops(folder):
    """Where a run stopped, and who waits for whom: each in the words of the text, which is in the JSON as well."""
    three = "ranks 0, 1 and 3 "
    wanted = {  # function, number, who waits, who is absent, whether it is a cause; and what is said of it
        "nothing": [("AllReduce", 0, [0, 1, 3], [2], True, f"stopped in AllReduce #0 of communicator 00000000000000ab: {three}waited 5.00 s "
                     "for rank 2, which never began it: it has begun nothing")],
        "behind": [("AllReduce", 3, [0, 1, 3], [2], True, three + "waited 5.00 s for rank 2, which never began it: it ended AllReduce #2 "
                    "at 2.10 ms and nothing after it")],
        "open": [("AllReduce", 3, [0, 1, 3], [2], True, three + "have waited since 4.00 ms for rank 2, which never began it")],
        "dies": [("AllReduce", 4, [0, 1, 3], [2], True, "and nothing after it, and its file breaks off: it died or was killed"),
                 ("Broadcast", 0, [], [2], False, "queued behind AllReduce #4, which came to no end")],
        "inside": [("AllReduce", 3, [0, 1, 2, 3], [], True, "began it; rank 2 did not end it; the file of rank 2 breaks off in it: it died")],
        "cut": [("AllReduce", 3, [0, 1, 2, 3], [], True, "whose files are here began it; it did not come to its end by itself: an error, a "
                 "time-out or an abort cut it off 5.00 s after the last one had begun it")] +
               [("AllReduce", k, [], [], False, "AllReduce #4 of communicator 00000000000000ab and 2 more: queued behind AllReduce #3")
                for k in (4, 5, 6)],
        "others": [("AllReduce", 3, [0, 2, 3], [1], False, "ranks called different operations, and wait for each other:"),
                   ("Broadcast", 0, [1], [0, 2, 3], False, "rank 0 waits in AllReduce #3")],
        "chain": [("Broadcast", 0, [0], [1], True, "communicator 00000000000000cd: rank 0 waited 5.00 s for rank 1, which never began it: "
                   "it has begun nothing"),
                  ("AllReduce", 3, [0, 1], [2, 3], True, "for ranks 2 and 3, which never began it: rank 2 waits in Broadcast #0 of "
                   "communicator 00000000000000cd; rank 3 ended AllReduce #2")],
        "circle": [("AllReduce", 3, [0, 1, 3], [2], False, "ranks wait for each other in a circle:"),
                   ("Broadcast", 0, [0], [1], False, "it waits in AllReduce #3 of communicator 00000000000000ab")],
        "unreceived": [("Send", 0, [], [3], True, "Send #0 of rank 1 to rank 3 of communicator 00000000000000ab: rank 1 ended it without "
                        "rank 3, which never began its Recv: it ended AllReduce #3")],
        "unsent": [("Recv", 0, [1], [3], True, "stopped in Recv #0 of rank 1 from rank 3 of communicator 00000000000000ab: rank 1 waited 5.00 s "
                    "for rank 3, which never began its Send: it ended AllReduce #2")],
    }
    for kind, want in wanted.items():
        os.makedirs(f"{folder}/{kind}")
        stopped(f"{folder}/{kind}", kind)
        found, _ = rows(f"{folder}/{kind}")
        seen = [(s["function"], s["number"], s["waiting"], s["absent"], s["cause"]) for s in found["stopped"]]
        check(sorted(seen) == sorted(w[:5] for w in want), f"{kind}: {found['stopped']}")
        text = trace(f"{folder}/{kind}").stdout
        check(all(w[5] in text for w in want) and all(s["text"] in text for s in found["stopped"]), f"{kind}: {text}")
    check(rows(f"{folder}/cut")[1][0]["operations"] == 3, "what was cut is no operation of the table")
    for kind, waiting, absent, says in (("absent", [0, 1, 3], [2], "ranks 0, 1 and 3 have waited since 2.00 ms for rank 2, which never began it: it ended "
                                         "AllReduce #2"), ("others", [0, 2, 3], [1], "which never began it: it waits in Broadcast #3"),
                                        ("inside", [0, 1, 2], [], "ranks 0 to 2 did not end it, and there is no file of rank 3; rank 0 has waited "
                                         "2.0 s: data of rank 2"), ("message", None, None, "rank 0 of communicator 00000000000000ab has waited 2.0 s in a "
                                                                    "Send or Recv: data of rank 2")):
        os.makedirs(f"{folder}/flown {kind}")
        flown(f"{folder}/flown {kind}", kind)
        found, _ = rows(f"{folder}/flown {kind}")
        check(says in trace(f"{folder}/flown {kind}").stdout, trace(f"{folder}/flown {kind}").stdout)
        seen = [(s["number"], s["waiting"], s["absent"]) for s in found["stopped"] if s["function"] == "AllReduce"]
        check(seen == ([(3, waiting, absent)] if waiting else []) and len(found["waits"]) == (not waiting), f"{kind}: {found}")
    os.makedirs(f"{folder}/good")
    made(f"{folder}/good")
    check(rows(f"{folder}/good")[0]["stopped"] == [] and "stopped" not in trace(f"{folder}/good").stdout, "a run that ended well")
    both = f"{folder}/good", f"{folder}/behind"
    text = trace("diff", *both, code=1).stdout
    check(text.startswith(f"second: stopped in AllReduce #3 of communicator 00000000000000ab: {three}waited 5.00 s for rank 2"), text)
    found = json.loads(trace("diff", "--json", *both, code=1).stdout)["stopped"]
    check(found["first"] == [] and found["second"][0]["absent"] == [2], found)


for case in (summary, stops, messages, types, chrome, others, differ, clocks, unsound, two_runs, bad_files, crowd, at_work, order, hostile, shapes, memory, dumps):
    with tempfile.TemporaryDirectory() as folder:
        case(folder)
    print(case.__name__, "passed")
