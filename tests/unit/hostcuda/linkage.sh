#!/bin/sh
# What `tutti run` says of programs that nothing can redirect: functions of the runtime or of NCCL inside, device code
# without a shared runtime, a DT_RPATH that finds other libraries. Other programs, scripts and cut files: not a word.
# usage: linkage.sh TUTTI
set -eu
tutti=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir theirs empty
: > theirs/libcudart.so.12
echo 'int main(void) { return 0; }' > main.c
echo 'int cudaMalloc(void **p, unsigned long n) { (void)p; (void)n; return 35; }' > runtime.c
echo 'int ncclCommInitRank(void) { return 3; }' > nccl.c
echo 'const int code __attribute__((section(".nv_fatbin"))) = 1;' > device.c
cc=${CC:-cc}
$cc main.c -o plain
$cc main.c runtime.c -o with_runtime
$cc main.c nccl.c -o with_nccl
$cc main.c device.c -o with_device && strip with_device
$cc main.c -o with_rpath -Wl,--disable-new-dtags "-Wl,-rpath,\$ORIGIN/theirs"
$cc main.c -o with_runpath -Wl,--enable-new-dtags "-Wl,-rpath,\$ORIGIN/theirs"
$cc main.c -o with_other_rpath -Wl,--disable-new-dtags "-Wl,-rpath,\$ORIGIN/empty"
head -c 700 with_runtime > cut && chmod +x cut
printf '#!/bin/sh\nexit 0\n' > script && chmod +x script
failed=0
says() { # PROGRAM, WORD or "" for silence
    "$tutti" run "./$1" 2> said > /dev/null || true
    grep "^tutti: .*$folder/$1 " said > complaints || true
    if [ -n "$2" ]; then
        grep -q -- "$2" complaints || { echo "$1: no complaint with '$2'"; cat said; failed=1; }
    elif [ -s complaints ]; then
        echo "$1: complaint without a reason"; cat said; failed=1
    fi
}
says plain ""
says script ""
says cut ""
says with_runtime "nvcc -cudart shared"
says with_device "nvcc -cudart shared"
says with_nccl "lnccl, the shared library"
says with_rpath "enable-new-dtags"
says with_runpath ""
says with_other_rpath ""
# An MPI library knows its own launcher only; one rank is one rank everywhere.
echo 'int MPI_Init(void) { return 0; }' > mpi.c
$cc -shared -fPIC mpi.c -o libmpi.so.40 -Wl,-soname,libmpi.so.40
$cc main.c -o with_mpi -Wl,--no-as-needed ./libmpi.so.40
says with_mpi ""
"$tutti" run -n 3 ./with_mpi 2> said > /dev/null || true
grep -q "$folder/with_mpi is linked to an MPI library (libmpi.so.40).*mpirun -n 3" said || { echo "with_mpi: no word about mpirun"; cat said; failed=1; }
"$tutti" run --device cuda ./with_runtime 2> said > /dev/null || true
! grep -q "nvcc -cudart" said || { echo "complaint though the CUDA device was asked for"; failed=1; }
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
if [ -x "$nvcc" ]; then
    printf '__global__ void k() {}\nint main() { k<<<1, 1>>>(); return 0; }\n' > real.cu
    "$nvcc" real.cu -o real_static && says real_static "nvcc -cudart shared"
    "$nvcc" -cudart shared real.cu -o real_shared && says real_shared ""
fi
exit $failed
