#!/bin/sh
# Build a program of two translation units and a module, and the example, with a compiler that knows kernels, and run them
# with our libraries. Skipped (77) without the compiler. clang needs no toolkit: it makes host code alone, against our
# headers, and registers kernels beside device code that is empty.
# usage: modules.sh nvcc|clang FOLDER_OF_LIBCUDART FOLDER_OF_LIBTUTTI_HOST ROOT
set -eu
compiler=$1 runtime=$(realpath "$2") host=$(realpath "$3") root=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
case $compiler in
nvcc)
    cuda=${CUDA_HOME:-/usr/local/cuda}
    [ -x "$cuda/bin/nvcc" ] || { echo "skipped: no nvcc"; exit 77; }
    major=$(awk '$2 == "CUDART_VERSION" {print int($3 / 1000)}' "$cuda/include/cuda_runtime_api.h")
    [ "$major" = 13 ] || { echo "skipped: nvcc of version $major"; exit 77; }
    build() { "$cuda/bin/nvcc" -cudart shared -std=c++17 -Xcompiler -fPIC -Wno-deprecated-gpu-targets "$@"; }
    into_module='-shared' rpath="-Xlinker -rpath,$runtime:$host" given= ;;
clang)
    command -v clang++ > /dev/null || { echo "skipped: no clang++"; exit 77; }
    echo "no device code" > "$folder/none.fatbin"
    # A toolkit that is there must not be looked at: without one clang needs to be told how kernels are launched.
    build() { clang++ -x cuda --cuda-host-only --cuda-path="$folder" -nocudainc -nocudalib -std=c++17 -fPIC \
        -Xclang -target-sdk-version=11.5 -Xclang -fcuda-include-gpubinary -Xclang "$folder/none.fatbin" \
        -I"$root/include/hostcuda" "$@"; }
    into_module='-shared' rpath="-Wl,-rpath,$runtime:$host" given='-include cuda_runtime.h' ;; # as nvcc does by itself
esac
here=$(dirname "$0")
link="-L$runtime -L$host -lcudart -ltutti-host $rpath"
for part in main part module; do
    build -I"$root/include" -c "$here/$part.cu" -o "$folder/$part.o"
done
build -I"$root/include" -DTUTTI -c "$root/examples/saxpy.cu" -o "$folder/saxpy.o"
c++ "$folder/module.o" $into_module -o "$folder/module.so" -L"$runtime" -L"$host" -lcudart -ltutti-host
c++ "$folder/main.o" "$folder/part.o" -o "$folder/main" -L"$runtime" -L"$host" -lcudart -ltutti-host -ldl \
    "-Wl,-rpath,$runtime:$host"
c++ "$folder/saxpy.o" -o "$folder/saxpy" -L"$runtime" -L"$host" -lcudart -ltutti-host "-Wl,-rpath,$runtime:$host"
build $given -c "$here/bare.cu" -o "$folder/bare.o"
c++ "$folder/bare.o" -o "$folder/bare" -L"$runtime" -L"$host" -lcudart -ltutti-host "-Wl,-rpath,$runtime:$host"
"$folder/bare"
"$folder/main" "$folder/module.so"
"$folder/saxpy"
