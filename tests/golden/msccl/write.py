#!/usr/bin/env python3
"""Writes the algorithms of this folder in MSCCL's XML: well-known ones, one function each. usage: write.py FOLDER"""
import os
import sys


class Algorithm:
    """An algorithm that grows step by step; blocks are found by (send, recv, channel) and made when they are first used."""

    def __init__(self, name, coll, ranks, chunks, uses, inplace, outofplace, channels=1, proto="Simple", sizes=(0, 0)):
        self.head = dict(name=name, proto=proto, nchannels=channels, nchunksperloop=chunks, ngpus=ranks, coll=coll,
                         inplace=inplace, outofplace=outofplace, minBytes=sizes[0], maxBytes=sizes[1])
        self.uses = uses  # chunks of input, output, scratch of every rank
        self.blocks = [[] for _ in range(ranks)]

    def block(self, rank, send=-1, recv=-1, channel=0, fresh=False):
        """Number of the block with these peers."""
        wanted = (send, recv, channel)
        for number, (key, _) in enumerate(self.blocks[rank]):
            if key == wanted and not fresh:
                return number
        self.blocks[rank].append((wanted, []))
        return len(self.blocks[rank]) - 1

    def step(self, rank, block, kind, src=("i", -1), dst=("o", -1), count=1, after=None):
        """Append a step; `after`: (block, step) or a list of them. Returns (block, step)."""
        steps = self.blocks[rank][block][1]
        after = [] if after is None else after if isinstance(after, list) else [after]
        for number, wait in enumerate(after):
            self.blocks[rank][wait[0]][1][wait[1]]["hasdep"] = 1
            if number < len(after) - 1:
                steps.append(dict(s=len(steps), type="nop", srcbuf="i", srcoff=-1, dstbuf="o", dstoff=-1, cnt=0, depid=wait[0],
                                  deps=wait[1], hasdep=0))
        last = after[-1] if after else (-1, -1)
        steps.append(dict(s=len(steps), type=kind, srcbuf=src[0], srcoff=src[1], dstbuf=dst[0], dstoff=dst[1], cnt=count,
                          depid=last[0], deps=last[1], hasdep=0))
        return block, len(steps) - 1

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            put = lambda indent, tag, end, values: print(
                " " * indent + "<" + tag + "".join(f' {key}="{value}"' for key, value in values.items()) + end, file=out)
            put(0, "algo", ">", self.head)
            for rank, blocks in enumerate(self.blocks):
                put(2, "gpu", ">", dict(zip(("id", "i_chunks", "o_chunks", "s_chunks"), (rank, *self.uses))))
                for number, ((send, recv, channel), steps) in enumerate(blocks):
                    put(4, "tb", ">", dict(id=number, send=send, recv=recv, chan=channel))
                    for step in steps:
                        put(6, "step", "/>", step)
                    print("    </tb>", file=out)
                print("  </gpu>", file=out)
            print("</algo>", file=out)


def allreduce_ring(n=4, channels=2):
    """Chunk c of a channel goes round twice: once to be summed, once to be told."""
    algo = Algorithm("allreduce-ring", "allreduce", n, n * channels, (n * channels, n * channels, 0), 1, 1, channels, "LL",
                     (0, 1 << 20))
    for channel in range(channels):
        for rank in range(n):
            block = algo.block(rank, (rank + 1) % n, (rank - 1) % n, channel)
            at = lambda back: channel * n + (rank - back) % n
            both = lambda back: dict(src=("i", at(back)), dst=("o", at(back)))
            algo.step(rank, block, "s", **both(1))
            for back in range(2, n):
                algo.step(rank, block, "rrs", **both(back))
            algo.step(rank, block, "rrcs", **both(0))
            for back in range(1, n - 1):
                algo.step(rank, block, "rcs", **both(back))
            algo.step(rank, block, "r", **both(n - 1))
    return algo


