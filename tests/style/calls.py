#!/usr/bin/env python3
"""Calls between the files of src/, from the symbol tables of the build's objects: from a room to a lower one, inside a
room from a sub-room to one listed before it in the room's meson.build, and never in a circle between files or
sub-rooms. A pointer to a function that a header declares and a higher room fills is a call upward as well: pointers.txt
lists those."""
import collections, os, re, subprocess, style

ROOMS = style.rooms()
BUILD = os.environ.get("MESON_BUILD_ROOT", os.path.join(style.ROOT, "build"))


def objects():
    """{source path: its object} of what was built for the library; a generated source stands for itself."""
    found = {}
    for row in style.compile_rows():
        source = os.path.relpath(os.path.realpath(os.path.join(row["directory"], row["file"])), style.ROOT)
        output = os.path.join(row["directory"], row.get("output", ""))
        if source.startswith("src/") and row.get("output", "").startswith("src/") and os.path.isfile(output):
            found.setdefault(source, output)
    return found


def symbols(paths):
    """({symbol: the source that defines it}, {source: symbols that it needs})."""
    by_object = {os.path.realpath(obj): source for source, obj in paths.items()}
    out = subprocess.run(["nm", "-A", *paths.values()], capture_output=True, text=True).stdout
    defined, needed = {}, collections.defaultdict(set)
    for line in out.splitlines():
        name, _, rest = line.partition(":")
        kind, symbol = rest.split()[-2:]
        source = by_object[os.path.realpath(name)]
        if kind == "U":
            needed[source].add(symbol)
        elif kind.isupper():
            defined[symbol] = source
    return defined, needed


def circles(edges):
    """Files that reach each other, as sets of more than one (Tarjan's strongly connected components)."""
    number, low, stack, found = {}, {}, [], []

    def visit(at):
        number[at] = low[at] = len(number)
        stack.append(at)
        for to in edges.get(at, ()):
            if to not in number:
                visit(to)
            if to in stack:
                low[at] = min(low[at], low[to])
        if low[at] == number[at]:
            group = set(stack[stack.index(at):])
            del stack[stack.index(at):]
            if len(group) > 1:
                found.append(group)

    for at in sorted(edges):
        if at not in number:
            visit(at)
    return found


def folded(edges):
    """The edges between sub-rooms and the files beside them: a sub-room counts as one object. What a room's list leaves out
    (host/check, which all of the device call) is not in there."""
    def name(path):
        room, inside = style.room_of(path), style.sub_room_of(path)
        listed = style.sub_rooms(room)
        if not inside:
            return path if os.path.dirname(path) == f"src/{room}" or not listed else None
        return f"src/{room}/{inside}" if inside in listed[0] else None

    found = collections.defaultdict(set)
    for source, targets in edges.items():
        found[name(source)] |= {name(target) for target in targets} - {name(source), None}
    found.pop(None, None)
    return found


def climbs(path, target):
    """Whether `target` lies above `path` in the house."""
    here, there = style.room_of(path), style.room_of(target)
    if here != there:
        return ROOMS.index(there) > ROOMS.index(here)
    return style.climbs_inside(path, target)


def pointers():
    """(name, header, function): pointers to functions that headers declare; `function` has it as a parameter, None for
    a member of a struct."""
    texts = {header: style.strip_comments(style.read(header)) for header in style.files(("src",), (".h",))}
    plain = r"\(\*\s*(\w+)\)\s*\("
    types = [found[1] for text in texts.values() for found in re.finditer(rf"typedef [^;{{}}]*?{plain}", text)]
    typed = rf"|\b(?:{'|'.join(types)})\s+(\w+)\s*[;,)]" if types else ""
    for header, text in texts.items():
        for found in re.finditer(plain + typed, text):
            statement = re.split(r"[;{}]", text[:found.start()])[-1]
            if "typedef" not in statement:
                taker = re.search(r"(\w+)\s*\(", statement)
                yield next(filter(None, found.groups())), header, taker and taker[1]


def filled_above():
    """{(pointer, its header): sources above that fill it with a function from above}."""
    texts = {path: style.strip_comments(style.read(path)) for path in style.files(("src",), (".c",))}
    functions = {path: set(re.findall(r"^[a-z_][\w *]*?\b(\w+)\(", text, re.M)) for path, text in texts.items()}
    found, memo = collections.defaultdict(set), {}
    for name, header, taker in pointers():
        above = {path for path in texts if climbs(header, path)}
        theirs = set().union(*(functions[path] for path in above))
        use = re.compile(rf"\b{taker}\(([^;]*)" if taker else rf"(?:\.|->){name} =\s*&?(\w+)\s*[,;}}]")
        for path in above:
            values = {word for given in use.findall(texts[path]) for word in re.findall(r"\b\w+\b(?!\s*\()", given)}
            if values & theirs and header in style.reach(path, memo):
                found[name, header].add(path)
    return found


paths = objects()
if not paths:
    print(f"no objects of src/ in {BUILD}: build first")
    raise SystemExit(style.SKIP)
defined, needed = symbols(paths)
edges = {source: {defined[s] for s in names if s in defined} - {source} for source, names in needed.items()}
findings = []
for source, targets in sorted(edges.items()):
    for target in sorted(targets):
        if climbs(source, target):
            names = sorted(s for s in needed[source] if defined.get(s) == target)
            findings.append((source, f"{source} calls up to {target}: {', '.join(names[:4])}"))
groups = circles(edges)
for group in groups:
    for source in sorted(group):
        partners = sorted(edges[source] & group)
        findings.append((source, f"{source} is in a circle of {len(group)} files by its calls to {', '.join(partners)}"))
for group in circles(folded(edges)):
    if group not in groups:
        findings.append((min(group), f"calls leave and enter again: {', '.join(sorted(group))}"))
allowed = style.listed("pointers.txt")
upward = filled_above()
findings += [(header, f"{header}: {name} is filled above ({', '.join(sorted(by))}) and not in pointers.txt")
             for (name, header), by in sorted(upward.items()) if (name, header) not in allowed]
findings += [(header, f"pointers.txt: {name} of {header} is not filled above any more") for name, header in allowed
             if (name, header) not in upward]
style.report("calls", f"{sum(map(len, edges.values()))} between {len(paths)} files, in circles "
             f"{sum(map(len, groups))} files, upward pointers {len(upward)}", findings)
