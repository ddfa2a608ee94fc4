#!/usr/bin/env python3
"""model.py TUTTI FOLDER: NCCL's cost model and choice, written a second time from its description alone and in nothing but this
file, against `tutti topo export`: every machine of FOLDER over 1 to 16 nodes, and some of them under variables. Of the export only
the graphs and the layout are taken; latencies, bandwidths, threads, thresholds, algorithms, protocols and channels must follow."""
import glob, json, math, os, re, subprocess, sys

FUNCS = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"]
ALGOS = ["Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"]
PROTOS = ["LL", "LL128", "Simple"]
WAYS = ["LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"]
GATHERS = ("AllGather", "ReduceScatter")

BASE = {"Tree": (6.8, 14, 8.4), "Ring": (6.6, 14, 8.4), "PAT": (8, 8, 8)}
HOPS = {"NVLink": {"Tree": (.6, 1.25, 4), "Ring": (.6, 1.9, 3.4), "NVLS": (0, 0, 25), "NVLSTree": (0, 0, 25), "PAT": (0, 0, 4)},
        "PCI": {"Tree": (1, 1.9, 4), "Ring": (1, 2.5, 5.7), "NVLS": (0, 0, 0), "NVLSTree": (0, 0, 0), "PAT": (0, 0, 4)},
        "Net": {"Tree": (5, 8.5, 14), "Ring": (2.7, 4, 14), "NVLS": (0, 0, 18), "NVLSTree": (0, 0, 20.9), "PAT": (0, 0, 14)}}
