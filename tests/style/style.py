"""What every style check needs: the files of the project, their includes and functions, a cache by content, and the
baseline. A check prints our figure next to the limit, then each place beyond it, and exits 1 if there is one that the
baseline does not forgive."""
import collections, concurrent.futures, functools, hashlib, json, os, re, shlex, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "style")
SKIP = 77  # meson's exit status for "skipped"
CODE = ("src", "hostcuda", "plugins", "tools")  # what is judged by all numbers
ALL = CODE + ("tests", "bench")  # what is formatted and may not have endless functions


def files(folders, suffixes=(".c", ".h")):
    """Paths below the folders, relative to the root, sorted. Build folders are not in there."""
    found = []
    for folder in folders:
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            found += [os.path.relpath(os.path.join(where, n), ROOT) for n in names if n.endswith(tuple(suffixes))]
    return sorted(p for p in found if not p.startswith("tests/abi/assert_"))  # made from tables, not by hand


def read(path):
    with open(os.path.join(ROOT, path), errors="replace") as file:
        return file.read()


def strip_comments(text):
    """C text without comments; lines keep their numbers."""
    keep = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(rf"({keep})|//[^\n]*|/\*.*?\*/", lambda m: m[1] or "\n" * m[0].count("\n"), text, flags=re.S)


def rooms():
    """The rooms from the ground up, as src/meson.build lists them."""
    listed = re.search(r"^rooms = \[(.*?)\]", read("src/meson.build"), re.S | re.M)
    return re.findall(r"'(\w+)'", listed[1])


def room_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


@functools.cache
def sub_rooms(room):
    """The orders of sub-rooms in a room or an outbuilding, each from the lowest up, as its meson.build lists them; []
    when it has none."""
    try:
        text = read(f"src/{room}/meson.build" if room in rooms() else f"{room}/meson.build")
    except OSError:
        return []
    return [re.findall(r"'([\w/]+)'", listed) for listed in re.findall(r"^(?:\w+_)?sub_rooms = \[(.*?)\]", text, re.S | re.M)]


def sub_room_of(path):
    """The sub-room of a file, None when it is in none."""
    room = room_of(path)
    home = f"src/{room}" if path.startswith("src/") else room
    for name in sum(sub_rooms(room), []):
        if path.startswith(f"{home}/{name}/"):
            return name
    return None


def climbs_inside(path, target):
    """Whether `target`, in the same room as `path`, lies in a sub-room that the room lists after that of `path`."""
    ours, theirs = sub_room_of(path), sub_room_of(target)
    return any(ours in order and theirs in order and order.index(theirs) > order.index(ours)
               for order in sub_rooms(room_of(path)))


def includes(path):
    """(line, header as written) of every #include."""
    return [(n, m[1]) for n, line in enumerate(read(path).splitlines(), 1)
            if (m := re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line))]


def resolve(path, header):
    """The project's file behind an include, or None for a system header."""
    for base in (os.path.dirname(path), "src", "include", "include/hostcuda", "."):
        candidate = os.path.normpath(os.path.join(base, header))
        if os.path.isfile(os.path.join(ROOT, candidate)):
            return candidate
    return None


def reach(path, memo):
    """All project headers that a file sees, transitively."""
    seen, todo = set(), [path]
    while todo:
        at = todo.pop()
        if at not in memo:
            memo[at] = {r for _, h in includes(at) if (r := resolve(at, h))}
        todo += memo[at] - seen
        seen |= memo[at]
    return seen


Tag = collections.namedtuple("Tag", "kind name path line end params text")


