/* Follows all blocks of a plan, round after round, each as far as it comes. Where a plan is free of
 * races, any order of its blocks moves the same; where it is not, it is refused. */
#include "mscclpp_run.h"

#include "base/mem.h"

#include <stdlib.h>

enum { VISITS_MOST = 1 << 26 }; /* of blocks, in all rounds */

struct inbox {                             /* of a channel: signals in their order */
    int32_t first, last;                   /* in signals; MSCCLPP_NONE: none is left */
    struct mscclpp_epoch signalled, taken; /* last */
};

struct signal_sent {
    int32_t snapshot, next;
};

struct barrier { /* a barrier of a rank */
    uint32_t blocks, arrived, users;
    int32_t user;     /* the block that was counted last, from 1 */
    int32_t snapshot; /* of those that arrived */
    uint32_t passed;  /* how often all had arrived */
    int32_t last;     /* the snapshot of the last time */
};

struct runner {
    struct mscclpp_follow follow;
    uint32_t *at;     /* owned, as all below; of each block: its next operation */
    bool *arrived;    /* of each block: at the barrier where it stands */
    uint32_t *passed; /* and how often that had opened */
    struct inbox *inboxes;
    struct msccl_list sent;
    int32_t *released; /* of each semaphore: a snapshot of the block that released it */
    int *values;       /* of each semaphore */
    uint64_t visits;
    struct barrier *barriers; /* MSCCLPP_SYNCS of each rank */
};

/* ---- signals, barriers and semaphores ---- */

static bool too_much(struct runner *runner, const struct mscclpp_op *op)
{
    return tt_msccl_refuse(runner->follow.plan->file, op->line,
                           "the plan has too many blocks and signals to be followed");
}

static struct mscclpp_epoch epoch_now(const struct runner *runner, uint32_t block)
{
    const struct mscclpp_clocks *clocks = &runner->follow.clocks;
    return (struct mscclpp_epoch){(int32_t)block,
                                  clocks->now[(size_t)block * clocks->nblocks + block]};
}

/* A block that uses a channel after another block is ordered behind it: else either could be the
 * first. */
static bool use_channel(struct runner *runner, uint32_t block, const struct mscclpp_op *op,
                        struct mscclpp_epoch *last)
{
    bool ordered = tt_mscclpp_before(&runner->follow.clocks, *last, block);
    *last = epoch_now(runner, block);
    if (ordered) return true;
    return tt_msccl_refuse(runner->follow.plan->file, op->line,
                           "gpu %d tb %d: %s at a channel that another block uses as well, and "
                           "nothing says which of the two comes first",
                           mscclpp_block(runner->follow.plan, block)->rank,
                           mscclpp_block(runner->follow.plan, block)->id, op->kind->name);
}

static bool send_signals(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    for (uint32_t k = 0; k < op->nsync; k++) {
        struct inbox *inbox = &runner->inboxes[*mscclpp_number(&plan->syncs, op->sync + k)];
        int32_t snapshot = tt_mscclpp_snapshot(&runner->follow.clocks, block);
        struct signal_sent *sent = tt_msccl_append(&runner->sent, sizeof(*sent));
        if (snapshot == MSCCLPP_NONE || !sent) return too_much(runner, op);
        if (!use_channel(runner, block, op, &inbox->signalled)) return false;
        int32_t number = (int32_t)(runner->sent.count - 1);
        *sent = (struct signal_sent){snapshot, MSCCLPP_NONE};
        if (inbox->first == MSCCLPP_NONE) {
            inbox->first = number;
        } else {
            ((struct signal_sent *)runner->sent.items)[inbox->last].next = number;
        }
        inbox->last = number;
    }
    return true;
}

