#!/usr/bin/env python3
"""`tutti run`, `tutti perf`, `tutti env`, `tutti version` as a picky user tries them.
usage: tools.py TUTTI SPY_LIBRARY SHARED_OR_EMPTY [run|perf|env]"""
import collections, concurrent.futures, glob, json, os, pty, re, signal, socket, struct, subprocess, sys, tempfile, time
import fcntl, termios

TUTTI, SPY, SHARED, PART = os.path.abspath(sys.argv[1]), *sys.argv[2:5]
failures = []
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, by the children too


def tutti(*args, env=None, **kw):
    kw.setdefault("timeout", 100)
    kw.setdefault("stdin", subprocess.DEVNULL if "input" not in kw else None)
    if kw["stdin"] is None:
        del kw["stdin"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_"))}
    return subprocess.run([TUTTI, *args], env={**clean, **(env or {})}, capture_output=True, text=True, **kw)


def check(what, good, seen=""):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}: {str(seen)[-1500:]}")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# ---- run ----

def output_and_place():
    r = tutti("run", "-n", "3", "sh", "-c", "echo out $RANK; echo err $RANK >&2; printf tail")
    check("prefixes", sorted(r.stdout.split("\n")) ==
          sorted([""] + [f"[{k}] out {k}" for k in range(3)] + [f"[{k}] tail" for k in range(3)]), r.stdout)
    check("prefixes of errors", sorted(r.stderr.split()) == sorted(sum(([f"[{k}]", "err", str(k)] for k in range(3)), [])),
          r.stderr)
    r = tutti("run", "-n", "2", "--no-prefix", "echo", "x")
    check("no prefix", r.stdout == "x\nx\n", r.stdout)
    r = tutti("run", "-n", "2", sys.executable, "-c", "print('a' * 300000)")
    check("long lines", re.sub(r"\[\d\] |\n", "", r.stdout) == "a" * 600000, len(r.stdout))
    names = "RANK SIZE WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT NCCL_COMM_ID TUTTI_SECRET_FILE LD_LIBRARY_PATH"
    r = tutti("run", "-n", "2", "sh", "-c", "for v in " + names + "; do eval echo $v=\\$$v; done")
    lines = [dict(l.split(" ", 1)[1].split("=", 1) for l in r.stdout.splitlines() if l.startswith(f"[{k}]")) for k in range(2)]
    for k, v in enumerate(lines):
        check("environment", all(v.get(n) for n in names.split()), v)
        check("ranks", (v["RANK"], v["LOCAL_RANK"], v["SIZE"], v["WORLD_SIZE"], v["LOCAL_WORLD_SIZE"]) == (str(k), str(k), "2", "2", "2"), v)
        check("one id", v["NCCL_COMM_ID"] == lines[0]["NCCL_COMM_ID"], v)
        check("one address", v["NCCL_COMM_ID"].startswith(v["MASTER_ADDR"] + ":"), v)
        check("a port each", v["NCCL_COMM_ID"].rsplit(":", 1)[1] != v["MASTER_PORT"], v)
    for absent, status, why in (("./none", 127, "No such file"), ("no-such-program", 127, "No such file"), ("/etc/passwd", 126, "Permission denied")):
        r = tutti("run", "-n", "3", absent)
        check(f"{absent}: reported once", r.returncode == status and r.stderr.count(why) == 1 and not r.stdout, r)
    with tempfile.TemporaryDirectory() as here:
        os.symlink("/bin/true", f"{here}/a-program-of-this-folder")
        for path in ("/usr/bin:", ":/usr/bin", "/usr/bin::/bin", ""):
            r = tutti("run", "-n", "2", "a-program-of-this-folder", env={"PATH": path}, cwd=here)
            check(f"PATH '{path}' has the working directory", r.returncode == 0 and not r.stderr, r)
    r = tutti("run", "-n", "2", "--own-ids", "sh", "-c", "echo ${NCCL_COMM_ID-none}", env={"NCCL_COMM_ID": "127.0.0.1:1"})
    check("ids of their own", r.stdout.split() == ["[0]", "none", "[1]", "none"] or r.stdout.split() == ["[1]", "none", "[0]", "none"],
          r.stdout + r.stderr)
    check("secret is removed", not os.path.exists(lines[0]["TUTTI_SECRET_FILE"]))
    r = tutti("run", "-n", "100", "sh", "-c", "echo $RANK")
    check("many ranks", sorted(r.stdout.splitlines()) == sorted(f"[{k}] {k}" for k in range(100)), r.stdout)


def same_warnings():
    """What several ranks warn of in the same words is printed once, with the ranks that repeat it."""
    warn = 'printf "\\nh:1:$$ [0] a.c:1 (f) NCCL WARN comm 0x1 rank $RANK: %s\\n" "rank 9 exited$2" >&2'
    script = f'set -- "" ""; {warn}; [ $RANK != 3 ] || set -- "" " twice"; {warn}; echo plain >&2'

    def named(text):
        ranks = set()
        for words in re.findall(r"^tutti run: ranks? ([-\d, ]+) warns? of the same: comm 0x1 rank \d: rank 9 exited$", text, re.M):
            for word in words.split(", "):
                first, _, last = word.partition("-")
                ranks |= set(range(int(first), int(last or first) + 1))
        return ranks

    r = tutti("run", "-n", "11", "sh", "-c", script)
    warnings = re.findall(r"^\[(\d+)\] h:1:\d+ \[0\] a.c:1 \(f\) NCCL WARN comm 0x1 rank (\d+): rank 9 exited$", r.stderr, re.M)
    said = "h:1:1 [0] a.c:1 (f) NCCL WARN comm 0x1 rank $RANK: ranks differ in a sentence that is rather long, so that its end is not repeated where ranks are named"
    broken = "h:1:1 [0] a.c:1 (f) NCCL WARN AllReduce: rank $RANK: communicator 0x1 is broken: ranks differ in a sentence that is rather long, so that its end is not repeated where ranks are named"
    gone = "h:1:1 [0] a.c:1 (f) NCCL WARN comm 0x1 rank $RANK: rank 9 is gone; rank $((RANK + 1)) waits in AllReduce"
    b = tutti("run", "-n", "3", "sh", "-c", f'echo "{said}" >&2; echo "{broken}" >&2; echo "{gone}" >&2')
    check("a consequence is not printed", " is broken: " not in b.stderr and b.stderr.count("NCCL WARN") == 2, b.stderr)
    check("whole words", all(re.search(r"(waits in AllReduce| \.\.\.)$", l) and not re.search(r"\w\.\.\.$", l)
                              for l in b.stderr.splitlines() if l.startswith("tutti run: ") and "of the same" in l), b.stderr)
    check("the same warning once per time", len(warnings) == 2 and all(a == b for a, b in warnings), r.stderr)
    check("who repeats it", named(r.stderr) | {int(a) for a, _ in warnings} == set(range(11)), r.stderr)
    check("other lines stay", r.stderr.count("rank 9 exited twice") == 1 and r.stderr.count("] plain\n") == 11, r.stderr)
    check("no empty line with a prefix", not re.search(r"^\[\d+\] $", r.stderr, re.M), r.stderr)
    for ranks, env in (("1", {}), ("2", {"NCCL_DEBUG": "INFO"})):
        r = tutti("run", "-n", ranks, "sh", "-c", 'printf "\\n%s" "h:1:1 [0] a.c:1 (f) NCC" >&2; sleep 0.2; echo "L WARN x" >&2',
                  env=env)
        check("nor where each rank's warnings are printed", r.stderr.count("NCCL WARN x\n") == int(ranks) and "] \n" not in r.stderr, r.stderr)
    r = tutti("run", "--no-prefix", "-n", "11", "sh", "-c", script)
    check("an empty line before each", len(re.findall(r"^\n", r.stderr, re.M)) == 3, r.stderr)
    empty = 'printf "\\nplain\\n\\n" >&2'
    r = tutti("run", "-n", "2", "sh", "-c", empty)
    check("empty lines of programs stay", sorted(r.stderr.splitlines()) == sorted(f"[{k}] {t}" for k in "01" for t in ("", "plain", "")), r.stderr)
    ended = f'trap \'{warn}; exit\' TERM; [ $RANK = 0 ] && kill -s INT $PPID; while :; do sleep 0.1; done'
    r = tutti("run", "-n", "2", "sh", "-c", ended)
    check("no consequences after Ctrl-C", "Interrupt; ending 2 rank(s)" in r.stderr and "WARN" not in r.stderr and "same" not in r.stderr, r.stderr)
    differ = 'printf "h:1:$$ [0] a.c:1 (f) NCCL WARN comm 0x1 rank $RANK: rank 0 called A of 0x7f0$RANK, rank 1 called B\n" >&2'
    r = tutti("run", "-n", "3", "sh", "-c", differ)
    check("who is named need not be another rank", r.stderr.count("NCCL WARN") == 1 and "warn of the same: comm 0x1 rank" in r.stderr
          .replace("warns", "warn"), r.stderr)
    inner = "".join(f'echo "h:1:1 [0] a.c:1 (f) NCCL WARN comm 0x1 rank {k}{words}" >&2; ' for words in (": rank 2 exited", " of 4 waits")
                     for k in (0, 1, 3))
    r = tutti("run", "-n", "1", "sh", "-c", inner)
    check("ranks of one process", r.stderr.count("NCCL WARN") == 2 and r.stderr.count("tutti run: ranks 1, 3 of the communicator warn of the "
          "same: comm 0x1 rank 0") == 2, r.stderr)
    other = 'printf "h:1:$$ [0] a.c:1 (f) NCCL WARN comm 0x$RANK rank $RANK: rank 9 exited\n" >&2'
    r = tutti("run", "-n", "3", "sh", "-c", other)
    check("other communicators", r.stderr.count("NCCL WARN") == 3 and "of the same" not in r.stderr, r.stderr)
    r = tutti("run", "-n", "3", "sh", "-c", script, env={"NCCL_DEBUG": "WARN"})
    check("each rank's with NCCL_DEBUG", r.stderr.count("NCCL WARN") == 6 and "of the same" not in r.stderr, r.stderr)


