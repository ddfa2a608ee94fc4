#!/usr/bin/env python3
"""cppcheck finds nothing: warnings, performance, portability; those that cppcheck.txt lists."""
import re, style

version = style.need("cppcheck")
FLAGS = ["--quiet", "--enable=warning,performance,portability", "--std=c11", "--inline-suppr", "--error-exitcode=1",
         "--suppress=missingIncludeSystem", "--suppress=unknownMacro", "--suppress=readdirCalled", "-D__x86_64__", "-D_GNU_SOURCE",
         "-Iinclude", "-Iinclude/hostcuda", "-Isrc", "--template={file}:{line}: {severity}: {message} [{id}]"]
# CUDA 12's functions take other arguments than CUDA 13's of the same name, whose header cppcheck sees.
FLAGS += [f"--suppress=funcArgOrderDifferent:hostcuda/versions/{name}.c" for name in ("v12", "v12_streams")]
paths = style.files(style.CODE, (".c",))
rows = style.analyse("cppcheck", paths, lambda path: ["cppcheck"] + FLAGS + [path], version)
COUNTS = {word for line in style.read("tests/style/cppcheck.txt").splitlines() if line[:1] != "#" for word in line.split()}
findings = sorted({(line.split(":")[0], line) for _, lines in rows for line in lines
                   if (m := re.match(r"\S+:\d+: .*\[(\w+)\]$", line)) and m[1] in COUNTS})
style.report("cppcheck", f"{len(paths)} files, {len(findings)} findings (limit 0)", findings)
