/* What a plan's own signals, waits, barriers and semaphores order, by vector clocks; and which
 * operations touch the same chunk with nothing between them. Operations of one block are taken to
 * follow each other, also where no nop stands between them. */
#include "mscclpp_run.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { HISTORY_MOST = 1 << 26 }; /* values of all snapshots */
_Static_assert((uint64_t)MSCCLPP_ALL_BLOCKS *MSCCLPP_ALL_BLOCKS <= HISTORY_MOST,
               "rows of all blocks");

bool tt_mscclpp_clocks_init(struct mscclpp_clocks *clocks, uint32_t nblocks)
{
    clocks->nblocks = nblocks;
    clocks->now = tt_calloc((size_t)nblocks * nblocks, sizeof(*clocks->now));
    return clocks->now != NULL;
}

void tt_mscclpp_clocks_fini(struct mscclpp_clocks *clocks)
{
    free(clocks->now);
    free(clocks->history.items);
}

static uint32_t *row(const struct mscclpp_clocks *clocks, uint32_t block)
{
    return &clocks->now[(size_t)block * clocks->nblocks];
}

static uint32_t *snapshot_at(const struct mscclpp_clocks *clocks, int32_t snapshot)
{
    return (uint32_t *)clocks->history.items + (size_t)snapshot * clocks->nblocks;
}

int32_t tt_mscclpp_snapshot(struct mscclpp_clocks *clocks, uint32_t block)
{
    uint32_t *values = NULL;
    if (clocks->history.count + clocks->nblocks > HISTORY_MOST) return MSCCLPP_NONE;
    for (uint32_t k = 0; k < clocks->nblocks; k++) {
        values = tt_msccl_append(&clocks->history, sizeof(*values));
        if (!values) return MSCCLPP_NONE;
        *values = row(clocks, block)[k];
    }
    return clocks->nsnapshots++;
}

static void raise_to(uint32_t *to, const uint32_t *from, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        to[k] = from[k] > to[k] ? from[k] : to[k];
}

void tt_mscclpp_add_to(struct mscclpp_clocks *clocks, int32_t snapshot, uint32_t block)
{
    raise_to(snapshot_at(clocks, snapshot), row(clocks, block), clocks->nblocks);
}

void tt_mscclpp_join(struct mscclpp_clocks *clocks, uint32_t block, int32_t snapshot)
{
    raise_to(row(clocks, block), snapshot_at(clocks, snapshot), clocks->nblocks);
}

bool tt_mscclpp_before(const struct mscclpp_clocks *clocks, struct mscclpp_epoch epoch,
                       uint32_t block)
{
    return epoch.block == MSCCLPP_NONE || row(clocks, block)[epoch.block] >= epoch.time;
}

/* ---- chunks ---- */

static const char *const buffers[] = {"input", "output", "scratch"};

static const struct mscclpp_op *op_of(const struct mscclpp_follow *follow,
                                      struct mscclpp_epoch epoch)
{
    const struct mscclpp_block *block = mscclpp_block(follow->plan, (uint32_t)epoch.block);
    return mscclpp_op(follow->plan, block->first + epoch.time - 1);
}

struct access { /* of an operation to one chunk */
    uint32_t block;
    const struct mscclpp_op *op;
    const struct mscclpp_ref *ref;
    int chunk;
    bool writes;
};

static bool refuse_race(struct mscclpp_follow *follow, const struct access *access,
                        struct mscclpp_epoch other, bool wrote)
{
    const struct mscclpp_block *own = mscclpp_block(follow->plan, access->block);
    const struct mscclpp_block *its = mscclpp_block(follow->plan, (uint32_t)other.block);
    const struct mscclpp_op *before_it = op_of(follow, other);
    return tt_msccl_refuse(
        follow->plan->file, access->op->line,
        "gpu %d tb %d: %s %s chunk %d of gpu %d's %s, and nothing orders it behind "
        "gpu %d tb %d, whose %s %s it (line %d)",
        own->rank, own->id, access->op->kind->name, access->writes ? "writes" : "reads",
        access->chunk, access->ref->rank, buffers[access->ref->buffer], its->rank, its->id,
        before_it->kind->name, wrote ? "writes" : "reads", before_it->line);
}

static struct mscclpp_epoch epoch_of(const struct mscclpp_follow *follow, uint32_t block,
                                     const struct mscclpp_op *op)
{
    const struct mscclpp_op *first =
        mscclpp_op(follow->plan, mscclpp_block(follow->plan, block)->first);
    return (struct mscclpp_epoch){(int32_t)block, (uint32_t)(op - first) + 1};
}

/* Add the operation to those that read the chunk; one of a block is enough. */
static bool add_reader(struct mscclpp_follow *follow, struct mscclpp_cell *cell,
                       struct mscclpp_epoch epoch)
{
    for (int32_t r = cell->readers; r != MSCCLPP_NONE;) {
        struct mscclpp_reader *reader = (struct mscclpp_reader *)follow->readers.items + r;
        if (reader->epoch.block == epoch.block) {
            reader->epoch = epoch;
            return true;
        }
        r = reader->next;
    }
    struct mscclpp_reader *reader = tt_msccl_append(&follow->readers, sizeof(*reader));
    if (!reader) return tt_msccl_no_memory(follow->plan->file);
    *reader = (struct mscclpp_reader){.epoch = epoch, .next = cell->readers};
    cell->readers = (int32_t)(follow->readers.count - 1);
    return true;
}

