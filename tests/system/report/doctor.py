#!/usr/bin/env python3
"""`tutti doctor`, `tutti ras` and the RAS port of a job in which one rank keeps the others waiting: the verdict, NCCL's
report as text and JSON, the protocol's answers, and nothing for another user. usage: doctor.py BLAME TUTTI"""
import contextlib, json, os, re, resource, signal, socket, subprocess, sys, tempfile, threading, time

BLAME, TUTTI = sys.argv[1:3]
RANKS, VICTIM = 4, 2
NAME, CLEAN = 'a"b\\c\nd' + "x" * 23 + "\u00fc", "a?b?c?d" + "x" * 23 + "?"  # its last letter is cut in two
failures = []


def check(what, good, seen=""):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}: {str(seen)[-2000:]}")


def tutti(*args, **kw):
    return subprocess.run([TUTTI, *args], capture_output=True, text=True, timeout=60, **kw)


@contextlib.contextmanager
def job(scenario, env, first={}, absent=None):
    """Processes of the ranks; variables of all, and of rank 0; a rank that does not come."""
    with tempfile.TemporaryDirectory() as folder:
        started = [subprocess.Popen([BLAME, scenario, str(RANKS), str(r), str(VICTIM), os.path.join(folder, "id")],
                                    env={**os.environ, "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", **env,
                                         **(first if r == 0 else {})},
                                    stderr=subprocess.DEVNULL) for r in range(RANKS) if r != absent]
        try:
            yield started
        finally:
            for process in started:
                process.send_signal(signal.SIGKILL)
            for process in started:
                process.wait()


def is_stable(job, waiting, state):
    """There is a verdict, and so many ranks' waits are listed, which takes them some time."""
    comm = job["communicators"][0]
    return comm["verdict"] and sum(r["state"] == state for r in comm["ranks"]) >= waiting


def asked(pid, waiting=0, state="waits"):
    """What the doctor says as soon as the job has come to rest; its exit status."""
    end = time.monotonic() + 60
    while True:
        r = tutti("doctor", "--pid", str(pid), "--json", "--timeout", "1")
        jobs = json.loads(r.stdout) if r.stdout else []
        took = re.search(r'"took_sec": ([\d.]+)', r.stdout or "")
        check("seconds without noise", not took or len(took[1]) < 12, r.stdout[:200])
        if jobs and jobs[0]["communicators"] and is_stable(jobs[0], waiting, state) or time.monotonic() > end:
            return jobs[0] if jobs else {}, r.returncode
        time.sleep(0.2)


def talk(port, lines):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(20)
        s.sendall(lines.encode())
        got = b""
        while chunk := s.recv(65536):
            got += chunk
        return got.decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def comma(folder):
    """A locale whose numbers have a comma, where it can be made."""
    with contextlib.suppress(OSError):
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "ISO-8859-1", os.path.join(folder, "comma")],
                              capture_output=True, timeout=120)
        if made.returncode == 0:
            return {"LOCPATH": folder, "LC_ALL": "comma"}
    return {}


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def doctor_says(processes):
    answer, status = asked(processes[0].pid, RANKS - 1)
    comm = answer["communicators"][0]
    pids = [p.pid for p in processes]
    check("doctor's verdict", comm["verdict"]["kind"] == "not called" and comm["verdict"]["rank"] == VICTIM and
          f"pid {pids[VICTIM]})" in comm["verdict"]["sentence"], comm["verdict"])
    check("doctor's status", status == 1, status)
    check("an unruly name", comm["name"] == CLEAN, comm["name"])
    check("doctor's ranks", [r["pid"] for r in comm["ranks"]] == pids, comm)
    check("who waits", [r["state"] for r in comm["ranks"]] == ["waits", "waits", "idle", "waits"], comm["ranks"])
    check("in which call", all(r["waits"][0]["operation"] == 3 for r in comm["ranks"] if r["waits"]), comm["ranks"])
    r = tutti("doctor", "--pid", str(pids[3]))
    check("as text", f"VERDICT: rank {VICTIM} on host" in r.stdout and r.returncode == 1, r.stdout + r.stderr)
    stacks_say(processes)
    r = tutti("doctor", "--json")  # finds it by itself, among those of other tests
    check("found", any(p["pid"] == pids[0] for j in json.loads(r.stdout) for p in j["processes"]), r.stdout)


