#!/usr/bin/env python3
"""Manual pages from what the command itself says, so that the two never differ: section 1 from --help, the table of
variables (section 7) from `tutti env --json`.
usage: man.py TUTTI VERSION [COMMAND]       > tutti-COMMAND.1
       man.py TUTTI VERSION --environment   > tutti-environment.7"""
import json
import os
import re
import subprocess
import sys

SUMMARY = re.compile(r"^  (\w+) +(\S.*)$", re.M)


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace(",", ",\\:")  # long lists may break after a comma
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


# Variables that a command reads by itself or sets for the ranks; the library's are in the table.
READ = {
    "run": ["TUTTI_RSH", "TUTTI_WARN", "TUTTI_WATCHDOG", "TUTTI_TIMEOUT", "TUTTI_STRICT", "TUTTI_DEVICES", "NCCL_COMM_ID", "NCCL_DEBUG"],
    "perf": ["TUTTI_WARN", "TUTTI_DEVICES", "TUTTI_TUNE_FILE", "TUTTI_INIT_TIMEOUT", "NCCL_DEBUG"],
    "topo": ["NCCL_TOPO_FILE"],
    "tune": ["TUTTI_TUNE_FILE"],
}
SETTINGS = [("~/.nccl.conf, /etc/nccl.conf", "NAME=VALUE lines, taken where the environment has no such variable (NCCL_CONF_FILE names another)")]
TUNED = [("~/.config/tutti/machine.tune", "figures of this machine as tutti tune measured them")]
FILES = {
    "run": SETTINGS + [("$TMPDIR/tutti-secret-*", "what the ranks prove to each other that they belong together; removed at the end")],
    "perf": SETTINGS + TUNED,
    "tune": TUNED,
    "topo": [("/var/run/nvidia-topologyd/virtualTopology.xml", "the machine file of a virtual machine, read where NCCL_TOPO_FILE is not set")],
    "env": SETTINGS,
    "program": [("*.xml, *.json", "an algorithm of MSCCL, a plan of MSCCL++")],
    "verify": [("*.xml, *.json", "an algorithm of MSCCL, a plan of MSCCL++")],
    "trace": [("*.jsonl, *.records", "what the profiler plugin wrote, a file per process"), ("flight.*.jsonl", "what tutti doctor --flight wrote")],
    "doctor": [("flight.HOST.PID.jsonl", "what a process did last, in the folder of --flight")],
    "plugin": [("libnccl-KIND-NAME.so", "a plugin; KIND is net, tuner, profiler or env")],
    "ras": [("none", "the report comes through a socket (NCCL_RAS_ADDR)")],
    "version": [("none", "the versions are built in")],
    "": SETTINGS + TUNED,
}
STATUS = {
    "run": [("0", "all ranks ended well"), ("128 + N", "signal N ended the first rank that failed, or the launcher"),
            ("66", "under --strict: the race checker found something"), ("126, 127", "the program cannot be started"), ("2", "usage, or nothing could be started"),
            ("other", "that of the first rank that failed")],
    "program": [("0", "done"), ("1", "the answer is no, or it failed"), ("2", "usage"), ("3", "search: the time was over, this is the best so far"),
                ("130", "search: interrupted, this is the best so far")],
    "perf": [("0", "measured, all results right"), ("1", "wrong results, or a call failed"), ("2", "usage")],
}
STATUS["doctor"] = [("0", "nobody stands still, or nothing is to be mended"),
                    ("1", "somebody stands still, is stopped or does not answer, or something is to be mended"), ("2", "usage"),
                    ("3", "no job of this user runs on this host, or what --pid or --address names is none")]
PLAIN_STATUS = [("0", "done"), ("1", "the answer is no, or it failed"), ("2", "usage")]


def listed(heading, pairs):
    out = [f".SH {heading}"]
    for term, text in pairs:
        out += [".TP", f".B {roff(term)}", roff(text)]
    return out


