/* The watchdog: finds which rank waits for which, and why. Reads counters and the wait registry.
 * Writes only the abort flag of a communicator that cannot go on. */
#pragma once

#include "nccl.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_member;
struct tt_issue_queue;
struct tt_bootstrap;
struct tt_watch; /* one watched communicator; opaque */

struct tt_transport;
struct tt_peer_reach;

struct tt_watch_subject { /* borrowed until tt_watch_remove() */
    struct tt_member *member;
    const struct tt_issue_queue *queue;
    struct tt_bootstrap *bootstrap;
    /* Asked whether a wait for a rank can still succeed; NULL: only time-outs decide. */
    struct tt_transport *transport;
    bool compares;                     /* all ranks compare calls (TUTTI_CHECK_MATCH) */
    const struct tt_peer_reach *peers; /* of all ranks, for their devices; NULL: not known */
    const _Atomic uint64_t *calls;     /* made, by function (enum tt_func); NULL: not counted */
    const _Atomic int *phase;          /* of its life, and from which on it is finalized; NULL */
    int finalizes;
    const _Atomic bool *grouped;         /* an open group holds calls; NULL: not known */
    const _Atomic uint32_t *graph_refs;  /* works that graphs hold, and since when the end of the */
    const _Atomic uint64_t *graphs_nsec; /* communicator waits for these; NULL: not known */
};

/* List a communicator as being in its init, from begin to end, in reports. begin returns NULL when
 * memory is short: the communicator is then not listed. end accepts NULL. Any thread. */
struct tt_watch_init;
struct tt_watch_init *tt_watch_init_begin(const struct tt_member *member);
void tt_watch_init_end(struct tt_watch_init *init);

/* After this time without progress a communicator fails (TUTTI_TIMEOUT, or strict mode's); 0:
 * never. */
uint64_t tt_watch_abort_nsec(void);

/* Start and stop watching (TUTTI_WATCHDOG, TUTTI_TIMEOUT, exits of other ranks). One thread per
 * process watches all subjects. After tt_watch_remove() has returned, it does not touch the
 * subject. remove accepts NULL. Errors: ncclSystemError (out of memory, no thread). */
ncclResult_t tt_watch_add(const struct tt_watch_subject *subject, struct tt_watch **watch_out);
void tt_watch_remove(struct tt_watch *watch);
/* At the end of a communicator whose works are done: wait until all ranks are known to have made
 * the same calls. Blocks 2 s at most, when ranks do not come. Accepts NULL. Errors:
 * ncclInvalidUsage, reported to all ranks, when the calls differ; the error with which the
 * communicator has failed before. */
ncclResult_t tt_watch_close(struct tt_watch *watch);
/* An eventfd: a write to it (from any thread) makes the watchdog look at once. Valid as long as the
 * process; call this after tt_watch_add(). */
int tt_watch_event(void);
