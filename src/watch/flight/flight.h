/* The flight recorder: the latest operations of this process's ranks, as a file that `tutti trace`
 * reads. The operations are in the call log of room transport, which every launch writes anyway;
 * this adds the times at which the watchdog saw them begin and end. Private to the room. */
#pragma once

#include "transport/transport.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_watch;
struct tt_watch_subject;

struct tt_flight_look { /* counters that changed, and when that was seen */
    _Atomic uint64_t nsec, begun, ended;
};

struct tt_flight { /* of one communicator; the watchdog's thread writes, a signal handler reads */
    struct tt_flight_look looks[TT_CALL_LOG_LEN];
    _Atomic uint64_t nlooks;
    int slot;            /* in the list of flight.c, plus 1; 0: none */
    _Atomic bool dumped; /* its failure, or that it is stalled, is in the file */
    bool stands;         /* it is there as stalled */
};

/* Warn when other processes of the communicator write the same file. Any thread. Errors:
 * ncclInvalidUsage under strict mode. */
ncclResult_t tt_flight_check(const struct tt_watch_subject *subject);
/* Add a communicator; the first one prepares the file and the signal handlers. Remove it; when it
 * has failed, it is written first. These two and the next are called under the room's lock. */
void tt_flight_add(struct tt_watch *watch);
void tt_flight_remove(struct tt_watch *watch);
/* Note what has changed in one communicator; called at each look of the watchdog. When it has
 * failed or `stands_still` (makes no progress), all communicators are written, once. After further
 * progress it may be written again. */
void tt_flight_look(struct tt_watch *watch, uint64_t now, bool stands_still);
/* Write the lines of the file to a descriptor now. */
void tt_flight_write(int fd, const char *reason);
/* Forget all communicators, in a child of fork. */
void tt_flight_forget(void);
