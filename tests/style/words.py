#!/usr/bin/env python3
"""Identifiers have words of the field. Words that stood for something else here, or for several things, stay out: no part
of an identifier in snake case is in BANNED, no page of docs/ has a phrase of PROSE, and no code, comment or page has one of
PERSONS: they name threads, ranks and processes. Messages in quotes are not judged."""
import re, style

BANNED = {  # word: what to write instead
    "told": "reported, announced", "ntold": "nreported", "settle": "wait, finish, reclaim", "settled": "complete, checked",
    "board": "call_log, shared", "meeting": "bootstrap, barrier, exchange", "meetings": "barriers", "ticket": "sequence number",
    "shot": "eager", "memo": "cache", "birth": "init", "guest": "client, joiner", "guests": "clients",
    "keeper": "root, holder", "stranger": "unauthenticated", "elder": "parent", "latch": "spinlock", "lesson": "calibration",
    "knock": "probe, connect", "bell": "wake", "vain": "failed", "star": "hub", "spoke": "identified", "entrust": "move ownership",
    "crew": "threads, jobs", "desk": "role", "errand": "attempt", "doors": "entry points", "ways": "methods, paths",
    "placed": "assigned, located", "struck": "injected", "strike": "inject", "crowd": "oversubscribed",
    "strand": "out_block, thread", "strands": "out_blocks, threads", "patience": "timeout", "nap": "sleep, backoff", "alike": "same, equal", "nalike": "nsame",
    "wish": "request, config, requested", "wishes": "requests, config", "wished": "requested, expected",
    "seat": "rank, slot, report", "seats": "ranks, slots, reports", "nseats": "nranks, nslots",
    "tell": "report, print", "tells": "reports", "hear": "receive", "hears": "receives", "heard": "received", "lone": "single",
    "lift": "adapt", "resting": "retired", "bury": "retire, free", "leaver": "deferred free", "leavers": "deferred frees",
    "accuse": "report a mismatch", "dozing": "backing off", "rung": "woken", "crowds": "oversubscribed", "card": "NIC, GPU",
    "heralded": "announced", "misjudged": "mispredicted", "foresee": "predict",
    "nobody": "none, no rank", "somebody": "any, a thread", "anybody": "any", "everybody": "all",
    "scene": "scenario, fixture", "scenes": "scenarios, fixtures", "naps": "sleeps",
}
PROSE = (r"\bthe meeting\b", r"\bletters? (?:comes?|came)\b", r"\bmeeting place\b", r"\bthe board of\b", r"\bare told once\b",
         r"\bis told (?:once|at once)\b", r"\bWho (?:waits|frees|asks|posts|sends|knows|needs|does)\b(?![^.]*\?)", r"\bin vain\b")

PERSONS = r"\b(?:[Nn]obody|(?:[Ss]ome|[Aa]ny|[Ee]very)(?:body|one))\b(?:'s)?|\b[Ww]hoever\b|\bthe house\b"

findings = []
paths = style.files(style.ALL + ("examples",), (".c", ".h", ".cu"))
for path in paths:
    code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', style.strip_comments(style.read(path)))
    for number, line in enumerate(code.splitlines(), 1):
        for name in set(re.findall(r"[A-Za-z_]\w+", line)):
            findings += [(path, f"{path}:{number}: {name}: not {word} but {BANNED[word]}")
                         for word in name.lower().split("_") if word in BANNED]
for path in style.files(style.ALL + ("examples",), (".c", ".h", ".cu", ".cc", ".cpp")):
    lines = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', style.read(path)).splitlines()
    findings += [(path, f"{path}:{number}: '{found[0]}': which thread, rank or process?")
                 for number, line in enumerate(lines, 1) for found in re.finditer(PERSONS, line)]
for path in style.files(("docs",), (".md",)) + ["README.md", "CONTRIBUTING.md"]:
    lines = re.sub(r"`[^`\n]*`", "``", style.read(path)).splitlines()
    findings += [(path, f"{path}:{number}: '{found[0]}': which thread, rank or process?")
                 for number, line in enumerate(lines, 1) for found in re.finditer(PERSONS, line)]
pages = style.files(("docs",), (".md",))
for path in pages:
    for number, line in enumerate(style.read(path).splitlines(), 1):
        findings += [(path, f"{path}:{number}: '{found[0]}'") for phrase in PROSE for found in re.finditer(phrase, line)]
style.report("words", f"{len(paths)} files and {len(pages)} pages, {len(findings)} words of no field (limit 0)", findings)