def stacks_say(processes):
    """Where the program of each process is, also of one that is stopped, which stays so; without the right to look:
    why not."""
    processes[VICTIM].send_signal(signal.SIGSTOP)
    r = tutti("doctor", "--pid", str(processes[0].pid), "--stacks", "--json")
    for process in json.loads(r.stdout)[0]["processes"]:
        why = process.get("stacks_missing", "")
        functions = [f["function"] for s in process.get("stacks", []) for f in s["frames"]]
        check("stacks", "main" in functions or "not permitted" in why or "built without" in why, process)
    with open(f"/proc/{processes[VICTIM].pid}/stat") as file:
        check("a stopped process stays so", file.read().rpartition(")")[2].split()[0] == "T")
    processes[VICTIM].send_signal(signal.SIGCONT)
    r = tutti("doctor", "--pid", str(processes[0].pid), "--stacks")
    check("stacks as text", "stacks" in r.stdout, r.stdout)


def ras_says(processes, port):
    report = tutti("ras", "-p", str(port), "--format=json")
    ranks = json.loads(report.stdout)["communicators"][0]["ranks"]
    check("ras counts", [r["collective_counts"]["AllReduce"] for r in ranks] == [3, 3, 2, 3], report.stdout)
    check("ras pids", [r["pid"] for r in ranks] == [p.pid for p in processes], report.stdout)
    r = tutti("ras", "-p", str(port), "-v")
    check("ras table", re.search(r"^    0         1         1         4         4         4   RUNNING  MISMATCH$", r.stdout, re.M),
          r.stdout + r.stderr)
    check("ras names", f"Rank {VICTIM} has launched up to operation 2 -- GPU {VICTIM} managed by process "
          f"{processes[VICTIM].pid} on node" in r.stdout, r.stdout)
    said = talk(port, "client protocol 1\r\nnonsense\nset format xml\ntimeout x\ntimeout 0.5\nset format JSON\nstatus\n")
    check("protocol", said.startswith("SERVER PROTOCOL 2\nERROR: Unknown command nonsense\nERROR: Invalid format xml\n"
                                      "ERROR: Invalid timeout value x\nOK\nOK\n{\n  \"nccl_version\": "), said[:400])
    try:
        said = talk(port, "x" * 5000)
    except OSError:
        said = ""
    check("long lines", said == "", said)


def both_families(port):
    """A port of IPv6 answers this user over IPv4, too."""
    for host in "127.0.0.1", "::1":
        r = tutti("ras", "-h", host, "-p", str(port))
        check(f"from {host}", "Job summary" in r.stdout, r.stdout + r.stderr)


def crowd(pid):
    """Several ask at once, again and again: no report is made from an inquiry that has just begun."""
    reports = []
    end = time.monotonic() + 1.5

    def ask():
        while time.monotonic() < end:
            reports.append(json.loads(asks(pid, b"DOCTOR\n")))
    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    partial = [r for r in reports if r["communicators"][0]["missing"]]
    check("many at once", reports and not partial, (len(partial), len(reports)))


def asks(pid, lines):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"\0tutti-watch-{os.geteuid()}-{pid}")
        s.settimeout(60)
        s.sendall(lines)
        return b"".join(iter(lambda: s.recv(65536), b""))


def patient(pid):
    """A client that waits for ever for a rank that is stopped delays no other, and gets a report when another asks."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"\0tutti-watch-{os.geteuid()}-{pid}")
        s.settimeout(60)
        s.sendall(b"TIMEOUT 0\nDOCTOR\n")
        time.sleep(2)
        started = time.monotonic()
        said = asks(pid, b"TIMEOUT 0.3\nDOCTOR\n")
        check("beside a patient one", b'"kind": "stopped"' in said and time.monotonic() - started < 30, said)
        check("the patient one", b'"kind": "stopped"' in b"".join(iter(lambda: s.recv(65536), b"")))


def greedy(pid):
    """Who asks and never reads is not listened to, and who has hung up costs no time."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"\0tutti-watch-{os.geteuid()}-{pid}")
        s.settimeout(1)
        sent = 0
        try:
            while sent < 16 << 20:
                sent += s.send((b"x" * 1000 + b"\n") * 16)
        except TimeoutError:
            pass
    check("a client that never reads", sent < 16 << 20, sent)


