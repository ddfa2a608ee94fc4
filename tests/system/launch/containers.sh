#!/bin/sh
# Ranks of one machine in containers of several kinds: every odd rank has namespaces of its own, or may not make some
# system calls. They connect by what a probe proves, and the results are right. Exit 77 (skipped) where it is not allowed.
# usage: containers.sh TUTTI FORBID mount|uts|ipc|pid|user|cgroup|all|no-shm|no-ptrace|no-unix|no-memfd|nothing
set -u
tutti=$1 forbid=$2 kind=$3
perf=$(dirname "$tutti")/tutti-perf
via=P2P/CUMEM

skip() { echo "SKIP: $1"; exit 77; }
hide_shm='mount -t tmpfs -o ro none /dev/shm &&'
case $kind in
mount) into="unshare --mount" ;;
uts) into="unshare --uts" ;;
ipc) into="unshare --ipc" ;;
pid) into="unshare --pid --fork --kill-child --mount-proc" ;;
user) into="unshare --user --map-root-user" ;;
cgroup) into="unshare --cgroup" ;;
all) into="unshare --mount --uts --ipc --cgroup --pid --fork --kill-child --mount-proc" ;;
no-shm) into="unshare --mount sh -c '$hide_shm exec \"\$@\"' sh" ;;
no-ptrace) into="$forbid ptrace" ;;
no-unix) into="$forbid unix" via=NET/Socket ;;
no-memfd) into="$forbid memfd" via=NET/Socket ;;
nothing) into="unshare --mount --ipc --pid --fork --kill-child --mount-proc sh -c '$hide_shm exec \"\$@\"' sh $forbid unix,memfd,ptrace"
    via=NET/Socket ;;
*) echo "unknown kind $kind"; exit 2 ;;
esac
eval "$into true" 2>/dev/null || skip "not allowed here: $into"

run() { # the rank decides where it runs
    "$tutti" run -n 4 sh -c "if [ \$((RANK % 2)) = 1 ]; then exec $into \"\$@\"; else exec \"\$@\"; fi" sh "$perf" "$@"
}
export TUTTI_DEVICES=4
NCCL_DEBUG=WARN run -b 8 -e 256K -f 32 -n 2 -w 1 || exit 1
log=$(NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ALL run -b 64K -e 64K -n 1 -w 0 alltoall 2>&1) || { echo "$log"; exit 1; }
echo "$log" | grep -q "0\[.\] -> 1\[.\].* via $via" || { echo "$log" | grep -E "via|WARN|local"; echo "rank 0 does not reach rank 1 via $via"; exit 1; }
echo "containers: $kind: ok, via $via"
