#!/usr/bin/env python3
"""clang-format has nothing to change."""
import subprocess, style

version = style.need("clang-format")
paths = style.files(style.ALL + ("include",), (".c", ".h", ".cpp", ".cu"))
rows = style.analyse("format", paths, lambda path: ["clang-format", "--dry-run", "-Werror", path],
                     version + style.read(".clang-format"))
findings = [(path, next(line for line in lines if line.strip())) for path, lines in rows
            if any(line.strip() for line in lines)]
style.report("format", f"{len(paths)} files, {len(findings)} not formatted (limit 0)", findings)
