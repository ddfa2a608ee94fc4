/* Find the rank that is the cause when a rank waits. Private to the room. */
#pragma once

#include "watch/inquiry/inquiry.h"

enum tt_verdict_kind {
    TT_VERDICT_NONE,       /* no cause found */
    TT_VERDICT_STOPPED,    /* a process is stopped */
    TT_VERDICT_ENDED,      /* a process is gone */
    TT_VERDICT_SILENT,     /* a process does not answer: stopped, or out of reach */
    TT_VERDICT_NOT_CALLED, /* a rank has not made the call that others are in */
    TT_VERDICT_QUEUED,     /* it has made the call, but its stream has not reached it */
    TT_VERDICT_CIRCLE,     /* ranks wait for each other */
    TT_VERDICT_GRAPHS,     /* the communicator's end waits for graphs that hold calls of it */
    /* of a rank that has not answered, where all that have are in the communicator's init: */
    TT_VERDICT_INIT,    /* it is there, too */
    TT_VERDICT_AWAITED, /* it has not come */
    TT_VERDICT_UNKNOWN, /* one of these two */
};

enum { TT_VERDICT_COMMS = 8 };

struct tt_verdict {
    enum tt_verdict_kind kind;
    uint64_t comm_id; /* and rank: the cause */
    int rank;
    uint64_t circle; /* of a circle over several communicators: names what its ranks stand in, so it
                        differs as soon as one of them goes on; else 0 */
    bool certain;    /* that circle cannot end: its streams have the calls in this order */
    int ncomms;      /* the first communicators of that circle */
    uint64_t comms[TT_VERDICT_COMMS];
    char sentence[600];
};

/* Follow the waits from a rank, across communicators, to the rank that waits for no other.
 * watches  communicators of this process, which know host and pid of ranks that do not answer */
void tt_verdict_find(const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                     uint64_t comm_id, int rank, struct tt_verdict *verdict_out);
const char *tt_verdict_name(enum tt_verdict_kind kind);

/* State of a process of this host, from /proc: STOPPED, ENDED, or NONE when it runs. */
enum tt_verdict_kind tt_verdict_process(int pid);

/* What is known of a rank that has not answered. */
struct tt_absent {
    enum tt_verdict_kind kind; /* STOPPED, ENDED or SILENT; in an init INIT, AWAITED or UNKNOWN */
    bool runs;                 /* its process is on this host, and neither stopped nor gone */
    int pid;                   /* -1: unknown */
    char host[TT_STATUS_HOST_BYTES], addr[TT_STATUS_ADDR_BYTES];
};
struct tt_absent tt_verdict_absent(const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                                   uint64_t comm_id, int rank);
