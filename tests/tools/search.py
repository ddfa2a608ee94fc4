#!/usr/bin/env python3
"""`tutti program search` finds what the literature knows, says "least" only where that is so, and what it writes is proved
and runs.  Impossibility is compared with an exhaustive search of its own for small machines; solvers that hang, lie or end
early, signals and wrong usage give a sentence and their exit status.  search.py TUTTI MACHINES  Skipped without a solver."""
import fractions, itertools, json, os, shutil, signal, subprocess, sys, tempfile, time

TUTTI, MACHINES = sys.argv[1], sys.argv[2]
SOLVER = next((s for s in ("cadical", "kissat", "cryptominisat5", "picosat") if shutil.which(s)), None)
faults = []


def run(*arguments):
    return subprocess.run([TUTTI, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=500)


def must(ok, what):
    if not ok:
        faults.append(what)
    return ok


def search(op, *arguments, status=0):
    p = run("program", "search", "--op", op, "--json", *([] if "--time" in arguments else ["--time", "1000"]), *arguments)
    must(p.returncode == status, f"search {op} {arguments}: {p.returncode} {p.stderr}")
    return json.loads(p.stdout) if p.stdout else {"points": []}


def sizes(found):
    return [(p["steps"], p["rounds"], p["chunks"]) for p in found["points"]]


def check_known(folder):
    """Known Pareto points: rings, hypercubes, and SCCL's of the DGX-1V (Cai et al., PPoPP 2021)."""
    dgx = os.path.join(MACHINES, "c03-dgx1v.xml")
    for op, topology, ranks, known in (
            ("allgather", "ring", 4, [(2, 3, 2)]), ("allgather", "ring", 8, [(4, 7, 2)]), ("allgather", "ring", 5, [(2, 2, 1)]),
            ("allgather", "hypercube", 8, [(3, 7, 3)]), ("allgather", "hypercube", 16, [(4, 15, 4)]), ("reducescatter", "ring", 24, [(12, 23, 2)]),
            ("allgather", "line", 5, [(4, 4, 1)]),
            ("allreduce", dgx, 0, [(4, 6, 16), (6, 14, 48)]),
            ("allreduce", "ring", 8, [(8, 14, 16)]), ("allreduce", "hypercube", 8, [(6, 14, 24)]),
            ("reducescatter", "hypercube", 8, [(3, 7, 3)]), ("alltoall", "ring", 5, [(2, 3, 1)]), ("gather", "dgx1v", 8, [(2, 7, 6)]), ("gather", "hypercube", 32, [(5, 31, 5)]),
            ("scatter", "hypercube", 8, [(3, 7, 3)]), ("reduce", "line", 4, [(3, 3, 1), (4, 4, 2), (5, 5, 3), (6, 6, 4)]),
            ("broadcast", "line", 4, [(3, 3, 1), (4, 4, 2), (5, 5, 3), (6, 6, 4)]), ("alltoall", "hypercube", 4, [(2, 2, 1)]), ("broadcast", "dgx1v", 8, [(2, 2, 2), (3, 5, 12), (4, 4, 13), (5, 5, 19)]),
            ("allreduce", "fully-connected", 2, [(2, 2, 2)])):
        found = search(op, "--topology", topology, *(["--ranks", str(ranks)] if ranks else []), "-o", folder)
        must(sizes(found) == known, f"{op} over {topology}: {sizes(found)}, known {known}")
        must(found["complete"] and all(p["least"] for p in found["points"]), f"{op} over {topology}: not complete")
        must(found["points"][-1]["at_bound"] == (op not in ("reduce", "broadcast")), f"{op} over {topology}: bound")
        for point in found["points"]:
            path = os.path.join(folder, point["file"])
            p = run("verify", path, "--json")
            proof = json.loads(p.stdout) if p.returncode == 0 else {}
            must(proof.get("out_of_place", {}).get("right") and (op == "alltoall" or proof["in_place"]["right"]), f"{path}: {p.stdout}{p.stderr}")
            must(proof.get("steps", 99) <= point["steps"] and proof["slots"] <= 8, f"{path}: {proof}")


def check_direct(folder):
    """An AllReduce that is not composed takes fewer steps: as many as the longest distance, where partners exchange sums."""
    for topology, ranks, known in (("fully-connected", 2, [(1, 1, 1)]), ("line", 3, [(2, 2, 1), (3, 3, 2), (4, 4, 3), (5, 5, 4)]),
                                   ("ring", 4, [(2, 2, 2)]), ("hypercube", 8, [(3, 3, 3)]), ("hypercube", 16, [(4, 4, 4)])):
        found = search("allreduce", "--direct", "--topology", topology, "--ranks", str(ranks), "-o", folder,
                       *(["--rounds", str(known[-1][0])] if len(known) == 1 else []))
        must(sizes(found) == known and all(p["least"] for p in found["points"]), f"direct over {topology}: {found}")
        for point in found["points"]:
            proof = json.loads(run("verify", os.path.join(folder, point["file"]), "--json").stdout)
            must(proof["out_of_place"]["right"] and proof["in_place"]["right"] and proof["steps"] <= point["steps"], f"{point}: {proof}")


def check_runs(folder):
    for name in ("allreduce-hypercube-8-s6-r14-c24.xml", "allgather-ring-4-s2-r3-c2.xml", "allreduce-hypercube-8-s3-r3-c3.xml", "reduce-line-4-s4-r4-c2.xml"):
        p = run("perf", "--ranks", name.split("-")[2], "--program", os.path.join(folder, name), "-b", "64", "-e", "64K", "-f", "32", "-n", "2", "-w", "0")
        must(p.returncode == 0 and "Out of bounds values : 0 OK" in p.stdout, f"{name} runs: {p.returncode} {p.stdout}{p.stderr}")
    text = run("program", "search", "--op", "allreduce", "--topology", "dgx1v", "--size", "4M", "--time", "1000").stdout
    must("<<  least: the links allow no better" in text and "none better up to 14 rounds" in text, f"table: {text}")


# ---- exhaustive, in another way: all sets of sends, step by step ----

def exists(links, ranks, kinds, chunks, steps, rounds):
    """Whether a schedule exists. kinds: (from, {to}); a state is who holds what; more is never worse, so links send all they can."""
    items = [(k, c) for k in range(len(kinds)) for c in range(chunks)]
    begin = tuple(frozenset(i for i in items if kinds[i[0]][0] == r) for r in range(ranks))
    splits = [s for s in itertools.product(range(1, rounds + 1), repeat=steps) if sum(s) == rounds]
    for split in splits:
        states = {begin}
        for length in split:
            after = set()
            for state in states:
                ways = []
                for (a, b), width in links.items():
                    useful = sorted(state[a] - state[b])
                    ways.append([(b, w) for w in itertools.combinations(useful, min(len(useful), width * length))])
                for choice in itertools.product(*ways):
                    held = [set(s) for s in state]
                    for b, sent in choice:
                        held[b].update(sent)
                    after.add(tuple(frozenset(h) for h in held))
            states = after
        if any(all(i in state[r] for i in items for r in kinds[i[0]][1]) for state in states):
            return True
    return False


def check_impossible():
    ring4 = {(a, b): 1 for a in range(4) for b in ((a + 1) % 4, (a - 1) % 4)}
    ring3 = {(a, b): 1 for a in range(3) for b in range(3) if a != b}
    line3 = {(0, 1): 1, (1, 0): 1, (1, 2): 1, (2, 1): 1}
    ncompared = 0
    for op, topology, links, ranks, kinds, most in (
            ("broadcast", "ring", ring4, 4, [(0, {1, 2, 3})], 3), ("broadcast", "ring", ring3, 3, [(0, {1, 2})], 4),
            ("broadcast", "line", line3, 3, [(0, {1, 2})], 4), ("gather", "ring", ring4, 4, [(r, {0}) for r in (1, 2, 3)], 3),
            ("scatter", "line", line3, 3, [(0, {r}) for r in (1, 2)], 4), ("allgather", "line", line3, 3, [(r, {0, 1, 2}) for r in range(3)], 3),
            ("alltoall", "ring", ring3, 3, [(a, {b}) for a in range(3) for b in range(3) if a != b], 2)):
        found = search(op, "--topology", topology, "--ranks", str(ranks), "--rounds", str(most))
        best = {}
        for steps in range(1, most + 1):
            points = [p for p in found["points"] if p["steps"] <= steps]
            best[steps] = min((fractions.Fraction(p["rounds"], p["chunks"]) for p in points), default=None)
            for rounds in range(steps, most + 1):
                for chunks in (1, 2, 3):
                    if len(kinds) * chunks > 6:
                        continue
                    better = best[steps] is None or fractions.Fraction(rounds, chunks) < best[steps]
                    here = any(p["steps"] == steps and p["rounds"] == rounds and p["chunks"] == chunks for p in points)
                    if better or here:
                        ncompared += 1
                        must(exists(links, ranks, kinds, chunks, steps, rounds) == here, f"{op} over {topology} of {ranks}: {steps} {rounds} {chunks}: {here}")
    must(ncompared > 25, f"only {ncompared} compared")


# ---- solvers and users as they are ----

def script(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check_solvers(folder):
    ring = ["--topology", "ring", "--ranks", "4"]
    p = run("program", "search", "--op", "alltoall", "--topology", "ring", "--ranks", "8", "--rounds", "4")
    must(p.returncode == 1 and "there is none of up to 4 rounds" in p.stderr and not p.stdout, f"too few rounds: {p.returncode} {p.stdout}{p.stderr}")
    p = run("program", "search", "--op", "allgather", *ring, "--solver", script(folder, "no", "cat >/dev/null; echo s UNSATISFIABLE; exit 20\n"))
    must(p.returncode == 1 and "there is none of up to" in p.stderr and not p.stdout, f"none: {p.returncode} {p.stdout}{p.stderr}")
    for name, text, word in (
            ("dumb", "exit 0\n", "gave no answer"), ("dead", "kill -9 $$\n", "signal 9"), ("half", "echo s SATISFIABLE; echo v 1 2 0\n", "gave no answer"),
            ("wild", "cat >/dev/null; echo s SATISFIABLE; echo v -99999999999999999999 0\n", "gave no answer"),
            ("liar", "sed -n 's/^p cnf \\([0-9]*\\).*/\\1/p' | { read n; echo s SATISFIABLE; echo v $(seq 1 $n) 0; }\n", "")):
        p = run("program", "search", "--op", "allgather", *ring, "--solver", script(folder, name, text))
        must(p.returncode == 1 and word in p.stderr and p.stderr.startswith("tutti program search: "), f"{name}: {p.returncode} {p.stdout}{p.stderr}")
    for name in (b"cut within a character\xc3\xa4\xc3\xa4.xml", b"no UTF-8: \xff.xml"):
        path = os.path.join(os.fsencode(folder), name)
        shutil.copyfile(os.path.join(MACHINES, "c03-dgx1v.xml"), path)
        found = search("gather", "--topology", path, "-o", folder)
        must(sizes(found) == [(2, 7, 6)], f"{name}: {found}")
    slow = script(folder, "slow", "cat >/dev/null; exec sleep 100\n")
    found = search("allgather", *ring, "--solver", slow, "--time", "1", status=3)
    must(not found["complete"] and not found["points"], f"slow: {found}")
    child = os.path.join(folder, "child")
    search("allgather", *ring, "--solver", script(folder, "script", f"cat >/dev/null; sleep 100 & echo $! >{child}; wait\n"), "--time", "1", status=3)
    until = time.monotonic() + 60
    while (left := alive(int(open(child).read()))) and time.monotonic() < until:
        time.sleep(0.02)
    must(not left, "what a solver's script started is still there")
    # The first five questions are answered, the sixth never is: a signal ends it with what was found.
    count = os.path.join(folder, "count")
    slow = script(folder, "later", f"echo x >>{count}\n[ $(wc -l <{count}) -le 5 ] && exec {SOLVER}\ncat >/dev/null; touch {count}.hangs; exec sleep 100\n")
    p = subprocess.Popen([TUTTI, "program", "search", "--op", "allgather", "--topology", "dgx1v", "--json", "--time", "1000", "--solver", slow],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not os.path.exists(count + ".hangs") and p.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=300)
    must(p.returncode == 130 and "interrupted" in err, f"interrupted: {p.returncode} {err}")
    found = json.loads(out) if out else {}
    must(found.get("interrupted") and sizes(found) == [(2, 3, 2)] and not found["points"][0]["least"], f"interrupted: {found}")


def check_usage(folder):
    odd = os.path.join(folder, "odd.xml")
    with open(odd, "w", encoding="utf-8") as out:
        out.write("<system version='1'><cpu")
    for words, status, word in (
            ([], 2, "needs --op"), (["--op", "sum"], 2, "no collective"), (["--op", "allgather"], 2, "needs --ranks"),
            (["--op", "send", "--ranks", "4"], 2, "no collective"), (["--op", "allgather", "--ranks", "33"], 2, "--ranks"),
            (["--op", "allgather", "--topology", "hypercube", "--ranks", "6"], 2, "power of two"),
            (["--op", "allgather", "--topology", "dgx1v", "--ranks", "4"], 2, "has 8 ranks"),
            (["--op", "allgather", "--topology", "/nowhere"], 2, "/nowhere"), (["--op", "allgather", "--topology", odd], 2, "odd.xml:1"),
            (["--op", "allgather", "--topology", os.path.join(MACHINES, "c01-workstation-1gpu.xml")], 2, "has 1 GPU"),
            (["--op", "allgather", "--topology", os.path.join(MACHINES, "aws-g5.xml")], 2, "no way over links"),
            (["--op", "allgather", "--topology", os.path.join(MACHINES, "c03-dgx1v.xml"), "--ranks", "4"], 2, "has 8 GPUs"),
            (["--op", "allgather", "--direct", "--ranks", "4"], 2, "--direct is for an AllReduce"), (["--op", "allgather", "--ranks", "4", "--time", "0"], 2, "--time"), (["--op", "allgather", "--ranks", "4", "--size", "1X"], 2, "--size"),
            (["--op", "allgather", "--ranks", "4", "--solver", "/nowhere/sat"], 2, "no such program"), (["--op", "allgather", "what"], 2, "what"),
            (["--op", "allgather", "--ranks", "4", "-o", "/proc/nowhere/x"], 1, "/proc/nowhere/x")):
        p = run("program", "search", *words)
        must(p.returncode == status and word in p.stderr and p.stderr.count("\n") == 1, f"{words}: {p.returncode} {p.stdout}{p.stderr}")
    p = run("program", "search", "--help")
    must(p.returncode == 0 and "examples:" in p.stdout and "--topology" in p.stdout, "help")


if not SOLVER:
    print("skipped: none of cadical, kissat, cryptominisat5, picosat is installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as where:
    check_known(where)
    check_direct(where)
    check_runs(where)
    check_impossible()
    check_solvers(where)
    check_usage(where)
for fault in faults:
    print("FAILED:", fault)
print("search:", "failed" if faults else "passed")
sys.exit(1 if faults else 0)
