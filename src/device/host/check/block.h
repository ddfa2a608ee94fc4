/* What memory reports to the checker (check.h). Below streams: knows none. */
#pragma once

#include "device/host/memory/process.h"

static inline bool tt_host_checks(void)
{
    return __builtin_expect(atomic_load_explicit(&tt_host.check, memory_order_relaxed) != NULL, 0);
}

void tt_host_check_start(void); /* reads TUTTI_CHECK, once, when devices are discovered */

/* ---- life of memory, at once ---- */
struct tt_check_block {
    void *ptr;
    size_t bytes;
    enum tt_memory_kind kind;
    int device;
};
void tt_host_check_alloc(const struct tt_check_block *block);
void tt_host_check_free(const struct tt_check_block *block); /* unless it is freed already */
void tt_host_check_revive(void *ptr, size_t bytes); /* a launch allocates a graph's memory again */
/* A host function begins or ends. */
void tt_host_check_runs(void (*fn)(void *), bool begins);
/* The program has registered memory of its own. */
void tt_host_check_lend(const void *ptr, size_t bytes);
/* The host gives up the right to use bytes that stay, or that others have: `what` it does. */
void tt_host_check_withdraw(const char *what, const void *ptr, size_t bytes);
