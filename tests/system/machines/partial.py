#!/usr/bin/env python3
"""partial.py TUTTI PROGRAM MACHINES_FOLDER PLUGINS_FOLDER DETECT_FOLDER: machine files that leave most of it open (NCCL_TOPO_FILE)
are completed with what takes part and what /sys says, and then run as `tutti topo export` says of the completed file; edges open
the network device that their channel was given; hosts may have files of their own."""
import os, re, sys, tempfile
import xml.etree.ElementTree as ET
from machines import FOLDER, bad, compare, good, layout, says

PLUGINS, DETECT = sys.argv[4:6]
sys.path.insert(0, DETECT)
from record import record

os.environ["NCCL_NET_PLUGIN"] = "none"
scratch = tempfile.TemporaryDirectory()
quick = (1, 64)
TESTNET = os.path.join(PLUGINS, "libnccl-net_test.so")


def write(name, text):
    path = os.path.join(scratch.name, name)
    with open(path, "w") as out:
        out.write(text)
    return path


def completed(machine, ranks, gpus, *arguments, **options):
    """What a run logged, and the file as it was completed."""
    dump = os.path.join(scratch.name, "dump.xml")
    logs = good(machine, ranks, gpus, *(arguments or quick), NCCL_TOPO_DUMP_FILE=dump, **options)
    return logs, dump, ET.parse(dump).getroot()


def pci(root, busid):
    return root.find(f".//pci[@busid='{busid}']")


def has(element, **wanted):
    found = {key: element.get(key) for key in wanted}
    assert found == wanted, f"<{element.tag}> {element.attrib}: not {wanted}"


# ---- what the file leaves open, on a machine that is not here
partial = write("partial.xml", """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="ff00:0a:00.0">
      <pci busid="ff00:0b:00.0"><gpu sm="70"><nvlink target="ff00:0c:00.0" count="2"/></gpu></pci>
      <pci busid="ff00:0c:00.0"><gpu sm="70"><nvlink target="ff00:0b:00.0" count="2"/></gpu></pci>
      <pci busid="ff00:0d:00.0"><nic><net name="test1" speed="200000" dev="7"/><net name="mlx9" dev="1"/></nic></pci>
    </pci>
  </cpu>
  <cpu numaid="1" host_hash="0x1">
    <pci busid="ff00:8a:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="8">
      <pci busid="ff00:8b:00.0" link_speed="16.0 GT/s PCIe"><gpu dev="2" sm="70" gdr="1"/></pci>
      <pci busid="ff00:8c:00.0"><gpu/></pci>
    </pci>
  </cpu>
</system>
""")
logs, dump, root = completed(partial, 3, 3)
compare("a partial file", logs, layout(dump))
has(pci(root, "ff00:0a:00.0"), **{"class": "0x060400", "link_speed": "", "link_width": ""})
has(pci(root, "ff00:0b:00.0"), **{"class": "0x03", "link_speed": ""})
has(pci(root, "ff00:8b:00.0"), **{"class": "0x03", "link_speed": "16.0 GT/s PCIe", "link_width": ""})
has(pci(root, "ff00:0b:00.0").find("gpu"), dev="0", sm="70", gdr="0", rank="0")
has(pci(root, "ff00:8b:00.0").find("gpu"), dev="2", sm="70", gdr="1", rank="2")
has(pci(root, "ff00:0b:00.0").find("gpu/nvlink"), tclass="0x030200", count="2")
assert pci(root, "ff00:8c:00.0") is None, "a GPU that no rank uses is still there"
hashes = {cpu.get("host_hash") for cpu in root.findall("cpu")}
assert len(hashes) == 1 and hashes != {"0x1"}, f"host hashes {hashes}"
assert root.findall("cpu")[1].get("arch"), "no arch of this machine"
assert [net.get("name") for net in root.iter("net")] == ["test1", "mlx9"], "without a plugin the file's NICs stay"

# ---- NICs of a plugin: by name, by path, or below the first CPU; strangers go
logs, dump, root = completed(partial, 3, 3, NCCL_NET_PLUGIN=TESTNET, TESTNET_DEVICES="3",
                             TESTNET_PATHS=",,/sys/devices/pciff00:00/ff00:0d:00.1")
compare("with a plugin", logs, layout(dump))
nets = {net.get("name"): net for net in root.iter("net")}
assert set(nets) == {"test0", "test1", "test2"}, f"NICs {sorted(nets)}"
has(nets["test1"], dev="1", speed="200000", port="0", guid="0x1", maxconn="1024", latency="0.000000", net="1")
has(nets["test0"], dev="0", speed="10000", guid="0x0")
assert root.find("cpu/nic/net").get("name") == "test0", "a NIC without a path is not below the first CPU"
assert [n.get("name") for n in pci(root, "ff00:0d:00.0").iter("net")] == ["test1", "test2"], "a port is not at its NIC"
says(logs, "<net> dev 7 of test1 is number 1 of the network plugin", "<net> mlx9 is not known to the network plugin")

