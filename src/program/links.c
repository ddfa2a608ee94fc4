/* Which ranks a program exchanges slots with, which a planner must connect before it can run, and
 * how many slots those will be. */
#include "operand.h"

#include <string.h>

static void add(const struct tt_program *program, const struct tt_operand *operand, uint8_t link,
                uint8_t *links)
{
    if (operand->space != TT_SPACE_SLOT) return;
    if (operand->peer == TT_PEER_RANK) {
        links[operand->peer_rank] |= link;
        return;
    }
    for (int rank = 0; rank < program->nranks; rank++) {
        if (rank != program->rank) links[rank] |= link;
    }
}

void tt_program_links(const struct tt_program *program, uint8_t *links)
{
    memset(links, 0, (size_t)program->nranks);
    for (int i = 0; i < program->ninsns; i++) {
        const struct tt_insn *insn = &program->insns[i];
        for (int k = 0; k < insn->nsrcs; k++)
            add(program, &insn->src[k], TT_LINK_RECEIVES, links);
        for (int k = 0; k < insn->ndsts; k++)
            add(program, &insn->dst[k], TT_LINK_SENDS, links);
    }
}

/* ---- counting ---- */

struct count { /* one pass that stands for `times` alike */
    const struct tt_program *program;
    const struct tt_geometry *geometry;
    struct tt_slot_counts *counts;
    size_t slice_count;
    uint32_t pass;
    uint64_t times;
    int i; /* loop register */
};

/* An empty chunk takes a slot as well. */
static uint64_t slots_at(const struct count *count, const struct tt_operand *operand, int peer)
{
    struct tt_extent extent = tt_geometry_extent(
        count->geometry, count->pass, tt_operand_chunk(count->program, operand, peer, count->i));
    uint64_t slots = extent.count / count->slice_count + (extent.count % count->slice_count != 0);
    return (slots ? slots : 1) * count->times;
}

static void count_operand(const struct count *count, const struct tt_operand *operand, bool sends)
{
    bool set = tt_operand_is_set(operand);
    int from = set ? 0 : operand->peer_rank;
    int end = set ? count->program->nranks : from + 1;
    if (operand->space != TT_SPACE_SLOT) return;
    for (int peer = from; peer < end; peer++) {
        if (set && peer == count->program->rank) continue;
        uint64_t slots = slots_at(count, operand, peer);
        *(sends ? &count->counts[peer].sends : &count->counts[peer].receives) += slots;
    }
}

static void count_insn(const struct count *count, const struct tt_insn *insn)
{
    for (int k = 0; k < insn->nsrcs; k++)
        count_operand(count, &insn->src[k], false);
    for (int k = 0; k < insn->ndsts; k++)
        count_operand(count, &insn->dst[k], true);
}

static void count_pass(struct count *count)
{
    const struct tt_program *program = count->program;
    int turns = 1; /* of the loop that an instruction lies in */
    for (int pc = 0; pc < program->ninsns; pc++) {
        const struct tt_insn *insn = &program->insns[pc];
        if (insn->op == TT_OP_LOOP) turns = insn->arg;
        if (insn->op == TT_OP_NEXT) turns = 1;
        if (insn->op != TT_OP_MOVE) continue;
        for (count->i = 0; count->i < turns; count->i++)
            count_insn(count, insn);
    }
}

void tt_program_slots(const struct tt_program *program, const struct tt_geometry *geometry,
                      size_t slice_count, struct tt_slot_counts *counts)
{
    struct count count = {.program = program,
                          .geometry = geometry,
                          .counts = counts,
                          .slice_count = slice_count,
                          .times = geometry->npasses - 1};
    memset(counts, 0, (size_t)program->nranks * sizeof(*counts));
    if (count.times > 0) count_pass(&count); /* all but the last are alike */
    count.pass = geometry->npasses - 1;
    count.times = 1;
    count_pass(&count);
}
