#!/bin/sh
# Several hosts on one machine: network namespaces joined by a bridge, one host each; every collective runs
# through the socket network. Needs root; exit 77 (skipped) where namespaces are not allowed.
# usage: namespaces.sh TUTTI HOSTS RANKS_PER_HOST [plain|hierarchical|libfabric|slow|lossy|wrong-interface|cut|rails|rails-speed|dead-rail|cut-rail|cut-first-rail|cut-two-rails|cut-split|cut-init|mtu|one-way|
#        one-way-init|vanish|vanish-init|unlike|uneven|late-interface|loopback|collnet|plugins] [PLUGINS]
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

# A second network: link tt1 of each host, or of the first $1, r<i> at the hub. With 2 as $2 a third: tt2, q<i>.
add_rail() {
    rail=${2:-1}
    case $rail in 1) port=r ;; *) port=q ;; esac
    ip netns exec $tag-hub ip link add $bridge-$((rail + 1)) type bridge || skip "this kernel has no bridge"
    ip netns exec $tag-hub ip link set $bridge-$((rail + 1)) up
    i=0
    while [ $i -lt "${1:-$hosts}" ]; do
        ip netns exec $tag-hub ip link add $port$i type veth peer name tt$rail netns $tag-$i
        ip netns exec $tag-hub ip link set $port$i master $bridge-$((rail + 1)) up
        ip netns exec $tag-$i ip addr add 10.$((77 + rail)).0.$((i + 1))/24 dev tt$rail
        ip netns exec $tag-$i ip link set tt$rail up
        i=$((i + 1))
    done
}
# What host $1 sends is dropped without a word, by whichever of these the machine has.
mute() {
    ip netns exec $1 nft 'table inet wall { chain out { type filter hook output priority 0; drop; }; }' 2>/dev/null ||
        ip netns exec $1 iptables -A OUTPUT -o tt0 -j DROP 2>/dev/null ||
        ip netns exec $1 tc qdisc replace dev tt0 root blackhole 2>/dev/null
}
# A host that is gone: its links are down at both ends, and what ran on it neither answers nor ends.
vanish() {
    ip netns exec $tag-hub ip link set h$1 down
    ip netns exec $tag-$1 ip link set tt0 down
    for pid in $(ip netns pids $tag-$1); do kill -STOP $pid; done
}
must_fail() { # status and output of a job of at most a minute, and what happened to it
    [ "$1" -ne 0 ] || { echo "$2"; echo "the job ended well although $3"; exit 1; }
    [ "$1" -ne 124 ] || { echo "$2"; echo "the job hung for a minute: $3"; exit 1; }
}
must_say() { echo "$1" | grep -Eq "$2" || { echo "$1"; echo "nobody said: $2"; exit 1; }; }
received() { ip netns exec $tag-hub cat /sys/class/net/$1/statistics/rx_bytes; }
of_both() { echo $(($(received ${1}0) + $(received ${1}1))); } # hosts, as a root may only acknowledge

export TUTTI_RSH="ip netns exec" NCCL_DEBUG=${NCCL_DEBUG:-WARN}
ranks=$((hosts * per_host))
run() { "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$@"; }
perf=$(dirname "$tutti")/tutti-perf

case $mode in
plain)
    run "$perf" -b 8 -e 1M -f 32 -n 3 -w 1 || exit 1
    run "$perf" -b 64 -e 4K -f 64 -n 1 -w 0 -d all -o all allreduce reducescatter || exit 1
    # threads move the lanes of a connection; the two ends may have unlike numbers of them
    NCCL_NSOCKS_PERTHREAD=2 run sh -c 'NCCL_SOCKET_NTHREADS=$((1 + RANK % 2 * 3)) exec "$@"' sh "$perf" -b 1M -e 4M -f 4 -n 2 -w 1 || exit 1
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
    NCCL_ALGO=allreduce:NVLSTree run "$perf" -b 8 -e 2M -f 512 -n 1 -w 1 allreduce || exit 1
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
libfabric)
    # Our network plugin over libfabric's tcp, and over the link: two hosts have no other.
    log=$(NCCL_NET_PLUGIN=$LIBFABRIC_PLUGIN TUTTI_OFI_PROVIDER=tcp NCCL_DEBUG=INFO run "$perf" -b 8 -e 256K -f 512 -n 1 -w 0 2>&1) || {
        echo "$log"; exit 1; }
    echo "$log" | grep -q 'via NET/Libfabric/' || { echo "$log"; echo "no line: via NET/Libfabric/"; exit 1; }
    echo "$log" | grep -q 'Out of bounds values : 0 OK' || { echo "$log"; exit 1; }
    ;;
