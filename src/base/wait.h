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
    uint64_t call[3];              /* its call (room program) of a wait in a message, or for
                                      TT_WAIT_CALL; else zero */
    uint64_t since_nsec;
};

/* `what` of a wait for bytes from its peer. Other waits are for room, or for the peer to start. */
#define TT_WAIT_DATA "data of"
static inline bool tt_wait_is_for_data(const char *what)
{
    return strcmp(what, TT_WAIT_DATA) == 0;
}

/* `what` of a wait for the call of its peer, before the rank's own call begins. */
#define TT_WAIT_CALL "the call of"
static inline bool tt_wait_is_for_call(const char *what)
{
    return strcmp(what, TT_WAIT_CALL) == 0;
}

/* Enter a wait; returns its slot, or -1 when the registry is full (the wait is then not listed).
 * Leave it with that slot. Any thread. */
int tt_wait_enter(const struct tt_wait *wait);
void tt_wait_leave(int slot);

/* Copy the live waits of `owner` (NULL: all); returns how many. */
int tt_wait_list(const struct tt_member *owner, struct tt_wait *waits, int max);

/* Length of the n-th sleep of a wait, in nanoseconds: 50 us at first, 4 ms at most. So a wait ends
 * late by a few percent of its length. Waking costs 25 to 50 us of processor time in a virtual
 * machine; one second of waiting costs some 15 ms. */
static inline uint32_t tt_wait_backoff_nsec(uint32_t sleeps)
{
    return sleeps < 316 ? 50000 + sleeps * 12500 : 4000000;
}

/* One turn of a wait that found nothing. `spins` is the caller's counter: it starts at 0, and the
 * caller sets it back to 0 when something moved. The first turns only poll, later ones pause, then
 * call sched_yield (at once when `oversubscribed`: more local ranks than cores), at last sleep. */
void tt_wait_relax(uint32_t *spins, bool oversubscribed);
