#!/usr/bin/env python3
"""Variables of the process that change are listed in globals.txt, each with its reason: those at file scope, and static
ones in functions, which are the same but harder to see."""
import re, style

AIM = 10
allowed = style.listed("globals.txt")
STATIC = re.compile(r"[ \t]+static\s+(?!inline\b|void$)([\w\s*]*?)\b(\w+)\s*(?:\[[^;=]*)?(?:=|;|$)", re.M)


def is_constant(declaration):
    """The object itself: what a pointer points to does not count."""
    return bool(re.search(r"\bextern\b", declaration) or
                re.search(r"\bconst\b", re.split("=|/[*]", declaration)[0].rpartition("*")[2]))


def in_functions(path):
    for found in STATIC.finditer(style.strip_comments(style.read(path))):
        if not is_constant(found[1]):
            yield found[2]


paths = style.files(style.CODE, (".c",))
at_file_scope = {(t.name, t.path) for t in style.tags(paths) if t.kind == "variable" and not is_constant(t.text)}
inside = {(name, path) for path in paths for name in in_functions(path)}
found = at_file_scope | inside
findings = [(path, f"{path}: {name} is a mutable variable of the process and not in globals.txt")
            for name, path in sorted(found - set(allowed))]
findings += [(path, f"globals.txt: {name} is not in {path} any more") for name, path in allowed
             if (name, path) not in found]
style.report("globals", f"{len(at_file_scope)} mutable file-scope variables (aim under {AIM}) and {len(inside)} in "
             f"functions, {len(allowed)} listed", findings)
