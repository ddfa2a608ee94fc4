"""What tests of devices that emulate machines share: ranks that run and log, and what `tutti topo export` says."""
import json, os, re, subprocess, sys, tempfile

TUTTI, PROGRAM, FOLDER = sys.argv[1:4]
os.environ["NCCL_ALGO"] = "^NVLS,NVLSTree,PAT"


def run(machine, ranks, gpus, *arguments, prefix="", **variables):
    """Exit status, what was printed, what was logged."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, NCCL_TOPO_FILE=machine, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,GRAPH,NVLS,NET",
                           NCCL_DEBUG_FILE=os.path.join(folder, "log.%p"), **variables)
        command = [TUTTI, "run", "-n", str(ranks), "sh", "-c", f"{prefix} exec \"$@\"", "sh", PROGRAM, str(gpus)]
        result = subprocess.run(command + [str(a) for a in arguments], env=environment, capture_output=True, text=True, timeout=240)
        logs = "".join(open(os.path.join(folder, name)).read() for name in sorted(os.listdir(folder)))
    return result.returncode, result.stdout + result.stderr, logs


def good(*arguments, **options):
    status, printed, logs = run(*arguments, **options)
    assert status == 0, f"{arguments} {options}: exit {status}\n{printed}"
    return logs


def bad(sentence, *arguments, **options):
    status, printed, _ = run(*arguments, **options)
    assert status and sentence in printed, f"{arguments} {options}: exit {status}, no '{sentence}' in:\n{printed}"


def layout(machine, *arguments, **variables):
    text = subprocess.run([TUTTI, "topo", "export", machine, "--json", "--load-order", "fused", *arguments], check=True,
                          capture_output=True, text=True, env=dict(os.environ, **variables)).stdout
    return json.loads(text)["scenarios"][0]["layout"]


def compare(what, logs, expected):
    rings = {int(c): [int(r) for r in ranks.split()] for c, ranks in re.findall(r"INFO Channel (\d+)/\d+ :((?: +\d+)+)$", logs, re.M)}
    counts = re.search(r"(\d+) coll channels, 0 collnet channels, (\d+) nvls channels, (\d+) p2p channels, (\d+) p2p", logs)
    found = tuple(map(int, counts.groups()))
    wanted = tuple(expected[key] for key in ("channels", "nvls_channels", "p2p_channels", "p2p_channels_per_peer"))
    assert found == wanted, f"{what}: channels {found}, export says {wanted}"
    for c in range(expected["channels"]):
        ring = expected["rings"][expected["ring_of_channel"][c]]
        assert rings[c] == ring, f"{what}: channel {c} runs {rings[c]}, export says {ring}"
    print(f"{what}: {wanted[0]} channels as exported")


def says(logs, *texts):
    for text in texts:
        assert text in logs, f"not logged: {text}"
