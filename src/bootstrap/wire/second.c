/* Two connections as one. Frames are numbered over both. A second connection begins with the number
 * of the frame that follows there, and from then on every frame goes over both:
 *
 *   first    ... 7 8 | 9 10 11
 *   second  (9)      | 9 10 11      11 came over either: the other 11 is dropped
 *
 * When one ends, for whatever reason, the other goes on; a process that ended closes both. Here is
 * what the two know of each other; how a second one is made is in second_open.c. */
#include "bootstrap/wire/second.h"

#include "bootstrap/wire/wire.h"

struct tt_conn *tt_second_leave(struct tt_conn *conn)
{
    struct tt_conn *second = conn->second;
    if (conn->first) conn->first->second = NULL;
    if (second) second->first = NULL;
    conn->first = conn->second = NULL;
    return second;
}

/* What was sent before the second one began has come over the first one: else it never comes. */
static bool follows(const struct tt_conn *second, const struct tt_conn *first)
{
    return second->got_count > 0 && second->got_count + second->offset <= first->frames_got;
}

bool tt_second_may_replace(const struct tt_conn *conn)
{
    const struct tt_conn *second = conn->second;
    return conn->state == TT_CONN_OPEN && second && second->state == TT_CONN_OPEN &&
           !second->early && follows(second, conn);
}

enum tt_second_order tt_second_sort(struct tt_conn *conn, const struct tt_second_frame *frame)
{
    struct tt_conn *owner = conn->first ? conn->first : conn;
    uint64_t counter = conn->got_count - 1;
    if (conn->first && counter == 0) {
        struct tt_wire wire;
        tt_wire_read(&wire, frame->bytes, frame->len);
        conn->offset = tt_wire_get64(&wire) - 1;
        return TT_FRAME_OLD;
    }
    uint64_t number = counter + conn->offset;
    if (number < owner->frames_got) return TT_FRAME_OLD;
    if (number > owner->frames_got) return TT_FRAME_EARLY;
    owner->frames_got++;
    return TT_FRAME_DUE;
}
