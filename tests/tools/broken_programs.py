#!/usr/bin/env python3
"""`tutti verify` against a simulator of its own: sound programs of MSCCL are broken in one spot each (an offset, a count, a
type, a dependency, a step too few or too many, two steps exchanged, a buffer, a peer). What is proved must be right under
every schedule that is tried; what is refused names line, rank and chunk, instruction or block.
broken_programs.py TUTTI PROGRAMS [COUNT SEED]"""
import copy, os, random, re, subprocess, sys
import xml.etree.ElementTree as ET
from collections import Counter, deque

TUTTI, PROGRAMS = sys.argv[1], sys.argv[2]
COUNT, SEED = (int(a) for a in sys.argv[3:5]) if len(sys.argv) > 3 else (90, 3)
FILES = ["allreduce-halving", "allreduce-pairs", "allreduce-pairs-op", "allreduce-ring", "alltoall", "alltoall-square"]
SCHEDULES, SLOTS = 20, 8
RECEIVES, SENDS, REDUCES = {"r", "rcs", "rrc", "rrs", "rrcs"}, {"s", "rcs", "rrs", "rrcs"}, {"rrc", "rrs", "rrcs"}


class Wrong(Exception):
    pass


class Run:
    """One schedule of a file: memory holds which inputs a chunk is the sum of; None is memory that was not written."""

    def __init__(self, root, rnd):
        self.rnd, self.root, self.n, self.chunks = rnd, root, int(root.get("ngpus")), int(root.get("nchunksperloop"))
        self.blocks, self.done, self.queues, self.memory = {}, {}, {}, {}
        for gpu in root.findall("gpu"):
            rank = int(gpu.get("id"))
            own = [Counter({(rank, c): 1}) for c in range(self.chunks)]
            in_place = root.get("inplace") == "1" and root.get("outofplace") != "1"
            self.memory[rank] = {"i": own, "o": own if in_place else [None] * self.chunks, "s": [None] * int(gpu.get("s_chunks"))}
            for tb in gpu.findall("tb"):
                self.blocks[rank, int(tb.get("id"))] = tb, tb.findall("step")
                self.done[rank, int(tb.get("id"))] = 0

    def chunk(self, rank, step, side, k):
        memory, at = self.memory[rank][step.get(side + "buf")], int(step.get(side + "off")) + k
        if at >= len(memory):
            raise Wrong("beyond a buffer")
        return memory, at

    def take(self, rank, step, side, k):
        memory, at = self.chunk(rank, step, side, k)
        if memory[at] is None:
            raise Wrong("reads what nobody wrote")
        return Counter(memory[at])

    def step(self, key):
        """Whether the block's next step could be done."""
        rank, (tb, steps) = key[0], self.blocks[key]
        step, channel = steps[self.done[key]], tb.get("chan")
        kind, count, waits = step.get("type"), int(step.get("cnt")), (rank, int(step.get("depid")))
        if waits[1] >= 0 and self.done.get(waits, -1) <= int(step.get("deps")):
            return False
        came = self.queues.setdefault((int(tb.get("recv")), rank, channel), deque())
        goes = self.queues.setdefault((rank, int(tb.get("send")), channel), deque())
        if (kind in RECEIVES and not came) or (kind in SENDS and len(goes) >= SLOTS):
            return False
        values = came.popleft() if kind in RECEIVES else []
        if kind in RECEIVES and len(values) != count:
            raise Wrong("another count than was sent")
        if kind in REDUCES:
            values = [self.take(rank, step, "src", k) + values[k] for k in range(count)]
        elif kind in ("s", "cpy"):
            values = [self.take(rank, step, "src", k) for k in range(count)]
        elif kind == "re":
            values = [self.take(rank, step, "dst", k) + self.take(rank, step, "src", k) for k in range(count)]
        for k in range(count if kind in ("r", "rcs", "rrc", "rrcs", "cpy", "re") else 0):
            memory, at = self.chunk(rank, step, "dst", k)
            memory[at] = values[k]
        if kind in SENDS:
            goes.append([Counter(value) for value in values])
        self.done[key] += 1
        return True

    def wanted(self, rank, chunk):
        if self.root.get("coll") == "allreduce":
            return Counter({(peer, chunk): 1 for peer in range(self.n)})
        each = self.chunks // self.n
        return Counter({(chunk // each, rank * each + chunk % each): 1})

    def end(self):
        while True:
            left = [key for key, (_, steps) in self.blocks.items() if self.done[key] < len(steps)]
            if not left:
                break
            self.rnd.shuffle(left)
            if not any(self.step(key) for key in left):
                raise Wrong("nobody can go on")
        for rank in range(self.n):
            if any(self.memory[rank]["o"][c] != self.wanted(rank, c) for c in range(self.chunks)):
                raise Wrong("wrong result")
        if any(self.queues.values()):
            raise Wrong("sends what nobody takes")


def renumber(tb):
    for at, step in enumerate(tb.findall("step")):
        step.set("s", str(at))


def broken(root, rnd):
    """The file with one fault, and what was done."""
    root = copy.deepcopy(root)
    gpu = rnd.choice(root.findall("gpu"))
    tb = rnd.choice([tb for tb in gpu.findall("tb") if len(tb)])
    step = rnd.choice(tb.findall("step"))
    fault = rnd.choice(["srcoff", "dstoff", "cnt", "type", "dependency", "drop", "twice", "exchange", "srcbuf", "dstbuf", "send", "recv"])
    if fault in ("srcoff", "dstoff", "cnt"):
        step.set(fault, str(max(0, int(step.get(fault)) + rnd.choice([-1, 1]))))
    elif fault == "type":
        step.set("type", rnd.choice(["s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re"]))
    elif fault == "dependency":
        for other in gpu.iter("step"):
            other.set("depid", "-1")
            other.set("deps", "-1")
    elif fault in ("srcbuf", "dstbuf"):
        step.set(fault, rnd.choice("ios"))
    elif fault in ("send", "recv"):
        tb.set(fault, str(rnd.randrange(-1, int(root.get("ngpus")))))
    else:
        at = list(tb).index(step)
        if fault == "twice":
            tb.insert(at, copy.deepcopy(step))
        else:
            tb.remove(step)
        if fault == "exchange":
            tb.insert(max(0, at - 1), step)
        renumber(tb)
    return fault, root


def simulate(root):
    for schedule in range(SCHEDULES):
        try:
            Run(root, random.Random(schedule)).end()
        except Wrong as wrong:
            return str(wrong)
    return None


rnd, faults, refused = random.Random(SEED), [], 0
roots = [ET.parse(os.path.join(PROGRAMS, name + ".xml")).getroot() for name in FILES]
for name, root in zip(FILES, roots):
    if simulate(root):
        faults.append(f"{name}: the simulator finds it wrong: {simulate(root)}")
for number in range(COUNT):
    which = rnd.randrange(len(FILES))
    fault, root = broken(roots[which], rnd)
    text = ET.tostring(root, encoding="unicode")
    ran = subprocess.run([TUTTI, "verify", "-"], input=text, capture_output=True, text=True, timeout=120)
    said, wrong = (ran.stderr or ran.stdout).strip(), simulate(root)
    where = f"seed {SEED}, {number}: {FILES[which]} with another {fault}"
    if ran.returncode == 0 and wrong:
        faults.append(f"{where}: proved, but {wrong}")
    elif ran.returncode == 1:
        refused += 1
        named = re.match(r"-:[1-9]\d*: ", said) and ("insn" in said or "tb" in said or "never written" in said)
        if not named or "\n" in said:
            faults.append(f"{where}: refused without place or in several lines: {said}")
    elif ran.returncode != 0:
        faults.append(f"{where}: ended with {ran.returncode}: {said}")
if refused < COUNT // 3:
    faults.append(f"only {refused} of {COUNT} were refused")
print(f"{COUNT} broken programs, {refused} refused")
if faults:
    sys.exit("\n".join(faults))
