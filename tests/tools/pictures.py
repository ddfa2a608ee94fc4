#!/usr/bin/env python3
"""pictures.py TUTTI MACHINES PROGRAMS: the pictures of `tutti topo show --svg` and `search --svg` of every machine, and of
`tutti program show --svg` of every program and of the library's own, each text measured
by a renderer (librsvg): no two texts touch, none is left of, right of, above or below the picture, one that begins in a box
stays in it, others stay out of all boxes, and no line runs through any. Every promise is then broken on purpose and must be
missed. Exit 77 (skipped) where the renderer is not installed. The invariant: the pictures hold no groups and no transforms,
so that boxes and lines can be read off as they stand."""
import ctypes, glob, json, os, re, subprocess, sys, tempfile
import xml.etree.ElementTree as ET

TUTTI, MACHINES, PROGRAMS = sys.argv[1:4]
SVG = "{http://www.w3.org/2000/svg}"
ET.register_namespace("", "http://www.w3.org/2000/svg")
GAP = 1.0  # px between two texts, at least
ROUNDING = 0.6


class Rectangle(ctypes.Structure):
    _fields_ = [(n, ctypes.c_double) for n in ("x", "y", "width", "height")]


class Renderer:
    """librsvg, as far as needed; raises OSError where it is absent."""

    def __init__(self):
        self.rsvg, self.gobject = ctypes.CDLL("librsvg-2.so.2"), ctypes.CDLL("libgobject-2.0.so.0")
        self.rsvg.rsvg_handle_new_from_data.restype = ctypes.c_void_p
        self.rsvg.rsvg_handle_new_from_data.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
        self.rsvg.rsvg_handle_get_geometry_for_layer.argtypes = [ctypes.c_void_p, ctypes.c_char_p] + [ctypes.c_void_p] * 4
        self.gobject.g_object_unref.argtypes = [ctypes.c_void_p]
        self.seen = {}

    def extent(self, document, width, height):
        """(left, top, right, bottom) of what is painted; None when it cannot be rendered."""
        handle = self.rsvg.rsvg_handle_new_from_data(document, len(document), None)
        if not handle:
            return None
        ink, logical, port = Rectangle(), Rectangle(), Rectangle(0, 0, width, height)
        done = self.rsvg.rsvg_handle_get_geometry_for_layer(handle, None, ctypes.byref(port), ctypes.byref(ink),
                                                            ctypes.byref(logical), None)
        self.gobject.g_object_unref(handle)
        return (ink.x, ink.y, ink.x + ink.width, ink.y + ink.height) if done else None

    def text(self, root, element):
        """Where a text is painted: a picture of the same attributes that holds nothing else. Equal texts are measured once."""
        x, y = float(element.get("x")), float(element.get("y"))
        key = (root.get("font-family"), element.text, *(element.get(a) for a in ("font-size", "text-anchor", "font-weight")))
        if key not in self.seen:
            alone = ET.Element(SVG + "svg", {"font-family": root.get("font-family"), "width": "9000", "height": "200"})
            copy = ET.SubElement(alone, SVG + "text", {**element.attrib, "x": "4000", "y": "100"})
            copy.text = element.text
            self.seen[key] = self.extent(ET.tostring(alone), 9000, 200)
        a, b, c, d = self.seen[key]
        return a - 4000 + x, b - 100 + y, c - 4000 + x, d - 100 + y


def boxes_of(root):
    for rect in root.iter(SVG + "rect"):
        if rect.get("width") != "100%":
            x, y, width, height = (float(rect.get(a)) for a in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height


def pieces_of(path):
    """A path of the letters M, V, H, C in absolute numbers as its control points, a list for each piece."""
    at = None
    for letter, words in re.findall(r"([MVHC])([^MVHC]*)", path):
        n = [float(w) for w in words.split()]
        if letter == "M":
            at = (n[0], n[1])
            continue
        piece = [at] + {"V": lambda: [(at[0], n[0])], "H": lambda: [(n[0], at[1])],
                        "C": lambda: [(n[0], n[1]), (n[2], n[3]), (n[4], n[5])]}[letter]()
        yield piece
        at = piece[-1]


def lines_of(root):
    """Pieces of stroked paths: what surrounds each, its control points, half its width."""
    for path in root.findall(SVG + "path"):
        half = float(path.get("stroke-width")) / 2
        for piece in pieces_of(path.get("d")):
            xs, ys = [x for x, _ in piece], [y for _, y in piece]
            yield (min(xs) - half, min(ys) - half, max(xs) + half, max(ys) + half), piece, half


def points_of(piece):
    """A piece as points near each other; between two, a straight one."""
    for k in range(65):
        t = k / 64
        if len(piece) == 2:
            weights = (1 - t, t)
        else:
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3)
        yield tuple(sum(w * p[i] for w, p in zip(weights, piece)) for i in (0, 1))


