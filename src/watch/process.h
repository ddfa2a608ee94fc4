/* What this room keeps for the process: one object, a part per file. Private to the room. */
#pragma once

#include "watch/flight/flight.h"
#include "watch/inquiry/inquiry.h"
#include "watch/inquiry/status.h"
#include "watch/ras/serve.h"
#include "watch/watch_state.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FLIGHT_LISTED_MOST = 1024, FLIGHT_OUT_BYTES = 4096 };

struct tt_wait;

struct flight_out {
    int fd;
    size_t used;
    int error; /* errno of the first write that failed; 0: none */
    char text[FLIGHT_OUT_BYTES];
};

struct watch_flights { /* flight.c: a signal handler finds the communicators here */
    _Atomic(struct tt_watch *) listed[FLIGHT_LISTED_MOST];
    _Atomic int readers; /* of `listed` */
    _Atomic bool writing;
    _Atomic int complaint; /* errno of a file that could not be written; 0: none */
    bool prepared;
    _Atomic bool failed;  /* the file is about a failure: the exit does not write it again */
    _Atomic int standing; /* communicators that are stalled in it, and still are */
    _Atomic bool parted;  /* a communicator in the file has ended since: begin another file */
    _Atomic int nfiles;   /* earlier ones, which got .1, .2 behind their names */
    int most;             /* operations of a communicator */
    pid_t pid;
    uint64_t wall_nsec, mono_nsec; /* at one time */
    char path[PATH_MAX];           /* "": no file is wanted */
    int held;                      /* the file, locked; -1: it was not written yet */
    _Atomic bool said_shared;      /* other processes were found to have the same path */
    char host[TT_STATUS_HOST_BYTES], exe[128];
    struct flight_out out; /* used while `writing`: a handler may run on a stack of few KiB */
};

struct watch_watchdog { /* watch.c: one thread watches all communicators of the process */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int event_fd; /* wakes the thread; posted under any lock */
    pthread_t thread;
    bool running, joinable;
    bool hooked; /* fork handlers are set */
    struct tt_watch *subjects;
    struct tt_watch_init *inits;
    uint64_t reported_nsec;           /* the launcher heard of inits last */
    char *settings;                   /* owned: as of the last init */
    uint64_t report_nsec, abort_nsec; /* 0: off */
    struct tt_inquiry inquiry;        /* what all ranks do */
    struct tt_serve serve;            /* tools that ask from outside */
    char *unprinted;                  /* owned by the thread: a report for standard output */
};

struct tt_watches {
    struct watch_flights flights;
    struct watch_watchdog watchdog;
};

extern struct tt_watches tt_watches;

/* ---- flight_lines.c: a signal handler may call these ---- */

/* Write all that is known of the communicators in the list, as `tutti trace` reads it. */
void tt_flight_lines(struct flight_out *out, const char *reason);
/* The operations that have ended: all that began before the oldest collective that waits, or all,
 * when nothing is left to do (`idle`); else all but the last one, unless it was seen to end. */
uint64_t tt_flight_ended(const struct tt_flight *flight, uint64_t begun, bool idle,
                         const struct tt_wait *waits, int nwaits);
/* "path.k", in the text of `out`. */
const char *tt_flight_numbered(struct flight_out *out, const char *path, uint64_t k);
