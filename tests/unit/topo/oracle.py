#!/usr/bin/env python3
"""oracle.py TUTTI MACHINES_FOLDER [SEED COUNT]: machines made of others. Every machine file is changed at random (devices
dropped or moved, other links, CPUs, generations, ports), and what `tutti topo export` says of nodes, links, paths and access is
compared with a second program, this one, that shares nothing with the engine but the description of the rules."""
import copy, json, os, random, subprocess, sys, tempfile
import xml.etree.ElementTree as ET

TUTTI, FOLDER = sys.argv[1:3]
LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NETWORK, DIS = range(12)
WORDS = "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS".split()
SPEEDS = (("2.5 GT/s", 15), ("5 GT/s", 30), ("8 GT/s", 60), ("16 GT/s", 120), ("32 GT/s", 240), ("5.0 GT/s PCIe", 30),
          ("8.0 GT/s PCIe", 60), ("16.0 GT/s PCIe", 120), ("32.0 GT/s PCIe", 240), ("64.0 GT/s PCIe", 480))


def number(text, default=0):
    try:
        return int(text, 0) if text else default
    except ValueError:
        return default


def bus(text):
    return int(text.replace(":", "").replace(".", ""), 16)


class Node:
    def __init__(self, kind, key, **more):
        self.kind, self.key, self.links, self.paths, self.local = kind, key, [], {}, None
        self.__dict__.update(more)


class Path:
    def __init__(self):
        self.type, self.bw, self.links = DIS, 0.0, []


