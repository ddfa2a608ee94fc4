#!/usr/bin/env python3
"""tuner.py TUTTI PROGRAM BUNDLES MACHINES PLUGINS TUNER: what the TUNING log says of the model, what variables and a stranger's tuner
make of it, on machines that the devices emulate and on flat hosts."""
import json, os, re, subprocess, sys, tempfile, time

TUTTI, PROGRAM, BUNDLES, MACHINES, PLUGINS, OURS = sys.argv[1:7]
ALGOS = ["Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"]
FLAT = ALGOS + ["Direct", "OneShot", "Doubling", "Halving", "Bruck", "Pairwise", "Hierarchical"]
PROTOS = ["LL", "LL128", "Simple"]
FUNCS = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"]
BASE = {(a, p): 3 * i + k for i, a in enumerate(ALGOS) for k, p in enumerate(PROTOS)}  # places in a tuner's constants
LL_MOST, TREE_MOST = 84, 120  # the tables behind them: 4 classes by 3 scales
for name in [n for n in os.environ if n.startswith(("NCCL_", "TUTTI_TUNE"))]:
    del os.environ[name]
os.environ["TUTTI_TUNE_FILE"] = "none"


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def start(machine, gpus, settings):
    """Exit status, output and log of a run over one host."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="init,env,tune",
                           NCCL_DEBUG_FILE=os.path.join(folder, "log.%p"), **settings)
        if machine:
            environment["NCCL_TOPO_FILE"] = os.path.join(MACHINES, machine + ".xml")
        done = subprocess.run([TUTTI, "run", "-n", str(gpus), PROGRAM, str(gpus)], env=environment, capture_output=True,
                              text=True, timeout=120)
        text = "".join(open(os.path.join(folder, name)).read() for name in sorted(os.listdir(folder)))
    return done.returncode, done.stdout + done.stderr, text


def run(machine, gpus, **settings):
    status, output, log = start(machine, gpus, settings)
    check(status == 0, f"{machine} {settings}: exit {status}: {output[-2000:]}")
    return log


def table(log, algos):
    """{(function, algorithm, protocol): (latency, bandwidth)} and {(algorithm, protocol): threads} of the log, whose lines
    must have NCCL's shape."""
    lines = [l.split("NCCL INFO ", 1)[1] for l in log.splitlines() if "NCCL INFO " in l and l.rstrip().endswith("|")]
    cells, threads = {}, {}
    blocks = [algos[i:i + 3] for i in range(0, len(algos), 3)]
    check(len(lines) == len(blocks) * (3 + len(FUNCS)), f"{len(lines)} lines of tables, one rank prints them:\n{log[:3000]}")
    for block in blocks:
        head, protos, most = lines[:3]
        rows, lines = lines[3:3 + len(FUNCS)], lines[3 + len(FUNCS):]
        check(head.startswith("  Algorithm   |") and head.split("|", 1)[1].replace("|", " ").split() == block, f"head: {head}")
        check(protos.startswith("  Protocol    |") and re.findall(r" +(\w+) \|", protos)[-3 * len(block):] == PROTOS * len(block),
              f"protocols: {protos}")
        columns = [(a, p) for a in block for p in PROTOS]
        check(most.startswith(" Max NThreads |"), f"threads: {most}")
        threads.update(zip(columns, map(int, re.findall(r" {1,14}(\d+) \|", most))))
        for func, row in zip(FUNCS, rows):
            check(re.fullmatch(r"%13s \|((.{8}/.{6} \|)+)" % func, row), f"row of {func}: {row}")
            found = re.findall(r" *(\d+\.\d)/ *(\d+\.\d) \|", row)
            check(len(found) == len(columns), f"cells of {func}: {row}")
            cells.update({(func, *c): (float(l), float(b)) for c, (l, b) in zip(columns, found)})
    return cells, threads


def calls(log):
    """{bytes: (algorithm, protocol, channels)} of AllReduce."""
    found = re.findall(r"AllReduce: (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{0\.\.(\d+)\}", log)
    check(found, "no call in the log")
    return {int(b): (a, p, int(c) + 1) for b, a, p, c in found}


def thresholds(log):
    found = re.findall(r"threadThresholds (\d+)/(\d+)/(\d+) \| (\d+)/(\d+)/(\d+) \| (\d+) \| (\d+)$", log, re.M)
    check(found and len(set(found)) == 1, "one line of thresholds, the same everywhere")
    return [int(n) for n in found[0]]


def outsider(version, **settings):
    return dict(NCCL_TUNER_PLUGIN=f"{PLUGINS}/libnccl-tuner_outsider_v{version}.so", **settings)


