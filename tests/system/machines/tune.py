#!/usr/bin/env python3
"""tune.py TUTTI PROGRAM TUNER_PLUGIN: `tutti tune` measures and writes a file, communicators predict and choose by it, and files of other
machines, cut and garbled ones are refused with a sentence that users see. Figures are not judged: the machine may be busy."""
import json, os, re, signal, stat, subprocess, sys, tempfile, time

TUTTI, PROGRAM, PLUGIN = sys.argv[1:4]
FIGURES = ["phase_usec", "switch_usec", "net_phase_usec", "touch_usec", "direct_bytes_usec", "slot_bytes_usec",
           "crowded_slot_bytes_usec", "net_bytes_usec"]
for name in [n for n in os.environ if n.startswith(("NCCL_", "TUTTI_TUNE"))]:
    del os.environ[name]


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def tutti(*words, status=0, **settings):
    done = subprocess.run([TUTTI, *words], env=dict(os.environ, **settings), capture_output=True, text=True, timeout=500)
    check(done.returncode == status, f"{words}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, done.stderr


def figures(text):
    return {w: float(v) for w, v in re.findall(r"^(\w+) ([\d.e+-]+)$", text, re.M) if w in FIGURES}


def show(path, status=0):
    return tutti("tune", "--show", status=status, TUTTI_TUNE_FILE=path)[0]


def log(folder, path, **settings):
    """The INFO log of two ranks that read the file."""
    for name in os.listdir(folder):
        if name.startswith("log."):
            os.unlink(os.path.join(folder, name))
    tutti("run", "-n", "2", PROGRAM, "2", TUTTI_TUNE_FILE=path, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,TUNING",
          NCCL_DEBUG_FILE=os.path.join(folder, "log.%p"), **settings)
    return "".join(open(os.path.join(folder, n)).read() for n in sorted(os.listdir(folder)) if n.startswith("log."))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def cell(text, func, number):
    """Latency and bandwidth of the n-th combination of the blocks of a function."""
    rows = re.findall(rf"NCCL INFO +{func} \|(.*)$", text, re.M)
    found = [(float(l), float(b)) for row in rows for l, b in re.findall(r" *([\d.]+)/ *([\d.]+) \|", row)]
    check(found, f"no table in {text[:2000]}")
    return found[number]


def program_files(folder):
    """A folder with an AllReduce of two ranks, and a file that is none."""
    place = os.path.join(folder, "programs")
    os.mkdir(place)
    step = '<step s="{}" type="{}" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
    gpu = '<gpu id="{0}" i_chunks="1" o_chunks="1" s_chunks="0"><tb id="0" send="{1}" recv="{1}" chan="0">{2}{3}</tb></gpu>'
    write(os.path.join(place, "two.xml"),
          '<algo name="two" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1" outofplace="1">' +
          "".join(gpu.format(r, 1 - r, step.format(0, "s"), step.format(1, "rrc")) for r in (0, 1)) + "</algo>")
    write(os.path.join(place, "bad.xml"), "<algo")
    return place


def programs_compete(folder, place, text):
    """A program runs where its measured time is less than the library's own, and nowhere else."""
    rows = re.findall(r"^program ([0-9a-f]{16}) (\d+) ([\d.e+-]+) ([\d.e+-]+)$", text, re.M)
    check([int(row[1]) for row in rows] == [64 * 8**k for k in range(7)] and len({row[0] for row in rows}) == 1, f"rows: {rows}")
    for own, wanted in (("1000", True), ("1", False)):
        path = write(os.path.join(folder, "measured"), re.sub(r"^(program \w+ \d+) .*$", rf"\1 100 {own}", text, flags=re.M))
        said = log(folder, path, TUTTI_PROGRAM_DIR=place)
        run = re.search(r"AllReduce: 8388608 Bytes -> program two.xml .*, measured to be faster$", said, re.M)
        check(bool(run) == wanted and (wanted or "8388608 Bytes -> program" not in said), f"measured beside {own}: {said}")


def measure(folder, place):
    """A file that has all figures, sane ones, and measured times; written nowhere when it cannot be."""
    path = os.path.join(folder, "new", "machine.tune")
    told, said = tutti("tune", "--json", "--force", "--seconds", "600", "--ranks", "2", "--output", path, TUTTI_PROGRAM_DIR=place)
    check("bad.xml is not measured: line 1: " in said and re.search(r"two.xml: faster than the library's own at \d of 7 sizes", said), said)
    check(f"wrote {path}" in said and os.listdir(os.path.dirname(path)) == ["machine.tune"], f"what it said: {said}")
    text = open(path).read()
    check(text.startswith("tutti-tune 1\nmachine ") and text.endswith("\n"), text[:200])
    found = figures(text)
    check(list(found) == FIGURES and all(value > 0 for value in found.values()), f"figures {found}")
    check("# net_phase_usec and net_bytes_usec are of sockets inside this host" in text, "where the network's figures come from")
    check("no time left" not in said and "could not be measured" not in said, f"what was not measured: {said}")
    check(re.search(r"^time allreduce ring ll 2 1 1024 [\d.]+$", text, re.M), "measured times")
    check({line.split()[4] for line in text.splitlines() if line.startswith("time ")} == {"2"}, "of two ranks")
    for name in FIGURES:
        check(re.search(rf"tutti tune: {name} +\S+ +\S+", said), f"{name} beside the built-in figure: {said}")
    check(re.search(r"figure +here +built-in", said), said)
    told = json.loads(told)
    check(told["written"] == path and [figure["name"] for figure in told["figures"]] == list(FIGURES) and
          all(figure["value"] > 0 and figure["built_in"] > 0 and figure["in_doubt"] in (True, False) for figure in told["figures"]) and
          any(figure["measured"] for figure in told["figures"]), f"as JSON: {told}")
    doubt(path, text)
    shown = show(path)
    check(shown.startswith(f"# {path}\n") and figures(shown) == found, f"--show: {shown}")
    tutti("tune", "--force", "--quick", "--seconds", "1", status=1, TUTTI_TUNE_FILE="none")
    tutti("tune", "--seconds", "0", status=2)
    tutti("tune", "--json", "--output", "-", status=2)
    tutti("tune", "--ranks", "2,x", status=2)
    tutti("tune", "--force", "--quick", "--seconds", "1", "--output", "/proc/no/such/file", status=1)
    return text


def doubt(path, text):
    """Others who come while it measures: the file stays what it was. (On a machine that is busy before, too.)"""
    spinners = []
    measuring = subprocess.Popen([TUTTI, "tune", "--quick", "--seconds", "10", "--output", path], stderr=subprocess.PIPE, text=True)
    try:
        said = measuring.stderr.readline()
        spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * os.cpu_count())]
        said += measuring.stderr.read()
        check(measuring.wait(300) == 1, f"a doubtful measurement: {said}")
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    check("others use" in said, said)
    check(open(path).read() == text, "what was there stays")


