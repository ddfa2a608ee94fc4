#!/bin/sh
# TUTTI_STRICT: what strict.c does wrong is an error with a sentence. Without it some of that is tolerated.
# usage: strict.sh TUTTI PROGRAM ENV_PLUGIN NET_PLUGIN OTHER_NET_PLUGIN MACHINE_FILE
set -u
tutti=$1 program=$2 env_plugin=$3 net_plugin=$4 other=$5 machine=$6
unset TUTTI_STRICT NCCL_DEBUG
failed=0 ranks=1
try() { # mode, expected status and sentence ("": any), further words: options and NAME=VALUE for env
    mode=$1 status=$2 sentence=$3
    shift 3
    said=$(env "$@" "$tutti" run -n "$ranks" "$program" "$mode" 2>&1)
    got=$?
    case $said in *"$sentence"*) ;; *) got="$got without the sentence" ;; esac
    [ "$got" = "$status" ] && return
    failed=1
    printf 'strict %s %s: status %s, not %s; said:\n%s\n' "$mode" "$*" "$got" "$status" "$said"
}
strict() {
    try "$@" TUTTI_STRICT=1
}
strict fine 0 ''
strict handler 0 ''
strict child 0 ''
strict malloc 2 ' is no memory of a device'
strict malloc-ignored 1 ': a call was refused (TUTTI_STRICT)'
try malloc-ignored 0 '' TUTTI_CHECK=
strict freed 2 'ncclAllReduce: sendbuff '
strict freed 2 'lies in no live allocation: it was freed'
strict again 2 'lies in no live allocation: it was freed'
strict stream 2 ' is one of device 1, the communicator is on 0' TUTTI_DEVICES=2
# Buffers that overlap, but not as a call in place has them, and elements between two addresses.
two='TUTTI_DEVICES=2 TUTTI_CHECK='
strict overlap 2 'which begins +4 bytes from it, overlap on rank 0: in place sendbuff is recvbuff (+0 bytes), otherwise they must be apart' $two
# A count that is too large is told as that, also where the next allocation is the other buffer.
strict long 2 ': sendbuff ' $two
strict long 2 ' and 33554432 bytes run over the end of its allocation (' $two
case $said in *overlap*) failed=1; printf 'long: %s\n' "$said" ;; esac
strict offset 2 'rank 1: 4 ncclAllGather: sendbuff ' $two
strict offset 2 'which begins +0 bytes from it, overlap on rank 1: in place sendbuff is recvbuff + rank * sendcount (-32 bytes)' $two
strict misaligned 2 'lies 1 bytes behind a multiple of 4, the bytes of an element: a GPU would fault' $two
strict inplace 0 '' $two
try overlap 0 '' $two
strict window-flag 2 'ncclCommWindowRegister: winFlags 0x40 has bits without a meaning (0x40)' $two
strict window-sizes 2 'rank 0 gave 1048576 bytes, rank 1 524288: a window of NCCL_WIN_COLL_SYMMETRIC has one size' $two
strict window-flags 2 'rank 0 gave winFlags 0x1, rank 1 0: all ranks give the same' $two
strict window-fine 0 '' $two
strict shrink-flag 2 'ncclCommShrink: shrinkFlags 0x8 has bits without a meaning (0x8)' $two
for mode in window-flag window-sizes window-flags; do
    try $mode 0 '' $two
done
# Memory and devices that NCCL still has.
for what in registered windowed mapped reset; do
    strict taken-$what-fine 0 ''
    try taken-$what 0 '' A=1
