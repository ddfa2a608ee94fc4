#!/usr/bin/env python3
"""Texts that `tutti trace convert` writes: numbers of every length are exact, also where a block of output ends, and an event
takes few instructions (counted by valgrind; skipped without it). Events of millions of bytes are the same wherever they lie in
memory, and kernels belong to their operation also where they stand before it. usage: trace_cost.py TUTTI"""
import json, os, re, resource, shutil, subprocess, sys, tempfile

from trace_made import Rank

tutti = sys.argv[1]
MOST_OF_CHECK = 1900  # to read an event of 2.25 lines and check it; 3506 when each line looked for the end of its text first
MOST = {"jsonl": 2500, "chrome": 3500, "perfetto": 3500}  # instructions to write an event; jsonl took 6758 with printf


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def convert(to, *paths):
    done = subprocess.run([tutti, "trace", "convert", "--to", to, *paths], capture_output=True, timeout=100)
    check(done.returncode == 0 and not done.stderr, f"exit {done.returncode} of {to}: {done.stderr}")
    return done.stdout


def numbers(folder):
    """Around each power of ten and of two; a message before each shifts where the block of output ends."""
    tens = {10**k + d for k in range(20) for d in (-1, 0, 1)} | {2**k - 1 for k in range(65)}
    values = sorted(v for v in tens if v < 2**64) * 12
    rank, at = Rank(0, 1), 0
    for k, value in enumerate(values):
        at += value % 100003
        coll = rank.start(at, "Coll", func="AllReduce", datatype="ncclInt8", count=value, seq=value, root=-(value % 10**9),
                          channels=value % 65536, warps=value % 256, algo="RING"[: k % 4 + 1], proto="LL")
        rank.state(at, coll, "KernelChStop", value)
        rank.stop(at + value % 10**15, coll)
    path = rank.end().write(folder)
    made = [json.loads(line) for line in rank.lines]
    starts = [line for line in made if line["t"] == "start"]
    first = starts[0]["ts"]
    text = convert("jsonl", path).decode()
    check(len(text) > 1 << 18, "several blocks")
    events = [line for line in text.splitlines() if '"t":"ev"' in line]
    check(len(events) == len(starts), f"{len(events)} events")
    shift = json.loads(events[0])["ts"] - first
    for k, (line, start, value) in enumerate(zip(events, starts, values)):
        want = f'{{"t":"ev","id":{k + 1},"parent":0,"c":1,"tid":5,"ts":{start["ts"] + shift},"dur":{value % 10**15},"type":"Coll",'
        want += f'"func":"AllReduce","datatype":"ncclInt8","algo":"{start["algo"]}","proto":"LL",'
        want += (f'"count":{value},' if value else "") + f'"seq":{value},"peer":{start["root"]}'
        want += f',"channel":{value % 65536}' * (value % 65536 > 0) + f',"warps":{value % 256}' * (value % 256 > 0)
        want += f',"states":[["KernelChStop",{start["ts"] + shift},{value}]]}}'
        check(line == want, f"{line}\nis not {want}")
    chrome = re.findall(r'"ts":([0-9.]+),"dur":([0-9.]+),"args":\{"type":"Coll","comm":"00000000000000ab"', convert("chrome", path).decode())
    want = [tuple(f"{ns // 1000}.{ns % 1000:03d}" for ns in (s["ts"] + shift, v % 10**15)) for s, v in zip(starts, values)]
    check(sorted(chrome) == sorted(want), f"times in Chrome's JSON: {sorted(set(chrome) ^ set(want))[:4]}")


def many(folder):
    """4 MiB of events and as many of states: with addresses for all of the machine's memory, and where there are none."""
    rank = Rank(0, 1)
    for k in range(15000):
        at = k * 10**6
        rank.collective(at, at + 12345)
        for n in range(12):
            rank.state(at + 12000 + n, rank.id, "KernelChStop", n)
    path = rank.end().write(folder, "many")
    few = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    texts = [subprocess.run([tutti, "trace", "convert", "--to", "jsonl", path], capture_output=True, timeout=100, preexec_fn=limit)
             for limit in (None, few)]
    for done in texts:
        check(done.returncode == 0 and not done.stderr, f"exit {done.returncode}: {done.stderr}")
    check(texts[0].stdout == texts[1].stdout, "the same events")
    check(texts[0].stdout.count(b'"t":"ev"') == 60000 and texts[0].stdout.count(b"KernelChStop") == 13 * 15000, "all of them")


def turned(folder):
    """The line of a KernelCh before that of its Coll."""
    rank = Rank(0, 1)
    for k in range(3):
        rank.collective(k * 10**6, k * 10**6 + 12345 + k, called=k * 10**6 - 500)
    rank.end()
    before = rank.write(folder, "before")
    where = {name: [n for n, line in enumerate(rank.lines) if f'"type":"{name}"' in line] for name in ("Coll", "KernelCh")}
    for coll, kernel in zip(where["Coll"], where["KernelCh"]):
        rank.lines[coll], rank.lines[kernel] = rank.lines[kernel], rank.lines[coll]
    texts = [subprocess.run([tutti, "trace", "--json", path], capture_output=True, text=True, timeout=100).stdout
             for path in (before, rank.write(folder, "turned"))]
    rows = [json.loads(text)["communicators"][0]["operations"] for text in texts]
    check(rows[0] and rows[0] == rows[1] and rows[0][0]["usec"]["p50"] < 13, f"{rows[0]} is not {rows[1]}")


def instructions(*arguments):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", tutti, "trace", *arguments],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=250)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        print(f"not counted: valgrind does not run it: {done.stderr[-300:]}")
        sys.exit(77)
    return int(found[1])


def cost(folder):
    FEW, MANY, EVENTS = 200, 2200, 4
    paths = []
    for count in (FEW, MANY):
        rank = Rank(0, 1)
        for k in range(count):
            rank.collective(k * 10**6, k * 10**6 + 12345)
        paths.append(rank.end().write(folder, f"{count}"))
    grown = {to: [instructions(*to, path) for path in paths] for to in [("check",)] + [("convert", "--to", f) for f in MOST]}
    slope = {to[-1]: (b - a) / ((MANY - FEW) * EVENTS) for to, (a, b) in grown.items()}
    check(slope["check"] < MOST_OF_CHECK, f"{slope['check']:.0f} instructions to read and check an event")
    for to, most in MOST.items():
        each = slope[to] - slope["check"]
        print(f"{to}: {each:.0f} instructions an event beyond those of check ({slope['check']:.0f})")
        check(each < most, f"more than {most}")


def chain(folder):
    """Each step the child of the one before it, in a file that was made so: a walk up to the first one for each of them
    takes 36,000 instructions an event."""
    DEEP, MOST_OF_CHAIN = 8000, 15000
    rank, above = Rank(0, 1), 0
    for k in range(DEEP):
        above = rank.start(k, "ProxyStep", above, step=k)
    took = instructions("convert", "--to", "chrome", rank.end().write(folder, "chain")) / DEEP
    print(f"chain: {took:.0f} instructions an event")
    check(took < MOST_OF_CHAIN, f"more than {MOST_OF_CHAIN}")


with tempfile.TemporaryDirectory() as folder:
    numbers(folder)
    many(folder)
    turned(folder)
    if not shutil.which("valgrind"):
        print("not counted: no valgrind")
        sys.exit(77)
    cost(folder)
    chain(folder)
