#!/usr/bin/env python3
"""export.py TUTTI FOLDER PATTERN: `tutti topo export` of the machines whose results of NCCL lie in FOLDER under names that match
PATTERN, value for value: whatever of nodes, links, paths, access, graphs, layouts, cost model and choices a result has. Numbers
may differ by 1e-4 of themselves. Skipped (77) when nothing matches."""
import glob, json, os, subprocess, sys

# Facts about the reference, not about the machine.
NOT_ASKED = {"schema", "topology", "xml_sha256", "reference", "environment", "hosts_in_clique", "gpu_count", "load_order",
             "order_sensitive", "split_by_net_preference"}
# One field of one result is known to be wrong: it was made with NICs that the machine does not have.
FLAWED = ("gvisor-b200-vm.expected.json", "p2p_channels_per_peer")


def differences(wanted, found, where, name):
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if key in NOT_ASKED and where == "" or (name, key) == FLAWED:
                continue
            if not isinstance(found, dict) or key not in found:
                yield f"{where}.{key}: missing"
                continue
            yield from differences(value, found[key], f"{where}.{key}", name)
    elif isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            yield f"{where}: {found!r:.80}, NCCL has {wanted!r:.80}"
            return
        for i, value in enumerate(wanted):
            yield from differences(value, found[i], f"{where}[{i}]", name)
    elif isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        if not isinstance(found, (int, float)) or abs(found - wanted) > 1e-4 * max(abs(wanted), 1e-9):
            yield f"{where}: {found!r}, NCCL has {wanted!r}"
    elif found != wanted:
        yield f"{where}: {found!r}, NCCL has {wanted!r}"


def export(tutti, path, wanted):
    nodes = ",".join(str(s["nodes"]) for s in wanted["scenarios"])
    command = [tutti, "topo", "export", os.path.join(os.path.dirname(path), wanted["topology"]), "--json", "--nodes", nodes]
    if wanted.get("hosts_in_clique", 1) > 1:
        command += ["--clique", str(wanted["hosts_in_clique"])]
    if wanted.get("load_order"):
        command += ["--load-order", wanted["load_order"]]
    settings = dict(word.split("=", 1) for word in wanted.get("environment", "").split() if "=" in word)
    result = subprocess.run(command, env=dict(os.environ, **settings), capture_output=True, text=True, timeout=120)
    if result.returncode:
        return {"error": result.stderr}
    return json.loads(result.stdout)


def main():
    tutti, folder, pattern = sys.argv[1:4]
    failed = checked = 0
    for path in sorted(glob.glob(os.path.join(folder, pattern))):
        name = os.path.basename(path)
        wanted = json.load(open(path))
        found = list(differences(wanted, export(tutti, path, wanted), "", name))
        checked += 1
        failed += bool(found)
        for line in found[:5]:
            print(f"{name}{line}")
    print(f"{checked} results, {failed} differ")
    sys.exit(failed > 0 if checked else 77)


main()
