#!/usr/bin/env python3
"""What the pages name exists: between backticks, a path of a file or folder is in the tree (in full, or its
end, as `net/socket.c` for `src/net/socket.c`) or a program made of such a file, a name that begins with `tt_` (in the rooms'
pages any name with an underscore) stands in the code, and what is called a test is one or a family (`mismatch` for `mismatch-2`). Files without a folder are looked for in the
pages about the source alone: others name files of users as well."""
import fnmatch, itertools, json, os, re, style

PAGES = style.files(("docs",), (".md",)) + ["CONTRIBUTING.md", "README.md"]
ABOUT_SOURCE = ("docs/rooms/", "docs/walk.md", "docs/roadmap.md", "docs/words.md", "CONTRIBUTING.md")
SUFFIXES = (".c", ".h", ".cc", ".cpp", ".cu", ".py", ".sh", ".md", ".build", ".css", ".js")
FOLDERS = ("bench", "docs", "examples", "hostcuda", "include", "packaging", "plugins", "scripts", "src", "tests", "tools")
ROOTS = FOLDERS + tuple(style.rooms())
tree = style.files(FOLDERS, ("",)) + [f"tests/abi/{name}" for name in os.listdir(os.path.join(style.ROOT, "tests/abi"))]
tree += [name for name in os.listdir(style.ROOT) if os.path.isfile(os.path.join(style.ROOT, name))]
tree += sorted({path[:end.start()] for path in tree for end in re.finditer("/", path)})
names = set()
for path in style.files(style.ALL + ("include", "examples"), (".c", ".h", ".cc", ".cpp", ".cu", ".py", ".build")):
    names.update(re.findall(r"\b[a-z]\w*_\w+", style.read(path)))
beginnings = {name[:end.start()] for name in names for end in re.finditer("_", name)}  # `crypto_kdf` for its functions


def spread(text):
    """`a/{b,c}.h` and `a.[ch]` as the paths they stand for."""
    parts = [m[1].split(",") if m[1] else list(m[2]) if m[2] else [m[0]]
             for m in re.finditer(r"\{([^{}]*)\}|\[(\w+)\]|[^{}\[\]]+", text)]
    return ["".join(one) for one in itertools.product(*parts)]


def in_tree(path):
    path = re.sub(r"<[^<>]*>|…", "*", path).rstrip("/")
    return any(fnmatch.fnmatchcase(one, f"{folder}{path}{suffix}") for one in tree for folder in ("", "*/") for suffix in ("", ".c"))


def tests():
    """The names of the build's tests, and those of the build files, as some tests need a library that may be missing."""
    written = {name for path in style.files(("tests",), ("meson.build",)) for name in re.findall(r"'([\w-]+)'", style.read(path))}
    build = os.environ.get("MESON_BUILD_ROOT", os.path.join(style.ROOT, "build"))
    try:
        return written | {test["name"] for test in json.load(open(os.path.join(build, "meson-info", "intro-tests.json")))}
    except OSError:
        print(f"no build in {build}: configure it first")
        raise SystemExit(style.SKIP)


def is_test(name):
    return any(test == name or test.startswith(name + "-") for test in known_tests)


findings = []
named = 0
known_tests = tests()
for page in PAGES:
    for number, line in enumerate(style.read(page).splitlines(), 1):
        for called in re.findall(r"\btests? (`[\w-]+`(?:(?:, | and |, and )`[\w-]+`)*)", line):
            wanted = re.findall(r"`([\w-]+)`", called)
            named += len(wanted)
            findings += [(page, f"{page}:{number}: no test {name}") for name in wanted if not is_test(name)]
        for quoted in re.findall(r"`([^`]+)`", line):
            words = [word.strip("(),;:") for word in quoted.split()]
            paths = [one for word in words if not word.startswith(("/", "-", "$")) and re.fullmatch(r"[\w./*{},\[\]<>…-]+", word)
                     for one in spread(word)
                     if page.startswith(ABOUT_SOURCE) and one.endswith(SUFFIXES) or "/" in one and one.split("/")[0] in ROOTS]
            known = r"\b[a-z]\w*_\w+\*?" if page.startswith("docs/rooms/") else r"\btt_\w+\*?"
            wanted = [name for name in re.findall(known, re.sub(r"\S*/\S*|\S+\.(?:c|h|py|sh|md|tsv|txt|map|js|css|\[\w+\])(?=\s|$)", "", quoted)) if name not in beginnings]
            named += len(paths) + len(wanted)
            findings += [(page, f"{page}:{number}: no file {one}") for one in paths if not in_tree(one)]
            findings += [(page, f"{page}:{number}: no name {name}") for name in wanted
                         if not (fnmatch.filter(names, name) if name.endswith("*") else name in names)]
style.report("pages", f"{len(PAGES)} pages name {named} files, functions and tests, {len(findings)} of them not there (limit 0)", findings)
