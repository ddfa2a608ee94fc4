/* What every fourth random set has beside the rest: loops whose peers and chunks move on, waits
 * inside of loops, multicast memory, chunk numbers by strides and tables, texts that ranks share.
 */
#include "../check.h"
#include "random_writer.h"

#include <string.h>

/* ---- loops over peers ---- */

enum way { BY_SHIFT, BY_RING, BY_XOR, BY_FLIP, BY_POWER, KINDS };

struct round { /* every rank sends to one peer after the other, and takes from others likewise */
    enum tt_peer to, from;
    int first_to, first_from, step_to, step_from, times;
};

static int ceil_log2(int n)
{
    int log2 = 0;
    while (1 << log2 < n)
        log2++;
    return log2;
}

static struct round some_round(struct writer *writer)
{
    int n = writer->set->nranks, logs = ceil_log2(n);
    switch ((enum way)random_draw(writer, KINDS)) {
    case BY_SHIFT: return (struct round){TT_PEER_SHIFT, TT_PEER_SHIFT, 1, -1, 1, -1, n - 1};
    case BY_RING: return (struct round){TT_PEER_RING, TT_PEER_RING, 1, -1, 1, -1, n - 1};
    case BY_XOR: return (struct round){TT_PEER_XOR, TT_PEER_XOR, 1, 1, 1, 1, (1 << logs) - 1};
    case BY_FLIP: return (struct round){TT_PEER_FLIP, TT_PEER_FLIP, 0, 0, 1, 1, logs};
    case BY_POWER: return (struct round){TT_PEER_UP, TT_PEER_DOWN, 0, 0, 1, 1, logs};
    case KINDS: break;
    }
    return (struct round){TT_PEER_SHIFT, TT_PEER_SHIFT, 1, -1, 0, 0, 1};
}

static int chunks_of(const struct writer *writer, enum tt_space space)
{
    return space == TT_SPACE_IN ? tt_program_in_chunks(&writer->head)
                                : tt_program_out_chunks(&writer->head);
}

/* A chunk that all ranks name alike; with `times` the loop may go on to others. */
static struct tt_gen_chunk some_chunk(struct writer *writer, enum tt_space space, int times)
{
    int n = writer->set->nranks, bound = chunks_of(writer, space);
    if (bound == n && random_chance(writer, 40)) {
        return (struct tt_gen_chunk){TT_CHUNK_SHIFT, (int)random_draw(writer, 3),
                                     times && random_chance(writer, 50) ? 1 : 0};
    }
    int number = (int)random_draw(writer, (uint32_t)bound);
    int coef = times && number + times <= bound && random_chance(writer, 50) ? 1 : 0;
    return (struct tt_gen_chunk){TT_CHUNK_CONST, number, coef};
}

static struct tt_operand slot(enum tt_peer peer, int number, int step, struct tt_gen_chunk chunk)
{
    struct tt_operand operand = tt_gen_by(TT_SPACE_SLOT, peer, number, chunk);
    operand.peer_coef = (int16_t)step;
    return operand;
}

/* Wait in a loop for what another thread was given before, if there is such a thing. */
static void wait_inside(struct writer *writer, int rank, int thread)
{
    int other = (thread + 1) % writer->nthreads;
    int count = writer->ninsns[rank][other];
    if (other == thread || count == 0) return;
    if (writer->insns[rank][other][count - 1].op != TT_OP_MOVE) return;
    struct edit_insn *await = random_append(writer, rank, thread, TT_OP_AWAIT);
    await->thread = other;
    await->arg = count - 1;
}

struct loops { /* what all ranks do */
    struct round round;
    struct tt_gen_chunk given, kept, message;
    uint8_t flags;
    bool one_loop, waits;
};

static void give(struct writer *writer, int rank, int thread, const struct loops *loops)
{
    struct edit_insn *post = random_append(writer, rank, thread, TT_OP_MOVE);
    const struct round *round = &loops->round;
    post->flags = loops->flags & TT_MOVE_PRE;
    random_add_src(post, tt_gen_own(TT_SPACE_IN, loops->given));
    random_add_dst(post, slot(round->to, round->first_to, round->step_to, loops->message));
}

static void take(struct writer *writer, int rank, int thread, const struct loops *loops)
{
    struct edit_insn *insn = random_append(writer, rank, thread, TT_OP_MOVE);
    const struct round *round = &loops->round;
    insn->flags = loops->flags;
    random_add_src(insn, slot(round->from, round->first_from, round->step_from, loops->message));
    if (loops->flags & TT_MOVE_REDUCE) random_add_src(insn, tt_gen_own(TT_SPACE_OUT, loops->kept));
    random_add_dst(insn, tt_gen_own(TT_SPACE_OUT, loops->kept));
}

