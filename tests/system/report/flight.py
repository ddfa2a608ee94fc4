#!/usr/bin/env python3
"""The flight recorder: ranks that hang, die, crash, abort or call something else leave files from which `tutti trace check`
tells who is behind and whose call differs. usage: flight.py BLAME TUTTI"""
import contextlib, glob, json, os, re, resource, signal, subprocess, sys, tempfile, time

BLAME, TUTTI = sys.argv[1:3]
RANKS, VICTIM = 3, 1
SOCKETS = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
failures = []


def check(what, good, seen=""):
    if not good:
        failures.append(what)
        print(f"FAILED: {what}: {str(seen)[-3000:]}")


@contextlib.contextmanager
def job(scenario, env={}):
    """Processes of the ranks, and the folder of their files."""
    with tempfile.TemporaryDirectory() as folder:
        setting = {**os.environ, "TUTTI_FLIGHT_FILE": f"{folder}/flight.%h.%p.jsonl", "TUTTI_WARN": "1", **env}
        started = [subprocess.Popen([BLAME, scenario, str(RANKS), str(r), str(VICTIM), os.path.join(folder, "id")], env=setting,
                                    stderr=subprocess.PIPE, text=True) for r in range(RANKS)]
        try:
            yield started, folder
        finally:
            for process in started:
                process.send_signal(signal.SIGKILL)
            for process in started:
                process.communicate()


def findings(folder):
    """What `tutti trace check` finds, by kind."""
    done = subprocess.run([TUTTI, "trace", "check", "--json", folder], capture_output=True, text=True, timeout=60)
    found = {}
    for finding in json.loads(done.stdout)["findings"] if done.stdout else []:
        found.setdefault(finding["kind"], []).append(finding["text"])
    return found


def until(condition, what):
    end = time.monotonic() + 60
    seen = condition()
    while not seen and time.monotonic() < end:
        time.sleep(0.1)
        seen = condition()
    check(what, seen)
    return seen


def file_of(folder, process):
    found = glob.glob(f"{folder}/flight.*.{process.pid}.jsonl")
    return found[0] if found else ""


def lines_of(folder, process):
    """Of a file that may just be written; [] as long as it is not whole."""
    path = file_of(folder, process)
    text = open(path).read() if path else ""
    lines = [json.loads(line) for line in text.splitlines()] if text.endswith("}\n") else []
    return lines if lines and lines[-1]["t"] == "end" else []


def says(found, kind, *words):
    check(f"{kind}: {words}", any(all(word in text for word in words) for text in found.get(kind, [])), found)


def waits(lines):
    """For how many seconds the rank has waited for data."""
    return max([(lines[0]["start_mono_ns"] - line["since"]) / 1e9 for line in lines if line.get("waits") == "data of"], default=0)


CALL = "AllReduce(count 1000, float, sum)"
BEHIND = f"rank {VICTIM} is behind, at operation 2 {CALL}, ended"


def hangs(env):
    """Asked for by a signal; then the victim is killed, and the others fail."""
    with job("late", env) as (ranks, folder):
        def all_wait():
            for process in ranks:
                if file_of(folder, process) or "SigCgt" in open(f"/proc/{process.pid}/status").read() and hears(process):
                    process.send_signal(signal.SIGUSR2)
            time.sleep(0.2)
            waiting = [p for p in ranks if waits(lines_of(folder, p)) >= 1]
            return len(waiting) >= RANKS - 1 and all(lines_of(folder, p) for p in ranks)
        if not until(all_wait, "all ranks write what they do"):
            return
        found = findings(folder)
        says(found, "behind", BEHIND, "0 queued")
        says(found, "waits", "rank 0 is at operation 3 " + CALL, "waits for")
        check("nothing else is said", set(found) == {"behind", "waits"}, found)
        now = f"{folder}/now"
        for process in ranks:
            done = subprocess.run([TUTTI, "doctor", "--flight", now, "--pid", str(process.pid)], capture_output=True, text=True,
                                  timeout=60)
            check("tutti doctor --flight", done.returncode == 0 and done.stdout.startswith(now), done)
        says(findings(now), "behind", BEHIND, "0 queued")
        for command in (["summary"], ["page", "-o", f"{folder}/page.html"], ["convert", "--to", "chrome", "-o", f"{folder}/run.json"]):
            done = subprocess.run([TUTTI, "trace", *command, folder], capture_output=True, text=True, timeout=60)
            check(f"tutti trace {command[0]}", done.returncode == 0, done.stderr)
        ranks[VICTIM].kill()
        ranks[VICTIM].wait()
        os.unlink(file_of(folder, ranks[VICTIM]))
        others = [p for r, p in enumerate(ranks) if r != VICTIM]
        for process in others:
            process.communicate(timeout=60)
        found = findings(folder)
        says(found, "missing", f"rank {VICTIM} has no file")
        says(found, "written", "rank 0 failed: ")


