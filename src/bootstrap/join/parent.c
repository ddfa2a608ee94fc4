/* A rank takes its place in the tree: it connects to its parent, which listens since before its
 * address was sent, and knows no more of it than that address. */
#include "base/error.h"
#include "base/log.h"
#include "base/system/clock.h"
#include "bootstrap/join/join.h"
#include "bootstrap/tree/dispatch.h"
#include "bootstrap/tree/wait.h"

#include <errno.h>
#include <stdio.h>

#define ANSWER_NSEC 10000000000ull /* for one peer that should be there */
#define RETRY_FIRST_NSEC 1000000ull
#define RETRY_LAST_NSEC 100000000ull
#define REFUSALS 4 /* then no process will listen there any more */

/* Wait a little longer each time, keeping an eye on aborts. */
static ncclResult_t pause_retry(struct tt_bootstrap *b, uint64_t *pause_nsec, uint64_t deadline)
{
    ncclResult_t rc = ncclSuccess;
    uint64_t until = tt_now_nsec() + *pause_nsec;
    while (!rc && tt_now_nsec() < until)
        rc = tt_tree_wait(b, deadline);
    if (*pause_nsec < RETRY_LAST_NSEC) *pause_nsec *= 2;
    return rc;
}

/* Once, when it is time. */
static void report_silence(const struct tt_bootstrap *b, uint64_t start_nsec, uint64_t *report_nsec)
{
    if (tt_now_nsec() < *report_nsec) return;
    tt_warn("rank %d of %d: init waits since %.0f s for rank %d on host %s (pid %d): does it make "
            "the same call?",
            b->rank, b->nranks, (double)(tt_now_nsec() - start_nsec) * 1e-9, b->parent,
            b->parent_contact.host, (int)b->parent_contact.pid);
    *report_nsec = UINT64_MAX;
}

/* One attempt. ncclSuccess: connected; ncclInProgress: another one may succeed. A failed attempt
 * closes the connection and clears both `up` and `dialing`. */
static ncclResult_t try_parent(struct tt_bootstrap *b, uint64_t deadline, int *refusals)
{
    const struct tt_contact *parent = &b->parent_contact;
    char text[128];
    b->dial_error = ECONNREFUSED; /* unless it ends otherwise */
    ncclResult_t rc = tt_tree_dial_parent(b, tt_sooner(tt_now_nsec() + ANSWER_NSEC, deadline));
    while (!rc && b->dialing && !tt_dial_path_is_late(&b->parent_path, &parent->spare, b->up))
        rc = tt_tree_wait(b, deadline);
    if (rc) return rc;
    if (b->up && !b->dialing) {
        snprintf(text, sizeof(text), "rank %d on host %s", b->parent, parent->host);
        tt_dial_path_end(&b->parent_path, text, &parent->addr, &parent->spare);
        return ncclSuccess;
    }
    const bool late = b->up, refused = !late && b->dial_error == ECONNREFUSED;
    tt_conn_close(b->up); /* late */
    b->up = NULL;
    b->dialing = false;
    if (!late) *refusals = refused ? *refusals + 1 : 0;
    tt_dial_path_turn(&b->parent_path, refused);
    return *refusals < REFUSALS ? ncclInProgress : ncclRemoteError;
}

ncclResult_t tt_join_parent(struct tt_bootstrap *b, uint64_t deadline_nsec)
{
    char addr[128];
    uint64_t pause_nsec = RETRY_FIRST_NSEC;
    uint64_t start_nsec = tt_now_nsec(), report_nsec = tt_tree_report_nsec();
    int refusals = 0;
    ncclResult_t rc = b->rank ? ncclInProgress : ncclSuccess;
    while (rc == ncclInProgress) {
        rc = try_parent(b, deadline_nsec, &refusals);
        if (!rc) return ncclSuccess;
        report_silence(b, start_nsec, &report_nsec);
        if (rc != ncclInProgress) break;
        rc = pause_retry(b, &pause_nsec, deadline_nsec);
        if (!rc) rc = ncclInProgress;
    }
    if (!rc || atomic_load(&b->error) || (rc != ncclTimeout && refusals < REFUSALS)) return rc;
    return tt_fail(rc, "rank %d: no answer from rank %d on host %s (pid %d) at %s%s%s", b->rank,
                   b->parent, b->parent_contact.host, (int)b->parent_contact.pid,
                   tt_addr_text(&b->parent_contact.addr, addr, sizeof(addr)),
                   refusals >= REFUSALS ? ": its process is gone" : "",
                   tt_addr_reach_text(&b->parent_contact.addr));
}