plugins)
    # Networks of strangers, in the tables of old and new versions, carry every collective.
    for version in 2 6 8 12; do
        log=$(NCCL_NET_PLUGIN=$5/libnccl-net_outsider_v$version.so OUTSIDER_OUTWARD=1 NCCL_DEBUG=INFO \
            run "$perf" -b 8 -e 600K -f 270 -n 1 -w 0 2>&1) || { echo "$log"; echo "version $version failed"; exit 1; }
        must_say "$log" 'via NET/Outsider'
        must_say "$log" 'Out of bounds values : 0 OK'
        echo "$log" | grep -E 'NCCL WARN|via NET/Socket' && { echo "$log"; echo "version $version"; exit 1; }
    done
    ;;
collnet)
    # A collective network between the hosts makes the sums, and each host's sum crosses its link once, either way.
    export NCCL_NET_PLUGIN=$5/libnccl-collnet_outsider_v12.so OUTSIDER_OUTWARD=1 NCCL_COLLNET_ENABLE=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET
    for shape in CollNetDirect CollNetChain; do
        log=$(NCCL_ALGO=allreduce:$shape run "$perf" -b 8 -e 1M -f 512 -n 1 -w 1 allreduce 2>&1) || { echo "$log"; exit 1; }
        must_say "$log" 'via COLLNET/Summer/0'
        must_say "$log" 'Out of bounds values : 0 OK'
        must_say "$log" 'made [1-9][0-9]* sums'
    done
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
    # What is chosen without NCCL_ALGO uses both as well. Exchanges between pairs go over as many channels as there are
    # networks, a large message in as many parts.
    for each in broadcast reduce allreduce:Halving allreduce:Doubling allgather:Bruck allgather:PAT reducescatter:PAT alltoall:Bruck alltoall:Pairwise sendrecv scatter; do
        first=$(of_both h) second=$(of_both r)
        NCCL_SOCKET_IFNAME=tt NCCL_ALGO=$(echo $each | grep :) run "$perf" -b 2097156 -e 2097156 -n 4 -w 1 ${each%:*} || exit 1
        first=$(($(of_both h) - first)) second=$(($(of_both r) - second))
        echo "$each: $first bytes over the first network, $second over the second"
        [ "$second" -gt $(((first + second) / 4)) ] && [ "$first" -gt $(((first + second) / 4)) ] || {
            echo "one network carried nearly everything"; exit 1; }
    done
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
cut-rail|cut-first-rail)
    # One of two networks is cut in the middle of large AllReduces, for one host at the switch, which nobody there
    # notices, and then in another job at the host itself: all results are right, and each rank says so once. The
    # first network carries what the ranks of a job tell each other as well.
    add_rail
    case $mode in cut-rail) port=r dev=tt1 net=10.78 ;; *) port=h dev=tt0 net=10.77 ;; esac
    for cut in "$tag-hub ${port}0" "$tag-$((hosts - 1)) $dev"; do
        before=$(received ${port}1)
        (looks=0
        while [ $(received ${port}1) -lt $((before + 200000000)) ] && [ $looks -lt 1000 ]; do sleep 0.1; looks=$((looks + 1)); done
        ip netns exec ${cut% *} ip link set ${cut#* } down) &
        cutter=$!
        out=$(NCCL_SOCKET_IFNAME=tt NCCL_ALGO=Ring timeout 180 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 \
            "$perf" -b 64M -e 64M -n 12 -w 1 allreduce 2>&1)
        rc=$?
        wait $cutter
        [ $rc -eq 0 ] || { echo "$out"; echo "the job failed with status $rc although another network was left"; exit 1; }
        echo "$out" | grep -q 'Out of bounds values : 0 OK' || { echo "$out"; exit 1; }
        [ $(received ${port}1) -gt $((before + 100000000)) ] || { echo "$out"; echo "the network was not used"; exit 1; }
        must_say "$out" "the way from interface $dev to rank [0-9]+ at $net.0.[0-9<>]+ is cut"
        twice=$(echo "$out" | grep 'is cut' | sed 's/.*Socket: \(rank [0-9]*\):.*/\1/' | sort | uniq -d)
        [ -z "$twice" ] || { echo "$out"; echo "$twice said so twice"; exit 1; }
        ip netns exec ${cut% *} ip link set ${cut#* } up
    done
    ;;
cut-two-rails)
    # Of three networks the first and the third are cut, in the middle: all goes on over the second one.
    add_rail
    add_rail "$hosts" 2
    (looks=0
    while [ $(received q1) -lt 100000000 ] && [ $looks -lt 1000 ]; do sleep 0.1; looks=$((looks + 1)); done
    for port in h0 q0; do ip netns exec $tag-hub ip link set $port down; done) &
    cutter=$!
    out=$(NCCL_SOCKET_IFNAME=tt NCCL_ALGO=Ring NCCL_MIN_NCHANNELS=3 timeout 180 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 \
        "$perf" -b 64M -e 64M -n 12 -w 1 allreduce 2>&1)
    rc=$?
    wait $cutter
    [ $rc -eq 0 ] || { echo "$out"; echo "the job failed with status $rc although a network was left"; exit 1; }
    echo "$out" | grep -q 'Out of bounds values : 0 OK' || { echo "$out"; exit 1; }
    must_say "$out" 'the way from interface tt0 to rank [0-9]+ at 10.77.0.[0-9<>]+ is cut .* goes on to 10.78.0'
    must_say "$out" 'the way from interface tt2 to rank [0-9]+ at 10.79.0.[0-9<>]+ is cut .* goes on to 10.78.0'
    ;;
cut-split)
    # The first network is cut while nothing is sent; a split finds its members over the second one.
    add_rail
    log=$(mktemp)
    (looks=0
    while [ $(grep -c pausing $log) -lt $ranks ] && [ $looks -lt 300 ]; do sleep 0.2; looks=$((looks + 1)); done
    sleep 1; ip netns exec $tag-hub ip link set h0 down) &
    cutter=$!
    NCCL_SOCKET_IFNAME=tt TUTTI_INIT_TIMEOUT=30 timeout 120 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$5" 15 >$log 2>&1
    rc=$?
    wait $cutter
    out=$(cat $log) && rm -f $log
    [ $rc -eq 0 ] && [ $(echo "$out" | grep -c 'all is right') -eq $ranks ] || { echo "$out"; exit 1; }
    ;;
cut-init)
    # The first network is cut before there is a communicator: the ranks find each other over the second one.
    add_rail
    ip netns exec $tag-hub ip link set $bridge down
    file=$(mktemp -u)
    out=$(NCCL_SOCKET_IFNAME=tt TUTTI_INIT_TIMEOUT=60 timeout 120 "$tutti" run -n $ranks --hosts "$list" --own-ids "$5" 0 $file 2>&1)
    rc=$?
    rm -f $file
    [ $rc -eq 0 ] && [ $(echo "$out" | grep -c 'all is right') -eq $ranks ] || { echo "$out"; exit 1; }
    must_say "$out" '^\[1\].*the process that made the unique id .* does not answer at 10.77.0.1.* is called at 10.78.0.1'
    [ $(echo "$out" | grep -c 'is called at') -lt $ranks ] || { echo "$out"; echo "a rank said it twice"; exit 1; }
    ;;