def deaf(_):
    """Messages before any collective: who waits is not behind."""
    with job("deaf") as (ranks, folder):
        now = f"{folder}/now"
        def waits():
            for process in ranks:
                subprocess.run([TUTTI, "doctor", "--flight", now, "--pid", str(process.pid)], capture_output=True, timeout=60)
            return len(findings(now).get("waits", [])) == RANKS - 1
        until(waits, "all but the victim wait")
        found = findings(now)
        says(found, "waits", "rank 0, before its first collective, waits for", f"rank {VICTIM}")
        check("nobody is behind", "behind" not in found, found)


def two(_):
    """The files of two jobs of one user do not lie in one folder."""
    with job("late") as (ranks, folder), job("late") as (others, _):
        folders = [set(), set()]
        def told():
            now = tempfile.mkdtemp(dir=folder)  # who is asked in its init does not know the others of its job
            subprocess.run([TUTTI, "doctor", "--flight", now], capture_output=True, timeout=120)
            for k, processes in enumerate((ranks, others)):
                found = [glob.glob(f"{now}/**/flight.*.{p.pid}.jsonl", recursive=True) for p in processes]
                folders[k] = {os.path.dirname(path) for paths in found for path in paths}
                if not all(found):
                    return False
            return len(folders[0]) == len(folders[1]) == 1
        until(told, "each process has a file, those of a job in one folder")
        check("a folder for each job", not folders[0] & folders[1], folders)


def hears(process):
    """The library has its handler for the signal that asks."""
    caught = [line.split()[1] for line in open(f"/proc/{process.pid}/status") if line.startswith("SigCgt")]
    return caught and int(caught[0], 16) >> (signal.SIGUSR2 - 1) & 1


def ended(scenario, env={}):
    """A scenario in which all ranks end by themselves: their codes, files and what is found."""
    with job(scenario, env) as (ranks, folder):
        errors = [process.communicate(timeout=60)[1] for process in ranks]
        codes = [process.returncode for process in ranks]
        check(f"{scenario}: all ranks have a file", all(lines_of(folder, p) for p in ranks), (codes, errors))
        return codes, findings(folder), [lines_of(folder, p) for p in ranks]


def works(env):
    """A job that is well is called so, though its ranks are not at the same operation."""
    with job("works", env) as (ranks, folder):
        now = f"{folder}/now"
        def well():
            for process in ranks:
                subprocess.run([TUTTI, "doctor", "--flight", now, "--pid", str(process.pid)], capture_output=True, timeout=60)
            done = subprocess.run([TUTTI, "trace", "check", "--json", now], capture_output=True, text=True, timeout=60)
            said = json.loads(done.stdout) if done.stdout else {}
            return done.returncode == 0 and said["processes"] == RANKS and said["sound"] and said["notes"]
        notes = until(well, "a job at work is sound")
        check("what is said", notes and "at work: its ranks are at operation" in notes[0], notes)


def differs(env):
    codes, found, _ = ended("differs", env)
    check("all fail", codes == [3] * RANKS, codes)
    says(found, "differ", f"operation 3 differs: rank 0 called {CALL}, rank 1 Broadcast(count 1000, float, root 1)")
    says(found, "written", "rank 2 failed: ranks called different operations")


