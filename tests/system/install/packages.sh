#!/bin/sh
# The Debian packages: built by their one command, without a complaint of lintian, installed in a fresh system, tried,
# and purged without a trace. Exit 77 (skipped) where the tools or the network for that are missing.
# usage: packages.sh SOURCE_DIR
set -eu
source=$1
for tool in dh lintian debootstrap dpkg-buildpackage; do
    command -v $tool >/dev/null || { echo "SKIP: no $tool"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "SKIP: a fresh system is made as root"; exit 77; }
. /etc/os-release
[ "$ID" = debian ] || { echo "SKIP: $ID is not Debian"; exit 77; }
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
root=$there/root
if ! debootstrap --variant=minbase "$VERSION_CODENAME" "$root" >"$there/log" 2>&1; then
    tail -n 3 "$there/log"
    echo "SKIP: no fresh system could be made here"
    exit 77
fi
"$source/packaging/packages" "$there/debs"
lintian --allow-root --fail-on error,warning "$there"/debs/*.changes
mkdir "$root/debs"
cp "$there"/debs/*_*.deb "$root/debs"
rm -f "$root"/debs/*-dbgsym_*
cp /etc/resolv.conf "$root/etc/resolv.conf"
cat >"$root/debs/try.sh" <<'end'
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
apt-get install -y --no-install-recommends /debs/libtutti_*.deb /debs/tutti-tools_*.deb
tutti perf --ranks 2 -b 8 -e 8 -n 1 allreduce
tutti topo show "$(tutti env --machines)/dgxh100.xml"
apt-get install -y --no-install-recommends /debs/libtutti-net_*.deb
NCCL_SOCKET_IFNAME=lo NCCL_NET_PLUGIN=tutti NCCL_NET=Libfabric TUTTI_OFI_PROVIDER=tcp NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 \
    tutti perf --ranks 2 -b 8 -e 8 -n 1 allreduce
apt-get install -y --no-install-recommends /debs/libtutti-dev_*.deb gcc libc6-dev
cd /usr/share/doc/libtutti-dev/examples
[ ! -e /usr/include/nccl.h ] && [ ! -e /usr/include/cuda_runtime.h ]
home=$(tutti env --home)
eval "$(tutti env --shell)"
gcc allreduce.c -o /tmp/allreduce -lnccl -lcudart
gcc -I"$home/nccl/include" -I"$home/include" allreduce.c -o /tmp/other -L"$home/nccl/lib64" -lnccl -L"$home/lib64" -lcudart
tutti run --strict -n 3 /tmp/allreduce
tutti run --strict -n 2 /tmp/other
apt-get purge -y libtutti libtutti-net libtutti-dev tutti-tools
rest=$(find / -xdev -path /debs -prune -o -path /proc -prune -o -path /var/lib/apt -prune -o -name '*tutti*' -print)
[ -z "$rest" ] || { echo "purge leaves: $rest"; exit 1; }
end
unshare -m sh -c "mount -t proc proc $root/proc && mount --rbind /dev $root/dev && mount -t tmpfs tmpfs $root/dev/shm &&
    exec chroot $root sh /debs/try.sh" >"$there/said" 2>&1 </dev/null || { tail -n 30 "$there/said"; exit 1; }
[ "$(grep -c 'rank [0-2] of 3: 0 wrong' "$there/said")" = 3 ] || { tail -n 30 "$there/said"; exit 1; }
echo "packages: ok"