/* All its channels have been signalled; takes the signals. */
static bool take_signals(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    for (uint32_t k = 0; k < op->nsync; k++) {
        if (runner->inboxes[*mscclpp_number(&plan->syncs, op->sync + k)].first == MSCCLPP_NONE)
            return false;
    }
    for (uint32_t k = 0; k < op->nsync; k++) {
        struct inbox *inbox = &runner->inboxes[*mscclpp_number(&plan->syncs, op->sync + k)];
        if (inbox->first == MSCCLPP_NONE) continue; /* one channel named twice */
        if (!use_channel(runner, block, op, &inbox->taken)) return false;
        const struct signal_sent *sent = (struct signal_sent *)runner->sent.items + inbox->first;
        tt_mscclpp_join(&runner->follow.clocks, block, sent->snapshot);
        inbox->first = sent->next;
    }
    return true;
}

/* Whether all blocks of the barrier have arrived. MSCCLPP_NONE in its snapshot: no block has. */
static bool pass_barrier(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    struct mscclpp_clocks *clocks = &runner->follow.clocks;
    int rank = mscclpp_block(runner->follow.plan, block)->rank;
    struct barrier *barrier = &runner->barriers[(size_t)rank * MSCCLPP_SYNCS + op->sync];
    if (!runner->arrived[block]) {
        if (barrier->arrived == 0) barrier->snapshot = tt_mscclpp_snapshot(clocks, block);
        if (barrier->snapshot == MSCCLPP_NONE) return !too_much(runner, op);
        tt_mscclpp_add_to(clocks, barrier->snapshot, block);
        runner->arrived[block] = true;
        runner->passed[block] = barrier->passed;
        if (++barrier->arrived < op->nsync) return false;
        barrier->arrived = 0;
        barrier->last = barrier->snapshot;
        barrier->passed++;
    }
    if (barrier->passed == runner->passed[block]) return false;
    runner->arrived[block] = false;
    tt_mscclpp_join(clocks, block, barrier->last);
    return true;
}

static bool release(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    for (uint32_t k = 0; k < op->nsync; k++) {
        int which = *mscclpp_number(&plan->syncs, op->sync + k);
        int32_t *snapshot = &runner->released[which];
        if (*snapshot == MSCCLPP_NONE)
            *snapshot = tt_mscclpp_snapshot(&runner->follow.clocks, block);
        if (*snapshot == MSCCLPP_NONE) return too_much(runner, op);
        tt_mscclpp_add_to(&runner->follow.clocks, *snapshot, block);
        runner->values[which]++;
    }
    return true;
}

static bool acquire(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    for (uint32_t k = 0; k < op->nsync; k++) {
        if (runner->values[*mscclpp_number(&plan->syncs, op->sync + k)] == 0) return false;
    }
    for (uint32_t k = 0; k < op->nsync; k++) {
        int which = *mscclpp_number(&plan->syncs, op->sync + k);
        runner->values[which]--;
        if (runner->released[which] != MSCCLPP_NONE)
            tt_mscclpp_join(&runner->follow.clocks, block, runner->released[which]);
    }
    return true;
}

/* ---- moves ---- */

/* Whether the source is read as lines, which say themselves that they are there. */
static bool is_lines(const struct mscclpp_op *op, uint32_t source)
{
    return op->kind->reads_lines && (source > 0 || !op->kind->adds);
}

/* Whether all chunks of the source hold lines; `join`: be ordered behind the blocks that wrote
 * them. */
static bool take_lines(struct runner *runner, uint32_t block, const struct mscclpp_ref *src,
                       bool join)
{
    for (int k = 0; k < src->size; k++) {
        int32_t lines =
            mscclpp_cell(&runner->follow, src->rank, src->buffer, src->chunk + k)->lines;
        if (lines == MSCCLPP_NONE) return false;
        if (join) tt_mscclpp_join(&runner->follow.clocks, block, lines);
    }
    return true;
}

static bool lines_are_there(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    for (int join = 0; join < 2; join++) {
        for (uint32_t s = 0; s < op->nsrc; s++) {
            const struct mscclpp_ref *src = mscclpp_ref(runner->follow.plan, op->src + s);
            if (is_lines(op, s) && !take_lines(runner, block, src, join)) return false;
        }
    }
    return true;
}

