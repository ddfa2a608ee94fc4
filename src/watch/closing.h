/* Do all ranks of a communicator that ends agree in all calls? Private to the room. */
#pragma once

#include "transport/transport.h"
#include "watch/watch.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_closing {          /* of one subject; zero: nothing known */
    _Atomic uint64_t agreed; /* operations in which all ranks agree, as rank 0 said */
    _Atomic int ends;        /* the program ends the communicator, and waits */
    /* the watchdog's thread alone */
    uint64_t mail;   /* of the bootstrap, when it was looked through */
    bool told;       /* this rank's last calls are known to rank 0 */
    uint64_t wanted; /* rank 0 wants to know this rank's calls when it has come so far; 0: not */
    uint64_t asked;  /* rank 0 has asked the others for theirs up to this one */
    void *letters;   /* owned, of rank 0: the last one of each rank */
};

/* Answer and ask, once a look of the watchdog. */
void tt_closing_look(struct tt_closing *closing, const struct tt_watch_subject *subject);
/* Wait until all ranks are known to have made the same calls: ncclSuccess, or what the communicator
 * has failed with. At most 2 s, and not for ranks that have gone. */
ncclResult_t tt_closing_wait(struct tt_closing *closing, const struct tt_watch_subject *subject,
                             int event_fd);
void tt_closing_fini(struct tt_closing *closing);
