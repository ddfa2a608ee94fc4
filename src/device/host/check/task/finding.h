/* Findings, and fences: order that becomes known after a finding may cancel it. Private to check/;
 * called under the checker's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_check_clock;
struct tt_check_op;
struct tt_host_check;

enum tt_check_kind {
    TT_CHECK_RACE,
    TT_CHECK_USE_AFTER_FREE,
    TT_CHECK_UNWRITTEN,
    TT_CHECK_OUTSIDE,
    TT_CHECK_IN_GRAPH,
    TT_CHECK_IN_GROUP
};
struct tt_check_finding {
    enum tt_check_kind kind;
    const struct tt_check_op *first, *second; /* first: may be NULL */
    bool first_writes, second_writes;
    const void *ptr;
    size_t bytes;
    bool refused; /* OUTSIDE: the call failed */
    bool freed;   /* OUTSIDE: the memory was allocated earlier */
};

struct tt_check_fence { /* operations of `task` from `epoch` on come after the clock */
    uint64_t number;
    size_t task;
    uint64_t epoch;
    struct tt_check_clock *clock; /* counted */
    bool open;                    /* the clock may still grow */
};
struct tt_check_kept { /* a race, unless a fence orders the two; both are counted */
    struct tt_check_finding finding;
    struct tt_check_op *one, *other;
};
struct tt_check_fences {
    struct tt_check_fence *at; /* owned; by number */
    size_t count, room;
    uint64_t last;
    struct tt_check_kept *kept; /* owned */
    size_t nkept, kept_room;
};

/* ---- fence.c ---- */
/* A fence for the task's operations from `epoch` on. Returns its number; 0: out of memory. */
uint64_t tt_check_fence_open(struct tt_host_check *check, size_t task, uint64_t epoch);
void tt_check_fence_update(struct tt_host_check *check, uint64_t number,
                           const struct tt_check_clock *clock);
void tt_check_fence_close(struct tt_host_check *check, uint64_t number);
void tt_check_fences_pass(struct tt_host_check *check); /* the host has waited: decide findings */
bool tt_check_ordered_late(const struct tt_host_check *check, const struct tt_check_op *one,
                           const struct tt_check_op *other);
/* Keep a finding until fences decide. False: no open fence can cancel it. */
bool tt_check_keep_finding(struct tt_host_check *check, const struct tt_check_finding *finding,
                           struct tt_check_op *one, struct tt_check_op *other);
void tt_check_flush_findings(struct tt_host_check *check, bool ends);

/* ---- report.c ---- */
void tt_check_report(struct tt_host_check *check, const struct tt_check_finding *finding);
void tt_check_report_leaks(struct tt_host_check *check); /* what is still allocated */
