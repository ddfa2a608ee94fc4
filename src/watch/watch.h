/* Who waits for whom and why. Reads counters and the wait registry; moves nothing but the abort
 * flag of a communicator that is beyond hope. */
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
    /* Says whether a wait for a rank cannot succeed; NULL: only time-outs decide. */
    struct tt_transport *transport;
    const struct tt_peer_reach *peers; /* their devices; NULL: not known */
    const _Atomic uint64_t *calls;     /* made, by function (enum tt_func); NULL: not counted */
    const _Atomic bool *grouped;       /* an open group holds calls; NULL: not known */
};

/* A communicator that is in its init: it is listed as such in reports from begin to end. Nothing
 * that goes wrong here is an error. end accepts NULL. */
struct tt_watch_init;
struct tt_watch_init *tt_watch_init_begin(const struct tt_member *member);
void tt_watch_init_end(struct tt_watch_init *init);

/* Start and stop watching (TUTTI_WATCHDOG, TUTTI_TIMEOUT, exits of other ranks). One
 * thread per process looks at all subjects while there are any. After tt_watch_remove() returned
 * nothing of the subject is touched. remove accepts NULL. */
ncclResult_t tt_watch_add(const struct tt_watch_subject *subject, struct tt_watch **watch_out);
void tt_watch_remove(struct tt_watch *watch);
/* The program ends the communicator, whose works are done: wait until all ranks are known to have
 * made the same calls. ncclInvalidUsage, reported to all ranks, where they have not; or what the
 * communicator has failed with. Takes 2 s at most (ranks that do not come), and accepts NULL. */
ncclResult_t tt_watch_close(struct tt_watch *watch);
/* Write to this eventfd to have the thread look at once: any thread, never waits. It lives as long
 * as the process; to be asked for after tt_watch_add(). */
int tt_watch_event(void);