def watch_ticks(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name == "tutti-watch":
                return sum(map(int, rest.split()[11:13]))


def hung_up(pid):
    """A report that is not waited for any more keeps no processor busy."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(f"\0tutti-watch-{os.geteuid()}-{pid}")
        s.sendall(b"TIMEOUT 0\nDOCTOR\n")
        time.sleep(0.3)
    before = watch_ticks(pid)
    time.sleep(1)
    check("a client that has hung up", watch_ticks(pid) - before < os.sysconf("SC_CLK_TCK") // 3, watch_ticks(pid) - before)


def oversubscribed(pid):
    """A stopped process whose queue of clients is full is said to be so."""
    waiting = []
    try:
        while True:
            s = socket.socket(socket.AF_UNIX)
            waiting.append(s)
            s.setblocking(False)
            s.connect(f"\0tutti-watch-{os.geteuid()}-{pid}")
    except BlockingIOError:
        r = tutti("doctor", "--pid", str(pid), "--timeout", "0.5")
        check("a full queue", r.returncode == 1 and "it is stopped by a signal" in r.stderr, r.stderr)
    finally:
        for s in waiting:
            s.close()


def young(processes):
    """A stopped rank is a verdict as soon as one waits for it, however young the wait is."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        r = tutti("doctor", "--pid", str(processes[0].pid), "--json", "--timeout", "0.3")
        comms = json.loads(r.stdout)[0]["communicators"] if r.stdout.strip("[]\n ") else []
        if comms and any(m["state"] == "stopped" for m in comms[0]["missing"]):
            return check("stopped just now", r.returncode == 1 and comms[0]["verdict"] and
                         comms[0]["verdict"]["kind"] == "stopped" and comms[0]["verdict"]["rank"] == VICTIM, comms)
    check("a rank is stopped", False)


def stopped_flight(processes):
    """The process that is stopped is named, and its file is missing."""
    with tempfile.TemporaryDirectory() as folder:
        r = tutti("doctor", "--flight", folder)
        pids = [p.pid for p in processes]
        check("a file is missing", r.returncode == 1 and
              f"process {pids[VICTIM]} does not answer: it is stopped by a signal" in r.stderr, r.stderr)
        check("files of the others", [sum(f".{pid}.jsonl" in line for line in r.stdout.split()) for pid in pids] ==
              [int(k != VICTIM) for k in range(RANKS)], r.stdout + r.stderr)


def behind(processes):
    """Two ranks are stopped: one that runs and does not answer is not blamed, whichever way the question to it takes."""
    processes[0].send_signal(signal.SIGSTOP)
    for k in 1, 3:
        r = tutti("doctor", "--pid", str(processes[k].pid), "--timeout", "0.5")
        check("a stopped rank is blamed", re.search(rf"VERDICT: rank [0{VICTIM}] on host .* is stopped", r.stdout), r.stdout)
        check("a running rank out of reach", not re.search(r"pid \d+  silent$", r.stdout, re.M), r.stdout)
    processes[0].send_signal(signal.SIGCONT)


def strangers(processes, port):
    """Another user gets nothing, whatever connections he has had between other addresses and the same ports."""
    if os.geteuid():
        return
    free = free_port()
    r = subprocess.run([sys.executable, "-c", f"""
import os, socket
os.setgid(65534); os.setuid(65534)
def bound(host, port):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.settimeout(10); s.bind((host, port)); return s
for k in range(8):  # leaves a line in the table that says port {free} and no user's uid
    listener = bound(f"127.0.1.{{k + 1}}", {port}); listener.listen(1)
    client = bound(f"127.0.2.{{k + 1}}", {free}); client.connect(listener.getsockname())
    accepted, _ = listener.accept(); client.close(); accepted.recv(1); accepted.close(); listener.close()
for s, address in ((bound("127.0.0.1", {free}), ("127.0.0.1", {port})),
                   (socket.socket(socket.AF_UNIX), "\\0tutti-watch-0-{processes[0].pid}")):
    s.settimeout(10); s.connect(address)
    try:
        s.sendall(b"STATUS\\n"); print(len(s.recv(1000)))
    except OSError: print(0)
"""], capture_output=True, text=True, timeout=60)
    check("another user", r.stdout.split() == ["0", "0"], r.stdout + r.stderr)


def preflight():
    """A host's checks, what they find, and two hosts by a shell that stays here."""
    r = tutti("doctor", "--preflight", "--json")
    host = json.loads(r.stdout)[0]
    names = [c["name"] for c in host["checks"]]
    check("preflight", {"interface", "ports", "descriptors", "locked memory", "/dev/shm", "NUMA", "clock", "PCIe ACS",
                        "PCIe links", "IOMMU"} <= set(names), r.stdout + r.stderr)
    check("preflight's status", r.returncode == any(c["state"] == "mend" for c in host["checks"]), r.stdout)
    r = tutti("doctor", "--preflight", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (500, 500)),
              env={**os.environ, "NCCL_NET_PLUGIN": "/no/such.so"})
    check("few descriptors", r.returncode == 1 and re.search(r"mend  descriptors +500, at most 500\n +-> raise", r.stdout), r.stdout)
    check("no plugin", "mend  plugin         NCCL_NET_PLUGIN=/no/such.so: " in r.stdout, r.stdout)
    with tempfile.TemporaryDirectory() as folder:
        shell = os.path.join(folder, "shell")
        with open(shell, "w") as file:
            file.write('#!/bin/sh\nhost=$1; shift\n[ "$host" = gone ] && exit 9\n'
                       '[ "$host" = bare ] && { read -r line; case $line in *doctor*) exit 127; esac; exit 0; }\n'
                       '"$@" | sed -u "s/\\"host\\": \\".*\\"/\\"host\\": \\"$host\\"/; '
                       '/\\"mtu\\"/ { /$host/! s/[0-9][0-9]*/1$(printf %s "$host" | wc -c)/ }"\n')
        os.chmod(shell, 0o755)
        r = tutti("doctor", "--preflight", "--hosts", "one,three,gone", "--json", env={**os.environ, "TUTTI_RSH": shell})
        bare = tutti("doctor", "--preflight", "--hosts", "bare", env={**os.environ, "TUTTI_RSH": shell}).stdout
        check("a host without Tutti", "the shell starts there, but `" in bare and "(status 127)" in bare and
              "install Tutti there" in bare, bare)
        check("which failed", f"`{shell} gone sh` failed (status 9)" in r.stdout, r.stdout)
    hosts = json.loads(r.stdout)
    check("hosts", [h["host"] for h in hosts] == ["one", "three", "gone"] and r.returncode == 1, r.stdout + r.stderr)
    check("MTUs differ", any(c["name"] == "MTU" and c["found"] == "MTU 15, one has 13" for c in hosts[1]["checks"]), hosts[1])
    reached = [[c for c in h["checks"] if c["name"].startswith("connection")] for h in hosts]
    check("connections", [[c["state"] for c in r] for r in reached] == [["ok"], ["ok"], []] and
          reached[0][0]["found"] == "works to 1 other host(s), 256 KiB each way", reached)
    r = tutti("doctor", "--preflight", "--hosts", "localhost", "--json", env={**os.environ, "TUTTI_RSH": "false"})
    check("this host needs no shell", "interface" in {c["name"] for c in json.loads(r.stdout)[0]["checks"]}, r.stdout)
    r = tutti("doctor", "--preflight", "--hosts", "localhost,127.0.0.1", env={**os.environ, "TUTTI_RSH": "false"})
    own = socket.gethostname()
    check("names as they were given", [line.split(":")[0] for line in r.stdout.splitlines() if "to mend" in line] ==
          [name if name == own else f"{name} ({own})" for name in ("localhost", "127.0.0.1")], r.stdout)
    r = tutti("doctor", "--preflight-reach", "127.0.0.1:1,")
    check("nobody there", json.loads(r.stdout)[0].startswith("Connection refused; a loopback address"), r.stdout + r.stderr)
    check("a host that is gone", hosts[2]["checks"][0]["name"] == "remote shell", hosts[2])


