#!/usr/bin/env python3
"""Includes point down the house only, in the order of the rooms in src/meson.build and of the sub-rooms in a room's or
an outbuilding's; the outbuildings see what they may."""
import style

ORDER = style.rooms()
SEEN_FROM = {  # outbuildings; all see include/
    "hostcuda": {"device", "base"},
    "plugins": set(),
    "bench": set(),
    "tools": {"topo", "program", "tune", "plugin", "base"},  # plugin: `tutti plugin check` drives what it hosts
}


def complaint(path, target):
    here, there = style.room_of(path), style.room_of(target)
    if here == there:
        up = style.climbs_inside(path, target)
        return f"points up from {style.sub_room_of(path)} to {style.sub_room_of(target)}" if up else None
    if not target.startswith("src/"):
        return None
    if here in ORDER:
        if there not in ORDER:
            return f"{there} is no room"
        return "points up the house" if ORDER.index(there) > ORDER.index(here) else None
    if target.startswith("src/exec/sim/") and here == "tools":
        return None
    return None if there in SEEN_FROM.get(here, ORDER) else f"{here}/ may not see {there}/"


findings, edges = [], 0
for path in style.files(style.CODE + ("bench",)):
    for line, header in style.includes(path):
        if header in ("cuda.h", "cuda_runtime_api.h") and path.startswith("src/") \
                and not path.startswith(("src/device/cuda/", "src/exec/cuda/")):
            findings.append((path, f"{path}:{line}: {header} belongs to device/cuda and exec/cuda alone"))
        target = style.resolve(path, header)
        if not target:
            continue
        edges += 1
        text = complaint(path, target)
        if text:
            findings.append((path, f"{path}:{line}: include of {target} {text}"))
style.report("layering", f"{edges} includes between project files, pointing up {len(findings)} (limit 0)", findings)