def allreduce_pairs(n=4, part=2, inplace=True):
    """Each rank sends each other one its part, which adds it up with what is in scratch and sends the sum back."""
    keep = "i" if inplace else "o"
    chunks = n * part
    algo = Algorithm("allreduce-pairs" + ("" if inplace else "-op"), "allreduce", n, chunks,
                     (chunks, 0 if inplace else chunks, (n - 1) * part), int(inplace), int(not inplace), 1, "Simple")
    for rank in range(n):
        others = [(rank + k) % n for k in range(1, n)]
        sums = [algo.block(rank, fresh=True) for _ in range(part)]
        arrived = []
        for k, peer in enumerate(others):
            block = algo.block(rank, peer, peer)
            algo.step(rank, block, "s", ("i", peer * part), ("s", 0), part)
            arrived.append(algo.step(rank, block, "r", ("i", rank * part), ("s", k * part), part))
        done = []
        for j, block in enumerate(sums):
            mine = (keep, rank * part + j)
            if not inplace:
                algo.step(rank, block, "cpy", ("i", rank * part + j), mine)
            for k in range(n - 1):
                last = algo.step(rank, block, "re", ("s", k * part + j), mine, 1, arrived if k == 0 else None)
            done.append(last)
        for peer in others:
            block = algo.block(rank, peer, peer)
            algo.step(rank, block, "s", (keep, rank * part), (keep, rank * part), part, done)
            algo.step(rank, block, "r", (keep, peer * part), (keep, peer * part), part)
    return algo


def allreduce_halving(n=4):
    """Halves are exchanged with the partner and summed, the owned piece halves; then the way back. In place."""
    algo = Algorithm("allreduce-halving", "allreduce", n, n, (n, 0, 0), 1, 0)
    for rank in range(n):
        before, distance = None, n // 2
        while distance:
            partner = rank ^ distance
            mine, theirs = rank & -distance, partner & -distance
            block = algo.block(rank, partner, partner)
            algo.step(rank, block, "s", ("i", theirs), ("i", theirs), distance, before)
            before = algo.step(rank, block, "rrc", ("i", mine), ("i", mine), distance)
            distance //= 2
        distance = 1
        while distance < n:
            partner = rank ^ distance
            mine, theirs = rank & -distance, partner & -distance
            block = algo.block(rank, partner, partner)
            waits = before if before and before[0] != block else None
            algo.step(rank, block, "s", ("i", mine), ("i", mine), distance, waits)
            before = algo.step(rank, block, "r", ("i", theirs), ("i", theirs), distance)
            distance *= 2
    return algo


def alltoall(n=4, channels=2):
    """Every block goes straight to its rank, one part on each channel."""
    chunks = n * channels
    algo = Algorithm("alltoall", "alltoall", n, chunks, (chunks, chunks, 0), 0, 1, channels, "LL", (0, 9216))
    for rank in range(n):
        for channel in range(channels):
            for peer in range(n):
                there, here = peer * channels + channel, rank * channels + channel
                if peer == rank:
                    algo.step(rank, algo.block(rank, fresh=True), "cpy", ("i", here), ("o", here))
                else:
                    algo.step(rank, algo.block(rank, peer, -1, channel), "s", ("i", there), ("o", here))
                    algo.step(rank, algo.block(rank, -1, peer, channel), "r", ("i", here), ("o", there))
    return algo


def alltoall_square(side=2):
    """Blocks travel along their row into scratch, then along the column, several at once."""
    n = side * side
    algo = Algorithm("alltoall-square", "alltoall", n, n, (n, n, side * side), 0, 1)
    for rank in range(n):
        row, column = divmod(rank, side)
        ready = []
        for other in range(side):  # in scratch: [rank of the row][row that it is for]
            peer = row * side + other
            for target in range(side):
                if peer == rank:
                    block = algo.block(rank)
                    ready.append(algo.step(rank, block, "cpy", ("i", target * side + column), ("s", other * side + target)))
                else:
                    block = algo.block(rank, peer, peer)
                    algo.step(rank, block, "s", ("i", target * side + other), ("s", 0))
                    ready.append(algo.step(rank, block, "r", ("i", 0), ("s", other * side + target)))
        for other in range(side):
            peer = other * side + column
            for source in range(side):
                if peer == rank:
                    algo.step(rank, algo.block(rank, channel=0, fresh=True), "cpy", ("s", source * side + other),
                              ("o", row * side + source), 1, ready)
                else:
                    block = algo.block(rank, peer, peer)
                    algo.step(rank, block, "s", ("s", source * side + other), ("o", 0), 1, ready if source == 0 else None)
            if peer != rank:
                block = algo.block(rank, peer, peer)
                for source in range(side):
                    algo.step(rank, block, "r", ("s", 0), ("o", other * side + source))
    return algo