def cut_off(processes):
    """The question to rank 3 passes through rank 1, which is stopped now as well: it is asked itself, and there is one job."""
    processes[1].send_signal(signal.SIGSTOP)
    pids = {p.pid for p in processes}
    for args in (["--pid", str(processes[0].pid)], []):
        r = tutti("doctor", "--json", "--timeout", "2", *args)
        jobs = [j for j in json.loads(r.stdout) if any(p["pid"] in pids for p in j["processes"])]
        check("one job", len(jobs) == 1, r.stdout)
        comm = jobs[0]["communicators"][0]
        check("ranks behind a stopped one", [k["rank"] for k in comm["ranks"]] == [0, 3], comm)
        check("who is missing", [(m["rank"], m["state"]) for m in comm["missing"]] == [(1, "stopped"), (2, "stopped")], comm)
        check("who is to blame", comm["verdict"]["kind"] == "stopped", comm["verdict"])
    processes[1].send_signal(signal.SIGCONT)


def inits(processes, port):
    """Ranks wait in their init for one that does not come: who has come, who has not, and since when, whichever process
    is asked."""
    end = time.monotonic() + 60
    while (r := tutti("ras", "-p", str(port))).stdout.count("(init)") < 2 and time.monotonic() < end:
        time.sleep(0.2)
    known = [f"Rank 1 -- process {processes[1].pid} on node", f"Rank {VICTIM} -- process -1 on node ? (not come)"]
    check("an init for ras", "INIT  INCOMPLETE" in r.stdout and all(k in r.stdout for k in known), r.stdout)
    answer, status = asked(processes[2].pid, 3, "init")
    comm = answer["communicators"][0]
    says = r"ranks 0, 1, 3 wait in the init of the communicator since \d+\.\d s; rank 2 has not come: does it run, "
    check("a rank that has not come", comm["verdict"]["kind"] == "not come" and comm["verdict"]["rank"] == VICTIM and status == 1 and
          re.match(says, comm["verdict"]["sentence"]), answer)
    check("ranks in their init", [(r["pid"], r["state"]) for r in comm["ranks"]] == [(p.pid, "init") for p in processes] and
          all(r["still_sec"] > 0 for r in comm["ranks"]), comm)
    check("the awaited rank", [(r["rank"], r["state"], r["pid"]) for r in comm["missing"]] == [(VICTIM, "not come", -1)], comm)
    r = tutti("doctor", "--pid", str(processes[0].pid))
    check("an init as text", re.search("VERDICT: " + says, r.stdout) and r.stdout.count("in its init since") == 3 and
          "nobody stands still" not in r.stdout and r.returncode == 1, r.stdout)
    processes[1].send_signal(signal.SIGSTOP)
    r = tutti("doctor", "--pid", str(processes[0].pid), "--timeout", "1")
    check("a rank stopped in its init", f"VERDICT: rank 1 on host {socket.gethostname()} (pid {processes[1].pid}) is stopped" in r.stdout,
          r.stdout)


