#!/usr/bin/env python3
"""env_plugin.py TUTTI PLUGINS SPY: a job whose settings come from an environment plugin: every variable of NCCL's that
libnccl looks up is asked of it, but for those that are read before it is up; the commands that read variables ask it too."""
import json, os, re, subprocess, sys, tempfile

TUTTI, PLUGINS, SPY = sys.argv[1:4]
for name in [n for n in os.environ if n.startswith(("NCCL_", "TUTTI_TUNE"))]:
    del os.environ[name]
os.environ["TUTTI_TUNE_FILE"] = "none"
BEFORE = {"NCCL_CONF_FILE", "NCCL_ENV_PLUGIN", "NCCL_WARN_ENABLE_DEBUG_INFO"}  # and NCCL_DEBUG*
OURS = {"NCCL_COMM_ID"}  # the launcher's: asked of the environment where the plugin has no answer


def check(good, what):
    if not good:
        sys.exit(f"wrong: {what}")


def files(folder, beginning):
    return {n: open(f"{folder}/{n}").read() for n in os.listdir(folder) if n.startswith(beginning)}


def job(folder, version):
    """An AllReduce of two processes, over sockets because the plugin says so."""
    settings = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo", "NCCL_BUFFSIZE": "131072"}
    with open(f"{folder}/answers", "w") as out:
        out.writelines(f"{n}={v}\n" for n, v in settings.items())
    environment = os.environ | {
        "LD_PRELOAD": SPY + (":" + os.environ["LD_PRELOAD"] if os.environ.get("LD_PRELOAD") else ""), "ENVSPY_FOLDER": folder,
        "NCCL_ENV_PLUGIN": f"{PLUGINS}/libnccl-env_test_v{version}.so", "ENVTEST_FILE": f"{folder}/answers",
        "ENVTEST_NOTES": f"{folder}/notes", "NCCL_BUFFSIZE": "7", "TUTTI_INIT_TIMEOUT": "77", "NCCL_NTHREADS": "512", "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "ALL", "NCCL_DEBUG_FILE": f"{folder}/log.%p"}
    done = subprocess.run([TUTTI, "perf", "--ranks", "2", "-b", "8", "-e", "1K", "allreduce"], env=environment,
                          capture_output=True, text=True, timeout=100)
    check(done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}")
    log, spied, notes = files(folder, "log."), files(folder, "spy."), open(f"{folder}/notes").read().splitlines()
    ranks = [t for t in log.values() if f"ENV/Plugin: Using EnvTest (v{version})" in t]
    check(len(ranks) == 2, f"two processes loaded it: {log}")
    for text in ranks:
        check("via NET/Socket" in text, f"what the plugin says is done: {text[:4000]}")
        check("NCCL_BUFFSIZE set by environment to 131072." in text, "its value instead of the environment's")
        check("NCCL_NTHREADS" not in text, "no answer: unset")
        # nothing but the plugin's own variable, and the log's, before it
        first = re.search(r"NCCL_(?!ENV_PLUGIN)\w+ set by environment", text)
        check(first and first.start() > text.index("Successfully loaded external env plugin"), "read before it is up")
    check(sum(" init " in n for n in notes) == 2 and sum(" finalize " in n for n in notes) == 2, f"begun and ended: {notes}")
    check(sum(" in-init TUTTI_INIT_TIMEOUT 77" in n for n in notes) == 2, f"what its init asks for is the environment's: {notes[:9]}")
    asked = {n.split()[2] for n in notes if " getEnv " in n}
    check(len(asked) > 60 and set(settings) <= asked, f"asked for {len(asked)}: {sorted(asked)}")
    check(len(spied) >= 2, f"nobody was watched: {spied}")
    passed = {n for text in spied.values() for n in text.split()} - BEFORE - OURS
    passed = {n for n in passed if n.startswith("NCCL_") and not n.startswith("NCCL_DEBUG")}
    check(not passed - asked and not passed, f"asked of the environment: {sorted(passed)}")


def commands(folder):
    environment = os.environ | {"NCCL_ENV_PLUGIN": f"{PLUGINS}/libnccl-env_test_v2.so", "ENVTEST_FILE": f"{folder}/answers"}
    done = subprocess.run([TUTTI, "env", "--json", "NCCL_BUFFSIZE", "NCCL_NTHREADS"], env=environment | {"NCCL_NTHREADS": "9"},
                          capture_output=True, text=True, timeout=60)
    found = {row["name"]: (row["value"], row["origin"]) for row in json.loads(done.stdout)}
    check(found["NCCL_BUFFSIZE"] == ("131072", "plugin EnvTest"), f"tutti env: {found}")
    check(found["NCCL_NTHREADS"][1] == "default", f"tutti env: {found}")
    with open(f"{folder}/answers", "a") as out:
        out.write(f"NCCL_TOPO_FILE={folder}/absent.xml\n")
    done = subprocess.run([TUTTI, "env", "NCCL_TOPO_FILE"], env=environment | {"NCCL_DEBUG": "WARN"}, capture_output=True,
                          text=True, timeout=60)
    check(f"{folder}/absent.xml" in done.stdout and "plugin EnvTest" in done.stdout, f"a path: {done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as top:
    for version in (1, 2):
        os.mkdir(f"{top}/{version}")
        job(f"{top}/{version}", version)
    commands(f"{top}/2")