def table_is_the_export(machine, gpus):
    export = json.loads(subprocess.run([TUTTI, "topo", "export", os.path.join(MACHINES, machine + ".xml"), "--json", "--nodes",
                                        "1", "--load-order", "fused"], check=True, capture_output=True).stdout)
    tuning = export["scenarios"][0]["tuning"]
    log = run(machine, gpus)
    cells, threads = table(log, ALGOS)
    for (func, algo, proto), (latency, bandwidth) in cells.items():
        expected = tuning["model"].get(func, {}).get(algo, {}).get(proto, [0, 0])
        check(abs(latency - expected[0]) < 0.051 and abs(bandwidth - expected[1]) < 0.051,
              f"{machine}: {func} {algo} {proto}: {latency}/{bandwidth}, export has {expected}")
    for (algo, proto), most in threads.items():
        check(most == tuning["max_threads"][algo][PROTOS.index(proto)], f"{machine}: threads of {algo} {proto}")
    expected = tuning["thread_thresholds"]
    check(thresholds(log) == [*expected["Tree"], *expected["Ring"], expected["CollNetDirect"][2], expected["CollNetChain"][2]],
          f"{machine}: thresholds {thresholds(log)}")
    print(f"{machine}: the table in the log is the export's")


def constants_take_effect():
    machine, gpus = "c10-2xa6000-bridge", 2
    log = run(machine, gpus)
    usual, _ = table(log, ALGOS)
    check(calls(log)[8][:2] == ("RING", "LL"), f"untouched: {calls(log)[8]}")
    for version in (5, 6):
        log = run(machine, gpus, **outsider(version, OUTSIDER_EDIT=f"{BASE['Ring', 'LL']} 56.6"))
        cells, _ = table(log, ALGOS)
        for cell, (latency, bandwidth) in cells.items():
            expected = usual[cell][0] + (50 if cell[1:] == ("Ring", "LL") else 0)  # 6.6 before
            check(abs(latency - expected) < 0.101 and bandwidth == usual[cell][1], f"v{version}: {cell} {latency}, not {expected}")
        check(calls(log)[8][:2] != ("RING", "LL"), f"v{version}: {calls(log)[8]} though Ring LL takes 50 us more")
    log = run(machine, gpus, **outsider(6, OUTSIDER_EDIT=f"{LL_MOST + 3} 1,{TREE_MOST + 3} 0"))  # of class Ampere, one node
    cells, _ = table(log, ALGOS)
    check(cells["AllReduce", "Ring", "LL"][1] == 1.0, f"1 GB/s at most under LL: {cells['AllReduce', 'Ring', 'LL']}")
    check(cells["AllReduce", "Tree", "Simple"] == (0, 0), "trees without bandwidth are off")
    check(cells["AllReduce", "Ring", "Simple"] == usual["AllReduce", "Ring", "Simple"], "the others stay")
    log = run(machine, gpus, **outsider(6, OUTSIDER_EDIT=f"{BASE['Ring', 'LL']} nan,{LL_MOST + 3} -5"))
    check(table(log, ALGOS)[0] == usual, "nonsense is put back")
    check("init left 2 constants that are no times or bandwidths" in log, "nonsense is told")
    log = run(machine, gpus, **outsider(6, OUTSIDER_EDIT=f"{BASE['Ring', 'LL']} 99", OUTSIDER_FAIL="init"))
    check(table(log, ALGOS)[0] == usual and "going on without it" in log, "a failed init's edits do not count")
    flat = FLAT
    usual, _ = table(run(None, 2), flat)
    log = run(None, 2, **outsider(6, OUTSIDER_EDIT=f"{BASE['Tree', 'Simple']} 30"))
    cells, _ = table(log, flat)
    for cell, (latency, bandwidth) in cells.items():
        expected = usual[cell][0] + (30 if cell[1:] == ("Tree", "Simple") and usual[cell][1] else 0)
        check(abs(latency - expected) < 0.101 and bandwidth == usual[cell][1], f"flat: {cell} {latency}, not {expected}")
    print("constants that a tuner edits: obeyed")


