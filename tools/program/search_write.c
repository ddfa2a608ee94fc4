/* A schedule as MSCCL's XML. Each rank has a block of steps for every rank that it sends to, one
 * for every rank that it receives from, and one for copies of its own; the moves of both ends of a
 * link stand in the same order, by steps, so waits cannot form a cycle. What a step reads was
 * written by one other step, on which it depends; sums of one chunk depend on each other in a row.
 */
#include "search.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1 + 2 * SEARCH_MOST_RANKS, COPIES = 0 };

struct location {
    char buffer; /* 'i', 'o', 's' */
    int chunk;
};

struct op {
    const char *type;
    struct location from, to;
    int rank, block, number; /* in the block */
    int after;               /* op; -1: none */
    bool awaited;
};

struct writer {
    const struct search_goal *goal;
    struct search_size size;
    struct op *ops; /* owned */
    int nops, most;
    int *last;    /* owned; [rank][kind, chunk]: op that wrote what the rank holds; -1: its own */
    int *scratch; /* owned; likewise: number in scratch; -1: none */
    int nscratch[SEARCH_MOST_RANKS];
    int nsteps[SEARCH_MOST_RANKS][BLOCKS];
    int block_id[SEARCH_MOST_RANKS][BLOCKS]; /* number in the file, from 1; 0: not there */
    int nblocks[SEARCH_MOST_RANKS];
};

static int send_block(int peer)
{
    return 1 + 2 * peer;
}

static int receive_block(int peer)
{
    return 2 + 2 * peer;
}

static size_t index_of(const struct writer *writer, int rank, const struct search_move *move)
{
    size_t row = (size_t)rank * (size_t)writer->goal->nkinds + (size_t)move->kind;
    return row * (size_t)writer->size.chunks + (size_t)move->chunk;
}

/* Add an op to a block of its rank; `after`: what it waits for. Returns its number. */
static int add_op(struct writer *writer, const struct op *op)
{
    struct op *added = &writer->ops[writer->nops];
    int *id = &writer->block_id[op->rank][op->block];
    *added = *op;
    added->number = writer->nsteps[op->rank][op->block]++;
    if (!*id) *id = ++writer->nblocks[op->rank];
    if (op->after >= 0 && writer->ops[op->after].block == op->block) added->after = -1;
    if (added->after >= 0) writer->ops[added->after].awaited = true;
    return writer->nops++;
}

/* ---- where chunks lie ---- */

static bool has_blocks(enum tt_func func, char buffer)
{
    switch (func) {
    case TT_FUNC_ALLREDUCE:
    case TT_FUNC_ALLTOALL: return true;
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER: return buffer == 'o';
    case TT_FUNC_REDUCESCATTER:
    case TT_FUNC_SCATTER: return buffer == 'i';
    default: return false;
    }
}

static struct location in_buffer(const struct writer *writer, char buffer,
                                 const struct search_move *move)
{
    const struct search_kind *kind = &writer->goal->kinds[move->kind];
    bool sorts = writer->goal->func == TT_FUNC_ALLTOALL && buffer == 'o';
    int block = sorts ? kind->from : kind->block;
    if (!has_blocks(writer->goal->func, buffer)) block = 0;
    return (struct location){buffer, block * writer->size.chunks + move->chunk};
}

static struct location in_scratch(struct writer *writer, int rank, const struct search_move *move)
{
    int *number = &writer->scratch[index_of(writer, rank, move)];
    if (*number < 0) *number = writer->nscratch[rank]++;
    return (struct location){'s', *number};
}

/* ---- moves ---- */

/* A copy that goes from rank to rank. */
static void add_copy(struct writer *writer, const struct search_move *move)
{
    const struct search_kind *kind = &writer->goal->kinds[move->kind];
    int *sender = &writer->last[index_of(writer, move->from, move)];
    int *receiver = &writer->last[index_of(writer, move->to, move)];
    bool reduced = writer->goal->sums; /* the AllGather of an AllReduce: sums lie in the output */
    struct location from = in_buffer(writer, 'i', move), to = in_buffer(writer, 'o', move);
    if (reduced || kind->to >> move->from & 1) {
        from = in_buffer(writer, 'o', move);
    } else if (move->from != kind->from) {
        from = in_scratch(writer, move->from, move);
    }
    if (!(kind->to >> move->to & 1)) to = in_scratch(writer, move->to, move);
    add_op(writer, &(struct op){.type = "s",
                                .from = from,
                                .to = from,
                                .rank = move->from,
                                .block = send_block(move->to),
                                .after = *sender});
    *receiver = add_op(writer, &(struct op){.type = "r",
                                            .from = to,
                                            .to = to,
                                            .rank = move->to,
                                            .block = receive_block(move->from),
                                            .after = -1});
}

