#!/usr/bin/env python3
"""`tutti plugin check`: sound profilers and networks of every version, and those with a mistake, whose report names
the call. usage: plugin.py TUTTI PLUGINS profiler|net|net-faults|collnet|tuner|env|libfabric [PROVIDER VERSION...]"""
import csv, json, os, re, signal, subprocess, sys, tempfile

tutti, plugins, what, *more = sys.argv[1:]


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def run(*args, **env):
    # a file, as a child that hangs would keep a pipe open
    done = subprocess.run([tutti, "plugin", *args], env=os.environ | env, text=True, capture_output=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


def report(name, *args, kind="profiler", **env):
    code, out, err = run("check", f"{plugins}/libnccl-{name}.so", *args, **env)
    check(out.startswith("{"), f"no report of {name}: {out} {err}")
    found = json.loads(out)
    check(code == (0 if found["sound"] else 1) and found["kind"] == kind, f"exit status {code} of {name}: {found}")
    return found, {case["name"]: case for case in found["cases"]}


def profiler(name, *args, **env):
    return report(name, "--kind", "profiler", "-n", "100", "--json", *args, **env)


def net(name, *args, **env):
    return report(name, "--json", *args, kind="net", **env)


def sound():
    known = {1: 0x3f, 2: 0x3f, 3: 0xff, 4: 0xff, 5: 0xfff, 6: 0x7fff, 7: 0xffff}
    for version, mask in known.items():
        name = "profiler_json" + ("" if version == 6 else f"_v{version}")
        found, cases = profiler(name, PROFILER_MASK="0xffff")
        check(found["sound"] and found["version"] == version and found["mask"] == mask, f"version {version}: {found}")
        check(all(case["calls"] > 0 for case in cases.values()) and len(cases) == 18, f"cases of {name}: {cases}")
        check(found["nsec_per_call"] > 0, "the time of a call")


def example():
    """The example is sound, and writes each operation of a job at each rank, with an end after its begin."""
    found, cases = profiler("profiler_example")
    check(found["sound"] and (found["name"], found["version"], found["mask"]) == ("Example", 6, 0x4e), f"the example: {found}")
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"NCCL_PROFILER_PLUGIN": f"{plugins}/libnccl-profiler_example.so", "EXAMPLE_PROFILER_FILE": f"{folder}/x",
                            "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "EXAMPLE_PROFILER_OPERATIONS": "30"}
        perf = [tutti, "perf", "--ranks", "2", "-b", "8", "-e", "8", "--iters", "20", "--warmup", "5", "allreduce"]
        done = subprocess.run(perf, env=env, text=True, capture_output=True, timeout=200)
        files = [list(csv.DictReader(open(f"{folder}/{name}"))) for name in os.listdir(folder)]
    check(done.returncode == 0 and len(files) == 2, f"a job with the example: {done.returncode} {done.stderr} {len(files)}")
    for rows in files:
        calls = [row for row in rows if row["func"] == "AllReduce"]
        check(len(rows) == 30, f"it switches itself off after 30: {len(rows)}")
        check([int(row["sequence"]) for row in calls] == list(range(len(calls))), f"numbers: {calls}")
        # a kernel's channel and two operations of the proxy at least
        check(all(int(row["parts"]) >= 3 and int(row["posted_ns"]) <= int(row["begun_ns"]) <= int(row["ended_ns"])
                  for row in calls), f"times: {calls}")
    check(files[0][0]["comm"] == files[1][0]["comm"] and {rows[0]["rank"] for rows in files} == {"0", "1"}, "both ranks")


def mistakes():
    check(profiler("profiler_fragile")[0]["sound"], "without a mistake")
    cases = profiler("profiler_fragile", PROFILER_MISTAKE="channel")[1]
    check([n for n, c in cases.items() if c["result"] != "ok"] == ["64 channels"], f"one crash: {cases}")
    check("signal 11" in cases["64 channels"]["detail"] and "startEvent of type 64" in cases["64 channels"]["detail"],
          f"the call that crashed: {cases['64 channels']}")
    cases = profiler("profiler_fragile", PROFILER_MISTAKE="open")[1]
    check([n for n, c in cases.items() if c["result"] != "ok"] == ["abort"], f"one crash: {cases}")
    check("in finalize" in cases["abort"]["detail"], f"the call that crashed: {cases['abort']}")
    cases = profiler("profiler_fragile", "--seconds", "1", PROFILER_MISTAKE="hang")[1]
    check(cases["own mask"]["result"] == "hang" and "stopEvent of type 16" in cases["own mask"]["detail"],
          f"the call that hangs: {cases}")
    # what each of these finds, and others besides
    for mistake, case, where in (("name", "own mask", "in init"), ("foreign", "another process", "startEvent of type 8"),
                                 ("context", "another process", "startEvent of type 8"), ("kept", "own mask", "stopEvent of type 2"),
                                 ("freed", "AllReduce over a network", "startEvent of type 2"), ("fork", "fork", "the child of a fork does not end"),
                                 ("unknown", "engines and phases", "startEvent of type 4096 (CeColl)")):
        found, cases = profiler("profiler_fragile", "--seconds", "1" if mistake == "fork" else "20", PROFILER_MISTAKE=mistake)
        check(not found["sound"] and where in cases[case]["detail"], f"{mistake}: {cases}")
        alone = [n for n, c in cases.items() if c["result"] != "ok"] == [case]
        check(alone or mistake in ("name", "kept", "freed"), f"{mistake}: {cases}")
    for mistake, case, what in (("grows", "a long run", "bytes of each AllReduce are kept, after finalize as well"),
                                ("leaves", "come and go", "a communicator that has ended leaves 3")):
        found, cases = profiler("profiler_fragile", PROFILER_MISTAKE=mistake)
        check(not found["sound"] and [n for n, c in cases.items() if c["result"] != "ok"] == [case], f"{mistake}: {cases}")
        check(what in json.dumps(cases[case]), f"{mistake}: {cases[case]}")
    # results that a host ignores, and what only NCCL's way of calling init brings to light
    for mistake, says in (("start-fails", "startEvent of type 2 (Coll): returned 2 (ncclSystemError)"),
                          ("stop-fails", "stopEvent of type 64 (KernelCh): returned 4 (ncclInvalidArgument)"),
                          ("state-fails", "recordEventState 22: returned 77, which is no result"),
                          ("end-fails", "finalize: returned 3 (ncclInternalError)"),
                          ("late", "startEvent of type 1 (Group): the handle was changed after the call")):
        found, cases = profiler("profiler_fragile", PROFILER_MISTAKE=mistake)
        check(not found["sound"] and blamed(cases) == [says] and cases["AllReduce over a network"]["result"] == "failed", f"{mistake}: {cases}")
    found, cases = profiler("profiler_fragile", PROFILER_MISTAKE="races")
    check([n for n, c in cases.items() if c["result"] != "ok"] == ["inits at once"], f"a race in init: {cases}")
    check(blamed(cases) == ["init: of 8 threads at once some got no context"], f"a race in init: {cases}")
    found, cases = profiler("profiler_fragile", PROFILER_MISTAKE="roomy", MALLOC_PERTURB_="0")
    check(found["sound"], f"large pools: {cases}")
    found, cases = profiler("profiler_fragile", PROFILER_MISTAKE="thread")
    check("in no call, after the library was unloaded" in cases["unload and load"].get("detail", ""), f"a thread that goes on: {cases}")
    found, cases = profiler("profiler_fragile", PROFILER_MISTAKE="counts")
    for case in ("AllReduce over a network", "send and receive"):
        check("stopEvent: the event was freed, and was written to afterwards" in cases[case]["breaches"], f"counts: {cases[case]}")
    for hole, lacks in (("no-init", "init"), ("no-start", "startEvent"), ("no-stop", "stopEvent"), ("no-state", "recordEventState"), ("no-end", "finalize")):
        code, out, err = run("check", f"{plugins}/libnccl-profiler_fragile.so", "-n", "100", PROFILER_MISTAKE=hole)
        check(code == 1 and f"not taken: it has no {lacks}" in out and "signal" not in out, f"{hole}: {out}{err}")
    cases = profiler("profiler_fragile", PROFILER_MISTAKE="decline")[1]
    check(list(cases) == ["own mask"] and cases["own mask"]["result"] == "failed", f"no context: {cases}")
    code, out, err = run("check", f"{plugins}/libnccl-absent.so", "--kind", "profiler")
    check(code == 1 and not out and "libnccl-absent.so: No such file or directory" in err, f"no file: {out} {err}")
    check("init gave no context" in cases["own mask"]["detail"], f"why: {cases}")


def words():
    code, out, err = run("check", f"{plugins}/libnccl-profiler_fragile.so", "-k", "profiler", "-n", "100")
    check(code == 0 and 'plugin     "Fragile", version 7' in out and "verdict    sound" in out, f"in words: {out} {err}")
    code, out, err = run("check", f"{plugins}/libnccl-profiler_fragile.so", "-n", "100")
    check(code == 0 and "verdict    sound" in out, f"the kind by the symbols: {out} {err}")
    code, out, err = run("check", f"{plugins}/libnccl-env_test_v3.so")
    check(code == 1 and re.search("has no table ncclNetPlugin_v2 to ncclNetPlugin_v12 or ncclProfiler_v1 to ncclProfiler_v7 or "
          "ncclTunerPlugin_v1 to ncclTunerPlugin_v6 or ncclEnvPlugin_v1 to ncclEnvPlugin_v2 or "
          "ncclCollNetPlugin_v3 to ncclCollNetPlugin_v12; "
          r"it has ncclEnvPlugin_v3", err), f"no kind: {out} {err}")
    for file, why in (("libnccl-env_test_misnamed.so", "; it has ncclEnv_v2 (expected: ncclEnvPlugin_v2)\n"),
                      ("libibverbs-fake.so", '; it exports no table at all: C++ needs extern "C" const')):
        code, out, err = run("check", f"{plugins}/{file}", "--kind", "env")
        check(code == 1 and why in err, f"{file}: {out} {err}")
    done = subprocess.run([os.path.abspath(tutti), "plugin", "check", "libnccl-env_test_v2.so"], cwd=plugins, text=True,
                          env=os.environ | {"LD_LIBRARY_PATH": ""}, capture_output=True, timeout=60)
    check(done.returncode == 1 and "did you mean ./libnccl-env_test_v2.so?" in done.stderr, f"a file here: {done}")
    for args in ([], ["look"], ["check"], ["check", "x", "-k", "toaster"], ["check", "x", "--seconds", "0"]):
        check(run(*args)[0] == 2, f"usage: {args}")
    check(run("--help")[0] == 0 and run("check", "--help")[0] == 0, "help")


def refused():
    """Files that the loader does not take, and libraries without a table: the reason, with a kind and without, in words
    and as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        whole = open(f"{plugins}/libnccl-profiler_fragile.so", "rb").read()
        files = {"text": (b"no library\n" * 99, "invalid ELF header"), "class": (whole[:4] + b"\x01" + whole[5:], "ELFCLASS32"),
                 "short": (whole[:len(whole) // 2], "cut short"), "empty": (b"", "file too short")}
        for name, (content, reason) in files.items():
            path = f"{folder}/{name}.so"
            with open(path, "wb") as out:
                out.write(content)
            for kind in ([], ["--kind", "net"], ["--kind", "profiler"]):
                code, out, err = run("check", path, *kind)
                check(code == 1 and not out and "cannot be loaded" in err and reason in err, f"{name} {kind}: {out} {err}")
            found = json.loads(run("check", path, "--json")[1])
            check(found["sound"] is False and found["kind"] is None and reason in found["reason"], f"{name} as JSON: {found}")
    code, out, err = run("check", f"{plugins}/libnccl-profiler_fragile.so", "--kind", "net")
    check(code == 1 and "no table ncclNetPlugin_v2 to ncclNetPlugin_v12; it has ncclProfiler_v7" in err, f"a profiler: {err}")
    code, out, err = run("check", "absent-name")
    check(code == 1 and "absent-name cannot be loaded: there is no file of this name" in err, f"a name: {err}")


def blamed(cases):
    return sorted({breach for case in cases.values() for breach in case["breaches"]})


def sound_nets():
    for version in range(2, 13):
        found, cases = net(f"net_outsider_v{version}", OUTSIDER_DEVICES="2", **({"OUTSIDER_GROUPS": "1"} if version > 4 else {}))
        check((found["version"], found["name"], found["devices"]) == (version, "Outsider", 2), f"v{version}: {found}")
        check(len(cases) == 16, f"cases of version {version}: {cases}")
        wrong = [c for c in cases.values() if c["result"] != "ok"]
        check(not wrong, f"version {version}: {wrong}")
    found, cases = net("net_outsider_v6", OUTSIDER_IN_ORDER="1")
    check(not cases or not any("result 3" in case["detail"] for case in cases.values()), f"tested in order: {found}")
    found, cases = net("net_example")
    wrong = [c for c in cases.values() if c["result"] != "ok"]
    check((found["version"], found["name"]) == (12, "Example") and not wrong, f"the example: {found}")
    found, cases = net("net_outsider_v12", OUTSIDER_FAIL="init")
    check(not found["sound"] and list(cases) == ["devices"], f"init fails: {found}")
    check(re.search(r"not taken: init returned [1-9] \(", cases["devices"]["detail"]), f"init fails: {found}")


def planted():
    """The faults and what is said of them, as the unit test has them."""
    text = open(os.path.join(os.path.dirname(__file__), "../unit/plugin/test_net_faults.c")).read()
    table = re.search(r"faults\[\] = \{(.*?)\n\};", text, re.S).group(1)
    return re.findall(r'\{"([^"]+)", "([^"]+)"\}', table)


def faulty_nets():
    faults = planted()
    check(len(faults) >= 26, f"the list of faults: {faults}")
    for fault, says in faults:
        found, cases = net("net_outsider_v12", OUTSIDER_DEVICES="2", OUTSIDER_FAULT=fault)
        check(not found["sound"] and any(says in breach for breach in blamed(cases)), f"{fault}: {found}")
    for fault, says in (("speed-negative", "getProperties: speed: negative"), ("finalize-fails", "finalize: returned 3"),
                        ("keeps", "each connection keeps 2.0 descriptors"), ("keeps-pages", "each connection keeps 2097152 mapped bytes"),
                        ("keeps-messages", "each message keeps 336 bytes of malloc")):
        found, cases = net("net_outsider_v12", OUTSIDER_FAULT=fault)
        check(not found["sound"] and any(says in breach for breach in blamed(cases)), f"{fault}: {blamed(cases)}")
    found, cases = net("net_outsider_v12", OUTSIDER_FAULT="exits")
    check(not found["sound"] and "the plugin ended the process with status 0 in closeSend" in cases["sizes"]["detail"] and
          re.search("the plugin ended the (sending process with status 0 in closeSend|process with status 0 in closeRecv)",
                    cases["two processes"]["detail"]), f"exits: {cases}")  # whichever comes first
    case = net("net_outsider_v5", OUTSIDER_FAULT="accept-blocks")[1]["no sender"]
    check(case["result"] != "hang" and any("accept: it took more than 100 ms" in b for b in case["breaches"]), f"accept: {case}")
    for fault, says in (("tags-ignored", "irecv: the message with tag 70 is not where its receive is"),
                        ("sizes-one", "sizes: a receive is done and its size is not set")):
        found, cases = net("net_outsider_v12", OUTSIDER_GROUPS="1", OUTSIDER_FAULT=fault)
        case = cases["grouped receives"]
        check(not found["sound"] and (says in case["detail"] or any(says in b for b in case["breaches"])), f"{fault}: {case}")
        check(cases["tags"]["result"] == "ok", f"{fault}: {cases}")
    cases = net("net_outsider_v12", OUTSIDER_FAULT="size-room")[1]
    check("a message of 1 bytes came as one of 4097" in cases["larger receives"]["detail"], f"the room: {cases}")
    cases = net("net_outsider_v12", OUTSIDER_FAULT="wrong-data")[1]
    check("message 0 of 1 byte is another one than was sent, from byte 0" in cases["sizes"]["detail"], f"wrong data: {cases}")
    cases = net("net_outsider_v12", OUTSIDER_FAULT="blames-host")[1]
    check(cases["sizes"]["detail"] == 'isend: result 3 (ncclInternalError); it warned: "Outsider: the host is wrong: another tag"', f"a warning: {cases}")
    cases = net("net_outsider_v12", OUTSIDER_FAULT="crashes")[1]
    check(cases["sizes"]["result"] == "crash" and "(Aborted) in isend (messages of 0" in cases["sizes"]["detail"], f"a crash: {cases}")
    check("the sender: signal 6 (Aborted) in isend" in cases["two processes"]["detail"], f"a crash of the sender: {cases}")
    check(cases["connections"]["result"] == "ok", f"a crash elsewhere: {cases}")
    cases = net("net_outsider_v12", "--seconds", "1", OUTSIDER_FAULT="never-done")[1]
    check(cases["in flight"]["result"] == "hang" and "in test (eight" in cases["in flight"]["detail"], f"a hang: {cases}")
    code, out, err = run("check", f"{plugins}/libnccl-net_outsider_v12.so", "-k", "net", OUTSIDER_FAULT="sizes-many")
    check(code == 1 and "breach     sizes: test: sizes: more were set than the request has" in out and
          "verdict    not sound" in out, f"in words: {out} {err}")
    check(out.count("more were set") == 1 and "failed     tags: the contract is broken, as above\n" in out, f"once: {out}")


COLLNET_FAULTS = {"listen-waits": "listen: it took more than 100 ms", "connect-none": "connect: returned 3",
                  "nothing": "reduceSupport: supported: nothing is", "wrong-sum": "iallreduce: recvData: wrong with type 2, operator 0",
                  "wrong-gather": "iallgather: recvData: wrong with type 0, operator 0",
                  "wrong-scatter": "ireducescatter: recvData: wrong with type 2, operator 0",
                  "given-written": "sendData: it was written", "written-around": "recvData: written around it",
                  "sum-waits": "iallreduce: it took more than 100 ms", "sum-fails": "iallreduce: returned 4",
                  "test-waits": "test: it took more than 100 ms"}


def collnets():
    """Sound collective networks of every version, and what is said of planted faults."""
    for version in range(3, 13):
        found, cases = report(f"collnet_outsider_v{version}", "--kind", "collnet", "--json", kind="collnet")
        check((found["version"], found["name"], found["devices"]) == (version, "Summer", 1), f"v{version}: {found}")
        wrong = [c for c in cases.values() if c["result"] != "ok"]
        check(len(cases) == 5 and not wrong, f"version {version}: {found}")
        asks = cases["gathered blocks"]["calls"] > 50 and cases["scattered sums"]["calls"] > 50
        check(asks == (version in (8, 9, 12)), f"blocks of version {version}: {found}")
    for fault, says in COLLNET_FAULTS.items():
        found, cases = report("collnet_outsider_v12", "--kind", "collnet", "--json", kind="collnet", COLLNET_FAULT=fault)
        check(not found["sound"] and any(says in breach for breach in blamed(cases)), f"{fault}: {found}")
    found, cases = report("collnet_outsider_v12", "--kind", "collnet", "--json", kind="collnet", COLLNET_FAULT="crashes")
    check(cases["sums"]["result"] == "crash" and "(Aborted) in test (1 elements" in cases["sums"]["detail"], f"a crash: {cases}")
    code, out, err = run("check", f"{plugins}/libnccl-net_outsider_v12.so", "--kind", "collnet")
    check(code == 1 and "ncclCollNetPlugin_v3 to ncclCollNetPlugin_v12" in out + err, f"none there: {code} {out} {err}")
    found, cases = net("collnet_outsider_v12")
    check(len(cases) == 16, f"without a kind it is the network: {found}")


def example_in_a_job():
    env = {"NCCL_NET_PLUGIN": f"{plugins}/libnccl-net_example.so", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
           "TUTTI_PLUGIN_CHECK": "1", "NCCL_DEBUG": "INFO"}
    done = subprocess.run([tutti, "perf", "--ranks", "3", "-b", "8", "-e", "256K", "-n", "2", "-w", "1", "allreduce"],
                          env=os.environ | env, text=True, capture_output=True, timeout=300)
    out = done.stdout + done.stderr
    check(done.returncode == 0 and "via NET/Example/0" in out and "Out of bounds values : 0 OK" in out, f"a job: {out}")
    blames = [line for line in out.splitlines() if "breaks the contract" in line and not is_late(line)]
    check("calls were checked" in out and not blames, f"a job: {blames} {out}")


def groups_in_a_job():
    """Messages of a Send come by several in one request where the network takes that, and its results are right."""
    for version, shared, grouped in (("12", "1", True), ("8", "1", True), ("9", "0", False)):
        env = {"NCCL_NET_PLUGIN": f"{plugins}/libnccl-net_outsider_v{version}.so", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1",
               "TUTTI_PLUGIN_CHECK": "1", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "OUTSIDER_GROUPS": "1", "NCCL_NET_SHARED_COMMS": shared}
        done = subprocess.run([tutti, "perf", "--ranks", "2", "-b", "1M", "-e", "5M", "-i", "4M", "-n", "2", "-w", "0", "sendrecv", "alltoall"],
                              env=os.environ | env, text=True, capture_output=True, timeout=300)
        out = done.stdout + done.stderr
        check(done.returncode == 0 and "via NET/Outsider" in out and "Out of bounds values : 0 OK" in out, f"version {version}: {out}")
        blames = [line for line in out.splitlines() if "the host is wrong" in line or "breaks the contract" in line and not is_late(line)]
        check("calls were checked" in out and not blames, f"version {version}: {blames}")
        check(("receives of several messages" in out) == grouped, f"version {version}: {out}")


def room_in_a_job():
    """A network that tells the room of a receive in place of the message's size carries all."""
    env = {"NCCL_NET_PLUGIN": f"{plugins}/libnccl-net_outsider_v7.so", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "TUTTI_PLUGIN_CHECK": "1",
           "OUTSIDER_GROUPS": "1", "OUTSIDER_FAULT": "size-room"}
    done = subprocess.run([tutti, "perf", "--ranks", "2", "-b", "8", "-e", "2M", "-f", "64", "-n", "1", "-w", "0", "allreduce", "sendrecv"],
                          env=os.environ | env, text=True, capture_output=True, timeout=300)
    out = done.stdout + done.stderr
    check(done.returncode == 0 and "Out of bounds values : 0 OK" in out, f"room told: {out}")


def death_in_a_job():
    """No failure hides that a rank has died, also where the network says of a closed connection no more than that something failed."""
    env = {"NCCL_NET_PLUGIN": f"{plugins}/libnccl-net_outsider_v2.so", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "OUTSIDER_FAULT": "closed-plain"}
    perf = [os.path.dirname(tutti) + "/tutti-perf", "-b", "64K", "-e", "64K", "-N", "0", "-n", "5", "-c", "0", "allreduce"]
    ranks = subprocess.Popen([tutti, "run", "-n", "2", "sh", "-c", '[ $RANK = 0 ] || echo "pid $$."; exec "$@"', "sh", *perf],
                             env=os.environ | env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    pid, out = 0, ""
    for line in ranks.stdout:
        pid = int(re.search("pid ([0-9]+)\\.", line).group(1)) if "pid " in line and not pid else pid
        out += line
        if pid and re.search(" 65536 +16384 ", line):
            break
    check(pid, f"no rank 1: {out}")
    os.kill(pid, signal.SIGKILL)
    out += ranks.communicate(timeout=120)[0]
    check("over NET/Outsider failed" not in out, f"a death: {out}")  # `tutti run` may end rank 0 before it says more


def shared_slots_in_a_job():
    """Four peers take turns with slots for three at a time, and slices are as large as 32 MiB of slots allow."""
    env = {"NCCL_NET_PLUGIN": f"{plugins}/libnccl-net_outsider_v12.so", "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_BUFFSIZE": "8388608",
           "TUTTI_PLUGIN_CHECK": "1", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", "NCCL_MAX_NCHANNELS": "1", "NCCL_NET_SHARED_BUFFERS": "1"}
    done = subprocess.run([tutti, "perf", "--ranks", "5", "-b", "5M", "-e", "5M", "-n", "1", "-w", "0", "alltoall", "gather"],
                          env=os.environ | env, text=True, capture_output=True, timeout=300)
    out = done.stdout + done.stderr
    check(done.returncode == 0 and "Out of bounds values : 0 OK" in out, f"shared slots: {out}")
    check("slices of 512 KiB instead of 1024" in out and "share 6 times 4 slots" in out, f"shared slots: {out}")
    blames = [line for line in out.splitlines() if "the host is wrong" in line or "breaks the contract" in line and not is_late(line)]
    check("calls were checked" in out and not blames, f"shared slots: {blames}")


def expect(kind, name, variable, faults, **env):
    """Each planted fault is found: as a breach, or where the case ends. None of them by another name."""
    for fault, says in faults.items():
        found, cases = report(name, "--json", "--seconds", "1", "-n", "100", kind=kind, **env, **{variable: fault})
        said = blamed(cases) + [f"{c['result']}: {c['detail']}" for c in cases.values() if c["result"] in ("crash", "hang")]
        check(not found["sound"] and any(says in line for line in said), f"{kind} {fault}: {says}? {said} {found}")


def tuners():
    for version in range(1, 7):
        found, cases = report(f"tuner_outsider_v{version}", "--json", "-n", "100", kind="tuner", OUTSIDER_CHOICE="1,2,4")
        check((found["version"], found["name"], len(cases)) == (version, "Outsider", 9) and found["sound"], f"tuner: {found}")
        check(found["nsec_per_call"] > 0 and "bytes_per_question" in found, f"cost: {found}")
    for choice, says in (("9,1,1", "algorithm: 9 is none of -1 to 6"), ("1,3,1", "protocol: 3 is none of -1 to 2"),
                         ("2,2,1", "algorithm: 2, and collNetSupport is 0"), ("4,2,1", "algorithm: 4, and nvlsSupport is 0")):
        for version in (1, 2):
            found, cases = report(f"tuner_outsider_v{version}", "--json", "-n", "100", kind="tuner", OUTSIDER_CHOICE=choice)
            check(not found["sound"] and blamed(cases) == ["getCollInfo: " + says], f"{choice}: {found}")
    for fault in ("", "no-chunk"):
        found, cases = report("tuner_faulty", "--json", "-n", "100", kind="tuner", FAULTY=fault)
        check(found["sound"] and found["bytes_per_question"] == 0, f"no fault: {fault}: {found}")
    code, out, err = run("check", f"{plugins}/libnccl-tuner_faulty.so", "-n", "100")
    check(code == 0 and "per call, memory does not grow\n" in out, f"in words: {out}")
    found, cases = report("tuner_example", "--json", "-n", "100", kind="tuner")
    check((found["name"], found["version"]) == ("Example", 6) and found["sound"], f"the example: {found}")
    table = "getCollInfo: collCostTable: "
    expect("tuner", "tuner_faulty", "FAULTY", {
        "no-name": "the table: name: there is none", "no-init": "the table: init: it is missing",
        "no-ask": "the table: getCollInfo: it is missing", "no-end": "the table: finalize: it is missing", "init-fails": "init: returned 3",
        "init-code": "init: returned 99, which is no result", "init-crashes": "signal 6 (Aborted) in init",
        "one-instance": "init: returned 3", "constants-nan": "init: constants: nan is no time",
        "constants-negative": "init: constants: -2 is no time", "domains": "init: nvlDomainInfo: it was written to",
        "ask-fails": "getCollInfo: returned 5", "revives": table + "[2][1] (COLLNET_DIRECT/LL128) was impossible (-1) and is possible now",
        "not-a-number": table + "[0][0] (TREE/LL) not a number", "infinite": table + "[0][0] (TREE/LL) infinite",
        "negative": table + "[0][0] (TREE/LL) negative, but not -1", "beyond": table + "written beyond its 7 rows of 3",
        "before": table + "written beyond its 7 rows of 3", "nothing-left": table + "nothing is left to choose",
        "channels-negative": "getCollInfo: nChannels: -3 is none of 0 to 64", "channels-many": "nChannels: 1000 is none of",
        "unsteady": "is another one the second time", "by-rank": "is another one at another rank",
        "by-process": "is another one in another process", "one-state": "is another one after another communicator", "not-threads": "signal 6 (Aborted) in a call (four ranks as threads)",
        "crashes": "signal 6 (Aborted) in getCollInfo of Broadcast, 4294967296 bytes, 1 rank (communicators of 1 to 1024 ranks)",
        "hangs": "no end after 1 s, in getCollInfo", "chunk-zero": "getChunkSize: chunkSize: it is 0",
        "chunk-fails": "getChunkSize: returned 3", "end-fails": "finalize: returned 2",
        "end-crashes": "signal 6 (Aborted) in finalize", "keeps": "memory: each question keeps 112 bytes",
        "keeps-contexts": "memory: each communicator that has ended keeps 32 bytes of malloc"})
    code, out, err = run("check", f"{plugins}/libnccl-tuner_faulty.so", "--seconds", "1", FAULTY="init-hangs")
    check(code == 1 and re.search("^hang       init and end: .*\nleft out   the other 8 cases: they would not end either\nverdict    not sound$", out, re.M), f"a hang: {out}")
    code, out, err = run("check", f"{plugins}/libnccl-tuner_faulty.so", "-n", "100", FAULTY="revives")
    check(code == 1 and "breach     shapes: " not in out and f"breach     few entries: {table}[2][1] (COLLNET_DIRECT/LL128) was" in out, f"words: {out}")
    # in a job each is one warning, whichever rank met it
    for fault, warns in (("init-fails", "Faulty: init returned 3; going on without it"), ("ask-fails", "Faulty: getCollInfo returned 5; the built-in choice"),
                         ("no-ask", "Faulty has no init or getCollInfo; going on"), ("chunk-fails", "Faulty: getChunkSize returned 3; the built-in"),
                         ("nothing-left", "getCollInfo left nothing of collCostTable to choose"), ("channels-many", ""), ("", ""),
                         ("revives", "getCollInfo made CollnetDirect with LL128 ([2][1] of collCostTable) possible, which was not (-1); it stays impossible")):
        env = os.environ | {"NCCL_TUNER_PLUGIN": f"{plugins}/libnccl-tuner_faulty.so", "FAULTY": fault, "NCCL_ALGO": "Ring"}
        perf = [tutti, "perf", "--ranks", "2", "-b", "4096", "-e", "4096", "--iters", "3", "--warmup", "1", "allreduce", "reduce"]
        done = subprocess.run(perf, env=env, text=True, capture_output=True, timeout=200)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if re.search("WARN (TUNER/Plugin|NCCL_TUNER_PLUGIN)", line)]
        check(done.returncode == 0 and len(lines) == (warns != "") and all(warns in line for line in lines), f"{fault}: {done}")


def envs():
    for version in (1, 2):
        found, cases = report(f"env_test_v{version}", "--json", "-n", "100", kind="env")
        check((found["version"], found["name"], len(cases)) == (version, "EnvTest", 8) and found["sound"], f"env: {found}")
    with tempfile.NamedTemporaryFile("w") as answers:
        answers.write("NCCL_BUFFSIZE=65536\nNCCL_SOCKET_IFNAME=lo\n")
        answers.flush()
        found, cases = report("env_example", "--json", "-n", "100", kind="env", EXAMPLE_ENV_FILE=answers.name)
        check((found["name"], found["version"]) == ("Example", 2) and found["sound"], f"the example: {found}")
        check(found["answers"] >= 2, f"the example: {found}")
        settings = {"ENVTEST_FILE": answers.name}
        check(report("env_test_v2", "--json", kind="env", **settings)[0]["answers"] == 2, "the number of answers")
        expect("env", "env_test_v2", "ENVTEST_FAULT", {
            "no-name": "the table: name: there is none", "no-init": "the table: init: it is missing",
            "no-getenv": "the table: getEnv: it is missing", "init-fails": "init: returned 3",
            "init-code": "init: returned 99, which is no result", "init-crashes": "signal 6 (Aborted) in init",
            "crashes": "signal 6 (Aborted) in getEnv of CUDA_LAUNCH_BLOCKING", "hangs": "no end after 1 s, in getEnv of",
            "bad-value": "getEnv: NCCL_BUFFSIZE: 'plenty' is none of: 32768..8388608 bytes", "small-value": "getEnv: NCCL_BUFFSIZE: '1' is none of: 32768..8388608 bytes",
            "bad-word": "getEnv: NCCL_ALGO: unknown word 'Rign'", "bad-level": "getEnv: NCCL_P2P_LEVEL: unknown level 'NEAR'",
            "sets-env": "getEnv: it changes the environment, which other threads read",
            "never-null": "getEnv: name: 'NCCL_NOBODY_SETS_THIS' has a value",
            "long-name-crashes": "in getEnv of a strange name", "empty-name-crashes": "in getEnv of a strange name",
            "text-moves": "getEnv: NCCL_BUFFSIZE: its text changed when others were asked for",
            "unsteady": "another answer the second time", "not-threads": "signal 6 (Aborted) in a call (four threads ask)",
            "finalize-fails": "finalize: returned 2", "finalize-crashes": "signal 6 (Aborted) in finalize",
            "finalize-hangs": "in finalize (every variable once)"}, **settings)


def over_libfabric(provider, *versions):
    for version in versions:
        found, cases = net(f"net_tutti_v{version}", TUTTI_OFI_PROVIDER=provider, NCCL_SOCKET_IFNAME="lo")
        check((found["version"], found["name"], found["devices"]) == (int(version), "Libfabric", 1), f"v{version}: {found}")
        wrong = [c for c in cases.values() if c["result"] != "ok"]
        check(len(cases) == 16 and not wrong, f"version {version} over {provider}: {wrong}")


def nics_of_a_machine():
    """`tutti topo --net-plugin`: the plugin's NICs stand in the machine, its own do not; who is none is refused."""
    machine = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/machines/c05-dgxa100.xml")

    def show(*args, **env):
        done = subprocess.run([tutti, "topo", "show", *args], env=os.environ | env, text=True, capture_output=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    # NICs without a place of their own are ports of one: a plugin that offers virtual devices (version 9 on) has them joined
    for version, level, names in ((6, "PORT", ["out0", "out1"]), (8, "PORT", ["out0", "out1"]), (12, "LOC", ["out0", "out1"]),
                                  (12, "PORT", ["out0+out1"])):
        code, out, err = show(machine, "--net-plugin", f"{plugins}/libnccl-net_outsider_v{version}.so", OUTSIDER_DEVICES="2",
                              NCCL_NET_MERGE_LEVEL=level)
        ports = re.findall(r"port ([\w+]+): net \d+, ([\d.]+) GB/s", out)
        check(code == 0 and [(n, s[:4]) for n, s in ports] == [(n, "3.12") for n in names], f"v{version} {level}: {ports} {err}")
        check("out0" in out.split("GPU7")[1] and "mlx5_0 is not known to the network plugin" in err, f"paths: {out} {err}")
    code, out, err = show("--json", "--net-plugin", f"{plugins}/libnccl-net_outsider_v12.so")
    check(code == 0 and '"out0"' in out, f"this machine: {out} {err}")
    for args, why in ((["absent"], "it cannot be loaded, or is no network plugin"),
                      ([f"{plugins}/libnccl-net_outsider_v1.so"], "not taken: "), ([""], "is empty")):
        code, out, err = show(machine, "--net-plugin", *args)
        check(code == (2 if args == [""] else 1) and not out and why in err, f"{args}: {code} {out} {err}")


if what == "tuner":
    tuners()
elif what == "env":
    envs()
elif what == "profiler":
    sound()
    example()
    mistakes()
    words()
    refused()
elif what == "net":
    sound_nets()
    example_in_a_job()
    groups_in_a_job()
    room_in_a_job()
    death_in_a_job()
    shared_slots_in_a_job()
    nics_of_a_machine()
elif what == "collnet":
    collnets()
elif what == "libfabric":
    over_libfabric(*more)
else:
    faulty_nets()
