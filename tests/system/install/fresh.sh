#!/bin/sh
# README's commands as they stand there, in a fresh copy of the sources: as an ordinary user into the user's home, and
# as root into /usr/local (a layer over it, gone afterwards).
# usage: fresh.sh SOURCE_DIR BUILD_DIR [root|user|run]    run: as a user who has called ./run before
set -eu
source=$1 build=$2 who=${3:-root}
there=$(mktemp -d)
user=tutti-fresh-$$
trap 'rm -rf "$there"; [ -z "${made:-}" ] || userdel "$user"' EXIT
made=
[ "$(id -u)" = 0 ] || { echo "SKIP: makes a user and a layer over /usr/local, which root may"; exit 77; }
python3 "${0%/*}/kept_objects.py" "$build" "$there/compiler"
with_objects="PATH=$there/compiler:\$PATH; export PATH;"
(cd "$source" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - -f "$there/sources.tar" --ignore-failed-read)

# The commands between the sentence that announces them and the end of the block, as a person copies them.
block() { # $1: beginning of the sentence
    awk -v from="$1" 'index($0, from) {on = 1} on && /^```/ {inside = !inside; if (!inside) exit; next} on && inside' "$source/README.md"
}
commands() { # $1: the sentence of the way to install
    echo 'set -e'
    block "$1"
    block 'Then build and start a program'
}
clone() { # $1: folder
    mkdir -p "$1/tutti"
    tar -xf "$there/sources.tar" -C "$1/tutti"
}
check() { # $1: who, $2: what was said
    [ "$(grep -c 'rank [0-3] of 4: 0 wrong' "$2")" = 4 ] || { echo "as $1:"; tail -n 30 "$2"; exit 1; }
}

if [ "$who" = root ]; then
    clone "$there/root"
    commands 'As root, to' >"$there/root.sh"
    grep -q 'meson install' "$there/root.sh" || { echo "README lacks the commands for root"; exit 1; }
    mkdir "$there/upper" "$there/work"
    unshare -m sh -c "mount -t overlay overlay -o lowerdir=/usr/local,upperdir=$there/upper,workdir=$there/work /usr/local &&
        cd $there/root/tutti && $with_objects sh $there/root.sh" >"$there/said" 2>&1 || true
    check root "$there/said"
    [ -e "$there/upper/bin/tutti" ] || { echo "root's install is not in /usr/local"; exit 1; }
    echo "fresh: ok"
    exit 0
fi

useradd -m -d "$there/home" "$user"
made=1
chmod 755 "$there"
commands 'As an ordinary user' >"$there/user.sh"
clone "$there/home"
chown -R "$user" "$there/home"
# ./run may have been there before: it leaves build/ alone.
before=
[ "$who" != run ] || before='./run --ranks 2 -b 8 -e 8 -n 1 allreduce &&'
(cd "$there/home/tutti" && su "$user" -c "$with_objects $before sh $there/user.sh") >"$there/said" 2>&1 || true
check "an ordinary user" "$there/said"
[ -x "$there/home/.local/bin/tutti" ] || { echo "the user's install is not in ~/.local"; exit 1; }
echo "fresh: ok"