def json_fields(command):
    """What docs/json.md says of the command, as a section: tables become items, other lines paragraphs."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "json.md"), encoding="utf-8") as file:
        parts = file.read().split("\n## tutti ")
    text = next((part.split("\n", 1)[1] for part in parts if part.split("\n", 1)[0] == command), "")
    out = [".SH JSON"] if text else []
    for line in text.replace("`", "").replace("…", "...").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            out += [".PP", roff(line)] if line else []
        elif cells[0] not in ("field", "command") and not cells[0].startswith("---"):
            out += [".TP", f".B {roff(cells[0])}", roff(cells[1])]
    return out


def variables(tutti):
    told = subprocess.run([tutti, "env", "--json"], check=True, capture_output=True, text=True).stdout
    return {row["name"]: row for row in json.loads(told)}


def environment(tutti, version):
    """Every variable of the table, by area; those without effect on the host device at the end, names only."""
    rows = variables(tutti).values()
    out = [f'.TH TUTTI\\-ENVIRONMENT 7 "" "Tutti {version}" "Tutti"', ".ad l", ".nh", ".SH NAME",
           "tutti\\-environment \\- the variables that the library and the tools obey", ".SH DESCRIPTION",
           "Values come from the environment, else from the file that NCCL_CONF_FILE names or ~/.nccl.conf, else from /etc/nccl.conf.",
           "A name that is not known and a value that is not understood are told at WARN;",
           ".B tutti env \\-\\-set", "lists what is set and what nobody obeys."]
    for area in sorted({row["area"] for row in rows}):
        obeyed = [row for row in rows if row["area"] == area and row["obeyed"]]
        out += listed(area.upper(), [(row["name"], f"{row['meaning']} Values: {row['values'] or 'any text'}. "
                                      f"Default: {row['unset'] or 'unset'}.") for row in obeyed]) if obeyed else []
    silent = [row["name"] for row in rows if not row["obeyed"]]
    out += [".SH KNOWN, WITHOUT EFFECT", "NCCL has these; the host device accepts them and has nothing that they could change:", ""]
    out += [roff(", ".join(silent)) + "."]
    out += listed("FILES", SETTINGS) + [".SH SEE ALSO", ".BR tutti\\-env (1),", ".BR tutti\\-run (1)"]
    return "\n".join(out) + "\n"


def page(tutti, version, command):
    text = subprocess.run([tutti, *([command] if command else []), "--help"], check=True, capture_output=True, text=True).stdout
    top = subprocess.run([tutti, "--help"], check=True, capture_output=True, text=True).stdout
    summaries = dict(SUMMARY.findall(top.split("commands:")[1].split("\n\n")[0]))
    name = f"tutti-{command}" if command else "tutti"
    summary = summaries[command] if command else text.splitlines()[0].split(": ", 1)[1]
    out = [f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "Tutti {version}" "Tutti"', ".ad l", ".nh", ".SH NAME", f"{roff(name)} \\- {roff(summary)}"]
    usage, rest = text.split("usage:", 1)[1].split("\n\n", 1)
    out += [".SH SYNOPSIS"] + literal([line.strip() for line in usage.splitlines() if line.strip()])
    for heading, lines in sections(rest):
        while lines and not lines[-1]:
            lines.pop()
        if lines:
            out += [f".SH {heading or 'DESCRIPTION'}"] + literal(lines)
    out += json_fields(command)
    table = variables(tutti)
    out += listed("ENVIRONMENT", [(name, table[name]["meaning"]) for name in READ.get(command, [])])
    out += [".PP", "All variables:", ".BR tutti\\-environment (7)."]
    if command in FILES:
        out += listed("FILES", FILES[command])
    out += listed("EXIT STATUS", STATUS.get(command, PLAIN_STATUS))
    others = [f"tutti-{c}" for c in summaries if c != command] + ([] if not command else ["tutti"])
    out += [".SH SEE ALSO"] + [f".BR {roff(o)} (1)," for o in sorted(others)] + [".BR tutti\\-environment (7)"]
    return "\n".join(out) + "\n"


if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
if sys.argv[3:] == ["--environment"]:
    sys.stdout.write(environment(*sys.argv[1:3]))
    sys.exit()
sys.stdout.write(page(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else ""))
