/* An execution plan of MSCCL++ (JSON), whose ranks put into and get from each other's memory and
 * signal when they have. mscclpp_read.c and mscclpp_ops.c read it; mscclpp_run.c follows all
 * its blocks once, refuses what nothing orders, and notes each operation as steps of messages;
 * mscclpp_order.c says what is ordered; mscclpp_steps.c keeps the steps and what each waits for,
 * and mscclpp_blocks.c makes blocks of them. From there on it is a file of MSCCL (msccl.h). Private
 * to the sub-room. */
#pragma once

#include "json.h"
#include "msccl.h"

enum mscclpp_limits {
    MSCCLPP_RANKS = 128,
    MSCCLPP_BLOCKS = 1024, /* of a rank */
    MSCCLPP_ALL_BLOCKS = 8192,
    MSCCLPP_CHANNELS = 1024, /* of a rank and type */
    MSCCLPP_ALL_CHANNELS = 1 << 16,
    MSCCLPP_SYNCS = 256, /* barriers, or semaphores, of a rank */
    MSCCLPP_OPS = 1 << 20,
    MSCCLPP_REFS = 1 << 22,
    MSCCLPP_PAIRS = 1 << 20, /* sources times destinations of an operation */
    MSCCLPP_LISTED = 4096,   /* of what a block or rank lists under one name */
    MSCCLPP_MEMBERS = 64,    /* of the object that a block or rank is */
};

enum mscclpp_does {
    MSCCLPP_NOTHING,
    MSCCLPP_MOVES,
    MSCCLPP_SIGNALS,
    MSCCLPP_WAITS,
    MSCCLPP_BARRIER,
    MSCCLPP_ACQUIRES,
    MSCCLPP_RELEASES,
};

/* What an operation does, by its name in the file. */
struct mscclpp_kind {
    const char *name;
    uint8_t does;
    bool adds;        /* all sources into each destination; else one to one, or one to all */
    bool signals;     /* its channels, when it has moved */
    bool reads_lines; /* waits for what it reads, as lines that carry a flag: all sources, or all
                         but the first where it adds */
    bool writes_lines;
};

struct mscclpp_ref { /* chunks of a rank's buffer */
    int rank, chunk, size;
    uint8_t buffer; /* enum msccl_buffer */
};

struct mscclpp_op {
    int line;
    const struct mscclpp_kind *kind;
    bool idle;                     /* another block of its group does it */
    uint32_t src, nsrc, dst, ndst; /* of the plan's refs */
    uint32_t sync, nsync;          /* of the plan's syncs: inboxes or semaphores; or the barrier,
                                      and how many blocks meet there */
};

struct mscclpp_block {
    int line, id, rank;
    uint32_t first, end; /* operations */
};

enum { MSCCLPP_MEMORY, MSCCLPP_PORT, MSCCLPP_TYPES };
struct mscclpp_channel { /* to a peer; its inbox counts the peer's signals */
    int peer, nth;       /* the nth of this type to that peer */
    uint32_t inbox;      /* the peer's, at its nth channel of the type to us; UINT32_MAX: none */
};

struct mscclpp_group { /* of a switch: one buffer of several ranks */
    uint8_t buffer;
    uint32_t first, count; /* of the plan's members */
};

struct mscclpp_rank {
    const struct json_node *node;
    uint32_t first, end;                 /* blocks */
    uint32_t channel[MSCCLPP_TYPES + 1]; /* first of each type; the last: their end */
    uint32_t group, ngroups;
    uint32_t semaphore, nsemaphores; /* of the plan's semaphores */
    int chunks[3];
};

struct mscclpp_plan {
    struct msccl_file *file;
    struct json json;
    struct mscclpp_rank *ranks; /* owned */
    int64_t touched;            /* chunks, by all operations */
    struct msccl_list blocks, ops, refs, syncs, channels, groups, members, semaphores;
};

static inline struct mscclpp_block *mscclpp_block(const struct mscclpp_plan *plan, uint32_t at)
{
    return (struct mscclpp_block *)plan->blocks.items + at;
}
static inline struct mscclpp_op *mscclpp_op(const struct mscclpp_plan *plan, uint32_t at)
{
    return (struct mscclpp_op *)plan->ops.items + at;
}
static inline struct mscclpp_ref *mscclpp_ref(const struct mscclpp_plan *plan, uint32_t at)
{
    return (struct mscclpp_ref *)plan->refs.items + at;
}
static inline struct mscclpp_channel *mscclpp_channel(const struct mscclpp_plan *plan, uint32_t at)
{
    return (struct mscclpp_channel *)plan->channels.items + at;
}
static inline struct mscclpp_group *mscclpp_group(const struct mscclpp_plan *plan, uint32_t at)
{
    return (struct mscclpp_group *)plan->groups.items + at;
}
static inline int *mscclpp_number(const struct msccl_list *list, uint32_t at)
{
    return (int *)list->items + at;
}

/* A member that has to be there; NULL: refused. `what` names the object in the fault. */
const struct json_node *tt_mscclpp_need(struct mscclpp_plan *plan, const struct json_node *object,
                                        const char *what, const char *key, enum json_kind kind);
struct mscclpp_range { /* both inclusive */
    int low, high;
};
static inline struct mscclpp_range mscclpp_upto(int high)
{
    return (struct mscclpp_range){0, high};
}
/* Likewise, and an integer within the limits. */
bool tt_mscclpp_need_int(struct mscclpp_plan *plan, const struct json_node *object,
                         const char *what, const char *key, struct mscclpp_range range, int *out);
/* An element of an array, an integer within the limits. */
bool tt_mscclpp_take_int(struct mscclpp_plan *plan, const struct json_node *node, const char *what,
                         int low, int high, int *out);
/* i, o or s. */
bool tt_mscclpp_take_buffer(struct mscclpp_plan *plan, const struct json_node *object,
                            const char *what, const char *key, uint8_t *out);
/* memory or port; MSCCLPP_TYPES: switch. */
bool tt_mscclpp_take_type(struct mscclpp_plan *plan, const struct json_node *node, int *out);
bool tt_mscclpp_add_number(struct mscclpp_plan *plan, struct msccl_list *list, int number);

/* The head, and of each rank what its blocks name: channels, switches, semaphores, chunks. */
bool tt_mscclpp_read(struct mscclpp_plan *plan, const char *text, size_t text_bytes);
bool tt_mscclpp_read_blocks(struct mscclpp_plan *plan);
/* All of it: from text to what tt_msccl_read() makes of a file of MSCCL. */
bool tt_mscclpp_load(struct msccl_file *file, const char *text, size_t text_bytes);
