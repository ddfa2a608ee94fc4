#!/bin/sh
# slurm.sh TUTTI: ranks as srun starts them (SLURM_PROCID and its kind, no other launcher), which meet at
# NCCL_COMM_ID without handing an id over, with a secret in a file. `tutti perf` is one of them and starts none.
set -eu
tutti=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(umask 077 && head -c 32 /dev/urandom >"$folder/secret")
# Below the ports that the kernel gives to others.
port=$((20000 + $$ % 12000))
libraries=$(dirname "$(dirname "$tutti")")
export NCCL_COMM_ID=127.0.0.1:$port TUTTI_SECRET_FILE=$folder/secret TUTTI_INIT_TIMEOUT=30
export LD_LIBRARY_PATH=$libraries/src:$libraries/hostcuda
export SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=3 SLURM_TASKS_PER_NODE=3
pids=
for rank in 2 1 0; do
    SLURM_PROCID=$rank SLURM_LOCALID=$rank timeout 60 "$tutti" perf -b 8 -e 64K -f 64 -n 2 -w 1 allreduce >"$folder/$rank" 2>&1 &
    pids="$pids $!"
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
cat "$folder/0" "$folder/1" "$folder/2"
[ $failed = 0 ]
grep -q '3 ranks in 3 processes' "$folder/0"