def tags(paths):
    """Functions and file-scope variables by universal-ctags."""
    if not shutil.which("ctags"):
        print("ctags is not installed (package universal-ctags)")
        sys.exit(SKIP)
    command = ["ctags", "-f", "-", "--languages=C", "--langmap=C:.c.h", "--kinds-C=fv", "--fields=+neKS",
               "--output-format=json", "-L", "-"]
    out = subprocess.run(command, input="\n".join(paths), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found, lines = [], {}
    for row in map(json.loads, out.splitlines()):
        path = row["path"]
        lines.setdefault(path, read(path).splitlines())
        signature = (row.get("signature") or "()").strip("()").strip()
        count = 0 if signature in ("", "void") else depth_zero_commas(signature) + 1
        if row["kind"] == "variable" and row.get("scope"):
            continue
        found.append(Tag(row["kind"], row["name"], path, row["line"], row.get("end", row["line"]), count,
                         lines[path][row["line"] - 1]))
    return found


def depth_zero_commas(text):
    depth = commas = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        commas += c == "," and depth == 0
    return commas


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0


def listed(name):
    """Lines "name file reason" of a list in this folder: {(name, file): reason}."""
    rows = {}
    for number, line in enumerate(read(f"tests/style/{name}").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(None, 2)
        if len(parts) < 3:
            sys.exit(f"tests/style/{name}:{number}: expected: name file reason")
        rows[parts[0], parts[1]] = parts[2]
    return rows


def report(rule, figure, findings):
    """Print and exit. findings: [(path, text)]; the baseline forgives `count` of a rule in a file."""
    forgiven = {}
    for line in read("tests/style/baseline.txt").splitlines():
        if line.strip() and not line.startswith("#"):
            name, path, count = line.split()
            if name == rule:
                forgiven[path] = int(count)
    print(f"{rule}: {figure}")
    by_path = collections.defaultdict(list)
    for path, text in findings:
        by_path[path].append(text)
    bad = 0
    for path in sorted(by_path):
        if len(by_path[path]) <= forgiven.get(path, 0):
            continue
        bad += len(by_path[path])
        for text in by_path[path]:
            print(f"  {text}")
    for path, count in sorted(forgiven.items()):
        if len(by_path[path]) < count:
            print(f"  baseline.txt forgives {count} in {path}, {len(by_path[path])} are left: lower it")
    if os.environ.get("STYLE_BASELINE") == "lower":
        lower_baseline(rule, by_path)
    print(f"  {len(findings)} found, {len(findings) - bad} forgiven by the baseline, {bad} to mend")
    sys.exit(1 if bad else 0)


def lower_baseline(rule, by_path):
    """Rewrite the rule's lines of the baseline to what is left; never upwards."""
    lines = []
    for line in read("tests/style/baseline.txt").splitlines():
        words = line.split()
        if line.startswith(f"{rule} ") and len(words) == 3:
            left = min(int(words[2]), len(by_path[words[1]]))
            line = f"{rule} {words[1]} {left}" if left else None
        lines += [line] if line is not None else []
    with open(os.path.join(HERE, "baseline.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")


def compile_rows():
    """The build's compile_commands.json."""
    build = os.environ.get("MESON_BUILD_ROOT", os.path.join(ROOT, "build"))
    try:
        return json.load(open(os.path.join(build, "compile_commands.json")))
    except OSError:
        print(f"no compile_commands.json in {build}: configure the build first")
        sys.exit(SKIP)


def compile_flags():
    """Per source file the -I, -D and -std flags that the build uses; paths made absolute."""
    flags = {}
    for row in compile_rows():
        path = os.path.relpath(os.path.realpath(os.path.join(row["directory"], row["file"])), ROOT)
        words = [w for w in shlex.split(row["command"]) if w.startswith(("-I", "-D", "-std="))]
        flags[path] = [f"-I{os.path.normpath(os.path.join(row['directory'], w[2:]))}" if w.startswith("-I") else w
                       for w in words]
    return flags


def cache_folder():
    """Where what the analysers said is kept: outside the checkout, so that a new clone knows it too."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "tutti", "style")


def analyse(rule, paths, command, salt, file_of=lambda path: path):
    """Run command(path) -> argv on every path (or unit, whose path is file_of(unit)), in parallel; [(path, output
    lines)] of each. A file whose content, headers, command and `salt` are as in an earlier run of any checkout of this
    user is not analysed again."""
    folder = os.path.join(cache_folder(), rule)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:  # no home that can be written
        folder = os.path.join(tempfile.mkdtemp(), rule)
        os.makedirs(folder)
    memo = {}

    def key_of(path, argv):
        digest = hashlib.sha256(repr((salt, [word.replace(ROOT, ".") for word in argv])).encode())
        seen = reach(file_of(path), memo)
        for header in re.findall(r'"([^"]+\.h)"', " ".join(argv)):  # -DTT_..._HEADER="...": of an #include of a name
            if found := resolve(file_of(path), header):
                seen = seen | {found} | reach(found, memo)
        for name in [file_of(path)] + sorted(seen):
            digest.update(name.encode() + read(name).encode())
        return os.path.join(folder, digest.hexdigest())

    def one(path):
        argv = command(path)
        key = key_of(path, argv)
        if os.path.exists(key):
            os.utime(key)
            return path, open(key).read().splitlines(), True
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        text = done.stdout + done.stderr
        if done.returncode and not text.strip():
            text = f"{path}: {argv[0]} failed with {done.returncode}"
        with open(f"{key}.{os.getpid()}", "w") as file:
            file.write(text)
        os.rename(f"{key}.{os.getpid()}", key)
        return path, text.splitlines(), False

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        rows = list(pool.map(one, paths))
    print(f"{rule}: {sum(not cached for *_, cached in rows)} of {len(rows)} files analysed, the rest known")
    return [(path, lines) for path, lines, _ in rows]


def need(tool):
    if not shutil.which(tool):
        print(f"{tool} is not installed")
        sys.exit(SKIP)
    return subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
