/* A second connection between two processes, over another interface. Each frame goes over both; the
 * first to come counts, so that a cut of either interface costs nothing. Lock held. */
#pragma once

#include "bootstrap/wire/conn.h"

/* Begin one beside an open connection. It is joined when it stands; when it fails nothing is lost.
 * Errors: as tt_conn_dial(). */
ncclResult_t tt_second_dial(struct tt_conn *first, const struct tt_conn_dial *dial);
/* Server: `second` has proved itself. */
void tt_second_join(struct tt_conn *first, struct tt_conn *second);
/* Take the connections apart; returns the second one, or NULL. */
struct tt_conn *tt_second_leave(struct tt_conn *conn);
/* Whether `conn` can go on over its second one alone. */
bool tt_second_may_replace(const struct tt_conn *conn);

struct tt_second_frame {
    uint16_t type;
    const unsigned char *bytes;
    size_t len;
};
/* Whether the frame last read from `conn` is the next of the two, came already or is not for the
 * owner, or must wait for others; the first is counted. */
enum tt_second_order { TT_FRAME_DUE, TT_FRAME_OLD, TT_FRAME_EARLY };
enum tt_second_order tt_second_sort(struct tt_conn *conn, const struct tt_second_frame *frame);
