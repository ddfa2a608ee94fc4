#!/usr/bin/env python3
"""variables.py TUTTI MACHINES_FOLDER: what no reference result covers: partitions and several ranks on a GPU, NICs merged into
virtual ones, and every variable that the graph obeys, each with an effect that can be seen."""
import json, os, re, subprocess, sys, tempfile

TUTTI, FOLDER = sys.argv[1:3]
PLAIN = {key: value for key, value in os.environ.items() if not key.startswith("NCCL_")}


def run(path, *more, **variables):
    return subprocess.run([TUTTI, "topo", "export", path, "--json", *more], env=dict(PLAIN, **variables), capture_output=True,
                          text=True)


def export(path, *more, **variables):
    result = run(path, *more, **variables)
    assert result.returncode == 0, f"{path} {variables}: {result.stderr}"
    return json.loads(result.stdout)


def machine(name):
    return os.path.join(FOLDER, name + ".xml")


def expect(what, got, wanted):
    assert got == wanted, f"{what}: {got}, wanted {wanted}"


def nets(answer):
    return [[net["dev"], round(net["bw"], 3)] for net in answer["system"]["nets"]]


def merged():
    pairs = [[16 + k, 45.0] for k in range(8)]
    expect("ports of one NIC", nets(export(machine("oci-h100"), NCCL_NET_MERGE_LEVEL="PORT")), pairs)
    expect("as in a communicator", nets(export(machine("oci-h100"), "--load-order", "fused", NCCL_NET_MERGE_LEVEL="PORT")), pairs)
    expect("no level", len(nets(export(machine("oci-h100")))), 16)
    expect("level LOC", len(nets(export(machine("oci-h100"), NCCL_NET_MERGE_LEVEL="LOC"))), 16)
    p5 = export(machine("aws-p5"), NCCL_NET_MERGE_LEVEL="PIX")
    expect("four NICs of a switch", nets(p5), [[32 + k, 50.0] for k in range(8)])
    expect("no wider than the switch", max(link[3] for link in p5["system"]["links"] if link[0].startswith("NIC") and link[2] == "PCI"
                                           ), 24.0)
    forced = export(machine("oci-h100"), NCCL_NET_FORCE_MERGE="mlx5_0,mlx5_1:2", NCCL_NET_MERGE_LEVEL="LOC")
    expect("by name", sorted(nets(forced))[-1], [16, 45.0])
    expect("by name, the others", len(nets(forced)), 15)
    expect("RAIL without rails", len(nets(export(machine("oci-h100"), NCCL_NET_MERGE_LEVEL="PORT", NCCL_NET_MERGE_POLICY="RAIL"))), 16)
    for variables, words in (({"NCCL_NET_FORCE_MERGE": "mlx5_0,nothere"}, "nothere"), ({"NCCL_NET_MERGE_LEVEL": "NEAR"}, "NEAR"),
                             ({"NCCL_NET_FORCE_MERGE": "mlx5_0,mlx5_17"}, "NUMA")):
        refused = run(machine("oci-h100"), **variables)
        assert refused.returncode == 1 and words in refused.stderr, f"{variables}: {refused.returncode} {refused.stderr}"
    print("virtual NICs: as asked")


def doubled(folder, part):
    """Every GPU twice: as two partitions, or with two ranks."""
    rank = iter(range(100))
    def twice(match):
        row = re.sub(r' rank="\d+"', "", match.group(0))
        opened, rest = row[:4], row[4:]
        copies = [f'{opened} rank="{next(rank)}"' + (f' mlopart="{k}"' if part else "") + rest for k in range(2)]
        return "\n".join(copies)
    text = re.sub(r"<gpu[^>]*/>|<gpu.*?</gpu>", twice, open(machine("c08-gb200-tray")).read(), flags=re.S)
    path = os.path.join(folder, "doubled.xml")
    open(path, "w").write(text)
    return path


def partitions(folder):
    whole = export(machine("c08-gb200-tray"))
    nvlink = whole["paths"]["gpu_gpu"]["bw"][0][1]
    path = doubled(folder, True)
    parts = export(path)
    expect("partitions", len(parts["system"]["gpus"]), 8)
    row = list(zip(parts["paths"]["gpu_gpu"]["type"][0], parts["paths"]["gpu_gpu"]["bw"][0]))[1:3]
    expect("siblings and others", [[t, round(b, 2)] for t, b in row], [["LOC", 2618], ["NVL", round(nvlink / 2, 2)]])
    total = round(whole["paths"]["gpu_cpu"]["bw"][0][0], 1)
    ways = [[link[1].split("/")[0], round(link[3], 1)] for link in parts["system"]["links"] if link[0].startswith("CXB/0")]
    expect("C2C is shared", sorted(ways), [["CPU", total], ["DEV", total], ["DEV", total]])
    expect("no GPU-direct", sum(map(sum, parts["access"]["gdr_recv"])), 0)
    assert sum(map(sum, export(path, NCCL_NET_GDR_MLOPART="1")["access"]["gdr_recv"])) > 0, "GPU-direct for partitions"
    joined = export(path, NCCL_TOPO_SPLIT_MLOPART="0")
    expect("not split", joined["paths"]["gpu_gpu"]["bw"][0][:3], [5000, 5000, nvlink])
    shared = export(doubled(folder, False), NCCL_MULTI_RANK_GPU_ENABLE="1")
    expect("two ranks on a GPU", shared["paths"]["gpu_gpu"]["type"][0][:3], ["LOC", "LOC", "NVL"])
    print("partitions and several ranks on a GPU: as described")