# ---- devices that the file does not have at all
empty = write("empty.xml", '<system version="1"/>')
logs, dump, root = completed(empty, 2, 2)
assert [cpu.get("numaid") for cpu in root.findall("cpu")] == ["-1"], "unknown devices are not below an unknown domain"
compare("a file without anything", logs, layout(dump))

# ---- a recorded /sys tells what the file leaves open
machine = ET.parse(os.path.join(FOLDER, "c05-dgxa100.xml")).getroot()
tree = os.path.join(scratch.name, "tree")
record(os.path.join(FOLDER, "c05-dgxa100.xml"), tree)
paths = []
for folder, _, files in os.walk(os.path.join(tree, "sys/devices")):
    if "max_link_speed" in files:
        paths.append(folder[len(tree):])
places = {os.path.basename(path): path for path in paths}
nics = [element.get("busid") for element in machine.iter("pci") if element.find("nic") is not None][:3]
gpus = [element.get("busid") for element in machine.iter("pci") if element.find("gpu") is not None]
flat = write("flat.xml", '<system version="1"><cpu numaid="0"/>' + "".join(
    f'<cpu numaid="{100 + k}"><pci busid="{busid}"><gpu sm="80"/></pci></cpu>' for k, busid in enumerate(gpus[:1])) + "</system>")
logs, dump, root = completed(flat, 1, 1, HWLOC_FSROOT=tree, NCCL_NET_PLUGIN=TESTNET, TESTNET_DEVICES="3",
                             TESTNET_PATHS=",".join(places[busid] for busid in nics))
for number, busid in enumerate(nics):
    at, wanted = pci(root, busid), machine.find(f".//pci[@busid='{busid}']")
    has(at, **{key: wanted.get(key) for key in ("class", "vendor", "device", "link_width")})
    assert at.get("link_speed").split(".0")[0].split()[0] == wanted.get("link_speed").split(".0")[0].split()[0], at.attrib
    assert at.find("nic/net").get("name") == f"test{number}", f"{busid} holds another NIC"
    parents = {child: parent for parent in root.iter() for child in parent}
    above = {child: parent for parent in machine.iter() for child in parent}
    while parents[at].tag == "pci" or above[wanted].tag == "pci":
        at, wanted = parents[at], above[wanted]
        assert at.get("busid") == wanted.get("busid"), f"{busid} is below {at.attrib}"
    assert parents[at].get("numaid") == above[wanted].get("numaid"), f"{busid} is in domain {parents[at].get('numaid')}"
has(pci(root, gpus[0]), **{"class": machine.find(f".//pci[@busid='{gpus[0]}']").get("class")})
print("a recorded /sys: NICs where it has them")

# ---- edges open the device of their channel, over two hosts
rails = write("rails.xml", '<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">' + "".join(
    f'<pci busid="ff00:{k}a:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16"><pci busid="ff00:{k}b:00.0">'
    f'<gpu sm="80"/></pci><pci busid="ff00:{k}c:00.0"/></pci>' for k in range(2)) + "</cpu></system>")
logs, dump, root = completed(rails, 4, 2, *quick, NCCL_NET_PLUGIN=TESTNET, TESTNET_DEVICES="2",
                             TESTNET_PATHS="/sys/ff00:1c:00.0,/sys/ff00:0c:00.0")
compare("two rails", logs, layout(dump, "--nodes", "2"))
text = logs[logs.index("Pattern 4"):]
ring = {int(c): (int(a, 16), int(b, 16)) for c, a, b in re.findall(
    r"INFO +(\d+) : NET/0-(\w+)(?: GPU/\S+)+ NET/0-(\w+)$", text[:text.index("Pattern 1")], re.M)}
assert {end for ends in ring.values() for end in ends} == {0, 1}, f"the search uses {ring}"
edges = re.findall(r"Channel (\d+)/0 : \S+ -> \S+ \[(send|receive)\] via NET/TestNet/(\d)", logs)
assert len(edges) >= 8, f"only {edges}"
for channel, way, dev in edges:
    first, last = ring[int(channel) % len(ring)]
    wanted = last if way == "send" else first
    assert int(dev) == wanted, f"channel {channel} [{way}] opens device {dev}, its graph says {wanted}"
print(f"two rails: {len(edges)} edges at the NICs of their channels")

