/* A file of MSCCL as it was written: ranks (gpu), threads (tb), steps. Read by msccl_read.c,
 * checked by msccl_check.c, followed through by msccl_trace.c, written as a program by
 * msccl_build.c. Private to the sub-room. */
#pragma once

#include "import.h"

#include <stdarg.h>

enum msccl_limits {
    MSCCL_FILE_BYTES = 64 << 20,
    MSCCL_STEPS = 1 << 20,
    MSCCL_BLOCKS = 1 << 16,
    MSCCL_CHUNKS = 1 << 20, /* of a buffer */
    MSCCL_TOTAL = 1 << 20,  /* of all buffers of all ranks; and that all steps move */
    MSCCL_OLD_STEPS = 64,   /* what the reader of MSCCL's runtime takes: steps of a block, */
    MSCCL_OLD_BLOCKS = 32,  /* blocks of a channel and direction, */
    MSCCL_OLD_CNT = 71,     /* chunks of a step */
};

enum msccl_type {
    MSCCL_S,
    MSCCL_R,
    MSCCL_RCS,
    MSCCL_RRS,
    MSCCL_RRC,
    MSCCL_RRCS,
    MSCCL_CPY,
    MSCCL_RE,
    MSCCL_NOP,
    MSCCL_TYPES_,
};

enum msccl_buffer { MSCCL_IN, MSCCL_OUT, MSCCL_SCRATCH };

/* What a type of step does. */
struct msccl_kind {
    const char *name;
    bool sends, receives;
    bool reads;  /* srcbuf, srcoff */
    bool writes; /* dstbuf, dstoff */
    bool reduces;
};
extern const struct msccl_kind tt_msccl_kinds[MSCCL_TYPES_];

struct msccl_step {
    int line;
    uint8_t type, src_buffer, dst_buffer, has_dep;
    int src, dst, cnt;
    int dep_block, dep_step; /* -1: none */
    uint32_t partner;        /* the step at the other end of its message, of a receiving one */
    uint32_t first;          /* of its moves, one per chunk */
};

struct msccl_block {
    int line, id, rank;
    int send, recv, channel; /* peers; -1: none */
    uint32_t first, end;     /* steps */
};

struct msccl_rank {
    int line, id;
    int chunks[3];       /* by enum msccl_buffer */
    uint32_t first, end; /* blocks */
};

struct msccl_list { /* grows; items of one size */
    void *items;    /* owned */
    size_t count, capacity;
};

struct msccl_location {
    uint8_t space; /* enum tt_space; TT_SPACE_NONE: none */
    int32_t chunk;
};

struct msccl_value {           /* what a chunk holds */
    int32_t chunk;             /* of the input that it is as long as */
    int32_t count;             /* contributions */
    bool known, raw, finished; /* raw: input as it came; finished: all contributions, and post */
    bool copied;               /* raw, and a step copies it to where it is */
};

struct msccl_move {                        /* one chunk of a step, as msccl_trace.c found it */
    struct msccl_location first, src, dst; /* first: what a `re` adds to */
    bool post;                             /* now all ranks' contributions are there */
    struct msccl_value value;              /* that is sent and written */
};

struct msccl_kept {    /* a block of the result that a file for in place alone leaves where it is */
    int rank, in, out; /* chunks */
};

struct msccl_file {
    char name[TT_IMPORT_NAME_BYTES];
    int line;
    enum tt_func func;
    enum tt_proto proto;
    int nranks, nchannels, nchunks;
    bool in_place, out_of_place;
    bool plan; /* of MSCCL++: what MSCCL's runtime takes does not matter */
    uint64_t min_bytes, max_bytes;
    int nparts;
    int spill;                              /* chunks of scratch for what in-place files write into
                                               inputs beside the output; behind the file's own */
    struct msccl_list ranks, blocks, steps; /* in the order of ids, once they are checked */
    struct msccl_list kept;                 /* by rank */
    struct msccl_move *moves;               /* owned */
    uint32_t nmoves;

    char *fault; /* borrowed */
    size_t fault_bytes;
    ncclResult_t rc;
    char *notes; /* owned */
    size_t notes_bytes;
};

/* Keep the first fault; returns false always. line 0: none. */
bool tt_msccl_refuse(struct msccl_file *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool tt_msccl_no_memory(struct msccl_file *file);
void tt_msccl_note(struct msccl_file *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Room for one more, zeroed; NULL when memory is short. */
void *tt_msccl_append(struct msccl_list *list, size_t item_bytes);
/* As much of the name as there is room for, cut between characters of UTF-8. */
void tt_msccl_take_name(struct msccl_file *file, const char *name);
void tt_msccl_file_fini(struct msccl_file *file);

static inline struct msccl_rank *msccl_rank(const struct msccl_file *file, int rank)
{
    return (struct msccl_rank *)file->ranks.items + rank;
}
static inline struct msccl_block *msccl_block(const struct msccl_file *file, uint32_t block)
{
    return (struct msccl_block *)file->blocks.items + block;
}
static inline struct msccl_step *msccl_step(const struct msccl_file *file, uint32_t step)
{
    return (struct msccl_step *)file->steps.items + step;
}

static inline bool msccl_reduces(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCESCATTER || func == TT_FUNC_REDUCE;
}
/* Whether the buffer holds one block per rank. */
static inline bool msccl_in_blocks(enum tt_func func)
{
    return func == TT_FUNC_REDUCESCATTER || func == TT_FUNC_SCATTER || func == TT_FUNC_ALLTOALL;
}
static inline bool msccl_out_blocks(enum tt_func func)
{
    return func == TT_FUNC_ALLGATHER || func == TT_FUNC_GATHER || func == TT_FUNC_ALLTOALL;
}

bool tt_msccl_read(struct msccl_file *file, const char *text, size_t text_bytes);
/* All checks that do not follow the steps: numbers in range, both ends of every
 * connection, dependencies. Sets the steps' partners and first moves. */
bool tt_msccl_check(struct msccl_file *file);
/* Follow all steps: what each chunk holds where it is read, in our spaces. */
bool tt_msccl_trace(struct msccl_file *file);
bool tt_msccl_build(struct msccl_file *file, struct tt_import *import);