static bool move(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    struct mscclpp_follow *follow = &runner->follow;
    int32_t lines = MSCCLPP_NONE;
    for (uint32_t s = 0; s < op->nsrc; s++) {
        if (!tt_mscclpp_read_cells(follow, block, op, mscclpp_ref(follow->plan, op->src + s)))
            return false;
    }
    if (op->kind->writes_lines) {
        lines = tt_mscclpp_snapshot(&follow->clocks, block);
        if (lines == MSCCLPP_NONE) return too_much(runner, op);
    }
    for (uint32_t d = 0; d < op->ndst; d++) {
        if (!tt_mscclpp_write_cells(follow, block, op, mscclpp_ref(follow->plan, op->dst + d),
                                    lines))
            return false;
    }
    return tt_mscclpp_emit(follow, block, op);
}

/* ---- blocks ---- */

/* Whether the block comes past the operation; false also when it is refused. */
static bool run_op(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    switch ((enum mscclpp_does)op->kind->does) {
    case MSCCLPP_WAITS: return take_signals(runner, block, op);
    case MSCCLPP_BARRIER: return pass_barrier(runner, block, op);
    case MSCCLPP_ACQUIRES: return acquire(runner, block, op);
    case MSCCLPP_RELEASES: return release(runner, block, op);
    case MSCCLPP_SIGNALS: return send_signals(runner, block, op);
    case MSCCLPP_MOVES:
        if (!op->idle && !lines_are_there(runner, block, op)) return false;
        return (op->idle || move(runner, block, op)) &&
               (!op->kind->signals || send_signals(runner, block, op));
    case MSCCLPP_NOTHING: break;
    }
    return true;
}

static bool refuse_wait(struct runner *runner)
{
    static const char *const whats[] = {[MSCCLPP_WAITS] = "a signal that nobody sends",
                                        [MSCCLPP_BARRIER] = "blocks that never come to the barrier",
                                        [MSCCLPP_ACQUIRES] = "a semaphore that nobody releases",
                                        [MSCCLPP_MOVES] = "data that nobody writes as lines"};
    struct mscclpp_plan *plan = runner->follow.plan;
    for (uint32_t b = 0; b < plan->blocks.count; b++) {
        const struct mscclpp_block *block = mscclpp_block(plan, b);
        if (runner->at[b] == block->end) continue;
        const struct mscclpp_op *op = mscclpp_op(plan, runner->at[b]);
        return tt_msccl_refuse(plan->file, op->line, "gpu %d tb %d: %s waits for ever: for %s",
                               block->rank, block->id, op->kind->name, whats[op->kind->does]);
    }
    return true;
}

static void note_signals(struct runner *runner)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    for (uint32_t c = 0; c < plan->channels.count; c++) {
        if (runner->inboxes[c].first == MSCCLPP_NONE) continue;
        tt_msccl_note(
            plan->file, plan->file->line,
            "a signal of gpu %d is never waited for; MSCCL++ would keep it for the next run",
            mscclpp_channel(plan, c)->peer);
        return;
    }
}

/* As far as the block comes; how many operations that are. */
static uint32_t run_block(struct runner *runner, uint32_t number)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    const struct mscclpp_block *block = mscclpp_block(plan, number);
    uint32_t *now = &runner->follow.clocks.now[(size_t)number * plan->blocks.count + number];
    uint32_t *at = &runner->at[number], first = *at;
    for (; *at < block->end; ++*at) {
        *now = *at - block->first + 1;
        if (!run_op(runner, number, mscclpp_op(plan, *at))) break;
    }
    if (*at < block->end) { /* what a fruitless look costs */
        const struct mscclpp_op *op = mscclpp_op(plan, *at);
        runner->visits += 1 + (uint64_t)op->nsync;
        for (uint32_t k = 0; op->kind->reads_lines && k < op->nsrc; k++)
            runner->visits += (uint64_t)mscclpp_ref(plan, op->src + k)->size;
    }
    return *at - first;
}

