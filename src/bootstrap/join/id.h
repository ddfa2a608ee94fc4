/* The 128 bytes of an id: layout, secret, address. The secret never reaches a log. */
#pragma once

#include "base/network/socket.h"
#include "bootstrap/wire/handshake.h"
#include "nccl.h"

#include <stdbool.h>

struct tt_id_parts {
    bool fixed_address; /* from NCCL_COMM_ID: rank 0 opens the root */
    int pid;            /* of the process that made it, lower 24 bits; 0: from an address */
    unsigned char secret[TT_SECRET_BYTES];
    union tt_addr addr;
    union tt_addr spare; /* the same over another interface; AF_UNSPEC: none */
};

/* Read a checked id. The caller wipes parts_out->secret. */
ncclResult_t tt_id_read(const ncclUniqueId *id, struct tt_id_parts *parts_out);

/* Open the root of an id with this secret, and note where ranks reach it. */
ncclResult_t tt_id_open_root(struct tt_id_parts *parts);

/* Put an id together; `existing` ranks of a communicator that grows, else 0. */
void tt_id_pack(ncclUniqueId *id, const struct tt_id_parts *parts, uint32_t existing);

/* Secret of a communicator before the root's nonce: all secrets in order. */
ncclResult_t tt_id_combine(const ncclUniqueId *ids, int nids,
                           unsigned char secret_out[TT_SECRET_BYTES]);