def ports():
    """The id's port is kept for those who ask for it with address reuse; the program's own is free."""
    program = """if 1:
        import os, socket
        def listens(port, reuse):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            try:
                s.bind(("127.0.0.1", port)); s.listen()
            except OSError:
                return False
            return True
        port = int(os.environ["NCCL_COMM_ID"].rsplit(":", 1)[1])
        print(listens(port, 0), listens(port, 1), listens(int(os.environ["MASTER_PORT"]), 0))
    """
    r = tutti("run", "-n", "1", "--no-prefix", sys.executable, "-c", program)
    check("ports", r.stdout == "False True True\n", r.stdout + r.stderr)


def address():
    """An address that is none is told once, with what to do."""
    r = tutti("perf", "allreduce", env={"NCCL_COMM_ID": "127.0.0.1:port", "RANK": "0", "WORLD_SIZE": "2", "NCCL_DEBUG": "WARN"})
    told = r.stdout.count("NCCL WARN") + r.stderr.count("NCCL WARN")
    check("an address that is none", r.returncode == 1 and told == 1 and "expected host:port" in r.stderr and "--master" in r.stderr,
          r.stdout + r.stderr)


def input_of_rank_0():
    r = tutti("run", "-n", "3", "sh", "-c", "cat", input="one\ntwo\n")
    check("standard input", r.stdout == "[0] one\n[0] two\n", r.stdout)
    master, slave = pty.openpty()
    p = subprocess.Popen([TUTTI, "run", "-n", "2", "sh", "-c", "read x; echo got $x; [ $RANK = 1 ] || kill -s TERM $$"],
                         stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                         preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.write(master, b"typed words\n")
    out = p.communicate(timeout=60)[0]
    check("typed input", "[0] got typed words\n" in out and p.returncode == 128 + signal.SIGTERM, out)


def failing():
    cases = [
        ("exit code", "[ $RANK = 2 ] && exit 7; sleep 300", 7, "rank 2 exited with 7"),
        ("killed", "[ $RANK = 1 ] && kill -KILL $$; sleep 300", 137, "rank 1 was ended by signal 9 (Killed)"),
        ("crashed", "[ $RANK = 0 ] && kill -SEGV $$; sleep 300", 139, "rank 0 was ended by signal 11 (Segmentation fault)"),
        ("deaf to TERM", "trap '' TERM; [ $RANK = 0 ] && exit 3; while :; do sleep 1; done", 3, "rank 0 exited with 3"),
        ("grandchildren", "sleep 300 & echo $!; [ $RANK = 0 ] && { sleep 0.3; exit 4; }; wait", 4, "rank 0 exited with 4"),
    ]
    for name, script, code, sentence in cases:
        r = tutti("run", "-n", "3", "sh", "-c", "echo $$; " + script, timeout=30)
        check(name, r.returncode == code and sentence in r.stderr, (r.returncode, r.stderr))
        for pid in re.findall(r"\] (\d+)$", r.stdout, re.M):
            check(name + ": nothing is left", not alive(pid), pid)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        p = subprocess.Popen([TUTTI, "run", "-n", "2", "sh", "-c", "echo $$; exec sleep 300"], stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, text=True)
        pids = [p.stdout.readline().split()[1] for _ in range(2)]
        p.send_signal(sig)
        check(f"signal {sig}", p.wait(timeout=30) == 128 + sig and not any(map(alive, pids)), (p.returncode, pids))
        p.stdout.close()
    r = tutti("run", "-n", "2", "/nonexistent/program")
    check("no program", r.returncode == 127 and "/nonexistent/program" in r.stderr, r.stderr)
    r = tutti("run", "-n", "2", "/etc/passwd")
    check("no executable", r.returncode == 126 and "/etc/passwd" in r.stderr, r.stderr)
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "mine"), "w").close()
        r = tutti("run", "-n", "1", "mine", cwd=folder)
        check("in this folder, not in PATH", r.returncode == 127 and "did you mean ./mine?" in r.stderr, r.stderr)


def run_usage():
    for args, word in ((["-n", "0", "true"], "not 0"), (["-n", "x", "true"], "not x"), (["-n", "2"], "no program"),
                       (["--hosts", "", "true"], "--hosts"), (["--hosts", "a:0", "true"], "--hosts a:0"),
                       (["--device", "tpu", "true"], "--device tpu"), (["--bogus", "true"], "bogus")):
        r = tutti("run", *args)
        check(f"run {args}", r.returncode == 2 and word in r.stderr and not r.stdout, (r.returncode, r.stderr))
    for wrapper, known in (([], 0), (["sh", "-c", '[ $RANK -lt 2 ] || export NCCL_DEBUGGG=1; exec "$@"', "sh"], 1)):
        r = tutti("run", "-n", "4", *wrapper, TUTTI, "perf", "-b", "8", "-e", "8", "-n", "1", "allreduce", env={"NCCL_DEBUGG": "1"})
        check(f"a misspelt variable is told once: {wrapper}", r.returncode == 0 and
              r.stderr.count("WARN NCCL_DEBUGG is not a known variable") == 1 and
              r.stderr.count("WARN NCCL_DEBUGGG is not a known variable") == known, (r.returncode, r.stderr))
    r = tutti("run", "--help")
    check("run --help", r.returncode == 0 and "examples:" in r.stdout and not r.stderr, r)


