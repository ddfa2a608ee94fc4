#!/usr/bin/env python3
"""File-scope variables that change are listed in globals.txt, each with its reason."""
import re, style

AIM = 10
allowed = style.listed("globals.txt")
found = {(t.name, t.path): t for t in style.tags(style.files(style.CODE, (".c",)))
         if t.kind == "variable" and not re.search(r"\b(const|extern)\b", t.text)}
findings = [(path, f"{path}:{tag.line}: {name} is a mutable file-scope variable and not in globals.txt")
            for (name, path), tag in found.items() if (name, path) not in allowed]
findings += [(path, f"globals.txt: {name} is not in {path} any more") for name, path in allowed
             if (name, path) not in found]
style.report("globals", f"{len(found)} mutable file-scope variables (aim under {AIM}), {len(allowed)} listed", findings)
