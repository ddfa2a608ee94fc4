#!/usr/bin/env python3
"""Files of records: `tutti trace` reads in them what it reads in the lines of the same events, whole, in pieces, and cut
or changed anywhere as far as they are sound. usage: trace_records.py TUTTI TOUR PLUGIN"""
import json, os, random, subprocess, sys, tempfile

tutti, tour, plugin = sys.argv[1:4]
ROUNDS, PER_ROUND = 200, 20


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def trace(*args, code=0, **kw):
    done = subprocess.run([tutti, "trace", *map(str, args)], capture_output=True, timeout=100, **kw)
    check(code is None or done.returncode == code, f"exit {done.returncode}, not {code}, of {args}: {done.stdout}{done.stderr}")
    return done


def drive(folder, outputs, rounds=ROUNDS, **more):
    """The folder with the files that the plugin writes there."""
    os.mkdir(folder)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_TRACE", "NCCL_"))}
    env |= {"TUTTI_TRACE_OUTPUTS": outputs, "TUTTI_PROFILE_DIR": folder} | more
    done = subprocess.run([tour, plugin, str(rounds)], env=env, timeout=100)
    check(done.returncode == 0, f"{outputs}: the host ends with {done.returncode}")
    return folder


def only(folder, ending):
    paths = [f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(ending)]
    check(len(paths) == 1, f"one file *{ending}: {os.listdir(folder)}")
    return paths[0]


def events(*paths, **kw):
    """All events without times; threads by their order. In the order of each thread, as files have it in turns."""
    threads, found = {}, {}
    lines = [json.loads(line) for line in trace("convert", "--to", "jsonl", *paths, **kw).stdout.splitlines()]
    ids = {}
    for line in lines:
        if line["t"] == "thread":
            threads[line["tid"]] = len(threads)
    for line in lines:
        if line["t"] == "ev":
            mine = found.setdefault(threads[line["tid"]], [])
            ids[line["id"]] = (threads[line["tid"]], len(mine))
            mine.append(line)
    for mine in found.values():
        for line in mine:
            check(line["dur"] >= 0 and all(line["ts"] <= s[1] <= line["ts"] + line["dur"] for s in line.get("states", ())), line)
            line["parent"] = ids.get(line["parent"])
            line["states"] = [[name, value] for name, _, value in line.get("states", ())]
            for member in ("id", "ts", "dur", "tid"):
                del line[member]
    return found


def same(folder):
    as_lines, as_records = drive(f"{folder}/lines", "jsonl"), drive(f"{folder}/records", "records")
    path = only(as_records, ".records")
    check(os.path.getsize(path) * 3 < os.path.getsize(only(as_lines, ".jsonl")), "records are a third of lines at most")
    want, got = events(as_lines), events(as_records)
    check(sum(map(len, want.values())) == ROUNDS * PER_ROUND, {k: len(v) for k, v in want.items()})
    types = {e["type"] for mine in want.values() for e in mine}
    check(len(types) == 16, f"all types: {types}")
    for thread, mine in want.items():
        for k, event in enumerate(mine):
            check(got[thread][k] == event, f"thread {thread}, event {k}: {got[thread][k]} is not {event}")
    check(got == want, "as many events")
    said = [trace("check", where, code=1) for where in (as_lines, as_records)]  # a message to oneself that is not received
    check(said[0].stdout == said[1].stdout and not said[1].stderr, f"check: {said}")
    few = drive(f"{folder}/few", "records", TUTTI_TRACE_RING="16")
    trace("check", few, code=None)
    both = drive(f"{folder}/both", "records,inspector,prometheus")
    only(both, ".log"), only(both, ".prom")
    check(events(both) == want, "records beside the inspector's lines")
    kept = drive(f"{folder}/kept", "records", TUTTI_TRACE_KEEP="64M")
    check(events(only(kept, ".jsonl")) == want, "what is kept is written as lines")
    mixed = trace("summary", "--json", as_lines, as_records)
    check(json.loads(mixed.stdout)["events"] == 2 * ROUNDS * PER_ROUND, "both in one run")
    return path, want