def hosts():
    with tempfile.TemporaryDirectory() as folder:
        shell = os.path.join(folder, "rsh")
        with open(shell, "w") as f:
            f.write('#!/bin/sh\nexport ON_HOST=$1\nshift\nexec "$@"\n')
        os.chmod(shell, 0o755)
        r = tutti("run", "-n", "5", "--hosts", "alpha:2,beta:3", "--master", "127.0.0.1", sys.executable, "-c",
                  "import os,sys; e=os.environ; print(e['ON_HOST'],e['LOCAL_RANK'],e['LOCAL_WORLD_SIZE'],e['NCCL_X'],sys.argv[1])",
                  "it's \"two\" $words", env={"TUTTI_RSH": shell, "NCCL_X": "a b'c"})
        want = [f"[{k}] {h} {l} {s} a b'c it's \"two\" $words" for k, (h, l, s) in
                enumerate((("alpha", 0, 2), ("alpha", 1, 2), ("beta", 0, 3), ("beta", 1, 3), ("beta", 2, 3)))]
        check("hosts", sorted(r.stdout.splitlines()) == want, r.stdout + r.stderr)
        r = tutti("run", "--no-prefix", "--hosts", "alpha,beta,alpha:2", "--master", "127.0.0.1", "sh", "-c",
                  "echo $RANK $WORLD_SIZE $ON_HOST $LOCAL_RANK $LOCAL_WORLD_SIZE $(umask)", env={"TUTTI_RSH": shell})
        mask = subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True).stdout.strip()
        check("as many ranks as slots, a host listed twice, the mask of new files", sorted(r.stdout.splitlines()) ==
              [f"{words} {mask}" for words in ("0 4 alpha 0 3", "1 4 beta 0 1", "2 4 alpha 1 3", "3 4 alpha 2 3")], (r.stdout, r.stderr))
        r = tutti("run", "--hosts", "localhost,beta", "true", env={"TUTTI_RSH": shell})
        check("a first host that others do not reach", r.returncode == 2 and "localhost is 127.0.0.1 here" in r.stderr.replace("::1", "127.0.0.1")
              and "--master" in r.stderr, (r.returncode, r.stderr))
        r = tutti("run", "-n", "4", "--hosts", "alpha:2,beta:2", "--master", "127.0.0.1", "sh", "-c",
                  "echo $$; [ $RANK = 3 ] && exit 9; exec sleep 300", env={"TUTTI_RSH": shell}, timeout=30)
        check("a failing rank on another host", r.returncode == 9, (r.returncode, r.stderr))
        for pid in re.findall(r"\] (\d+)$", r.stdout, re.M):
            check("nothing is left on hosts", not alive(pid), pid)
        r = tutti("run", "-n", "2", "--hosts", "alpha", "sh", "-c", "echo words >&2; exit 255", env={"TUTTI_RSH": shell})
        check("a rank that ends as ssh fails", r.returncode == 255 and "] words\n" in r.stderr and "exited with 255; ending" in r.stderr and
              "did not start" not in r.stderr and "has started" not in r.stderr, (r.returncode, r.stderr))
        with open(shell, "w") as f:  # all are asked before the first one has failed
            f.write('#!/bin/sh\necho "no route to $1" >&2\necho "ask for it" >&2\nsleep 1\nexit 255\n')
        r = tutti("run", "-n", "9", "--hosts", "alpha:6,beta:3", "true", env={"TUTTI_RSH": shell})
        lines = [line.split("] ", 1)[-1] for line in r.stderr.splitlines()]
        check("hosts out of reach are told once", r.returncode == 255 and lines.count("no route to alpha") <= 1 and
              lines.count("no route to beta") <= 1 and "] no route to " in r.stderr and lines.count("ask for it") in (1, 2), r.stderr)
        check("and what to try", re.search(r"^tutti run: rank \d did not start on (alpha|beta): the remote shell exited with 255; ending the "
                                           rf"others\ntutti run: {shell} \1 true has to work without a password$", r.stderr, re.M), r.stderr)
        r = tutti("run", "-n", "1", "--hosts", "alpha", "true", env={"TUTTI_RSH": "/nonexistent/rsh"})
        check("no remote shell", r.returncode in (126, 127) and "TUTTI_RSH" in r.stderr, (r.returncode, r.stderr))
        with open(shell, "w") as f:  # more than is kept: nothing is lost
            f.write('#!/bin/sh\nhead -c 20000 /dev/zero | tr "\\0" "x" >&2\necho " last" >&2\nexec sh\n')
        r = tutti("run", "-n", "1", "--no-prefix", "--hosts", "alpha", "--master", "127.0.0.1", "sh", "-c", "echo words >&2", env={"TUTTI_RSH": shell})
        check("a talkative remote shell", r.returncode == 0 and r.stderr.count("x") == 20000 and " last\n" in r.stderr and
              r.stderr.endswith("words\n"), (r.returncode, r.stderr))


def as_mpirun():
    for way in (["-np", "3"], ["--np", "3"], ["-n", "3"], ["-n3"], ["-ranks", "3"]):
        r = tutti("run", *way, "--no-prefix", "sh", "-c", "echo $WORLD_SIZE")
        check(f"run {way}", r.stdout == "3\n" * 3, (r.stdout, r.stderr))
    with tempfile.TemporaryDirectory() as folder:
        shell = os.path.join(folder, "rsh")
        with open(shell, "w") as f:
            f.write('#!/bin/sh\nshift\nexec env -i PATH="$PATH" "$@"\n')
        os.chmod(shell, 0o755)
        for way in ("-H", "-host", "--host"):
            r = tutti("run", "-np", "2", way, "alpha,beta", "-x", "MINE=a 'b'", "-x", "THEIRS", "--master", "127.0.0.1", "--no-prefix",
                      "sh", "-c", "echo $MINE $THEIRS $OTHER", env={"TUTTI_RSH": shell, "THEIRS": "c", "OTHER": "d"})
            check(f"{way}, -x", r.stdout == "a 'b' c\n" * 2, (r.stdout, r.stderr))
    r = tutti("run", "-x", "MINE=1", "-n", "1", "--no-prefix", "sh", "-c", "echo $MINE")
    check("-x here", r.stdout == "1\n", r.stdout)
    for bad in ("=1", "A B", ""):
        r = tutti("run", "-x", bad, "true")
        check(f"-x '{bad}'", r.returncode == 2 and "is no variable" in r.stderr, r.stderr)


BEGIN = """
import ctypes, os, signal, sys
cuda, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
Id = type("Id", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_char * 128)]})
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
nccl.ncclCommSplit.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_size_t] + [ctypes.c_int] * 2 + [ctypes.c_void_p] * 2
rank, the_id, comm, memory = int(os.environ["RANK"]), Id(), ctypes.c_void_p(), ctypes.c_void_p()
cuda.cudaSetDevice(rank)
def init(nranks, rank):
    nccl.ncclGetUniqueId(ctypes.byref(the_id))
    return nccl.ncclCommInitRank(ctypes.byref(comm), nranks, the_id, rank)
"""


