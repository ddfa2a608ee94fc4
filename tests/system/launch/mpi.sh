#!/bin/sh
# mpi.sh openmpi|mpich PROGRAM.c SOURCE BUILD: compiles an MPI program against our libraries and starts it, also with
# more ranks than the usual number of devices: by its own launcher and, where that speaks PMI, by ours. Skipped (77) where that MPI is not installed.
set -eu
mpi=$1 program=$2 source=$3 build=$4
compiler=mpicc.$mpi launcher=mpirun.$mpi
if ! command -v "$compiler" >/dev/null || ! command -v "$launcher" >/dev/null; then
    echo "$compiler and $launcher are not installed"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
libraries=$build/src:$build/hostcuda
$compiler -o "$folder/program" "$program" -I"$source/include" -I"$source/include/hostcuda" -L"$build/src" -L"$build/hostcuda" \
    -lnccl -lcudart
options=
[ "$mpi" = mpich ] || options="--allow-run-as-root --oversubscribe"
for ranks in 1 3 10; do
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$libraries timeout 60 "$launcher" $options -n $ranks "$folder/program"
    [ "$mpi" = mpich ] || continue
    timeout 60 "$build/tools/tutti" run --no-prefix -n $ranks "$folder/program" >"$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
    [ "$(cat "$folder/said")" = "$ranks ranks, 0 wrong" ] || { cat "$folder/said"; exit 1; }
done
if [ "$mpi" = openmpi ]; then # it does not start there: said, and no success
    status=0
    timeout 60 "$build/tools/tutti" run -n 2 "$folder/program" >"$folder/said" 2>&1 || status=$?
    if [ "$status" = 0 ] || ! grep -q 'MPI_Init makes 2 programs of one rank each' "$folder/said"; then
        echo "tutti run: status $status"
        cat "$folder/said"
        exit 1
    fi
    exit 0
fi
# Even and odd ranks make ids of their own, for communicators that are made at the same time.
timeout 60 "$build/tools/tutti" run --own-ids --no-prefix -n 5 "$folder/program" halves >"$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
[ "$(sort "$folder/said" | tr '\n' ';')" = "2 ranks, 0 wrong;3 ranks, 0 wrong;" ] || { cat "$folder/said"; exit 1; }
