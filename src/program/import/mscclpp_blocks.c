/* The steps of a plan as blocks of MSCCL: the last of what makes it a file of MSCCL. */
#include "mscclpp_run.h"

#include "base/mem.h"

#include <stdlib.h>

/* The rank's output blocks that have steps, as blocks; their numbers into ids. A rank without any
 * has an empty one. */
static bool add_blocks(struct mscclpp_follow *follow, int r, int *ids)
{
    struct msccl_file *file = follow->plan->file;
    const struct mscclpp_rank *plan_rank = &follow->plan->ranks[r];
    uint32_t first = follow->out_blocks_at[r], count = follow->out_blocks_at[r + 1] - first;
    uint32_t nblocks = plan_rank->end - plan_rank->first, n = (uint32_t)file->nranks;
    struct msccl_rank *rank = msccl_rank(file, r);
    for (uint32_t s = 0; s < count; s++) {
        const struct mscclpp_out_block *out_block = &follow->out_blocks[first + s];
        bool empty = s + 1 == count && rank->end == rank->first;
        if (!out_block->count && !empty) continue;
        if (file->blocks.count >= MSCCL_BLOCKS)
            return tt_msccl_refuse(file, rank->line, "more than %d blocks", (int)MSCCL_BLOCKS);
        struct msccl_block *block = tt_msccl_append(&file->blocks, sizeof(*block));
        if (!block) return tt_msccl_no_memory(file);
        bool sends = s >= nblocks && s < nblocks + n;
        bool receives = s >= nblocks + n && s < nblocks + 2 * n;
        *block = (struct msccl_block){.line = out_block->line ? out_block->line : rank->line,
                                      .id = (int)(rank->end - rank->first),
                                      .rank = r,
                                      .send = sends ? (int)(s - nblocks) : -1,
                                      .recv = receives ? (int)(s - nblocks - n) : -1};
        ids[first + s] = block->id;
        block->first = (uint32_t)file->steps.count;
        file->steps.count += out_block->count;
        block->end = (uint32_t)file->steps.count;
        rank->end++;
    }
    return true;
}

static bool add_ranks(struct mscclpp_follow *follow, int *ids)
{
    struct msccl_file *file = follow->plan->file;
    for (int r = 0; r < file->nranks; r++) {
        struct msccl_rank *rank = tt_msccl_append(&file->ranks, sizeof(*rank));
        if (!rank) return tt_msccl_no_memory(file);
        const struct mscclpp_rank *from = &follow->plan->ranks[r];
        *rank = (struct msccl_rank){.line = from->node->line, .id = r};
        rank->chunks[MSCCL_IN] = follow->in;
        rank->chunks[MSCCL_OUT] = follow->out;
        rank->chunks[MSCCL_SCRATCH] = follow->scratch[r];
        rank->first = rank->end = (uint32_t)file->blocks.count;
        if (!add_blocks(follow, r, ids)) return false;
    }
    return true;
}

bool tt_mscclpp_finish(struct mscclpp_follow *follow)
{
    struct msccl_file *file = follow->plan->file;
    uint32_t nout_blocks = follow->out_blocks_at[file->nranks];
    if (!tt_mscclpp_emit_kept(follow)) return false;
    int *ids = tt_calloc(nout_blocks, sizeof(*ids));
    struct msccl_step *steps = tt_calloc(tt_max_size(follow->steps.count, 1), sizeof(*steps));
    uint32_t *first = tt_calloc(nout_blocks, sizeof(*first));
    bool made = ids && steps && first;
    if (!made) (void)tt_msccl_no_memory(file);
    made = made && add_ranks(follow, ids);
    for (uint32_t s = 0, at = 0; made && s < nout_blocks; at += follow->out_blocks[s++].count)
        first[s] = at;
    for (size_t k = 0; made && k < follow->steps.count; k++) {
        const struct mscclpp_step *from = (struct mscclpp_step *)follow->steps.items + k;
        struct msccl_step *to = &steps[first[from->out_block] + from->at];
        *to = from->step;
        if (to->dep_block >= 0) to->dep_block = ids[to->dep_block];
    }
    file->steps.items = steps;
    file->steps.capacity = follow->steps.count;
    if (!made) file->steps.count = 0;
    free(ids);
    free(first);
    return made;
}
