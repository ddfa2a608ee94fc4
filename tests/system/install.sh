#!/bin/sh
# Installs into an empty folder and uses it as a stranger would: pkg-config with cc and c++, tutti run, tutti env.
# usage: install.sh BUILD_DIR SOURCE_DIR
set -eu
build=$1 source=$2
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
DESTDIR=$there meson install -C "$build" --no-rebuild >"$there/log" 2>&1 || { cat "$there/log"; exit 1; }
prefix=$there/usr/local
fail() { echo "install: $1"; exit 1; }
for file in bin/tutti lib/tutti/libnccl.so.2 lib/tutti/libnccl.so lib/tutti/libcudart.so.13 lib/tutti/libcudart.so.12 \
    lib/tutti/libcudart.so lib/tutti/libcuda.so.1 lib/tutti/libcuda.so lib/tutti/libtutti-host.so.1 include/nccl.h \
    include/hostcuda/cuda_runtime.h lib/pkgconfig/tutti.pc; do
    [ -e "$prefix/$file" ] || fail "$file is missing"
done
[ -z "$(ls "$prefix/lib" | grep -v -e '^tutti$' -e '^pkgconfig$')" ] || fail "something lies in lib/ beside tutti/"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
flags=$(pkg-config --cflags --libs tutti)
${CC:-cc} -o "$there/c" "$source/tests/programs/process_per_device.c" $flags
cp "$source/tests/programs/process_per_device.c" "$there/p.cc"
${CXX:-c++} -I"$source/tests/programs" -o "$there/cpp" "$there/p.cc" $flags
"$there/c" | grep -q ok || fail "a program built by pkg-config does not run by itself"
"$prefix/bin/tutti" run -n 3 "$there/c" | grep -q ok || fail "tutti run of the C program"
"$prefix/bin/tutti" run -n 2 "$there/cpp" | grep -q ok || fail "tutti run of the C++ program"
"$prefix/bin/tutti" perf --ranks 2 -b 8 -e 8 -n 2 allreduce >/dev/null || fail "tutti perf"
"$prefix/bin/tutti" version --json | grep -q '"nccl": "2.30.7"' || fail "tutti version"
(eval "$("$prefix/bin/tutti" env --shell)" && command -v tutti >/dev/null && tutti env NCCL_DEBUG | grep -q NCCL_DEBUG) ||
    fail "tutti env --shell"
echo "install: ok"
