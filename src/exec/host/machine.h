/* What the host's code asks the machine once, because asking costs microseconds and the answer does
 * not change. One object; private to exec/host. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

struct tt_reduce_level;

struct tt_exec_machine {
    const struct tt_reduce_level *_Atomic best; /* reduce.c; NULL: not asked yet */
    _Atomic size_t cache_bytes;                 /* cache.c: of the last level; 0: not asked yet */
};

/* Hidden: it is read in front of every work, without a look into the table of addresses. */
extern __attribute__((visibility("hidden"))) struct tt_exec_machine tt_exec_machine;
