#!/usr/bin/env python3
"""NCCL's RAS as its own client speaks it, line by line: reports, MONITOR, DIAGNOSTICS, CONTROL, a job in its init.
usage: ras.py BLAME TUTTI PROFILER-PLUGIN"""
import contextlib, glob, json, os, random, re, resource, signal, socket, subprocess, sys, tempfile, time

BLAME, TUTTI, PLUGIN = sys.argv[1:4]
RANKS, VICTIM = 3, 2
failures = []


def check(what, good, seen=""):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}: {str(seen)[-3000:]}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def job(scenario, env, folder, devices=lambda rank: {}, prefix=[]):
    started = [subprocess.Popen([*prefix, BLAME, scenario, str(RANKS), str(r), str(VICTIM), os.path.join(folder, "id")],
                                env={**os.environ, **env, **devices(r)}, stderr=subprocess.DEVNULL) for r in range(RANKS)]
    try:
        yield started
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
        for process in started:
            process.wait()


class Client:
    """Waits for the answer to each line before it sends the next one, as ncclras does."""
    def __init__(self, port, host="127.0.0.1"):
        end = time.monotonic() + 60
        while True:
            try:
                self.s = socket.create_connection((host, port), 10)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self.s.settimeout(60)
        self.file = self.s.makefile("rw", newline="\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.s.close()

    def send(self, line):
        self.file.write(line + "\n")
        self.file.flush()

    def ask(self, line):
        self.send(line)
        return self.file.readline()

    def report(self, line):
        self.send(line)
        return self.file.read()


def status(port, verbose=False, json_format=True):
    with Client(port) as client:
        check("handshake", client.ask("CLIENT PROTOCOL 2") == "SERVER PROTOCOL 2\n")
        check("timeout", client.ask("TIMEOUT 1.5") == "OK\n")
        if json_format:
            check("format", client.ask("SET FORMAT json") == "OK\n")
        text = client.report("VERBOSE STATUS" if verbose else "STATUS")
        return json.loads(text) if json_format else text


def eventually(what, get, good):
    """A job's state changes in its own time."""
    end = time.monotonic() + 60
    while not good(seen := get()) and time.monotonic() < end:
        time.sleep(0.1)
    check(what, good(seen), seen)
    return seen


def running(report):
    comms = report["communicators"]
    return comms and all(c["ranks_count"] == RANKS and all(r["status"]["init_state"] == 0 for r in c["ranks"]) for c in comms)


def logs(folder):
    return [open(path).read() for path in glob.glob(os.path.join(folder, "log.*"))]


def masks(port, folder):
    def said(mask):
        return lambda texts: len(texts) == RANKS and all(f"Profiler event mask: {mask} " in t for t in texts)
    for value, mask in ("coll,KernelCh", "0x42"), ("none", "0x0"), ("0x15", "0x15"), ("1", "0x1"), ("all", "0x7fff"):
        with Client(port) as client:
            check(f"mask {value}", (a := client.ask(f"CONTROL PROFILER_MASK {value}")) == "OK\n", a)
        texts = logs(folder)
        check(f"mask {value} everywhere", said(mask)(texts), [re.findall("Profiler event mask.*", t) for t in texts])
    with Client(port) as client:
        for wrong, answer in (("control profiler_mask bogus", "ERROR: Invalid profiler mask value 'bogus'\n"),
                              ("control profiler_mask coll,", "ERROR: Invalid profiler mask value 'coll,'\n"),
                              ("control profiler_mask 0x1ffffffff", "ERROR: Invalid profiler mask value '0x1ffffffff'\n"),
                              ("control x y", "ERROR: Unknown command CONTROL x y\n"),
                              ("monitor bogus", "ERROR: Invalid event group 'bogus'\n"),
                              ("monitor trace,", "ERROR: Invalid event group ''\n")):
            check(wrong, (a := client.ask(wrong)) == answer, a)
    with Client(port) as client:
        client.file.write("CONTROL PROFILER_MASK coll\nSET FORMAT json\nSTATUS\n")
        client.file.flush()
        check("lines sent together", (a := client.file.readline() + client.file.readline()) == "OK\nOK\n", a)
        check("the last one too", '"communicators_count"' in (a := client.file.read()), a)
    r = subprocess.run([TUTTI, "ras", "-p", str(port), "--monitor=bogus"], capture_output=True, text=True, timeout=30)
    check("tutti ras --monitor=bogus", r.returncode == 1 and not r.stdout and "Invalid event group 'bogus'" in r.stderr, r)
    r = subprocess.run([TUTTI, "ras", "-p", str(port), "CONTROL", "PROFILER_MASK", "p2p"], capture_output=True, text=True)
    check("tutti ras CONTROL", r.returncode == 0 and r.stdout == "OK\n", r.stdout + r.stderr)
    check("mask by tutti ras", said("0x4")(logs(folder)))


def diagnostics(port, printed):
    with Client(port) as client:
        text = client.report("DIAGNOSTICS")
    lines = text.splitlines()
    check("prefix", all(re.match(r"\S+:\d+ NCCL DIAG ", line) for line in lines), text)
    told = [line.split(" NCCL DIAG ", 1)[1] for line in lines]
    check("header", told[0] == "=== RAS Diagnostics ===", text)
    check("driver", any(re.match(rf"\[OK\]   CUDA driver version: \d+ consistent across {RANKS} ranks in comm 0x", t) for t in told), text)
    check("inventory", any(re.match(r"\[INFO\] GPU inventory: 3x .+ on rank\(s\) \{0,1\}$", t) for t in told) and
          any(re.match(r"\[INFO\] GPU inventory: 4x .+ on rank\(s\) \{2\}$", t) for t in told), text)
    check("values", "[INFO] NCCL environment: NCCL_MIN_NCHANNELS=1 on rank(s) {0,1}" in told and
          "[INFO] NCCL environment: NCCL_MIN_NCHANNELS=2 on rank(s) {2}" in told, text)
    check("summary", any(re.match(r"\[INFO\] NCCL environment: 1 NCCL_\* env var\(s\) differ across ranks in comm 0x", t) for t in told), text)
    check("end", re.match(rf"RAS diagnostics completed in [\d.]+ ms across {RANKS} RAS peers$", told[-1]), text)
    r = subprocess.run([TUTTI, "ras", "-D", "-p", str(port)], capture_output=True, text=True)
    check("tutti ras -D", "=== RAS Diagnostics ===" in r.stdout and r.returncode == 0, r.stdout + r.stderr)
    eventually("at init", lambda: open(printed).read(), lambda text: f"NCCL_MIN_NCHANNELS=2 on rank(s) {{2}}" in text)


def local(process):
    """A client of that process, whatever others listen at the port."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"\0tutti-watch-{os.geteuid()}-{process.pid}")
        s.settimeout(60)
        return s.makefile("rw", newline="\n")


def busy(processes):
    """While one waits for a rank that is stopped, another one is told so."""
    processes[VICTIM].send_signal(signal.SIGSTOP)
    with local(processes[0]) as first, local(processes[0]) as second:
        first.write("TIMEOUT 2\nDIAGNOSTICS\n")
        first.flush()
        check("timeout", first.readline() == "OK\n")
        second.write("DIAGNOSTICS\n")
        second.flush()
        check("busy", (a := second.read()) == "BUSY: diagnostics already in progress\n", a)
        check("missing", re.search(r"\[INFO\] Ranks: no answer from rank\(s\) \{2\} in comm 0x", a := first.read()), a)
    processes[VICTIM].send_signal(signal.SIGCONT)


def few_descriptors(process):
    """Fewer descriptors than the watchdog has places: it sleeps all the same."""
    def ticks():
        for task in os.listdir(f"/proc/{process.pid}/task"):
            with open(f"/proc/{process.pid}/task/{task}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
                if name == "tutti-watch":
                    return sum(map(int, rest.split()[11:13]))
    before_limit = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (10, before_limit[1]))
    before = ticks()
    time.sleep(0.5)
    check("few descriptors", ticks() - before < os.sysconf("SC_CLK_TCK") // 10, ticks() - before)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before_limit)


def changed_lines(processes, port):
    """Lines of the protocol with bytes changed, cut, doubled and run together, in packets of any size: each is answered
    or the connection ends, and the job answers as before. RAS_SEED and RAS_SECONDS play others, for longer."""
    seed, seconds = int(os.environ.get("RAS_SEED", "1")), float(os.environ.get("RAS_SECONDS", "2"))
    play = random.Random(seed)
    words = ["CLIENT PROTOCOL 2", "TIMEOUT 0.2", "TIMEOUT 1e309", "SET FORMAT json", "SET FORMAT text", "STATUS", "VERBOSE STATUS",
             "MONITOR trace,all", "DOCTOR", "FLIGHT", "DIAGNOSTICS", "CONTROL PROFILER_MASK 0x7", "TIMEOUT -1", "", "\x00\xff"]
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        text = bytearray("\n".join(play.choices(words, k=play.randint(1, 6))) + "\n", "latin1")
        for _ in range(play.choice([0, 1, 1, 3, 30])):
            at = play.randrange(len(text) + 1)
            text[at:at + play.randrange(3)] = play.randbytes(play.choice([0, 1, 2, 700]))
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 10) as s:
            s.settimeout(0.005)
            while text:
                n = play.choice([1, 7, len(text)])
                s.sendall(text[:n])
                del text[:n]
            with contextlib.suppress(TimeoutError):
                while play.random() < 0.8 and s.recv(65536):
                    pass
        count += 1
    eventually(f"after {count} changed requests, seed {seed}", lambda: status(port), running)
    check("everybody lives", all(p.poll() is None for p in processes), [p.poll() for p in processes])


def monitor(processes):
    """A process that is stopped, goes on, and is killed; a client without interest in stops hears of the death alone."""
    victim = processes[VICTIM]
    name = re.escape(f"Process {victim.pid} on node") + r" \S+ managing GPU 2"
    clients = [local(process) for process in processes[:VICTIM]]
    everything, deaths = clients
    everything.write("SET FORMAT json\nMONITOR lifecycle,trace\n")
    deaths.write("MONITOR\n")
    for file in clients:
        file.flush()
    check("monitor", [everything.readline(), everything.readline(), deaths.readline()] == ["OK\n"] * 3)
    for file in clients:  # the first look, with which others are compared, comes before the next answer
        file.write("TIMEOUT 5\n")
        file.flush()
        check("answers while it monitors", (a := file.readline()) == "OK\n", a)

    def event():
        text = ""
        while not text.endswith("\n}\n"):
            line = everything.readline()
            if not line:
                return {}
            text += line
        return json.loads(text)
    for what, sent in ("PEER_UNRESPONSIVE", signal.SIGSTOP), ("PEER_RECOVERED", signal.SIGCONT), ("PEER_DEAD", signal.SIGKILL):
        victim.send_signal(sent)
        seen = event()
        check(what, seen.get("event") == what and seen["group"] == ("LIFECYCLE" if what == "PEER_DEAD" else "TRACE") and
              seen["peer"]["pid"] == victim.pid and seen["peer"]["cuda_devs"] == [2] and "details" in seen, seen)
    line = deaths.readline()
    check("as text", re.match(rf"\[\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\] PEER_DEAD: {name}", line), line)
    for file in clients:
        file.close()


def same_numbers(folder):
    """Each process is number 1 of a namespace of its own, as in containers: they are others all the same."""
    ways = [["unshare", *options, "-fp", "--kill-child"] for options in ([], ["-r"])]
    try:
        ways = [way for way in ways if subprocess.run([*way, "true"], capture_output=True).returncode == 0]
    except FileNotFoundError:
        ways = []
    if not ways:
        print("no namespaces of pids here: not looked at")
        return
    port = free_port()
    one = {"NCCL_RAS_ADDR": f"localhost:{port}"}
    with job("idle", {}, folder, lambda r: {"NCCL_RAS_ENABLE": "0"} if r else one, ways[0]) as processes:
        eventually("running", lambda: status(port), running)
        with Client(port) as client:
            check("monitor", client.ask("MONITOR") == "OK\n")
            check("first look", client.ask("TIMEOUT 5") == "OK\n")
            processes[VICTIM].kill()
            check("the death of another number 1", "PEER_DEAD: Process 1 on node" in (a := client.file.readline()), a)


def in_init(folder):
    """Two of three have come to a communicator; it is listed with those who have, and does not hold the report up."""
    port = free_port()
    with job("absent", {"NCCL_RAS_ADDR": f"localhost:{port}"}, folder) as processes:
        def comm():
            listed = status(port)["communicators"]
            return [c for c in listed if any(r["status"]["init_state"] == 7 for r in c["ranks"])]
        comms = eventually("in its init", comm, lambda found: found and found[0]["ranks_count"] == 2)
        check("init", comms and comms[0]["size"] == RANKS and comms[0]["missing_ranks_count"] == 1 and
              [r["pid"] for r in comms[0]["ranks"]] == [p.pid for p in processes[:2]], comms)
        text = status(port, json_format=False)
        check("as text", re.search(r"^ +\d +1 +1 +2 +3 +2 +INIT +INCOMPLETE$", text, re.M), text)


def in_finalize(folder):
    """Two ranks end the communicator while one of their calls waits for the third."""
    port = free_port()
    with job("finalizes", {"NCCL_RAS_ADDR": f"localhost:{port}"}, folder):
        def called():
            comms = status(port)["communicators"]
            return [r["status"]["finalize_called"] for c in comms for r in c["ranks"]]
        eventually("finalize_called", called, lambda seen: seen == [r != VICTIM for r in range(RANKS)])
        text = status(port, verbose=True, json_format=False)
        check("FINALIZE", re.search(r" FINALIZE +MISMATCH$", text, re.M) and "2 ranks have status FINALIZE" in text
              and re.search(rf"Rank {VICTIM} has status RUNNING -- ", text), text)


def from_network(folder):
    """At an address that is not loopback every client may read, and none may change anything."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect(("192.0.2.1", 9))  # sends nothing: which address would it be?
            host = s.getsockname()[0]
    except OSError:
        return
    port = free_port()
    if host.startswith("127."):
        return
    with job("idle", {"NCCL_RAS_ADDR": f"{host}:{port}"}, folder), Client(port, host) as client:
        answer = client.ask("CONTROL PROFILER_MASK all")
        check("control from a network", answer == "ERROR: CONTROL is for this user's processes on this host\n", answer)
        check("format from a network", client.ask("SET FORMAT json") == "OK\n")
        check("status from a network", '"communicators_count"' in (said := client.report("STATUS")), said)


def blocked_output(folder):
    """No process reads what rank 0 prints of its communicator: RAS answers all the same, after a second."""
    port = free_port()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    saved = os.dup(1)
    sys.stdout.flush()
    os.dup2(writer, 1)
    env = {"NCCL_RAS_ADDR": f"localhost:{port}", "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": os.path.join(folder, "log.%p"),
           "NCCL_RUN_RAS_DIAGNOSTICS": "1", "TUTTI_DEVICES": "3"}
    with job("idle", env, folder):
        os.dup2(saved, 1)
        said = "nobody reads standard output"
        eventually("a full pipe is told", lambda: logs(folder), lambda texts: any(said in text for text in texts))
        eventually("running beside a full pipe", lambda: status(port), running)
    for end in reader, writer, saved:
        os.close(end)


def main():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        printed = os.path.join(folder, "log.stdout")
        env = {"NCCL_RAS_ADDR": f"localhost:{port}", "NCCL_PROFILER_PLUGIN": PLUGIN, "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE":
               os.path.join(folder, "log.%p"), "NCCL_RUN_RAS_DIAGNOSTICS": "1", "TUTTI_DEVICES": "3"}
        other = {"TUTTI_DEVICES": "4", "NCCL_MIN_NCHANNELS": "2"}
        with open(os.path.join(folder, "printed"), "w") as out:
            saved = os.dup(1)
            sys.stdout.flush()
            os.dup2(out.fileno(), 1)
            with job("idle", env, folder, lambda r: other if r == VICTIM else {"NCCL_MIN_NCHANNELS": "1"}) as processes:
                os.dup2(saved, 1)
                eventually("running", lambda: status(port), running)
                diagnostics(port, out.name)
                masks(port, folder)
                few_descriptors(processes[0])
                busy(processes)
                refused = subprocess.run([TUTTI, "ras", "-p", str(port), "--monitor=bogus"], capture_output=True, text=True, timeout=60)
                check("a monitor of nothing", refused.returncode == 1 and not refused.stdout and
                      refused.stderr == "ERROR: Invalid event group 'bogus'\n", refused)
                changed_lines(processes, port)
                monitor(processes)
    with tempfile.TemporaryDirectory() as folder:
        in_init(folder)
    with tempfile.TemporaryDirectory() as folder:
        in_finalize(folder)
    with tempfile.TemporaryDirectory() as folder:
        same_numbers(folder)
    with tempfile.TemporaryDirectory() as folder:
        from_network(folder)
    with tempfile.TemporaryDirectory() as folder:
        blocked_output(folder)
    print(f"ras: {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
