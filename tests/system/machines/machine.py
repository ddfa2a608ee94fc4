#!/usr/bin/env python3
"""machine.py TUTTI PROGRAM MACHINES_FOLDER: the devices emulate a machine (NCCL_TOPO_FILE); the rings and trees that
communicators log are those that `tutti topo export` finds, over one host and over two, calls take the algorithms, protocols and
channels that NCCL would take (of those that run on hosts: no multicast), and sums are right."""
import json, os, re, shutil, subprocess, sys, tempfile

TUTTI, PROGRAM, FOLDER = sys.argv[1:4]
os.environ["NCCL_ALGO"] = "^NVLS,NVLSTree,PAT"


def scenario(machine, nodes):
    text = subprocess.run([TUTTI, "topo", "export", machine, "--json", "--nodes", str(nodes), "--load-order", "fused"],
                          check=True, capture_output=True, text=True).stdout
    export = json.loads(text)
    return len(export["system"]["gpus"]), export["scenarios"][0]


def logs(machine, gpus, nodes, folder):
    environment = dict(os.environ, NCCL_TOPO_FILE=machine, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,GRAPH,TUNING",
                       NCCL_DEBUG_FILE=os.path.join(folder, "log.%p"))
    command = [TUTTI, "run", "-n", str(gpus * nodes), PROGRAM, str(gpus)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    text = "".join(open(os.path.join(folder, name)).read() for name in sorted(os.listdir(folder)))
    rings = {int(c): (int(n), [int(r) for r in ranks.split()])
             for c, n, ranks in re.findall(r"INFO Channel (\d+)/(\d+) :((?: +\d+)+)$", text, re.M)}
    trees = {}
    for line in re.findall(r"INFO Trees (.*)$", text, re.M):
        for c, d0, d1, d2, me, up in re.findall(r"\[(\d+)\] (-?\d+)/(-?\d+)/(-?\d+)->(\d+)->(-?\d+)", line):
            trees[int(c), int(me)] = [int(up), int(d0), int(d1), int(d2)]
    p2p = re.search(r"(\d+) coll channels, 0 collnet channels, (\d+) nvls channels, (\d+) p2p channels, (\d+) p2p", text)
    system = re.findall(r"=== System : maxBw ([\d.]+) totalBw ([\d.]+) ===", text)
    patterns = re.findall(r"Pattern (\d+), crossNic (\d+), nChannels (\d+), bw [\d.]+/[\d.]+, type (\w+)/(\w+), sameChannels (\d)", text)
    calls = {(func, int(size)): [algo, proto, int(last) + 1] for func, size, algo, proto, last in re.findall(
        r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel{Lo..Hi}={0..(\d+)}", text)}
    return rings, trees, tuple(map(int, p2p.groups())), system, patterns, calls


def compare(name, nodes):
    machine = os.path.join(FOLDER, name + ".xml")
    gpus, expected = scenario(machine, nodes)
    layout, domain = expected["layout"], expected["domains"][0]
    with tempfile.TemporaryDirectory() as folder:
        rings, trees, counts, system, patterns, calls = logs(machine, gpus, nodes, folder)
    channels = layout["channels"]
    wanted = (channels, layout["nvls_channels"], layout["p2p_channels"], layout["p2p_channels_per_peer"])
    assert counts == wanted, f"{name}: channels {counts}, export says {wanted}"
    assert sorted(rings) == list(range(channels)), f"{name}: rings of channels {sorted(rings)}"
    for c in range(channels):
        ring = layout["rings"][layout["ring_of_channel"][c]]
        assert rings[c] == (channels, ring), f"{name}: channel {c} runs {rings[c]}, export says {ring}"
        tree = layout["trees"][layout["tree_of_channel"][c]]
        for rank in range(gpus * nodes):
            if (c, rank) in trees:  # long lines are cut
                assert trees[c, rank] == tree[4 * rank:4 * rank + 4], f"{name}: tree {c} rank {rank}: {trees[c, rank]}"
    assert all((0, rank) in trees for rank in range(gpus * nodes))
    assert set(system) == {(f"{domain['max_bw']:.1f}", f"{domain['total_bw']:.1f}")}, f"{name}: {set(system)}"
    compared = 0
    for func, rows in expected["tuning"]["choices"].items():
        for size, algo, proto, nchannels, _, _ in rows:
            if (func, size) in calls:
                found, compared = calls[func, size], compared + 1
                assert found == [algo.upper(), proto.upper(), nchannels], f"{name}: {func} of {size} bytes took {found}"
    assert compared >= 18, f"{name}: only {sorted(calls)} logged"
    ring = domain["graphs"]["ring"]
    line = (str(ring["pattern_id"]), str(ring["cross_nic"]), str(ring["channels"]), ring["type_intra"], ring["type_inter"],
            str(ring["same_channels"]))
    assert line in patterns, f"{name}: no {line} in {set(patterns)}"
    print(f"{name}, {nodes} host(s): {channels} channels as exported")


for name, nodes in (("c03-dgx1v", 1), ("c06-dgxh100", 1), ("simai-8a100-cx6", 1), ("ncclgp-5gpu-mixed", 1),
                    ("c08-gb200-tray", 2), ("c03-dgx1v", 2)):
    compare(name, nodes)

# what was written down is read again as the same machine and the same channels
with tempfile.TemporaryDirectory() as folder:
    topo, graphs, log = (os.path.join(folder, name) for name in ("topo.xml", "graphs.xml", "log"))
    machine = os.path.join(FOLDER, "c03-dgx1v.xml")
    environment = dict(os.environ, NCCL_TOPO_FILE=machine, NCCL_TOPO_DUMP_FILE=topo, NCCL_GRAPH_DUMP_FILE=graphs,
                       NCCL_GRAPH_DUMP_FILE_RANK="3")
    subprocess.run([TUTTI, "run", "-n", "8", PROGRAM, "8"], env=environment, check=True, timeout=240, capture_output=True)
    export = [TUTTI, "topo", "export", "--json"]
    expected = json.loads(subprocess.run([*export, machine, "--load-order", "fused"], check=True, capture_output=True).stdout)
    again = json.loads(subprocess.run([*export, topo], check=True, capture_output=True,
                                      env=dict(os.environ, NCCL_GRAPH_FILE=graphs)).stdout)
    for answer in (expected, again):
        for graph in answer["scenarios"][0]["domains"][0]["graphs"].values():
            graph["hops"] = 0  # graph files have none
    for part in ("system", "paths", "access", "scenarios"):
        assert expected[part] == again[part], f"dump: {part} is another one"
    print("dumps: read again as written")
    root, found, here = (os.path.join(folder, name) for name in ("root", "found.xml", "here.xml"))
    place = os.path.join(root, "var/run/nvidia-topologyd")
    os.makedirs(place)
    shutil.copy(machine, os.path.join(place, "virtualTopology.xml"))
    plain = {key: value for key, value in os.environ.items() if key != "NCCL_TOPO_FILE"}
    run = dict(check=True, timeout=240, capture_output=True)
    subprocess.run([TUTTI, "run", "-n", "8", PROGRAM, "8"], env=dict(plain, HWLOC_FSROOT=root, NCCL_TOPO_DUMP_FILE=found), **run)
    assert open(found).read() == open(topo).read(), "the machine file at its usual place is not taken"
    subprocess.run([TUTTI, "run", "-n", "8", PROGRAM, "8"],
                   env=dict(plain, NCCL_TOPO_FILE="", HWLOC_FSROOT=root, NCCL_TOPO_DUMP_FILE=found), check=False, timeout=240)
    assert not os.path.exists(found) or open(found).read() != open(topo).read(), "an empty NCCL_TOPO_FILE does not switch it off"
    print("the usual place of machine files: looked at")
    subprocess.run([TUTTI, "run", "-n", "2", PROGRAM, "2"], env=dict(plain, NCCL_TOPO_FILE="", NCCL_TOPO_DUMP_FILE=here), **run)
    checked = subprocess.run([TUTTI, "topo", "check", here], capture_output=True, text=True)
    assert checked.returncode == 0, f"this machine, as written down: {checked.stdout}{checked.stderr}"
    print("this machine: written down once, and sound")
    open(graphs, "w").write("<graphs version='1'><graph id='9'/></graphs>")
    failed = subprocess.run([TUTTI, "run", "-n", "8", PROGRAM, "8"], timeout=240, capture_output=True, text=True,
                            env=dict(os.environ, NCCL_TOPO_FILE=machine, NCCL_GRAPH_FILE=graphs, NCCL_DEBUG="WARN"))
    assert failed.returncode and "graphs.xml:1: <graph>: id is missing" in failed.stdout + failed.stderr, "bad graphs"
    print("graphs that make no sense: refused")