/* The way back of a copy: what `to` has summed goes to `from`, which adds it to its own. */
static void add_sum(struct writer *writer, const struct search_move *move)
{
    int *child = &writer->last[index_of(writer, move->to, move)];
    int *parent = &writer->last[index_of(writer, move->from, move)];
    struct location sums[2]; /* of child and parent */
    for (int k = 0; k < 2; k++) {
        int rank = k ? move->from : move->to;
        bool output = writer->goal->gathers || rank == writer->goal->kinds[move->kind].from;
        sums[k] = output ? in_buffer(writer, 'o', move) : (struct location){'s', 0};
        bool holds = k || *child >= 0;
        if (!output && holds) sums[k] = in_scratch(writer, rank, move);
    }
    struct location own = in_buffer(writer, 'i', move);
    add_op(writer, &(struct op){.type = "s",
                                .from = *child >= 0 ? sums[0] : own,
                                .to = *child >= 0 ? sums[0] : own,
                                .rank = move->to,
                                .block = send_block(move->from),
                                .after = *child});
    *parent = add_op(writer, &(struct op){.type = "rrc",
                                          .from = *parent >= 0 ? sums[1] : own,
                                          .to = sums[1],
                                          .rank = move->from,
                                          .block = receive_block(move->to),
                                          .after = *parent});
}

/* ---- exchanges: a rank's sum of a chunk lies in the output, before the first step in the input */

static struct location sum_of(int chunk, int last)
{
    return (struct location){last >= 0 ? 'o' : 'i', chunk};
}

/* An op of another block that has to be done before `op`; all but one are waited for by steps that
 * do nothing else. */
static void wait_for(struct writer *writer, struct op *op, int number)
{
    if (writer->ops[number].block == op->block) return;
    if (op->after >= 0 && writer->nops + 2 < writer->most) {
        add_op(writer, &(struct op){.type = "nop",
                                    .from = {'i', -1},
                                    .to = {'o', -1},
                                    .rank = op->rank,
                                    .block = op->block,
                                    .after = op->after});
    }
    op->after = number;
}

/* What comes first in a step waits for all that still read the sum. */
static void add_arrival(struct writer *writer, const struct search_move *move, int begin)
{
    int *last = &writer->last[index_of(writer, move->to, move)];
    const struct location own = sum_of(move->chunk, *last);
    bool first = *last < begin, adds = move->adds || !first;
    struct op op = {.type = adds ? "rrc" : "r",
                    .from = own,
                    .to = {'o', move->chunk},
                    .rank = move->to,
                    .block = receive_block(move->from),
                    .after = -1};
    if (*last >= 0) wait_for(writer, &op, *last);
    for (int k = *last + 1; k < writer->nops && first; k++) {
        const struct op *reader = &writer->ops[k];
        bool reads = reader->rank == move->to && reader->type[0] == 's';
        if (reads && reader->from.chunk == move->chunk) wait_for(writer, &op, k);
    }
    *last = add_op(writer, &op);
}

static void add_exchanges(struct writer *writer, const struct search_schedule *schedule)
{
    for (int k = 0, end; k < schedule->nmoves; k = end) {
        int begin = writer->nops;
        for (end = k;
             end < schedule->nmoves && schedule->moves[end].step == schedule->moves[k].step;
             end++) {
            const struct search_move *move = &schedule->moves[end];
            int last = writer->last[index_of(writer, move->from, move)];
            const struct location own = sum_of(move->chunk, last);
            add_op(writer, &(struct op){.type = "s",
                                        .from = own,
                                        .to = own,
                                        .rank = move->from,
                                        .block = send_block(move->to),
                                        .after = last});
        }
        for (int j = k; j < end; j++)
            add_arrival(writer, &schedule->moves[j], begin);
    }
}

/* Blocks that begin where they are wanted. */
static void add_own_copies(struct writer *writer)
{
    enum tt_func func = writer->goal->func;
    bool root_only = func == TT_FUNC_BROADCAST || func == TT_FUNC_GATHER || func == TT_FUNC_SCATTER;
    for (int r = 0; r < (root_only ? 1 : writer->goal->nranks); r++) {
        for (int c = 0; c < writer->size.chunks; c++) {
            struct location from = {'i', c}, to = {'o', c};
            if (has_blocks(func, 'i')) from.chunk += r * writer->size.chunks;
            if (has_blocks(func, 'o')) to.chunk += r * writer->size.chunks;
            add_op(writer, &(struct op){.type = "cpy",
                                        .from = from,
                                        .to = to,
                                        .rank = r,
                                        .block = COPIES,
                                        .after = -1});
        }
    }
}

