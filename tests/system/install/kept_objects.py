#!/usr/bin/env python3
"""Lays out a compiler that knows the objects of a build: FOLDER/cc copies the object of a command that the build has run
in the same words, and calls the real compiler for anything else. A file that the object was made of and that is not in
the new copy of the sources is so noticed as well. Objects older than what they were made of are left out, and the tests'.
usage: kept_objects.py BUILD_DIR FOLDER
"""
import json, os, shlex, shutil, subprocess, sys

# "known/OUTPUT" is the object, ".words" its command, ".d" what it was made of.
COMPILER = r"""#!/bin/sh
known=${0%/*}/known/$(before=
    for word; do
        [ "$before" != -o ] || echo "$word"
        before=$word
    done)
if [ -f "$known" ] && [ "$*" = "$(cat "$known.words")" ]; then
    missing=
    for file in $(sed 's/^[^:]*://' "$known.d"); do
        [ -e "$file" ] || missing=$file
    done
    if [ -z "$missing" ]; then
        output=${known#"${0%/*}/known/"}
        cp "$known" "$output" && exec cp "$known.d" "$output.d"
    fi
fi
PATH=${PATH#*:} exec cc "$@"
"""

# meson puts a compiler cache before the compiler, which would take this one for new at each run.
CACHE = """#!/bin/sh
case "$1" in
-*) PATH=${PATH#*:} exec ccache "$@" ;;
*) exec "$@" ;;
esac
"""


def made_of(build):
    """What each object was made of, as ninja noted it; only of objects that are up to date."""
    said = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for part in said.split("\n\n"):
        lines = part.splitlines()
        if lines and lines[0].endswith("(VALID)"):
            yield lines[0].split(":")[0], [line.strip() for line in lines[1:]]


def main(build, folder):
    known = os.path.join(folder, "known")
    os.makedirs(known)
    with open(os.path.join(build, "compile_commands.json")) as file:
        words = {row["output"]: shlex.split(row["command"].removeprefix("ccache ")) for row in json.load(file)}
    for output, files in made_of(build):
        if output.startswith("tests/"):
            continue
        time = lambda path: os.stat(os.path.join(build, path)).st_mtime
        if words.get(output, [""])[0] != "cc" or not all(os.path.exists(os.path.join(build, path)) for path in files):
            continue
        if max(map(time, files)) > time(output):
            continue
        there = os.path.join(known, output)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copyfile(os.path.join(build, output), there)
        with open(there + ".words", "w") as file:
            file.write(" ".join(words[output][1:]))
        with open(there + ".d", "w") as file:
            file.write(f"{output}: {' '.join(files)}\n")
    for name, text in [("cc", COMPILER)] + ([("ccache", CACHE)] if shutil.which("ccache") else []):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
        os.chmod(os.path.join(folder, name), 0o755)


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