def allgather_ring(n=5, inplace=True):
    """Blocks go round."""
    algo = Algorithm("allgather-ring" + ("" if inplace else "-op"), "allgather", n, n, (0 if inplace else 1, n, 0), int(inplace),
                     int(not inplace))
    for rank in range(n):
        block = algo.block(rank, (rank + 1) % n, (rank - 1) % n)
        if inplace:
            algo.step(rank, block, "s", ("o", rank), ("o", rank))
        else:
            algo.step(rank, block, "cpy", ("i", 0), ("o", rank))
            algo.step(rank, block, "s", ("i", 0), ("o", rank))
        for back in range(1, n - 1):
            at = ("o", (rank - back) % n)
            algo.step(rank, block, "rcs", at, at)
        at = ("o", (rank + 1) % n)
        algo.step(rank, block, "r", at, at)
    return algo


def reducescatter_ring(n=3, part=2, inplace=True):
    """Sums go round, kept where the input was, or nowhere."""
    algo = Algorithm("reducescatter-ring" + ("" if inplace else "-op"), "reduce_scatter" if inplace else "reducescatter", n, n * part,
                     (n * part, 0 if inplace else part, 0), int(inplace), int(not inplace))
    for rank in range(n):
        block = algo.block(rank, (rank + 1) % n, (rank - 1) % n)
        at = lambda back: ("i", (rank - back) % n * part)
        algo.step(rank, block, "s", at(1), at(1), part)
        for back in range(2, n):
            if inplace:
                algo.step(rank, block, "rrc", at(back), at(back), part)
                algo.step(rank, block, "s", at(back), at(back), part)
            else:
                algo.step(rank, block, "rrs", at(back), at(back), part)
        algo.step(rank, block, "rrc", at(0), at(0) if inplace else ("o", 0), part)
    return algo


def chain(coll, n=4, chunks=3):
    """From rank 0 to the last one, or back, chunk by chunk."""
    back = coll == "reduce"
    algo = Algorithm(coll + "-chain", coll, n, chunks, (chunks, chunks, 0), 1, 1)
    for rank in range(n):
        before, after = (rank - 1 if rank else -1), (rank + 1 if rank < n - 1 else -1)
        send, recv = (before, after) if back else (after, before)
        block = algo.block(rank, send, recv)
        for chunk in range(chunks):
            place = dict(src=("i", chunk), dst=("o", chunk))
            if recv < 0:
                if not back:
                    algo.step(rank, block, "cpy", **place)
                algo.step(rank, block, "s", **place)
            elif send < 0:
                algo.step(rank, block, "rrc" if back else "r", **place)
            else:
                algo.step(rank, block, "rrs" if back else "rcs", **place)
    return algo


def star(coll, n=4):
    """Rank 0 gives every rank its block, or takes it."""
    gather = coll == "gather"
    algo = Algorithm(coll + "-star", coll, n, n, (1, n, 0) if gather else (n, 1, 0), 1, 1)
    algo.step(0, algo.block(0), "cpy", ("i", 0), ("o", 0))
    for rank in range(1, n):
        root, there = algo.block(0, -1 if gather else rank, rank if gather else -1), algo.block(rank, 0 if gather else -1, -1 if gather else 0)
        algo.step(0, root, "r" if gather else "s", ("i", rank), ("o", rank))
        algo.step(rank, there, "s" if gather else "r", ("i", 0), ("o", 0))
    return algo


def main():
    algorithms = [allreduce_ring(), allreduce_pairs(), allreduce_pairs(inplace=False), allreduce_halving(), alltoall(),
                  alltoall_square(), allgather_ring(), allgather_ring(inplace=False), reducescatter_ring(),
                  reducescatter_ring(inplace=False), chain("broadcast"), chain("reduce"), star("gather"), star("scatter")]
    for algo in algorithms:
        algo.write(os.path.join(sys.argv[1], algo.head["name"] + ".xml"))


main()
