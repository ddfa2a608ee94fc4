#!/usr/bin/env python3
"""`tutti plugin check`: sound profilers of every version, and those with a mistake, whose report names the call.
usage: plugin.py TUTTI PLUGINS"""
import json, os, subprocess, sys

tutti, plugins = sys.argv[1:3]


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def run(*args, **env):
    # a file, as a child that hangs would keep a pipe open
    done = subprocess.run([tutti, "plugin", *args], env=os.environ | env, text=True, capture_output=True, timeout=200)
    return done.returncode, done.stdout, done.stderr


def report(name, *args, **env):
    code, out, err = run("check", f"{plugins}/libnccl-{name}.so", "--kind", "profiler", "-n", "100", "--json", *args, **env)
    check(out.startswith("{"), f"no report of {name}: {out} {err}")
    found = json.loads(out)
    check(code == (0 if found["sound"] else 1), f"exit status {code} of {name}: {found}")
    return found, {case["name"]: case for case in found["cases"]}


def sound():
    known = {1: 0x3f, 2: 0x3f, 3: 0xff, 4: 0xff, 5: 0xfff, 6: 0x7fff, 7: 0xffff}
    for version, mask in known.items():
        name = "profiler_json" + ("" if version == 6 else f"_v{version}")
        found, cases = report(name, PROFILER_MASK="0xffff")
        check(found["sound"] and found["version"] == version and found["mask"] == mask, f"version {version}: {found}")
        check(all(case["calls"] > 0 for case in cases.values()) and len(cases) == 12, f"cases of {name}: {cases}")
        check(found["nsec_per_call"] > 0, "the time of a call")


def mistakes():
    check(report("profiler_fragile")[0]["sound"], "without a mistake")
    cases = report("profiler_fragile", PROFILER_MISTAKE="channel")[1]
    check([n for n, c in cases.items() if c["result"] != "ok"] == ["64 channels"], f"one crash: {cases}")
    check("signal 11" in cases["64 channels"]["detail"] and "startEvent of type 64" in cases["64 channels"]["detail"],
          f"the call that crashed: {cases['64 channels']}")
    cases = report("profiler_fragile", PROFILER_MISTAKE="open")[1]
    check([n for n, c in cases.items() if c["result"] != "ok"] == ["abort"], f"one crash: {cases}")
    check("in finalize" in cases["abort"]["detail"], f"the call that crashed: {cases['abort']}")
    cases = report("profiler_fragile", "--seconds", "1", PROFILER_MISTAKE="hang")[1]
    check(cases["own mask"]["result"] == "hang" and "stopEvent of type 16" in cases["own mask"]["detail"],
          f"the call that hangs: {cases}")
    cases = report("profiler_fragile", PROFILER_MISTAKE="decline")[1]
    check(list(cases) == ["own mask"] and cases["own mask"]["result"] == "no", f"no context: {cases}")
    check(not report("absent")[0]["sound"], "a file that is not there")


def words():
    code, out, err = run("check", f"{plugins}/libnccl-profiler_fragile.so", "-k", "profiler", "-n", "100")
    check(code == 0 and 'plugin     "Fragile", version 5' in out and "verdict    sound" in out, f"in words: {out} {err}")
    for args in ([], ["look"], ["check"], ["check", "x"], ["check", "x", "-k", "toaster"], ["check", "x", "--seconds", "0"]):
        check(run(*args)[0] == 2, f"usage: {args}")
    check(run("--help")[0] == 0 and run("check", "--help")[0] == 0, "help")


sound()
mistakes()
words()