def variables_are_obeyed():
    machine, gpus = "c10-2xa6000-bridge", 2
    log = run(machine, gpus, NCCL_NTHREADS="128", NCCL_LL128_NTHREADS="320", NCCL_THREAD_THRESHOLDS="1 2 3 4 -1 6")
    _, threads = table(log, ALGOS)
    check([threads["Ring", p] for p in PROTOS] == [128, 320, 128], f"threads: {threads}")
    check(thresholds(log) == [1, 2, 3, 4, 8, 6, 512, 512], f"thresholds: {thresholds(log)}")
    log = run(machine, gpus, NCCL_NTHREADS="100", NCCL_THREAD_THRESHOLDS="9 8,7")
    check(table(log, ALGOS)[1]["Tree", "LL"] == 512, "100 threads are mended")
    check("NCCL_NTHREADS is 100, which is no multiple of 32 between 64 and 512: 512 it is" in log, "and told")
    check(thresholds(log)[:3] == [9, 8, 64] and "NCCL_THREAD_THRESHOLDS '9 8,7' is not six numbers" in log, "thresholds")
    for where, algos in ((machine, ALGOS), (None, FLAT)):
        log = run(where, gpus, NCCL_ALGO="Ring;allreduce:^ring,direct,ONESHOT,halving", NCCL_PROTO="^LL;AllReduce:simple")
        check(set(calls(log).values()) <= {("TREE", "SIMPLE", n) for n in range(1, 65)}, f"{where}: {calls(log)}")
        cells, _ = table(log, algos)
        on = {(f, a, p) for (f, a, p), (_, bandwidth) in cells.items() if bandwidth}
        check({c for c in on if c[0] == "AllReduce"} == {("AllReduce", "Tree", "Simple")}, f"{where}: {on}")
        check({(a, p) for f, a, p in on if f == "AllGather"} == {("Ring", "LL128"), ("Ring", "Simple")}, f"{where}: {on}")
        check("Enabled NCCL Func/Proto/Algo Matrix:" in log, "the matrix of switches")
        check(re.search(r"    AllReduce \|        0         0         1   \|             1              0 ", log), "its row")
        log = run(where, gpus, NCCL_ALGO="Ring", NCCL_MAX_NCHANNELS="1")
        check({c for _, _, c in calls(log).values()} == {1}, f"{where}: one channel: {calls(log)}")
        log = run(where, gpus, NCCL_ALGO="Ring", NCCL_MIN_CTAS="6", NCCL_MAX_CTAS="6")
        check(max(c for _, _, c in calls(log).values()) == 6 and "6 coll channels" in log, f"{where}: six: {calls(log)}")
        for variable, sentence in (("NCCL_MIN_NCHANNELS=99", "is 99, which is no number from 1 to 64: 64 it is"),
                                   ("NCCL_MAX_NCHANNELS=-5", "is -5, which is no number from 1 to 64: 64 it is"),
                                   ("NCCL_BUFFSIZE=7", "is 7 bytes, accepted are"), ("NCCL_MIN_CTAS=99", "99 is ignored"),
                                   ("NCCL_MAX_CTAS=many", "value 'many' is not understood")):
            name, value = variable.split("=")
            check(f"{name}" in (log := run(where, gpus, **{name: value})) and sentence in log, f"{where} {variable}: unreported")
        for settings, sentence in (
                ({"NCCL_ALGO": "Ringg"}, "NCCL_ALGO: unknown word 'Ringg' (accepted: Tree, Ring"),
                ({"NCCL_PROTO": "LL,LL9"}, "NCCL_PROTO: unknown word 'LL9' (accepted: LL, LL128, Simple)"),
                ({"NCCL_ALGO": "all:Ring"}, "NCCL_ALGO: unknown function 'all' (accepted: Broadcast, Reduce,"),
                ({"NCCL_PROTO": "LL;Simple"}, "NCCL_PROTO: 'Simple' names no function"),
                ({"NCCL_ALGO": "PAT"}, "no algorithm or protocol is left for AllReduce: NCCL_ALGO is PAT")):
            status, output, log = start(where, gpus, settings)
            check(status and sentence in output + log, f"{where} {settings}: exit {status}, no '{sentence}' in {output[-1500:]}")
    print("variables: obeyed")


def groups_are_asked_in_bundles():
    """What a tuner is asked: (function, bytes, operations, registered)."""
    # floats, less than four times the smallest of each bundle; 64 integers; an AllGather
    group = [(4, 4 * (16 + 63)), (4, 4 * (64 + 128 + 200)), (4, 4 * 256), (4, 4 * (1024 + 2048)), (4, 256), (2, 128)]
    for machine, nops in ((None, 5), ("c10-2xa6000-bridge", None)):
        with tempfile.TemporaryDirectory() as folder:
            asked = os.path.join(folder, "asked")
            settings = {"NCCL_TUNER_PLUGIN": f"{PLUGINS}/libnccl-tuner_force.so", "TUNER_LOG": asked}
            if machine:
                settings["NCCL_TOPO_FILE"] = os.path.join(MACHINES, machine + ".xml")
            done = subprocess.run([TUTTI, "run", "-n", "2", BUNDLES], env=dict(os.environ, **settings), capture_output=True,
                                  text=True, timeout=120)
            check(done.returncode == 0, f"bundles: {done.stdout}{done.stderr}")
            lines = [tuple(map(int, l.split()[1:])) for l in open(asked) if l.startswith("ask ")]
        expected = [(f, b, nops) for f, b in group] + [(4, 400, 1), (4, 404, 1), (4, 1332, 1)]
        found = sorted(lines)
        check(len(found) == 2 * len(expected), f"{machine}: two ranks ask {len(expected)} times each: {found}")
        check({(f, b, n if nops or (f, b) not in group else None) for f, b, n, _ in found} == set(expected), f"{machine}: {found}")
        check({(b, r) for _, b, n, r in found if n == 1 and b in (400, 404, 1332)} == {(400, 1), (404, 0), (1332, 1)},
              f"{machine}: registered, not, captured: {found}")
        check(not machine or {n for f, b, n, _ in found if (f, b) in group} <= {1, 2, 3, 4, 5}, f"operations: {found}")
    done = subprocess.run([TUTTI, "run", "-n", "2", BUNDLES], env=dict(os.environ, NCCL_TOPO_FILE=os.path.join(
        MACHINES, "c10-2xa6000-bridge.xml")), capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"bundles without a tuner: {done.stdout}{done.stderr}")
    print("groups: asked in bundles")