static bool run_blocks(struct runner *runner)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    uint32_t left = (uint32_t)plan->blocks.count, moved = 1;
    while (left > 0 && moved > 0 && !plan->file->rc) {
        moved = left = 0;
        for (uint32_t b = 0; b < plan->blocks.count && !plan->file->rc; b++) {
            moved += run_block(runner, b);
            left += runner->at[b] < mscclpp_block(plan, b)->end;
        }
        runner->visits += plan->blocks.count;
        if (runner->visits > VISITS_MOST) {
            return tt_msccl_refuse(plan->file, plan->file->line,
                                   "the plan takes too long to be followed");
        }
    }
    if (plan->file->rc) return false;
    if (left > 0) return refuse_wait(runner);
    note_signals(runner);
    return tt_mscclpp_check_end(&runner->follow);
}

/* ---- start and end ---- */

static void fill_cells(struct mscclpp_follow *follow, size_t ncells)
{
    const struct msccl_file *file = follow->plan->file;
    for (size_t c = 0; c < ncells; c++) {
        follow->cells[c] = (struct mscclpp_cell){.written = {MSCCLPP_NONE, 0},
                                                 .lines = MSCCLPP_NONE,
                                                 .readers = MSCCLPP_NONE,
                                                 .writer_step = MSCCLPP_NONE,
                                                 .reader_steps = MSCCLPP_NONE};
    }
    for (int r = 0; r < file->nranks; r++) {
        for (int k = 0; k < follow->in && (r == 0 || !tt_func_from_root(file->func)); k++)
            mscclpp_cell(follow, r, MSCCL_IN, k)->known = true;
    }
}

static bool start_cells(struct mscclpp_follow *follow)
{
    struct msccl_file *file = follow->plan->file;
    size_t n = (size_t)file->nranks, ncells = 0;
    int parts = msccl_in_blocks(file->func) || msccl_out_blocks(file->func)
                    ? file->nchunks / file->nranks
                    : file->nchunks;
    follow->in = msccl_in_blocks(file->func) ? parts * file->nranks : parts;
    follow->out = msccl_out_blocks(file->func) ? parts * file->nranks : parts;
    follow->cells_at = tt_calloc(n, sizeof(*follow->cells_at));
    if (!follow->cells_at) return tt_msccl_no_memory(file);
    if (!tt_mscclpp_steps_init(follow)) return false;
    for (size_t r = 0; r < n; r++) {
        follow->cells_at[r] = ncells;
        ncells += (size_t)follow->in + (size_t)follow->out + (size_t)follow->scratch[r];
        if (ncells > MSCCL_TOTAL) {
            return tt_msccl_refuse(file, file->line, "more than %d chunks in all buffers",
                                   (int)MSCCL_TOTAL);
        }
    }
    follow->cells = tt_calloc(ncells, sizeof(*follow->cells));
    if (!follow->cells) return tt_msccl_no_memory(file);
    fill_cells(follow, ncells);
    return true;
}

/* All blocks of a rank that name a barrier name as many blocks. */
static bool name_barrier(struct runner *runner, uint32_t block, const struct mscclpp_op *op)
{
    int rank = mscclpp_block(runner->follow.plan, block)->rank;
    struct barrier *barrier = &runner->barriers[(size_t)rank * MSCCLPP_SYNCS + op->sync];
    barrier->users += barrier->user != (int32_t)block + 1;
    barrier->user = (int32_t)block + 1;
    if (barrier->users > op->nsync) {
        return tt_msccl_refuse(runner->follow.plan->file, op->line,
                               "gpu %d: barrier %u of %u blocks is used by more", rank,
                               (unsigned int)op->sync, (unsigned int)op->nsync);
    }
    if (!barrier->blocks || barrier->blocks == op->nsync) {
        barrier->blocks = op->nsync;
        return true;
    }
    return tt_msccl_refuse(
        runner->follow.plan->file, op->line, "gpu %d: barrier %u of %u blocks has %u elsewhere",
        rank, (unsigned int)op->sync, (unsigned int)op->nsync, (unsigned int)barrier->blocks);
}