bool tt_mscclpp_read_cells(struct mscclpp_follow *follow, uint32_t block,
                           const struct mscclpp_op *op, const struct mscclpp_ref *ref)
{
    const struct mscclpp_block *own = mscclpp_block(follow->plan, block);
    for (int k = 0; k < ref->size; k++) {
        struct mscclpp_cell *cell = mscclpp_cell(follow, ref->rank, ref->buffer, ref->chunk + k);
        if (!cell->known) {
            return tt_msccl_refuse(
                follow->plan->file, op->line,
                "gpu %d tb %d: %s reads chunk %d of gpu %d's %s, which holds nothing", own->rank,
                own->id, op->kind->name, ref->chunk + k, ref->rank, buffers[ref->buffer]);
        }
        struct access access = {block, op, ref, ref->chunk + k, false};
        if (!tt_mscclpp_before(&follow->clocks, cell->written, block))
            return refuse_race(follow, &access, cell->written, true);
        if (!add_reader(follow, cell, epoch_of(follow, block, op))) return false;
    }
    return true;
}

static bool write_cell(struct mscclpp_follow *follow, const struct access *access, int32_t lines)
{
    const struct mscclpp_ref *ref = access->ref;
    struct mscclpp_cell *cell = mscclpp_cell(follow, ref->rank, ref->buffer, access->chunk);
    if (!tt_mscclpp_before(&follow->clocks, cell->written, access->block))
        return refuse_race(follow, access, cell->written, true);
    for (int32_t r = cell->readers; r != MSCCLPP_NONE;) {
        const struct mscclpp_reader *reader = (struct mscclpp_reader *)follow->readers.items + r;
        if (!tt_mscclpp_before(&follow->clocks, reader->epoch, access->block))
            return refuse_race(follow, access, reader->epoch, false);
        r = reader->next;
    }
    if (lines != MSCCLPP_NONE && cell->lines != MSCCLPP_NONE && cell->readers == MSCCLPP_NONE) {
        return tt_msccl_refuse(follow->plan->file, access->op->line,
                               "%s writes lines over others that nobody has read",
                               access->op->kind->name);
    }
    cell->known = true;
    cell->written = epoch_of(follow, access->block, access->op);
    cell->readers = MSCCLPP_NONE;
    cell->lines = lines;
    return true;
}

bool tt_mscclpp_write_cells(struct mscclpp_follow *follow, uint32_t block,
                            const struct mscclpp_op *op, const struct mscclpp_ref *ref,
                            int32_t lines)
{
    const struct mscclpp_block *own = mscclpp_block(follow->plan, block);
    if (ref->buffer == MSCCL_IN && !follow->plan->file->in_place) {
        return tt_msccl_refuse(
            follow->plan->file, op->line,
            "gpu %d tb %d: %s writes chunk %d of gpu %d's input, which must stay as "
            "it was out of place",
            own->rank, own->id, op->kind->name, ref->chunk, ref->rank);
    }
    for (int k = 0; k < ref->size; k++) {
        struct access access = {block, op, ref, ref->chunk + k, true};
        if (!write_cell(follow, &access, lines)) return false;
    }
    return true;
}

/* ---- the end ---- */

static bool ended_before(const struct mscclpp_follow *follow, const uint32_t *end, int rank,
                         struct mscclpp_epoch epoch)
{
    return epoch.block == MSCCLPP_NONE ||
           mscclpp_block(follow->plan, (uint32_t)epoch.block)->rank == rank ||
           end[epoch.block] >= epoch.time;
}

/* One of the rank's chunks when the rank has ended; the first late reader goes to *late. */
static bool check_cell(struct mscclpp_follow *follow, const uint32_t *end, int rank,
                       const struct mscclpp_cell *cell, struct mscclpp_epoch *late)
{
    if (!ended_before(follow, end, rank, cell->written)) {
        const struct mscclpp_op *op = op_of(follow, cell->written);
        const struct mscclpp_block *block =
            mscclpp_block(follow->plan, (uint32_t)cell->written.block);
        return tt_msccl_refuse(
            follow->plan->file, op->line,
            "gpu %d tb %d: %s writes to gpu %d, which does not wait for it before "
            "it ends",
            block->rank, block->id, op->kind->name, rank);
    }
    for (int32_t r = cell->readers; r != MSCCLPP_NONE && late->block == MSCCLPP_NONE;) {
        const struct mscclpp_reader *reader = (struct mscclpp_reader *)follow->readers.items + r;
        if (!ended_before(follow, end, rank, reader->epoch)) *late = reader->epoch;
        r = reader->next;
    }
    return true;
}

bool tt_mscclpp_check_end(struct mscclpp_follow *follow)
{
    const struct mscclpp_plan *plan = follow->plan;
    struct mscclpp_epoch late = {MSCCLPP_NONE, 0};
    uint32_t *end = tt_calloc(follow->clocks.nblocks, sizeof(*end));
    bool right = end != NULL;
    if (!end) (void)tt_msccl_no_memory(plan->file);
    for (int r = 0; r < plan->file->nranks && right; r++) {
        size_t count = mscclpp_location(follow, r, MSCCL_SCRATCH, 0);
        memset(end, 0, follow->clocks.nblocks * sizeof(*end));
        for (uint32_t b = plan->ranks[r].first; b < plan->ranks[r].end; b++)
            raise_to(end, row(&follow->clocks, b), follow->clocks.nblocks);
        for (size_t c = 0; c < count && right; c++)
            right = check_cell(follow, end, r, &follow->cells[follow->cells_at[r] + c], &late);
    }
    if (right && late.block != MSCCLPP_NONE) {
        const struct mscclpp_op *op = op_of(follow, late);
        tt_msccl_note(plan->file, op->line,
                      "%s may still read another gpu's memory when that gpu has ended",
                      op->kind->name);
    }
    free(end);
    return right;
}
