#!/bin/sh
# Programs under an MPI's launcher, which knows nothing of us: one with MPI calls, compiled by its own compiler against
# the installed files, and the measuring program, which has none. Exit 77 (skipped) where this MPI is not installed.
# usage: mpi.sh openmpi|mpich BUILD_DIR SOURCE_DIR
set -eu
mpi=$1 build=$2 source=$3
run=mpirun.$mpi
for tool in mpicc.$mpi $run; do
    command -v "$tool" >/dev/null || { echo "SKIP: no $tool (Debian: openmpi-bin libopenmpi-dev, mpich libmpich-dev)"; exit 77; }
done
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
DESTDIR=$there meson install -C "$build" --no-rebuild >"$there/log" 2>&1 || { cat "$there/log"; exit 1; }
export PKG_CONFIG_PATH=$there/usr/local/lib/pkgconfig
mpicc.$mpi -o "$there/program" "$source/tests/programs/mpi_process_per_device.c" $(pkg-config --cflags --libs tutti)
[ "$mpi" = openmpi ] && set -- --allow-run-as-root --oversubscribe || set --
for ranks in 1 4 9; do
    timeout 50 "$run" "$@" -n $ranks "$there/program" | grep -q "$ranks ranks ok" || { echo "mpi: $ranks ranks failed"; exit 1; }
done
NCCL_COMM_ID=127.0.0.1:$((20000 + $$ % 10000)) timeout 50 "$run" "$@" -n 3 "$there/usr/local/lib/tutti/bin/tutti-perf" \
    -b 8 -e 4K -n 2 allreduce alltoall >"$there/out" || { cat "$there/out"; exit 1; }
grep -q 'Out of bounds values : 0 OK' "$there/out" || { cat "$there/out"; exit 1; }
echo "mpi: $mpi ok"
