#!/bin/sh
# Installs into an empty folder and builds against it as strangers do: pkg-config, plain compilers, a Makefile and a CMake
# file that know NVIDIA's layout only, a CMake file that asks for us; runs examples/ under every launcher at hand.
# usage: install.sh BUILD_DIR SOURCE_DIR
set -eu
build=$1 source=$2
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
unset NCCL_HOME NCCL_ROOT CUDA_HOME CUDA_PATH CUDAToolkit_ROOT CPATH LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH
DESTDIR=$there meson install -C "$build" --no-rebuild >"$there/log" 2>&1 || { cat "$there/log"; exit 1; }
prefix=$there/usr/local
tutti=$prefix/bin/tutti
home=$prefix/lib/tutti
fail() { echo "install: $1"; [ ! -f "$there/said" ] || tail -n 30 "$there/said"; exit 1; }
ok() { "$@" >"$there/said" 2>&1 || fail "$*"; }

# What is where. Nothing that lies in a shared folder has a name of NVIDIA's.
for file in lib/libnccl.so.2 lib/libnccl.so lib/libcudart.so.13 lib/libcudart.so.12 lib/libcudart.so lib/libcuda.so.1 lib/libcuda.so \
    lib/libtutti-host.so.1 lib64/libcudart.so include/nccl.h include/cuda_runtime.h include/tutti.h nccl/include/nccl.h \
    nccl/include/nccl_device/core.h nccl/lib/libnccl.so.2 nccl/lib64/libnccl.so bin/tutti-perf; do
    [ -e "$home/$file" ] || fail "$file is missing"
