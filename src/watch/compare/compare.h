/* Compares the calls of ranks. Ranks that exchange data compare match headers in slots; this
 * compares ranks that share no edge, or whose part ended before the other's call came. Private to
 * the room. */
#pragma once

#include "transport/transport.h"
#include "watch/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum { TT_COMPARE_PASSED = 64 };

struct tt_watch_compare { /* of one subject; zero: nothing known. The watchdog's thread alone */
    uint64_t begun;       /* at the last look */
    uint64_t reported;    /* `begun` when rank + 1 was sent the call log last */
    uint64_t mail;        /* of the bootstrap, when it was looked through */
    bool received;        /* `theirs` holds the call log of rank - 1 */
    uint64_t theirs[TT_CALL_LOG_WORDS];
    uint64_t ask_nsec; /* when to ask the rank that this one waits for again; 0: at once */
    uint64_t ask_pause_nsec;
    uint32_t round;                     /* counts the messages that this rank began */
    uint32_t npassed;                   /* messages of others that were passed on: */
    uint64_t passed[TT_COMPARE_PASSED]; /* the rank that began them, and their round */
};

/* Compare with the neighbour ranks when this rank makes no calls for a while, and with the peer of
 * a message or collective that has waited for long. A difference fails the communicator at all
 * ranks (room transport). Sends at most two short messages over the bootstrap. */
void tt_compare_look(struct tt_watch_compare *compare, const struct tt_watch_subject *subject,
                     uint64_t now);

/* ---- closing.c: at the end of a communicator, compare all calls of all ranks ---- */

struct tt_closing {          /* of one subject; zero: nothing known */
    _Atomic uint64_t agreed; /* operations in which all ranks agree, as rank 0 reported */
    _Atomic int ends;        /* the program ends the communicator, and waits */
    _Atomic bool behind;     /* a rank has not come as far as one that ends, as it said */
    /* the watchdog's thread alone */
    uint64_t mail;        /* of the bootstrap, when it was looked through */
    bool reported;        /* this rank's last calls are known to rank 0 */
    uint64_t wanted;      /* rank 0 waits for this rank's calls up to this number; 0: it does not */
    uint64_t wanted_nsec; /* since then */
    uint64_t asked;       /* of rank 0: it has asked the others for their calls up to this number */
    void *messages;       /* owned, of rank 0: the last one of each rank */
};

/* Answer questions of other ranks and send own ones; called at each look of the watchdog. */
void tt_closing_look(struct tt_closing *closing, const struct tt_watch_subject *subject);
/* Wait until all ranks are known to have made the same calls. Blocks 2 s at most where a
 * rank is behind, 10 s where messages take so long, and does not wait for ranks that are gone.
 * Errors: that of the communicator. */
ncclResult_t tt_closing_wait(struct tt_closing *closing, const struct tt_watch_subject *subject,
                             int event_fd);
void tt_closing_fini(struct tt_closing *closing);

/* ---- unreceived.c: was each message received? ---- */

struct tt_unreceived {  /* of one subject; zero: nothing is compared. Under the watchdog's lock */
    uint32_t *sent;     /* owned, nranks: messages to this rank, as reported by ranks that end */
    uint32_t *answered; /* owned, nranks: what was answered */
    bool open;          /* a report may not have been answered yet */
    bool ends;          /* this rank receives nothing more */
    uint64_t mail;      /* of the bootstrap, when it was looked through */
};

void tt_unreceived_init(struct tt_unreceived *unreceived, int nranks);
void tt_unreceived_fini(struct tt_unreceived *unreceived);
/* Answer ranks that ask; called at each look of the watchdog, with its lock. */
void tt_unreceived_look(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject);
/* At the end of a communicator whose works are done, with that lock: warn for each rank that has
 * sent more messages than this one received, and from now on for each that says so later. */
void tt_unreceived_end(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject);
/* After that, without the lock: wait until each rank that this one sent messages to has received
 * them, or will say itself that it has not; warn when it has ended before. Blocks 2 s at most, when
 * a rank does not answer. */
void tt_unreceived_wait(const struct tt_unreceived *unreceived,
                        const struct tt_watch_subject *subject);
