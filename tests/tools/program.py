#!/usr/bin/env python3
"""`tutti program` and `tutti verify` as a researcher uses them: every golden program and every algorithm of the library is
proved, shown as text, JSON and picture; steps and volumes of well-known algorithms are the known ones; broken files are
refused with file and line; wrong usage exits 2.  program.py TUTTI PROGRAMS"""
import collections, glob, json, math, os, re, subprocess, sys, tempfile

TUTTI, PROGRAMS = sys.argv[1], sys.argv[2]
faults = []


def run(*arguments, text=None):
    return subprocess.run([TUTTI, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, input=text)


def must(ok, what):
    if not ok:
        faults.append(what)
    return ok


def read(name):
    with open(os.path.join(PROGRAMS, name), encoding="utf-8") as file:
        return file.read()


def verified(*arguments):
    p = run("verify", *arguments, "--json")
    must(p.returncode == 0, f"verify {arguments}: {p.returncode} {p.stderr}{p.stdout[:300]}")
    return json.loads(p.stdout) if p.returncode == 0 else {}


def check_files():
    files = sorted(glob.glob(os.path.join(PROGRAMS, "*.xml")))
    must(len(files) >= 14, "programs are missing")
    for path in files:
        name = os.path.basename(path)
        p = run("verify", path)
        must(p.returncode == 0 and p.stdout.startswith("proved: ") and not p.stderr, f"{name}: {p.returncode} {p.stdout}{p.stderr}")
        must(run("program", "check", path).stdout == p.stdout, f"{name}: check is not verify")
        shown = run("program", "show", path)
        must(shown.returncode == 0 and "thread 0" in shown.stdout, f"{name}: show")
        drawn = json.loads(run("program", "show", path, "--json").stdout)
        must(drawn["messages"] and all(m["line"] > 1 for m in drawn["messages"]), f"{name}: messages without lines")
        must(shown.stdout.startswith("\n".join(drawn["listing"]) + "\n\nsteps "), f"{name}: JSON has another listing")
        usec = float("%.1e" % drawn["predicted"][3]["usec"])  # built-in figures: two digits
        must(len(drawn["predicted"]) == 4 and f"{usec:.4g} us" in shown.stdout, f"{name}: prediction")
        must(run("program", "diff", path, path).returncode == 0, f"{name}: differs from itself")
        again = run("program", "export", path)
        must(again.returncode == 0 and run("program", "diff", path, "-", text=again.stdout).returncode == 0, f"{name}: export is not equal")
    p = run("verify", "-", text=read("alltoall.xml"))
    must(p.returncode == 0, f"standard input: {p.stderr}")
    p = run("program", "diff", files[0], files[1])
    must(p.returncode == 1 and p.stdout, "two files do not differ")


def check_colours():
    """Colours are of chunks by what is in them, wherever they lie: scratch and the senders' own buffers have other numbers."""
    for algo, op, colours, words in (("oneshot", "allgather", 4, "chunks apart"), ("ring", "allreduce", 4, "chunks apart")):
        drawn = run("program", "show", "--algo", algo, "--op", op, "--ranks", "4", "--svg").stdout
        used = {tag.split('stroke="')[1].split('"')[0] for tag in drawn.split("<path ")[1:] if 'fill="none"' in tag}
        must(len(used) == colours and words in drawn, f"{algo} {op}: {len(used)} colours")


def check_chunks():
    """A chunk keeps its number on its way, through scratch and slots."""
    for algo, op, ranks in (("bruck", "alltoall", 6), ("pairwise", "alltoall", 5), ("bruck", "allgather", 6), ("pat", "reducescatter", 6)):
        flow = json.loads(run("program", "show", "--algo", algo, "--op", op, "--ranks", str(ranks), "--json").stdout)["messages"]
        if op == "allgather":
            must(all(m["holds"] == [m["chunk"]] for m in flow), f"{algo} {op}: {flow}")
            continue
        came = {(m["to"], *m["holds"]) for m in flow if m["chunk"] == m["to"] and len(m["holds"]) == (1 if op == "alltoall" else ranks)}
        must(len(came) == (ranks * (ranks - 1) if op == "alltoall" else ranks), f"{algo} {op}: what is for a rank comes there: {sorted(came)}")


def check_legend():
    """A picture explains a box of its own, what an arrow is, thick ones where there are any, and where hosts are."""
    for words, *which in ((['"3: 0..2": chunk 3 with the inputs of ranks 0 to 2.', "an arrow is a message.", ">host 0<", ">host 1<"],
                           "hierarchical", "allreduce", "6", "--hosts", "2"),
                          (['"0..1: 0+2": chunks 0 to 1 with the inputs of ranks 0 and 2.', "an arrow is a message, a thick one of several chunks."], "halving", "allreduce", "4"),
                          (['"0: all": chunk 0 with the inputs of all ranks.', "a read or a write of another rank's memory."], "direct", "allreduce", "4"),
                          (['"1: 1": chunk 1 with the input of rank 1.', "an arrow is a message. Chunk k is of rank k."], "oneshot", "allgather", "4"),
                          (["Chunk k is for rank k."], "bruck", "alltoall", "6"),
                          (["between hosts a part of the network's sum", ">host 1<"], "collnet_direct", "allreduce", "4")):
        algo, op, ranks, *more = which
        drawn = run("program", "show", "--algo", algo, "--op", op, "--ranks", ranks, "--svg", *more).stdout.replace("&quot;", '"')
        missing = [word for word in words if word not in drawn]
        must(not missing, f"{which}: {missing}")
    must(">host" not in run("program", "show", "--algo", "ring", "--op", "allreduce", "--ranks", "4", "--svg").stdout, "hosts of one host")


def check_communicators():
    """What is proved but not run is said to be: it needs too many slots."""
    ring = read("allgather-ring-op.xml")
    p = run("verify", "-", text=ring)
    must("communicators  run it" in p.stdout, f"ring: {p.stdout}")
    swap = '<algo name="swap" proto="Simple" nchannels="1" nchunksperloop="16" ngpus="2" coll="allreduce" inplace="0" outofplace="1">\n'
    step = '<step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="o" dstoff="{}" cnt="8" depid="-1" deps="-1" hasdep="0"/>\n'
    for r in (0, 1):
        keep, give = 8 * r, 8 - 8 * r
        steps = ("s", "i", give, give), ("rrcs", "i", keep, keep), ("r", "o", give, give)
        swap += f'<gpu id="{r}" i_chunks="16" o_chunks="16" s_chunks="0"><tb id="0" send="{1 - r}" recv="{1 - r}" chan="0">\n'
        swap += "".join(step.format(s, *words) for s, words in enumerate(steps)) + "</tb></gpu>\n"
    p = run("verify", "-", text=swap + "</algo>\n")
    must(p.returncode == 0 and "communicators  refuse it: it needs more slots than there are" in p.stdout, f"swap: {p}")
    must(json.loads(run("verify", "-", "--json", text=swap + "</algo>\n").stdout)["runs"] is False, "swap runs")


def check_known():
    """Steps and chunks that the busiest rank sends, as books have them."""
    for n in (2, 3, 4, 8, 13):
        p = verified("--algo", "ring", "--op", "allreduce", "--ranks", str(n))
        must(p.get("steps") == 2 * (n - 1) and set(p["chunks_sent"]) == {2 * (n - 1)}, f"ring allreduce of {n}: {p}")
        p = verified("--algo", "ring", "--op", "allgather", "--ranks", str(n))
        must(p.get("steps") == n - 1 and max(p["chunks_sent"]) == n - 1, f"ring allgather of {n}: {p}")
        p = verified("--algo", "oneshot", "--op", "allreduce", "--ranks", str(n))
        must(p.get("steps") == 1 and p["least_steps"] == math.ceil(math.log2(n)), f"one-shot allreduce of {n}: {p}")
        p = verified("--algo", "direct", "--op", "allreduce", "--ranks", str(n))
        must(p.get("steps") == 2 and set(p["chunks_received"]) == {2 * (n - 1)}, f"direct allreduce of {n}: {p}")
    p = verified(os.path.join(PROGRAMS, "allreduce-halving.xml"))
    must(p["steps"] == 4 and set(p["chunks_sent"]) == {6} and p["in_place"]["right"], f"halving: {p}")
    p = verified(os.path.join(PROGRAMS, "allreduce-ring.xml"))
    times = [row["usec"] for row in p["predicted"]]
    must(len(times) == 4 and times == sorted(times) and all(t > row["own_usec"] > 0 for t, row in zip(times, p["predicted"])), f"ring: {p['predicted']}")
    own = verified("--algo", "ring", "--op", "allreduce", "--ranks", "4")["predicted"]
    must(all(0.4 < t / row["usec"] < 2.5 for t, row in zip(times, own)), f"a ring from a file {times}, the library's {own}")
    must(p["steps"] == 6 and p["slots"] == 2 and p["in_place"]["right"] and p["out_of_place"]["right"], f"ring: {p}")


def check_network():
    """What a network that reduces does is one step and one message of each rank; pictures have it from each of the others."""
    for algo, steps, n in (("collnet_direct", 3, 4), ("collnet_chain", 3, 4), ("collnet_chain", 5, 6)):
        which = ["--algo", algo, "--op", "allreduce", "--ranks", str(n)]
        p = verified(*which)
        must(p.get("steps") == steps and "least_steps" not in p and len(p["predicted"]) == 4, f"{which}: {p}")
        must(max(p["chunks_sent"]) == (3 if algo == "collnet_direct" else 2) and sum(p["chunks_sent"]) == sum(p["chunks_received"]), f"{which}: {p}")
        drawn = json.loads(run("program", "show", *which, "--json").stdout)
        sums = [m for m in drawn["messages"] if (m["from"] < n // 2) != (m["to"] < n // 2)]
        must(len(sums) == (n if algo == "collnet_direct" else 2) and all(len(m["holds"]) == n for m in sums), f"{which}: {sums}")
        must("the network reduces" in run("program", "show", *which).stdout, f"{which}: show")


def check_hosts():
    """Predictions are for as many hosts as are named, and dearer than within one; nothing is predicted of what they cannot run."""
    ring = ["program", "show", "--algo", "ring", "--op", "allreduce", "--ranks", "4", "--json"]
    near, far = (json.loads(run(*ring, *more).stdout)["predicted"] for more in ([], ["--hosts", "2"]))
    must(all(a["usec"] < b["usec"] for a, b in zip(near, far)), f"hosts: {near} {far}")
    p = run("program", "show", "--algo", "hierarchical", "--op", "allreduce", "--ranks", "4")
    must("predicted      on 2 hosts like this machine" in p.stdout and "(HIERARCHICAL" in p.stdout, f"hierarchical: {p.stdout}")
    p = run("program", "show", "--algo", "direct", "--op", "allreduce", "--ranks", "4", "--hosts", "2")
    must(p.returncode == 0 and "predicted" not in p.stdout, f"direct over hosts: {p.stdout}")
    p = run("program", "show", "--algo", "tree", "--op", "allreduce", "--ranks", "4")
    must(p.stdout.splitlines()[1].startswith("(a row of numbers: a rank for each rank") and p.stdout.splitlines()[2].startswith("parent -1"), "what tables are")
    p = run("program", "show", "--algo", "oneshot", "--op", "allgather", "--ranks", "4")
    must("(a row" not in p.stdout, "no tables")
    p = run("program", "show", "--algo", "ring", "--op", "allreduce", "--ranks", "2000")
    must(p.returncode == 0 and "\nsteps" not in p.stdout and "predicted" in p.stdout and not p.stderr, f"many ranks: {p.stdout[-600:]}")


def check_own():
    for row in json.loads(run("program", "list", "--json").stdout):
        for n in (2, 5, 8):
            which = ["--op", row["op"], "--algo", row["algo"].lower(), "--ranks", str(n)]
            p = verified(*which)
            must(p.get("slots", 99) <= 8, f"{which}: slots {p.get('slots')}")
            must(run("program", "show", *which).returncode == 0, f"show {which}")
    must("RING" in run("program", "list").stdout, "list")
    for op in ("allreduce", "allgather", "reducescatter", "broadcast", "reduce"):
        p = run("program", "export", "--algo", "ring", "--op", op, "--ranks", "6")
        must(p.returncode == 0 and run("verify", "-", text=p.stdout).returncode == 0, f"exported ring {op}: {p.stderr}")
    for algo, reason in (("direct", "ranks meet at a barrier"), ("tree", "several messages")):
        p = run("program", "export", "--algo", algo, "--op", "allreduce", "--ranks", "6")
        must(p.returncode == 1 and reason in p.stderr and not p.stdout, f"exported {algo}: {p.returncode} {p.stderr}")


def check_broken():
    text = read("allreduce-pairs.xml")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "broken.xml")
        for old, new, complaint in (
                ('type="s"', 'type="x"', ':4: refused: type of <step> is "x"'),
                ('depid="2" deps="1"', 'depid="2" deps="9"', "which has"),
                ("</algo>", "", "refused: the file ends inside of <algo>"),
                ("<algo", "<alga", "refused: the document is <alga>"),
                ('ngpus="4"', 'ngpus="40000000000"', "not in 1 to")):
            changed = text.replace(old, new, 1)
            if not must(changed != text, f"nothing to change: {old}"):
                continue
            with open(path, "w", encoding="utf-8") as out:
                out.write(changed)
            p = run("verify", path)
            must(p.returncode == 1 and path in p.stderr and (complaint in p.stderr or old == 'type="s"' and "refused" in p.stderr),
                 f"{new}: {p.returncode} {p.stderr}{p.stdout}")
        with open(path, "w", encoding="utf-8") as out:  # well-formed, and computes something else
            out.write(read("allreduce-ring.xml").replace('type="rrcs"', 'type="rcs"', 1))
        p = run("verify", path)
        must(p.returncode == 1 and re.search(r"refused, out of place: gpu \d tb \d step \d: rank \d insn ", p.stdout) and "chunk" in p.stdout, f"wrong sum: {p.returncode} {p.stdout}")
        p = run("verify", path, "--json")
        must(p.returncode == 1 and json.loads(p.stdout)["proved"] is False, "wrong sum as JSON")


def check_plans():
    """Plans of MSCCL++: proved, shown, run by themselves and from a folder; a missing wait is refused with its line."""
    plan = os.path.join(os.path.dirname(os.path.abspath(PROGRAMS)), "mscclpp", "allreduce-switch.json")
    p = run("verify", plan)
    must(p.returncode == 0 and "out of place   right" in p.stdout and "in place       right" in p.stdout, f"plan: {p.stdout}")
    p = run("program", "export", plan)
    again = run("verify", "-", text=p.stdout)
    must(p.returncode == 0 and again.returncode == 0 and "<algo" in p.stdout, f"plan as XML: {p.stderr} {again.stdout}")
    p = run("perf", "--ranks", "4", "--program", plan, "-b", "8", "-e", "64K", "-f", "64", "-n", "2", "-w", "1")
    must(p.returncode == 0 and "Out of bounds values : 0 OK" in p.stdout, f"perf of a plan: {p.stdout} {p.stderr}")
    lines = read(plan).split("\n")
    number = [k for k, line in enumerate(lines) if "rlxwait" in line][3]
    p = run("verify", "-", text="\n".join(lines[:number] + lines[number + 1:]))
    must(p.returncode == 1 and "does not wait for it before it ends" in p.stderr, f"missing wait: {p.stdout} {p.stderr}")


def check_pairs():
    """AlltoAllv: what is moved is what the counts say, whichever way it goes; an AlltoAll that sorts inside hosts first."""
    rows = ((1, 2, 3, 0, 1), (0, 0, 5, 1, 1), (2, 2, 2, 2, 2), (9, 0, 0, 0, 0), (1, 1, 1, 1, 12))
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join(" ".join(map(str, row)) for row in rows) + "\n")
        file.flush()
        for algo, sent in (("pairwise", 9), ("bruck", 11)):
            pairs = ["--algo", algo, "--op", "alltoallv", "--ranks", "5", "--counts"]
            p = verified(*pairs, ";".join(",".join(map(str, row)) for row in rows))
            must(max(p["chunks_sent"]) == sent and p["least_blocks_sent"] == 9 / 12 and p["least_steps"] == 3, f"{algo}: {p}")
            must(verified(*pairs, "@" + file.name) == p, f"{algo}: a file of counts")
            flow = json.loads(run("program", "show", *pairs, "@" + file.name, "--json").stdout)["messages"]
            came = collections.Counter((m["holds"][0], m["to"]) for m in flow if m["chunk"] // 12 == m["to"])
            wanted = {(a, b): n for a, row in enumerate(rows) for b, n in enumerate(row) if a != b and n}
            must(came == wanted, f"{algo}: {came}")
    for counts in ("1;1", "1,1;1", "1,a;1,1", "1,2;3,4;5,6", "", "@/nowhere", "1,5000;1,1", "-1,1;1,1"):
        p = run("verify", "--algo", "pairwise", "--op", "alltoallv", "--ranks", "2", "--counts", counts)
        must(p.returncode == 2 and p.stderr, f"counts {counts}: {p}")
    p = run("verify", "--algo", "pairwise", "--ranks", "2", "--op", "alltoall", "--counts", "1,1;1,1")
    must(p.returncode == 2 and "counts" in p.stderr, f"counts of an alltoall: {p}")
    for hosts, layout, steps in (("4", "LL", 2), ("2", "LL", 2), ("4", "SIMPLE", 7)):
        p = verified("--algo", "hierarchical", "--op", "alltoall", "--ranks", "8", "--hosts", hosts, "--layout", layout)
        must(p["steps"] == steps and max(p["chunks_sent"]) == 10, f"{hosts} hosts: {p}")
    p = run("verify", "--algo", "hierarchical", "--op", "alltoall", "--ranks", "9", "--hosts", "4")
    must(p.returncode == 1 and "as many ranks each" in p.stderr, f"uneven hosts: {p}")
    uneven = ["--algo", "hierarchical", "--op", "alltoall", "--hosts", "3,2"]
    p = verified(*uneven, "--layout", "LL")
    must(p["ranks"] == 5 and p["steps"] == 3 and len(p["predicted"]) == 4, f"hosts of 3 and 2 ranks: {p}")
    p = run("program", "show", *uneven, "--svg")
    must(p.returncode == 0 and re.findall(r">host \d<", p.stdout) == [">host 0<", ">host 1<"], f"picture of hosts: {p}")
    for hosts, more in (("3,", ()), ("3,0", ()), ("x,2", ()), ("3,2", ("--ranks", "6")), ("4000,4000", ())):
        p = run("verify", *uneven[:-1], hosts, *more)
        must(p.returncode == 2 and "--hosts" in p.stderr, f"hosts {hosts} {more}: {p}")
    for op in ("broadcast", "reduce"):
        p = verified("--algo", "ring", "--op", op, "--ranks", "5")
        must(p["least_blocks_sent"] == 1 == max(p["chunks_sent"]), f"{op}: {p}")


def check_out_of_place():
    """Rank 0 sends its input after it wrote its result: right out of place alone. Calls in place read from a copy."""
    def step(s, kind, wait=-1, waited=0):
        return f'<step s="{s}" type="{kind}" srcbuf="{"o" if kind == "rrc" else "i"}" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="{wait}" deps="{0 if wait >= 0 else -1}" hasdep="{waited}"/>'
    def gpu(rank, send, recv, *steps):
        blocks = "".join(f'<tb id="{k}" send="{s}" recv="{r}" chan="0">{body}</tb>' for k, (s, r, body) in enumerate(steps))
        return f'<gpu id="{rank}" i_chunks="1" o_chunks="1" s_chunks="0">{blocks}</gpu>'
    text = '<algo name="late" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="0" outofplace="1">' + \
        gpu(0, 1, 1, (-1, -1, step(0, "cpy", waited=1)), (-1, 1, step(0, "rrc", 0, 1)), (1, -1, step(0, "s", 1))) + \
        gpu(1, 0, 0, (-1, -1, step(0, "cpy", waited=1)), (0, -1, step(0, "s")), (-1, 0, step(0, "rrc", 0))) + "</algo>"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "late.xml")
        with open(path, "w") as file:
            file.write(text)
        p = run("verify", path)
        must(p.returncode == 0 and "in place       not right" in p.stdout and "run it; calls in place copy their input first" in p.stdout, f"late: {p}")
        p = run("perf", "--ranks", "2", "--program", path, "-b", "8", "-e", "1M", "-f", "64", "-n", "3", "-w", "1")
        must(p.returncode == 0 and "Out of bounds values : 0 OK" in p.stdout, f"late runs: {p.returncode} {p.stdout}{p.stderr}")
        with open(path, "w") as file:  # rank 1 adds what came to nothing: wrong in any way
            file.write(text.replace('"rrc" srcbuf="o"', '"r" srcbuf="i"'))
        p = run("perf", "--ranks", "2", "--program", path, "-b", "8", "-e", "8", "-n", "1", "-w", "0")
        must(p.returncode == 2 and "its proof fails: out of place" in p.stderr, f"wrong file: {p}")


def check_usage():
    ring = ["--algo", "ring", "--op", "allreduce"]
    for words in (["verify"], ["verify", *ring], ["verify", *ring, "--ranks", "1"], ["verify", *ring, "--ranks", "x"],
                  ["verify", "--algo", "square", "--op", "allreduce", "--ranks", "4"], ["verify", *ring, "--ranks", "4", "--svg"],
                  ["verify", "--algo", "ring", "--op", "sum", "--ranks", "4"], ["verify", "--algo", "ring", "--op", "alltoall", "--ranks", "4"],
                  ["verify", "/nowhere/file.xml"], ["verify", "--what"], ["program", "paint"], ["program", "diff", "one.xml"],
                  ["program", "show", *ring, "--ranks", "4", "--chunk", "x"], ["verify", *ring, "--ranks", "4", "--json=1"],
                  ["verify", "--algo", "ring", "--op", "broadcast", "--ranks", "4", "--root", "4"], ["verify", "--ranks"], ["program"]):
        p = run(*words)
        must(p.returncode == 2 and (p.stderr or words == ["program"]), f"{words}: {p.returncode} {p.stderr}")
    for words in (["verify", "--help"], ["program", "--help"], ["program", "show", "-h"]):
        p = run(*words)
        must(p.returncode == 0 and "usage: tutti" in p.stdout and "examples:" in p.stdout, f"{words}")


check_files()
check_colours()
check_chunks()
check_legend()
check_communicators()
check_known()
check_network()
check_hosts()
check_own()
check_broken()
check_plans()
check_pairs()
check_out_of_place()
check_usage()
for fault in faults:
    print(fault)
print(f"{len(faults)} faults")
sys.exit(1 if faults else 0)
