/* What a tool is told of an operation beside its name, by NVTX's extension for payloads: fields
 * with names and types, which the tool shows. Private to the room. */
#pragma once

#include "plugin/profiler/nvtx.h"

#include <stddef.h>
#include <stdint.h>

struct tt_nvtx_payload { /* what an event's number points to, in place of one */
    uint64_t schema;
    size_t bytes;
    const void *payload;
};

/* The tool's: ends a range, and has fields for it. */
typedef int (*tt_nvtx_pop_payload)(void *domain, const struct tt_nvtx_payload *payload,
                                   size_t count);

/* Offer the extension to a tool whose library was loaded and has a domain, and register the fields
 * of calls and lives. *pop_out is NULL where the tool takes none at an end. False: it does not
 * speak it. */
bool tt_nvtx_payload_load(void *library, void *domain, tt_nvtx_pop_payload *pop_out);
/* The payload of a call, or of a communicator's begin or end, which is borrowed. */
struct tt_nvtx_payload tt_nvtx_payload_of(const struct tt_nvtx_call *call);
struct tt_nvtx_payload tt_nvtx_payload_of_life(const struct tt_nvtx_life *life);