def pieces(path, want):
    """Through a pipe, which gives any number of bytes at a time."""
    data = open(path, "rb").read()
    dice = random.Random(5)
    for most in (1, 7, 100, 5000):
        child = subprocess.Popen([tutti, "trace", "convert", "--to", "jsonl", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        at = 0
        until = 3000 if most == 1 else len(data)
        while at < len(data):
            step = dice.randrange(1, most + 1) if at < until else len(data)
            child.stdin.write(data[at:at + step])
            child.stdin.flush()
            at += step
        out = child.communicate(timeout=100)[0]
        check(child.returncode == 0 and out.count(b'"t":"ev"') == ROUNDS * PER_ROUND, f"pieces of {most}: {child.returncode}")


def ends(data, at):
    """Where a line or a block of records ends, from at on: a file that is cut there is whole."""
    found = {at}
    while at < len(data):
        end = data.index(b"\n", at) + 1
        line = json.loads(data[at:end])
        at = end + (8 * line["words"] if line["t"] == "records" else 0)
        found.add(at)
    return found


def broken(folder, path):
    """Cut anywhere: what is before is read. Changed anywhere: an answer, a sentence, no crash."""
    data = open(only(drive(f"{folder}/small", "records", rounds=30), ".records"), "rb").read()
    other = f"{folder}/other.records"
    dice = random.Random(11)
    first = data.index(b'"t":"records"')
    blocks = data.index(b"\n", first) + 1
    whole = ends(data, data.rindex(b"\n", 0, first) + 1)
    before = -1
    for cut in [blocks + k for k in range(0, 100, 3)] + sorted(dice.randrange(blocks, len(data)) for _ in range(30)):
        with open(other, "wb") as out:
            out.write(data[:cut])
        done = trace("summary", "--json", other, code=0)
        found = json.loads(done.stdout)["events"]
        check(found >= before and (cut == blocks or cut in whole or done.stderr), f"cut at {cut}: {found} after {before}, {done.stderr}")
        before = found
    check(before > 200, before)
    for _ in range(80):
        bad = bytearray(data)
        for _ in range(dice.randrange(1, 20)):
            at = dice.randrange(first, len(bad))
            bad[at:at + dice.randrange(0, 9)] = bytes(dice.choice((0, 1, 2, 3, 255, dice.randrange(256))) for _ in range(dice.randrange(0, 9)))
        with open(other, "wb") as out:
            out.write(bad)
        done = trace(dice.choice(("check", "summary")), other, code=None)
        check(done.returncode in (0, 1) and b"\x1b" not in done.stdout + done.stderr, f"{done}")
    head = data[:first - 1]
    for line, said in ((b'{"t":"records","tid":1,"id":1,"base":1,"words":99999999999999999999}', b"a value that is none"),
                       (b'{"t":"records","tid":1,"id":1,"base":9223372036854775807,"words":4}', b"a time beyond any clock"),
                       (b'{"t":"word","n":512,"name":"x"}', b"a word without a number"),
                       (b'{"t":"word","n":5}', b"a word without a number"),
                       (b'{"t":"records","tid":1,"id":1,"base":1,"words":4}\n' + b"\xff" * 32, b"not sound from its byte 0 on"),
                       (b'{"t":"records","tid":1,"id":1,"base":1,"words":1}\n' + b"\2" + b"\0" * 7, b"not sound from its byte 0 on"),
                       (b'{"t":"records","tid":1,"id":1,"base":1,"words":3}\n' + b"\0" * 16 + b"\0" * 6 + b"\x7f\0", b"no type of events has the number"),
                       (b'{"t":"records","tid":1,"id":1,"base":1,"words":4}\n' + b"\0" * 9, b"in the middle of its records")):
        with open(other, "wb") as out:
            out.write(head + line + b"\n")
        done = trace("check", other, code=1)
        check(said in done.stderr, f"{said} in {done.stderr}")


def sizes(folder):
    """A real run, all events: what a call of the host takes in the ring, which a block has as it was."""
    os.mkdir(folder)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_TRACE", "NCCL_"))}
    env |= {"TUTTI_TRACE_OUTPUTS": "records", "TUTTI_PROFILE_DIR": folder, "NCCL_PROFILER_PLUGIN": os.path.abspath(plugin)}
    done = subprocess.run([tutti, "perf", "--ranks", "2", "-b", "1K", "-e", "1K", "-n", "20", "allreduce"], env=env, capture_output=True,
                          timeout=100)
    check(done.returncode == 0, done)
    for name in os.listdir(folder):
        data, at, words, calls = open(f"{folder}/{name}", "rb").read(), 0, 0, 0
        while at < len(data):
            end = data.index(b"\n", at) + 1
            line = json.loads(data[at:end])
            calls += sum(line[kind] for kind in ("starts", "states", "stops")) if line["t"] == "end" else 0
            block = line["words"] if line["t"] == "records" else 0
            words, at = words + block, end + 8 * block
        check(0 < 8 * words <= 24 * calls, f"{8 * words} bytes of {calls} calls")


with tempfile.TemporaryDirectory() as folder:
    sizes(f"{folder}/sizes")
    path, want = same(folder)
    pieces(path, want)
    broken(folder, path)