OTHER_RUN = """
import subprocess
make = "import ctypes, sys; b = ctypes.create_string_buffer(128); ctypes.CDLL('libnccl.so.2').ncclGetUniqueId(b); sys.stdout.buffer.write(b.raw)"
if rank == 0: signal.pause()
old = subprocess.run([sys.executable, "-c", make], env={**os.environ, "NCCL_COMM_ID": "127.0.0.1:9"}, stdout=subprocess.PIPE).stdout
ctypes.memmove(ctypes.byref(the_id), old, 128)
sys.exit(nccl.ncclCommInitRank(ctypes.byref(comm), 2, the_id, rank))
"""


def init_waits():
    """Ranks that wait for one that does not make their call say so long before the time-out."""
    limits = {"TUTTI_WATCHDOG": "1", "TUTTI_INIT_TIMEOUT": "7"}
    split = "\nchild = ctypes.c_void_p()\nassert init(3, rank) == 0\nif rank == ABSENT: signal.pause()\nsys.exit(nccl.ncclCommSplit(comm, 0, rank, ctypes.byref(child), None))"
    cases = (
        ("rank 0 does not come", ["-n", "2"], "if rank == 0: signal.pause()\nsys.exit(init(2, rank))", r"rank 1 of 2: init waits since \d s: nobody listens at "),
        ("rank 2 does not come", ["-n", "3"], "if rank == 2: signal.pause()\nsys.exit(init(3, rank))",
         r"init waits since \d s: [12] of 3 ranks came with the unique id of this process; missing (1, )?2:"),
        ("each rank has another id", ["-n", "2", "--own-ids"], "sys.exit(init(2, rank))",
         r"init waits since \d s: 1 of 2 ranks came with the unique id of this process; missing 0:"),
        ("both take rank 0", ["-n", "2", "--own-ids"], "sys.exit(init(2, 0))", r"This process called init as rank 0, and RANK says that it is 1: was it read\?"),
        ("the id of another run", ["-n", "2"], OTHER_RUN, r"rank 1 holds another unique id than this run's: it names 127.0.0.1<9>, where nobody listens"),
        ("rank 2 ends", ["-n", "3"], "if rank < 2: sys.exit(init(3, rank))",
         r"^tutti run: rank 2 ended with status 0, and ranks 0, 1 wait for it in the init of a communicator of all 3 ranks; ending the job$"),
        ("rank 0 ends", ["-n", "3", "--json"], "if rank: sys.exit(init(3, rank))", r"^tutti run: rank 0 ended with status 0, and ranks 1, 2 wait for it in"),
        ("rank 0 of several hosts ends", ["-n", "3", "--hosts", "alpha,beta:2", "--master", "127.0.0.1"], "sys.stderr.write('un'); sys.stderr.flush()\nif rank: sys.exit(init(3, rank))",
         r"^tutti run: rank 0 ended with status 0, and ranks 1, 2 wait for it in the init of a communicator of all 3 ranks; ending the job$"),
        ("rank 0 does not split", ["-n", "3"], split.replace("ABSENT", "0"), r"rank 0 of 3: others wait for this rank in .* \(rank [12](, 2)? since 1 s\), and it has not made that call"),
        ("rank 2 does not split", ["-n", "3"], split.replace("ABSENT", "2"), r"rank 0 of 3: the ranks wait for each other .* missing is rank 2: does it make the same call"),
    )
    with concurrent.futures.ThreadPoolExecutor(len(cases) + 1) as pool, tempfile.TemporaryDirectory() as folder:  # they wait, and need no processor
        shell = os.path.join(folder, "rsh")
        with open(shell, "w") as f:
            f.write('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(shell, 0o755)
        runs = [pool.submit(tutti, "run", *options, sys.executable, "-c", BEGIN + body,
                            env={**limits, **({"TUTTI_INIT_TIMEOUT": "60"} if name.endswith(" ends") else {}), **({"TUTTI_RSH": shell} if "--hosts" in options else {})})
                for name, options, body, _ in cases]
        late = pool.submit(tutti, "run", "-n", "3", sys.executable, "-c", BEGIN + "import time\nif rank == 1: time.sleep(3)\nif rank < 2: sys.exit(init(2, rank))")
        for (name, _, _, said), run in zip(cases, runs):
            check(f"init waits: {name}", run.result().returncode and re.search(said, run.result().stderr, re.M), run.result().stderr)
        check("a rank without NCCL", late.result().returncode == 0 and not late.result().stderr, late.result().stderr)
    names = [case[0] for case in cases]
    said = runs[names.index("rank 0 of several hosts ends")].result().stderr
    check("what a shell sends on is not shown", "note" not in said and sorted(re.findall(r"^\[(\d)\] un$", said, re.M)) == ["0", "1", "2"], said)
    job = json.loads(runs[names.index("rank 0 ends")].result().stdout)
    check("init waits as JSON", job["status"] == 1 and job["verdict"] == "hang" and job["blamed"] == 0 and job["first_failed"] is None and
          [h["ranks"] for h in job["hang"] if "ended with status 0" in h["sentence"]] == [[1, 2]], job)
    r = tutti("run", "-n", "2", "--strict", sys.executable, "-c", BEGIN + "sys.exit(init(2, rank))", env={"TUTTI_WATCHDOG": "20"}, timeout=60)
    check("nobody is waited for", r.returncode in (0, 1) and "waits since" not in r.stderr, r.stderr)


def wrong_from_the_start():
    """What every rank must hear, and what a launcher refuses."""
    for words, said in ((["-hostsfile", "hf", "-n", "2", "true"], "-hostsfile"), (["-hx", "true"], "-hx"), (["-wdir", "/", "true"], "-wdir"),
                        (["-hostfile", "/nowhere/hf", "true"], "/nowhere/hf: No such file")):
        r = tutti("run", *words)
        check(f"run {words}", r.returncode == 2 and said in r.stderr and not r.stdout, (r.returncode, r.stdout, r.stderr))
    r = tutti("perf", "-hostfile", "hf", "allreduce")
    check("perf -hostfile", r.returncode == 2 and "no option '-hostfile'" in r.stderr and not r.stdout, r)
    for help_word in ("-h", "--help", "-help"):
        r = tutti("run", help_word)
        check(f"run {help_word}", r.returncode == 0 and "--hostfile" in r.stdout, r)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("# ours\nlocalhost slots=2 max_slots=4  # two\n\nlocalhost:1\n")
        file.flush()
        for option in ("-hostfile", "--hostfile", "-machinefile"):
            r = tutti("run", option, file.name, "--no-prefix", "sh", "-c", "echo $WORLD_SIZE")
            check(f"run {option}", r.stdout == "3\n" * 3 and not r.stderr, r)
        r = tutti("run", "-n", "4", "-hostfile", file.name, "true")
        check("more ranks than slots", r.returncode == 0 and "4 ranks on 3 slots" in r.stderr, r.stderr)
        file.write("localhost slots=many\n")
        file.flush()
        r = tutti("run", "-hostfile", file.name, "true")
        check("a bad line of hosts", r.returncode == 2 and "line 5: 'localhost slots=many'" in r.stderr, r.stderr)
    r = tutti("run", "-n", "2", sys.executable, "-c", BEGIN + "sys.exit(init(2, 0))", env={"TUTTI_INIT_TIMEOUT": "10"})
    check("rank 0 twice", r.returncode == 2 and "Address already in use: rank 0 came twice" in r.stderr, r.stderr)
    for words, sentence in ((("--preflight", "localhost"), "meant: --hosts localhost"), (("7310",), "meant: --pid 7310"),
                            (("--flight",), "'--flight' wants a value"), (("--pid", "x"), "'--pid x' is not understood")):
        r = tutti("doctor", *words)
        check("doctor " + " ".join(words), r.returncode == 2 and sentence in r.stderr, r.stderr)
    r = tutti("run", "-n", "2", "--master", "192.0.2.1", sys.executable, "-c", BEGIN + "sys.exit(init(2, rank))", env={"TUTTI_INIT_TIMEOUT": "4"})
    check("no address of rank 0's", r.returncode and "(tutti run: --master)" in r.stderr and "192.0.2.1" in r.stderr, r.stderr)
    ask = '[ $RANK = 1 ] || (sleep 2; exec "$0" doctor --pid $$ -t 2) & exec "$@"'
    r = tutti("run", "-n", "2", "sh", "-c", ask, TUTTI, sys.executable, "-c", BEGIN + "sys.exit(init(3, rank))", env={"TUTTI_INIT_TIMEOUT": "5"})
    check("a rank that never comes", "missing 2; has each of them started, and called ncclCommInitRank" in r.stderr, r.stderr)
    check("the doctor of it", "rank 2    has not come" in r.stdout and "pid -1" not in r.stdout, r.stdout)
    r = tutti("run", "-n", "2", "--own-ids", sys.executable, "-c", BEGIN + "sys.exit(init(2, rank))", env={"TUTTI_INIT_TIMEOUT": "2"})
    check("each made its own id", "1 of 2 ranks did not come within 2 s: missing" in r.stderr and "or did each make its own?" in r.stderr, r.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write("no program\n")
        file.flush()
        last = "code = init(3, rank)\nnccl.ncclGetLastError.restype = ctypes.c_char_p\nprint(rank, code, nccl.ncclGetLastError(None).decode())"
        r = tutti("run", "-n", "3", "--strict", "--no-prefix", sys.executable, "-c", BEGIN + last, env={"TUTTI_PROGRAM_DIR": file.name})
        check("a refused program file ends every rank's init", len(re.findall(r"^\d [56] .*TUTTI_PROGRAM_DIR: .* is refused", r.stdout, re.M)) == 3, (r.stdout, r.stderr))


def alone():
    """Communicators of one rank beside each other, all with the id of `tutti run`; said at the end when there were no others."""
    one = "assert init(1, 0) == 0\nfirst = comm.value\n"
    end = "\nassert nccl.ncclCommDestroy(comm) == 0"
    r = tutti("run", "-n", "3", sys.executable, "-c", BEGIN + one + end)
    check("alone beside others", r.returncode == 0 and r.stderr.count("made communicators of one rank only") == 1 and
          "warn of the same: 3 processes were started together" in re.sub(r"rank \d warns of", "ranks warn of", r.stderr) and "--own-ids" in r.stderr, r.stderr)
    r = tutti("run", "-n", "3", sys.executable, "-c", BEGIN + one + "assert init(3, rank) == 0" + end)
    check("alone, then together", r.returncode == 0 and not r.stderr, r.stderr)
    for options in (["-n", "2", "--own-ids"], ["-n", "1"]):
        r = tutti("run", *options, sys.executable, "-c", BEGIN + one + end)
        check(f"alone, as it was asked for: {options}", r.returncode == 0 and not r.stderr, r.stderr)


def who_exits_first():
    """The others fail because of rank 1, and end sooner than it: its status is the job's."""
    program = BEGIN + """
assert init(3, rank) == 0
if rank == 1:
    HOW
cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(64))
nccl.ncclAllReduce(memory, memory, 16, 7, 0, comm, None)
cuda.cudaStreamSynchronize(None)
sys.exit(1)
"""
    for how, status, said in (("sys.exit(3)", 3, "rank 1 exited with 3"), ("os._exit(3)", 3, "rank 1 exited with 3"),
                              ("os.kill(os.getpid(), 9)", 137, "rank 1 was ended by signal 9 (Killed)")) * 2:
        r = tutti("run", "-n", "3", sys.executable, "-c", program.replace("HOW", "import os; " + how))
        check(f"who exits first: {how}", r.returncode == status and f"tutti run: {said}; ending" in r.stderr, (r.returncode, r.stderr))


def hang():
    """A rank that does not come: without any variable of the log the others say for whom they wait; then Ctrl-C."""
    program = BEGIN + """
assert init(2, rank) == 0
if rank:
    signal.pause()
cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(64))
nccl.ncclAllReduce(memory, memory, 16, 7, 0, comm, None)
cuda.cudaStreamSynchronize(None)
"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "RANK", "WORLD_"))}
    p = subprocess.Popen([TUTTI, "run", "-n", "2", sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, text=True, env={**clean, "TUTTI_WATCHDOG": "1"})
    said = []
    for line in p.stderr:
        said.append(line)
        if "rank 0 waits: data of rank 1" in line:
            p.send_signal(signal.SIGINT)
            break
    out, rest = p.communicate(timeout=60)
    check("hang is told", any("no operation was finished for" in line for line in said), said)
    check("Ctrl-C is told", "tutti run: Interrupt; ending 2 rank(s)\n" in rest and p.returncode == 130, (p.returncode, rest))
    check("no version line", "NCCL version" not in out + "".join(said), out)


# ---- perf ----

def rows(text):
    return [line.split() for line in text.splitlines() if line and not line.startswith("#") and line.split()[0].isdigit()]


def perf(*args, **kw):
    return tutti("perf", *args, **kw)


def spied(*args, ranks=2, **env):
    """Calls per process (a Counter of lines) and the result."""
    with tempfile.TemporaryDirectory() as folder:
        r = perf("--ranks", str(ranks), *args, env={"LD_PRELOAD": SPY, "SPY_FOLDER": folder, **env})
        logs = [collections.Counter(open(name).read().splitlines()) for name in sorted(glob.glob(folder + "/*"))]
    check(f"{args}: every process was seen", len(logs) == ranks, r.stderr)
    return r, logs


def table():
    r = perf("--ranks", "3", "-b", "8", "-e", "1K", "-f", "2", "-n", "2", "-w", "1")
    titles = "AllReduce AllGather ReduceScatter Broadcast Reduce AlltoAll Gather Scatter SendRecv".split()
    check("every operation", re.findall(r"starting: (\w+)", r.stdout) == titles and r.returncode == 0, r.stdout + r.stderr)
    check("sizes by factor", [row[0] for row in rows(r.stdout)][:8] == [str(8 << k) for k in range(8)], r.stdout)
    check("columns", all(len(row) == 13 for row in rows(r.stdout)), r.stdout)
    check("all devices are told", re.findall(r"Rank +(\d+) Group +0 Pid +\d+ on +\S+ device +(\d+)", r.stdout) ==
          [(str(k), str(k)) for k in range(3)], r.stdout)
    check("closing lines", "# Out of bounds values : 0 OK" in r.stdout and "# Avg bus bandwidth    : " in r.stdout, r.stdout)
    r = perf("--ranks", "2", "-b", "100", "-e", "200", "-i", "40", "-f", "1", "allreduce")
    check("sizes by steps", [row[0] for row in rows(r.stdout)] == ["100", "140", "180"], r.stdout)
    r = perf("--ranks", "2", "-b", "0", "-e", "8", "-f", "2", "allreduce")
    check("from zero", [row[0] for row in rows(r.stdout)] == ["0", "4", "8"], r.stdout)
    r = perf("--ranks", "2", "-e", "64", "-C", "1", "-S", "1", "-M", "1", "-c", "0", "allreduce")
    check("cputime, time stamps, memory, no check", "cputime" in r.stdout and "Peak memory" in r.stdout and
          re.search(r"N/A +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", r.stdout, re.M) and "not checked" in r.stdout, r.stdout)
    r = perf("--ranks", "2", "-t", "2", "-g", "2", "-N", "3", "-e", "8", "-a", "3", "-p", "1", "allreduce")
    check("threads, devices, cycles", "8 ranks in 2 processes" in r.stdout and len(rows(r.stdout)) == 3, r.stdout)
    r = perf("--ranks", "9", "-b", "8K", "-e", "8K", "-n", "1", "-w", "0", "-d", "bfloat16", "-o", "avg", "allreduce",
             env={"NCCL_ALGO": "allreduce:Ring"})  # the widest bound of docs/accuracy.md
    check("perf: averages as exact as a ring has them", r.returncode == 0 and "Out of bounds values : 0 OK" in r.stdout, r)
    for nranks, options in ((5, ("--ranks", "5")), (6, ("--ranks", "3", "-t", "2"))):
        r = perf(*options, "-b", "8", "-e", "8", "-n", "1", "-w", "0", "allreduce", env={"NCCL_ALGO": "Tree"})
        ranks = [int(rank) for rank in re.findall(r"^#  Rank +(\d+) Group .* device ", r.stdout, re.M)]
        check(f"perf: no AllGather by this algorithm {options}", r.returncode == 0 and "0 OK" in r.stdout and not r.stderr and
              ranks == list(range(nranks)), r.stdout + r.stderr)
    r = perf("--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "allreduce", env={"NCCL_COMM_BLOCKING": "0"})
    check("perf: non-blocking", r.returncode == 0 and "0 OK" in r.stdout and r.stderr.count("NCCL_COMM_BLOCKING=0 is left out of account") == 1, r)
    r = perf("--ranks", "2", "-b", "8", "-e", "8", "allgather", env={"NCCL_ALGO": "PAT"})
    check("perf: its barrier is forbidden", r.returncode and "as in NCCL_ALGO=allgather:PAT" in r.stderr, r.stderr)
    r = perf("--ranks", "4", "-e", "4K", "-n", "2", "hypercube")
    check("hypercube", r.returncode == 0 and "0 OK" in r.stdout, r.stdout + r.stderr)


def effects():
    shape = "allreduce count 256 type {} op {} offset {} stream {} captured {}".format
    r, logs = spied("-b", "1K", "-e", "1K", "-n", "7", "-w", "3", "-m", "2", "-c", "4", "allreduce")
    plain = shape(7, 0, 0, 1, 0)
    # twice (out of place, in place) warm-up and timed, in groups of two; checked calls in place are single
    check("-n -w -m -c", all(log[plain] == 2 * (7 + 3) * 2 + 4 * 2 + 4 for log in logs), logs)
    r, logs = spied("-b", "1K", "-e", "1K", "-n", "5", "-w", "1", "-G", "3", "allreduce")
    check("-G", all(log[shape(7, 0, 0, 1, 1)] == 2 * (5 + 1) and log[plain] == 2 for log in logs), logs)
    r, logs = spied("-b", "1K", "-e", "1K", "-y", "1", "-d", "int32", "-o", "max", "-u", "3", "allreduce")
    check("-y -d -o -u", all(log[shape(2, 2, 12, 0, 0)] == 2 * 26 for log in logs), logs)
    r, logs = spied("-e", "8", "-R", "1", "-x", "2", "allreduce")
    check("-R 1, -x", all(log["register"] == 2 and any("policy 2 main 1" in l for l in log) for log in logs), logs)
    r, logs = spied("-e", "8", "-R", "2", "-t", "2", "-p", "1", "allreduce")
    check("-R 2, -p", all(log["window flags 1"] == 4 and sum("main 0" in l for l in log) == 2 for log in logs), logs)
    r, logs = spied("-e", "8", "-r", "all", "-n", "1", "-w", "0", "-c", "0", "broadcast", ranks=3)
    check("-r all", all(log == collections.Counter({**{l: c for l, c in log.items() if l.startswith("init")},
                                                    **{f"broadcast root {k}": 2 for k in range(3)}}) for log in logs), logs)
    r, logs = spied("-e", "8", "-d", "all", "-o", "all", "-n", "1", "-w", "0", "allreduce")
    check("-d all -o all", len(rows(r.stdout)) == 72 and r.returncode == 0, r.stdout + r.stderr)
    r, logs = spied("-b", "1K", "-e", "1K", "allreduce", SPY_WRONG="1")
    check("wrong values are counted", r.returncode == 1 and re.search(r"Out of bounds values : \d+ FAILED", r.stdout) and
          [row[8] for row in rows(r.stdout)] == ["2"], r.stdout + r.stderr)
    r = perf("--ranks", "2", "-T", "1", "-n", "1000000000", "-e", "8", "allreduce", timeout=90)
    check("-T", r.returncode == 1 and "(-T)" in r.stderr, r.stderr)
    # a launcher that began when the machine did: nothing of -T is left for the ranks
    r = perf("--ranks", "2", "-T", "1", "--since", "0.5", "-e", "8", "allreduce", timeout=90)
    check("-T counts from the launcher's start", r.returncode == 1 and "began only after 1 s (-T)" in r.stderr, r.stderr)


def as_json():
    args = ("--ranks", "2", "-b", "64", "-e", "512", "-f", "8", "allreduce", "alltoall")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        r = perf(*args, "-J", path)
        told = json.load(open(path))
        check("-J keeps the table", len(rows(r.stdout)) == 4, r.stdout)
    for text in (told, json.loads(perf(*args, "--json").stdout)):
        check("JSON", [(x["operation"], x["bytes"], x["count"]) for x in text["results"]] ==
              [("allreduce", 64, 16), ("allreduce", 512, 128), ("alltoall", 64, 8), ("alltoall", 512, 64)] and
              text["wrong"] == 0 and text["complete"] and len(text["devices"]) == 2 and
              all(x["out_of_place"]["usec"] > 0 and x["out_of_place"]["wrong"] == 0 for x in text["results"]), text)
        check("JSON says where", text["host"] == socket.gethostname() == text["devices"][1]["host"] and
              text["cores"] == len(os.sched_getaffinity(0)) and text["tutti"] in tutti("version").stdout and "cpu" in text and
              [(d["rank"], d["name"]) for d in text["devices"]] == [(0, "Tutti Host Device"), (1, "Tutti Host Device")] and
              all(re.fullmatch(r"\w{4}:\w\w:\w\w\.\w", d["busid"]) and d["pid"] > 0 for d in text["devices"]), text)
    seen = [float(v) for row in rows(r.stdout)[:2] for v in row[5:8]]
    want = [x["out_of_place"][k] for x in told["results"][:2] for k in ("usec", "algbw_gbps", "busbw_gbps")]
    check("JSON tells the figures of the table", all(abs(a - b) < 0.006 for a, b in zip(seen, want)), (seen, want))
    r = perf("--ranks", "3", "--pairs", "-e", "64K", "--json")
    told = json.loads(r.stdout)
    check("pairs as JSON", all(len(told[m]) == 3 and all(len(line) == 3 for line in told[m]) and
                               all((told[m][a][b] > 0) == (a != b) for a in range(3) for b in range(3))
                               for m in ("latency_usec", "bandwidth_gbps")), told)
    r = perf("--ranks", "3", "--pairs", "-e", "64K")
    check("pairs", r.stdout.count("-\n") + r.stdout.count(" - ") == 6 and r.returncode == 0, r.stdout)


def perf_program():
    files = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "golden", "msccl")
    ring = os.path.join(files, "allreduce-ring.xml")
    r = perf("--ranks", "4", "--program", ring, "-e", "4K", "-n", "2", "-w", "0",
             env={"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING"})
    check("perf --program runs it, of its operation alone", r.returncode == 0 and "-> program allreduce-ring.xml" in r.stdout and
          not any("AllReduce: " in line and "-> Algo" in line for line in r.stdout.splitlines()) and
          "starting: AllReduce" in r.stdout and r.stdout.count("starting:") == 1, r)
    for option in ("-d", "--op", "--root"):
        r = perf("--program", ring, option, "all", "--dry-run")
        check(f"perf --program {option} all", r.returncode == 0, r)
    for args, word in ((("--ranks", "3", "--program", ring), "is for 4 ranks, not for 3"),
                       (("--program", ring, "allgather"), "is for allreduce, not for allgather"),
                       (("--program", files + "/write.py"), "line 1: "), (("--program", "/nonexistent/x"), "cannot be read")):
        r = perf(*args)
        check(f"perf {args}", r.returncode == 2 and word in r.stderr and not r.stdout, r)


def perf_usage():
    for args, word in (("-b abc", "-b abc"), ("-t 0", "-t 0: wants a whole number from 1"), ("-f 0.5", "-f 0.5"), ("-i 0", "-i 0"),
                       ("-d foo", "bfloat16"), ("-o foo", "mulsum"), ("-r 9", "-r 9"), ("-D 3", "-D 3"), ("-R 3", "-R 3"),
                       ("-T -1", "-T -1"), ("--bogus", "--bogus"), ("-n", "'-n'"), ("nosuch", "nosuch"),
                       ("-b 8 -e 4", "-e 4"), ("--ranks 3 hypercube", "hypercube"), ("--ranks 0", "--ranks"),
                       ("-J /nonexistent/x allreduce", "/nonexistent/x")):
        r = perf(*args.split())
        check(f"perf {args}", r.returncode == 2 and word in r.stderr and not r.stdout and r.stderr.count("\n") <= 2,
              (r.returncode, r.stdout, r.stderr))
    r = perf("--ranks", "1", "-e", "8", "allreduce", env={"TUTTI_DEVICE": "cuda"})
    check("a device that is not there", r.returncode == 1 and "TUTTI_DEVICE is cuda" in r.stderr, (r.returncode, r.stderr))
    r = perf("--ranks", "33", "-b", "8", "-e", "8", "-n", "1", "-w", "0", "-T", "60", "allreduce",
             preexec_fn=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]))
    check("many ranks a core", r.returncode == 0 and "33 ranks share 1 core(s)" in r.stderr, (r.returncode, r.stderr))
    r = perf("--help")
    check("perf --help", r.returncode == 0 and "examples:" in r.stdout and not r.stderr, r)
    r = perf("--dry-run", "-b", "8")
    check("perf --dry-run", r.returncode == 0 and not r.stdout, r)


def mistakes_are_said_once():
    """What all ranks of tutti perf find wrong is printed by one of them, rank 0 or another."""
    for name, value, said in (("NCCL_NET_PLUGIN", "/none.so", "no plugin /none.so could be loaded"), ("NCCL_BUFFSIZE", "3", "NCCL_BUFFSIZE is 3 bytes"),
                              ("NCCL_SOCKET_IFNAME", "nothing9", "'nothing9' matches no interface")):
        r = perf("--ranks", "3", "-b", "8", "-e", "8", "-n", "1", "allreduce", env={name: value})
        whole = [line for line in r.stderr.splitlines() if "NCCL WARN" in line and said in line]
        check(f"perf says once: {name}", len(whole) == 1 and r.stderr.count("tutti perf: ncclGetUniqueId") < 2, r.stderr)


def progress():
    master, slave = pty.openpty()
    p = subprocess.Popen([TUTTI, "perf", "--ranks", "2", "-e", "64", "allreduce"], stdout=subprocess.PIPE, stderr=slave,
                         stdin=subprocess.DEVNULL, text=True)
    out = p.communicate(timeout=60)[0]
    os.close(slave)
    shown = os.read(master, 65536).decode()
    check("progress on a terminal", "AllReduce 64 bytes" in shown and "\r" not in out, shown)


# ---- env, version, help ----

def on_terminal(columns, *args, **more):
    """What a command prints on a terminal that is so wide."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "TUTTI_", "COLUMNS"))}
    p = subprocess.Popen([TUTTI, *args], stdin=subprocess.DEVNULL, stdout=slave, env={**clean, **more})
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(master)
    p.wait(timeout=60)
    return text.decode().replace("\r\n", "\n")


def env_wraps():
    words = tutti("env").stdout.split()
    for columns in (60, 90, 107, 140, 1000):
        text = on_terminal(columns, "env")
        wide = [line for line in text.splitlines() if len(line) > columns and " " in line[4:].lstrip() and not re.match(r"(NCCL|TUTTI|CUDA|NVTX)_", line)]
        check(f"env on {columns} columns", text.split() == words and not wide, (wide, text[:500]))
    lines = on_terminal(107, "env").splitlines()
    apart = [line for line in lines if not re.match(r".{66} \S", line) and not re.match(r"(NCCL|TUTTI|CUDA|NVTX)_\S+ +\S+ +\w+ *$", line)]
    check("meanings stand below each other", len(lines) > 200 and not apart, apart)
    check("COLUMNS wins", "default\n    Only" in on_terminal(1000, "env", "NCCL_ALGO", COLUMNS="80") and
          on_terminal(1000, "env", "NCCL_ALGO") == tutti("env", "NCCL_ALGO").stdout)
    check("no terminal, no wrapping", tutti("env", env={"COLUMNS": "80"}).stdout == tutti("env").stdout)


def env_and_help():
    told = {x["name"]: x for x in json.loads(tutti("env", "--json").stdout)}
    for table in ("env.tsv", "env_tutti.tsv"):
        path = os.path.join(SHARED, "spec", table)
        if SHARED and os.path.exists(path):
            names = [line.split("\t")[0] for line in open(path) if re.match(r"(NCCL|TUTTI)_[A-Z0-9_]+\t", line)]
            check(f"{table} is known", names and not [n for n in names if n not in told], [n for n in names if n not in told])
    with tempfile.TemporaryDirectory() as folder:
        conf = os.path.join(folder, "nccl.conf")
        with open(conf, "w") as f:
            f.write("# ours\nNCCL_BUFFSIZE=1048576\nNCCL_DEBUG=INFO\n")
        env = {"NCCL_CONF_FILE": conf, "NCCL_DEBUG": "WARN"}
        told = {x["name"]: x for x in json.loads(tutti("env", "--json", env=env).stdout)}
        check("value of a file", told["NCCL_BUFFSIZE"]["value"] == "1048576" and conf in told["NCCL_BUFFSIZE"]["origin"] or
              told["NCCL_BUFFSIZE"]["origin"] == "file", told["NCCL_BUFFSIZE"])
        check("the environment wins", told["NCCL_DEBUG"]["value"] == "WARN" and told["NCCL_DEBUG"]["origin"] == "environment",
              told["NCCL_DEBUG"])
        r = tutti("env", "--set", env=env)
        r = tutti("env", "--set", env={"NCCL_DEBUGG": "WARN", "NCCL_HOME": "/x", "TUTTI_WATCHDOG": "5"})
        check("env --set names what nobody obeys", "NCCL_DEBUGG" in r.stdout and "did you mean NCCL_DEBUG?" in r.stdout and
              "TUTTI_WATCHDOG" in r.stdout and "NCCL_HOME" not in r.stdout, r.stdout)
        r = json.loads(tutti("env", "--set", "--json", env={"NCCL_DEBUGG": "WARN"}).stdout)
        check("env --set --json", [x["name"] for x in r] == ["NCCL_DEBUGG"] and not r[0]["obeyed"], r)
        r = tutti("env", "--set", env={"NCCL_BUFFSIZE": "abc"})
        check("env --set of what is not understood", r.stdout.startswith("NCCL_BUFFSIZE") and '("abc" is not understood)' in r.stdout, r)
        r = tutti("env", "NCCL_DEBUG", "--json")
        check("options behind names", r.returncode == 0 and json.loads(r.stdout)[0]["name"] == "NCCL_DEBUG", r)
        r = json.loads(tutti("env", "--json", "NCCL_BUFFSIZE", env={"NCCL_BUFFSIZE": "abc"}).stdout)[0]
        check("and as JSON", (r["value"], r["origin"], r["ignored"]) == (r["default"], "default", "abc"), r)
        r = tutti("env", "--set", env=env)
        check("env --set", {line.split()[0] for line in r.stdout.splitlines()} == {"NCCL_CONF_FILE", "NCCL_DEBUG", "NCCL_BUFFSIZE"},
              r.stdout)
    lines = tutti("env").stdout.splitlines()
    check("env has a head", lines[0].split() == ["NAME", "VALUE", "ORIGIN", "MEANING"] and any(re.match("NCCL_BUFFSIZE +4194304 +default", line) for line in lines), lines[:9])
    obeyed = tutti("env", "--obeyed").stdout.splitlines()
    check("env --obeyed", len(obeyed) > 99 and obeyed == [line for line in lines if "no effect on the host device" not in line], obeyed[:9])
    r = tutti("env", "NCCL_NOSUCH")
    check("unknown variable", r.returncode == 1 and "NCCL_NOSUCH" in r.stderr, r)
    r = tutti("env", "NCCL_DEBUGG")
    check("misspelt variable", r.returncode == 1 and "did you mean NCCL_DEBUG?" in r.stderr, r)
    r = tutti("env", "HOME")
    check("variable of others", r.returncode == 1 and "no variable HOME is known" in r.stderr, r)
    r = tutti("env", "NCCL_DEBUG", "NCCL_NOSUCH")
    check("one unknown among known", r.returncode == 1 and "NCCL_NOSUCH" in r.stderr and "NCCL_DEBUG" in r.stdout, r)
    check("env --bogus", tutti("env", "--bogus").returncode == 2)
    for option in ("--shell", "--home", "--machines"):
        r = tutti("env", option, "fish")
        check(f"env {option} fish", r.returncode == 2 and "not fish" in r.stderr and not r.stdout, r)
    r = tutti("trace", "convert", "--to", "ctf", os.devnull)
    check("trace convert --to ctf", r.returncode == 2 and "no format 'ctf' but " in r.stderr and "perfetto" in r.stderr, r)
    check("-V", tutti("-V").stdout == tutti("version").stdout)
    r = tutti("version", "--json")
    check("version --json", json.loads(r.stdout)["nccl"] == "2.32.3", r.stdout)
    check("version", "2.32.3" in tutti("version").stdout)
    check("version --bogus", tutti("version", "--bogus").returncode == 2)
    r = tutti("version", "--jsn")
    check("version, misspelt", r.returncode == 2 and "did you mean --json?" in r.stderr, r)
    r = tutti("help")
    check("help", r.returncode == 0 and "examples:" in r.stdout and tutti().returncode == 2, r)
    for name in re.findall(r"^  (\w+) {2,}", r.stdout.split("commands:")[1].split("examples:")[0], re.M):
        r = tutti(name, "--help")
        check(f"{name} --help", r.returncode == 0 and "example" in r.stdout and not r.stderr, r)
    r = tutti("prf")
    check("no such command", r.returncode == 2 and "prf" in r.stderr and "did you mean perf?" in r.stderr, r)
    r = tutti("nothing-like-it")
    check("no command near", r.returncode == 2 and "did you mean" not in r.stderr, r)
    r = tutti("explain")
    check("a command below another", r.returncode == 2 and "did you mean `tutti topo explain`?" in r.stderr, r)
    for words, meant in (("topo shwo x", "show"), ("topo search --nodse 2", "--nodes"), ("program exprot", "export"), ("trace sumary", "summary"),
                         ("trace diff --typse Coll a b", "--types"), ("plugin chek x", "check"), ("perf alreduce", "allreduce"),
                         ("env --shel", "--shell"), ("run --stirct true", "--strict"), ("help tpo", "topo"), ("perf --rnaks 2", "--ranks"),
                         ("tune --ouput x", "--output"), ("ras --verbos", "--verbose"), ("doctor --stcks", "--stacks"),
                         ("plugin check --jsno x", "--json")):
        r = tutti(*words.split())
        check(f"near word: {words}", r.returncode == 2 and f"did you mean {meant}?" in r.stderr and len(r.stderr.splitlines()) == 1, r)
    r = tutti("trace", "no.jsonl")
    check("a path is no command", r.returncode == 1 and "No such file" in r.stderr, r)
    for words, begin in (("topo show", "usage: tutti topo show "), ("run", "usage: tutti run "), ("run true", "usage: tutti run ")):
        r = tutti("help", *words.split())
        check(f"help {words}", r.returncode == 0 and r.stdout.startswith(begin), r)


def documented():
    """Commands and options of ours that the pages name are those of --help."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    helps, seen = {}, 0

    def help_of(*words):
        if words not in helps:
            helps[words] = tutti(*words, "--help").stdout
        return helps[words]

    commands = set(re.findall(r"^  (\w+) ", help_of(), re.M))
    begins = re.compile(r"(?:^|[ (;&|])tutti (\w+)((?: [^;&|()#>]*)?)")
    stops = re.compile(r".*/|(?:sh|env|ldd|perf|true|python3|tutti|program|COMMAND|PROGRAM)$")  # what `tutti run` starts, and what it is given
    for path in [os.path.join(root, name) for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")] + \
            glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True):
        text = open(path).read()
        pieces = [line for block in re.findall(r"```.*?```", text, re.S) for line in block.splitlines()]
        pieces += re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
        for piece, command, rest in ((piece, *found) for piece in pieces for found in begins.findall(piece)):
            where = f"{os.path.relpath(path, root)}: {piece[:120]}"
            rest = rest.split()
            if piece.startswith("tutti check: ") or command == "COMMAND":
                continue  # a line of the race checker, which begins so
            check(f"no command {command}", command in commands, where)
            words = [command]
            if rest and re.fullmatch("[a-z]+", rest[0]) and re.search(rf"^  {rest[0]} ", help_of(command), re.M):
                words.append(rest.pop(0))
            for word in rest:
                if command == "run" and stops.match(word):
                    break
                option = re.match(r"--?[a-zA-Z][\w-]*", word.strip("["))
                if option:
                    seen += 1
                    check(f"no option {option[0]}", re.search(rf"(?<![\w-]){option[0]}(?![\w-])", help_of(*words)), where)
    check("options of the pages are found", seen > 100, seen)


parts = {
    "run": [output_and_place, same_warnings, ports, address, input_of_rank_0, failing, run_usage, hosts, as_mpirun, wrong_from_the_start, init_waits, alone, who_exits_first, hang],
    "perf": [table, effects, as_json, perf_program, perf_usage, mistakes_are_said_once, progress],
    "env": [env_and_help, env_wraps, documented],
}
for part in parts[PART]:
    print(f"{part.__name__} ...", flush=True)
    part()
print(f"tools {PART}: {len(failures)} failed")
sys.exit(1 if failures else 0)
