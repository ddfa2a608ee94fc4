#!/usr/bin/env python3
"""Nothing below the plan knows a collective by name: no file of the hall, the networks and the devices says one. What
the ranks exchange over the bootstrap is none of them."""
import re, style

ROOMS = ("exec", "proxy", "transport", "mem", "net", "device")
ANYWHERE = re.compile(r"all_?reduce|(?<!tt_bootstrap_)all_?gather|reduce_?scatter|all_?to_?all|bcast|(?<!cond_)(?<!cnd_)(?<!IFF_)broadcast",
                      re.I)
IN_CODE = re.compile(r"\b(gather|scatter)\b|Gather|Scatter")  # plain words in a comment

findings = []
paths = style.files([f"src/{room}" for room in ROOMS], (".c", ".h", ".cu"))
for path in paths:
    whole, code = style.read(path), style.strip_comments(style.read(path)).splitlines()
    for number, line in enumerate(whole.splitlines(), 1):
        named = ANYWHERE.search(line) or (IN_CODE.search(code[number - 1]) if number <= len(code) else None)
        if named:
            findings.append((path, f"{path}:{number}: names a collective: {named[0]}"))
style.report("collectives", f"{len(paths)} files below the plan, {len(findings)} places name a collective (limit 0)",
             findings)
