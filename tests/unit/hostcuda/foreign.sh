#!/bin/sh
# Compile a program against NVIDIA's own headers (or with nvcc) and run it with our libraries. Skipped (77) without them.
# usage: foreign.sh SOURCE FOLDER_OF_LIBCUDART FOLDER_OF_LIBTUTTI_HOST ROOT
set -eu
source=$1 runtime=$2 host=$3 root=$4
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -f "$cuda/include/cuda_runtime.h" ] || { echo "skipped: no CUDA headers in $cuda"; exit 77; }
major=$(awk '$2 == "CUDART_VERSION" {print int($3 / 1000)}' "$cuda/include/cuda_runtime_api.h")
[ "$major" = 13 ] || { echo "skipped: CUDA headers of version $major"; exit 77; }
program=$(mktemp)
trap 'rm -f "$program"' EXIT
case $source in
*.cu)
    [ -x "$cuda/bin/nvcc" ] || { echo "skipped: no nvcc"; exit 77; }
    build()
    {
        "$cuda/bin/nvcc" -cudart shared -std=c++17 -I"$root/include" "$source" -o "$program" -L"$runtime" -L"$host" \
            -lcudart -ltutti-host -Xlinker -rpath,"$runtime:$host" "$@" 2> "$program.log" ||
            { cat "$program.log"; rm -f "$program.log"; exit 1; }
        rm -f "$program.log"
    }
    build -rdc=true -compress-mode=size # linked on the device, its code packed
    TUTTI_DEVICES=4 "$program"
    build ;;
*) ${CXX:-c++} -std=c++17 -I"$cuda/include" "$source" -o "$program" -L"$runtime" -lcudart \
    -Wl,-rpath,"$runtime:$host" ;;
esac
TUTTI_DEVICES=4 "$program"
