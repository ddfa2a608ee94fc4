"""Writes the plans beside it, small collectives in the JSON that MSCCL++ reads: each of its operations is used by one
of them. An operation is a line, so that faults can name it. usage: write.py [FOLDER]"""
import json
import os
import sys

NOP = {"name": "nop"}


def op(name, **members):
    return {"name": name, **members}


def signal(channel=0, kind="memory", name="signal"):
    return op(name, channel_ids=[channel], channel_type=kind)


def wait(channel=0, kind="memory", name="wait"):
    return signal(channel, kind, name)


def move(name, sources, destinations, **members):
    members.setdefault("channel_type", "memory")
    return op(name, src_buff=sources, dst_buff=destinations, **members)


def add(name, sources, destinations, **members):
    return move(name, sources, destinations, reduce_op="sum", **members)


def here(buffer, index, size=1):
    return {"type": buffer, "index": index, "size": size}


def there(number, index, size=1):
    return {"buffer_id": number, "index": index, "size": size}


def switch(number, index, size=1):
    return {"switch_channel_id": number, "index": index, "size": size}


def block(number, ops, channels=(("memory", [0]),), remote=(("memory", [0]),)):
    return {"id": number, "ops": ops,
            "channels": [{"channel_type": kind, "channel_ids": ids} for kind, ids in channels],
            "remote_buffer_refs": [{"access_channel_type": kind, "remote_buffer_ids": ids} for kind, ids in remote]}


def connected(*peers, kind="memory"):
    return {"channel_type": kind, "connected_to": list(peers)}


def gpu(number, chunks, blocks, channels, remote=(), semaphores=0):
    return {"id": number, "input_chunks": chunks[0], "output_chunks": chunks[1], "scratch_chunks": chunks[2],
            "threadblocks": blocks, "channels": channels,
            "remote_buffers": [{"rank": rank, "type": kind, "access_channel_types": ["memory", "port"]}
                               for rank, kind in remote],
            "semaphores": [{"init_value": 0}] * semaphores}


def plan(name, collective, gpus, inplace=True, protocol="Simple", **members):
    return {"name": name, "collective": collective, "protocol": protocol, "inplace": inplace, "reuse_resources": False,
            "gpus": gpus, "num_threads_per_block": 1024, "use_double_scratch_buffer": False, "buffer_alignment": 16,
            "min_message_size": 0, "max_message_size": 2**64 - 1, **members}


def others(rank, count):
    return [peer for peer in range(count) if peer != rank]


def barrier(count, name=""):
    """Signal all peers and wait for all: channel k is to the k-th of them."""
    return ([signal(k, name=name + "signal") for k in range(count - 1)] +
            [wait(k, name=name + "wait") for k in range(count - 1)] + [NOP])


def allgather_put():
    def rank(r):
        ops = [signal(), wait(), NOP, move("put", [here("o", r)], [there(0, r)], channel_ids=[0]), NOP, signal(), wait()]
        return gpu(r, (1, 2, 0), [block(0, ops)], [connected(1 - r)], [(1 - r, "o")])
    return plan("allgather_put", "allgather", [rank(0), rank(1)], max_message_size=1 << 20, min_message_size=4096)


def allgather_port():
    """Two blocks over port channels; one signals with its put."""
    remote = (("port", [0]),)
    first = gpu(0, (2, 4, 0), [
        block(0, [signal(0, "port"), wait(0, "port"), NOP,
                  move("put", [here("o", 0)], [there(0, 0)], channel_ids=[0], channel_type="port"), NOP,
                  signal(0, "port"), op("flush", channel_ids=[0], channel_type="port"), wait(0, "port"), NOP],
              (("port", [0]),), remote),
        block(1, [signal(0, "port"), wait(0, "port"), NOP,
                  move("pws", [here("o", 1)], [there(0, 1)], channel_ids=[0], channel_type="port"), NOP],
              (("port", [1]),), remote)], [connected(1, 1, kind="port")], [(1, "o")])
    second = gpu(1, (2, 4, 0), [
        block(0, [signal(0, "port"), wait(0, "port"), NOP,
                  move("pwsf", [here("o", 2, 2)], [there(0, 2, 2)], channel_ids=[0], channel_type="port"), NOP,
                  wait(0, "port"), NOP], (("port", [0]),), remote),
        block(1, [signal(0, "port"), wait(0, "port"), NOP, wait(0, "port"), NOP], (("port", [1]),), ())],
                 [connected(0, 0, kind="port")], [(0, "o")])
    return plan("allgather_port", "allgather", [first, second])