class Machine:
    """Sections 2 and 3 of the rules, in their order."""

    def __init__(self, root):
        self.nodes = {kind: [] for kind in "GPU PCI NVS CPU NIC NET DEV".split()}
        for cpu in root.findall("cpu"):
            self.add_cpu(cpu)
        for what in ("nvlink", "c2c"):
            for cpu in root.findall("cpu"):
                home = self.find("CPU", number(cpu.get("numaid")))
                for pci in cpu.iter("pci"):
                    for gpu in pci.findall("gpu")[:1]:
                        dev = self.find("DEV", bus(pci.get("busid")))
                        for row in gpu.findall(what) if dev else ():
                            self.add_row(row, dev, home)
        self.flatten()
        for a in self.nodes["CPU"]:
            for b in self.nodes["CPU"]:
                if a is not b:
                    self.link(a, b, SYS, a.bw)
        for cpu in self.nodes["CPU"]:
            self.order(cpu, None)
        for kind in ("CPU", "DEV", "GPU", "NET", "NVS"):
            for base in self.nodes[kind]:
                self.spread(base)
        self.divert()

    # ---- nodes and links ----
    def find(self, kind, key):
        return next((n for n in self.nodes[kind] if n.key == key), None)

    def make(self, kind, key, **more):
        self.nodes[kind].append(Node(kind, key, **more))
        return self.nodes[kind][-1]

    def link(self, a, b, kind, bw):
        old = next((l for l in a.links if l[0] is b and l[1] == kind), None)
        if old:
            old[2] += bw
        else:
            old = [b, kind, bw]
            a.links.append(old)
        at = next(k for k, l in enumerate(a.links) if l is old)
        while at > 0 and a.links[at - 1][2] < old[2]:
            a.links[at - 1], a.links[at] = a.links[at], a.links[at - 1]
            at -= 1

    def both(self, a, b, kind, bw):
        self.link(a, b, kind, bw)
        self.link(b, a, kind, bw)

    def add_cpu(self, row):
        arch, vendor, family, model = row.get("arch"), row.get("vendor", ""), number(row.get("familyid")), number(row.get("modelid"))
        bw = {"ppc64": 32, "arm64": 6}.get(arch, 5000)
        intel = amd = False
        if arch == "x86_64":
            intel, amd = vendor.startswith("GenuineIntel"), vendor.startswith("AuthenticAMD")
            if intel:
                bw = 6 if family != 6 or model < 0x55 else 40 if model >= 0xCF else 22 if model >= 0x8F else 10
            elif amd:
                bw = 16
            elif vendor.startswith(("CentaurHauls", "  Shanghai  ")):
                bw = 9 if family == 7 and model == 0x5B else 6
        cpu = self.make("CPU", number(row.get("numaid")), bw=bw, amd=amd)
        for child in row:
            if child.tag == "pci":
                self.add_pci(child, cpu)
            if child.tag == "nic":
                nic = self.find("NIC", ("cpu", cpu.key))
                if not nic:
                    nic = self.make("NIC", ("cpu", cpu.key))
                    self.both(cpu, nic, PIX, 5000)
                self.add_nets(child, nic)

    def add_nets(self, row, nic):
        for net in row.findall("net"):
            if net.get("dev") is None or not number(net.get("net"), 1):
                continue
            speed = number(net.get("speed"), 10000)
            bw = (speed if speed > 0 else 10000) / 8000
            node = self.make("NET", number(net.get("dev")), bw=bw, gdr=number(net.get("gdr")), dev=number(net.get("dev")))
            self.both(nic, node, NETWORK, bw)

    def add_pci(self, row, parent):
        text = row.get("link_speed", "")
        units = next((u for word, u in SPEEDS if text.startswith(word)), 60)
        bw = (number(row.get("link_width")) or 16) * units / 80
        role, node = row.get("class", ""), None
        if row.find("gpu") is not None:
            for gpu in row.findall("gpu"):
                if gpu.get("rank") is None:
                    break
                node = node or self.make("DEV", bus(row.get("busid")), cc=number(gpu.get("sm")))
                rank = self.make("GPU", node.key, dev_node=node, dev=number(gpu.get("dev")), cc=node.cc, gdr=number(gpu.get("gdr")),
                                 rank=number(gpu.get("rank")))
                self.both(rank, node, LOC, 5000)
        elif row.find("nic") is not None:
            node = self.find("NIC", bus(row.get("busid"))) or self.make("NIC", bus(row.get("busid")))
            for nic in row.findall("nic"):
                self.add_nets(nic, node)
        elif not role.startswith(("0x068000", "0x068001", "0x03", "0x02")):
            word = 0
            for key in ("vendor", "device", "subsystem_vendor", "subsystem_device"):
                word = word << 16 | int(row.get(key) or "0", 16) & 0xffff
            node = self.make("PCI", bus(row.get("busid")), word=word)
            for child in row.findall("pci"):
                self.add_pci(child, node)
        if node:
            self.both(node, parent, PIX, bw)

    def add_row(self, row, dev, cpu):
        if row.tag == "c2c":
            return self.both(dev, cpu, C2C, number(row.get("count")) * number(row.get("bw")) / 1000)
        cc = dev.cc
        each = 40.1 if cc >= 100 else 20.6 if cc >= 90 else 12 if cc == 86 else 20 if cc >= 70 else 18 if cc >= 60 else 20
        bw, kind = number(row.get("count")) * each, row.get("tclass")
        if kind.startswith("0x03"):
            to = self.find("DEV", bus(row.get("target")))
            return to and self.link(dev, to, NVL, bw)
        if kind.startswith("0x068001"):
            return self.both(dev, cpu, NVL, bw)
        self.both(dev, self.find("NVS", 0) or self.make("NVS", 0), NVL, bw)

    def flatten(self):
        families = ((0x1000c0101000a000, 0x1000c0101000a000), (0x1000c03010000000, 0x1000c03010001000))
        again = True
        while again:
            again = False
            for upper in self.nodes["PCI"]:
                lower_id = next((low for up, low in families if upper.word & ~0xfff == up), None)
                if lower_id is None:
                    continue
                gone = [l[0] for l in upper.links if l[0].kind == "PCI" and l[0].word & ~0xfff == lower_id]
                upper.links = [l for l in upper.links if l[0] not in gone]
                for lower in gone:
                    for l in lower.links:
                        if l[0] is not upper:
                            upper.links.append(list(l))
                            for back in l[0].links:
                                if back[0] is lower:
                                    back[0] = upper
                    self.nodes["PCI"].remove(lower)
                upper.word |= 0xffff
                again = True
                break

    def order(self, node, up):
        if up:
            at = next((k for k, l in enumerate(node.links) if l[0] is up and l[1] == PIX), None)
            if at is not None:
                node.links.append(node.links.pop(at))
        for l in node.links:
            if l[1] == PIX and l[0] is not up:
                self.order(l[0], node)

    # ---- paths ----
    def spread(self, base):
        own = base.dev_node if base.kind == "GPU" else base
        limit = 2 if base.kind == "GPU" else 1
        for kind in self.nodes:
            for n in self.nodes[kind]:
                n.paths[base] = Path()
        base.paths[base].type, base.paths[base].bw = LOC, 5000
        level = [base]
        while level:
            following = []
            for node in level:
                here = node.paths[base]
                for peer, kind, bw in node.links:
                    hops = len(here.links)
                    if node.kind == "DEV" and node is not own:
                        relay = kind == NVL and peer.kind == "DEV" and hops <= limit
                        if not relay and not (kind == LOC and peer.kind == "GPU"):
                            continue
                    step = LOC if kind == NETWORK else kind
                    if node.kind == peer.kind == "PCI":
                        step = PXB
                    elif kind == PIX and "CPU" in (node.kind, peer.kind):
                        step = PHB
                    if node.kind == "DEV" and here.type == NVL and kind == NVL and hops == limit:
                        step = NVB
                    step, low, there = max(step, here.type), min(here.bw, bw), peer.paths[base]
                    if (-step, low, -hops - 1) > (-there.type, there.bw, -len(there.links)):
                        there.type, there.bw = step, low
                        there.links = [next(l for l in peer.links if l[0] is node and l[1] == kind)] + here.links
                        if peer not in following:
                            following.append(peer)
            level = following

    def nearest(self, node, kind):
        reach = [(n, node.paths[n]) for n in self.nodes[kind] if node.paths[n].type != DIS]
        if not reach:
            return []
        bw = max(p.bw for _, p in reach)
        way = min(p.type for _, p in reach if p.bw == bw)
        return [n for n, p in reach if p.bw == bw and p.type == way]

    def cpu_of(self, gpu):
        return min(self.nodes["CPU"], key=lambda c: (-gpu.paths[c].bw, gpu.paths[c].type, len(gpu.paths[c].links)))

    def net_of(self, gpu, channel):
        nets = self.nearest(gpu, "NET")
        if not nets:
            return None
        gpus = self.nearest(nets[0], "GPU")
        every = -(-len(nets) // len(gpus))
        first = gpu.dev % len(gpus)
        if len(nets) & len(nets) - 1 == 0:
            bits = len(nets).bit_length() - 1
            first = int(format(first % len(nets), f"0{bits}b")[::-1], 2) if bits else 0
        return nets[(first + channel % every) % len(nets)]

    def rotation(self, gpu):
        nets = []
        while len(nets) < 64:
            net = self.net_of(gpu, len(nets))
            if net is None or nets and net is nets[0]:
                break
            nets.append(net)
        return nets

    def gpu_of(self, net):
        gpus = [(g, self.rotation(g)) for g in self.nearest(net, "GPU")]
        best = [(nets.index(net), k) for k, (g, nets) in enumerate(gpus) if net in nets]
        return gpus[min(best)[1]][0] if best else None

    def p2p(self, a, b):
        first = self.nodes["CPU"][0]
        return a.paths[b].type <= (SYS if first.amd and len(self.nodes["DEV"]) <= 2 else PXB)

    def relay(self, a, b):
        path = a.paths[b]
        middle = path.links[1][0] if len(path.links) == 4 else None
        return next((g for g in self.nodes["GPU"] if middle is g.dev_node), None)

    def prefers_net(self, a, b):
        best = [max([g.paths[n].bw for n in self.nodes["NET"] if g.paths[n].type <= PXB], default=0) for g in (a, b)]
        return min(best) > a.paths[b].bw

    def driver(self, gpu, net):
        path = gpu.paths[net]
        if path.type != PXN:
            return gpu
        dev = next(l[0] for l in path.links[1:] if l[0].kind != "NVS")
        return next(g for g in self.nodes["GPU"] if g.dev_node is dev)

    def gdr(self, gpu, net, sending):
        if not (gpu.gdr and net.gdr):
            return False
        if sending and gpu.cc < 80 and len(self.nodes["GPU"]) > 1:
            if not any(gpu.paths[p].type == NVL for p in self.nodes["GPU"] if p is not gpu):
                return False
        return self.driver(gpu, net).paths[net].type <= P2C

    @staticmethod
    def worse(a, b):
        return P2C if {a, b} == {C2C, PHB} else max(a, b)

    def lead(self, a, over, b):
        one, two, path = a.paths[over], over.paths[b], a.paths[b]
        path.type, path.bw, path.links = self.worse(one.type, two.type), min(one.bw, two.bw), one.links + two.links

    def divert(self):
        gpus, nets = self.nodes["GPU"], self.nodes["NET"]
        for g in gpus:
            for p in gpus:
                if not self.p2p(p, g):
                    self.lead(p, self.cpu_of(g), g)
            for p in gpus:
                if p is not g and not (self.p2p(p, g) and self.relay(p, g)) and self.prefers_net(p, g):
                    p.paths[g].type = NETWORK
        for g in gpus:
            cpu = self.cpu_of(g)
            for n in self.nearest(g, "NET"):
                if self.worse(g.paths[cpu].type, n.paths[cpu].type) == P2C:
                    for path in (g.paths[n], n.paths[g]):
                        path.type = min(path.type, P2C)
        for n in nets:
            for g in gpus:
                q = self.gpu_of(n)
                if q and q is not g and q.paths[n].type <= P2C and q.paths[g].type <= NVL and self.gdr(q, n, True):
                    if q.paths[n].bw > g.paths[n].bw or g.paths[n].type > PXN:
                        self.lead(g, q, n)
                        g.paths[n].type = PXN
                if g.paths[n].type < PHB and not self.gdr(g, n, False):
                    self.lead(n, self.cpu_of(g), g)
                    self.lead(g, self.cpu_of(g), n)
        for n in nets:
            n.local = self.gpu_of(n)

    # ---- as the export says it ----
    def report(self):
        gpus, nets = self.nodes["GPU"], self.nodes["NET"]
        name = {n: f"{k}/{i}" for k in self.nodes for i, n in enumerate(self.nodes[k])}
        ways = ["LOC", "NVL", None, "C2C", "PCI", None, None, None, None, "SYS", "NET"]
        links = [[name[n], name[l[0]], ways[l[1]], round(l[2], 2)] for k in self.nodes for n in self.nodes[k] for l in n.links]
        def matrix(rows, columns):
            return [[[WORDS[r.paths[c].type], round(r.paths[c].bw, 2), len(r.paths[c].links)] for c in columns] for r in rows]
        return {
            "links": sorted(links), "gpu_gpu": matrix(gpus, gpus), "gpu_net": matrix(gpus, nets), "net_gpu": matrix(nets, gpus),
            "gpu_cpu": matrix(gpus, self.nodes["CPU"]), "p2p": [[int(self.p2p(a, b)) for b in gpus] for a in gpus],
            "gdr_recv": [[int(self.gdr(g, n, False)) for n in nets] for g in gpus],
            "gdr_send": [[int(self.gdr(g, n, True)) for n in nets] for g in gpus],
            "pxn_proxy_rank": [[self.driver(g, n).rank for n in nets] for g in gpus],
            "prefer_net": [[int(self.prefers_net(a, b)) for b in gpus] for a in gpus],
            "net_rotation": [[n.dev for n in self.rotation(g)] for g in gpus],
            "local_gpu_rank": [n.local.rank if n.local else None for n in nets],
        }


def from_export(answer):
    paths, access, system = answer["paths"], answer["access"], answer["system"]
    def matrix(one):
        return [[[t, round(b, 2), h] for t, b, h in zip(*row)] for row in zip(one["type"], one["bw"], one["hops"])]
    said = {key: matrix(paths[key]) for key in ("gpu_gpu", "gpu_net", "net_gpu", "gpu_cpu")}
    said.update({key: [[int(v) for v in row] for row in access[key]]
                 for key in ("p2p", "gdr_recv", "gdr_send", "pxn_proxy_rank", "prefer_net", "net_rotation")})
    said["links"] = sorted([a, b, t, round(bw, 2)] for a, b, t, bw in system["links"])
    said["local_gpu_rank"] = [net["local_gpu_rank"] for net in system["nets"]]
    return said


# ---- machines made at random ----

def parents(root):
    return {child: parent for parent in root.iter() for child in parent}


def drop_gpu(root, dice):
    pcis = [p for p in root.iter("pci") if p.find("gpu") is not None]
    if len(pcis) > 1:
        gone = dice.choice(pcis)
        parents(root)[gone].remove(gone)
        for gpu in root.iter("gpu"):
            for row in [r for r in gpu.findall("nvlink") if bus(r.get("target")) == bus(gone.get("busid"))]:
                gpu.remove(row)


def drop_net(root, dice):
    nets = list(root.iter("net"))
    if nets:
        gone = dice.choice(nets)
        parents(root)[gone].remove(gone)


def move_nic(root, dice):
    """To any switch or CPU."""
    nics = [p for p in root.iter("pci") if p.find("nic") is not None]
    places = list(root.iter("cpu")) + [p for p in root.iter("pci") if p.find("nic") is None and p.find("gpu") is None]
    if nics:
        moved = dice.choice(nics)
        parents(root)[moved].remove(moved)
        dice.choice(places).append(moved)


def other_links(root, dice):
    for pci in root.iter("pci"):
        if dice.random() < 0.3:
            pci.set("link_speed", dice.choice([w for w, _ in SPEEDS] + ["", "64 GT/s"]))
            pci.set("link_width", dice.choice(["1", "4", "8", "16", "0"]))


def other_gpus(root, dice):
    sm = dice.choice(["60", "61", "70", "75", "80", "86", "89", "90", "100", "120"])
    for gpu in root.iter("gpu"):
        gpu.set("sm", sm if dice.random() < 0.9 else dice.choice(["70", "80", "90"]))
        gpu.set("gdr", dice.choice("1110"))


def other_nvlinks(root, dice):
    rows = [r for r in root.iter("nvlink")]
    if dice.random() < 0.4:
        for gpu in root.iter("gpu"):
            for row in gpu.findall("nvlink"):
                gpu.remove(row)
    elif rows and all(not r.get("tclass").startswith("0x03") for r in rows):
        for row in rows:
            row.set("count", str(dice.randint(1, 18)))


def other_cpus(root, dice):
    kinds = (("x86_64", "GenuineIntel", "6", "79"), ("x86_64", "GenuineIntel", "6", "143"), ("x86_64", "GenuineIntel", "6", "207"),
             ("x86_64", "AuthenticAMD", "25", "1"), ("arm64", None, None, None), ("ppc64", None, None, None),
             ("x86_64", "CentaurHauls", "7", "0x5B"), ("x86_64", "  Shanghai  ", "7", "59"), ("riscv64", None, None, None))
    kind = dice.choice(kinds)
    for cpu in root.iter("cpu"):
        for key, value in zip(("arch", "vendor", "familyid", "modelid"), kind):
            cpu.attrib.pop(key, None)
            if value:
                cpu.set(key, value)


def no_switches(root, dice):
    for cpu in root.findall("cpu"):
        leaves = [p for p in cpu.iter("pci") if p.find("gpu") is not None or p.find("nic") is not None]
        for child in cpu.findall("pci"):
            cpu.remove(child)
        cpu.extend(leaves)


def one_domain(root, dice):
    cpus = root.findall("cpu")
    for cpu in cpus[1:]:
        cpus[0].extend(list(cpu))
        root.remove(cpu)


def cpu_nic(root, dice):
    """A network that is no PCI device."""
    used = {number(n.get("dev")) for n in root.iter("net")}
    nic = ET.SubElement(dice.choice(root.findall("cpu")), "nic")
    ET.SubElement(nic, "net", name="eth", dev=str(max(used, default=-1) + 1), speed=dice.choice(["10000", "100000", "0"]))


def more_ports(root, dice):
    nets = list(root.iter("net"))
    dev = max([number(n.get("dev")) for n in nets], default=-1)
    for net in nets[:dice.randint(1, 8)]:
        dev += 1
        twin = copy.deepcopy(net)
        twin.set("dev", str(dev))
        twin.set("port", "2")
        twin.set("speed", dice.choice(["25000", "100000", "400000", net.get("speed", "1")]))
        parents(root)[net].append(twin)


def add_c2c(root, dice):
    for gpu in root.iter("gpu"):
        if gpu.find("c2c") is None:
            ET.SubElement(gpu, "c2c", bw=dice.choice(["22000", "44712"]), count=dice.choice(["5", "10"]))


def other_nets(root, dice):
    for net in root.iter("net"):
        net.set("speed", dice.choice(["25000", "100000", "200000", "400000", "800000"]))
        net.set("gdr", dice.choice("1110"))


def shuffle(root, dice):
    for element in list(root.iter()):
        if element.tag in ("system", "cpu", "pci"):
            children = list(element)
            dice.shuffle(children)
            for child in children:
                element.remove(child)
            element.extend(children)


CHANGES = (drop_gpu, drop_gpu, drop_net, move_nic, move_nic, other_links, other_gpus, other_nvlinks, other_cpus, no_switches,
           one_domain, cpu_nic, more_ports, add_c2c, other_nets, shuffle)


def main():
    seed, count = (int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 4 else (1, 150)
    files = sorted(f for f in os.listdir(FOLDER) if f.endswith(".xml"))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NCCL_")}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(count + len(files)):
            dice = random.Random(seed * 1000003 + k)
            root = ET.parse(os.path.join(FOLDER, files[k % len(files)])).getroot()
            changes = [dice.choice(CHANGES) for _ in range(dice.randint(1, 5))] if k >= len(files) else []
            for change in changes:
                change(root, dice)
            for rank, gpu in enumerate(sorted((g for g in root.iter("gpu") if g.get("rank")), key=lambda g: number(g.get("rank")))):
                gpu.set("old", gpu.get("rank"))
                gpu.set("rank", str(rank))
            expected = Machine(root).report()  # ranks are counted anew when some are gone
            for gpu in root.iter("gpu"):
                if gpu.get("old"):
                    gpu.set("rank", gpu.attrib.pop("old"))
            path = os.path.join(folder, "machine.xml")
            ET.ElementTree(root).write(path)
            what = f"{files[k % len(files)]} {[c.__name__ for c in changes]} (seed {seed}, number {k})"
            result = subprocess.run([TUTTI, "topo", "export", path, "--json", "--nodes", "1"], capture_output=True, text=True,
                                    env=environment)
            if result.returncode:
                print(f"{what}: {result.stderr}")
                wrong += 1
                continue
            said = from_export(json.loads(result.stdout))
            for key in expected:
                if said[key] != expected[key]:
                    wrong += 1
                    print(f"{what}: {key}\n  engine {said[key]}\n  rules  {expected[key]}"[:30000])
                    break
    print(f"{count + len(files)} machines, {wrong} differ")
    sys.exit(wrong > 0)


main()
