#!/usr/bin/env python3
"""The watchdog names the rank to blame, at every rank that waits: over sockets (where each waits for its neighbour alone),
over memory, across a communicator and its parts, in a circle. usage: blame.py PROGRAM [ROUNDS [SEED]]"""
import concurrent.futures, os, random, re, signal, subprocess, sys, tempfile, time

SOCKETS = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
HOSTS = {**SOCKETS, "NCCL_HOSTID": "host", "NCCL_ALGO": "Ring"}  # each rank on one of its own, so /proc says nothing of the others
CASES = [("late", SOCKETS), ("stopped", SOCKETS), ("split", SOCKETS), ("circle", SOCKETS), ("late", {}), ("stopped", {}),
         ("split", {}), ("silent", HOSTS)]
LIMIT_SEC = 60


def wanted(scenario, victim):
    """What the sentence must say."""
    return {"late": rf"rank {victim} on host \S+ \(pid \d+\) has not called AllReduce\(count 1000, float, sum\) as operation 3",
            "stopped": rf"rank {victim} on host \S+ \(pid \d+\) is stopped",
            "silent": rf"rank {victim} on host \S+ \(pid \d+\) (is stopped|does not answer: its process is stopped)",
            "split": rf"rank {victim} .*has not called AllReduce|ranks [\d, ]*\b{victim}\b[\d, ]* have not called AllReduce",
            "circle": r"ranks wait for each other: rank \d+ in Recv.*; Sends and Recvs that need each other go into one group"}[scenario]


def waiting(scenario, ranks, victim):
    """The ranks that stand still and so must have a sentence."""
    if scenario == "split":
        return [r for r in range(ranks) if r % 2 != victim % 2]
    return [r for r in range(ranks) if r != victim or scenario == "circle"]


def verdicts(path):
    try:
        with open(path, errors="replace") as file:
            return re.findall(r"rank \d+ of \d+ waits: (.*)", file.read())
    except FileNotFoundError:
        return []


def play(program, scenario, env, ranks, victim):
    """Problems found."""
    with tempfile.TemporaryDirectory() as folder:
        logs = [os.path.join(folder, f"log{r}") for r in range(ranks)]
        started = [subprocess.Popen([program, "stopped" if scenario == "silent" else scenario, str(ranks), str(r), str(victim),
                                     os.path.join(folder, "id")],
                                    env={**os.environ, **env, **({"NCCL_HOSTID": f"host{r}"} if "NCCL_HOSTID" in env else {}),
                                         "NCCL_DEBUG": "WARN", "TUTTI_WATCHDOG": "1", "TUTTI_CHECK_MATCH": "0",
                                         "NCCL_DEBUG_FILE": logs[r]}) for r in range(ranks)]
        try:
            end = time.monotonic() + LIMIT_SEC
            wait = waiting(scenario, ranks, victim)
            while not all(verdicts(logs[r]) for r in wait) and time.monotonic() < end:
                time.sleep(0.05)
            said = {r: verdicts(logs[r]) for r in wait}
        finally:
            for process in started:
                process.send_signal(signal.SIGKILL)
            for process in started:
                process.wait()
    return [f"{scenario} {sorted(env)} {ranks} ranks, victim {victim}: rank {r} says {lines or 'nothing'}"
            for r, lines in said.items() if not lines or not all(re.search(wanted(scenario, victim), line) for line in lines)]


def time_out(program):
    """The error that TUTTI_TIMEOUT makes of it has the verdict and is ncclTimeout: at every rank, whichever gives up first."""
    with tempfile.TemporaryDirectory() as folder:
        started = [subprocess.Popen([program, "late", "4", str(r), "1", os.path.join(folder, "id")],
                                    env={**os.environ, **SOCKETS, "TUTTI_TIMEOUT": "3"}, stderr=subprocess.PIPE, text=True)
                   for r in range(4)]
        try:
            said = {r: started[r].communicate(timeout=LIMIT_SEC)[1] for r in (0, 2, 3)}
        finally:
            for process in started:
                process.kill()
                process.wait()
    return [f"time-out: rank {r} says {text}" for r, text in said.items()
            if "TUTTI_TIMEOUT" not in text or "(code 8)" not in text or not re.search(wanted("late", 1), text)]


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    source, jobs = random.Random(seed), []
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for _ in range(rounds):
            for scenario, env in CASES if rounds > 1 else CASES[:5]:
                ranks = source.choice([4, 5, 6])
                jobs.append(pool.submit(play, program, scenario, env, ranks, source.randrange(ranks)))
        jobs.append(pool.submit(play, program, "silent", HOSTS, 4, 0))  # all messages pass through rank 0
        jobs.append(pool.submit(time_out, program))
    wrong, played = sum((job.result() for job in jobs), []), len(jobs)
    print("\n".join(wrong))
    print(f"blame: {played} scenarios, {len(wrong)} ranks said something wrong or nothing (seed {seed})")
    return 1 if wrong else 0


sys.exit(main())