done
strict taken-registered 1 'is freed, but it is registered (ncclCommRegister): call ncclCommDeregister before'
strict taken-windowed 1 'is freed, but a window lies in it (ncclCommWindowRegister): call ncclCommWindowDeregister before'
strict taken-mapped 1 'cudaFree: 1
'
strict taken-mapped 1 '(1048576 bytes) is freed, but it is ncclMemAlloc'
strict taken-reset 1 'device 0 is reset, but a communicator is on it: call ncclCommDestroy or ncclCommAbort before'
# A host function calls CUDA and NCCL.
strict function 1 'in a host function: 800 800 1'
strict function 1 'ncclAllReduce: called in a host function (cudaLaunchHostFunc), where CUDA forbids the calls that NCCL makes'
try function 0 'in a host function: 0 0 0' A=1
# The scalar of an operator: on a device where it says so, and of the type of the call.
strict scalar-fine 0 ''
strict scalar 2 'ncclRedOpCreatePreMulSum: scalar '
strict scalar 2 ' is no memory of a device'
strict scalar-freed 2 'ncclAllReduce: scalar of the operator '
try scalar 0 '' A=1
try scalar-type 2 'the operator was created for float (ncclRedOpCreatePreMulSum), the call has int32' A=1
strict leak 1 'TUTTI_STRICT: 1 communicator(s) were never destroyed or aborted'
strict ignored 1 'TUTTI_STRICT: 1 communicator(s) had failed when they were destroyed, and the program ends as if all were well' TUTTI_DEVICES=2
try ignored 0 ' ended the communicator (ncclCommDestroy) after 0 collective(s)' TUTTI_DEVICES=2
strict fine 3 'TUTTI_STRICT: NCCL_DEBUGG is not a known variable and has no effect; did you mean NCCL_DEBUG?' NCCL_DEBUGG=1
strict race 66 'race: fill writes what fill writes, and nothing orders the two'
strict race 66 'the exit status is 66 instead of the program' TUTTI_CHECK=race
strict race 66 'tutti check: 1 finding; the exit status is 66 instead of the program'"'"'s 0'
# A call is named by its line where the program has debug information.
line=$(grep -n 'cudaMemsetAsync(memory, 2' "${0%/*}/strict.c" | cut -d: -f1)
strict race 66 "writes, called at strict.c:$line, system-strict+0x"
# A store has its width, and freed memory says where it was allocated and freed.
stored=$(grep -n 'memory\[2\] = 1;' "${0%/*}/strict.c" | cut -d: -f1)
strict late 66 "second  a store of the host, on the host, writes, at strict.c:$stored, "
[ "$(uname -m)" = x86_64 ] && strict late 66 'memory  4 bytes at '
allocated=$(grep -n 'cudaMalloc((void \*\*)&second' "${0%/*}/strict.c" | cut -d: -f1)
freed=$(grep -n 'cudaFree(memory);' "${0%/*}/strict.c" | tail -1 | cut -d: -f1)
strict late 66 "byte 0 of what was an allocation of 4000 bytes of device memory of device 0, allocated at strict.c:$allocated, "
strict late 66 "freed   at strict.c:$freed, "
strict leak 1 'tutti check: the exit status is 1 instead of the program'"'"'s 0: communicators were left (TUTTI_STRICT)'
strict group 66 'race: AllReduce (call 2 of a group) writes what AllReduce (call 1 of a group) writes' TUTTI_DEVICES=2
strict group 66 'memory  2000 bytes at ' TUTTI_DEVICES=2
# One run tells both, the count of findings last, and the finding's status is the program's.
strict race,leak 66 'race: fill writes what fill writes, and nothing orders the two'
strict race,leak 66 'TUTTI_STRICT: 1 communicator(s) were never destroyed or aborted
[0] tutti check: 1 finding'
# Where leaks are looked for, a communicator that is left is told as one, and the program's two buffers alone as memory.
try leak 66 'TUTTI_CHECK: 1 communicator(s) were never destroyed or aborted
[0] tutti check: 2 findings' TUTTI_CHECK=race:exit,leaks
# A Send waits for its Recv under the checker where it does without; a small one that has none is told at the end.
ranks=2
for mode in message-circle message-lost; do
    try $mode 2 '' A=1
    strict $mode 2 ''
done
try message-small 0 'a ncclRecv is missing' A=1
for turn in 1 2 3; do
    strict message-small 1 '0: a message was not received (TUTTI_STRICT)'