def rules_change_in_a_running_job():
    """Four ranks call all the time; a file that changes changes their choice, and no rank hangs or computes wrong."""
    with tempfile.TemporaryDirectory() as folder:
        rules, stop = os.path.join(folder, "rules"), os.path.join(folder, "stop")

        def write(text):
            with open(rules + ".new", "w") as file:
                file.write(text)
            os.rename(rules + ".new", rules)

        def seen(what):
            for _ in range(1200):
                names = [os.path.join(folder, n) for n in os.listdir(folder) if n.startswith("log.")]
                if any(what in open(name).read() for name in names):
                    return
                check(job.poll() is None, f"the job ended: {job.returncode}")
                time.sleep(0.05)
            sys.exit(f"wrong: no '{what}' within a minute")

        write("allreduce,0,64,ring,simple,1,-1,-1\n")
        environment = dict(os.environ, NCCL_TUNER_PLUGIN=OURS, NCCL_TUNER_CONFIG_FILE=rules, NCCL_DEBUG="INFO",
                           NCCL_DEBUG_SUBSYS="TUNING", NCCL_DEBUG_FILE=os.path.join(folder, "log.%p"))
        job = subprocess.Popen([TUTTI, "run", "-n", "4", BUNDLES, stop], env=environment, stdout=subprocess.DEVNULL)
        try:
            seen("4 Bytes -> Algo RING proto SIMPLE")
            write("allreduce,0,64,tree,ll128,1,-1,-1\n")
            seen("4 Bytes -> Algo TREE proto LL128")
            write("allreduce,0,64,tree,sample,1,-1,-1\nallreduce,0,64,ring,ll,1,-1,4\n")
            seen("4 Bytes -> Algo RING proto LL ")
            seen(f"{rules}:1: field 5, 'sample', is no protocol")
            open(stop, "w").close()
            check(job.wait(timeout=60) == 0, f"the job's exit status is {job.returncode}")
        finally:
            if job.poll() is None:
                job.terminate()
                job.wait()
    print("rules: changed in a running job")


def plugins_that_are_none():
    log = run(None, 2, NCCL_TUNER_PLUGIN="nosuch")
    check("TUNER/Plugin: Could not find: nosuch libnccl-tuner-nosuch.so" in log, "a missing plugin is told")
    log = run(None, 2, NCCL_TUNER_PLUGIN=f"{PLUGINS}/libnccl-net_test.so")
    check(re.search(r"External tuner plugin \S+ is unsupported", log), "a library without tuner is told")
    log = run(None, 2, **outsider(2, OUTSIDER_CHOICE="1,0,0"))
    check("TUNER/Plugin: Using Outsider (v2)" in log and "Successfully loaded external tuner plugin" in log, "what NCCL says")
    check({a for a, _, _ in calls(log).values()} == {"RING"}, "a stranger's choice")
    check(re.search(r"Outsider was asked \d+ times, p50 [\d.]+ us, max [\d.]+ us", log), "time spent, at the end")
    perf = [TUTTI, "perf", "--json", "--ranks", "2", "-b", "64", "-e", "64", "-n", "2", "-w", "1", "allreduce"]
    done = subprocess.run(perf, env=dict(os.environ, **outsider(4)), capture_output=True, text=True, timeout=60, check=True)
    use = json.loads(done.stdout)["tuner"]
    check(use["name"] == "Outsider" and use["asked"] > 0 and use["p50_usec"] <= use["max_usec"], f"perf's tuner: {use}")
    print("plugins: hosted or told")


table_is_the_export("c06-dgxh100", 8)
table_is_the_export("c10-2xa6000-bridge", 2)
constants_take_effect()
variables_are_obeyed()
groups_are_asked_in_bundles()
rules_change_in_a_running_job()
plugins_that_are_none()
