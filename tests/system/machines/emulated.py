#!/usr/bin/env python3
"""emulated.py TUTTI PROGRAM MACHINES_FOLDER [few]: devices that emulate a machine (NCCL_TOPO_FILE): NVLink domains over hosts, parts that
do not come up, limits on channels and interleaved hosts, each compared with what `tutti topo export` says, and sums are right.
With `few` each branch once, of few ranks and channels: for sanitizers."""
import os, re, sys
from machines import FOLDER, bad, compare, good, layout, says

GB200, DGXH100 = (os.path.join(FOLDER, name + ".xml") for name in ("c08-gb200-tray", "c06-dgxh100"))

quick = (1, 64)  # minCTAs, maxCTAs: the defaults

domain = dict(NCCL_MNNVL_UUID="77")
broken = dict(domain, TUTTI_MACHINE_FAULTS="fabric")
multicast = dict(TUTTI_MACHINE_FAULTS="multicast")

if "few" in sys.argv[4:]:
    says(good(GB200, 4, 2, 1, 4, **domain), "MNNVL 1 cliqueId 0 cliqueSize 4 cliqueRank 3", "nNodes 1 localRanks 4")
    bad("NVLink domain of 4 ranks does not work", GB200, 4, 2, 1, 4, **broken)
    says(good(DGXH100, 4, 4, 1, 4, **multicast), "going on with other transports")
    sys.exit()

# two hosts in one NVLink domain are one node; four hosts in two cliques are two
logs = good(GB200, 8, 4, *quick, **domain)
compare("NVLink domain", logs, layout(GB200, "--nodes", "1", "--clique", "2"))
says(logs, "MNNVL busId 0x6000 fabric UUID 4d.4d cliqueId 0x0 state 3", "MNNVL 1 cliqueId 0 cliqueSize 8 cliqueRank 7",
     "nRanks 8 nNodes 1 localRanks 8 localRank 7 MNNVL 1", "GPU/1-1906000 (7)")
logs = good(GB200, 16, 4, *quick, prefix="NCCL_MNNVL_CLIQUE_ID=$((RANK / 8))", **domain)
compare("two cliques", logs, layout(GB200, "--nodes", "2", "--clique", "2"))
says(logs, "cliqueId 1 cliqueSize 8 cliqueRank 0", "nNodes 2 localRanks 8 localRank 7 MNNVL 1")

# a host alone in its clique sees the same nodes as the others; no rack has a serial number
logs = good(GB200, 3, 1, *quick, prefix="NCCL_MNNVL_CLIQUE_ID=$((RANK / 2 ? 5 : -2))", **domain)
says(logs, "NCCL_MNNVL_CLIQUE_ID is -2", "cliqueId 0 cliqueSize 2 cliqueRank 1", "nNodes 2 localRanks 1 localRank 0 MNNVL 0")

# switched off, without P2P, not all ranks in it: hosts are nodes of their own
apart = layout(GB200, "--nodes", "2")
compare("NCCL_MNNVL_ENABLE=0", good(GB200, 8, 4, *quick, NCCL_MNNVL_ENABLE="0", **domain), apart)
compare("one host not in it", good(GB200, 8, 4, *quick, prefix="NCCL_MNNVL_UUID=$((RANK / 4 - 1))"), apart)
logs = good(GB200, 8, 4, *quick, NCCL_P2P_LEVEL="LOC", **domain)
compare("NCCL_P2P_LEVEL=LOC", logs, layout(GB200, "--nodes", "2", NCCL_P2P_LEVEL="LOC"))
says(logs, "MNNVL is off", "MNNVL 0")

# a domain that does not work is an error unless switched off; there is none, or none of several hosts: no error
bad("NVLink domain of 8 ranks does not work", GB200, 8, 4, *quick, **broken)
compare("broken and off", good(GB200, 8, 4, *quick, NCCL_MNNVL_ENABLE="0", **broken), apart)
alone = layout(GB200, "--nodes", "1")
compare("broken on one host", good(GB200, 4, 4, *quick, **broken), alone)
bad("NVLink domain of 4 ranks does not work", GB200, 4, 4, *quick, NCCL_MNNVL_ENABLE="1", **broken)
compare("no domain to be broken", good(GB200, 8, 4, *quick, TUTTI_MACHINE_FAULTS="fabric"), apart)
says(good(GB200, 1, 1, *quick, TUTTI_MACHINE_FAULTS="multicast,farbic"),
     "'farbic' is no part that can fail and has no effect (accepted: fabric, multicast); did you mean fabric?")

# multicast that does not come up is done without unless demanded
without = layout(DGXH100, NCCL_NVLS_ENABLE="0")
assert without["nvls_channels"] == 0
logs = good(DGXH100, 8, 8, *quick, **multicast)
compare("no multicast", logs, without)
says(logs, "NVLS multicast support is available on dev 3", "going on with other transports")
bad("NCCL_NVLS_ENABLE=1 demands it", DGXH100, 8, 8, *quick, TUTTI_MACHINE_FAULTS="fabric,multicast", NCCL_NVLS_ENABLE="1")
compare("multicast off", good(DGXH100, 8, 8, *quick, **multicast, NCCL_NVLS_ENABLE="0"), without)
compare("multicast demanded", good(DGXH100, 8, 8, *quick, NCCL_NVLS_ENABLE="1"), layout(DGXH100))

# limits on channels: config and variables do the same as the export's variables
for least, most in ((40, 0), (0, 5), (12, 12)):
    limits = {name: str(value) for name, value in (("NCCL_MIN_CTAS", least), ("NCCL_MAX_CTAS", most)) if value}
    compare(f"config minCTAs {least}, maxCTAs {most}", good(DGXH100, 8, 8, least, most), layout(DGXH100, **limits))
for limits in (dict(NCCL_MIN_CTAS="30", NCCL_MAX_CTAS="31"), dict(NCCL_MIN_NCHANNELS="28"), dict(NCCL_MAX_NCHANNELS="3")):
    compare(" ".join(f"{k}={v}" for k, v in limits.items()), good(DGXH100, 8, 8, 2, 20, **limits),
            layout(DGXH100, **{**dict(NCCL_MIN_CTAS="2", NCCL_MAX_CTAS="20"), **limits}))

# a collective network that no plugin offers changes nothing but a line
logs = good(GB200, 8, 4, *quick, NCCL_COLLNET_ENABLE="1")
compare("NCCL_COLLNET_ENABLE=1", logs, apart)
says(logs, "CollNet is off: the devices emulate a machine, which has no programs of it")
says(good(GB200, 4, 4, *quick, NCCL_COLLNET_ENABLE="1"), "CollNet is off: 1 node, NCCL_COLLNET_NODE_THRESHOLD is 2")

# ranks dealt out to hosts in turn
logs = good(GB200, 8, 1, *quick, prefix="export NCCL_HOSTID=host$((RANK % 2)) CUDA_VISIBLE_DEVICES=$((RANK / 2));")
says(logs, "nNodes 2 localRanks 4 localRank 3 MNNVL 0")
rings = [[int(r) for r in ring.split()] for ring in re.findall(r"INFO Channel \d+/\d+ :((?: +\d+)+)$", logs, re.M)]
assert len(rings) == apart["channels"], f"interleaved: {len(rings)} channels"
for ring, dealt in zip(rings, (apart["rings"][c] for c in apart["ring_of_channel"])):
    assert ring == [2 * (r % 4) + r // 4 for r in dealt], f"interleaved: {ring}, of neighbours it would be {dealt}"
print("ranks dealt out in turn: the same rings by other names")
