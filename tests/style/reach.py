#!/usr/bin/env python3
"""How many project headers a source file sees, transitively, and that no header sees itself."""
import style

LIMIT, AIM = 30, 15
memo, findings = {}, []
sources = style.files(style.CODE, (".c",))
# CUDA cuts its runtime header into many: they are one to the reader.
counts = {path: len({"hostcuda" if "include/hostcuda" in str(seen) else seen
                     for seen in style.reach(path, memo)}) for path in sources}
for path, count in counts.items():
    if count > LIMIT:
        findings.append((path, f"{path}: sees {count} project headers"))
for path in style.files(style.CODE + ("include",), (".h",)):
    if path in style.reach(path, memo):
        findings.append((path, f"{path}: includes itself in a circle"))
values = list(counts.values())
style.report("reach", f"median {style.percentile(values, .5)} (aim {AIM}), p95 {style.percentile(values, .95)}, "
             f"max {max(values, default=0)} (limit {LIMIT})", findings)