def obey(folder, text):
    """Communicators read it; other figures, other predictions and choices."""
    path = write(os.path.join(folder, "own"), text)
    said = log(folder, path)
    check(said.count(f"figures of this machine are those of {path}") == 2, "both ranks read it")
    plain = re.sub(r"^slot_bytes_usec .*", "slot_bytes_usec 1000", re.sub(r"^direct_bytes_usec .*", "direct_bytes_usec 50000",
                   text, flags=re.M), flags=re.M)
    faster = plain.replace("slot_bytes_usec 1000\n", "slot_bytes_usec 4000\n", 1)
    few = {"NCCL_MAX_CTAS": "1"}
    ring = 5  # Ring, Simple
    one = cell(log(folder, write(path, plain), **few), "AllReduce", ring)[1]
    four = cell(log(folder, write(path, faster), **few), "AllReduce", ring)[1]
    check(one > 0 and abs(four - 4 * one) < 0.5, f"four times the bandwidth through slots: {one}, {four}")
    big = "AllReduce: 8388608 Bytes -> Algo (\\w+)"
    check(set(re.findall(big, log(folder, write(path, plain)))) == {"DIRECT"}, "fast user buffers are used")
    slow = plain.replace("direct_bytes_usec 50000\n", "direct_bytes_usec 2\n")
    check("DIRECT" not in re.findall(big, log(folder, write(path, slow))), "slow user buffers are not")
    measured = dict(NCCL_TUNER_PLUGIN=os.path.abspath(PLUGIN), TUTTI_TUNER_MODEL="measured")
    said = log(folder, write(path, text), **measured)
    own = said
    said = log(folder, write(path, re.sub("^machine .*", "machine Else", text, flags=re.M)), **measured)
    check("own:2: measured on 'Else', this is '" in said and "0 measured times" in said, "the tuner refuses others' times")
    check(re.search(r"TUNER/Tutti: \d+ measured times for 2 ranks on 1 nodes from", own), "the tuner reads the times")


