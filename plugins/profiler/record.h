/* A record: what a call of the host leaves behind, in a ring, in a block of a file, and taken
 * apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum trace_kind { TRACE_START, TRACE_STATE, TRACE_STOP, TRACE_KIND_COUNT_ };

/* A record in a ring is as many words of 8 bytes as it needs: the time in ticks since the plugin
 * was loaded and the kind, then what the kind says. Its first words are
 *   TRACE_STOP   id
 *   TRACE_STATE  id, and the number of the state in the upper 8 bits; the value, where `valued`
 *   TRACE_START  parent; context, type, flag and which of the fields follow
 * The id of a start is the next one of its ring. What is usual has no field: root 0 of a
 * collective, depth 1 of a group, step 0, channel 0 of a kernel or of a proxy's operation. */
enum { TRACE_TIME_SHIFT = 8, TRACE_VALUED = 4, TRACE_ID_BITS = 56 };
enum { TRACE_TYPE_SHIFT = 48, TRACE_FLAG_SHIFT = 55, TRACE_FIELD_SHIFT = 56 };
enum trace_field {
    TRACE_SEQ,
    TRACE_COUNT,
    TRACE_PEER,  /* peer, steps */
    TRACE_WORDS, /* func, datatype, algo, proto, channel, warps */
    TRACE_SIZES, /* chunk_bytes, pid */
    TRACE_GROUP,
    TRACE_TAG,
    TRACE_COMM,
    TRACE_FIELD_COUNT_
};
enum { TRACE_RECORD_WORDS = 3 + TRACE_FIELD_COUNT_ };

/* A record as a line needs it. */
struct trace_record {
    uint64_t ts_nsec;
    uint64_t id, parent, group;
    uint64_t context; /* the handle that init gave, 48 bits */
    uint64_t seq;     /* sequence number; of NetPlugin: its id; of KernelCh: the timer */
    uint64_t count;   /* elements; of a state: its value; of CeBatch: bytes */
    uint64_t tag;     /* of the user */
    uint64_t comm;    /* versions 1 to 3: the communicator's number, 0 else */
    uint32_t type;    /* the number of its bit; of a state: its number */
    int32_t peer;     /* or root */
    int32_t steps, chunk_bytes, pid;
    uint8_t kind;
    uint8_t func, datatype, algo, proto; /* numbers of words; 0: none */
    uint8_t channel;                     /* or how many */
    uint8_t warps;
    bool flag; /* captured; is a send; is complete; within a node */
};