mtu)
    # The hosts disagree about the size of packets: all sizes arrive, or an error comes; no silence.
    ip netns exec $tag-1 ip link set tt0 mtu 1300
    timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$perf" -b 8 -e 1M -f 16 -n 1 -w 0 allreduce || {
        echo "the job failed, or hung for a minute"; exit 1; }
    ;;
one-way)
    # A firewall drops what one host sends, in the middle: every rank must end with an error.
    (sleep 2; mute $tag-1) &
    cutter=$!
    out=$(timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$perf" -b 64K -e 64K -n 1000000 -w 1 -c 0 \
        allreduce 2>&1)
    rc=$?
    wait $cutter || skip "nothing here can drop what a host sends"
    must_fail $rc "$out" "one host was not heard"
    must_say "$out" 'AllReduce: .*(is broken: .*rank 1|rank 0: rank 1 .* is gone)'
    ;;
one-way-init)
    # The same before there is a communicator: whoever waits says for whom, when TUTTI_INIT_TIMEOUT is over.
    mute $tag-1 || skip "nothing here can drop what a host sends"
    out=$(TUTTI_INIT_TIMEOUT=3 timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$perf" -b 8 -e 8 -n 1 \
        allreduce 2>&1)
    must_fail $? "$out" "one host was not heard"
    must_say "$out" 'ncclCommInitRank.*rank [01]'
    ;;
vanish)
    # A host vanishes in the middle: no process of it ends, no connection is closed. The job ends with an error
    # that names the operation, a rank and the one that is gone.
    last=$((hosts - 1))
    (sleep 2; vanish $last) &
    cutter=$!
    out=$(timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 "$perf" -b 1M -e 1M -n 1000000 -w 1 -c 0 \
        allreduce 2>&1)
    rc=$?
    wait $cutter
    must_fail $rc "$out" "a host vanished"
    must_say "$out" "AllReduce: .*(is broken: .*rank $last|rank [0-9]+: rank $last .* is gone)"
    ;;
