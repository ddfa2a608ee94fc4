/* What can be put on a stream, as data: its kinds, and one step of each. Private to the room. */
#pragma once

#include "device/host/host_stream.h"
#include "device/host/process/timeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_host_cell;
struct tt_host_exec;

struct tt_host_positions { /* what an operation waits for by the legacy rules */
    size_t count;
    struct tt_host_position positions[];
};

enum tt_host_op_kind {
    TT_HOST_OP_EMPTY,
    TT_HOST_OP_ITEM,
    TT_HOST_OP_COPY,
    TT_HOST_OP_SET,
    TT_HOST_OP_CALL,
    TT_HOST_OP_WAIT,   /* for a position */
    TT_HOST_OP_RECORD, /* what an event notes of its record */
    TT_HOST_OP_REACH,  /* of an interprocess event's record */
    TT_HOST_OP_CELL,   /* wait for an interprocess event's record */
    TT_HOST_OP_GRAPH,
};

struct tt_host_launch_ops { /* of a graph's launch: graphs lie above streams */
    enum tt_step (*step)(struct tt_host_exec *exec, uint64_t number, bool calls);
    void (*hold)(struct tt_host_exec *exec);
    void (*drop)(struct tt_host_exec *exec);
};

enum { TT_HOST_OPENED_TO = 1, TT_HOST_OPENED_FROM = 2 };

struct tt_host_op {
    enum tt_host_op_kind kind;
    unsigned opened; /* in graphs, what was memory of another process when the node was made: ends
                        of a copy, or how many of the bytes that an item touches */
    size_t moved;    /* bytes of a copy or a fill that are done */
    union {
        struct tt_item *item;
        struct tt_copy copy;
        struct tt_set set;
        struct {
            void (*fn)(void *);
            void *arg;
        } call;
        struct tt_host_position position;
        struct {
            struct CUevent_st *event; /* borrowed: type-stable */
            uint64_t number;          /* which of its records */
        } record;
        struct {
            struct tt_host_cell *cell; /* borrowed: type-stable */
            uint64_t number;
        } reach;
        struct {
            const struct tt_host_cell *cell; /* borrowed: type-stable */
            uint64_t number;
        } cell;
        struct {
            const struct tt_host_launch_ops *ops;
            struct tt_host_exec *exec; /* counted */
            uint64_t number;           /* of the launch; 0: it is part of another one */
        } launch;
    };
};

enum tt_step tt_host_op_step(struct tt_host_op *op, bool calls); /* calls: host functions may run */
/* One slice of a copy or a fill, no more than is left of the thread's share; *moved: bytes that are
 * done, 0 again when all are. */
enum tt_step tt_host_bytes_step(const struct tt_host_op *op, size_t *moved);
void tt_host_op_drop(struct tt_host_op *op); /* give back what it refers to */
