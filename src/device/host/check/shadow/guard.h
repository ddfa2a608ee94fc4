/* Guards: pages that are protected while streams use them, so that accesses of the host fault.
 * Private to check/; called under the checker's lock. */
#pragma once

#include "device/host/check/state.h"

struct tt_check_guard { /* an allocation that streams use: guard.c */
    char *base;
    size_t bytes;
    enum tt_memory_kind kind;
    bool freed;                    /* no allocation any more; a kernel has its address */
    bool lent;                     /* memory that the program registered */
    struct tt_check_clock *direct; /* counted; lent: operations that use the program's mapping */
    size_t from, to;               /* pages that were used */
    struct tt_check_clock *opaque; /* counted; kernels that may use it without a report */
    int kernels;                   /* number of such kernels that run now */
    int whole;                     /* protection of all pages, where it is one; else -1 */
    unsigned char *prot;           /* owned; protection of each page */
};

struct tt_check_use { /* an access of an operation */
    const void *ptr;
    size_t bytes;
    size_t task;
    uint64_t epoch;
    bool direct; /* through the program's own mapping */
};

/* A range of registered pages that overlaps the bytes, or NULL. */
static inline const struct tt_check_range *tt_check_lent_at(const struct tt_host_check *check,
                                                            const void *ptr, size_t bytes)
{
    for (size_t i = 0; i < check->nlent; i++) {
        const struct tt_check_range *one = &check->lent[i];
        if ((const char *)one->ptr < (const char *)ptr + bytes &&
            (const char *)ptr < (const char *)one->ptr + one->bytes)
            return one;
    }
    return NULL;
}

/* ---- guard.c: pages of the host's mapping are protected while all of their bytes are in use ----
 */
bool tt_check_guard_due(const struct tt_host_check *check); /* an update is needed */
/* Protect and unprotect pages; at the end of each call that reports to the checker. */
void tt_check_guard_update(struct tt_host_check *check);
/* A kernel that does not report its accesses may use the allocations at these addresses. */
void tt_check_guard_kernel(struct tt_host_check *check, const struct tt_check_op *op,
                           const struct tt_check_words *words);
/* change: 1 before such a kernel runs a part of its blocks, -1 after it. */
void tt_check_guard_running(struct tt_host_check *check, const struct tt_check_words *words,
                            int change);
/* The memory is unregistered. */
void tt_check_guard_return(struct tt_host_check *check, const void *ptr, size_t bytes);
/* Freed memory whose address a kernel has is allocated again. */
void tt_check_guard_forget(struct tt_host_check *check, const void *ptr, size_t bytes);
/* Begin and end of a host function whose system calls may use memory of operations that are ordered
 * after it. */
void tt_check_guard_except(struct tt_host_check *check, const struct tt_check_op *op);
void tt_check_guard_again(struct tt_host_check *check, const struct tt_check_op *op);
/* A system call under way may use the bytes: their pages stay open until it returns. Returns NULL
 * where there are too many; then no page is closed of which only a part is used. */
struct tt_check_range *tt_check_guard_pass(struct tt_host_check *check,
                                           struct tt_check_range range);
void tt_check_guard_passed(struct tt_host_check *check, struct tt_check_range *range);
/* Whether the page may be protected by a guard. */
bool tt_check_guard_holds(const struct tt_host_check *check, const void *ptr);
bool tt_check_guard_is_pinned(const struct tt_host_check *check, const void *ptr);
/* Protection of the page: PROT_NONE, PROT_READ, or PROT_READ | PROT_WRITE. */
int tt_check_guard_of(const struct tt_host_check *check, const void *ptr);
/* Unprotect `pages` pages from ptr on, until the next update. */
void tt_check_guard_open(struct tt_host_check *check, const void *ptr, size_t pages);
/* The same for loads; the next store faults again. */
void tt_check_guard_let_read(struct tt_host_check *check, const void *ptr, size_t pages);
/* Protect the page again, after one instruction was let through. */
void tt_check_guard_shut(struct tt_host_check *check, const void *ptr);

/* ---- fault.c ---- */
void tt_check_fault_arm(struct tt_host_check *check); /* put our handler before the program's */
/* Unblock SIGSEGV in this thread: a fault while it is blocked would end the process. */
void tt_check_fault_unblock(void);

/* ---- shadow.c ---- */
/* Check an access of a running host function against the streams' accesses. op: the operation of
 * the host function, with the host's present clock. The access is not stored, because the host may
 * order later ones after it in ways that cannot be observed. */
void tt_check_touch_in_call(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                            size_t bytes, bool write);
