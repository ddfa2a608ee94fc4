#!/bin/sh
# Two ranks in a control group with a quota of one core share it, also where the group that is limited is their group's
# parent; with a quota of two cores they do not. A real group of the cpu controller where one can be made (version 1 or
# 2), and in any case a container's view of version 2, of which only the file is imitated. Exit 77 (skipped) where
# neither is allowed.
# usage: quota.sh TUTTI
set -u
tutti=$1
perf=$(dirname "$tutti")/tutti-perf
tried=0

group=
cleanup() {
    [ -n "$group" ] || return 0
    rmdir "$group/inner" "$group" 2>/dev/null
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# $1: 1 when two ranks share a core; then what brings a command into its group
expect() {
    shared=$1
    shift
    log=$(TUTTI_DEVICES=2 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT "$@" "$tutti" run -n 2 "$perf" -b 8 -e 8 -n 2 -w 1 2>&1) ||
        { echo "$log"; exit 1; }
    echo "$log" | grep -q "2 ranks of this host share 1 core" && found=1 || found=0
    [ $found = "$shared" ] && return
    echo "$log" | grep -E "INIT|share"
    echo "quota $quota in $where: the ranks share a core: $found, expected $shared"
    exit 1
}

inside() { # FOLDER COMMAND...
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$@"
}

cores=$(nproc)
share_of_two=0
[ "$cores" -lt 2 ] && share_of_two=1

real() { # $1: a folder in which groups can be made
    group=$1/tutti-quota-$$
    mkdir -p "$group/inner" 2>/dev/null || { group=; return; }
    where=$group
    if [ -e "$group/cpu.cfs_quota_us" ]; then
        set_quota() { echo "$1" >"$group/cpu.cfs_quota_us"; }
    elif [ -e "$group/cpu.max" ]; then
        set_quota() { echo "$1 100000" >"$group/cpu.max"; }
    else
        return
    fi
    for quota in 200000 100000; do
        set_quota $quota 2>/dev/null || return
        [ $quota = 100000 ] && expect 1 inside "$group/inner" || expect $share_of_two inside "$group/inner"
    done
    tried=$((tried + 1))
    echo "a real group, $group: ok"
}

if [ "$(id -u)" = 0 ] && [ -e /sys/fs/cgroup/cpu/cgroup.procs ]; then
    real /sys/fs/cgroup/cpu
elif [ "$(id -u)" = 0 ] && grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
    real /sys/fs/cgroup
fi

# In a container with a cgroup namespace the own group is the root of what is mounted.
container() { # QUOTA COMMAND...
    unshare --mount --cgroup sh -c 'mount -t tmpfs none /sys/fs/cgroup && echo "$0 100000" >/sys/fs/cgroup/cpu.max && exec "$@"' "$@"
}
if container max true 2>/dev/null; then
    where="a container's view"
    quota=max
    expect $share_of_two container max
    quota=100000
    expect 1 container 100000
    tried=$((tried + 1))
    echo "a container's view: ok"
fi
[ $tried -gt 0 ] || { echo "SKIP: no control groups can be made or imitated here"; exit 77; }