vanish-init)
    # It vanishes while the others wait for it: they say whom they miss.
    last=$((hosts - 1))
    out=$(TUTTI_INIT_TIMEOUT=3 timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 sh -c \
        '[ $RANK != '$last' ] || { ip link set tt0 down; exec sleep 50; }; exec "$@"' sh "$perf" -b 8 -e 8 -n 1 allreduce 2>&1)
    must_fail $? "$out" "a host vanished"
    must_say "$out" "ncclCommInitRank: .*rank 0 of $ranks: 1 of $ranks ranks did not come within 3 s: missing $last"
    ;;
unlike)
    # Two hosts with two networks, or two versions of one: an error at init that names both, at both.
    plugins=${5:?}
    differ() {
        out=$(timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 sh -c \
            'if [ $RANK = 0 ]; then NCCL_NET_PLUGIN='$1'; else NCCL_NET_PLUGIN='$2'; fi; export NCCL_NET_PLUGIN; exec "$@"' \
            sh "$perf" -b 8 -e 8 -n 1 allreduce 2>&1)
        must_fail $? "$out" "two hosts have two networks"
        for rank in 0 1; do
            must_say "$out" "^\\[$rank\\] .*rank 0 on host .* has network $3 and rank 1 on host .* has network $4: "
        done
    }
    differ none $plugins/libnccl-net_outsider_v8.so 'Socket \(v12\)' 'Outsider \(v8\)'
    differ $plugins/libnccl-net_outsider_v12.so $plugins/libnccl-net_outsider_v8.so 'Outsider \(v12\)' 'Outsider \(v8\)'
    ;;
uneven)
    # One host has two networks, the other one: all that both have is used, and nobody tries the rest.
    add_rail 1
    out=$(NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=tt NCCL_ALGO=Ring run "$perf" -b 8 -e 1M -f 64 -n 2 -w 1 allreduce alltoall sendrecv 2>&1) || {
        echo "$out"; exit 1; }
    must_say "$out" 'rank 0: the first 1 of 2 devices of NET/Socket are used'
    echo "$out" | grep -q 'does not reach' && { echo "$out"; echo "somebody tried the network that one host has not"; exit 1; }
    ;;
late-interface)
    # The network of the second host comes up while its rank is on its way: it is taken then. Rank 9 is below rank 1
    # in the tree of the ranks, so it connects to that host.
    ip netns exec $tag-1 ip link set tt0 down
    (sleep 1; ip netns exec $tag-1 ip link set tt0 up) &
    out=$(NCCL_DEBUG=INFO timeout 60 "$tutti" run --hosts "$tag-0:1,$tag-1:1,$tag-0:8" --master 10.77.0.1 \
        "$perf" -b 8 -e 64K -f 64 -n 1 -w 0 allreduce 2>&1)
    rc=$?
    wait $!
    [ $rc -eq 0 ] || { echo "$out"; echo "the network of a host came late: status $rc"; exit 1; }
    must_say "$out" 'Out of bounds values : 0 OK'
    must_say "$out" '^\[1\].*Bootstrap: Using lo:127'
    must_say "$out" '^\[1\].*Bootstrap: Using tt0:10.77.0.2'
    ;;
loopback)
    # Ranks of several hosts that offer 127.0.0.1 to each other: said at once, with the variable. All hosts, the
    # host of rank 0 alone, another one alone.
    last=$((ranks - 1))
    for who in "$last -ge 0" '$RANK = 0' '$RANK = '$last; do
        began=$(date +%s)
        out=$(timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 10.77.0.1 sh -c \
            'if [ '"$who"' ]; then export NCCL_SOCKET_IFNAME=lo; fi; exec "$@"' sh "$perf" -b 8 -e 8 -n 1 allreduce 2>&1)
        must_fail $? "$out" "hosts offer 127.0.0.1"
        must_say "$out" '127\.0\.0\.1.*loopback.*NCCL_SOCKET_IFNAME'
        echo "$out" | grep -q 'process is gone' && { echo "$out"; echo "a process was called gone"; exit 1; }
        [ $(($(date +%s) - began)) -lt 20 ] || { echo "$out"; echo "it took longer than 20 s"; exit 1; }
    done
    # So it is for an address that is given to all.
    out=$(TUTTI_WATCHDOG=2 timeout 60 "$tutti" run -n $ranks --hosts "$list" --master 127.0.0.1 sh -c 'timeout 6 "$@" || exit 3' sh "$perf" -b 8 -e 8 -n 1 allreduce 2>&1)
    must_fail $? "$out" "the root is at 127.0.0.1"
    must_say "$out" 'nobody listens at 127.0.0.1.*a loopback address'
    ;;
*) echo "unknown mode $mode"; exit 2 ;;
esac
echo "namespaces: $hosts hosts x $per_host ranks, $mode: ok"
