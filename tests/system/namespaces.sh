#!/bin/sh
# Several hosts on one machine: network namespaces joined by a bridge, one host each; every collective runs
# through the socket network. Needs root; exit 77 (skipped) where namespaces are not allowed.
# usage: namespaces.sh TUTTI HOSTS RANKS_PER_HOST [plain|hierarchical|slow|lossy|wrong-interface|cut|rails|rails-speed|dead-rail|mtu|one-way]
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

# A second network: link tt1 of each host, r<i> at the hub.
add_rail() {
    ip netns exec $tag-hub ip link add $bridge-2 type bridge || skip "this kernel has no bridge"
    ip netns exec $tag-hub ip link set $bridge-2 up
    i=0
    while [ $i -lt "$hosts" ]; do
        ip netns exec $tag-hub ip link add r$i type veth peer name tt1 netns $tag-$i
        ip netns exec $tag-hub ip link set r$i master $bridge-2 up
        ip netns exec $tag-$i ip addr add 10.78.0.$((i + 1))/24 dev tt1
        ip netns exec $tag-$i ip link set tt1 up
        i=$((i + 1))
    done
}
received() { ip netns exec $tag-hub cat /sys/class/net/$1/statistics/rx_bytes; }

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
hierarchical)
    # By name, in both layouts of slots; then what an AllReduce that nobody names sends over the link of a host:
    # 2(H-1)/H of its bytes and at most a tenth more (a ring over all ranks: 2(n-1)/n).
    case $hosts in
    2) ops="allreduce allgather reducescatter" rooted="broadcast reduce" ;;
    *) ops=allreduce rooted=broadcast ;;
    esac
    names=$(for op in $ops $rooted; do printf '%s:Hierarchical;' $op; done)
    NCCL_ALGO=$names NCCL_PROTO=LL run "$perf" -b 8 -e 2M -f 512 -n 1 -w 1 $ops || exit 1
    NCCL_ALGO=$names NCCL_PROTO=Simple run "$perf" -b 8 -e 2M -f 512 -n 1 -w 1 $ops $rooted || exit 1
    bytes=4194304
    measure() { # what the second host sends for $1 operations, and to begin and end
        before=$(ip netns exec $tag-1 cat /sys/class/net/tt0/statistics/tx_bytes)
        run "$perf" -b $bytes -e $bytes -n $1 -w 0 -c 0 allreduce >/dev/null || exit 1
        echo $(($(ip netns exec $tag-1 cat /sys/class/net/tt0/statistics/tx_bytes) - before))
    }
    few=$(measure 1) && more=$(measure 11) || exit 1
    each=$(((more - few) / 20)) # both are out of place and in place
    least=$((2 * bytes * (hosts - 1) / hosts))
    echo "AllReduce of $bytes bytes sends $each over the link of a host; $least is the least"
    [ $each -le $((least + least / 10)) ] || { echo "that is more than a tenth too much"; exit 1; }
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
rails)
    # Channels are spread over both networks: each carries at least a quarter.
    add_rail
    NCCL_SOCKET_IFNAME=tt NCCL_ALGO=Ring run "$perf" -b 2M -e 2M -n 4 -w 1 allreduce || exit 1
    first=$(received h0) second=$(received r0)
    echo "from host 0: $first bytes over the first network, $second over the second"
    [ "$second" -gt $(((first + second) / 4)) ] && [ "$first" -gt $(((first + second) / 4)) ] || {
        echo "one network carried nearly everything"; exit 1; }
    # So it is when none is named (a job that sets NCCL_COMM_ID names one).
    log=$(NCCL_DEBUG=INFO NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 TUTTI_DEVICES=2 NCCL_ALGO=Ring ip netns exec $tag-0 \
        "$perf" -g 2 -b 2M -e 2M -n 1 -w 0 allreduce 2>&1) || { echo "$log"; exit 1; }
    echo "$log" | grep -q 'via NET/Socket/1' || { echo "$log"; echo "the second network is not used"; exit 1; }
    ;;
rails-speed)
    # What a second network of the same limited rate brings. Prints; nothing is asserted.
    add_rail
    i=0
    while [ $i -lt "$hosts" ]; do
        for link in tt0 tt1; do
            ip netns exec $tag-$i tc qdisc add dev $link root tbf rate 400mbit burst 256kb limit 32mb 2>/dev/null ||
                skip "no tbf in this kernel"
        done
        i=$((i + 1))
    done
    for names in tt0 tt; do
        echo "NCCL_SOCKET_IFNAME=$names"
        NCCL_SOCKET_IFNAME=$names NCCL_ALGO=Ring run "$perf" -b 16M -e 16M -n 3 -w 1 allreduce alltoall sendrecv | grep -E '^\[0\] +16777216|starting' || exit 1
        echo "from host 0: $(received h0) bytes over the first network, $(received r0) over the second"
    done
    ;;
dead-rail)
    # Nothing gets through the second network: connections go over the first one, and that is said.
    add_rail
    ip netns exec $tag-hub ip link set $bridge-2 down
    out=$(NCCL_SOCKET_IFNAME=tt NCCL_ALGO=Ring run "$perf" -b 1M -e 1M -n 2 -w 1 allreduce 2>&1) || { echo "$out"; exit 1; }
    echo "$out" | grep -q 'does not reach rank [01] at 10.78.0' || {
        echo "$out"; echo "nobody said that the second network is dead"; exit 1; }
    ;;
mtu)
    # The hosts disagree about the size of packets: all sizes arrive, or an error comes; no silence.
    ip netns exec $tag-1 ip link set tt0 mtu 1300
    timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$perf" -b 8 -e 1M -f 16 -n 1 -w 0 allreduce || {
        echo "the job failed, or hung for a minute"; exit 1; }
    ;;
one-way)
    # A firewall drops what one host sends, in the middle: every rank must end with an error.
    command -v nft >/dev/null || skip "no nft command (package nftables)"
    (sleep 2; ip netns exec $tag-1 nft 'table inet wall { chain out { type filter hook output priority 0; drop; }; }') &
    cutter=$!
    timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$perf" -b 64K -e 64K -n 1000000 -w 1 -c 0 allreduce
    rc=$?
    wait $cutter || skip "nftables does not work here"
    [ $rc -ne 0 ] || { echo "the job ended well although one host was not heard"; exit 1; }
    [ $rc -ne 124 ] || { echo "the job hung for a minute after one host was not heard"; exit 1; }
    ;;
*) echo "unknown mode $mode"; exit 2 ;;
esac
echo "namespaces: $hosts hosts x $per_host ranks, $mode: ok"
