#!/usr/bin/env python3
"""Every header compiles alone: ours as C, the public ones as C and C++."""
import os, shlex, style

CC, CXX = shlex.split(os.environ.get("CC", "cc")), shlex.split(os.environ.get("CXX", "c++"))
FLAGS = ["-fsyntax-only", "-D_GNU_SOURCE", "-Iinclude", "-Iinclude/hostcuda", "-Isrc", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-function", "-Wno-psabi"]
style.need("cc")
private = style.files(style.CODE, (".h",))
public = [path for path in style.files(("include",), (".h",))]


def as_c(path):
    return CC + FLAGS + ["-std=gnu17", "-include", path, "-x", "c", "/dev/null"]


def as_cxx(path):
    return CXX + [f for f in FLAGS if f != "-Wextra"] + ["-std=c++17", "-include", path, "-x", "c++", "/dev/null"]


rows = style.analyse("headers-c", private + public, as_c, "1") + style.analyse("headers-cxx", public, as_cxx, "1")
findings = [(path, f"{path}: {next((l for l in lines if 'error' in l), lines[0])}") for path, lines in rows if lines]
style.report("headers", f"{len(private)} private and {len(public)} public headers, {len(findings)} do not compile alone "
             "(limit 0)", findings)