# ---- messages leave by the peer's rail where NCCL_CROSS_NIC demands it, the only way that this plugin lets them arrive
logs = good(rails, 4, 2, *quick, 1, NCCL_NET_PLUGIN=TESTNET, TESTNET_DEVICES="2", NCCL_CROSS_NIC="0",
            TESTNET_PATHS="/sys/ff00:1c:00.0,/sys/ff00:0c:00.0")
edges = set(re.findall(r"Channel \d+/1 : (\d)\[\d\] -> (\d)\[\d\] \[send\] via NET/TestNet/(\d)", logs))
wanted = {(str(a), str(b), str(1 - b % 2)) for a in range(4) for b in range(4) if a // 2 != b // 2}
assert edges == wanted, f"messages: {sorted(edges)}, wanted {sorted(wanted)}"
print("messages: by the rails of their peers")

# ---- a plugin makes one device of the ports of a NIC: traffic goes over that
ports = dict(NCCL_NET_PLUGIN=TESTNET, TESTNET_DEVICES="4", TUTTI_PLUGIN_CHECK="1",
             TESTNET_PATHS="/sys/ff00:0c:00.0,/sys/ff00:0c:00.1,/sys/ff00:1c:00.0,/sys/ff00:1c:00.1")


def opened(logs):
    return {int(dev) for dev in re.findall(r"Channel \d+/\d : \S+ -> \S+ \[\w+\] via NET/TestNet/(\d+)", logs)}


for what, devices, options in (
        ("ports", {4, 5}, dict(TESTNET_VIRTUAL="1")),
        ("no virtual devices", {0, 1, 2, 3}, dict(NCCL_NET_MERGE_LEVEL="PORT")),
        ("level LOC", {0, 1, 2, 3}, dict(TESTNET_VIRTUAL="1", NCCL_NET_MERGE_LEVEL="LOC")),
        ("refused", {0, 1, 2, 3}, dict(TESTNET_VIRTUAL="refuse")),
        ("near and forced", {4}, dict(TESTNET_VIRTUAL="1", NCCL_NET_FORCE_MERGE="test3,test0,test2,test1"))):
    logs, dump, root = completed(rails, 4, 2, *quick, **ports, **options)
    assert opened(logs) <= devices and (len(devices) == 4 or opened(logs) == devices), f"{what}: devices {opened(logs)} are open"
    assert len(list(root.iter("net"))) == 4, f"{what}: the dump does not show the members"
    compare(what, logs, layout(dump, "--nodes", "2"))
    assert "against the contract" not in logs, f"{what}: {logs}"
    if what == "ports":
        says(logs, "NET/TestNet: virtual device 4 of 2 devices from 0 on, 25000 Mbit/s")
bad("NCCL_NET_FORCE_MERGE: the network plugin does not make one device of the 2 NICs from test0 on", rails, 4, 2, *quick,
    TESTNET_VIRTUAL="refuse", NCCL_NET_FORCE_MERGE="test0,test2", **ports)
logs = good(rails, 4, 2, *quick, 1, TESTNET_VIRTUAL="1", NCCL_CROSS_NIC="0", **ports)
assert opened(logs) == {4, 5}, f"messages: devices {opened(logs)} are open"
print("virtual devices: edges open them, and none of their members")

# ---- hosts with files of their own
other = write("other.xml", open(rails).read().replace('sm="80"', 'sm="70"').replace("32.0 GT/s", "8.0 GT/s"))
choose = f"test $RANK -lt 2 && export NCCL_TOPO_FILE={rails} || export NCCL_TOPO_FILE={other};"
logs = good("", 4, 2, 1, 64, prefix=choose)
assert "flat" not in logs, "hosts that differ have no plan"
says(logs, "nNodes 2 localRanks 2 localRank 1", "PCI[48.0]", "PCI[12.0]")
logs = good("", 4, 2, 1, 64, prefix="test $RANK -lt 2 && export NCCL_TOPO_FILE=" + rails + ";")
says(logs, "some ranks have no machine file (NCCL_TOPO_FILE): rings and trees over flat hosts")
logs = good("", 2, 2, 1, 64, prefix=f"test $RANK = 0 && export NCCL_TOPO_FILE={rails} || export NCCL_TOPO_FILE={other};")
says(logs, "the machine file of rank 0, the first of this host, counts")
print("hosts with files of their own: joined")

# ---- what no completion mends
bad("unmendable.xml:1: <pci>: missing attribute busid", write("unmendable.xml", '<system version="1"><cpu numaid="0"><pci><gpu/></pci></cpu></system>'),
    1, 1, *quick)
bad("twice.xml:2: duplicate busid ff00:01:00.0", write("twice.xml", """<system version="1"><cpu numaid="0"><pci busid="ff00:01:00.0"><gpu/></pci>
<pci busid="ff00:01:00.0"/></cpu></system>"""), 1, 1, *quick)
print("what no completion mends: refused with file and line")
