"""Lays a machine file out as the /sys and /proc that such a machine would show, with the table that the stand-in for
NVML reads: ROOT/sys, ROOT/proc, ROOT/nvml.txt. Ports that a switch has and a machine file leaves out are invented."""
import os, xml.etree.ElementTree as ET


class Recorder:
    def __init__(self, root, bare):
        self.root, self.bare, self.ports, self.gpus = root, bare, 0, []

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(str(text) + "\n")

    def link(self, path, target):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.lexists(path):
            os.symlink(os.path.relpath(os.path.join(self.root, target), os.path.dirname(path)), path)

    # CPUs ----------------------------------------------------------------------------------------

    def cpus(self, system):
        masks = {}
        for cpu in system.findall("cpu"):
            words = cpu.get("affinity", "1").split(",")
            masks[int(cpu.get("numaid"))] = int("".join(w.rjust(8, "0") for w in words), 16)
        everything, info = 0, ""
        for numa, mask in masks.items():
            bits = [b for b in range(mask.bit_length()) if mask >> b & 1]
            everything |= mask
            node = f"sys/devices/system/node/node{numa}"
            self.write(node + "/cpumap", ",".join(f"{mask >> s & 0xffffffff:08x}" for s in range((mask.bit_length() - 1) // 32 * 32, -1, -32)))
            self.write(node + "/meminfo", f"Node {numa} MemTotal: 1048576 kB")
            for bit in bits:
                topology = f"sys/devices/system/cpu/cpu{bit}/topology/"
                self.write(topology + "physical_package_id", numa)
                self.write(topology + "core_id", bit)
                for name in ("thread_siblings", "core_cpus"):
                    self.write(topology + name, self.mask(1 << bit))
                for name in ("core_siblings", "package_cpus"):
                    self.write(topology + name, self.mask(mask))
        first = system.find("cpu")
        for bit in range(everything.bit_length()):
            if everything >> bit & 1:
                info += f"processor\t: {bit}\n"
                if first.get("vendor"):
                    info += (f"vendor_id\t: {first.get('vendor')}\ncpu family\t: {first.get('familyid')}\n"
                             f"model\t\t: {first.get('modelid')}\n")
                info += "model name\t: recorded\n\n"
        self.write("proc/cpuinfo", info)
        self.write("proc/meminfo", "MemTotal: 1048576 kB")
        self.write("sys/devices/system/cpu/online", ",".join(str(b) for b in range(everything.bit_length()) if everything >> b & 1))
        self.write("sys/devices/system/node/online", ",".join(map(str, sorted(masks))))

    @staticmethod
    def mask(bits):
        return ",".join(f"{bits >> s & 0xffffffff:08x}" for s in range((max(bits.bit_length(), 1) - 1) // 32 * 32, -1, -32))

    # PCI -----------------------------------------------------------------------------------------

    def device(self, where, pci, numa):
        for name in ("class", "vendor", "device", "subsystem_vendor", "subsystem_device"):
            self.write(f"{where}/{name}", pci.get(name, "0x0"))
        self.write(where + "/numa_node", numa)
        self.write(where + "/max_link_speed", pci.get("link_speed"))
        self.write(where + "/max_link_width", pci.get("link_width"))
        self.link(where + "/subsystem", "sys/bus/pci")
        self.link("sys/bus/pci/devices/" + os.path.basename(where), where)

    def pci(self, above, pci, numa):
        where = above
        if not (self.bare and above.count("/") == 2):
            self.ports += 1
            where = f"{above}/f{self.ports >> 8:03x}:{self.ports & 255:02x}:00.0"
            self.device(where, pci, numa)
        where += "/" + pci.get("busid")
        self.device(where, pci, numa)
        for child in pci:
            if child.tag == "pci":
                self.pci(where, child, numa)
            elif child.tag == "gpu":
                self.gpus.append((pci, child))
            elif child.tag == "nic":
                self.nets(where, child, pci, numa)

    def nets(self, where, nic, pci, numa):
        for net in nic.findall("net"):
            function = where
            if pci is not None and int(net.get("port", 1)) > 1:
                function = where[:-1] + str(int(net.get("port")) - 1)
                self.device(function, pci, numa)
            self.net(function, net)

    def net(self, where, net):
        name = net.get("name")
        if net.get("gdr") == "1":
            os.makedirs(os.path.join(self.root, "sys/module/nvidia_peermem"), exist_ok=True)
        if name.startswith("e") and not name.startswith("erdma"):
            base = "sys/class/net/" + name
            self.write(base + "/operstate", "up")
            self.write(base + "/speed", net.get("speed"))
        else:
            base = "sys/class/infiniband/" + name
            guid = int(net.get("guid", "0"), 16).to_bytes(8, "little").hex()
            self.write(base + "/sys_image_guid", ":".join(guid[i:i + 4] for i in range(0, 16, 4)))
            self.write(base + "/ports/1/state", "4: ACTIVE")
            self.write(base + "/ports/1/rate", f"{int(net.get('speed')) / 1000:g} Gb/sec (4X)")
        self.link(base + "/device", where)

    # NVML ----------------------------------------------------------------------------------------

    def nvml(self):
        lines = []
        for pci, gpu in sorted(self.gpus, key=lambda pair: int(pair[1].get("dev"))):
            speed = pci.get("link_speed").split(" ")[0]
            generation = {"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "32.0": 5, "64.0": 6}.get(speed, 0)
            c2c = gpu.find("c2c")
            lines.append(f"gpu {pci.get('busid')} {gpu.get('sm')} {generation} {pci.get('link_width')} "
                         f"{c2c.get('count') if c2c is not None else 0} {c2c.get('bw') if c2c is not None else 0}")
            for link in gpu.findall("nvlink"):
                lines += ["link " + link.get("target")] * int(link.get("count"))
        self.write("nvml.txt", "\n".join(lines))


def record(xml, root, bare=False):
    """bare: devices of the first level hang directly on the host bridge, as in many virtual machines."""
    system = ET.parse(xml).getroot()
    recorder = Recorder(root, bare)
    os.makedirs(os.path.join(root, "sys/bus/pci/devices"))
    recorder.cpus(system)
    for cpu in system.findall("cpu"):
        host = f"sys/devices/pci{int(cpu.get('numaid')):04x}:00"
        for child in cpu:
            if child.tag == "pci":
                recorder.pci(host, child, cpu.get("numaid"))
            elif child.tag == "nic":
                virtual = f"{host}/virtio{cpu.get('numaid')}"
                recorder.link(virtual + "/subsystem", "sys/bus/virtio")
                os.makedirs(os.path.join(root, "sys/bus/virtio"), exist_ok=True)
                recorder.nets(virtual, child, None, cpu.get("numaid"))
    recorder.nvml()
