#!/usr/bin/env python3
"""clang-tidy with the checks of .clang-tidy, all as errors. A suppression names its reason on the same line."""
import re, style

version = style.need("clang-tidy")
flags = style.compile_flags()
paths = [path for path in style.files(style.CODE, (".c",)) if path in flags]
# The analyser follows at most this many states of a function: a few functions would take it minutes.
BOUND = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000")]
rows = style.analyse("tidy", paths, lambda path: ["clang-tidy", "--quiet", *BOUND, path, "--"] + flags[path],
                     version + style.read(".clang-tidy"))
findings = sorted({(m[1] if (m := re.match(re.escape(style.ROOT) + r"/?([^:]+)", line)) else path,
                    line.replace(style.ROOT + "/", ""))
                   for path, lines in rows for line in lines if re.search(r"(warning|error): ", line)})
findings = [row for row in findings if row[0].startswith(style.CODE)]  # public headers obey their ABI, not us
for path in style.files(style.ALL):
    for number, line in enumerate(style.read(path).splitlines(), 1):
        if re.search(r"NOLINT(NEXTLINE|BEGIN)?(\([^)]*\))?:?\s*(\*/)?\s*$", line):
            findings.append((path, f"{path}:{number}: this suppression gives no reason"))
style.report("tidy", f"{len(paths)} files, {len(findings)} findings (limit 0)", findings)
