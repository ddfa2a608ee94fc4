/* Which ranks a program exchanges slots with: what a planner must connect before it can run. */
#include "program.h"

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
