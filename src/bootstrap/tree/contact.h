/* Address, process and host of a rank. */
#pragma once

#include "bootstrap/wire/address.h"

#include <stdint.h>

#define TT_HOST_BYTES 64

struct tt_contact {
    union tt_addr addr;  /* its process's listener */
    union tt_addr spare; /* the same over another interface; AF_UNSPEC: none */
    int32_t pid;
    char host[TT_HOST_BYTES];
};

#define TT_CONTACT_BYTES (2 * TT_ADDR_WIRE_BYTES + 4 + TT_HOST_BYTES)
void tt_contact_pack(const struct tt_contact *contact, unsigned char bytes[TT_CONTACT_BYTES]);
void tt_contact_unpack(struct tt_contact *contact, const unsigned char *bytes);