def aborts(_):
    with job("aborts") as (ranks, folder):
        for r, process in enumerate(ranks):
            if r != VICTIM:
                process.communicate(timeout=60)
        until(lambda: lines_of(folder, ranks[VICTIM]), "the rank that aborts writes")
        says(findings(folder), "behind", BEHIND)


def crashes(_):
    codes, found, files = ended("crashes")
    check("the signal ends it", codes[VICTIM] == -signal.SIGSEGV, codes)
    check("its file says so", files[VICTIM][0]["flight"] == "SIGSEGV", files[VICTIM])
    says(found, "behind", BEHIND)


def watched(_):
    """The watchdog writes by itself, so few operations as were asked for; what went on and stands still again, again."""
    with job("twice", {"TUTTI_WATCHDOG": "1", "TUTTI_FLIGHT_OPERATIONS": "1"}) as (ranks, folder):
        def written(operation):
            lines = lines_of(folder, ranks[0])
            return lines if [line["seq"] for line in lines if line["t"] == "ev"] == [operation] else []
        lines = until(lambda: written(3), "the watchdog writes one operation")
        check("why", lines and "stands still" in lines[0]["flight"], lines)
        open(f"{folder}/id.go", "w").close()
        lines = until(lambda: written(4), "it writes again")
        check("why again", lines and "stands still" in lines[0]["flight"], lines)


def refused(_):
    """A file that cannot be written is reported once and does no harm; without a name nothing is written."""
    with job("differs", {"TUTTI_FLIGHT_FILE": "/proc/no-such-folder/x"}) as (ranks, folder):
        errors = [process.communicate(timeout=60)[1] for process in ranks]
        check("all fail as usual", all("different operations" in text for text in errors), errors)
        origins = [(r, line[1]) for r, text in enumerate(errors) for line in re.finditer(r"\[(\d)\] (?:watch|bootstrap/tree)/\S+ \S+ NCCL WARN", text)]
        check("what the library's threads say is of the rank's device", origins and all(int(device) == r for r, device in origins), errors)
        check("told", all(text.count("TUTTI_FLIGHT_FILE: /proc/no-such-folder/x: No such file") <= 1 for text in errors) and
              any("TUTTI_FLIGHT_FILE" in text for text in errors), errors)
    with tempfile.TemporaryDirectory() as made, job("differs", {"TUTTI_FLIGHT_FILE": f"{made}/%h/%p.jsonl"}) as (ranks, _):
        errors = [process.communicate(timeout=60)[1] for process in ranks]
        check("folders are made", len(glob.glob(f"{made}/*/*.jsonl")) == RANKS, errors)
    with tempfile.TemporaryDirectory() as made:
        for strict in ("0", "1"):
            with job("differs", {"TUTTI_FLIGHT_FILE": f"{made}/one.jsonl", "TUTTI_STRICT": strict}) as (ranks, _):
                errors = [process.communicate(timeout=60)[1] for process in ranks]
                words = f"TUTTI_FLIGHT_FILE: {made}/one.jsonl: another process writes it: its name needs %p"
                check("one file for all", sum(words in text for text in errors) >= RANKS - 1, errors)
                check("an error of strict mode", strict == "0" or f"TUTTI_STRICT: {words}" in "".join(errors), errors)
            if strict == "0":
                lines = [json.loads(line) for line in open(f"{made}/one.jsonl")]
                check("the file of one process", sum(line["t"] == "head" for line in lines) == 1, lines)
    with job("differs", {"TUTTI_FLIGHT_FILE": ""}) as (ranks, folder):
        for process in ranks:
            process.communicate(timeout=60)
        check("no files", os.listdir(folder) == ["id"], os.listdir(folder))


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for case, env in ((hangs, {}), (hangs, SOCKETS), (works, {}), (works, SOCKETS), (differs, {}), (differs, SOCKETS), (aborts, {}), (deaf, {}), (two, {}), (crashes, {}), (watched, {}),
                  (refused, {})):
    begin = time.monotonic()
    case(env)
    print(f"{case.__name__} {' '.join(env)}: {time.monotonic() - begin:.1f} s")
sys.exit(1 if failures else 0)