def several_nics(folder):
    """Two NICs of 200 Gb/s a GPU where the machine has one of 400: the channels of multicast over nodes obey one of them."""
    def halves(match):
        row = match.group(0).replace('speed="400000"', 'speed="200000"')
        port = re.sub(r'dev="(\d)"', lambda dev: f'dev="{int(dev.group(1)) + 4}"', row).replace('port="1"', 'port="2"')
        return row + "\n" + port
    text = re.sub(r"<net [^>]*/>", halves, open(machine("c08-gb200-tray")).read())
    path = os.path.join(folder, "halves.xml")
    open(path, "w").write(text)
    answer = export(path, "--nodes", "1,2,4,16")
    expect("NICs of 200 Gb/s", sorted(nets(answer)), [[k, 25.0] for k in range(8)])
    got = [[scenario["nodes"], scenario["layout"]["nvls_channels"]] for scenario in answer["scenarios"]]
    expect("channels of multicast", got, [[1, 24], [2, 32], [4, 32], [16, 32]])
    print("several NICs for each GPU: one counts")


# variable, value, machine, what must differ
SEEN = (
    ("NCCL_P2P_LEVEL", "LOC", "nccltests-8x3090", "access"), ("NCCL_P2P_DISABLE", "1", "c06-dgxh100", "access"),
    ("NCCL_NET_GDR_LEVEL", "LOC", "c06-dgxh100", "access"), ("NCCL_NET_GDR_READ", "0", "c05-dgxa100", "access"),
    ("NCCL_NVB_DISABLE", "1", "c03-dgx1v", "paths"), ("NCCL_PXN_DISABLE", "1", "c05-dgxa100", "paths"),
    ("NCCL_PXN_C2C", "0", "c08-gb200-tray", "paths"), ("NCCL_NET_GDR_C2C", "0", "c08-gb200-tray", "access"),
    ("NCCL_NET_DISABLE_INTRA", "1", "rtpllm-8gpu-cx8", "scenarios"), ("NCCL_SHM_DISABLE", "1", "nccltests-8x3090", "paths"),
    ("NCCL_NETDEVS_POLICY", "MAX:1", "aws-p5", "access"), ("NCCL_CROSS_NIC", "0", "c06-dgxh100", "scenarios"),
    ("NCCL_CROSS_NIC", "1", "c06-dgxh100", "scenarios"), ("NCCL_NVLS_ENABLE", "0", "c06-dgxh100", "scenarios"),
    ("NCCL_COLLNET_ENABLE", "1", "c06-dgxh100", None), ("NCCL_NCHANNELS_PER_NET_PEER", "1", "c05-dgxa100", "scenarios"),
    ("NCCL_P2P_PER_CHANNEL_NET_BW", "3", "c06-dgxh100", "scenarios"), ("NCCL_MAX_NCHANNELS", "4", "c06-dgxh100", "scenarios"),
    ("NCCL_MIN_NCHANNELS", "40", "c06-dgxh100", "scenarios"), ("NCCL_MAX_CTAS", "4", "c06-dgxh100", "scenarios"),
    ("NCCL_MAX_P2P_NCHANNELS", "2", "c06-dgxh100", "scenarios"), ("NCCL_MIN_P2P_NCHANNELS", "64", "c06-dgxh100", "scenarios"),
)


def effects():
    before = {}
    for variable, value, name, part in SEEN:
        if name not in before:
            before[name] = export(machine(name), "--nodes", "2,4")
        after = export(machine(name), "--nodes", "2,4", **{variable: value})
        if part:
            assert before[name][part] != after[part], f"{variable}={value} has no effect on {name}: {part}"
    domain = [machine("oci-h100"), "--nodes", "2", "--clique", "2"]
    before = {nic: export(*domain, NCCL_CROSS_NIC=nic) for nic in "02"}
    for variable, value, nic in (("NCCL_MNNVL_SCATTER_NETS_ENABLE", "0", "2"), ("NCCL_MNNVL_RAIL_PER_HOST", "1", "0")):
        after = export(*domain, NCCL_CROSS_NIC=nic, **{variable: value})
        assert before[nic]["scenarios"] != after["scenarios"], f"{variable}={value} has no effect on a domain"
    for variable, value in (("NCCL_MNNVL_ENABLE", "0"), ("NCCL_P2P_DISABLE", "1"), ("NCCL_P2P_LEVEL", "LOC")):
        apart = export(machine("oci-h100"), "--nodes", "4", **{variable: value})
        expect(f"{variable}={value}: no domain", export(*domain, **{variable: value})["scenarios"], apart["scenarios"])
    print(f"{len(SEEN) + 3} variables: seen to act")


with tempfile.TemporaryDirectory() as place:
    merged()
    partitions(place)
    several_nics(place)
    effects()
