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

/* Offer the extension to a tool whose library was loaded and has a domain, and register the fields
 * of calls. False: it does not speak it. */
bool tt_nvtx_payload_load(void *library, void *domain);
/* The payload of a call, which is borrowed. */
struct tt_nvtx_payload tt_nvtx_payload_of(const struct tt_nvtx_call *call);
