#!/usr/bin/env python3
"""Function-like macros and conditional compilation, per 1000 lines; every file opens by saying what it is for."""
import re, style

MACROS, CONDITIONS = 3.0, 2.0
paths = style.files(("src",))
code = {path: style.strip_comments(style.read(path)) for path in paths}
lines = sum(sum(bool(line.strip()) for line in text.splitlines()) for text in code.values())
macros = sum(len(re.findall(r"^\s*#\s*define\s+\w+\(", text, re.M)) for text in code.values())
conditions = sum(len(re.findall(r"^\s*#\s*if", text, re.M)) for path, text in code.items()
                 if not path.startswith("src/base/arch/"))
per_1000 = 1000 / max(lines, 1)
findings = []
if macros * per_1000 > MACROS:
    findings.append(("src", f"{macros} function-like macros in {lines} lines"))
if conditions * per_1000 > CONDITIONS:
    findings.append(("src", f"{conditions} #if in {lines} lines"))
for path in style.files(style.ALL):
    if not style.read(path).startswith(("/*", "//")):
        findings.append((path, f"{path}:1: does not open with what the file is for"))
style.report("preprocessor", f"macros per 1000 lines {macros * per_1000:.1f} (limit {MACROS}, aim 1), #if "
             f"{conditions * per_1000:.1f} (limit {CONDITIONS}, aim 1)", findings)
