#!/usr/bin/env python3
"""How `tutti run` lives among its surroundings: parents that ignore signals, odd TMPDIRs, its own violent end, and MPI
libraries that ask it for ranks (PMI 1 and 2, spoken here word by word).
usage: launch.py TUTTI"""
import json, os, signal, subprocess, sys, tempfile, time

TUTTI = os.path.abspath(sys.argv[1])
failures = []
clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_", "PMI_"))}


def check(what, good, seen=""):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}: {str(seen)[-1500:]}")


def tutti(*args, env=None, **kw):
    return subprocess.run([TUTTI, "run", *args], env={**clean, **(env or {})}, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, **kw)


def gone(pid):
    """True once the process has ended; a minute is for slow machines."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def ignored_signals():
    try:
        r = tutti("-n", "2", "sh", "-c", "exit 5", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        check("SIGCHLD ignored by the parent", r.returncode == 5, (r.returncode, r.stderr))
    except subprocess.TimeoutExpired:
        check("SIGCHLD ignored by the parent: it ends", False)
    # As nohup does it: what is ignored stays ignored. The rank hangs up its launcher, then goes on.
    r = tutti("-n", "1", "--no-prefix", "sh", "-c", "kill -s HUP $PPID; echo went on",
              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    check("SIGHUP ignored", (r.returncode, r.stdout) == (0, "went on\n"), (r.returncode, r.stdout, r.stderr))


def temporary_folders():
    show = ("-n", "1", "--no-prefix", "sh", "-c", "echo $TUTTI_SECRET_FILE; wc -c <$TUTTI_SECRET_FILE")
    r = tutti(*show, env={"TUTTI_SECRET_FILE": "/no/secret"})
    check("a secret that is not there", "TUTTI_SECRET_FILE /no/secret: No such file or directory; the ranks get" in r.stderr, r)
    with tempfile.TemporaryDirectory() as folder:
        deep = os.path.join(folder, "a" * 100)
        os.mkdir(deep)
        r = tutti(*show, env={"TMPDIR": deep})
        check("a long TMPDIR", r.stdout.startswith(deep) and r.stdout.endswith("\n64\n") and not os.listdir(deep), r)
        r = tutti(*show, env={"TMPDIR": "a" * 100}, cwd=folder)
        check("a relative TMPDIR", r.stdout.startswith(os.path.realpath(deep)), r)
        for path, why in ((folder + "/missing", "No such file"), ("/proc", ""), (folder + "/" + "b" * 4000, "")):
            r = tutti(*show, env={"TMPDIR": path})
            check(f"TMPDIR {path[:60]}", r.returncode == 0 and r.stdout.startswith("/tmp/tutti-secret-") and
                  f"TMPDIR {path}: {why}" in r.stderr and "/tmp is used" in r.stderr, r)


def violent_end():
    """kill -9 of the launcher: its ranks, what they started, and the secret are gone; on other hosts too."""
    with tempfile.TemporaryDirectory() as folder:
        shell = os.path.join(folder, "rsh")
        with open(shell, "w") as f:
            f.write('#!/bin/sh\nshift\nexec setsid -w "$@"\n')
        os.chmod(shell, 0o755)
        for way, local in (([], True), (["--hosts", "alpha,beta", "--master", "127.0.0.1"], False)):
            program = "sleep 300 & echo $! $$ $TUTTI_SECRET_FILE; wait" if local else "echo $$ $$ $TUTTI_SECRET_FILE; exec sleep 300"
            p = subprocess.Popen([TUTTI, "run", "-n", "2", "--no-prefix", *way, "sh", "-c", program], stdout=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                                 env={**clean, "TMPDIR": folder, "TUTTI_RSH": shell})
            told = [p.stdout.readline().split() for _ in range(2)]
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            p.stdout.close()
            pids = [pid for line in told for pid in line[:2]]
            check(f"nothing runs on {way}", all([gone(pid) for pid in pids]), told)
            for _ in range(200):
                left = [name for name in os.listdir(folder) if name != "rsh"]
                if not left:
                    break
                time.sleep(0.1)
            check(f"no file is left {way}", not left, left)


def stopped_guard():
    """The process that cleans up after the launcher is stopped, by a user who takes it for a rank: the job ends all the same."""
    p = subprocess.Popen([TUTTI, "run", "-n", "1", "--no-prefix", "sh", "-c", "echo ready; exec sleep 300"], stdout=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, env=clean)
    p.stdout.readline()
    guards, end = [], time.monotonic() + 30
    while not guards and time.monotonic() < end: # it names itself, perhaps after the rank has begun
        children = open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()
        guards = [int(pid) for pid in children if open(f"/proc/{pid}/comm").read() == "tutti-guard\n"]
    check("one guard", len(guards) == 1, children)
    for pid in guards:
        os.kill(pid, signal.SIGSTOP)
    p.send_signal(signal.SIGTERM)
    try:
        p.wait(60)
    except subprocess.TimeoutExpired:
        check("a stopped guard does not hold up the end", False)
        p.kill()
    p.stdout.close()


PMI_CLIENT = """if 1:
    import os, sys
    fd, rank, size = (int(os.environ["PMI_" + name]) for name in ("FD", "RANK", "SIZE"))
    def hear(count=0):
        text = b""
        while len(text) < count if count else not text.endswith(b"\\n"):
            more = os.read(fd, count - len(text) if count else 1)
            assert more, "closed after " + repr(text)
            text += more
        return text.decode()
    def one(text, *words):
        for k in range(0, len(text) + 1, 5):
            os.write(fd, (text + "\\n")[k:k + 5].encode())
        said = hear()
        assert all(word in said for word in words), (text, said)
    def tell(text):
        os.write(fd, b"%6d" % len(text) + text.encode())
    def two(text, *words):
        tell(text)
        said = hear(int(hear(6)))
        assert all(word in said for word in words), (text, said)
