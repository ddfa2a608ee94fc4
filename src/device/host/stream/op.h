/* What can be put on a stream, as data: its kinds, and one step of each. Private to the room. */
#pragma once

#include "device/host/host_stream.h"
#include "device/host/memory/timeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_cell;
struct host_exec;

struct host_positions { /* what an operation waits for by the legacy rules */
    size_t count;
    struct host_position positions[];
};

enum host_op_kind {
    HOST_OP_EMPTY,
    HOST_OP_ITEM,
    HOST_OP_COPY,
    HOST_OP_SET,
    HOST_OP_CALL,
    HOST_OP_WAIT,   /* for a position */
    HOST_OP_RECORD, /* what an event notes of its record */
    HOST_OP_REACH,  /* of an interprocess event's record */
    HOST_OP_CELL,   /* wait for an interprocess event's record */
    HOST_OP_GRAPH,
};

struct host_launch_ops { /* of a graph's launch: graphs lie above streams */
    enum tt_step (*step)(struct host_exec *exec, uint64_t number, bool calls);
    void (*hold)(struct host_exec *exec);
    void (*drop)(struct host_exec *exec);
};

enum { HOST_OPENED_TO = 1, HOST_OPENED_FROM = 2 };

struct host_op {
    enum host_op_kind kind;
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
        struct host_position position;
        struct {
            struct CUevent_st *event; /* borrowed: type-stable */
            uint64_t number;          /* which of its records */
        } record;
        struct {
            struct host_cell *cell; /* borrowed: type-stable */
            uint64_t number;
        } reach;
        struct {
            const struct host_cell *cell; /* borrowed: type-stable */
            uint64_t number;
        } cell;
        struct {
            const struct host_launch_ops *ops;
            struct host_exec *exec; /* counted */
            uint64_t number;        /* of the launch; 0: it is part of another one */
        } launch;
    };
};

enum tt_step host_op_step(struct host_op *op, bool calls); /* calls: host functions may run */
/* One slice of a copy or a fill, no more than is left of the thread's share; *moved: bytes that are
 * done, 0 again when all are. */
enum tt_step host_bytes_step(const struct host_op *op, size_t *moved);
void host_op_drop(struct host_op *op); /* give back what it refers to */
