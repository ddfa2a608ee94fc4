/* A second connection is made beside one that is open, by either end, and announces itself. */
#include "base/log.h"
#include "bootstrap/wire/address.h"
#include "bootstrap/wire/frame.h"
#include "bootstrap/wire/second.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

static void announce(struct tt_conn *first, struct tt_conn *second)
{
    unsigned char number[8];
    struct tt_wire wire;
    tt_wire_init(&wire, number, sizeof(number));
    tt_wire_put64(&wire, first->frames_sent);
    if (tt_bootstrap_at_netif(second->fd)) tt_service()->netif_cut = false; /* mended */
    tt_conn_send(second, TT_FRAME_SECOND, number, sizeof(number));
}

static void second_opened(struct tt_conn *second)
{
    announce(second->first, second);
}

/* Frames are the first one's. */
static void second_frame(struct tt_conn *second, uint16_t type, const unsigned char *bytes,
                         size_t len)
{
    (void)second, (void)type, (void)bytes, (void)len;
}

static void second_closed(struct tt_conn *second, const char *why)
{
    char text[128];
    tt_info(TT_LOG_BOOTSTRAP, "Bootstrap: no second connection to rank %d at %s: %s", second->peer,
            tt_addr_text(&second->from, text, sizeof(text)), why);
    tt_second_leave(second);
}

static const struct tt_conn_ops second_ops = {
    .opened = second_opened,
    .frame = second_frame,
    .closed = second_closed,
};

ncclResult_t tt_second_dial(struct tt_conn *first, const struct tt_conn_dial *dial)
{
    struct tt_conn_dial own = *dial;
    own.ops = &second_ops;
    ncclResult_t rc = tt_conn_dial(&own, &first->second);
    if (!rc) first->second->first = first;
    return rc;
}

void tt_second_join(struct tt_conn *first, struct tt_conn *second)
{
    first->second = second;
    second->first = first;
    second->owner = first->owner;
    second->ops = &second_ops;
    second->limit_bytes = first->limit_bytes;
    announce(first, second);
}