def allreduce_mixed():
    """Two ranks that do the same in different ways: get and res, rres; rre and put."""
    first = [move("copy", [here("i", 2, 2)], [here("s", 2, 2)]), NOP, signal(), wait(), NOP,
             add("rres", [here("i", 0), there(0, 0)], [here("i", 0), there(1, 0)]),
             move("get", [there(0, 1)], [here("s", 1)], channel_ids=[0]), NOP,
             add("res", [here("i", 1), here("s", 1)], [here("i", 1), there(1, 1)]), NOP, signal(), wait(), NOP]
    second = [move("copy", [here("i", 0, 2)], [here("s", 0, 2)]), NOP, signal(), wait(), NOP,
              add("rre", [here("i", 2, 2), there(0, 2, 2)], [here("i", 2, 2)]), NOP,
              move("copy", [here("i", 2, 2)], [here("s", 2, 2)]), NOP,
              move("put", [here("s", 2, 2)], [there(0, 2, 2)]), NOP, signal(), wait(), NOP]
    return plan("allreduce_mixed", "allreduce", [
        gpu(0, (4, 4, 4), [block(0, first, remote=(("memory", [0, 1]),))], [connected(1)], [(1, "s"), (1, "i")]),
        gpu(1, (4, 4, 4), [block(0, second)], [connected(0)], [(0, "i")])])


def allreduce_packets():
    """Lines that carry flags, and each operation shared by a group of two blocks."""
    def rank(r):
        blocks, other = [], 1 - r
        summed = ("respkt", [here("i", 0), there(0, 0)]) if r == 0 else ("recspkt", [here("i", 1), here("s", 2), there(0, 1)])
        for make in (lambda info: move("ppkt", [here("i", other)], [there(0, other)], tbg_info=info),
                     lambda info: add(summed[0], [here("i", r), here("s", r)], summed[1], tbg_info=info),
                     lambda info: move("upkt", [here("s", other)], [here("i", other)], tbg_info=info)):
            for k in range(2):
                blocks.append(block(len(blocks), [make({"tb_id": k, "tbg_size": 2})]))
        return gpu(r, (2, 2, 3), blocks, [connected(other)], [(other, "s")])
    return plan("allreduce_packets", "allreduce", [rank(0), rank(1)], protocol="LL", use_double_scratch_buffer=True)


def allreduce_packet_chain():
    """Three ranks in a line, by lines: down with sums, back with copies."""
    first = [move("cpkt", [here("i", 0)], [here("s", 1)]), move("rppkt", [here("s", 1)], [there(0, 0)]),
             move("upkt", [here("s", 0)], [here("o", 0)])]
    middle = [add("recpkt", [here("i", 0), here("s", 0)], [here("o", 0), here("s", 1)]),
              move("rppkt", [here("s", 1)], [there(0, 0)]),
              move("upkt", [here("s", 2)], [here("o", 0)]), move("rppkt", [here("s", 2)], [there(1, 0)])]
    last = [add("repkt", [here("i", 0), here("s", 0)], [here("o", 0)]), move("ppkt", [here("o", 0)], [there(0, 2)])]
    return plan("allreduce_packet_chain", "allreduce", [
        gpu(0, (1, 1, 2), [block(0, first)], [connected(1)], [(1, "s")]),
        gpu(1, (1, 1, 3), [block(0, middle, (("memory", [0, 1]),), (("memory", [0, 1]),))], [connected(2, 0)],
            [(2, "s"), (0, "s")]),
        gpu(2, (1, 1, 1), [block(0, last)], [connected(1)], [(1, "s")])], inplace=False, protocol="LL")


