/* A plan that is being followed: what each chunk holds, what is ordered before what, and the steps
 * so far. Private to mscclpp_run.c, mscclpp_order.c, mscclpp_steps.c
 * and mscclpp_blocks.c. */
#pragma once

#include "mscclpp.h"

enum { MSCCLPP_NONE = -1 };

struct mscclpp_epoch { /* an operation: its block, and its number there, from 1 */
    int32_t block;     /* MSCCLPP_NONE: none */
    uint32_t time;
};

struct mscclpp_cell { /* a chunk of a rank's memory */
    bool known;
    struct mscclpp_epoch written;
    int32_t lines;        /* snapshot of the writer, if it wrote lines; else MSCCLPP_NONE */
    int32_t readers;      /* operations that read it since, a list in follow->readers */
    int32_t writer_step;  /* likewise of steps */
    int32_t reader_steps; /* a list in follow->reader_steps */
};

struct mscclpp_reader {
    struct mscclpp_epoch epoch;
    int32_t step, next;
};

/* Vector clocks: of each block, which operations of all blocks come before its next one. */
struct mscclpp_clocks {
    uint32_t nblocks;
    uint32_t *now;             /* owned; a row per block */
    struct msccl_list history; /* of values: rows that others join later */
    int32_t nsnapshots;
};

struct mscclpp_out_block { /* a block of the MSCCL program that is made: steps of a rank in order */
    uint32_t count;
    int32_t *awaited; /* owned; of each output block of the rank, how many of its steps are awaited;
                         NULL: none yet */
    int line;
};

struct mscclpp_step {
    struct msccl_step step; /* dep_block: an output block of the rank */
    uint32_t out_block;     /* of the plan */
    uint32_t at;            /* its number there */
};

struct mscclpp_follow {
    struct mscclpp_plan *plan;
    int in, out;                /* chunks of a rank's input and output */
    struct mscclpp_cell *cells; /* owned */
    size_t *cells_at;           /* owned; of each rank: input, output, scratch */
    struct msccl_list readers;
    struct mscclpp_clocks clocks;

    struct mscclpp_out_block *out_blocks; /* owned */
    uint32_t *out_blocks_at;              /* owned; of each rank; nranks + 1 */
    struct msccl_list steps;              /* of mscclpp_step */
    int *
        spare; /* owned; of each block: its first chunk of scratch for sums that have no location */
    int *scratch; /* owned; of each rank: chunks, with those */
};

/* Where a rank keeps what the file calls that chunk, from the first of its chunks on; input and
 * output are one buffer in place. */
static inline size_t mscclpp_location(const struct mscclpp_follow *follow, int rank, int buffer,
                                      int chunk)
{
    const struct msccl_file *file = follow->plan->file;
    bool one = file->in_place;
    int in = follow->in, out = follow->out, whole = in > out ? in : out;
    if (buffer == MSCCL_SCRATCH) return (size_t)(one ? whole : in + out) + (size_t)chunk;
    bool part = buffer == MSCCL_IN ? in < out : out < in;
    if (one) return (size_t)chunk + (part ? (size_t)rank * (size_t)(whole / file->nranks) : 0);
    return (size_t)chunk + (buffer == MSCCL_OUT ? (size_t)in : 0);
}

static inline struct mscclpp_cell *mscclpp_cell(const struct mscclpp_follow *follow, int rank,
                                                int buffer, int chunk)
{
    return &follow->cells[follow->cells_at[rank] + mscclpp_location(follow, rank, buffer, chunk)];
}

/* ---- mscclpp_order.c ---- */

bool tt_mscclpp_clocks_init(struct mscclpp_clocks *clocks, uint32_t nblocks);
void tt_mscclpp_clocks_fini(struct mscclpp_clocks *clocks);
/* Remember what the block knows. MSCCLPP_NONE: memory is short, or there is too much of it. */
int32_t tt_mscclpp_snapshot(struct mscclpp_clocks *clocks, uint32_t block);
/* Add what the block knows to a snapshot. */
void tt_mscclpp_add_to(struct mscclpp_clocks *clocks, int32_t snapshot, uint32_t block);
/* Whether the operation comes before the block's next one. */
bool tt_mscclpp_before(const struct mscclpp_clocks *clocks, struct mscclpp_epoch epoch,
                       uint32_t block);
void tt_mscclpp_join(struct mscclpp_clocks *clocks, uint32_t block, int32_t snapshot);
/* An operation of a block reads (writes) chunks: they hold something, and those that touched them
 * are ordered before it. Refused otherwise. */
bool tt_mscclpp_read_cells(struct mscclpp_follow *follow, uint32_t block,
                           const struct mscclpp_op *op, const struct mscclpp_ref *ref);
bool tt_mscclpp_write_cells(struct mscclpp_follow *follow, uint32_t block,
                            const struct mscclpp_op *op, const struct mscclpp_ref *ref,
                            int32_t lines);
/* All blocks have ended: no rank may have ended while another one still writes its input or output.
 * Operations that still read them then are noted. */
bool tt_mscclpp_check_end(struct mscclpp_follow *follow);

/* ---- mscclpp_steps.c ---- */

bool tt_mscclpp_steps_init(struct mscclpp_follow *follow);
void tt_mscclpp_steps_fini(struct mscclpp_follow *follow);
/* Write down what an operation moves. */
bool tt_mscclpp_emit(struct mscclpp_follow *follow, uint32_t block, const struct mscclpp_op *op);
/* Copy what stays input where output is due, of a plan for in place. */
bool tt_mscclpp_emit_kept(struct mscclpp_follow *follow);

/* ---- mscclpp_blocks.c ---- */

/* Make the steps those of plan->file. */
bool tt_mscclpp_finish(struct mscclpp_follow *follow);