def refuse(folder, text):
    """Every rank says so, without NCCL_DEBUG, and goes on with the built-in figures."""
    path = os.path.join(folder, "bad")
    machine = re.search(r"^machine (.*)$", text, re.M).group(1)
    head = text[:text.index("# net_phase")]
    lines = head.count("\n")
    cases = [(text.replace(machine, "Other, 512 cores"), f"it was measured on 'Other, 512 cores', this is '{machine}'"),
             (head[:-4], f"line {lines}: it ends in the middle of a line"),
             (head[:head.rindex("net_bytes")], f"it has no net_bytes_usec; it ends with line {lines - 1}"),
             (head.replace("touch_usec ", "touch_usec x"), "line 6: touch_usec is x"),
             (head + "time allreduce ring ll 2 1 \n", f"line {lines + 1}: 'time allreduce ring ll 2 1 ' is no measured time"),
             (head + "\x01\x02\n", f"line {lines + 1}: nobody knows '\x01\x02'"),
             ("", "line 1: it does not begin with 'tutti-tune 1'")]
    builtin = figures(show("none"))
    for bad, reason in cases:
        write(path, bad)
        shown = show(path, status=1)
        check(shown.startswith(f"# built-in figures: {path} is refused: {reason}"), f"--show: {shown}, not {reason}")
        check(figures(shown) == builtin, "the built-in figures")
        check("is refused" in log(folder, path), "the log's warning")
    perf = ["perf", "--ranks", "2", "-b", "64", "-e", "64", "-n", "1", "-w", "0", "allreduce"]
    _, said = tutti(*perf, TUTTI_TUNE_FILE=write(path, cases[0][0]))
    check(f"TUTTI_TUNE_FILE {path} is refused: {cases[0][1]}; the built-in figures are used" in said, f"perf: {said}")
    check(said.count("is refused") == 1, f"perf says it once: {said}")
    _, said = tutti(*perf, TUTTI_TUNE_FILE=os.path.join(folder, "missing"))
    check("missing is refused: No such file or directory" in said, f"perf, no file: {said}")


def outputs(folder):
    """Where nothing can be written is told, by name and before a minute is spent; a device stays a device."""
    for place, reason in ((folder, "is a folder"), ("/dev/null/x", "/dev/null: Not a directory")):
        _, said = tutti("tune", "--force", "--quick", "-o", place, status=1)
        check(place in said and reason in said and "measuring" not in said, f"tune -o {place}: {said}")
    _, said = tutti("tune", "-o", "", status=2)
    check("empty" in said, f"tune -o '': {said}")
    _, said = tutti("tune", "--force", "--quick", "--seconds", "4", "-o", "/dev/full", status=1)
    check(stat.S_ISCHR(os.stat("/dev/full").st_mode), "a file in place of /dev/full")
    check("/dev/full is not written: No space left" in said or "nothing could be measured" in said, f"a full disk: {said}")


def running(group):
    """Processes of a group that are not merely waiting to be fetched."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, _, pgrp = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(pgrp) == group and state != "Z":
            found.append(name)
    return found


def interrupted(folder):
    """Ctrl-C leaves no file and no process, whether it reaches all of them or the first one alone."""
    for reach in (os.killpg, os.kill):
        place = os.path.join(folder, "interrupted")
        os.mkdir(place)
        p = subprocess.Popen([TUTTI, "tune", "--force", "-o", os.path.join(place, "sub", "x")], stderr=subprocess.PIPE, text=True,
                             start_new_session=True)
        while "measuring" not in (line := p.stderr.readline()):
            check(line, "tune says when it begins to measure")
        reach(p.pid, signal.SIGINT)
        p.stderr.read()  # ends when no process holds it any more
        check(p.wait(60) == -signal.SIGINT, f"an interrupted tune: exit {p.returncode}")
        end = time.monotonic() + 60
        while running(p.pid) and time.monotonic() < end:
            time.sleep(0.02)
        check(not running(p.pid), f"processes are left: {running(p.pid)}")
        check(not os.listdir(place), f"files are left: {os.listdir(place)}")
        os.rmdir(place)


with tempfile.TemporaryDirectory() as folder:
    os.environ["HOME"] = folder
    place = program_files(folder)
    text = measure(folder, place)
    programs_compete(folder, place, text)
    text = re.sub(r"^program .*\n", "", text, flags=re.M)
    obey(folder, text)
    refuse(folder, text)
    outputs(folder)
    interrupted(folder)
print("measured, obeyed, refused, interrupted")
