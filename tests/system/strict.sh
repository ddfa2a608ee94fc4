#!/bin/sh
# TUTTI_STRICT: what strict.c does wrong is an error with a sentence. Without it some of that is tolerated.
# usage: strict.sh TUTTI PROGRAM
set -u
tutti=$1 program=$2
unset TUTTI_STRICT NCCL_DEBUG
failed=0
try() { # mode, expected status and sentence ("": any), further words: options and NAME=VALUE for env
    mode=$1 status=$2 sentence=$3
    shift 3
    said=$(env "$@" "$tutti" run "$program" "$mode" 2>&1)
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
strict freed 2 ' is no memory of a device'
strict leak 1 'TUTTI_STRICT: 1 communicator(s) were never destroyed or aborted'
strict fine 3 'TUTTI_STRICT: NCCL_DEBUGG is not a known variable and has no effect; did you mean NCCL_DEBUG?' NCCL_DEBUGG=1
strict race 66 'race: fill writes what fill writes, and nothing orders the two'
try race 0 '' A=1
try malloc 0 '' A=1
try leak 0 '' A=1
try fine 0 'NCCL_DEBUGG is not a known variable' NCCL_DEBUGG=1
# Errors always.
try freed 2 'lies in no live allocation' A=1
try inside 2 'run over the end of its allocation' A=1
"$tutti" run --strict "$program" leak >/dev/null 2>&1 && { failed=1; echo "--strict does nothing"; }
exit $failed