static bool fill(struct writer *writer, const struct search_schedule *schedule)
{
    size_t cells =
        (size_t)writer->goal->nranks * (size_t)writer->goal->nkinds * (size_t)writer->size.chunks;
    size_t most = (4 + 2 * (size_t)writer->goal->nranks) * (size_t)schedule->nmoves + cells;
    writer->most = (int)most;
    writer->ops = tt_calloc(most, sizeof(*writer->ops));
    writer->last = tt_calloc(cells, sizeof(int));
    writer->scratch = tt_calloc(cells, sizeof(int));
    if (!writer->ops || !writer->last || !writer->scratch) return false;
    memset(writer->last, -1, cells * sizeof(int));
    memset(writer->scratch, -1, cells * sizeof(int));
    for (int k = schedule->nmoves - 1; k >= 0 && writer->goal->sums; k--)
        add_sum(writer, &schedule->moves[k]);
    if (writer->goal->exchanges) add_exchanges(writer, schedule);
    if (writer->goal->exchanges) return writer->nops + 2 < writer->most;
    if (!writer->goal->sums) add_own_copies(writer);
    for (int k = 0; k < schedule->nmoves && writer->goal->gathers; k++)
        add_copy(writer, &schedule->moves[k]);
    return true;
}

/* ---- text ---- */

static void print_op(const struct writer *writer, const struct op *op, FILE *out)
{
    const struct op *after = op->after >= 0 ? &writer->ops[op->after] : NULL;
    (void)fprintf(out,
                  "      <step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%d\" dstbuf=\"%c\" "
                  "dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
                  op->number, op->type, op->from.buffer, op->from.chunk, op->to.buffer,
                  op->to.chunk, op->type[0] != 'n',
                  after ? writer->block_id[after->rank][after->block] - 1 : -1,
                  after ? after->number : -1, op->awaited);
}

static void print_rank(const struct writer *writer, int rank, FILE *out)
{
    int blocks = writer->size.chunks, all = blocks * writer->goal->nranks;
    bool whole = writer->goal->exchanges;
    (void)fprintf(out, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"%d\">\n", rank,
                  has_blocks(writer->goal->func, 'i') && !whole ? all : blocks,
                  has_blocks(writer->goal->func, 'o') && !whole ? all : blocks,
                  writer->nscratch[rank]);
    for (int id = 1; id <= writer->nblocks[rank]; id++) {
        int block = 0;
        while (writer->block_id[rank][block] != id)
            block++;
        int peer = block == COPIES ? -1 : (block - 1) / 2;
        bool sends = block != COPIES && block % 2;
        (void)fprintf(out, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"0\">\n", id - 1,
                      sends ? peer : -1, sends ? -1 : peer);
        for (int k = 0; k < writer->nops; k++) {
            if (writer->ops[k].rank == rank && writer->ops[k].block == block)
                print_op(writer, &writer->ops[k], out);
        }
        (void)fprintf(out, "    </tb>\n");
    }
    (void)fprintf(out, "  </gpu>\n");
}

static const char *coll_name(enum tt_func func)
{
    switch (func) {
    case TT_FUNC_ALLREDUCE: return "allreduce";
    case TT_FUNC_ALLGATHER: return "allgather";
    case TT_FUNC_REDUCESCATTER: return "reduce_scatter";
    case TT_FUNC_BROADCAST: return "broadcast";
    case TT_FUNC_REDUCE: return "reduce";
    case TT_FUNC_ALLTOALL: return "alltoall";
    case TT_FUNC_GATHER: return "gather";
    default: return "scatter";
    }
}

char *search_write(const struct search_goal *goal, const struct search_schedule *schedule,
                   struct search_size size, const char *name, size_t *bytes_out)
{
    struct writer writer = {.goal = goal, .size = size};
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes_out);
    bool filled = out && fill(&writer, schedule);
    bool window =
        goal->func == TT_FUNC_BROADCAST || goal->func == TT_FUNC_REDUCE || goal->exchanges;
    if (filled) {
        (void)fprintf(out,
                      "<algo name=\"%s\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"%d\" "
                      "ngpus=\"%d\" coll=\"%s\" inplace=\"%d\" outofplace=\"1\" minBytes=\"0\" "
                      "maxBytes=\"0\">\n",
                      name, window ? size.chunks : size.chunks * goal->nranks, goal->nranks,
                      coll_name(goal->func), goal->func != TT_FUNC_ALLTOALL);
        for (int r = 0; r < goal->nranks; r++)
            print_rank(&writer, r, out);
        (void)fprintf(out, "</algo>\n");
    }
    bool written = out && fclose(out) == 0 && filled;
    free(writer.ops);
    free(writer.last);
    free(writer.scratch);
    if (written) return text;
    free(text);
    return NULL;
}
