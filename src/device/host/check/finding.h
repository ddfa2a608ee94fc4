/* What the checker found, and order that is known late, which may make it none. Inside of the
 * checker; under its lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_clock;
struct check_op;
struct host_check;

enum check_kind {
    CHECK_RACE,
    CHECK_USE_AFTER_FREE,
    CHECK_UNWRITTEN,
    CHECK_OUTSIDE,
    CHECK_IN_GRAPH,
    CHECK_IN_GROUP
};
struct check_finding {
    enum check_kind kind;
    const struct check_op *first, *second; /* first: NULL where there is none */
    bool first_writes, second_writes;
    const void *ptr;
    size_t bytes;
    bool refused; /* OUTSIDE: nothing was done, ... */
    bool freed;   /* ... and the memory was there before */
};

struct check_fence { /* operations of `task` from `epoch` on know the clock */
    uint64_t number;
    size_t task;
    uint64_t epoch;
    struct check_clock *clock; /* counted */
    bool open;                 /* it may be told more */
};
struct check_kept { /* a race, unless a fence is told of order; both are counted */
    struct check_finding finding;
    struct check_op *one, *other;
};
struct check_fences {
    struct check_fence *at; /* owned; by number */
    size_t count, room;
    uint64_t last;
    struct check_kept *kept; /* owned */
    size_t nkept, kept_room;
};

/* ---- fence.c ---- */
/* The task's operations from `epoch` on are behind it; its number, 0: out of memory. */
uint64_t check_fence_open(struct host_check *check, size_t task, uint64_t epoch);
void check_fence_update(struct host_check *check, uint64_t number, const struct check_clock *clock);
void check_fence_close(struct host_check *check, uint64_t number);
void check_fences_pass(struct host_check *check); /* the host has waited for more */
bool check_ordered_late(const struct host_check *check, const struct check_op *one,
                        const struct check_op *other);
/* False: no fence can make it none any more. */
bool check_keep_finding(struct host_check *check, const struct check_finding *finding,
                        struct check_op *one, struct check_op *other);
void check_flush_findings(struct host_check *check, bool ends);

/* ---- report.c ---- */
void check_report(struct host_check *check, const struct check_finding *finding);
void check_report_leaks(struct host_check *check); /* what is allocated yet */
