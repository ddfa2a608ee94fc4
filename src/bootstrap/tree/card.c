/* What the room itself must know of each rank, as bytes. */
#include "bootstrap/join/id.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/wire/wire.h"

void tt_card_pack(const struct tt_card *card, unsigned char bytes[TT_CARD_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_CARD_BYTES);
    tt_addr_put(&wire, &card->addr);
    tt_wire_put32(&wire, (uint32_t)card->pid);
    tt_wire_put_text(&wire, card->host, TT_HOST_BYTES);
}

void tt_card_unpack(struct tt_card *card, const unsigned char *bytes)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, TT_CARD_BYTES);
    tt_addr_get(&wire, &card->addr);
    card->pid = (int32_t)tt_wire_get32(&wire);
    tt_wire_get_text(&wire, card->host, TT_HOST_BYTES);
}