"""


def pmi():
    first = PMI_CLIENT + """
    one("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init", "pmi_version=1", "rc=0")
    one("cmd=get_maxes", "cmd=maxes", "vallen_max=")
    one("cmd=get_appnum", "appnum=0")
    one("cmd=get_universe_size", f"size={size}")
    one("cmd=get_my_kvsname", "kvsname=tutti")
    one("cmd=get kvsname=tutti key=PMI_process_mapping", f"value=(vector,(0,1,{size}))")
    one(f"cmd=put kvsname=tutti key=info-{rank} value=a b=c #{rank}", "rc=0")
    one("cmd=barrier_in", "cmd=barrier_out")
    for r in range(size):
        one(f"cmd=get kvsname=tutti key=info-{r}", f"rc=0 msg=success value=a b=c #{r}\\n")
    one("cmd=get kvsname=tutti key=nobody", "rc=-1")
    one("cmd=publish_name service=a port=b", "rc=-1")
    one("mcmd=spawn\\nnprocs=1\\nexecname=x\\nendcmd", "cmd=spawn_result rc=-1")
    one("cmd=finalize", "cmd=finalize_ack")
"""
    second = PMI_CLIENT + """
    one("cmd=init pmi_version=2 pmi_subversion=0", "pmi_version=2")
    two("cmd=fullinit;pmijobid=x;threaded=FALSE;", "cmd=fullinit-response;", f"rank={rank};size={size};", "rc=0;")
    two("cmd=job-getid;", "jobid=tutti;")
    two(f"cmd=kvs-put;key=info-{rank};value=a;;b {rank};", "cmd=kvs-put-response;rc=0;")
    two("cmd=kvs-fence;thrid=7;", "cmd=kvs-fence-response;thrid=7;rc=0;")
    for r in range(size):
        two(f"cmd=kvs-get;jobid=tutti;srcid={r};key=info-{r};", f"found=TRUE;flag=TRUE;value=a;;b {r};rc=0;")
    two("cmd=kvs-get;jobid=tutti;srcid=0;key=nobody;", "found=FALSE;")
    two("cmd=info-getjobattr;key=PMI_process_mapping;", f"value=(vector,(0,1,{size}));")
    two("cmd=info-getjobattr;key=universeSize;", f"value={size};")
    if rank:
        two("cmd=info-getnodeattr;key=place;wait=TRUE;", "found=TRUE", "value=here;")
    else:
        two("cmd=info-putnodeattr;key=place;value=here;", "info-putnodeattr-response;rc=0;")
    two("cmd=name-publish;name=a;port=b;", "rc=-1;")
    two("cmd=finalize;", "cmd=finalize-response;rc=0;")
