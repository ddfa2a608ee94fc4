#!/usr/bin/env python3
"""docs/walk.md tells the truth: each file exists and has the function in it, and no file is entered twice. The files that
docs/words.md names exist as well."""
import collections, os, re, style

rows = re.findall(r"^\| \d+ \|[^|]*\| `(\w+)` \| `([\w/.]+)` \|", style.read("docs/walk.md"), re.M)
findings = [("docs/walk.md", f"{name} is not in {path}") for name, path in rows
            if not os.path.isfile(os.path.join(style.ROOT, path)) or
            not re.search(rf"^[a-z_][^;={{}}]*\b{name}\b[^;]*", style.read(path), re.M)]
twice = [path for path, times in collections.Counter(path for _, path in rows).items() if times > 1]
findings += [("docs/walk.md", f"{path} is entered twice") for path in twice]
if len(rows) < 10:
    findings.append(("docs/walk.md", f"only {len(rows)} steps found"))
words = re.findall(r"\| `([\w/.]+)` \|$", style.read("docs/words.md"), re.M)
findings += [("docs/words.md", f"there is no {path}") for path in words
             if not any(os.path.exists(os.path.join(style.ROOT, folder, path)) for folder in ("", "src"))]
if len(words) < 10:
    findings.append(("docs/words.md", f"only {len(words)} words found"))
style.report("walk", f"{len(rows)} functions in {len({path for _, path in rows})} files", findings)
