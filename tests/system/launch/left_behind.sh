#!/bin/sh
# A job whose launcher is killed with SIGKILL ends, and leaves no process and no file. A job on a host whose /dev/shm is
# full, or cannot be written, runs: shared memory has no name there. Exit 77 (the first part was played) where no mount
# namespace can be made.
# usage: left_behind.sh TUTTI
set -u
tutti=$1
perf=$(dirname "$tutti")/tutti-perf
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
export TUTTI_DEVICES=3

fail() {
    cat "$folder/log"
    echo "$1"
    exit 1
}

# Seconds pass until the command is true; else the job has failed.
within() { # SECONDS WHAT COMMAND...
    end=$(($(date +%s) + $1)) what=$2
    shift 2
    until "$@"; do
        [ "$(date +%s)" -lt $end ] || fail "$what"
        sleep 0.1
    done
}

all_began() {
    [ "$(cat "$folder"/pids/* 2>/dev/null | wc -l)" = 3 ] && grep -q "Init COMPLETE" "$folder/log"
}

all_ended() {
    for pid in $(cat "$folder"/pids/*); do
        kill -0 "$pid" 2>/dev/null && return 1
    done
    return 0
}

for way in 0 1; do # memory, sockets
    mkdir "$folder/pids" "$folder/tmp"
    NCCL_P2P_DISABLE=$way NCCL_SHM_DISABLE=$way NCCL_DEBUG=INFO TMPDIR=$folder/tmp "$tutti" run -n 3 \
        sh -c 'echo $$ >"$0/pids/$$"; exec "$1" -b 8 -e 8 -n 1000000000' "$folder" "$perf" >"$folder/log" 2>&1 &
    launcher=$!
    within 90 "the job did not begin" all_began
    kill -KILL $launcher
    wait $launcher 2>/dev/null
    within 30 "ranks go on without their launcher" all_ended
    [ -z "$(ls -A "$folder/tmp")" ] || fail "left behind: $(ls -A "$folder/tmp")"
    rm -r "$folder/pids" "$folder/tmp"
done

unshare -m true 2>/dev/null || exit 77
for options in size=4k ro; do
    unshare -m sh -c 'mount -t tmpfs -o "$0" tmpfs /dev/shm && { head -c 9000 /dev/zero >/dev/shm/full 2>/dev/null
        "$1" run -n 3 "$2" -b 8 -e 1M -n 2 -w 1; }' $options "$tutti" "$perf" >"$folder/log" 2>&1 ||
        fail "a job fails where /dev/shm is $options"
done
