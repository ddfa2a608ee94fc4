/* "Every wait has an owner and a reason": a thread that waits longer than its spin budget enters it
 * here; room watch/ reads the registry. Entering costs one store per field, no lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct tt_member;

struct tt_wait {
    const struct tt_member *owner; /* borrowed while the wait lasts */
    int peer;                      /* rank waited for; -1: several or unknown */
    uint64_t op_seq;               /* operation number of the communicator */
    const char *what;              /* static text: "slot of next", "arrival of", ... */
    uint64_t call[3];              /* its call (room program) of who waits in a message, or for
                                      TT_WAIT_CALL; else zero */
    uint64_t since_nsec;
};

/* What a wait for bytes from its peer calls itself; others wait for room, or until it has come. */
#define TT_WAIT_DATA "data of"
static inline bool tt_wait_is_for_data(const char *what)
{
    return strcmp(what, TT_WAIT_DATA) == 0;
}

/* What a wait for its peer's call, before the own one begins, calls itself. */
#define TT_WAIT_CALL "the call of"
static inline bool tt_wait_is_for_call(const char *what)
{
    return strcmp(what, TT_WAIT_CALL) == 0;
}

/* Enter and leave; a slot number, or -1 when the registry is full (the wait is then not listed). */
int tt_wait_enter(const struct tt_wait *wait);
void tt_wait_leave(int slot);

/* Copy the live waits of `owner` (NULL: all); returns how many. */
int tt_wait_list(const struct tt_member *owner, struct tt_wait *waits, int max);

/* How long the n-th fruitless sleep of a wait lasts, in nanoseconds: from 50 us, 4 ms at most. A
 * wait so oversleeps by a few percent of what it has lasted. Waking costs 25 to 50 us of processor
 * time in a virtual machine, so a second of waiting some 15 ms. */
static inline uint32_t tt_wait_backoff_nsec(uint32_t sleeps)
{
    return sleeps < 316 ? 50000 + sleeps * 12500 : 4000000;
}

/* Give the core away the way this wait needs it: `spins` is the caller's counter, starting at 0 and
 * set back when something moved. First polls, then pause, then sched_yield (at once when
 * `oversubscribed`: more local ranks than cores), at last sleeps. */
void tt_wait_relax(uint32_t *spins, bool oversubscribed);
