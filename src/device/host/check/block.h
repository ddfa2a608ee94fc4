/* Hooks of the checker (check.h) that memory/ calls. Does not depend on streams. */
#pragma once

#include "device/host/process/process.h"

static inline bool tt_host_checks(void)
{
    return __builtin_expect(atomic_load_explicit(&tt_host.check, memory_order_relaxed) != NULL, 0);
}

void tt_host_check_start(void); /* reads TUTTI_CHECK, once, when devices are discovered */

/* ---- allocation and free, outside streams ---- */
struct tt_check_block {
    void *ptr;
    size_t bytes;
    enum tt_memory_kind kind;
    int device;
};
void tt_host_check_alloc(const struct tt_check_block *block);
void tt_host_check_free(const struct tt_check_block *block); /* no-op where it is freed already */
void tt_host_check_revive(void *ptr,
                          size_t bytes); /* a graph's memory is allocated again by a launch */
/* A host function on a stream begins or ends. */
void tt_host_check_runs(void (*fn)(void *), bool begins);
/* The program has registered this memory. */
void tt_host_check_lend(const void *ptr, size_t bytes);
/* The host gives up its access to bytes that are not freed. what: the name of the call. */
void tt_host_check_withdraw(const char *what, const void *ptr, size_t bytes);
