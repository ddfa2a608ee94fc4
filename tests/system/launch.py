#!/usr/bin/env python3
"""How `tutti run` lives among its surroundings: parents that ignore signals, odd TMPDIRs, its own violent end, and MPI
libraries that ask it for ranks (PMI 1 and 2, spoken here word by word).
usage: launch.py TUTTI"""
import os, signal, subprocess, sys, tempfile, time

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


for part in (ignored_signals, hosts_that_are_here, temporary_folders, violent_end, pmi):
    print(f"{part.__name__} ...", flush=True)
    part()
print(f"launch: {len(failures)} failed")
sys.exit(1 if failures else 0)