def inside(box, outer):
    return (box[0] >= outer[0] - ROUNDING and box[1] >= outer[1] - ROUNDING and box[2] <= outer[2] + ROUNDING and
            box[3] <= outer[3] + ROUNDING)


def touch(a, b, gap):
    return a[0] < b[2] + gap and b[0] < a[2] + gap and a[1] < b[3] + gap and b[1] < a[3] + gap


def crossed(box, around, piece, half):
    if not touch(box, around, 0):
        return False
    a, b, c, d = box[0] - half, box[1] - half, box[2] + half, box[3] + half
    return len(piece) == 2 or any(a < x < c and b < y < d for x, y in points_of(piece))


class Rows:
    """Things by the strips of the picture that they reach into, so that only near ones are compared."""
    HEIGHT = 24

    def __init__(self):
        self.strips = {}

    def strips_of(self, box):
        return range(int((box[1] - 2) // self.HEIGHT), int((box[3] + 2) // self.HEIGHT) + 1)

    def put(self, box, thing):
        for strip in self.strips_of(box):
            self.strips.setdefault(strip, []).append(thing)

    def near(self, box):
        return [thing for strip in self.strips_of(box) for thing in self.strips.get(strip, ())]


def faults_of(renderer, root):
    width, height = float(root.get("width")), float(root.get("height"))
    boxes, lines, before = Rows(), Rows(), Rows()
    for box in boxes_of(root):
        boxes.put(box, box)
    for line in lines_of(root):
        lines.put(line[0], line)
    for element in root.findall(SVG + "text"):
        words, box = element.text, renderer.text(root, element)
        middle = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        homes = [b for b in boxes.near(box) if b[0] < middle[0] < b[2] and b[1] < middle[1] < b[3]]
        if not inside(box, (0, 0, width, height)):
            yield f"'{words}' leaves the picture"
        for other, there in before.near(box):
            if touch(box, there, GAP):
                yield f"'{words}' and '{other}' overlap"
        if any(not inside(box, home) for home in homes):
            yield f"'{words}' leaves its box"
        if any(touch(box, b, 0) for b in boxes.near(box) if b not in homes):
            yield f"'{words}' runs into a box"
        halo = element.get("paint-order") == "stroke" # a number that stands on its line, white around
        if not homes and not halo and any(crossed(box, *line) for line in lines.near(box)):
            yield f"a line runs through '{words}'"
        before.put(box, (words, box))


def draw(*arguments, command="topo"):
    p = subprocess.run([TUTTI, command, *arguments, "--svg"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if p.returncode:
        sys.exit(f"tutti {command} {arguments}: exit {p.returncode}: {p.stderr.decode()}")
    return p.stdout


def check(renderer, name, text, whole):
    root = ET.fromstring(text)
    faults = [f"{name}: {fault}" for fault in faults_of(renderer, root)]
    if whole and renderer.extent(text, float(root.get("width")), float(root.get("height"))) is None:
        faults.append(f"{name}: the renderer does not take it")
    if len(root.findall(SVG + "text")) < 4:
        faults.append(f"{name}: nothing is written in it")
    if b"transform" in text or root.find(SVG + "g") is not None:
        faults.append(f"{name}: groups or transforms, which this test does not read")
    return faults


def broken(renderer, text):
    """A picture with one promise broken at a time; what was not missed."""
    root = ET.fromstring(text)
    texts = {e.text: e for e in root.findall(SVG + "text")}
    first, second, number = texts["GPU 0"], texts["GPU 1"], next(e for e in texts.values() if e.get("text-anchor") == "start" and
                                                                 re.fullmatch(r"[\d.]+", e.text))
    frame, thick = root.findall(SVG + "rect")[1], float(number.get("x"))
    for element, change, complaint in (
            (second, {"x": first.get("x"), "y": first.get("y")}, "overlap"),
            (second, {"x": str(float(first.get("x")) + 20), "y": first.get("y")}, "overlap"),
            (first, {"x": "3"}, "leaves the picture"),
            (first, {"font-size": "40"}, "leaves its box"),
            (number, {"x": str(float(frame.get("x")) - 9), "y": str(float(frame.get("y")) + 20)}, "runs into a box"),
            (number, {"x": str(thick - 10)}, "a line runs through")):
        before = dict(element.attrib)
        element.attrib.update(change)
        if not any(complaint in fault for fault in faults_of(renderer, root)):
            yield f"{element.text} with {change}: nobody says '{complaint}'"
        element.attrib.clear()
        element.attrib.update(before)


def check_programs(renderer):
    """Pictures of all programs: files, the library's own for several numbers of ranks, a name that is too long."""
    files = sorted(glob.glob(os.path.join(PROGRAMS, "*.xml")))
    rows = json.loads(subprocess.run([TUTTI, "program", "list", "--json"], stdout=subprocess.PIPE, check=True, timeout=60).stdout)
    commands = [[path] for path in files] + [[files[0], "--chunk", "1"]]
    commands += [["--op", row["op"], "--algo", row["algo"], "--ranks", str(n)] for row in rows for n in (2, 5, 16)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "long.xml")
        with open(files[0], encoding="utf-8") as file, open(path, "w", encoding="utf-8") as out:
            out.write(re.sub('name="[^"]*"', 'name="' + "WÜ&amp;" * 40 + '"', file.read(), count=1))
        commands.append([path])
        faults = [] if len(files) >= 14 else ["programs are missing"]
        for command in commands:
            faults += check(renderer, f"program {command}", draw("show", *command, command="program"), True)
    return faults, len(commands)


def main():
    try:
        renderer = Renderer()
    except OSError as error:
        print(f"SKIP: no renderer: {error} (Debian: librsvg2-2)")
        return 77
    letter = renderer.extent(b'<svg xmlns="http://www.w3.org/2000/svg"><text x="9" y="50" font-size="20">W</text></svg>', 99, 99)
    if not letter or letter[2] - letter[0] < 5:
        print("SKIP: no fonts (Debian: fonts-dejavu-core)")
        return 77
    machines, faults, count = sorted(glob.glob(os.path.join(MACHINES, "*.xml"))), [], 0
    if len(machines) < 20:
        faults.append("machines are missing")
    for machine in machines:
        name = os.path.basename(machine)
        commands = [["show"], ["search"], ["search", "--nodes", "2"], ["search", "--nodes", "4"]]
        if "gb200" in name or "dgxh100" in name:
            commands += [["show", "--clique", "2"], ["show", "--clique", "18"], ["show", "--clique", "25"], ["search", "--clique", "2", "--nodes", "2"],
                         ["search", "--clique", "18"], ["search", "--clique", "18", "--nodes", "2"], ["search", "--clique", "3"]]
        if "workstation" in name:
            commands += [["show", "--clique", "5"]]
        for command in commands:
            faults += check(renderer, f"{name} {command}", draw(command[0], machine, *command[1:]),
                            command == ["show"])
            count += 1
    more, drawn = check_programs(renderer)
    faults += more
    count += drawn
    with tempfile.TemporaryDirectory() as folder:  # the largest numbers that files may hold, an odd name
        path = os.path.join(folder, "a & <b> " + "long " * 30 + ".xml")
        text = open(os.path.join(MACHINES, "c08-gb200-tray.xml")).read()
        for small, large in (('speed="400000"', 'speed="2147483647"'), ('count="18"', 'count="1024"'), ('sm="100"', 'sm="9999"'),
                             ('bw="44712"', 'bw="447121234"'), ('dev="3" name', 'dev="1234567" name'), ('numaid="1"', 'numaid="1234567"'),
                             ('name="mlx5_0"', 'name="much &lt;too&gt; long &amp; &quot;quoted&quot;, \\ and &#10;ünïcöde"'),
                             ('name="mlx5_1"', 'name="mlx5_2"'), ('name="mlx5_3"', 'name="WWWWWWWWWWWWWWW"')):
            text = text.replace(small, large)
        with open(path, "w") as file:
            file.write(text)
        for command in ("show", "search"):
            faults += check(renderer, f"large numbers, {command}", draw(command, path), True)
            count += 1
        for word in ("mlx5_bond", "Mellanox", "mmmmmmm", "WWWWWWW", "roceP1s3", "enp5s0f0np0", "@@@@@@@@"):  # narrow and wide letters
            wide = os.path.join(folder, "wide.xml")
            with open(wide, "w") as file:
                file.write(re.sub(r'name="mlx5_(\d)"', rf'name="{word}\1"', open(os.path.join(MACHINES, "c08-gb200-tray.xml")).read()))
            faults += check(renderer, f"ports named {word}", draw("show", wide), False)
            count += 1
        p = subprocess.run([TUTTI, "topo", "show", path, "--json"], capture_output=True, text=True, timeout=60)
        names = [net["name"] for net in json.loads(p.stdout)["system"]["nets"]]
        if names[:3] != ['much <too> long & "quoted", \\ and ?ünïcöde', "mlx5_2", "mlx5_2"]:
            faults.append(f"odd names: {names}")
        seen = [e.text for e in ET.fromstring(draw("show", path)).findall(SVG + "text")]
        for name in ("much <t.", ".nïcöde", "NET 1", "NET 2", "WWWWWWWW", "WWWWWWW"):
            if name not in seen:
                faults.append(f"odd names: the picture lacks '{name}'")
    sample = draw("show", os.path.join(MACHINES, "c06-dgxh100.xml"))
    faults += list(broken(renderer, sample))
    for fault in faults[:60]:
        print(fault)
    print(f"{count} pictures, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
