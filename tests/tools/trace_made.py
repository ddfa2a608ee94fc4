"""Files of ranks as the recorder writes them, made for tests whose answers are known."""
import json

US, MS = 1000, 1000000
COMM = "00000000000000ab"


class Rank:
    """The file of a rank whose clock shows `skew` more than the run's, and runs faster by `drift`."""

    def __init__(self, rank, nranks, host="one", pid=None, skew=0, drift=0.0, wall=0, comm=COMM):
        self.rank, self.skew, self.drift, self.id, self.lines = rank, skew, drift, 1 << 40, []
        self.seq, self.c = {}, 1  # c: the communicator of what begins next
        self.say(t="head", v=1, host=host, pid=pid or 100 + rank, exe="made", start_wall_ns=10**18 + wall,
                 start_mono_ns=self.clock(0), clock="monotonic", api=7, mask=4095)
        self.say(t="comm", c=1, comm=comm, name="", rank=rank, nranks=nranks, nnodes=1)
        self.say(t="thread", tid=5, name="main")
        self.counts = [0, 0, 0]

    def say(self, **members):
        self.lines.append(json.dumps(members, separators=(",", ":")))

    def clock(self, at):
        return int(10**12 + at * (1 + self.drift) + self.skew)

    def start(self, at, kind, parent=0, **members):
        self.id += 1
        self.counts[0] += 1
        self.say(t="start", id=self.id, parent=parent, c=self.c, tid=5, ts=self.clock(at), type=kind, **members)
        return self.id

    def state(self, at, event, name, value=0):
        self.counts[1] += 1
        self.say(t="state", id=event, ts=self.clock(at), state=name, value=value)

    def stop(self, at, event):
        self.counts[2] += 1
        self.say(t="stop", id=event, ts=self.clock(at))

    def collective(self, begin, end, func="AllReduce", count=256, root=-1, datatype="ncclFloat32", called=None, moved=None, cut=False):
        """From the call (just before its kernel, or earlier) to the end of its kernel, which has none where `begin` is one of the
        queue alone (`end` is "queued"), and which an abort ended (`cut`); `moved` is its type and count once called."""
        call = begin if called is None else called
        seq = self.seq[self.c, func] = self.seq.get((self.c, func), -1) + 1
        group = self.start(call - 3, "GroupApi", depth=1, captured=0)
        api = self.start(call - 2, "CollApi", group, func=func, datatype=datatype, count=count, root=root, captured=0)
        self.stop(call, api)
        datatype, count = moved or (datatype, count)
        coll = self.start(call - 1, "Coll", api, func=func, datatype=datatype, count=count, seq=seq, root=root, algo="RING",
                          proto="SIMPLE", channels=1, warps=1, group=0)
        self.stop(call, coll)
        self.stop(call, group)
        if end == "queued":
            return
        kernel = self.start(begin, "KernelCh", coll, channel=0, timer=1)
        if end is not None:
            self.state(end, kernel, "KernelChStop", 0 if cut else 2)
            self.stop(end, kernel)

    def join(self, c, comm, rank, nranks):
        """It is in a further communicator."""
        self.say(t="comm", c=c, comm=comm, name="", rank=rank, nranks=nranks, nnodes=1)

    def message(self, begin, end, func, peer, count=256):
        group = self.start(begin, "GroupApi", depth=1, captured=0)
        api = self.start(begin, "P2pApi", group, func=func, datatype="ncclInt8", count=count, captured=0)
        p2p = self.start(begin, "P2p", api, func=func, datatype="ncclInt8", count=count, peer=peer, channels=1, group=0)
        for event in (p2p, api, group):
            self.stop(end, event)

    def end(self, lost=0):
        self.say(t="end", starts=self.counts[0], states=self.counts[1], stops=self.counts[2], lost_starts=lost,
                 lost_states=0, lost_stops=0, open=self.counts[0] - self.counts[2])
        return self

    def write(self, folder, name=None):
        path = f"{folder}/{name or self.rank}.jsonl"
        with open(path, "w") as out:
            out.write("\n".join(self.lines) + "\n")
        return path


def made(folder, nranks=4, operations=10, **more):
    """Every rank begins 10 us after the one before it; all end 100 us after the last begins."""
    ranks = [Rank(r, nranks, **more) for r in range(nranks)]
    for k in range(operations):
        for r, rank in enumerate(ranks):
            at = k * MS
            rank.collective(at + r * 10 * US, at + (nranks - 1) * 10 * US + 100 * US)
    return [rank.end().write(folder) for rank in ranks]