"""
    for name, program in (("PMI 1", first), ("PMI 2", second)):
        for ranks in ("1", "4"):
            r = tutti("-n", ranks, sys.executable, "-c", program)
            check(f"{name}, {ranks} ranks", r.returncode == 0 and not r.stderr, r.stderr)
    r = tutti("-n", "2", sys.executable, "-c", first + first.replace("if 1:", "if 1:", 1))
    check("two programs in turn", r.returncode == 0 and not r.stderr, r.stderr)

    begin = PMI_CLIENT + """
    one("cmd=init pmi_version=1 pmi_subversion=1", "rc=0")
"""
    wait = """
    one("cmd=barrier_in", "never")
"""
    r = tutti("-n", "3", sys.executable, "-c", begin + "\n    if rank == 1: os.write(fd, b'cmd=abort exitcode=9\\n')" + wait)
    check("MPI_Abort", r.returncode == 9 and "rank 1 called MPI_Abort(9); ending the others" in r.stderr, r)
    r = tutti("-n", "3", sys.executable, "-c", begin + "\n    if rank == 1: os._exit(0)" + wait)
    check("an end without MPI_Finalize", r.returncode == 1 and
          "rank 1 ended between MPI_Init and MPI_Finalize" in r.stderr, r)
    for nonsense in ("b'garbage\\n'", "b'cmd=put key=a value=b\\n'", "b'x' * 100000", "b'cmd=init pmi_version=2\\n     7cmd=x;99999999'",
                     "bytes(range(256)) * 8 + b'\\n'"):
        r = tutti("-n", "2", sys.executable, "-c", PMI_CLIENT +
                  f"    if not rank:\n        import socket\n        s = socket.socket(fileno=fd)\n        s.settimeout(5)\n"
                  f"        try:\n            s.sendall({nonsense})\n        except OSError:\n            pass\n        os._exit(0)\n")
        check(f"nonsense {nonsense}", "Traceback" not in r.stderr and r.returncode in (0, 1), r)


def hosts_that_are_here():
    """mpirun's users type --host localhost:2, and no remote shell is needed for that."""
    with tempfile.TemporaryDirectory() as folder:
        ssh = os.path.join(folder, "ssh")
        with open(ssh, "w") as f:
            f.write("#!/bin/sh\nexit 255\n")
        os.chmod(ssh, 0o755)
        r = tutti("-np", "2", "--host", "localhost:1,127.0.0.1:1", "sh", "-c", "echo $LOCAL_RANK of $LOCAL_WORLD_SIZE",
                  env={"PATH": folder + ":" + clean["PATH"]})
        check("localhost", r.returncode == 0 and sorted(r.stdout.split("\n"))[1:] == ["[0] 0 of 2", "[1] 1 of 2"], r)


LONELY = """if 1:
    import ctypes, sys
    nccl = ctypes.CDLL("libnccl.so.2")
    class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 128)]
    id, comm = Id(), ctypes.c_void_p()
    assert nccl.ncclGetUniqueId(ctypes.byref(id)) == 0
    print("before", flush=True)
    sys.exit(nccl.ncclCommInitRank(ctypes.byref(comm), 3, id, int(__import__("os").environ["RANK"])))
"""

OPEN_GROUP = """if 1:
    import ctypes, sys
    nccl = ctypes.CDLL("libnccl.so.2")
    class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 128)]
    id, comm = Id(), ctypes.c_void_p()
    assert nccl.ncclGetUniqueId(ctypes.byref(id)) == 0
    rank, state, n = int(__import__("os").environ["RANK"]), ctypes.c_int(), 1024
    data = (ctypes.c_float * n)()
    assert nccl.ncclCommInitRank(ctypes.byref(comm), 2, id, rank) == 0
    if rank:
        assert nccl.ncclGroupStart() == 0
    nccl.ncclAllReduce(data, data, ctypes.c_size_t(n), 7, 0, comm, None)
    while not rank and not nccl.ncclCommGetAsyncError(comm, ctypes.byref(state)) and not state.value:
        __import__("time").sleep(0.01)
    sys.exit(state.value)
"""