def graphs_wait(processes):
    answer, status = asked(processes[0].pid, RANKS)
    comm = answer["communicators"][0]
    check("an end that waits for graphs", comm["verdict"]["kind"] == "graphs" and status == 1 and
          all(r["graphs"] == 1 for r in comm["ranks"]), answer)
    r = tutti("doctor", "--pid", str(processes[0].pid))
    check("the same as text", r.stdout.count("waits for graphs with 1 operation(s) to be destroyed") == RANKS, r.stdout)


def several(first, second):
    """Jobs beside each other: each is named by one of its processes and how that was started; a change is for one job."""
    r = tutti("ras")
    rows = re.findall(r"^  --pid (\d+) +(.*)$", r.stderr, re.M)
    check("a list of jobs", re.search(r"^tutti ras: \d+ jobs run on this host:$", r.stderr, re.M) and
          all(sum(int(pid) == p.pid and "blame" in program for pid, program in rows for p in job) == 1 for job in (first, second)) and
          sum(program.endswith("<- asked") for _, program in rows) == 1, r.stderr)
    r = tutti("ras", "--pid", str(second[1].pid))
    check("one of them", r.returncode == 0 and not r.stderr and "Job summary" in r.stdout, r.stdout + r.stderr)
    r = tutti("ras", "CONTROL", "PROFILER_MASK", "none")
    check("a change of which", r.returncode == 2 and "CONTROL changes one job" in r.stderr and "<- asked" not in r.stderr, r.stderr)
    r = tutti("ras", "--pid", "1")
    check("no job", r.returncode == 1 and "no report from process 1: " in r.stderr, r.stderr)
    r = tutti("doctor")
    check("jobs by their programs", len(re.findall(r"^job of \d process\(es\) of \S*blame (?:graphs|unsplit) 4 ", r.stdout, re.M)) >= 2, r.stdout)


