#!/usr/bin/env python3
"""record.py SOURCE_ROOT [--write] [--bytes N] [--build FOLDER]: what a warm AllReduce enters, from a build of the libraries
at -O0 with every function instrumented, compared with docs/walk.md: on one host when the peer's data has come and when it
is late, and over sockets. With --write the page is made to agree; with --build the instrumented build is kept there and
used again."""
import argparse, collections, os, re, subprocess, sys, tempfile

BEGIN, END = "<!-- recorded by tests/walk/record.py: %s -->\n```\n", "```\n<!-- end of the record -->"
SOCKETS = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"}
# name: what the program is told, the environment, whether the synchronise is recorded as well: with late data it waits,
# and how depends on the machine's load
WALKS = {"one host": ([], {}, True), "one host, late": (["late"], {}, False), "sockets": ([], SOCKETS, True)}
FLAGS = "-O0 -g -fno-inline -finstrument-functions"
LIBRARIES = {"src/libnccl.so.2": "nccl", "hostcuda/libcudart.so.13": "cudart"}
SKIP = 77
TRIES = 5  # a walk that differs is recorded again: over sockets the message may have been read ahead, or not


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def build(source, folder):
    if not os.path.isfile(os.path.join(folder, "build.ninja")):
        run("meson", "setup", folder, source, "--buildtype", "plain", "-Dtests=false", f"-Dc_args={FLAGS}")
    run("ninja", "-C", folder, *LIBRARIES)
    program = os.path.join(folder, "walk")
    run("cc", "-O0", "-g", "-rdynamic", f"-I{source}/include", f"-I{source}/include/hostcuda",
        os.path.join(source, "tests/walk/walk.c"), "-o", program,
        *(os.path.join(folder, library) for library in LIBRARIES),
        *(f"-Wl,-rpath,{folder}/{place}" for place in ("src", "hostcuda")), "-ldl")
    return program


def recorded(source, command, variables):
    """[(call or sync, depth, function, file)] at first entries."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("NCCL_", "TUTTI_", "CUDA_"))} | {"TUTTI_DEVICES": "2"} | variables
    lines = [line.split() for line in run("timeout", "60", *command, env=environment).splitlines()]
    addresses = collections.defaultdict(list)
    for _, _, library, address in lines:
        addresses[library].append(address)
    names = {}
    for library, where in addresses.items():
        out = run("addr2line", "-f", "-e", library, *(f"0x{address}" for address in where)).splitlines()
        for k, address in enumerate(where):
            path = os.path.realpath(os.path.join(os.path.dirname(library), re.sub(r":[\d?]+.*$", "", out[2 * k + 1])))
            names[library, address] = out[2 * k], os.path.relpath(path, source)
    return [(part, int(depth), *names[library, address]) for part, depth, library, address in lines]


def page_of(walk):
    """The record as the page shows it: a room's name where the walk goes to another one."""
    text, last = "", None
    for part, depth, function, path in walk:
        folder = os.path.dirname(path)
        if (part, folder) != last:
            text += f"{part}: {folder}\n"
            last = part, folder
        text += f"  {depth:2} {'  ' * (depth - 1)}{function}  {os.path.basename(path)}\n"
    return text


def text_of(walk, with_sync):
    calls = [step for step in walk if step[0] == "call"]
    count = f"{len(calls)} functions in the call, {max(step[1] for step in calls)} levels deep"
    if with_sync:
        return page_of(walk) + f"{count}, and {len(walk) - len(calls)} in the synchronise\n"
    return page_of(calls) + f"{count}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--bytes", type=int, default=8)
    parser.add_argument("--build")
    options = parser.parse_args()
    source = os.path.realpath(options.source)
    if subprocess.run(["which", "addr2line", "meson", "ninja"], stdout=subprocess.DEVNULL).returncode:
        print("no addr2line, meson or ninja")
        return SKIP
    path = os.path.join(source, "docs/walk.md")
    with open(path, encoding="utf-8") as page:
        before = after = page.read()
    with tempfile.TemporaryDirectory() as scratch:
        program = build(source, os.path.realpath(options.build or os.path.join(scratch, "b")))
        for name, (words, variables, with_sync) in WALKS.items():
            head, begin, rest = after.partition(BEGIN % name)
            for _ in range(TRIES):
                walk = recorded(source, [program, str(options.bytes), *words], variables)
                if not walk:
                    raise SystemExit("nothing was recorded: was the build instrumented?")
                text = text_of(walk, with_sync)
                if text == rest.partition(END)[0]:
                    break
            print(f"{name}:\n{text}")
            after = head + begin + text + END + rest.partition(END)[2]
    if options.bytes != 8 or after == before:
        return 0
    if options.write:
        with open(path, "w", encoding="utf-8") as page:
            page.write(after)
        return 0
    print("docs/walk.md shows another walk: tests/walk/record.py SOURCE_ROOT --write brings it up to date")
    return 1


sys.exit(main())