static bool start_barriers(struct runner *runner)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    size_t count = (size_t)plan->file->nranks * MSCCLPP_SYNCS;
    runner->barriers = tt_calloc(count, sizeof(*runner->barriers));
    if (!runner->barriers) return tt_msccl_no_memory(plan->file);
    for (uint32_t b = 0; b < plan->blocks.count; b++) {
        const struct mscclpp_block *block = mscclpp_block(plan, b);
        for (uint32_t o = block->first; o < block->end; o++) {
            const struct mscclpp_op *op = mscclpp_op(plan, o);
            if (op->kind->does == MSCCLPP_BARRIER && !name_barrier(runner, b, op)) return false;
        }
    }
    return true;
}

static bool start(struct runner *runner)
{
    struct mscclpp_plan *plan = runner->follow.plan;
    size_t nblocks = plan->blocks.count, nchannels = plan->channels.count;
    size_t nsemaphores = plan->semaphores.count;
    if (!start_cells(&runner->follow) || !start_barriers(runner)) return false;
    runner->at = tt_calloc(tt_max_size(nblocks, 1), sizeof(*runner->at));
    runner->arrived = tt_calloc(tt_max_size(nblocks, 1), sizeof(*runner->arrived));
    runner->passed = tt_calloc(tt_max_size(nblocks, 1), sizeof(*runner->passed));
    runner->inboxes = tt_calloc(tt_max_size(nchannels, 1), sizeof(*runner->inboxes));
    runner->released = tt_calloc(tt_max_size(nsemaphores, 1), sizeof(*runner->released));
    runner->values = tt_calloc(tt_max_size(nsemaphores, 1), sizeof(*runner->values));
    if (!runner->at || !runner->arrived || !runner->passed || !runner->inboxes ||
        !runner->released || !runner->values)
        return tt_msccl_no_memory(plan->file);
    if (nblocks == 0)
        return tt_msccl_refuse(plan->file, plan->file->line, "the plan has no blocks");
    if (!tt_mscclpp_clocks_init(&runner->follow.clocks, (uint32_t)nblocks))
        return tt_msccl_no_memory(plan->file);
    for (size_t b = 0; b < nblocks; b++)
        runner->at[b] = mscclpp_block(plan, (uint32_t)b)->first;
    for (size_t c = 0; c < nchannels; c++) {
        struct inbox *inbox = &runner->inboxes[c];
        inbox->first = inbox->signalled.block = inbox->taken.block = MSCCLPP_NONE;
    }
    for (size_t s = 0; s < nsemaphores; s++) {
        runner->released[s] = MSCCLPP_NONE;
        runner->values[s] = *mscclpp_number(&plan->semaphores, (uint32_t)s);
    }
    return true;
}

/* All blocks; file->ranks, blocks and steps are set. */
static bool follow_all(struct mscclpp_plan *plan)
{
    struct runner runner = {.follow = {.plan = plan}};
    bool right = start(&runner) && run_blocks(&runner) && tt_mscclpp_finish(&runner.follow);
    tt_mscclpp_steps_fini(&runner.follow);
    tt_mscclpp_clocks_fini(&runner.follow.clocks);
    free(runner.follow.cells);
    free(runner.follow.cells_at);
    free(runner.follow.readers.items);
    free(runner.at);
    free(runner.arrived);
    free(runner.passed);
    free(runner.inboxes);
    free(runner.sent.items);
    free(runner.released);
    free(runner.values);
    free(runner.barriers);
    return right;
}

bool tt_mscclpp_load(struct msccl_file *file, const char *text, size_t text_bytes)
{
    struct mscclpp_plan plan = {.file = file};
    file->plan = true;
    bool loaded = tt_mscclpp_read(&plan, text, text_bytes) && tt_mscclpp_read_blocks(&plan) &&
                  follow_all(&plan);
    tt_json_fini(&plan.json);
    struct msccl_list *lists[] = {&plan.blocks,   &plan.ops,    &plan.refs,    &plan.syncs,
                                  &plan.channels, &plan.groups, &plan.members, &plan.semaphores};
    for (size_t k = 0; k < TT_LEN(lists); k++)
        free(lists[k]->items);
    free(plan.ranks);
    return loaded;
}
