/* Pages that are closed to the program, and who meets one. Inside of the checker. */
#pragma once

#include "state.h"

struct tt_check_guard { /* an allocation that streams use: guard.c */
    char *base;
    size_t bytes;
    enum tt_memory_kind kind;
    bool freed;                    /* what was one, when a kernel was given its address */
    bool lent;                     /* what the program registered */
    struct tt_check_clock *direct; /* counted; of lent memory: what uses it as it is mapped */
    size_t from, to;               /* pages that were used */
    struct tt_check_clock *opaque; /* counted; kernels that may use it and do not report */
    int kernels;                   /* of them that run */
    int whole;                     /* what all of its pages were set to last, or -1 */
    unsigned char *prot;           /* owned; of each page now */
};

struct tt_check_use { /* by an operation */
    const void *ptr;
    size_t bytes;
    size_t task;
    uint64_t epoch;
    bool direct; /* through the program's own mapping */
};

/* Whole pages of registered memory that bytes lie in or across, or NULL. */
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

/* ---- guard.c: pages of the host's mapping are closed while all of their bytes are in flight ----
 */
bool tt_check_guard_due(const struct tt_host_check *check); /* something has changed */
/* Close and open what must be; at the end of each call that reports to the checker. */
void tt_check_guard_update(struct tt_host_check *check);
/* Kernels whose accesses nobody reports may use the allocations around these addresses. */
void tt_check_guard_kernel(struct tt_host_check *check, const struct tt_check_op *op,
                           const struct tt_check_words *words);
/* One of them runs a part of its blocks (1), or is back (-1). */
void tt_check_guard_running(struct tt_host_check *check, const struct tt_check_words *words,
                            int change);
/* Registered memory is the program's alone again. */
void tt_check_guard_return(struct tt_host_check *check, const void *ptr, size_t bytes);
/* Memory is handed out again that a kernel was given after its end. */
void tt_check_guard_forget(struct tt_host_check *check, const void *ptr, size_t bytes);
/* While a host function runs that may use by system calls what operations behind it use. */
void tt_check_guard_except(struct tt_host_check *check, const struct tt_check_op *op);
void tt_check_guard_again(struct tt_host_check *check, const struct tt_check_op *op);
/* May the page be one that was closed here? */
bool tt_check_guard_holds(const struct tt_host_check *check, const void *ptr);
bool tt_check_guard_is_pinned(const struct tt_host_check *check, const void *ptr);
/* The way its page is closed (PROT_NONE, PROT_READ), or PROT_READ | PROT_WRITE. */
int tt_check_guard_of(const struct tt_host_check *check, const void *ptr);
/* The page and those behind it, until the next update. */
void tt_check_guard_open(struct tt_host_check *check, const void *ptr, size_t pages);
/* What it is closed to is closed again, after one instruction that found it open. */
void tt_check_guard_shut(struct tt_host_check *check, const void *ptr);

/* ---- fault.c ---- */
void tt_check_fault_arm(struct tt_host_check *check); /* our handler is the program's first */
/* In this thread: the system ends a process that faults where SIGSEGV is blocked. */
void tt_check_fault_unblock(void);

/* ---- shadow.c ---- */
/* The byte that a host function accesses while it runs, against what streams do there. `op` is the
 * host function's with all that the host knows now; nothing is noted, as the host may learn of the
 * access by ways that nobody sees. */
void tt_check_touch_in_call(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                            bool write);
