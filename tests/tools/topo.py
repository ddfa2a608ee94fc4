#!/usr/bin/env python3
"""`tutti topo` as an operator uses it: every command on every golden machine, in text, JSON and pictures; malformed files;
wrong usage.  topo.py TUTTI MACHINES

In pictures no two texts may overlap (widths are estimated from above: 0.66 of the size for each character), and every text
lies inside. Where TUTTI_SHARED (or a folder shared beside the tree) holds
further results in the format of `tutti topo export`, these must be equal, too."""
import glob, html.parser, json, os, re, subprocess, sys, tempfile
import xml.etree.ElementTree as ET

TUTTI, MACHINES = sys.argv[1], sys.argv[2]
BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared")
SHARED = os.path.join(os.environ.get("TUTTI_SHARED", BESIDE), "topologies")
faults = []


def run(*arguments, env=None):
    return subprocess.run([TUTTI, "topo", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, env={**os.environ, **(env or {})})


def must(ok, what):
    if not ok:
        faults.append(what)
    return ok


def boxes(svg):
    for text in svg.iter("{http://www.w3.org/2000/svg}text"):
        size, words = float(text.get("font-size")), text.text or ""
        width = 0.66 * size * len(words)
        x, y = float(text.get("x")), float(text.get("y"))
        left = x - {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor")]
        yield words, left, y - 0.8 * size, left + width, y + 0.2 * size


def check_picture(name, text):
    svg = ET.fromstring(text)
    width, height = float(svg.get("width")), float(svg.get("height"))
    placed = list(boxes(svg))
    must(len(placed) > 3, f"{name}: nothing is written in the picture")
    for i, (words, a, b, c, d) in enumerate(placed):
        must(a >= 0 and b >= 0 and c <= width and d <= height, f"{name}: '{words}' is outside")
        for other, e, f, g, h in placed[:i]:
            must(c <= e or g <= a or d <= f or h <= b, f"{name}: '{words}' and '{other}' overlap")


def check_machine(path):
    name = os.path.basename(path)
    for command in (["show"], ["show", "--p2p"], ["explain"], ["explain", "--nodes", "2"], ["search", "--nodes", "1,2"],
                    ["search", "--nodes", "2", "--time"], ["check"]):
        p = run(command[0], path, *command[1:])
        must(p.returncode == 0 and p.stdout.strip() and not p.stderr, f"{name} {command}: {p.returncode} {p.stderr}")
    for command in (["show", "--json"], ["explain", "--json"], ["search", "--json", "--time"], ["check", "--json"],
                    ["export", "--json"]):
        p = run(command[0], path, *command[1:])
        must(p.returncode == 0 and json.loads(p.stdout), f"{name} {command}")
    for command in (["show", "--svg"], ["search", "--svg"], ["search", "--svg", "--nodes", "2"]):
        check_picture(f"{name} {command}", run(command[0], path, *command[1:]).stdout)
    p = run("diff", path, path, "--nodes", "1,2")
    must(p.returncode == 0 and "same" in p.stdout, f"{name}: differs from itself: {p.stdout[:200]}")


def check_files(path):
    """What we print we read as the same; graphs that were written down are taken as they are."""
    name = os.path.basename(path)
    with tempfile.TemporaryDirectory() as folder:
        copy, graphs = os.path.join(folder, "machine.xml"), os.path.join(folder, "graphs.xml")
        open(copy, "w").write(run("show", path, "--xml").stdout)
        must(run("show", copy, "--json").stdout == run("show", path, "--json").stdout, f"{name}: show --xml")
        for nodes in ("1", "2"):
            p = run("search", path, "--xml", "--nodes", nodes)
            if p.returncode:
                must("cannot be written" in p.stderr, f"{name}: search --xml: {p.stderr}")
                continue
            open(graphs, "w").write(p.stdout)
            first = json.loads(run("search", path, "--json", "--nodes", nodes).stdout)
            p = run("search", path, "--json", "--nodes", nodes, env={"NCCL_GRAPH_FILE": graphs})
            if len(first[0]["domains"]) > 1:  # graphs of one node are not those of its neighbour
                must(p.returncode == 1 and "a GPU of this node" in p.stderr, f"{name}: foreign graphs: {p.stderr}")
                continue
            again = json.loads(p.stdout)
            for scenario in first + again:
                for graph in scenario["domains"][0]["graphs"].values():
                    graph["hops"] = 0  # the file has none
            must(first == again, f"{name}: graphs read are not those written")


def check_differences():
    a, b = os.path.join(MACHINES, "c05-dgxa100.xml"), os.path.join(MACHINES, "c06-dgxh100.xml")
    p = run("diff", a, b, "--nodes", "2")
    for words in ("gpus 0 cc: 80 | 90", "ring over 2 nodes"):
        must(p.returncode == 1 and words in p.stdout, f"diff: no '{words}'")
    p = run("diff", a, b, "--json")
    found = json.loads(p.stdout)
    must(p.returncode == 1 and any(r["what"] == "gpus 0 cc" for r in found["differences"]), "diff --json")
    must(found["verdict"].startswith("different machines: GPUs H100 SXM instead of A100 SXM4; network ports 50 GB/s"), str(found["verdict"]))
    must(" mlx5_" in run("search", a, "--nodes", "2").stdout, "search: ports have no names of the file")
    text = run("diff", a, b, "--nodes", "2").stdout
    kinds = [line.split(" ")[0].rstrip(":") for line in text.splitlines()[1:]]
    must(max(kinds.count(kind) for kind in kinds) <= 13 and "more (--json has all)" in text, f"diff: too long:\n{text}")
    must(" by PCI, " in text and '["' not in text and "null" not in text, f"diff: links are not in words:\n{text}")
    text = run("diff", os.path.join(MACHINES, "c01-workstation-1gpu.xml"), b, "--json").stdout
    must('"link"' in text and '"LOC"' not in text, "diff: GPUs' ways to themselves are listed as links")
    p = run("diff", a, "/nonexistent.xml")
    must(p.returncode == 2 and "nonexistent" in p.stderr, f"diff of a file that is not there: exit {p.returncode}")
    with tempfile.TemporaryDirectory() as folder:
        other = os.path.join(folder, "other.xml")

        halved = os.path.join(folder, "halved.xml")
        open(halved, "w").write(open(b).read().replace('speed="400000"', 'speed="200000"'))
        p = run("diff", b, halved)
        lines = p.stdout.splitlines()
        must(lines[0].endswith("rings over 2 nodes give 192 instead of 384 GB/s") and len(lines) == 8 and
             "link: NIC 0 to NIC port 0 by NET, 50 GB/s | 25 GB/s  (and 15 more alike)" in lines, f"diff of halved ports:\n{p.stdout}")
        line = run("diff", b, halved, "--nodes", "1").stdout.splitlines()[0]
        must(line.endswith("as many and as fast over 1 node"), f"diff over one node: {line}")
        links = [r for r in json.loads(run("diff", b, halved, "--json").stdout)["differences"] if r["what"] == "link"]
        must(len(links) == 16 and all(r["a"]["bw"] == 2 * r["b"]["bw"] and r["a"]["to"] == r["b"]["to"] for r in links), f"diff --json: {links[:1]}")

        def verdict(machine, change):
            tree = ET.parse(os.path.join(MACHINES, machine))
            change(tree.getroot())
            tree.write(other)
            p = run("diff", os.path.join(MACHINES, machine), other, "--nodes", "2")
            must(p.returncode == 1 and len(p.stdout.splitlines()) > 1, f"diff of {machine}: {p.returncode} {p.stderr}")
            return p.stdout.splitlines()[0]

        def mirror(root):
            """The same boxes, counted from the other end."""
            root[:] = reversed(root)
            for cpu in root:
                cpu[:] = reversed(cpu)

        def rename(root):
            for net in root.iter("net"):
                net.set("name", net.get("name").replace("mlx5_", "ibp"))

        def lift(root):
            """NICs from their own switch to the one where their GPU hangs."""
            nics = [(above, pci) for above in root.iter("pci") for pci in above if pci.find("nic") is not None]
            gpus = [above for above in root.iter("pci") for pci in above if pci.find("gpu") is not None]
            for (above, nic), place in zip(nics, gpus):
                above.remove(nic)
                place.append(nic)

        def slow(root):
            for net in list(root.iter("net"))[:2]:
                net.set("speed", "100000")

        for machine, change, wanted in (
                ("c06-dgxh100.xml", mirror, "the same boxes, renumbered; channels are as many and as fast"),
                ("c06-dgxh100.xml", rename, "the same boxes, with other numbers or names; channels are as many and as fast"),
                ("c05-dgxa100.xml", lift, "the same parts, joined in another way; NICs by PIX instead of PXB; channels are as many and as fast"),
                ("c06-dgxh100.xml", slow, "different machines: network ports 2 x 12.5 GB/s, 6 x 50 GB/s instead of 8 x 50 GB/s; rings over 2 nodes give")):
            line = verdict(machine, change)
            must(line.startswith(wanted), f"diff of {machine}, {change.__name__}: '{line}', not '{wanted}'")


def check_documents():
    """The pictures of docs/topology.md are what the tool draws."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/pictures")
    pictures = {"gb200-tray": ["show", "c08-gb200-tray.xml"], "gb200-rack": ["show", "c08-gb200-tray.xml", "--clique", "18"], "8x3090": ["show", "nccltests-8x3090.xml"],
                "dgx1v": ["show", "c03-dgx1v.xml"], "dgxa100": ["show", "c05-dgxa100.xml"],
                "8gpu-cx8": ["show", "rtpllm-8gpu-cx8.xml"],
                "dgxh100-2": ["search", "c06-dgxh100.xml", "--nodes", "2"], "dgx1v-1": ["search", "c03-dgx1v.xml"],
                "gb200-rack-2": ["search", "c08-gb200-tray.xml", "--clique", "18", "--nodes", "2"],
                "b200-vm-2": ["search", "gvisor-b200-vm.xml", "--nodes", "2"]}
    for name, (command, machine, *more) in pictures.items():
        drawn = run(command, os.path.join(MACHINES, machine), "--svg", *more).stdout
        must(drawn == open(os.path.join(folder, name + ".svg")).read(),
             f"docs/pictures/{name}.svg is not what `tutti topo {command} {machine} --svg {' '.join(more)}` draws")
    dgx1v = open(os.path.join(folder, "dgx1v.svg")).read()
    fills = dict(re.findall(r'rx="3" fill="(#[0-9a-f]+)"/>\n<text [^>]*>([A-Z0-9]+)<', dgx1v))
    must(dgx1v.count('paint-order="stroke"') == 16 and "NVLink, 20 to 40 GB/s" in dgx1v, "NVLinks that differ have no numbers")
    dgxa100 = open(os.path.join(folder, "dgxa100.svg")).read()
    must("paint-order" not in dgxa100 and re.search(r'<path d="M[^"]*V116.0H[^"]*(M[0-9.]+ 116.0V130.0){2}" fill="none" stroke="#4f46e5"', dgxa100),
         "the line between CPUs does not end at each")
    lone = run("search", os.path.join(MACHINES, "c12-gh200-1gpu.xml"), "--clique", "32", "--svg").stdout
    must("broken arrows lead to the next" in lone and 'stroke-dasharray="5 3" marker-end' in lone, "a host with one GPU has no arrow to the next host")
    must(len(fills) == 5 and sorted(fills.values()) == ["NVB", "NVL", "PIX", "PXN", "SYS"] and ">Paths from the GPU of a row" in dgx1v,
         f"types of paths share a colour, or the cells have no title: {fills}")
    dgxa100 = open(os.path.join(folder, "dgxa100.svg")).read()
    cpus = {float(x) + float(w) / 2 for x, w in re.findall(r'<rect x="([\d.]+)" y="130.0" width="([\d.]+)"', dgxa100)}
    ends = {float(x) for path in re.findall(r'<path d="([^"]*)"[^>]* stroke="#4f46e5"', dgxa100) for x in re.findall(r"[MH]([\d.]+)", path)}
    must(len(cpus) == 4 and ends == cpus, f"the line between CPUs has ends at {ends}, the CPUs are at {cpus}")
    rack = open(os.path.join(folder, "gb200-rack-2.svg")).read()
    must(float(re.search(r'width="(\d+)"', rack)[1]) < 1500 and rack.count(">channels 0, 4, 8, 12<") == 2 and
         rack.count(">from hosts 0 to 3<") == 8 and "those of host h begin with 4 x h" in rack and rack.count('stroke-dasharray="6 4"') == 2 and "each of the other 17" in rack,
         "the channels of a rack are not folded")
    must(">of each of 17 hosts<" in rack and rack.count(">GPU 3<") == 2 and rack.count(">mlx5_0<") == 1 and ">PCI 8<" not in rack,
         "the host that stands for others has numbers of its own or ports that nothing uses")
    text = " ".join(run("explain", os.path.join(MACHINES, "c06-dgxh100.xml")).stdout.split())
    must("the one that the GPU heads a second time: 9 x 40 GB/s" in text and "so would NVLink" not in text, "explain: NVLS, or NVLink where all have it")
    text = " ".join(run("explain", os.path.join(MACHINES, "aws-g5.xml")).stdout.split())
    must("a newer PCI generation would help, and so would NVLink" in text, "explain: NVLink where GPUs have none")
    page = open(os.path.join(folder, "../topology.md")).read()
    must({p for p in pictures} == set(re.findall(r"\(pictures/([^)]*)\.svg\)", page)), "docs/topology.md shows other pictures")
    examples = re.findall(r"^\| (\w+) \| [^|]* \| \[([^]]*)\]\([^)]*\): GPU (\d) to (GPU|NET) (\d) \|$", page, re.M)
    must(len(examples) == 9, f"docs/topology.md has {len(examples)} examples of paths")
    for way, name, gpu, kind, to in examples:
        told = json.loads(run("show", os.path.join(MACHINES, pictures[name][1]), "--json").stdout)["paths"]
        seen = told["gpu_" + kind.lower()]["type"][int(gpu)][int(to)]
        must(seen == way, f"docs/topology.md: GPU {gpu} to {kind} {to} of {name} is {seen}, not {way}")


def check_slips():
    """What was skipped is told with the error that comes of it; links that differ, and machines without GPUs, are warned of."""
    text = open(os.path.join(MACHINES, "c03-dgx1v.xml")).read()
    link = re.search(r'<nvlink target="[^"]*" count="(\d+)"', text)
    slips = {"typo": (text.replace("<nvlink ", "<nvlnk ", 1), 1, r"no reverse link \(\S+:\d+: warning: element <nvlnk> is not known inside <gpu> and is skipped; did you mean nvlink\?\)"),
             "count": (text[:link.start(1)] + "7" + text[link.end(1):], 0, r"warning: <nvlink> from \S+ to \S+: count \d, the way back has \d\n"),
             "no GPU": ('<system version="1"><cpu numaid="0" affinity="f" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"></cpu></system>', 0, "there is no GPU")}
    for name, (content, status, words) in slips.items():
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(content)
            file.flush()
            p = run("check", file.name)
            must(p.returncode == status and re.search(words, p.stderr), f"check, {name}: exit {p.returncode}, {p.stderr}")
    shown = run("show", os.path.join(MACHINES, "nccltests-8x3090.xml"), "--clique", "2").stdout
    must(re.search(r" NET +NET ", shown) and "/0 " not in shown, f"show: paths without a figure: {shown}")


def check_bad():
    for line in open(os.path.join(MACHINES, "bad", "ANSWERS.tsv")):
        if line.startswith("#"):
            continue
        name, answer, words = line.rstrip("\n").split("\t")[:3]
        for command in ("check", "show", "search"):
            p = run(command, os.path.join(MACHINES, "bad", name))
            must(p.returncode == (1 if answer == "refuse" else 0), f"{command} {name}: exit {p.returncode}")
            must(answer == "accept" or words in p.stderr, f"{command} {name}: no '{words}' in {p.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        odd = os.path.join(folder, "odd.xml")
        open(odd, "w").write(open(os.path.join(MACHINES, "c06-dgxh100.xml")).read().replace("<nvlink", "<nvlnk"))
        p = run("check", odd)
        must(p.returncode == 0 and "did you mean nvlink? (and 31 more alike)\n" in p.stderr and p.stderr.count("\n") == 1, f"check: {p.stderr}")
        must(run("check", odd, "--strict").returncode == 1, "check --strict takes warnings for sound")
        whole = open(os.path.join(MACHINES, "c06-dgxh100.xml")).read()
        open(odd, "w").write(re.sub(r"mlx5_(\d)", r"rdmap14\1s0f0-backend", whole))
        p = run("show", odd, "--svg")
        must(all(f">rdm..4{n}s</text>" in p.stdout for n in range(8)), f"names that differ in the middle: {re.findall('>(rd[^<]*)<', p.stdout)}")
        for worse, words, verdict in ((re.sub("<nvlink[^>]*/>", "", whole, count=1), "GPU 0 has 267.8 GB/s of NVLink, the 7 others 370.8\n", "NVLinks of GPUs 1 x 267.8"),
                                      (whole.replace('link_width="16"', 'link_width="8"', 1), "PCI switch 0 has 24 GB/s to the part above it, the 7 others 48\n",
                                       "PCI links of switches 7 x 48 GB/s, 1 x 24 GB/s instead of 8 x 48 GB/s")):
            open(odd, "w").write(worse)
            p = run("check", odd)
            must(p.returncode == 0 and p.stderr == words and p.stdout.endswith("1 warning\n"), f"a part that has less: {p}")
            must(json.loads(run("check", odd, "--json").stdout)["warnings"] == words and run("check", odd, "--strict").returncode == 1, "and as JSON")
            p = run("diff", os.path.join(MACHINES, "c06-dgxh100.xml"), odd)
            must(verdict in p.stdout.splitlines()[0], f"diff: {p.stdout}")
        for worse, words in ((re.sub('count="[0-9]+"', 'count="2"', open(os.path.join(MACHINES, "c03-dgx1v.xml")).read(), count=1), ", the way back has "),
                             (re.sub('affinity="[^"]*"', 'affinity="zz"', whole, count=1), "affinity 'zz' is not hexadecimal words"),
                             (whole.replace('"mlx5_3"', '"mlx5_2"'), "NET 2 and NET 3 have the same name, mlx5_2"),
                             (re.sub('speed="[0-9]+"', 'speed="100"', whole, count=1), " GB/s, another port 50: speed is in Mb/s"),
                             ("\n".join(line for line in whole.splitlines() if "<gpu" not in line and "nvlink" not in line and "</gpu" not in line), "there is no GPU")):
            open(odd, "w").write(worse)
            p = run("check", odd)
            must(p.returncode == 0 and words in p.stderr and p.stdout.endswith("1 warning\n"), f"check says no '{words}': {p}")
        dgx1v = open(os.path.join(MACHINES, "c03-dgx1v.xml")).read()
        open(odd, "w").write(dgx1v.replace("<nvlink", "<nvlnk", 1))
        p = run("check", odd)
        must(p.returncode == 1 and "no reverse link (" in p.stderr and "did you mean nvlink?)" in p.stderr, f"the row that is wrong: {p.stderr}")


def check_usage():
    box = os.path.join(MACHINES, "c05-dgxa100.xml")
    for arguments in ([], ["diff"], ["nothing"], ["show", box, "--what"], ["show", box, box], ["diff", box],
                      ["search", box, "--nodes"], ["search", box, "--nodes", "0"], ["search", box, "--nodes", "1,,2"],
                      ["search", box, "--clique", "x"], ["export", box, "--load-order", "random"]):
        p = run(*arguments)
        must(p.returncode == 2, f"{arguments}: exit {p.returncode}")
    for arguments, words in (
            (["show", box, "--time"], "--time belongs to: search"), (["explain", box, "--svg"], "--svg belongs to: show, search"),
            (["show", box, "--nodes", "2"], "--nodes belongs to"), (["search", box, "--svg", "--json"], "only one of"),
            (["search", box, "--svg", "--nodes", "1,2"], "one number only for a picture"),
            (["explain", box, "--nodes", "1,2"], "one number only"), (["show", ""], "empty"),
            (["search", box, "--json=1"], "takes no value"), (["search", box, "--nodes="], "''"),
            (["search", box, "--nodes", "65537"], "65536"), (["search", box, "--time", "--xml"], "no place")):
        p = run(*arguments)
        must(p.returncode == 2 and words in p.stderr and "--help" in p.stderr and not p.stdout,
             f"{arguments}: exit {p.returncode}: {p.stderr}")
    must(run("search", box, "--nodes=2").stdout == run("search", box, "--nodes", "2").stdout, "--nodes=2")
    p = subprocess.run([TUTTI, "topo", "show", "-"], stdin=open(box), capture_output=True, text=True)
    must(p.returncode == 0 and p.stdout == run("show", box).stdout, "a file on standard input")
    for command in ("show", "explain", "search", "diff", "check", "export", "report"):
        p = run(command, "--help")
        words = re.search(f"tutti topo {command} (.*)", p.stdout.split("examples:")[1]).group(1)
        must(p.returncode == 0 and words, f"{command} --help has no example")
        words = re.sub(r"\w+\.xml", box, words.split(" > ")[0]).split()
        must(run(command, *words).returncode == 0, f"the example of {command} --help fails: {words}")
    must(run("--help").returncode == 0, "--help")
    for folder in (MACHINES, "/"):
        p = run("show", folder)
        must(p.returncode == 1 and folder in p.stderr and "directory" in p.stderr, f"a folder: {p.stderr}")
    p = run("export", box, "--json", "--nodes", "65536")
    must(p.returncode == 1 and "too many to print" in p.stderr, "more than can be printed")
    p = run("show", "/nonexistent.xml")
    must(p.returncode == 1 and p.stderr == "tutti topo: /nonexistent.xml: cannot be opened: No such file or directory\n", f"a file that is not there: {p.stderr}")


class Page(html.parser.HTMLParser):
    """Open elements, ids, texts and whatever would be fetched."""
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.texts, self.fetched, self.faults = [], set(), set(), [], [], []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.ids.add(values.get("id"))
        self.links.add(values.get("href", "#machine"))
        if tag in ("script", "link", "img", "iframe") or "src" in values:
            self.fetched.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")

    def handle_data(self, data):
        self.texts.append(data)


def check_report(machines):
    with tempfile.TemporaryDirectory() as folder:
        pages = os.path.join(folder, "pages")
        odd = os.path.join(folder, "a & <b>.xml")
        text = open(os.path.join(MACHINES, "c06-dgxh100.xml")).read()
        open(odd, "w").write(text.replace('name="mlx5_0"', 'name="&lt;script&gt;&amp;x"'))
        p = run("report", *machines, odd, "--output", pages)
        names = sorted(os.path.basename(m)[:-4] + ".html" for m in [*machines, odd])
        must(p.returncode == 0 and sorted(os.listdir(pages)) == names, f"report: {p.returncode} {p.stderr} {os.listdir(pages)}")
        for name in names:
            page = Page()
            page.feed(open(os.path.join(pages, name)).read())
            must(not page.faults and not page.open, f"report {name}: {page.faults} {page.open}")
            must(not page.fetched and all(link[0] == "#" and link[1:] in page.ids for link in page.links),
                 f"report {name}: not by itself: {page.fetched} {page.links - page.ids}")
            must({"machine", "tree", "paths", "nodes-1", "nodes-2"} <= page.ids, f"report {name}: {page.ids}")
            if name.startswith("a & <b>"):
                seen = "".join(page.texts)
                must("a & <b>.xml" in seen and "port <script>&x: net 0" in seen and "PXN 48" in seen and
                     "NVLinks are the limit" in seen, "report: texts of an odd file")
        for name, is_long in (("c06-dgxh100", False), ("aws-p5", True)):  # 16 and 40 devices side by side
            p = run("report", os.path.join(MACHINES, name + ".xml"), "--output", "-")
            must(('class="picture long"' in p.stdout) == is_long, f"report {name}: at its own width: {not is_long}")
        named = os.path.join(pages, "one.html")
        p = run("report", machines[0], "-o", named)
        must(p.returncode == 0 and open(named).read().startswith("<!DOCTYPE html>"), f"report to a named page: {p.stderr}")
        p = run("report", *machines[:2], "-o", named)
        must(p.returncode == 2 and "one file only for one page" in p.stderr, f"two reports in a page: {p.returncode} {p.stderr}")
        p = run("report", machines[0], "-o", "-", "--nodes", "4")
        must(p.returncode == 0 and p.stdout.startswith("<!DOCTYPE html>") and "nodes-4" in p.stdout, "report on standard output")
        tray = os.path.join(MACHINES, "c08-gb200-tray.xml")
        p = run("report", tray, "--output", pages, "--clique", "18", "--nodes", "1,16")
        page = os.path.join(pages, "c08-gb200-tray-clique18-nodes1-16.html")
        must(p.stdout.strip() == page and "<title>Topology of 18 hosts like c08-gb200-tray.xml that are one node; channels of 1 and 16 nodes</title>" in open(page).read(), f"report --clique: {p.stdout}")
        text = open(page).read()
        must(text.count("CPU ") < 200 and text.count("<td") < 100 and "Hosts 1 to 17 are alike" in text and len(text) < 400000,
             f"report of a rack is not folded: {len(text)} bytes, {text.count('<td')} cells")
        for arguments, status, words in (
                ([odd, odd], 2, "two files would have one page"), ([odd, machines[0], "--output", "-"], 2, "one file only"),
                (["/nonexistent.xml", "--output", pages], 1, "nonexistent"), ([odd, "--output", os.path.join(odd, "x")], 1, "Not a directory")):
            p = run("report", *arguments)
            must(p.returncode == status and words in p.stderr, f"report {arguments}: {p.returncode} {p.stderr}")


def check_small():
    """The rows' names of a small machine stand beside their cells."""
    p = run("show", os.path.join(MACHINES, "c10-2xa6000-bridge.xml"), "--svg")
    name = float(re.search(r'<text x="([\d.]+)"[^>]*>from GPU 0<', p.stdout)[1])
    cells = [float(x) for x in re.findall(r'<rect x="([\d.]+)" [^>]*height="20" rx="3"', p.stdout)]
    must(60 < min(x for x in cells if x > name) - name < 100, f"names of rows: {name}, cells {cells}")


def check_limits():
    """NCCL allows 640 nodes of a kind: 80 trays of eight PCI elements."""
    tray = os.path.join(MACHINES, "c08-gb200-tray.xml")
    p = run("search", tray, "--clique", "80", "--time")
    must(p.returncode == 0 and "together: 320 ranks" in p.stdout, f"80 trays: {p.stderr}")
    p = run("search", tray, "--clique", "81")
    must(p.returncode == 1 and "more than 640 PCI nodes" in p.stderr, f"81 trays: {p.stderr}")


def check_output():
    """Output that does not arrive is told; a reader that goes away is no news."""
    box = os.path.join(MACHINES, "c06-dgxh100.xml")
    for command in (["show", box], ["show", box, "--svg"], ["explain", box], ["search", box, "--json"], ["check", box],
                    ["diff", box, box], ["export", box], ["--help"]):
        with open("/dev/full", "w") as full:
            p = subprocess.run([TUTTI, "topo", *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        must(p.returncode == 1 and "could not be written: No space left" in p.stderr, f"{command} > /dev/full: {p.stderr}")
    p = subprocess.run(["sh", "-c", '"$0" topo export "$1" --nodes 1,512 | head -c 9', TUTTI, box], capture_output=True,
                       text=True, timeout=60)
    must(p.stdout == '{"system"' and not p.stderr, f"a reader that goes away: {p.stderr}")


def check_explained():
    """Sentences name the limit, why, and what would help."""
    for name, nodes, *wanted in (
            ("c06-dgxh100", 2, "8 ports, such as mlx5_0 (48 of 50 GB/s in use)", "full or nearly so", "channels come in pairs", "behind an NVSwitch",
             "ring channel 0: mlx5_0 (PIX) > 0 > 7", "are full alike", "with GPU-direct", "mlx5_7 (NET 0, 1, 2"),
            ("c06-dgxh100", 1, "(360 of 370.8 GB/s in use)", "NVLinks are the limit", "one order of GPUs is repeated"),
            ("gvisor-b200-vm", 2, "(11.52 of 12 GB/s in use). PCI through an Intel CPU counts one fifth more",
             "mlx5_6, mlx5_7, mlx5_8 (NET 6, 7, 8; 50 GB/s each) are no GPU's first choice", "no PCI switch in common with any GPU"),
            ("nccltests-8x3090", 1, "without direct access: by shared host memory (SHM)", "NCCL_P2P_LEVEL=SYS",
             "without NVLink the fastest next step"),
            ("ncclgp-5gpu-mixed", 1, "NVLinks join some of the GPUs", "3 by NVLink, 2 through one PCI switch"),
            ("rtpllm-8gpu-cx8", 1, "NCCL_NET_DISABLE_INTRA=1", "channels of rank 7"),
            ("c03-dgx1v", 1, "(NVB)", "there is no NVSwitch"),
            ("c01-workstation-1gpu", 1, "a lone GPU needs no links")):
        text = run("explain", os.path.join(MACHINES, name + ".xml"), "--nodes", str(nodes)).stdout
        for words in wanted:
            must(words in text, f"explain {name} over {nodes}: no '{words}' in\n{text}")
    rack = [os.path.join(MACHINES, "c08-gb200-tray.xml"), "--clique", "18", "--nodes", "2"]
    text = run("explain", *rack).stdout
    must("ring channel 0: " in text and " > 0 > 71 .. 1 > " in text, f"explain of a rack: no ranges in\n{text}")
    must("GPUs that talk to each other" not in text, f"explain of a rack: its GPUs talk by NVLink\n{text}")
    text = run("search", *rack).stdout
    must(" > 0 71 .. 1 > " in text, f"search of a rack: no ranges in\n{text}")
    box = os.path.join(MACHINES, "c06-dgxh100.xml")
    text = run("explain", box, env={"NCCL_P2P_DISABLE": "1"}).stdout
    must("NCCL_P2P_DISABLE=1 is set" in text, "explain does not name the variable that shapes the machine")
    found = json.loads(run("explain", box, "--json").stdout)
    kinds = {row["kind"] for row in found}
    must({"title", "pairs", "nic", "graph", "limit", "why", "channel", "advice"} <= kinds, f"explain --json: {kinds}")
    must(all(row["text"] in run("explain", box).stdout for row in found[:5]), "explain --json says other things than the text")


def spelled(first, last):
    """"3 > 2 > 1", of the range "3 .. 1"."""
    step = 1 if last > first else -1
    return " > ".join(str(rank) for rank in range(first, last + step, step))


def check_consistent(path, nodes, env):
    """No sentence of explain contradicts another one, or the facts of the machine."""
    name = f"explain {os.path.basename(path)} --nodes {nodes} {env}"
    p = run("explain", path, "--nodes", str(nodes), "--json", env=env)
    if not must(p.returncode == 0, f"{name}: {p.stderr}"):
        return
    found, machine = json.loads(p.stdout), json.loads(run("show", path, "--json", env=env).stdout)
    nets, to_net = machine["system"]["nets"], machine["paths"]["gpu_net"]["type"]
    order = "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS".split()
    nearest = [min((order.index(row[n]) for row in to_net), default=99) for n in range(len(nets))]
    advice = [row["text"] for row in found if row["kind"] == "advice"]
    must(len(advice) == 1 or not any("Nothing stands out" in a for a in advice), f"{name}: nothing stands out, yet {advice}")
    for a in advice:
        for n, net in enumerate(nets):
            listed = net["name"] in a.split(": ")[0].split(", ")
            must(not (listed and "drivers that can" in a and nearest[n] > order.index("P2C")),
                 f"{name}: drivers cannot bring GPU-direct over {order[nearest[n]]}: {a}")
            must(not (listed and "no PCI switch in common" in a and nearest[n] <= order.index("PXB")), f"{name}: {a}")
    for graph in ("ring", "tree", "nvls"):  # no part is told to be raised alone when it does not limit alone
        about = [a for a in advice if re.match(r"In [a-z, ]*\b" + graph, a)]
        must(sum("raise what nodes exchange" in a for a in about) <= 1, f"{name}: two remedies for one thing: {about}")
    sections = []  # of domains
    for row in found:
        if row["kind"] == "title" and row["text"].startswith("channels of"):
            sections.append([])
        elif sections and row["kind"] != "title":
            sections[-1].append(row["text"])
    rank_cpu = {g["rank"]: g["local_cpu"] for g in machine["system"]["gpus"]}
    ever_full = set()
    for section in sections:
        for graph in ("ring", "tree", "nvls"):
            texts = [t for t in section if t.startswith(graph)]
            if any("limit is where links are full" in t for t in texts):
                ever_full.add(graph)
            channels = [re.match(rf"{graph} channel [\d, ]+: (.*)\.$", t).group(1) for t in texts if t.startswith(f"{graph} channel ")]
            why = " ".join(t for t in texts if not t.startswith(f"{graph} channel "))
            orders, ends = [], []
            for channel in channels:
                way, _, steps = channel.partition("; steps: ")
                way = re.sub(r"(\d+) \.\. (\d+)", lambda m: spelled(int(m.group(1)), int(m.group(2))), way)
                ranks = [int(r) for r in re.findall(r"(?<![\w.:-])\d+(?![\w.:-])", re.sub(r"\([^)]*\)", "", way))]
                orders.append(ranks)
                ends.append(re.findall(r"(\S+) \((?:PIX|PXB|P2C|PXN|PHB|SYS)", way))
                linked = "by NVLink" in steps
                must(not (linked and "without NVLink" in why), f"{name}: {graph} without NVLink, by NVLink: {steps}")
                must(not (linked and "no step takes NVLink" in why), f"{name}: {graph}: {steps}")
                must(not ("behind an NVSwitch" in why and steps and not linked), f"{name}: {graph}: {steps}")
                counts = sum(int(c) for c in re.findall(r"(?:^|, )(\d+) (?:by|through|across|on)", steps))
                must(counts == len(ranks) - 1 or not steps, f"{name}: {graph}: {len(ranks)} ranks, {counts} steps: {channel}")
                if "behind an NVSwitch" in why:
                    most = len(rank_cpu)
                    places = [list(rank_cpu).index(r) for r in (ranks[:-1] if ranks[0] == ranks[-1] else ranks)]
                    must(len({(b - a) % most for a, b in zip(places, places[1:])}) <= 1, f"{name}: {graph} not in order: {ranks}")
                if "as rarely as they can" in why:
                    across = sum(rank_cpu[a] != rank_cpu[b] for a, b in zip(ranks, ranks[1:]))
                    least = len({rank_cpu[r] for r in ranks}) - (ranks[0] != ranks[-1])
                    must(across == least, f"{name}: {graph} crosses {across} times, {least} would do: {ranks}")
            must(not ("leaves by the NIC by which it came" in why and any(len(set(e)) > 1 for e in ends)), f"{name}: {graph} {ends}")
            must(not ("one order of GPUs is repeated" in why and len({tuple(o) for o in orders}) > 1), f"{name}: {graph}: {orders}")
            must(not ("channels differ" in why and len(channels) < 2), f"{name}: {graph}: channels do not differ")
            must(not ("no link is full" in why and "links are full" in why), f"{name}: {graph}: {why}")
    for a in advice:
        named = re.match(r"In ([a-z, ]+?)(?:, network|, PCI|, NVLinks|, links|, chip)", a)
        must(not named or set(named.group(1).split(", ")) <= ever_full, f"{name}: {a}, but full are only {ever_full}")


def compare(want, have, where, out):
    if isinstance(want, dict):
        for key in want:
            if key != "tuning":
                compare(want[key], have.get(key) if isinstance(have, dict) else None, f"{where}.{key}", out)
    elif isinstance(want, list):
        if not isinstance(have, list) or len(want) != len(have):
            out.append(f"{where}: {have!r:.80}")
            return
        for i, value in enumerate(want):
            compare(value, have[i], f"{where}[{i}]", out)
    elif isinstance(want, (int, float)) and isinstance(have, (int, float)):
        if abs(want - have) > 1e-4 * max(1e-9, abs(want)):
            out.append(f"{where}: {have}, reference {want}")
    elif want != have:
        out.append(f"{where}: {have!r}, reference {want!r}")


def check_shared(path):
    want = json.load(open(path))
    command = ["export", os.path.join(SHARED, want["topology"]), "--json", "--nodes",
               ",".join(str(s["nodes"]) for s in want["scenarios"])]
    if want["hosts_in_clique"] > 1:
        command += ["--clique", str(want["hosts_in_clique"])]
    if want.get("load_order"):
        command += ["--load-order", "fused"]
    words = (w.split("=", 1) for w in str(want.get("environment") or "").split() if re.match(r"[A-Z][A-Z0-9_]*=", w))
    have, out = json.loads(run(*command, env=dict(words)).stdout), []
    for part in ("system", "paths", "access", "scenarios"):
        compare(want[part], have.get(part), part, out)
    # one field of these is a single rank's own value
    out = [o for o in out if not ("gvisor" in path and "p2p_channels_per_peer" in o)]
    must(not out, f"{os.path.basename(path)}: {out[:3]}")


machines = sorted(glob.glob(os.path.join(MACHINES, "*.xml")))
must(len(machines) >= 20, "machines are missing")
for machine in machines:
    check_machine(machine)
    check_files(machine)
    for count in (1, 2):
        check_consistent(machine, count, {})
    check_consistent(machine, 2, {"NCCL_P2P_DISABLE": "1"})
check_differences()
check_documents()
check_slips()
check_bad()
check_usage()
check_limits()
check_small()
check_output()
check_explained()
check_report(machines)
for result in sorted(glob.glob(os.path.join(SHARED, "*.expected.json"))):
    check_shared(result)
for fault in faults[:40]:
    print(fault)
print(f"{len(machines)} machines, {len(faults)} faults")
sys.exit(1 if faults else 0)
