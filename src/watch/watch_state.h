/* What the files of the room share: the list of watched communicators. The watchdog's thread alone
 * reads it, under the lock of watch.c. Private to the room. */
#pragma once

#include "base/launcher.h"
#include "transport/left.h"
#include "watch/compare/compare.h"
#include "watch/flight/flight.h"
#include "watch/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum { TT_WATCH_NAME_BYTES = 32 };
/* What was reported: only that a process is stopped, or any verdict. */
enum { TT_REPORTED_NOTHING, TT_REPORTED_EARLY, TT_REPORTED_DUE };

struct tt_watch_init { /* a communicator in its init: copies, as the communicator still changes */
    struct tt_watch_init *next;
    uint64_t comm_id, since_nsec;
    int rank, nranks, device;
    char name[TT_WATCH_NAME_BYTES];
    bool reported; /* the launcher knows that it waits */
    char launcher[TT_LAUNCHER_BYTES];
};

struct tt_watch {
    struct tt_watch *next;
    struct tt_watch_subject subject;
    uint64_t served;     /* as last seen */
    uint64_t since_nsec; /* when it last changed, or work appeared */
    uint64_t begun;      /* collectives, as last seen */
    uint64_t begun_nsec; /* when that last changed */
    uint64_t issued;     /* as last seen */
    /* since the last progress: */
    bool reported;      /* it was reported that nothing finishes */
    bool looked, asked; /* the early inquiry was made; the one that is due was made */
    int left;           /* a rank that this one waits for and that has left, plus 1; 0: none */
    uint64_t left_nsec; /* when that was seen */
    struct tt_left why; /* it left */
    int gone;           /* the rank that has ended by the verdict, plus 1; 0: none */
    int judged;         /* how much was reported: TT_REPORTED_... */
    char verdict[400];  /* ": " and the verdict, for the message of an abort; "" */
    uint64_t again_nsec, pause_nsec; /* no cause was found: when to ask again, and the pause */
    uint64_t circle;                 /* of the last verdict (struct tt_verdict); 0 */
    uint64_t wants;                  /* the inquiry whose verdict is to be reported; 0: none */
    uint64_t until_nsec;             /* it is taken then, even if others wait for it */
    bool diagnoses;                  /* NCCL_RUN_RAS_DIAGNOSTICS: a report is to be printed, */
    uint64_t report;                 /* from this inquiry, at the latest then */
    uint64_t report_nsec;
    uint64_t mail;       /* of the bootstrap, when it was looked through for messages */
    uint64_t alone_nsec; /* since when it waits for a rank that is gone; 0: it does not */
    bool compares;       /* TUTTI_CHECK_MATCH */
    struct tt_watch_compare compare;
    struct tt_closing closing;
    struct tt_unreceived unreceived;
    struct tt_flight flight;
};
