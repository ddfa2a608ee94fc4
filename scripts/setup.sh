# Sourced by ./run and ./test: finds out what is missing on this machine, installs it on Debian and Ubuntu, and
# configures the build. Plain POSIX sh; says what it does and why. Needs the network only when something is missing.

# package: why we need it
packages_build="gcc:compiles Tutti
g++:compiles programs written in C++ against our headers
libc6-dev:headers of the C library
meson:configures the build
ninja-build:runs the build
pkg-config:finds libraries
libhwloc-dev:tells what machine this is
libexpat1-dev:reads machine files
libjansson-dev:writes JSON
libsodium-dev:authenticates peers
python3:makes tables and manual pages"
packages_test="libcmocka-dev:runs unit tests
universal-ctags:measures functions for the style checks
clang:second compiler and analyser
clang-format:checks the format
clang-tidy:analyses the code
cppcheck:analyses the code
iproute2:makes hosts of network namespaces
nftables:drops packets in the test of a lossy link
procps:looks at processes in tests
make:builds the examples in tests
git:lists the files to check"
packages_package="build-essential:what Debian packages are built with
git:lists the sources
libfabric-dev:for the network plugin over it
libibverbs-dev:for the network over InfiniBand and RoCE
libdw-dev:for the stacks of tutti doctor
debhelper:builds Debian packages
fakeroot:makes their files root's"
# Without these a test is skipped, by name, or a plugin is not built.
packages_wanted="debhelper:builds Debian packages in a test
fakeroot:the same
lintian:looks at them
debootstrap:makes a fresh system to install them in
cmake:builds the examples in tests
cadical:answers the search for programs in a test
python3-numpy:runs one of the examples
mkdocs:makes the documentation's site
librsvg2-2:measures the texts of pictures
fonts-dejavu-core:their fonts
valgrind:counts the instructions of a conversion in a test
chromium:shows the page of a trace in a test
openmpi-bin:starts programs in the tests of Open MPI
libopenmpi-dev:compiles them
mpich:starts programs in the tests of MPICH
libmpich-dev:compiles them
libfabric-dev:the network plugin over libfabric is built
libibverbs-dev:the network over InfiniBand and RoCE is built
libdw-dev:tutti doctor shows stacks
libopen-trace-format2-dev:tutti trace writes archives of OTF2
otf2-tools:reads them in a test
python3-otf2:the same, with what belongs to each event"

missing_packages() { # $1: list; prints the names that are not installed
    printf '%s\n' "$1" | while IFS=: read -r name why; do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || echo "$name"
    done
}

reason_of() { # $1: name
    printf '%s\n%s\n%s\n%s\n' "$packages_build" "$packages_test" "$packages_package" "$packages_wanted" | while IFS=: read -r name why; do
        [ "$name" = "$1" ] && echo "$why" && break
    done
}

install_missing() { # $1: list
    if ! command -v dpkg-query >/dev/null 2>&1; then
        for tool in cc c++ meson ninja pkg-config; do
            command -v $tool >/dev/null 2>&1 && continue
            echo "This is neither Debian nor Ubuntu, and '$tool' is missing. Please install (Debian's names):" >&2
            printf '%s\n' "$1" | sed 's/^\([^:]*\):/  \1  /' >&2
            exit 2
        done
        return 0
    fi
    missing=$(missing_packages "$1")
    [ -n "$missing" ] || return 0
    echo "Missing packages:"
    for name in $missing; do
        printf '  %-18s %s\n' "$name" "$(reason_of "$name")"
    done
    sudo=
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null 2>&1 || ! sudo -n true 2>/dev/null; then
            echo "Neither root nor sudo without a password: please install them and start again:" >&2
            echo "  apt-get install" $missing >&2
            exit 2
        fi
        sudo=sudo
    fi
    echo "Installing them with apt-get ..."
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    # The list of packages may be old or absent: one refresh before giving up.
    if ! $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1; then
        if ! { $sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            echo "apt-get failed; the packages are listed above" >&2
            rm -f "$log"
            exit 2
        fi
    fi
    rm -f "$log"
}

install_wanted() { # $1: list; without them it goes on
    (install_missing "$1") || echo "Going on without them; the tests that need them are skipped." >&2
}

configure() { # $1: build folder, further arguments: options for meson
    folder=$1
    shift
    [ -f "$folder/build.ninja" ] && return 0
    rm -rf "$folder"
    log=$(mktemp)
    if ! meson setup "$folder" "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        exit 1
    fi
    rm -f "$log"
}

build() { # $1: build folder, further arguments: targets
    folder=$1
    shift
    log=$(mktemp)
    if ! ninja -C "$folder" "$@" >"$log" 2>&1; then
        grep -v '^\[' "$log" | tail -n 40 >&2
        echo "the build in $folder failed" >&2
        rm -f "$log"
        exit 1
    fi
    rm -f "$log"
}
