/* Pages that are closed to the program, and who meets one. Inside of the checker. */
#pragma once

#include "state.h"

struct tt_check_guard { /* an allocation that streams use: guard.c */
    char *base;
    size_t bytes;
    enum tt_memory_kind kind;
    bool freed;                    /* what was one, when a kernel was given its address */
    size_t from, to;               /* pages that were used */
    struct tt_check_clock *opaque; /* counted; kernels that may use it and do not report */
    int kernels;                   /* of them that run */
    int whole;                     /* what all of its pages were set to last, or -1 */
    unsigned char *prot;           /* owned; of each page now */
};

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
/* Memory is handed out again that a kernel was given after its end. */
void tt_check_guard_forget(struct tt_host_check *check, const void *ptr, size_t bytes);
/* While a host function runs that may use by system calls what operations behind it use. */
void tt_check_guard_except(struct tt_host_check *check, const struct tt_check_op *op);
void tt_check_guard_again(struct tt_host_check *check, const struct tt_check_op *op);
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
