/* Do the ranks mean the same calls? Slots tell those that exchange data; here ask those that share
 * no edge, or whose part ended before the other's call came. Private to the room. */
#pragma once

#include "transport/transport.h"
#include "watch/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum { TT_COMPARE_PASSED = 64 };

struct tt_watch_compare { /* of one subject; zero: nothing known. The watchdog's thread alone */
    uint64_t begun;       /* at the last look */
    uint64_t reported;    /* what the next rank was told last */
    uint64_t mail;        /* of the bootstrap, when it was looked through */
    bool heard;           /* `theirs` is the call log of the rank before this one */
    uint64_t theirs[TT_CALL_LOG_WORDS];
    uint64_t ask_nsec; /* when the rank that is waited for is asked again; 0: at once */
    uint64_t ask_pause_nsec;
    uint32_t round;                     /* counts the letters that this rank began */
    uint32_t npassed;                   /* letters of others that were passed on: */
    uint64_t passed[TT_COMPARE_PASSED]; /* who began them, and their round */
};

/* Compare with the neighbours when this rank's calls have come to rest, and ask whom a message or a
 * collective has waited for long. A difference fails the communicator at all ranks, through room
 * transport. Sends at most two short messages over the bootstrap. */
void tt_compare_look(struct tt_watch_compare *compare, const struct tt_watch_subject *subject,
                     uint64_t now);
