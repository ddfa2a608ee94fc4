#!/usr/bin/env python3
"""Length of functions, files and headers, and the number of parameters."""
import re, style

FUNCTION, FILE, HEADER, PARAMS = 60, 800, 250, 6
# Signatures that are not ours: the public APIs, and tables of foreign ABIs (listed with the reason).
PUBLIC = re.compile(r"^(p?nccl|cuda|cu|tutti)[A-Z]")
foreign = style.listed("foreign_signatures.txt")

findings = []
functions = [t for t in style.tags(style.files(style.ALL)) if t.kind == "function"]
lengths = [t.end - t.line + 1 for t in functions if t.path.startswith(style.CODE)]
for tag in functions:
    length = tag.end - tag.line + 1
    if length > FUNCTION:
        findings.append((tag.path, f"{tag.path}:{tag.line}: {tag.name} has {length} lines (limit {FUNCTION})"))
    if tag.params > PARAMS and not PUBLIC.match(tag.name) and (tag.name, tag.path) not in foreign:
        findings.append((tag.path, f"{tag.path}:{tag.line}: {tag.name} has {tag.params} parameters (limit {PARAMS})"))
sizes = {path: style.read(path).count("\n") for path in style.files(style.ALL)}
for path, size in sizes.items():
    limit = HEADER if path.endswith(".h") else FILE
    if size > limit:
        findings.append((path, f"{path}: {size} lines (limit {limit})"))
p = style.percentile
style.report("lengths", f"functions median {p(lengths, .5)} (aim 12), p95 {p(lengths, .95)} (aim 45), max "
             f"{max(lengths, default=0)} (limit {FUNCTION}); files p95 {p(sizes.values(), .95)} (aim 500), max "
             f"{max(sizes.values(), default=0)} (limit {FILE}, headers {HEADER})", findings)