static void go_round(struct writer *writer, int thread)
{
    int n = writer->set->nranks;
    if (!random_may_spread(writer, thread)) return;
    for (int rank = 0; rank < n; rank++) {
        if (!random_has_room(writer, rank, 7)) return;
    }
    struct loops loops = {.round = some_round(writer)};
    int times = loops.round.times;
    loops.given = some_chunk(writer, TT_SPACE_IN, times);
    loops.kept = some_chunk(writer, TT_SPACE_OUT, times);
    loops.message =
        some_chunk(writer,
                   chunks_of(writer, TT_SPACE_IN) >= chunks_of(writer, TT_SPACE_OUT) ? TT_SPACE_IN
                                                                                     : TT_SPACE_OUT,
                   0);
    if (writer->head.nparts > 1) { /* all as long as one and the same chunk, mostly */
        loops.kept = random_chance(writer, 90) ? loops.given : loops.kept;
        loops.message = loops.given;
    }
    loops.flags = random_chance(writer, 50) ? TT_MOVE_REDUCE : 0;
    if (random_chance(writer, 30)) loops.flags |= TT_MOVE_PRE;
    loops.one_loop = random_chance(writer, 50);
    loops.waits = writer->nthreads > 1 && random_chance(writer, 60);
    for (int rank = 0; rank < n; rank++) {
        random_append(writer, rank, thread, TT_OP_LOOP)->arg = times;
        give(writer, rank, thread, &loops);
        if (loops.waits) wait_inside(writer, rank, thread);
        if (!loops.one_loop) {
            random_append(writer, rank, thread, TT_OP_NEXT);
            random_append(writer, rank, thread, TT_OP_LOOP)->arg = times;
        }
        take(writer, rank, thread, &loops);
        random_append(writer, rank, thread, TT_OP_NEXT);
    }
    random_own_all_edges(writer, thread);
}

/* Rank `root` sends to the ranks after it in a loop that names them by number. */
static void count_up(struct writer *writer, int thread)
{
    int n = writer->set->nranks, root = (int)random_draw(writer, (uint32_t)n - 1);
    if (!random_may_spread(writer, thread)) return;
    for (int rank = root; rank < n; rank++) {
        if (!random_has_room(writer, rank, 3)) return;
    }
    struct tt_gen_chunk chunk = some_chunk(writer, TT_SPACE_IN, 0);
    random_append(writer, root, thread, TT_OP_LOOP)->arg = n - 1 - root;
    struct edit_insn *post = random_append(writer, root, thread, TT_OP_MOVE);
    random_add_src(post, tt_gen_own(TT_SPACE_IN, chunk));
    random_add_dst(post, slot(TT_PEER_RANK, root + 1, 1, chunk));
    random_append(writer, root, thread, TT_OP_NEXT);
    for (int rank = root + 1; rank < n; rank++) {
        struct edit_insn *insn = random_append(writer, rank, thread, TT_OP_MOVE);
        random_add_src(insn, slot(TT_PEER_RANK, root, 0, chunk));
        if (chunk.number < chunks_of(writer, TT_SPACE_OUT))
            random_add_dst(insn, tt_gen_own(TT_SPACE_OUT, chunk));
    }
    random_own_all_edges(writer, thread);
}

/* ---- the rest ---- */

/* What one rank, or each, does with the memory of all through one address. */
static void broadcast_memory(struct writer *writer, int thread)
{
    int n = writer->set->nranks, only = (int)random_draw(writer, (uint32_t)n);
    bool each = writer->uniform || random_chance(writer, 60), reduces = random_chance(writer, 60);
    struct tt_gen_chunk from = some_chunk(writer, TT_SPACE_IN, 0);
    struct tt_gen_chunk to = some_chunk(writer, TT_SPACE_OUT, 0);
    if (each && chunks_of(writer, TT_SPACE_OUT) == n) to = tt_gen_me();
    if (writer->head.nparts > 1) from = to;
    uint8_t flags = reduces ? TT_MOVE_REDUCE : 0;
    if (random_chance(writer, 30)) flags |= TT_MOVE_PRE;
    for (int rank = 0; rank < n; rank++) {
        if (!random_has_room(writer, rank, 1)) return;
    }
    for (int rank = 0; rank < n; rank++) {
        if (!each && rank != only) continue;
        struct edit_insn *insn = random_append(writer, rank, thread, TT_OP_MOVE);
        insn->flags = flags;
        random_add_src(insn, reduces ? tt_gen_set(TT_SPACE_IN, TT_PEER_MULTICAST, from)
                                     : tt_gen_own(TT_SPACE_IN, from));
        bool all = !reduces || (flags & TT_MOVE_PRE) || !each;
        random_add_dst(insn, all ? tt_gen_set(TT_SPACE_OUT, TT_PEER_MULTICAST, to)
                                 : tt_gen_own(TT_SPACE_OUT, to));
    }
}