done
strict message-small 1 '0: a message was not received (TUTTI_STRICT)' NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1
# Two ids, which are one id under NCCL_COMM_ID (tutti run sets it), and one that is listed twice.
try ids 0 '' A=1
try ids 2 'to put several ranks on one device; this process sees 1 device(s) (CUDA_VISIBLE_DEVICES, TUTTI_DEVICES)' CUDA_VISIBLE_DEVICES=1
try ids-twice 2 'ncclCommInitRankScalable: commIds[0] and commIds[1] are the same id: each is of a ncclGetUniqueId of its own' A=1
ranks=1
try race 0 '' A=1
try malloc 0 '' A=1
try leak 0 '' A=1
try fine 0 'NCCL_DEBUGG is not a known variable' NCCL_DEBUGG=1
try open 0 'the program ended inside a group that it had opened (depth 1): a ncclGroupEnd is missing' A=1
# Errors always.
try freed 2 'lies in no live allocation: it was freed' A=1
try again 2 'lies in no live allocation: it was freed' A=1
# Who gives up because a call of its group has failed need not end the group.
try refused 2 '' A=1
case $said in *ncclGroupEnd*) failed=1; printf 'refused: %s\n' "$said" ;; esac
try inside 2 'run over the end of its allocation' A=1
# A graph that is destroyed after its communicator: told after 2 s, an error after the time-out.
try graph 2 'waits for graphs with 1 operation(s) of it, for 2 s: destroy them first' TUTTI_TIMEOUT=4 TUTTI_DEVICES=2
# Which rank gives up first differs: the other one learns that it was aborted.
case $said in *'destroy: 8 '*'for 4 s: destroy them first'* | *'for 4 s: destroy them first'*'destroy: '[68]' '*'aborted the communicator'*) ;; *) failed=1; printf 'graph: %s\n' "$said" ;; esac
# Settings that do not do what they say: told, and errors in strict mode.
wrong() { # sentence, NAME=VALUE...
    words=$1
    shift
    try fine 0 "$words" "$@"
    strict fine 3 "$words" "$@"
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo 'no XML' >"$folder/text"
for name in NCCL_CONF_FILE NCCL_GRAPH_FILE NCCL_TOPO_FILE NCCL_TUNER_CONFIG_FILE; do
    wrong "$name: $folder/none cannot be read (No such file or directory) and has no effect" $name="$folder/none"
done
wrong "NCCL_CONF_FILE: $folder is a folder and has no effect" NCCL_CONF_FILE="$folder"
for kind in NET TUNER PROFILER; do
    wrong "NCCL_${kind}_PLUGIN: no plugin nosuch could be loaded: there is no file nosuch libnccl-" NCCL_${kind}_PLUGIN=nosuch
    wrong " is unsupported: it has no nccl" NCCL_${kind}_PLUGIN="$env_plugin"
    wrong " down to nccl" NCCL_${kind}_PLUGIN="$env_plugin"
    wrong "; it has ncclEnvPlugin_v2" NCCL_${kind}_PLUGIN="$env_plugin"
    wrong "NCCL_${kind}_PLUGIN: no plugin $folder/text could be loaded" NCCL_${kind}_PLUGIN="$folder/text"
    try fine 0 '' NCCL_${kind}_PLUGIN=none TUTTI_STRICT=1
done
# Of a list the first that works is wanted: what is wrong with the others is said where none does.
wrong "the plugin $net_plugin is not used: devices returned 0 (" NCCL_NET_PLUGIN="$net_plugin" TESTNET_DEVICES=0
strict fine 0 '' NCCL_NET_PLUGIN="$net_plugin,$other" TESTNET_DEVICES=0
try fine 0 'breaks the contract of network plugins: getProperties: name: there is none' NCCL_NET_PLUGIN="$other" TUTTI_PLUGIN_CHECK=1 OUTSIDER_FAULT=name-none
strict fine 1 'a network plugin broke its contract (TUTTI_STRICT)' NCCL_NET_PLUGIN="$other" TUTTI_PLUGIN_CHECK=1 OUTSIDER_FAULT=name-none
wrong 'NCCL_BUFFSIZE: value '"'abc'"' is not understood' NCCL_BUFFSIZE=abc
wrong 'NCCL_BUFFSIZE is 12 bytes, accepted are 32768 to' NCCL_BUFFSIZE=12
wrong 'NCCL_MAX_NRINGS is deprecated and still obeyed; use NCCL_MAX_CTAS' NCCL_MAX_NRINGS=2
wrong 'NCCL_BOOTSTRAP_TIMEOUT is not a variable of NCCL; taken as TUTTI_INIT_TIMEOUT' NCCL_BOOTSTRAP_TIMEOUT=100
for value in rase race:exit,leak; do
    wrong "TUTTI_CHECK: value '$value' is not understood; accepted: race; race:exit; race:abort; race,leaks; " TUTTI_CHECK=$value
done
strict race 0 '' TUTTI_CHECK=
strict race 66 '' TUTTI_CHECK=race:exit,leaks
wrong "TUTTI_DEVICES: value 'many' is not understood" TUTTI_DEVICES=many
wrong "TUTTI_TUNE_FILE $folder/none is refused: No such file or directory" TUTTI_TUNE_FILE="$folder/none"
wrong "NCCL_TOPO_DUMP_FILE: $folder/none/file cannot be written: No such file or directory" NCCL_TOPO_DUMP_FILE="$folder/none/file"
wrong 'TUTTI_TRACE_FILE has no effect without Tutti'"'"'s profiler plugin (NCCL_PROFILER_PLUGIN=tutti)' TUTTI_TRACE_FILE="$folder/trace"
strict fine 0 '' TUTTI_TRACE_FILE="$folder/trace" NCCL_PROFILER_PLUGIN=none
# With a machine file, what decides about its paths.
wrong "NCCL_P2P_LEVEL: unknown level 'FOO' (accepted: LOC, NVL," NCCL_P2P_LEVEL=FOO NCCL_TOPO_FILE="$machine"
wrong 'NCCL_CROSS_NIC: value 7 is out of bounds (accepted: 0, 1, 2)' NCCL_CROSS_NIC=7 NCCL_TOPO_FILE="$machine"
strict fine 3 "NCCL_NET_GDR_LEVEL: unknown level 'FOO'" NCCL_NET_GDR_LEVEL=FOO NCCL_TOPO_FILE="$machine"
strict fine 3 "NCCL_NET_MERGE_LEVEL: unknown level 'FOO'" NCCL_NET_MERGE_LEVEL=FOO NCCL_TOPO_FILE="$machine"
strict fine 0 '' NCCL_P2P_LEVEL=PXB NCCL_CROSS_NIC=1 NCCL_TOPO_FILE="$machine"
strict fine 0 '' NCCL_BUFFSIZE=1048576 NCCL_TOPO_DUMP_FILE="$folder/out" NCCL_TOPO_FILE= NCCL_NET=Socket

"$tutti" run --strict "$program" leak >/dev/null 2>&1 && { failed=1; echo "--strict does nothing"; }
exit $failed
