/* What one rank of one communicator is doing, as its process sees it, and its form on the wire.
 * Every report (watchdog, doctor, RAS) is made from these. Private to the room. */
#pragma once

#include "program/program.h"
#include "watch/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TT_STATUS_WAITS = 3,
    TT_STATUS_FUNCS = TT_FUNC_COUNT_,
    TT_STATUS_HOST_BYTES = 64,
    TT_STATUS_NAME_BYTES = 32,
    TT_STATUS_ADDR_BYTES = 48,
    TT_STATUS_BYTES = 320, /* of one, packed */
};

struct tt_status_wait {
    int peer;            /* -1: several or unknown */
    uint8_t reason;      /* see tt_status_wait_word() */
    uint32_t age_msec;   /* of the wait */
    uint64_t number;     /* of the operation that waits */
    struct tt_call call; /* that waits; not known: `number` says which */
};

struct tt_status_process { /* whose ranks they are */
    uint64_t key;          /* random, differs from process to process */
    int pid;
    char host[TT_STATUS_HOST_BYTES];
    char addr[TT_STATUS_ADDR_BYTES]; /* numeric */
    bool located;                    /* host and address are those that its peers know */
};

struct tt_status {
    struct tt_status_process process;
    uint64_t comm_id;
    char name[TT_STATUS_NAME_BYTES];
    int rank, nranks, device;
    uint64_t issued, served; /* operations issued and finished; communicators that share resources
                                count them together */
    uint64_t begun;          /* collectives */
    uint64_t head_stream;    /* of its process: where the oldest unfinished operation is; 0: not
                                known */
    uint32_t idle_msec;      /* how long no issued operation has finished; 0: no work */
    uint32_t quiet_msec;     /* since the last collective began, or the communicator was made */
    uint32_t init;           /* ncclInProgress in its init, else ncclSuccess */
    uint32_t abort;          /* ncclResult_t of a communicator that failed */
    bool finalizes;          /* ncclCommFinalize or ncclCommDestroy was called */
    bool grouped;            /* a group is open that holds calls on it */
    uint32_t exchange_msec;  /* how long it has waited for the others in a split, a registration or
                             another exchange; 0: it does not */
    uint32_t graphs;         /* works in graphs for which its end has waited for a second */
    struct tt_call last;     /* the newest collective */
    uint32_t launched[TT_STATUS_FUNCS]; /* calls, by function */
    int nwaits;
    struct tt_status_wait waits[TT_STATUS_WAITS];
};

/* Fill the status of a communicator of this process, but for `process`, idle_msec and quiet_msec.
 */
void tt_status_fill(const struct tt_watch_subject *subject, uint64_t now,
                    struct tt_status *status_out);

/* What a wait is for, as the watchdog's sentences name it: "data", "arrival", "free slot". */
const char *tt_status_wait_word(const struct tt_status_wait *wait);

/* Pack a status without its process, and unpack it. False when the bytes are not a status. */
void tt_status_pack(const struct tt_status *status, unsigned char bytes[TT_STATUS_BYTES]);
bool tt_status_unpack(struct tt_status *status, const unsigned char bytes[TT_STATUS_BYTES]);

/* Make a name of a caller or peer safe for logs and JSON: quotes, backslashes and characters other
 * than printable ASCII become '?'. */
void tt_status_clean(char *text);

/* True when operations are issued and not finished, or a call waits for those of other ranks. */
bool tt_status_has_work(const struct tt_status *status);