LATE_STATUS = """
import os, socket, struct, sys, time
path = sys.argv[1]
first = os.environ["RANK"] == "1"
while not first and not os.path.exists(path):
    time.sleep(0.01)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
    s.sendto(struct.pack("=iiiiQ", 0, 1 if first else 5, 0, 0, 0), "\\0" + os.environ["TUTTI_JOB_EXITS"])
if not first:
    os._exit(5)
open(path, "w").close()
time.sleep(0.2)
os._exit(66)
"""


def as_json():
    """One object on standard output, whatever the end; what ranks print goes to the other one."""
    def told(*args, env=None, status=0, verdict="ok"):
        r = tutti("--json", *args, env=env)
        try:
            job = json.loads(r.stdout)
        except ValueError:
            job = {}
        check(f"--json {args[:4]}", r.returncode == status and (job.get("status"), job.get("verdict")) == (status, verdict) and
              isinstance(job.get("duration_s"), float), (r.returncode, r.stdout, r.stderr))
        return job, r.stderr

    job, err = told("-n", "3", "sh", "-c", 'echo out $RANK; echo "with \\"quotes\\"" >&2')
    check("output is on the error", all(f"[{r}] out {r}\n" in err for r in range(3)), err)
    check("the program", job.get("program", [])[:2] == ["sh", "-c"] and job.get("ranks") == 3 and job.get("first_failed", 0) is None, job)
    check("each rank", [(p["rank"], p["status"], p["signal"], p["ended_by_launcher"]) for p in job.get("processes", [])] ==
          [(r, 0, None, False) for r in range(3)] and not job.get("warnings") and not job.get("hang"), job)
    job, _ = told("-n", "2", "sh", "-c", '[ $RANK = 0 ] && exec sleep 60; kill -s SEGV $$', status=139, verdict="failed")
    check("a signal", (job.get("first_failed"), job.get("blamed")) == (1, 1) and [(p["status"], p["signal"], p["ended_by_launcher"]) for p in job.get("processes", [])] ==
          [(143, "SIGTERM", True), (139, "SIGSEGV", False)], job)
    with tempfile.TemporaryDirectory() as folder:
        shell = os.path.join(folder, "rsh")
        with open(shell, "w") as f:
            f.write('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(shell, 0o755)
        job, _ = told("-n", "2", "--hosts", "alpha,beta", "--master", "127.0.0.1", "sh", "-c", '[ $RANK = 0 ] && exec sleep 60; kill -s SEGV $$',
                      env={"TUTTI_RSH": shell}, status=139, verdict="failed")
        victim = 'echo "h:1:1 [0] a.c:1 (f) NCCL WARN comm 0x1 rank 0: rank 1 on host beta (pid 7) is gone" >&2; exit 3'
        there, err = told("-n", "3", "--hosts", "alpha,beta,gamma", "--master", "127.0.0.1", "sh", "-c",
                          f'[ $RANK = 2 ] && {{ {victim}; }}; [ $RANK = 1 ] || {{ {victim.replace("rank 1", "rank 2")}; }}; '
                          "sleep 0.5; kill -s KILL $$",
                          env={"TUTTI_RSH": shell}, status=137, verdict="failed")
        check("a rank that failed because of one whose end is heard of later", (there.get("first_failed"), there.get("blamed")) == (1, 1) and
              "tutti run: rank 1 was ended by signal 9 (Killed); ending the others" in err and "rank 0 exited" not in err, (there, err))
        check("a signal elsewhere", [(p["host"], p["pid"], p["signal"]) for p in job.get("processes", [])][1:] == [("beta", None, "SIGSEGV")], job)
    report = "tutti check: race: copy reads what fill writes\n  first   fill, on a stream\nhello\n  no detail\ntutti check: 1 finding"
    job, _ = told("-n", "2", "sh", "-c", f"[ $RANK = 0 ] || {{ echo '{report}' >&2; exit 66; }}; sleep 60", status=66, verdict="failed")
    check("findings", job.get("findings") == [{"rank": 1, "sentence": "race: copy reads what fill writes", "details": ["first   fill, on a stream"]}] and
          [p.get("findings") for p in job.get("processes", [])] == [0, 1] and not job.get("warnings"), job)
    with tempfile.TemporaryDirectory() as folder:  # rank 1 says first that it exits, and ends last
        job, err = told("-n", "2", sys.executable, "-c", LATE_STATUS, os.path.join(folder, "said"), status=66, verdict="failed")
        check("a status that changes in the end", job.get("first_failed") == 1 and "rank 1 exited with 66; ending" in err and
              [(p["status"], p["ended_by_launcher"]) for p in job.get("processes", [])] == [(5, False), (66, False)], (job, err))
    job, _ = told("-n", "2", "sh", "-c", '[ $RANK = 1 ] && kill -s INT $PPID; exec sleep 60', status=130, verdict="interrupted")
    check("interrupted", job.get("interrupted") is True and job.get("first_failed", 0) is None, job)
    job, _ = told("-n", "2", "/nowhere/program", status=127, verdict="not started")
    check("no rank", job.get("processes") == [], job)
    job, _ = told("-n", "2", sys.executable, "-c", b"print('\xff')".decode("utf-8", "surrogateescape"), status=1, verdict="failed")
    warn = "h:1:1 [0] a.c:1 (f) NCCL WARN rank $RANK: a 'word'; rank 7 is not"
    job, _ = told("-n", "3", "sh", "-c", f'[ $RANK = 1 ] || echo "{warn}" >&2')
    check("nobody is blamed", job.get("blamed", 0) is None, job)
    check("warnings", [w["ranks"] for w in job.get("warnings", [])] == [[0, 2]] and
          job["warnings"][0]["sentence"] in [f"rank {r}: a 'word'; rank 7 is not" for r in (0, 2)], job)
    job, _ = told("-n", "2", "sh", "-c", f"[ $RANK = 1 ] || echo '{warn.split('rank $RANK')[0]}comm 0xd6 rank 0: rank 1 on host a (pid 7) is gone: x' >&2")
    check("nobody is blamed where all is well", job.get("blamed", 0) is None and len(job.get("warnings", [])) == 1, job)
    with tempfile.TemporaryDirectory() as folder:
        pid = os.path.join(folder, "pid")
        for sentence in ("comm 0xd6 rank 0: rank 1 on host a (pid 4194399) is gone: connection closed", "comm 0xd6 rank 0: rank 1: TUTTI_STRICT: a setting",
                         "comm 0xd6 rank 0: ranks called different operations: ranks 0, 2 called A as operation 1, rank 1 alone called B as operation 1; all",
                         "comm 0xd6 rank 0: ranks called different operations: rank 1 alone called B as operation 1, ranks 2, 3 called A as operation 1; all",
                         "comm 0xd6 rank 0: rank 1 ended the communicator (x) after 0",
                         "comm 0xd6 rank 0: ranks called different operations: rank 0 called A as operation 2, rank 1 ended the communicator after 1 x", "comm 0xd6 rank 0 of 2: it is next; rank 0 on host a (pid PID) is stopped"):
            line = sentence.replace("PID", f"$(cat {pid})")
            job, _ = told("-n", "2", "sh", "-c", f'if [ $RANK = 1 ]; then echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 60; fi; '
                          f'while [ ! -e {pid} ]; do sleep 0.01; done; echo "h:1:1 [0] a.c:1 (f) NCCL WARN {line}" >&2; rm {pid}; exit 6', status=6, verdict="failed")
            check(f"who is blamed: {sentence}", (job.get("first_failed"), job.get("blamed")) == (0, 1), job)
    job, err = told("-n", "2", sys.executable, "-c", LONELY, env={"TUTTI_WATCHDOG": "1", "TUTTI_INIT_TIMEOUT": "4"}, status=8, verdict="hang")
    check("who waits", any("missing 2" in h["sentence"] for h in job.get("hang", [])) and "[0] before" in err and not job["warnings"], (job, err))
    job, err = told("-n", "2", sys.executable, "-c", OPEN_GROUP, env={"NCCL_MULTI_RANK_GPU_ENABLE": "1"}, status=6, verdict="failed")
    check("a group is left open", "rank 1 on host" in err and "exited (code 0) inside a group that holds calls: a ncclGroupEnd is missing there" in err and
          job.get("blamed") == 1, (job, err))


def no_program():
    for name, status, said in ((".", 126, "Is a directory"), ("/etc", 126, "Is a directory"), ("/etc/passwd", 126, "Permission denied"),
                               ("./nothing", 127, "No such file or directory")):
        r = tutti("-n", "3", name)
        check(f"run {name}", (r.returncode, r.stderr) == (status, f"tutti run: {name}: {said}\n"), r)


def reader_of_perf_goes():
    """`tutti perf | head -1` ends without a word."""
    for _ in range(3):
        p = subprocess.Popen([TUTTI, "perf", "--ranks", "3", "-b", "8", "-e", "1M", "-f", "2", "allreduce"], env=clean, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = p.stdout.readline()
        p.stdout.close()
        said = p.stderr.read()
        check("perf's reader goes", first.startswith("# tutti perf") and not said and p.wait(timeout=60) == -signal.SIGPIPE, (first, said, p.poll()))


def loopback_down():
    """In a network namespace whose lo is down, a job says so at once, whether its address is known or not."""
    if subprocess.run(["unshare", "-n", "ip", "link"], capture_output=True).returncode:
        print("not tried: a network namespace")
        return
    for before, said in (("", "no running network interface with an address was found; lo is down (ip link set lo up)"),
                         ("ip link set lo up; ip link set lo down;", "lo is down (ip link set lo up)")):
        begun = time.monotonic()
        r = subprocess.run(["unshare", "-n", "sh", "-c", before + ' exec "$@"', "sh", TUTTI, "run", "-n", "2", sys.executable, "-c",
                            LONELY.replace("comm), 3", "comm), 2")], env={**clean, "TUTTI_INIT_TIMEOUT": "50"}, capture_output=True, text=True,
                           timeout=100, stdin=subprocess.DEVNULL)
        check(f"lo is down {before}", r.returncode and said in r.stderr and time.monotonic() - begun < 45, r)


def settings_are_reported_once():
    """Under launchers that do not say that ranks have the same settings, one rank of the host tells what is wrong with them."""
    program = LONELY[:LONELY.index("    print")] + '    print("ready", flush=True)\n    sys.stdin.read()\n'
    libraries = tutti("-n", "1", "--no-prefix", "sh", "-c", "echo $LD_LIBRARY_PATH").stdout.strip()
    for name, other, times in (("OMPI_COMM_WORLD_LOCAL_RANK", {}, 1), ("MPI_LOCALRANKID", {}, 1), ("SLURM_LOCALID", {}, 1),
                               ("LOCAL_RANK", {"NCCL_DEBUGG": "other"}, 3), ("NOBODY_KNOWS", {}, 3)):
        ranks = [subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**clean, "LD_LIBRARY_PATH": libraries, "TUTTI_WARN": "1", "NCCL_DEBUGG": str(r) if other else "1", name: str(r)})
                 for r in range(3)]
        for rank in ranks:
            check(f"a rank under {name}", rank.stdout.readline() == "ready\n")
        said = "".join(rank.communicate(timeout=60)[1] for rank in ranks)
        check(f"said once under {name}", said.count("NCCL_DEBUGG is not a known variable") == times, said)


for part in (no_program, reader_of_perf_goes, loopback_down, settings_are_reported_once, as_json, ignored_signals, hosts_that_are_here, temporary_folders, violent_end, stopped_guard, pmi):
    print(f"{part.__name__} ...", flush=True)
    part()
print(f"launch: {len(failures)} failed")
sys.exit(1 if failures else 0)
