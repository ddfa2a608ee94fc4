/* An inquiry collects the states of all ranks of a job. Questions go out over the bootstraps of
 * this process's communicators, and from there over communicators that only other processes are in.
 * Private to the room; the watchdog's thread alone. */
#pragma once

#include "watch/inquiry/status.h"
#include "watch/watch_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TT_INQUIRY_HOPS = 8 };

struct tt_inquiry_hop { /* from one rank of a communicator to another */
    uint64_t comm_id;
    int from, to;
};

struct tt_inquiry_comm { /* a communicator of the job */
    uint64_t comm_id;
    int nranks;
    unsigned char *rank; /* owned: TT_INQUIRY_ASKED, TT_INQUIRY_FOUND */
    uint32_t *at;        /* owned: of a found rank its place in the list of all found, plus 1 */
    int nfound;
    bool in_init; /* all that have answered are in its init: the others cannot be asked */
    int nhops;    /* route to its ranks: over these hops, */
    struct tt_inquiry_hop hops[TT_INQUIRY_HOPS];
    int from; /* then from this rank of its own */
};
enum { TT_INQUIRY_ASKED = 1, TT_INQUIRY_FOUND = 2 };

/* What an inquiry asks for, beside what all ranks do. */
enum tt_inquiry_asks {
    TT_INQUIRY_JUDGES = 1,    /* a watchdog asks, and reports to all ranks what it finds */
    TT_INQUIRY_SETTINGS = 2,  /* devices and variables of each process */
    TT_INQUIRY_PROFILERS = 4, /* each process sets its profiler's mask to the upper half */
};

struct tt_inquiry_settings { /* of a process: lines "NAME=value", see diagnose.h */
    uint64_t key;
    char *text; /* owned */
};

struct tt_inquiry {
    uint64_t id;     /* of the last one begun; the process's own number is mixed in */
    uint64_t number; /* counts those begun, */
    uint64_t ended;  /* and the last one that is complete or over */
    bool open;
    bool late;     /* not all have answered */
    uint64_t asks; /* enum tt_inquiry_asks; the upper half is a mask */
    struct {       /* the one to begin when this one is over */
        bool wanted;
        uint64_t asks, limit_nsec;
    } next;
    const struct tt_watch_init *inits; /* borrowed: communicators of this process in their init */
    const char *own_settings;          /* borrowed; NULL: none are known */
    struct tt_inquiry_settings *settings; /* owned: of those that answered */
    size_t nsettings;
    uint64_t began_nsec, received_nsec, until_nsec, took_nsec;
    struct tt_status_process self;
    struct tt_status *found; /* owned */
    size_t nfound, room;
    struct tt_inquiry_comm *comms; /* owned */
    size_t ncomms;
    uint64_t asked_nsec;   /* when the watchdog of another process asked last */
    uint64_t answered[16]; /* questions that this process has answered, newest last */
};

/* Request an inquiry. Each requester has its own deadline, after which it takes what was found by
 * then (tt_inquiry_is_due). An inquiry that began lately is shared. An older one has outdated
 * states: it ends, and a new one begins, which discards what was found. So call this only when all
 * requesters to whom the last one is due have had it.
 * limit_nsec  how long the inquiry may take
 * asks        enum tt_inquiry_asks
 * Returns the number of the inquiry. */
uint64_t tt_inquiry_want(struct tt_inquiry *inquiry, const struct tt_watch *watches, uint64_t now,
                         uint64_t limit_nsec, uint64_t asks);
/* True when the inquiry with that number is over, or the requester's deadline has passed. */
bool tt_inquiry_is_due(const struct tt_inquiry *inquiry, uint64_t number, uint64_t until_nsec,
                       uint64_t now);
/* Take questions and answers from the mail, end the inquiry in time, begin the next. */
void tt_inquiry_step(struct tt_inquiry *inquiry, struct tt_watch *watches, uint64_t now);
/* Forget what was found. The next one begins anew. */
void tt_inquiry_reset(struct tt_inquiry *inquiry);

/* What was found of a rank; NULL: it has not answered. */
const struct tt_status *tt_inquiry_find(const struct tt_inquiry *inquiry, uint64_t comm_id,
                                        int rank);
/* Of a process; NULL: not asked for, or it has not answered. */
const char *tt_inquiry_settings(const struct tt_inquiry *inquiry, uint64_t key);
const struct tt_inquiry_comm *tt_inquiry_comm(const struct tt_inquiry *inquiry, uint64_t comm_id);
