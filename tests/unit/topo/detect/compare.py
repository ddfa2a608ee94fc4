#!/usr/bin/env python3
"""detect/compare.py SHOW NVML_FOLDER MACHINE.xml...: lays each machine out as files, detects it, and demands the same
machine back: CPUs, PCI elements with links, GPUs with NVLinks, ports of networks. Then detects the one that this runs on."""
import os, subprocess, sys, tempfile, xml.etree.ElementTree as ET

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from record import record

ASKED = {
    "cpu": ("numaid", "affinity", "vendor", "familyid", "modelid"),
    "pci": ("busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"),
    "gpu": ("dev", "sm", "rank"), "nvlink": ("target", "count", "tclass"), "c2c": ("bw", "count"), "nic": (),
    "net": ("name", "speed", "port", "guid"),
}


def tree(node):
    """Hashable form without the order of siblings, which detection sorts."""
    values = tuple((key, value_of(node, key)) for key in ASKED.get(node.tag, ()))
    return (node.tag, values, tuple(sorted(tree(child) for child in node)))


def value_of(node, key):
    value = node.get(key, "")
    if key == "affinity":
        return format(int(value.replace(",", "") or "0", 16), "x")
    if key == "guid":
        return "" if node.get("maxconn") == "65536" or node.get("name", "").startswith("e") else str(int(value or "0", 16))
    if key == "port" and node.get("name", "").startswith("e"):
        return ""
    if key in ("vendor", "familyid", "modelid") and node.tag == "cpu":
        return value if value not in ("unknown", "0") else ""  # which other architectures do not have
    if key == "link_speed":  # older kernels wrote "8 GT/s", NVML says the generation
        return value.split(" ")[0].replace(".0", "")
    if key.startswith("subsystem") or key in ("vendor", "device"):
        return value.lower() or "0x0"
    return value.lower()


def detect(show, nvml, root):
    environment = dict(os.environ, LD_LIBRARY_PATH=nvml)
    if root:
        environment["HWLOC_FSROOT"] = root
    result = subprocess.run([show], env=environment, capture_output=True, text=True, timeout=60)
    if result.returncode:
        sys.exit(f"{show}: exit {result.returncode}: {result.stderr}")
    return ET.fromstring(result.stdout)


def lines(form, depth=0):
    yield "  " * depth + form[0] + " " + " ".join(f"{k}={v}" for k, v in form[1])
    for child in form[2]:
        yield from lines(child, depth + 1)


def main():
    show, nvml, machines = sys.argv[1], sys.argv[2], sys.argv[3:]
    failed = 0
    for xml in machines:
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.join(folder, "root")
            record(xml, root, bare="vm" in os.path.basename(xml))
            found, wanted = tree(detect(show, nvml, root)), tree(ET.parse(xml).getroot())
        if found != wanted:
            failed += 1
            a, b = list(lines(wanted)), list(lines(found))
            print(f"{os.path.basename(xml)}: differs")
            print("\n".join(["- " + l for l in a if l not in b][:4] + ["+ " + l for l in b if l not in a][:4]))
        else:
            print(f"{os.path.basename(xml)}: the same machine")
    here = detect(show, nvml, "")
    assert here.findall("cpu"), "this machine has no CPU"
    sys.exit(failed)


main()