def main():
    port, port6 = free_port(), free_port()
    folder = tempfile.TemporaryDirectory()
    env = {"NCCL_RAS_ADDR": f"localhost:{port}", "BLAME_NAME": NAME, **comma(folder.name)}
    with folder, job("late", env, {"NCCL_RAS_ADDR": f"[::]:{port6}"} if has_ipv6() else {}) as processes:
        doctor_says(processes)
        ras_says(processes, port)
        if has_ipv6():
            both_families(port6)
        strangers(processes, port)
        crowd(processes[3].pid)
        greedy(processes[1].pid)
    with job("stopped", {"NCCL_RAS_ENABLE": "0"}) as processes:
        young(processes)
        stopped_flight(processes)
        answer, _ = asked(processes[0].pid)
        verdict = answer["communicators"][0]["verdict"]
        check("stopped", verdict["kind"] == "stopped" and verdict["rank"] == VICTIM, answer)
        check("missing", [m["state"] for m in answer["communicators"][0]["missing"]] == ["stopped"], answer)
        behind(processes)
        cut_off(processes)
        hung_up(processes[1].pid)
        patient(processes[1].pid)
        oversubscribed(processes[VICTIM].pid)
    with job("late", {"NCCL_RAS_ENABLE": "0"}, {"NCCL_RAS_ENABLE": "1", "NCCL_RAS_ADDR": f"localhost:{port}"}, VICTIM) as processes:
        inits(processes, port)
    with job("unsplit", {"NCCL_RAS_ENABLE": "0"}) as processes:
        answer, status = asked(processes[0].pid, RANKS - 1)
        comm = answer["communicators"][0]
        check("a rank that does not split", comm["verdict"]["kind"] == "not called" and comm["verdict"]["rank"] == VICTIM and
              re.match(r"ranks 0, 1, 3 wait for the others in a split, .* since \d+\.\d s; rank 2 has not made that call$",
                       comm["verdict"]["sentence"]) and status == 1, answer)
        with job("graphs", {"NCCL_RAS_ENABLE": "0"}) as others:
            graphs_wait(others)
            several(processes, others)
    r = tutti("doctor", "--pid", "1")
    check("no such job", r.returncode == 3 and "process 1 does not answer" in r.stderr, r.stderr)
    r = tutti("ras", "-p", str(port), "-t", "1")
    check("no report", r.returncode == 1 and "nobody listens there" in r.stderr, r.stderr)
    preflight()
    for wrong in (["doctor", "--frob"], ["doctor", "--hosts", "a"], ["doctor", "--pid"], ["ras", "-f", "xml"], ["ras", "--timeout=-1"]):
        check("usage", tutti(*wrong).returncode == 2, wrong)
    print(f"doctor: {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
