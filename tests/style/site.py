#!/usr/bin/env python3
"""The documentation as a site: every link of README and docs leads to a file and a heading that are there, every page stands
in the list of mkdocs.yml and can be reached from the front page's tables or that list, and mkdocs, where it is installed,
builds it without a warning. The checker is tried on a page with broken links first."""
import glob, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LINK = re.compile(r"\]\(([^)\s]+)\)")
faults = []


def anchors(text):
    """Of the headings, as mkdocs makes them."""
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M):
        yield re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def broken(path, text):
    for link in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = os.path.join(os.path.dirname(path), file) if file else path
        if not os.path.exists(target):
            yield f"{os.path.relpath(path, ROOT)}: no {link}"
        elif anchor and anchor not in anchors(open(target).read()):
            yield f"{os.path.relpath(path, ROOT)}: no heading for {link}"


def build(folder):
    """None where there is no mkdocs, or one without hooks."""
    for tool in ("/usr/bin/mkdocs", shutil.which("mkdocs")):
        version = tool and os.path.exists(tool) and subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
        number = re.search(r"version (\d+)\.(\d+)", version or "")
        if number and (int(number[1]), int(number[2])) >= (1, 4):
            return subprocess.run([tool, "build", "--strict", "--quiet", "--config-file", os.path.join(ROOT, "mkdocs.yml"),
                                   "--site-dir", folder], capture_output=True, text=True)
    return None


def astray(folder):
    """What a built page loads or links to and that is not in the folder, and links of the index to no heading."""
    names, ids = {}, {}
    for path in glob.glob(os.path.join(folder, "**", "*.html"), recursive=True):
        with open(path) as file:
            names[path] = file.read()
        ids[path] = set(re.findall(r'\bid="([^"]+)"', names[path]))
    for path, text in names.items():
        loads = re.findall(r'<(?:script|link|img)\b[^>]*?(?:src|href)="([^"#?]+)', text)
        loads += [link for link in re.findall(r'<a\b[^>]*?href="([^"#?]+)', text) if not re.match(r"https?:", link)]
        for link in set(loads):
            base = folder if link.startswith("/") else os.path.dirname(path)  # (the page of a server for what it lacks)
            if not os.path.exists(os.path.join(base, link.lstrip("/"))):
                yield f"{os.path.relpath(path, folder)} of the site asks for {link}"
    if not re.search(r'<a href="hostcuda.html"><code[^>]*>docs/hostcuda.md</code></a>', names[os.path.join(folder, "troubleshooting.html")]):
        yield "a page that another one names by its file is no link"
    with open(os.path.join(folder, "search", "sections.js")) as file:
        if "( NCCL_" in file.read():
            yield "excerpts of the search have spaces behind brackets"
    index = os.path.join(folder, "subjects.html")
    entries = re.findall(r'<a href="([^"#]+)#([^"]+)"', names.get(index, ""))
    if len(entries) < 500 or not re.search(r"<code[^>]*>TUTTI_WATCHDOG</code>: <a", names[index]):
        yield f"the index has {len(entries)} links, or lacks TUTTI_WATCHDOG"
    for file, anchor in entries:
        if anchor not in ids.get(os.path.join(folder, file), ()):
            yield f"the index leads to {file}#{anchor}, which is not there"


page = os.path.join(ROOT, "docs", "index.md")
trial = "# A title\n[a](nowhere.md) [b](topology.md#nothing) [c](topology.md) [d](#a-title) `[e](code.md)` [f](https://x.y/)"
if [f.split(": ")[1] for f in broken(page, trial)] != ["no nowhere.md", "no heading for topology.md#nothing", "no heading for #a-title"]:
    faults.append(f"the checker does not find what is broken: {list(broken(page, trial))}")  # (#a-title: of the page on disk)
pages = sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))
for path in [*pages, os.path.join(ROOT, "README.md"), os.path.join(ROOT, "CONTRIBUTING.md")]:
    faults += broken(path, open(path).read())
listed = re.findall(r": ([\w/.-]+\.md)$", open(os.path.join(ROOT, "mkdocs.yml")).read(), re.M)
known = [os.path.relpath(p, os.path.join(ROOT, "docs")) for p in pages]
faults += [f"mkdocs.yml does not list {p}" for p in known if p not in listed]
faults += [f"mkdocs.yml lists {p}, which is not there" for p in listed if p not in known]
with tempfile.TemporaryDirectory() as folder:
    done = build(folder)
    if done and (done.returncode or done.stderr.strip() or not os.path.exists(os.path.join(folder, "search", "search_index.json"))):
        faults.append(f"mkdocs build: exit {done.returncode} {done.stderr}")
    faults += astray(folder) if done and not done.returncode else []
for fault in faults:
    print(" ", fault)
print(f"site: {len(pages)} pages, {'built' if done else 'not built (Debian: mkdocs)'}, {len(faults)} to mend")
sys.exit(1 if faults else 0)