done
[ "$(ls "$prefix")" = "$(printf 'bin\ninclude\nlib\nshare')" ] || fail "something lies beside bin, include, lib and share: $(ls "$prefix")"
[ "$(ls "$prefix/include")" = hostcuda ] && [ -e "$prefix/include/hostcuda/nccl.h" ] || fail "include holds $(ls "$prefix/include")"
[ -e "$home/libnccl.so.2" ] && [ -e "$home/libcudart.so" ] || fail "a library's short path is missing"
[ "$(ls "$prefix/lib")" = "$(printf 'cmake\npkgconfig\ntutti')" ] || fail "lib holds $(ls "$prefix/lib")"
[ -z "$(find "$home/nccl/" -name '*cuda*')" ] || fail "CUDA's files lie in nccl/"
[ "$("$tutti" env --home)" = "$home" ] || fail "tutti env --home"
[ "$("$tutti" env --machines)" = "$prefix/share/tutti/machines" ] || fail "tutti env --machines"
for file in "$prefix"/share/tutti/machines/*.xml; do
    ok "$tutti" topo show "$file"
done
"$home/bin/nvcc" --version | grep -q 'release 13.0, V13.0.0$' || fail "nvcc --version"
! "$home/bin/nvcc" -c x.cu 2>"$there/said" && grep -q 'no device compiler' "$there/said" || fail "nvcc compiles"

# pkg-config brings a runpath; from a shell of `env --shell` nothing needs to be told.
(
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    flags=$(pkg-config --cflags --libs tutti)
    ! pkg-config --exists nccl || [ "$(pkg-config --variable=home nccl)" != "$home" ] || fail "nccl.pc lies in a shared folder"
    ${CC:-cc} -o "$there/c" "$source/tests/programs/process_per_device.c" $flags
    cp "$source/tests/programs/process_per_device.c" "$there/p.cc"
    ${CXX:-c++} -I"$source/tests/programs" -o "$there/cpp" "$there/p.cc" $flags
)
ok "$there/c"
ok "$tutti" run -n 3 "$there/c"
ok "$tutti" run -n 2 "$there/cpp"
ok "$tutti" perf --ranks 2 -b 8 -e 8 -n 2 allreduce
"$tutti" version --json | grep -q '"nccl": "2.32.3"' || fail "tutti version"

# The examples by their Makefile, with nothing but the two variables.
pages=$prefix/share/doc/tutti
for file in README.md docs/troubleshooting.md docs/net-plugin-guide.md docs/pictures; do
    [ -e "$pages/$file" ] || fail "$file is not installed"
done
cp -r "$pages/examples" "$there/examples"
cd "$there/examples"
ln -s "$home" "$there/a folder"
ok make split NCCL_HOME="$there/a folder" CUDA_HOME="$there/a folder"
ok make NCCL_HOME="$home" CUDA_HOME="$home"
for name in allreduce streams_graph split nonblocking; do
    ok "$tutti" run -n 4 "./$name"
done
TUTTI_DEVICES=4 ok "$tutti" run ./devices
grep -q '4 devices: 0 wrong' "$there/said" || fail "devices"
ok c++ -std=c++11 saxpy.cpp -I"$home/include" -L"$home/lib" -lcudart -ltutti-host -o saxpy
ok "$tutti" run ./saxpy
for kind in net tuner env; do
    ok make libnccl-$kind-example.so NCCL_HOME="$home" CUDA_HOME="$home"
    ok "$tutti" plugin check ./libnccl-$kind-example.so
done
ok make clean
ok "$tutti" plugin check tutti --kind tuner # ours, by name

# As eval "$(tutti env --shell)" leaves it: quiet, and whole for compilers, CMake, man.
"$tutti" env --shell >"$there/shell"
. "$there/shell"
command -v tutti >/dev/null || fail "PATH"
[ -z "$(NCCL_DEBUG=WARN tutti run -n 1 "$there/c" 2>&1 | grep WARN)" ] || fail "a variable of env --shell makes the library talk"
ok cc allreduce.c -o allreduce -lnccl -lcudart
ok c++ devices.cpp -o devices -lnccl -lcudart
ok ./allreduce
ok pkg-config --exists 'nccl >= 2.32'
if command -v man >/dev/null; then ok man -w tutti-run; fi
python=
for one in python3 /usr/bin/python3; do
    if [ -z "$python" ] && $one -c 'import numpy' 2>/dev/null; then python=$one; fi
done
if [ -n "$python" ]; then ok tutti run -n 3 $python numpy_sum.py; else echo "not tried: numpy_sum.py (python3-numpy)"; fi
for mpi in openmpi mpich; do
    if ! command -v mpicc.$mpi >/dev/null || ! command -v mpirun.$mpi >/dev/null; then
        echo "not tried: mpi.c with $mpi"
        continue
    fi
    rm -f mpi
    ok make mpi MPICC=mpicc.$mpi NCCL_HOME="$home" CUDA_HOME="$home"
    [ $mpi = mpich ] && options= || options="--allow-run-as-root --oversubscribe"
    ok mpirun.$mpi $options -n 3 ./mpi
done
if ! command -v cmake >/dev/null; then
    echo "not tried: CMake"
    echo "install: ok"
    exit 0
fi
ok cmake -B build
grep -q "Found CUDAToolkit: $home/include" "$there/said" || fail "FindCUDAToolkit took another toolkit"
ok cmake --build build
ok ctest --test-dir build
mkdir "$there/ours"
cat >"$there/ours/CMakeLists.txt" <<'end'
cmake_minimum_required(VERSION 3.18)
project(ours C)
find_package(tutti 0.1 REQUIRED)
add_executable(ours ../examples/allreduce.c)
target_link_libraries(ours tutti::nccl)
end
ok cmake -S "$there/ours" -B "$there/ours/within" # with LIBRARY_PATH, for whose folders CMake adds no runpath
ok cmake --build "$there/ours/within"
unset NCCL_HOME NCCL_ROOT CUDA_HOME CUDA_PATH CUDAToolkit_ROOT CPATH LIBRARY_PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH
ok "$there/ours/within/ours"
ok cmake -S "$there/ours" -B "$there/ours/build" -DCMAKE_PREFIX_PATH="$prefix"
ok cmake --build "$there/ours/build"
ok "$there/ours/build/ours"
echo "install: ok"
