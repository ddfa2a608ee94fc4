#!/bin/sh
# Several hosts on one machine: network namespaces joined by a bridge, one host each; every collective runs
# through the socket network. Needs root; exit 77 (skipped) where namespaces are not allowed.
# usage: namespaces.sh TUTTI HOSTS RANKS_PER_HOST [plain|slow|lossy|wrong-interface|cut]
set -u
tutti=$1 hosts=$2 per_host=$3 mode=${4:-plain}
tag=tt$$
bridge=b$tag

skip() { echo "SKIP: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "not root: network namespaces need it"
command -v ip >/dev/null || skip "no ip command (package iproute2)"

cleanup() {
    i=0
    while [ $i -lt "$hosts" ]; do ip netns del $tag-$i 2>/dev/null; i=$((i + 1)); done
    ip netns del $tag-hub 2>/dev/null
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ip netns add $tag-hub 2>/dev/null || skip "network namespaces are not allowed here"
ip netns exec $tag-hub ip link add $bridge type bridge 2>/dev/null || skip "this kernel has no bridge"
ip netns exec $tag-hub ip link set $bridge up
list="" i=0
while [ $i -lt "$hosts" ]; do
    ip netns add $tag-$i
    ip netns exec $tag-hub ip link add h$i type veth peer name tt0 netns $tag-$i || skip "this kernel has no veth"
    ip netns exec $tag-hub ip link set h$i master $bridge up
    ip netns exec $tag-$i ip addr add 10.77.0.$((i + 1))/24 dev tt0
    ip netns exec $tag-$i ip link set tt0 up
    ip netns exec $tag-$i ip link set lo up
    list="$list${list:+,}$tag-$i:$per_host"
    i=$((i + 1))
done

export TUTTI_RSH="ip netns exec" NCCL_DEBUG=${NCCL_DEBUG:-WARN}
ranks=$((hosts * per_host))
run() { "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$@"; }
perf=$(dirname "$tutti")/tutti-perf

case $mode in
plain)
    run "$perf" -b 8 -e 1M -f 32 -n 3 -w 1 || exit 1
    run "$perf" -b 64 -e 4K -f 64 -n 1 -w 0 -d all -o all allreduce reducescatter || exit 1
    log=$(NCCL_DEBUG=INFO run "$perf" -b 8 -e 8 -n 1 -w 0 allreduce 2>&1) || { echo "$log"; exit 1; }
    echo "$log" | grep -q 'Using network Socket' || { echo "$log"; echo "no line: Using network Socket"; exit 1; }
    echo "$log" | grep -q 'via NET/Socket/' || { echo "$log"; echo "no line: via NET/Socket/"; exit 1; }
    ;;
slow)
    i=0
    while [ $i -lt "$hosts" ]; do
        ip netns exec $tag-$i tc qdisc add dev tt0 root tbf rate 200mbit burst 64kbit latency 50ms 2>/dev/null ||
            skip "no tbf in this kernel"
        i=$((i + 1))
    done
    run "$perf" -b 1M -e 1M -n 2 -w 1 allreduce allgather sendrecv || exit 1
    ;;
lossy)
    command -v nft >/dev/null || skip "no nft command (package nftables)"
    ip netns exec $tag-1 nft -f - <<NFT || skip "nftables does not work here"
table inet loss {
    chain in {
        type filter hook input priority 0; policy accept;
        numgen random mod 100 < 1 drop
    }
}
NFT
    run "$perf" -b 256K -e 256K -n 2 -w 1 allreduce alltoall || exit 1
    ;;
wrong-interface)
    out=$(NCCL_SOCKET_IFNAME=nosuch0 TUTTI_INIT_TIMEOUT=10 run "$perf" -b 8 -e 8 -n 1 -w 0 allreduce 2>&1) && {
        echo "$out"; echo "an interface that does not exist was accepted"; exit 1; }
    echo "$out" | grep -q nosuch0 || { echo "$out"; echo "the error does not name the interface"; exit 1; }
    ;;
cut)
    # The link of the last host goes down in the middle: every rank must end with an error, none may hang.
    (sleep 3; ip netns exec $tag-hub ip link set h$((hosts - 1)) down) &
    cutter=$!
    timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$perf" -b 1M -e 1M -n 1000000 -w 1 -c 0 allreduce
    rc=$?
    wait $cutter
    [ $rc -ne 0 ] || { echo "the job ended well although its link was cut"; exit 1; }
    [ $rc -ne 124 ] || { echo "the job hung for a minute after its link was cut"; exit 1; }
    ;;
*) echo "unknown mode $mode"; exit 2 ;;
esac
echo "namespaces: $hosts hosts x $per_host ranks, $mode: ok"