def stopped(folder, kind):
    """Four ranks that come to no end, after three AllReduces of 100 us; `kind` is how. A time-out ends what waits after 5 s, but in `open`."""
    ranks = [Rank(r, 4) for r in range(4)]
    late, other = 5000 * MS, "00000000000000cd"
    before = 0 if kind == "nothing" else 3
    for k in range(before):
        for rank in ranks:
            rank.collective(k * MS, k * MS + 100 * US)
    at = before * MS
    if kind in ("nothing", "behind", "open", "dies"):
        for rank in ranks[:2] + ranks[3:]:
            if kind == "dies":  # rank 2 did this one as well, but did not write it any more
                rank.collective(at, at + 100 * US)
            rank.collective(at + MS, None if kind == "open" else late)
            if kind == "dies":  # queued behind it, and ended with it
                rank.collective(at + 2 * MS, late, "Broadcast", root=0)
    elif kind == "inside":  # rank 2 dies in it
        for rank in ranks:
            rank.collective(at, None if rank is ranks[2] else late)
    elif kind == "cut":  # all are in it when an abort ends it, and three wait behind it
        for rank in ranks:
            rank.collective(at, late, cut=True)
            for k in range(3):
                rank.collective(at + (k + 1) * MS, "queued")
    elif kind == "others":  # rank 1 calls something else
        for rank in ranks:
            rank.collective(at, late, "Broadcast" if rank is ranks[1] else "AllReduce", root=0 if rank is ranks[1] else -1)
    elif kind in ("chain", "circle"):  # ranks 0 and 1 wait for 2, which waits in a communicator of its own for 3
        for rank in ranks[2:]:
            rank.join(2, other, rank.rank - 2, 2)
        for rank in ranks[:2] + ranks[3:] * (kind == "circle"):
            rank.collective(at, late)
        ranks[2].c = 2
        ranks[2].collective(at, late, "Broadcast", root=0)
    elif kind == "unreceived":  # small enough to be sent without one who receives; the run goes on
        ranks[1].message(at, at + 10 * US, "Send", 3)
        for rank in ranks:
            rank.collective(at + MS, at + MS + 100 * US)
    elif kind == "unsent":
        ranks[1].message(at, late, "Recv", 3)
    for rank in ranks:
        if kind != "open" and not (kind in ("dies", "inside") and rank is ranks[2]):
            rank.end()
        rank.write(folder)


def flown(folder, kind):
    """What a flight recorder writes of four ranks that stand still: `absent` (rank 2 never began the third), `others` (rank 1 called another),
    `inside` (all are in it, rank 3 has no file), `message` (rank 0 waits for one)."""
    begun = {"absent": [3, 3, 2, 3], "others": [3] * 4, "inside": [3] * 3, "message": [2] * 4}[kind]
    for rank, most in enumerate(begun):
        lines = [dict(t="head", v=1, flight="comm ab stands still", host="one", pid=100 + rank, exe="made", start_wall_ns=10**18,
                      start_mono_ns=10**12 + 5000 * MS, clock="monotonic", api=0, mask=0),
                 dict(t="comm", c=1, comm=COMM, name="", rank=rank, nranks=4), dict(t="thread", tid=1, name="operations")]
        for k in range(1, most + 1):
            func = "Broadcast" if (kind, rank, k) == ("others", 1, 3) else "AllReduce"
            lines.append(dict(t="ev", id=k, c=1, tid=1, ts=10**12 + k * MS, func=func, datatype="ncclFloat32", count=1000, type="Coll", seq=k,
                              root=-1, redop=0, algo="RING", proto="LL", channels=1) | ({"dur": 100 * US} if k < 3 else {}))
        waits = most == 3 or (kind == "message" and rank == 0)
        lines.append(dict(t="flight", c=1, begun=most, ended=min(most, 2), queued=0, abort=0) |
                     (dict(waits="data of", peer=2, since=10**12 + 3000 * MS) if waits else {}))
        lines.append(dict(t="end", starts=most, states=0, stops=min(most, 2), open=0))
        with open(f"{folder}/{rank}.jsonl", "w") as out:
            out.write("".join(json.dumps(line) + "\n" for line in lines))


def crossing(folder):
    """As made(), and rank 0 has proxy operations that overlap, and a launch without an end."""
    made(folder)
    rank = Rank(0, 4)
    for k in range(10):
        rank.collective(k * MS, k * MS + 130 * US)
    a, b = (rank.start(at, "ProxyOp", channel=2, peer=1, steps=9, chunk=4, send=1, pid=100) for at in (20 * MS, 21 * MS))
    steps = [rank.start((20 + k) * MS + 1, "ProxyStep", a, step=k) for k in range(3)]
    for k, event in enumerate(steps + [a, b]):
        rank.stop(30 * MS + k, event)
    rank.start(40 * MS, "KernelLaunch")
    rank.end().write(folder)


def nests(slices):
    """Slices of one lane lie inside or behind each other."""
    open_ends = []
    for begin, end in slices:
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and open_ends[-1] < end:
            return False
        open_ends.append(end)
    return True
