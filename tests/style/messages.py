#!/usr/bin/env python3
"""docs/troubleshooting.md has every message: what library and tools print at WARN, ATTN and above and what calls leave in
ncclGetLastError is read from the sources; a message without a row fails, and so does a row whose message is gone.
In a row, a text in backticks in the middle column is part of a message, … stands for anything."""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = "docs/troubleshooting.md"
# Function: place of the format among its arguments. Of snprintf() that which fills a `sentence`.
SAY = {"tt_fail": 1, "tt_warn": 0, "tt_attn": 0, "tt_warn_setting": 0, "tt_plugin_refused": 1, "tuttiHostWarn": 0, "tt_tree_fail": 3, "tt_root_fail": 2, "report_death": 2,
       "conclude": 2, "tt_transport_mismatch": 1, "tt_service_refused": 0, "tuner_complain": 2, "trace_complain": 0, "timeline_complain": 3,
       "ofi_fail": 1, "ofi_comm_fail": 2, "tutti_usage_error": 1, "fprintf": 1, "snprintf": 2}
# Functions with a format that print no message of their own: those below the ones above, text that is no warning, and what is said
# behind words that have a row ("... is refused: ...", "... is damaged: ...").
QUIET = {"tt_fail_at", "tt_log_at", "tt_log_plugin", "tt_warn_setting_at", "tt_error_keep", "tt_plugin_log", "emit_text", "complain", "trace_say",
         "add", "answer", "append", "fill", "put", "set", "line", "say", "introduce", "report", "ofi_say", "out_print", "picture_print", "report_add", "text_add",
         "tt_msccl_note", "tt_msccl_refuse", "mistake", "refuse", "damaged", "tt_verify_fail", "fail_output", "tt_topo_note", "check_breach", "trace_find", "trace_note"}
FORMAT = re.compile(r"format\(printf, \d+, \d+\)\)\)")
LEAST_LETTERS = 6  # of a message: what has less is said by others; of a pattern: what has less would cover anything
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONVERSION = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j)?[a-zA-Z]")


def arguments(text, at):
    """The arguments of a call whose '(' is at `at`."""
    depth, args, begin = 0, [], at + 1
    while True:
        char = text[at]
        if char in "\"'":
            end = at + 1
            while text[end] != char:
                end += 2 if text[end] == "\\" else 1
            at = end
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if char == "," and depth == 1 or depth == 0:
            args.append(text[begin:at])
            begin = at + 1
        if depth == 0:
            return args
        at += 1


def as_said(literal):
    """A format as its reader sees it: … for what differs, without colours and newlines."""
    text = literal.replace('\\"', '"').replace("%%", "\0")
    text = CONVERSION.sub("…", re.sub(r'\\[a-z0-7]+(\[K)?', "", text))
    return text.replace("\0", "%").strip()


def letters(text):
    return len(re.sub(r"[^A-Za-z]", "", re.sub(r"^tutti (env|perf|run|topo|tune): ", "", text)))


def messages(path, text):
    """Formats of the calls of a file; what has hardly a letter of its own is a message of other code."""
    for call in re.finditer(r"\b(%s)\s*\(" % "|".join(SAY), text):
        name, args = call[1], arguments(text, call.end() - 1)
        place = SAY[name]
        if len(args) <= place or name == "fprintf" and (args[0].strip() != "stderr" or "\\r" in args[1]):
            continue
        if name == "snprintf" and "sentence" not in args[0]:
            continue
        said = as_said("".join(LITERAL.findall(args[place])))
        if letters(said) >= LEAST_LETTERS:
            yield path, said + ("; `…` shows the usage" if name == "tutti_usage_error" else "")
    for literal in LITERAL.findall(text):
        if literal.startswith(("tutti check: ", "NCCL_DEBUG: ", "NCCL_DEBUG_FILE: ")) and literal != "tutti check: ":
            yield path, as_said(literal)


def unknown():
    """Functions with a format (attribute before or behind the declaration) that are in neither list."""
    for folder in ("src", "hostcuda", "plugins", "tools"):
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                with open(os.path.join(where, name), encoding="utf-8") as file:
                    text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S) if name.endswith((".c", ".h")) else ""
                for found in FORMAT.finditer(text):
                    before = text[:found.start()].rstrip().removesuffix("__attribute__((").rstrip()
                    declared = re.search(r"(\w+)\s*\([^()]*\)$", before) or re.search(r"(\w+)\s*\(", text[found.end():])
                    if declared[1] not in SAY and declared[1] not in QUIET:
                        yield os.path.relpath(os.path.join(where, name), ROOT), declared[1]


def sources():
    for folder in ("src", "hostcuda", "include/nccl_device", "plugins", "tools"):
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(".c") or folder.startswith("include"):
                    path = os.path.join(where, name)
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, ROOT), re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)


def patterns():
    with open(os.path.join(ROOT, PAGE), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cells = re.split(r"(?<!\\)\|", line)
            if line.startswith("|") and len(cells) == 5:
                for text in re.findall(r"``\s?(.+?)\s?``|`([^`]+)`", cells[2]):
                    yield number, "".join(text).replace("\\|", "|")


def expression(pattern):
    return re.compile(".*".join(re.escape(part) for part in pattern.split("…")))


def main():
    said = list(dict.fromkeys(message for path, text in sources() for message in messages(path, text)))
    others = "".join(as_said("".join(LITERAL.findall(text))) for _, text in sources())
    for name in ["run", "test", "scripts/setup.sh", "scripts/install/nvcc.in"]:
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            others += file.read()
    rows = [(number, pattern, expression(pattern)) for number, pattern in patterns()]
    missing = [m for m in said if not any(row[2].search(m[1]) for row in rows)]
    stale = [row for row in rows if not any(row[2].search(m[1]) for m in said)
             and not all(part.strip() in others for part in row[1].split("…"))]
    vague = [row for row in rows if letters(row[1]) < LEAST_LETTERS]
    for path, message in missing:
        print(f"  {path}: no row of {PAGE} has '{message}'")
    for number, pattern, _ in stale:
        print(f"  {PAGE}:{number}: nothing says '{pattern}'")
    for number, pattern, _ in vague:
        print(f"  {PAGE}:{number}: '{pattern}' would cover anything")
    strange = list(unknown())
    for path, name in strange:
        print(f"  {path}: {name}() takes a format: SAY or QUIET of this test should have it")
    mend = len(missing) + len(stale) + len(vague) + len(strange)
    print(f"messages: {len(said)} read, {len(rows)} patterns, {mend} to mend")
    sys.exit(mend != 0)


main()
