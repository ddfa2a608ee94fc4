#!/bin/sh
# Build the conformance programs against a CUDA runtime, run them there and print where it behaves otherwise than they
# expect. They use CUDA's interface alone, so NVIDIA's runtime takes them as ours does.
# usage: against-cuda.sh [CUDA_HOME]               NVIDIA's, by default in $CUDA_HOME or /usr/local/cuda
#        against-cuda.sh INCLUDE_FOLDER LIB_FOLDER  any other
# 0: no differences, 1: some, 77: there is no CUDA runtime, or no device (then everything is built and nothing run).
set -u
here=$(cd "$(dirname "$0")/../tests/unit/hostcuda" && pwd)
if [ $# = 2 ]; then
    include=$1 libs=$2
else
    cuda=${1:-${CUDA_HOME:-/usr/local/cuda}}
    include=$cuda/include libs=$cuda/lib64
fi
[ -f "$include/cuda_runtime.h" ] || { echo "skipped: no cuda_runtime.h in $include"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
differ=0

# report NAME STATUS FILE: what the program said, if it did not end well
report()
{
    [ "$2" = 0 ] && { echo "$1: as expected"; return; }
    differ=$((differ + 1))
    echo "$1: differs (status $2)"
    sed 's/^/    /' "$3" | tail -n 40
}

# build NAME SOURCE
build()
{
    compiler="${CC:-cc} -std=gnu17"
    [ "${2%.cpp}" = "$2" ] || compiler="${CXX:-c++} -std=gnu++17"
    $compiler -D_GNU_SOURCE -w -I"$include" "$2" -o "$folder/$1" -L"$libs" -L"$libs/stubs" \
        -Wl,-rpath,"$libs" -lcudart -lcuda -lpthread -ldl > "$folder/log" 2>&1 || report "$1, compiled" 1 "$folder/log"
}

# run NAME ARGUMENTS...
run()
{
    name=$1
    shift
    [ -x "$folder/$name" ] || return
    timeout 120 "$folder/$name" "$@" > "$folder/log" 2>&1
    report "$name $*" $? "$folder/log"
}

# Numbers, layouts and signatures of the headers, while they compile; symbols of the libraries.
facts=$here/../../abi
for header in cudart cuda; do
    ${CC:-cc} -std=gnu17 -w -I"$include" -c "$facts/assert_$header.c" -o "$folder/facts.o" > "$folder/log" 2>&1 ||
        report "facts of $header" 1 "$folder/log"
done
for library in libcudart.so.13:cudart13 stubs/libcuda.so:cuda; do
    [ -f "$libs/${library%:*}" ] || continue
    nm -D --defined-only "$libs/${library%:*}" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u > "$folder/theirs"
    sed '/^#/d; s/ .*//' "$here/../../../hostcuda/exports/${library#*:}.txt" | sort -u | diff - "$folder/theirs" \
        > "$folder/log" 2>&1 || report "symbols of ${library%:*} (< listed, > there)" 1 "$folder/log"
done

# Each program of the folder is in one of the two lists. The others need what Tutti alone has: devices as small as wanted,
# none, kernels in host code, two runtimes in one process, its list of functions, or calls that crash elsewhere.
others="driver driver_start endings short_memory surface_none unloading wanted"
once="runtime graphs nodes ipc surface_device surface_memory surface_stream surface_graph surface_driver
    blocks modules pooled pointers peers driver_graphs driver_codes driver_edits driver_pools driver_loaded
    undestroyed unmapping"
for name in $once litmus litmus_ipc; do
    build "$name" "$here/$name.c"
done
typed="runtime graphs nodes ipc"
for name in $typed; do # once more through C++, where calls meet the typed forms
    build "$name-typed" "$here/$name.cpp"
done
for source in "$here"/*.c; do
    name=$(basename "$source" .c)
    case " $(echo $once $others) litmus litmus_ipc " in
    *" $name "*) ;;
    *) echo "it is in no list of this script" > "$folder/log"; report "$name" 1 "$folder/log" ;;
    esac
done
cat > "$folder/device.c" <<'EOF'
#include <cuda_runtime.h>
#include <stdio.h>
int main(void)
{
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (!error && devices > 0) return 0;
    printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
    return 1;
}
EOF
build device "$folder/device.c"
if [ -x "$folder/device" ] && ! why=$("$folder/device"); then
    [ "$differ" = 0 ] || { echo "$differ programs do not build"; exit 1; }
    echo "skipped: all programs are built, and there is no device to run them on ($why)"
    exit 77
fi
for name in $once; do
    run "$name"
done
for name in $typed; do
    run "$name-typed"
done
for seed in 1 2 3 4; do
    run litmus "$seed"
    run litmus_ipc "$seed"
done
[ "$differ" = 0 ] && { echo "no differences"; exit 0; }
echo "$differ programs differ"
exit 1
