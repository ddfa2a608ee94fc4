#!/usr/bin/env python3
"""A manual page (section 1) from what a command says with --help, so that the two never differ.
usage: man.py TUTTI VERSION [COMMAND]  > tutti-COMMAND.1"""
import re
import subprocess
import sys

SUMMARY = re.compile(r"^  (\w+) +(\S.*)$", re.M)


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def sections(text):
    """[(heading or None, lines)]: a heading is a line at the margin that ends with a colon."""
    found = [(None, [])]
    for line in text.splitlines():
        if re.fullmatch(r"[a-z][a-z ]*:", line):
            found.append((line[:-1].upper(), []))
        else:
            found[-1][1].append(line)
    return found


def literal(lines):
    return [".nf"] + [roff(line) for line in lines] + [".fi"]


def page(tutti, version, command):
    text = subprocess.run([tutti, *([command] if command else []), "--help"], check=True, capture_output=True, text=True).stdout
    top = subprocess.run([tutti, "--help"], check=True, capture_output=True, text=True).stdout
    summaries = dict(SUMMARY.findall(top.split("commands:")[1].split("\n\n")[0]))
    name = f"tutti-{command}" if command else "tutti"
    summary = summaries[command] if command else text.splitlines()[0].split(": ", 1)[1]
    out = [f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "Tutti {version}" "Tutti"', ".SH NAME", f"{roff(name)} \\- {roff(summary)}"]
    usage, rest = text.split("usage:", 1)[1].split("\n\n", 1)
    out += [".SH SYNOPSIS"] + literal([line.strip() for line in usage.splitlines() if line.strip()])
    for heading, lines in sections(rest):
        while lines and not lines[-1]:
            lines.pop()
        if lines:
            out += [f".SH {heading or 'DESCRIPTION'}"] + literal(lines)
    others = [f"tutti-{c}" for c in summaries if c != command] + ([] if not command else ["tutti"])
    out += [".SH SEE ALSO"] + [f".BR {roff(o)} (1)" + ("," if o != sorted(others)[-1] else "") for o in sorted(others)]
    return "\n".join(out) + "\n"


if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
sys.stdout.write(page(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else ""))
