/* A contact as bytes: fixed size, little-endian. */
#include "bootstrap/tree/contact.h"

#include "bootstrap/wire/wire.h"

void tt_contact_pack(const struct tt_contact *contact, unsigned char bytes[TT_CONTACT_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_CONTACT_BYTES);
    tt_addr_put(&wire, &contact->addr);
    tt_addr_put(&wire, &contact->spare);
    tt_wire_put32(&wire, (uint32_t)contact->pid);
    tt_wire_put_text(&wire, contact->host, TT_HOST_BYTES);
}

void tt_contact_unpack(struct tt_contact *contact, const unsigned char *bytes)
{
    struct tt_wire wire;
    tt_wire_read(&wire, bytes, TT_CONTACT_BYTES);
    tt_addr_get(&wire, &contact->addr);
    tt_addr_get(&wire, &contact->spare);
    contact->pid = (int32_t)tt_wire_get32(&wire);
    tt_wire_get_text(&wire, contact->host, TT_HOST_BYTES);
}