LL_MOST = [(39, 39, 20.4), (87.7, 22.5, 19), (141, 45, 35), (282, 90, 70)]
RING_LL128 = [(20, 20, 20), (20, 20, 20), (36.7, 36.7, 36.7), (40, 40, 40)]
TREE_LL128 = [(20, 20, 20), (20, 20, 20), (36.7, 36.7, 29), (55.6, 31.67, 20)]
TREE = [(26.5, 18.5, 10), (24, 23.6, 17.8), (38.7, 41.4, 36), (70, 42.8, 24)]
NVLS_TREE = [(26.5, 18.5, 10), (24, 23.6, 17.8), (0, 57.7, 45.5), (0, 96, 80)]
NVLS_SHARE = [0, 0, .85, .74]
TREE_SHARES = ["1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1 1",
               "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1 1",
               ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9 .9"]
TREE_SHARES = [[float(w) for w in row.split()] for row in TREE_SHARES]


def lists(text, words, default):
    """NCCL_ALGO or NCCL_PROTO as {function: {word: switch}}."""
    on = {f: dict(default) for f in FUNCS}
    for k, entry in enumerate(e for e in (text or "").split(";") if e):
        func, colon, words_of = entry.rpartition(":")
        assert colon or k == 0, entry
        invert = words_of.startswith("^")
        named = [w.lower() for w in words_of.lstrip("^").split(",")]
        for f in [g for g in FUNCS if not colon or g.lower() == func.lower()]:
            on[f] = {w: int((w.lower() in named) != invert) for w in words}
    return on


class Model:
    def __init__(self, export, scenario, env):
        layout, system = scenario["layout"], export["system"]
        domains = [d["graphs"] for d in scenario["domains"]]
        self.env, self.layout = env, layout
        self.n, self.nodes = scenario["ranks"], layout["logical_nodes"]
        self.ppn = self.n / self.nodes
        self.local = max(layout["rank_to_node"].count(k) for k in set(layout["rank_to_node"]))
        ccs = [g["cc"] for g in system["gpus"]]
        self.cc, self.cc_most = min(ccs), max(ccs)
        self.kind = 3 if self.cc >= 100 else 2 if self.cc >= 90 else 1 if self.cc >= 80 else 0
        vendors = {c["vendor"] for c in system["cpus"]}
        self.amd = "amd" in vendors  # no machine here mixes vendors
        self.x86 = {c["arch"] for c in system["cpus"]} == {"x86_64"}
        self.scale = min(self.nodes, 3) - 1
        self.graphs = {kind: self.agree([g.get(kind) for g in domains]) for kind in ("ring", "tree", "nvls")}
        self.algo_on = lists(env.get("NCCL_ALGO"), ALGOS, {a: 1 for a in ALGOS})
        self.proto_on = lists(env.get("NCCL_PROTO"), PROTOS, {"LL": 1, "LL128": 2, "Simple": 1})
        row = self.kind if self.nodes == 1 else 1 if self.amd else 0
        self.ll_most = LL_MOST[row][self.scale]

    @staticmethod
    def agree(graphs):
        if any(g is None for g in graphs):
            return None
        least = {k: min(g[k] for g in graphs) for k in ("channels", "bw_intra", "bw_inter", "same_channels")}
        most = {k: max((g[k] for g in graphs), key=WAYS.index) for k in ("type_intra", "type_inter")}
        return {**least, **most, "latency_inter": graphs[0]["latency_inter"], "pattern_id": max(g["pattern_id"] for g in graphs)}

    def graph(self, algo):
        return self.graphs[{"Ring": "ring", "NVLS": "nvls", "NVLSTree": "nvls"}.get(algo, "tree")]

    def steps(self, func):
        return {"AllReduce": 2 * (self.n - 1), "AllGather": self.n - 1, "ReduceScatter": self.n - 1}.get(func, self.n)

    # ---- bandwidth (2, 5.1)

    def possible(self, func, algo, proto):
        graph = self.graph(algo)
        if algo.startswith("CollNet") or not self.algo_on[func][algo] or not self.proto_on[func][proto]:
            return False
        if algo == "PAT":
            setting = int(self.env.get("NCCL_PAT_ENABLE", 2))
            return func in GATHERS and proto == "Simple" and self.cc >= 60 and (setting == 1 or setting == 2 and self.n == self.nodes)
        if algo.startswith("NVLS"):
            if proto != "Simple" or graph is None or graph["channels"] < 2:
                return False
            if algo == "NVLSTree" and (func != "AllReduce" or self.nodes == 1) or func in FUNCS[:2]:
                return False
            return algo == "NVLSTree" or self.nodes == 1  # else it takes collnet
        if algo == "Tree" and func != "AllReduce":
            return False
        return proto != "LL128" or self.proto_on[func]["LL128"] == 1 or self.lines_hold(graph)

    def lines_hold(self, graph):
        most = "PXN" if self.cc >= 90 and int(self.env.get("NCCL_LL128_C2C", 1)) else "PXB"
        if WAYS.index(graph["type_inter"]) > WAYS.index(most) or WAYS.index(graph["type_intra"]) > WAYS.index("NVB"):
            return False
        return self.cc >= 70 and (self.cc == self.cc_most or self.cc >= 90)

    def bandwidth(self, func, algo, proto):
        if not self.possible(func, algo, proto):
            return 0
        g = self.graph(algo)
        c, b = g["channels"], g["bw_intra"] if self.nodes <= 2 else g["bw_inter"]
        if algo.startswith("NVLS"):
            inside = g["bw_intra"] * NVLS_SHARE[self.kind] * (c - 1) / c
            inside *= 2 if func == "AllReduce" else (self.ppn - 1) / self.ppn
            across = g["bw_inter"] * (2 if algo == "NVLSTree" and self.nodes <= 2 else 1)
            b = min([inside, across] + ([NVLS_TREE[self.kind][self.scale]] if algo == "NVLSTree" else []))
        b *= c
        if algo == "Ring" and proto == "LL":
            b = min(self.ll_most, b / 2)
        if algo == "Ring" and proto == "LL128":
            b = min(.92 * b, c * RING_LL128[self.kind][self.scale])
        if algo == "Tree":
            b = min(.92 * b, c * TREE[self.kind][self.scale])
            if proto == "LL":
                b = min(b / 3.8, self.ll_most)
            if proto == "LL128":
                b = min(b * (7 / 9 if self.nodes == 1 else 120 / 128), c * TREE_LL128[self.kind][self.scale])
            if g["pattern_id"] == 3:
                b *= .85
        if algo == "PAT":
            b *= .75
        if func in GATHERS and algo != "Ring":
            return b
        return b * (self.n / self.steps(func) if algo in ("Ring", "NVLS", "NVLSTree") else .5)

    # ---- latency (3)

    def latency(self, func, algo, proto):
        g, p = self.graph(algo), PROTOS.index(proto)
        link = "NVLink" if g["type_intra"] == "NVL" else "PCI"
        intra = HOPS[link][algo][p]
        inter = HOPS["Net"]["Tree" if self.ppn == 1 else algo][p] + g["latency_inter"] * (2 if proto == "Simple" else 1)
        base = BASE.get(algo, (0, 0, 0))[p]
        depth = self.nodes.bit_length() - 1
        if algo == "Ring" and func in FUNCS[:2]:
            hops = HOPS[link if self.nodes == 1 else "Net"]
            if g["same_channels"]:
                return base + hops["Ring"][p]
            return base + self.n * hops["Tree" if proto == "Simple" else "Ring"][p]
        if algo == "Ring":
            overhead = int(self.env.get("NCCL_NET_OVERHEAD", -2))
            overhead = overhead / 1000 if overhead >= 0 else 2 if self.x86 and self.amd else 1
            if self.nodes > 1:
                intra = max(intra, overhead * (3 if proto == "Simple" else 1))
            across = 0 if self.nodes == 1 else (2 if func == "AllReduce" else 1) * (self.nodes - 1)
            return base + (self.steps(func) - across) * intra + across * inter
        if algo == "Tree":
            return base + 2 * ((self.n // self.nodes - 1) * intra + depth * inter)
        if algo == "NVLS":
            return intra + (inter if self.nodes > 1 else 0)
        if algo == "NVLSTree":
            return base + intra + 2 * depth * inter
        return base + depth * inter / 3.5 + 2.8 * self.n

    # ---- time, choice, channels and threads (4, 5)

    def time(self, func, algo, proto, size):
        bw = self.bandwidth(func, algo, proto)
        if not bw:
            return -1
        k = (size // 64).bit_length() - 1
        modern = algo == "NVLSTree" and self.cc >= 100 and self.x86 and k < 24
        if func == "AllReduce" and k >= 0 and (algo == "Tree" and k < 23 or modern):
            bw *= TREE_SHARES[PROTOS.index(proto)][k]
        latency = self.latency(func, algo, proto)
        if (algo, proto, func) == ("Ring", "Simple", "AllReduce") and self.nodes > 1:
            if size // (self.layout["channels"] * self.n) >= 64:
                latency *= 1.9 if self.cc < 80 else 1.4
        return latency + size / (1000 * bw)

    def variable(self, name, least, most):
        setting = int(self.env.get(name, -2))
        if setting <= 0:
            return None
        return most if setting % 32 or setting > most else max(least, setting)

    def most_threads(self, algo, proto):
        ring = self.graphs["ring"]
        if algo in ("Ring", "Tree") and proto == "LL128":
            return self.variable("NCCL_LL128_NTHREADS", 160, 640) or 640
        if algo in ("Ring", "Tree"):
            slow = algo == "Ring" and proto == "Simple" and ring["bw_intra"] * ring["channels"] <= 12
            return self.variable("NCCL_NTHREADS", 64, 512) or (256 if slow else 512)
        return 640 if proto == "Simple" and algo != "PAT" else 0

    def threshold(self, algo, proto):
        p = PROTOS.index(proto)
        given = [int(w) for w in self.env.get("NCCL_THREAD_THRESHOLDS", "").split()]
        place = p if algo == "Tree" else 3 + p if algo == "Ring" else 99
        if place < len(given) and given[place] >= 0:
            return given[place]
        if proto == "Simple":
            return 512 if algo.startswith("CollNet") else 64
        return 8 * self.n if (algo, proto) == ("Ring", "LL") else 8

    def spread(self, algo, proto, size):
        nc, nt, th = self.layout["channels"], self.most_threads(algo, proto), self.threshold(algo, proto)
        if algo.startswith("NVLS"):
            nc = min(nc, self.layout["nvls_channels"]) if algo == "NVLS" and self.nodes > 1 else self.layout["nvls_channels"]
        else:
            while size < nc * nt * th and nc >= 2:
                nc -= 1
            while size < nc * nt * th and nt % 128 == 0:
                nt //= 2
        nt += 32 if (algo, proto) == ("Ring", "Simple") else 0
        return nc, 640 if algo in ("Tree", "PAT") else max(nt, 96)

    def skipped(self, func, algo):
        if algo.startswith("NVLS"):
            return self.cc < 90 or func != "AllReduce" and self.local > 32
        return False

    def choices(self, func, size):
        """[(microseconds, algorithm, protocol)], the chosen one first."""
        found = [(self.time(func, a, p, size), a, p) for a in ALGOS if not self.skipped(func, a) for p in PROTOS]
        return sorted((f for f in found if f[0] >= 0), key=lambda f: f[0])


def near(a, b, tolerance=1e-4):
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-9)


def compare_table(model, tuning):
    for func in FUNCS:
        for algo in ALGOS:
            for proto in PROTOS:
                bw = model.bandwidth(func, algo, proto)
                expected = (model.latency(func, algo, proto), bw) if bw else None
                found = tuning["model"].get(func, {}).get(algo, {}).get(proto)
                if bool(found) != bool(expected) or found and not all(map(near, found, expected)):
                    yield f"{func} {algo} {proto}: {found}, should be {expected}"
    for algo in ALGOS:
        for k, proto in enumerate(PROTOS):
            if tuning["max_threads"][algo][k] != model.most_threads(algo, proto):
                yield f"threads of {algo} {proto}: {tuning['max_threads'][algo][k]}"
            if tuning["thread_thresholds"][algo][k] != model.threshold(algo, proto):
                yield f"threshold of {algo} {proto}: {tuning['thread_thresholds'][algo][k]}"


def compare_choices(model, tuning):
    for func in FUNCS:
        rows = {row[0]: row[1:] for row in tuning["choices"][func]}
        sizes = rows or [8, 1 << 20]
        for size in sizes:
            expected, found = model.choices(func, size), rows.get(size)
            if not expected or not found:
                if expected or found:
                    yield f"{func} {size}: {found}, should be {expected[:1]}"
                continue
            tied = [(a, p) for t, a, p in expected if near(t, expected[0][0], 1e-6)]  # floats decide between equals
            algo, proto, channels, threads, usec = found
            if (algo, proto) not in tied or not near(usec, expected[0][0]) or (channels, threads) != model.spread(algo, proto, size):
                yield f"{func} {size}: {found}, should be {expected[0]}, {model.spread(*expected[0][1:], size)}"


def export(tutti, path, nodes, env):
    command = [tutti, "topo", "export", path, "--json", "--nodes", nodes]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"{' '.join(command)} {env}: {done.stderr}")
    return json.loads(done.stdout)


SETTINGS = [{"NCCL_ALGO": "ring"}, {"NCCL_ALGO": "^Ring", "NCCL_PROTO": "simple,LL"}, {"NCCL_PROTO": "^LL128;allreduce:LL128"},
            {"NCCL_ALGO": "allreduce:tree,nvlstree;AllGather:^nvls"}, {"NCCL_PROTO": "LL128"}, {"NCCL_ALGO": "NVLS,NVLSTree,ring"},
            {"NCCL_NTHREADS": "128", "NCCL_LL128_NTHREADS": "96"}, {"NCCL_NTHREADS": "33", "NCCL_LL128_NTHREADS": "320"},
            {"NCCL_THREAD_THRESHOLDS": "16 4 256 2 -1 32"}, {"NCCL_THREAD_THRESHOLDS": "1000 1"}, {"NCCL_PAT_ENABLE": "1"},
            {"NCCL_PAT_ENABLE": "0"}, {"NCCL_NET_OVERHEAD": "25000"}, {"NCCL_LL128_C2C": "0"}, {"NCCL_MAX_NCHANNELS": "3"},
            {"NCCL_MIN_NCHANNELS": "24"}, {"NCCL_MIN_CTAS": "5", "NCCL_MAX_CTAS": "9"}]
UNDER_SETTINGS = ("c03-dgx1v", "c06-dgxh100", "c08-gb200-tray", "gvisor-b200-vm", "nccltests-8x3090", "c12-gh200-1gpu")


def main():
    tutti, folder = sys.argv[1:3]
    for name in [n for n in os.environ if n.startswith("NCCL_")]:
        del os.environ[name]
    runs = [(path, "1,2,3,4,5,8,16", {}) for path in sorted(glob.glob(os.path.join(folder, "*.xml")))]
    runs += [(os.path.join(folder, name + ".xml"), "1,2,4", env) for name in UNDER_SETTINGS for env in SETTINGS]
    wrong = choices = 0
    for path, nodes, env in runs:
        answer = export(tutti, path, nodes, env)
        for scenario in answer["scenarios"]:
            model, tuning = Model(answer, scenario, env), scenario["tuning"]
            if model.n == 1:
                assert all(row[1:] == ["Ring", "Simple", *row[3:5], 0] for f in FUNCS for row in tuning["choices"][f]), path
                continue
            found = [*compare_table(model, tuning), *compare_choices(model, tuning)]
            choices += sum(map(len, tuning["choices"].values()))
            wrong += len(found)
            for line in found[:3]:
                print(f"{os.path.basename(path)} {env or ''}, {scenario['nodes']} nodes: {line}")
    print(f"{choices} choices compared, {wrong} wrong")
    assert choices > 10000
    sys.exit(wrong > 0)


main()
