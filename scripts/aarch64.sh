#!/bin/sh
# Builds Tutti for aarch64 on an x86-64 machine with Debian or Ubuntu, and runs tests of it in an emulator.
#   scripts/aarch64.sh FOLDER           builds, and runs the unit tests
#   scripts/aarch64.sh FOLDER --build   builds
#   scripts/aarch64.sh FOLDER TEST...   builds, and runs these tests (names as `meson test --list` prints them)
# FOLDER gets the libraries of the arm64 packages and the build. Needs root and the network: installs the cross compiler
# and qemu-user where they are missing, and lets the kernel start aarch64 programs (binfmt_misc) as long as it runs.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/scripts/setup.sh"
case "${1:-}" in
"" | -*) sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
install_missing "gcc-aarch64-linux-gnu:compiles for aarch64
g++-aarch64-linux-gnu:the same in C++
qemu-user:runs what it compiles"

# The libraries, by an apt of their own: this machine's packages stay as they are.
root=$folder/root
if [ ! -d "$root" ]; then
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
    : >"$folder/apt/status"
    apt() {
        apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$folder/apt/lists" \
            -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt" -o APT::Sandbox::User=root "$@"
    }
    apt update
    apt install -y --no-install-recommends --download-only libc6-dev libsodium-dev libhwloc-dev libexpat1-dev libjansson-dev \
        libcmocka-dev libstdc++6
    for package in "$folder"/apt/archives/*.deb; do dpkg -x "$package" "$folder/root.new"; done
    # some packages have /lib, some /usr/lib: one folder
    if [ -d "$folder/root.new/lib" ] && [ ! -L "$folder/root.new/lib" ]; then
        cp -an "$folder/root.new/lib/." "$folder/root.new/usr/lib/"
        rm -rf "$folder/root.new/lib"
        ln -s usr/lib "$folder/root.new/lib"
    fi
    mv "$folder/root.new" "$root"
fi
libraries=$root/usr/lib/aarch64-linux-gnu
cat >"$folder/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
cpp = 'aarch64-linux-gnu-g++'
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
pkg-config = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[properties]
sys_root = '$root'
pkg_config_libdir = '$libraries/pkgconfig'
[built-in options]
c_args = ['-idirafter', '$root/usr/include/aarch64-linux-gnu']
cpp_args = ['-idirafter', '$root/usr/include/aarch64-linux-gnu']
c_link_args = ['-Wl,-rpath-link,$libraries']
cpp_link_args = ['-Wl,-rpath-link,$libraries']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END

# Tests and the build start aarch64 programs by themselves.
formats=/proc/sys/fs/binfmt_misc
export QEMU_LD_PREFIX="$root"
[ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
if [ ! -e $formats/qemu-aarch64 ] && [ ! -e $formats/tutti-aarch64 ]; then
    trap 'echo -1 >$formats/tutti-aarch64' EXIT
    trap 'exit 130' INT TERM
    zeros='\x00\x00\x00\x00\x00\x00\x00\x00\x00' mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff'
    printf '%s' ":tutti-aarch64:M::\x7fELF\x02\x01\x01$zeros\x02\x00\xb7\x00:$mask\xfe\xff\xff\xff:$(command -v qemu-aarch64):" >$formats/register
fi
[ -d "$folder/build" ] || meson setup "$folder/build" "$here" --cross-file "$folder/cross.ini" --buildtype=release -Dtests=true >"$folder/setup.log" ||
    { cat "$folder/setup.log"; exit 1; }
ninja -C "$folder/build"
case "${1:-}" in
--build) exit 0 ;;
"") set -- --suite unit ;;
esac
meson test -C "$folder/build" --no-rebuild --print-errorlogs -t 5 "$@"
