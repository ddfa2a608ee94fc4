#!/bin/sh
# Kernels of others that communicate compile with every compiler at hand; what needs a device communicator ends the
# process with a sentence. So do kernels that call what CUDA gives to device code.
# usage: device_api.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kernels=$source/tests/unit/hostcuda/device_api.cu
includes="-I$source/include -I$source/include/hostcuda"
for standard in 11 17; do
    # shellcheck disable=SC2086
    ${CXX:-c++} -x c++ -std=c++$standard -Wall -Wextra -Werror $includes "$kernels" -x none -o "$folder/program" \
        "$build/src/libnccl.so.2" "$build/hostcuda/libcudart.so.13" -Wl,-rpath,"$build/src:$build/hostcuda"
done
[ "$("$folder/program")" = "teams: 0 wrong" ] || { "$folder/program"; exit 1; }
for call in sync:ncclLsaBarrierSession::sync signal:ncclGin::readSignal; do
    (ulimit -c 0; "$folder/program" "${call%%:*}") >"$folder/said" 2>&1 && { echo "$call: no end"; exit 1; }
    grep -q "tutti: ${call#*:} needs a device communicator, which a host device does not have" "$folder/said" || { cat "$folder/said"; exit 1; }
done
if command -v clang++ >/dev/null; then
    # shellcheck disable=SC2086
    clang++ -x cuda --cuda-host-only -nocudainc -nocudalib -Xclang -target-sdk-version=11.5 $includes -include cuda_runtime.h \
        -std=c++17 -c "$kernels" -o "$folder/clang.o"
    echo >"$folder/none.fatbin"
    # shellcheck disable=SC2086
    clang++ -x cuda --cuda-host-only -nocudainc -nocudalib -Xclang -target-sdk-version=11.5 $includes -include cuda_runtime.h \
        -Xclang -fcuda-include-gpubinary -Xclang "$folder/none.fatbin" -std=c++17 -Wall -Werror -Wno-unknown-cuda-version \
        -c "$source/tests/unit/hostcuda/intrinsics.cu" -o "$folder/intrinsics.o"
    ${CXX:-c++} "$folder/intrinsics.o" -o "$folder/intrinsics" "$build/hostcuda/libcudart.so.13" -Wl,-rpath,"$build/src:$build/hostcuda"
    "$folder/intrinsics" 2>"$folder/said"
    grep -q 'kernel .*curves.* has no host implementation' "$folder/said"
else
    echo "not tried: clang++"
fi
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
if [ -x "$nvcc" ]; then
    "$nvcc" -cudart shared -arch=sm_90 -std=c++17 -I"$source/include" -c "$kernels" -o "$folder/nvcc.o"
    # As a Makefile does that takes our folder for NCCL and for CUDA: nvcc's own CUDA headers are used all the same.
    cat >"$folder/both.cu" <<'END'
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <nccl.h>
#include <nccl_device.h>
__global__ void twice(float *to, ncclWindow_t window) { *to *= 2; (void)ncclGetLsaPointer(window, 0, 0); }
int main() { ncclUniqueId id; twice<<<1, 1>>>(nullptr, nullptr); return ncclGetUniqueId(&id); }
END
    # shellcheck disable=SC2086
    "$nvcc" -arch=sm_90 -std=c++17 $includes -Xcompiler -Wall,-Werror -o "$folder/both" "$folder/both.cu" \
        -Xlinker "$build/hostcuda/libcudart.so.13" -Xlinker "$build/src/libnccl.so.2"
else
    echo "not tried: nvcc"
fi