def allreduce_switch(count):
    """Each rank loads the sum of one chunk from the switch, and stores it to all."""
    def rank(r):
        ops = barrier(count, "rlx") + [
            op("pipeline", iter_context={"unit_size": 1 << 20, "num_chunks": 1},
               ops=[add("glres", [switch(0, r)], [switch(0, r)], channel_type="switch")]), NOP] + barrier(count, "rlx")
        group = {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": count, "ranks": list(range(count))}]}
        return gpu(r, (count, count, 0), [block(0, ops, (("memory", list(range(count - 1))), ("switch", [0])), ())],
                   [connected(*others(r, count)), group])
    return plan("allreduce_switch", "allreduce", [rank(r) for r in range(count)])


def allreduce_pairs(count):
    """Out of place; a block per peer, which meet at a barrier and hand the sum on by semaphores."""
    def rank(r):
        blocks, remote = [], []
        for k, peer in enumerate(others(r, count)):
            slot = r if r < peer else r - 1
            remote += [(peer, "s"), (peer, "o")]
            ops = [move("put", [here("i", peer)], [there(0, slot)], channel_ids=[0]), NOP, signal(), wait(), NOP,
                   op("barrier", barrier_id=0, num_threadblocks=count - 1)]
            if k == 0:
                ops += [add("re", [here("i", r)] + [here("s", s) for s in range(count - 1)], [here("o", r)]), NOP,
                        op("sem_release", semaphore_ids=list(range(1, count - 1)))]
            else:
                ops += [op("sem_acquire", semaphore_ids=[k])]
            ops += [NOP, move("put", [here("o", r)], [there(1, r)], channel_ids=[0]), NOP, signal(), wait()]
            blocks.append(block(k, ops, (("memory", [k]),), (("memory", [2 * k, 2 * k + 1]),)))
        return gpu(r, (count, count, count - 1), blocks, [connected(*others(r, count))], remote, count - 1)
    return plan("allreduce_pairs", "allreduce", [rank(r) for r in range(count)], inplace=False)


def reducescatter_read(count):
    """Each rank reads its chunk of all inputs."""
    def rank(r):
        ops = barrier(count) + [add("rre", [here("i", r)] + [there(k, r) for k in range(count - 1)], [here("o", 0)]), NOP]
        ops += barrier(count)
        channels = (("memory", list(range(count - 1))),)
        return gpu(r, (count, 1, 0), [block(0, ops, channels, channels)], [connected(*others(r, count))],
                   [(peer, "i") for peer in others(r, count)])
    return plan("reducescatter_read", "reducescatter", [rank(r) for r in range(count)], inplace=False)


def alltoall_get(count):
    def rank(r):
        ops = barrier(count) + [move("copy", [here("i", r)], [here("o", r)])]
        ops += [move("get", [there(k, r)], [here("o", peer)], channel_ids=[k]) for k, peer in enumerate(others(r, count))]
        channels = (("memory", list(range(count - 1))),)
        return gpu(r, (count, count, 0), [block(0, ops + [NOP] + barrier(count), channels, channels)],
                   [connected(*others(r, count))], [(peer, "i") for peer in others(r, count)])
    return plan("alltoall_get", "alltoall", [rank(r) for r in range(count)], inplace=False)


def broadcast_switch(count):
    """Rank 0 stores its input to all outputs at once."""
    def rank(r):
        ops = [signal(), wait()]
        if r == 0:
            ops = [wait(k) for k in range(count - 1)]
            ops += [move("gstore", [here("i", 0, 2)], [switch(0, 0, 2)], channel_type="switch"), NOP]
            ops += [signal(k) for k in range(count - 1)]
        group = {"channel_type": "switch", "buffer_type": "o", "rank_groups": [{"size": count, "ranks": list(range(count))}]}
        channels = (("memory", list(range(count - 1)) if r == 0 else [0]), ("switch", [0]))
        return gpu(r, (2, 2, 0), [block(0, ops, channels, ())], [connected(*(others(r, count) if r == 0 else [0])), group])
    return plan("broadcast_switch", "broadcast", [rank(r) for r in range(count)], inplace=False)


def reduce_elsewhere():
    """Rank 1 adds up for rank 0: the sum has no place of its own at rank 1."""
    first = [move("put", [here("i", 0, 2)], [there(0, 0, 2)]), NOP, signal(), wait()]
    second = [wait(), NOP, add("res", [here("i", 0, 2), here("s", 0, 2)], [there(0, 0, 2)]), NOP, signal()]
    return plan("reduce_elsewhere", "reduce", [
        gpu(0, (2, 2, 0), [block(0, first)], [connected(1)], [(1, "s")]),
        gpu(1, (2, 2, 2), [block(0, second)], [connected(0)], [(0, "o")])], inplace=False)


def allreduce_scratch():
    """The sum is made in scratch, from scratch."""
    def rank(r):
        ops = [move("put", [here("i", 1 - r)], [there(0, 1)]), move("copy", [here("i", r)], [here("s", 0)]), NOP, signal(),
               wait(), NOP, add("re", [here("s", 0), here("s", 1)], [here("s", 2)]), NOP,
               move("copy", [here("s", 2)], [here("o", r)]), move("put", [here("s", 2)], [there(1, r)]), NOP, signal(), wait()]
        return gpu(r, (2, 2, 3), [block(0, ops, remote=(("memory", [0, 1]),))], [connected(1 - r)],
                   [(1 - r, "s"), (1 - r, "o")])
    return plan("allreduce_scratch", "allreduce", [rank(0), rank(1)], inplace=False)


def text(value, indent=0):
    """JSON with an operation a line."""
    if isinstance(value, dict) and ("gpus" in value or "threadblocks" in value or "ops" in value and "name" not in value):
        inside = ",\n".join(" " * (indent + 1) + json.dumps(key) + ": " + text(member, indent + 1)
                            for key, member in value.items())
        return "{\n" + inside + "\n" + " " * indent + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(" " * (indent + 1) + text(member, indent + 1) for member in value) + "\n" + " " * indent + "]"
    return json.dumps(value)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    plans = [allgather_put(), allgather_port(), allreduce_mixed(), allreduce_packets(), allreduce_packet_chain(),
             allreduce_switch(4), allreduce_pairs(4), reducescatter_read(3), alltoall_get(3), broadcast_switch(3),
             reduce_elsewhere(), allreduce_scratch()]
    for one in plans:
        with open(os.path.join(folder, one["name"].replace("_", "-") + ".json"), "w", encoding="utf-8") as out:
            out.write(text(one) + "\n")


if __name__ == "__main__":
    main()