static void keep_own(struct writer *writer, int thread)
{
    struct tt_gen_chunk from = some_chunk(writer, TT_SPACE_IN, 0);
    struct tt_gen_chunk to = some_chunk(writer, TT_SPACE_OUT, 0);
    if (writer->head.nparts > 1) to = from;
    for (int rank = 0; rank < writer->set->nranks; rank++) {
        if (!random_has_room(writer, rank, 1)) continue;
        struct edit_insn *insn = random_append(writer, rank, thread, TT_OP_MOVE);
        random_add_src(insn, tt_gen_own(TT_SPACE_IN, from));
        random_add_dst(insn, tt_gen_own(TT_SPACE_OUT, to));
    }
}

void random_wide_piece(struct writer *writer)
{
    int thread = (int)random_draw(writer, (uint32_t)writer->nthreads);
    uint32_t kind = random_draw(writer, 4);
    if (writer->direct && random_chance(writer, 70)) {
        broadcast_memory(writer, thread);
    } else if (kind == 0) {
        keep_own(writer, thread);
    } else if (kind == 1 && !writer->uniform) {
        count_up(writer, thread);
    } else {
        go_round(writer, thread);
    }
}

/* Chunk numbers as block and place within it, or counted from what a table says. */
static void rename_chunk(struct writer *writer, int rank, struct tt_operand *operand)
{
    int n = writer->set->nranks, number = operand->chunk;
    bool plain = operand->chunk_by == TT_CHUNK_CONST && !operand->chunk_coef && !operand->stride;
    if (!plain || number < 0 || random_chance(writer, 70)) return;
    if (random_chance(writer, 40)) {
        operand->chunk_by = TT_CHUNK_TABLE;
        operand->chunk_table = TT_TABLE_OTHER;
        operand->chunk = number - (rank + 1) % n; /* the next rank is what the table says */
        return;
    }
    int stride = 2 + (int)random_draw(writer, 3);
    operand->stride = (uint16_t)stride;
    operand->offset = number % stride;
    operand->chunk = number / stride;
    if (random_chance(writer, 50)) return;
    operand->chunk_by = TT_CHUNK_ME;
    operand->chunk -= rank;
}

static void rename_chunks(struct writer *writer, int rank, struct edit_insn *insn)
{
    for (int k = 0; k < insn->nsrcs; k++)
        rename_chunk(writer, rank, &insn->src[k]);
    for (int k = 0; k < insn->ndsts; k++)
        rename_chunk(writer, rank, &insn->dst[k]);
}

void random_wide_rename(struct writer *writer)
{
    for (int rank = 0; rank < writer->set->nranks; rank++) {
        for (int t = 0; t < writer->nthreads; t++) {
            for (int k = 0; k < writer->ninsns[rank][t]; k++)
                rename_chunks(writer, rank, &writer->insns[rank][t][k]);
        }
    }
}

static bool same_insn(const struct edit_insn *a, const struct edit_insn *b)
{
    bool same = a->op == b->op && a->flags == b->flags && a->nsrcs == b->nsrcs &&
                a->ndsts == b->ndsts && a->arg == b->arg && a->thread == b->thread &&
                a->nchunks == b->nchunks;
    return same && !memcmp(a->src, b->src, (size_t)a->nsrcs * sizeof(a->src[0])) &&
           !memcmp(a->dst, b->dst, (size_t)a->ndsts * sizeof(a->dst[0]));
}

bool random_wide_same(const struct writer *writer, int rank, int other)
{
    for (int t = 0; t < writer->nthreads; t++) {
        int count = writer->ninsns[rank][t];
        if (count != writer->ninsns[other][t]) return false;
        for (int k = 0; k < count; k++) {
            if (!same_insn(&writer->insns[rank][t][k], &writer->insns[other][t][k])) return false;
        }
    }
    return true;
}
