/* A process that listens at two interfaces can be called at either. Its first address is tried for
 * a second, then the other one, then each twice as long. Private to the room; under the service's
 * lock. */
#pragma once

#include "base/network/socket.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_conn;

struct tt_dial_path {
    bool over_spare; /* the address of the attempt */
    uint32_t turns;  /* attempts that did not reach it */
    uint64_t until_nsec;
};

/* An attempt begins; the address to call. spare: AF_UNSPEC: there is none. */
const union tt_addr *tt_dial_path_begin(struct tt_dial_path *path, const union tt_addr *addr,
                                        const union tt_addr *spare);
/* The attempt has not reached the other host, and its time is up. conn: NULL: it has ended. */
bool tt_dial_path_is_late(const struct tt_dial_path *path, const union tt_addr *spare,
                          const struct tt_conn *conn);
/* The attempt has failed: the next one calls the other address, unless the first one refused, as
 * then no process listens there. */
void tt_dial_path_turn(struct tt_dial_path *path, bool refused);
/* The attempt has succeeded. Where it was not at the first address, the process is warned once,
 * and what it calls later is called at the second address first. */
void tt_dial_path_end(const struct tt_dial_path *path, const char *whom, const union tt_addr *addr,
                      const union tt_addr *spare);
