/* Static checks before a program set is executed: after them, execution needs to look at values
 * and order only. */
#include "verify_state.h"

#include "base/mem.h"

#define MOST_TURNS (1 << 16) /* of a loop: what is hostile shall not take for ever */

static bool operand_ok(const struct tt_verify *verify, const struct tt_program *program,
                       const struct tt_operand *operand)
{
    bool ring = operand->chunk_by == TT_CHUNK_RING || operand->chunk_by == TT_CHUNK_RING_RANK;
    if (operand->space < TT_SPACE_IN || operand->space > TT_SPACE_SLOT) return false;
    if (operand->peer > TT_PEER_OTHERS || operand->chunk_by > TT_CHUNK_RING_RANK) return false;
    if (operand->space == TT_SPACE_SLOT && operand->peer == TT_PEER_SELF) return false;
    if (operand->peer == TT_PEER_RANK) {
        if (operand->peer_rank < 0 || operand->peer_rank >= verify->nranks) return false;
        bool self = operand->peer_rank == program->rank;
        if (self && operand->space == TT_SPACE_SLOT) return false;
    }
    if (operand->chunk_by == TT_CHUNK_RING_RANK && !program->ring_rank) return false;
    return ring || operand->coef == 0;
}

static bool is_set(const struct tt_operand *operand)
{
    return operand->peer == TT_PEER_EACH || operand->peer == TT_PEER_OTHERS;
}

/* Sets of one independent copy must be the same, and [peer] needs one. */
static bool sets_agree(const struct tt_insn *insn)
{
    int set = -1;
    bool by_peer = false;
    bool agree = true;
    for (int k = 0; k < insn->nsrcs + insn->ndsts; k++) {
        const struct tt_operand *operand =
            k < insn->nsrcs ? &insn->src[k] : &insn->dst[k - insn->nsrcs];
        by_peer = by_peer || operand->chunk_by == TT_CHUNK_PEER;
        if (!is_set(operand)) continue;
        agree = agree && (set < 0 || set == operand->peer);
        set = operand->peer;
    }
    return insn->flags & TT_MOVE_FOLD || (agree && (set >= 0 || !by_peer));
}

static bool move_ok(const struct tt_verify *verify, const struct tt_program *program,
                    const struct tt_insn *insn)
{
    bool fold = insn->flags & TT_MOVE_FOLD;
    if (insn->nsrcs > TT_MAX_OPERANDS || insn->ndsts > TT_MAX_OPERANDS) return false;
    if (insn->nsrcs + insn->ndsts == 0 || (fold ? insn->nsrcs < 1 : insn->nsrcs > 1)) return false;
    for (int k = 0; k < insn->nsrcs; k++) {
        if (!operand_ok(verify, program, &insn->src[k])) return false;
    }
    for (int k = 0; k < insn->ndsts; k++) {
        const struct tt_operand *dst = &insn->dst[k];
        if (!operand_ok(verify, program, dst)) return false;
        if (dst->space == TT_SPACE_SLOT && dst->peer == TT_PEER_EACH) return false;
        if (fold && dst->chunk_by == TT_CHUNK_PEER) return false;
    }
    return sets_agree(insn);
}

static bool insn_ok(const struct tt_verify *verify, const struct tt_program *program, int number)
{
    const struct tt_insn *insn = &program->insns[number];
    switch ((enum tt_op)insn->op) {
    case TT_OP_MOVE: return move_ok(verify, program, insn);
    case TT_OP_ENTER: return insn->arg < verify->nranks;
    case TT_OP_LOOP: return insn->arg >= 0 && insn->arg <= MOST_TURNS;
    case TT_OP_LEAVE:
    case TT_OP_NEXT:
    case TT_OP_END: return true;
    default: return false;
    }
}

/* Loops are closed and flat; END ends the thread and nothing else. */
static bool thread_ok(const struct tt_program *program, int thread)
{
    int first = program->thread_first[thread];
    int end = program->thread_first[thread + 1];
    if (first < 0 || end > program->ninsns || end <= first) return false;
    bool looping = false;
    for (int k = first; k < end; k++) {
        enum tt_op op = (enum tt_op)program->insns[k].op;
        if ((op == TT_OP_END) != (k == end - 1)) return false;
        if (op == TT_OP_LOOP && looping) return false;
        if (op == TT_OP_NEXT && !looping) return false;
        if (op == TT_OP_LOOP || op == TT_OP_NEXT) looping = op == TT_OP_LOOP;
    }
    return !looping;
}

/* Whose buffers are touched enters and leaves, once, as all others do: the boards of all ranks
 * count the operations that use them. */
static bool boards_ok(const struct tt_program *program, const struct tt_program *model)
{
    int nenters = 0, nleaves = 0;
    bool looping = false;
    for (int pc = 0; pc < program->ninsns; pc++) {
        enum tt_op op = (enum tt_op)program->insns[pc].op;
        if (op == TT_OP_LOOP || op == TT_OP_NEXT) looping = op == TT_OP_LOOP;
        if (looping && (op == TT_OP_ENTER || op == TT_OP_LEAVE)) return false;
        nenters += op == TT_OP_ENTER;
        nleaves += op == TT_OP_LEAVE;
    }
    bool uses = program->needs_board;
    return uses == model->needs_board && uses == (nenters > 0) && nleaves == (uses ? 1 : 0);
}

static bool program_ok(struct tt_verify *verify, int rank)
{
    const struct tt_program *program = &verify->programs[rank];
    const struct tt_program *model = &verify->programs[0];
    if (program->nranks != verify->nranks || program->rank != rank) {
        return tt_verify_fail(verify, NULL, "program %d says rank %d of %d", rank, program->rank,
                              program->nranks);
    }
    bool alike = program->geometry == model->geometry && program->nchunks == model->nchunks &&
                 program->whole_window == model->whole_window;
    if (!alike || program->nchunks < 1) {
        return tt_verify_fail(verify, NULL, "rank %d cuts the data differently than rank 0", rank);
    }
    bool sized = program->ninsns > 0 && program->ninsns <= TT_MAX_INSNS && program->nthreads > 0 &&
                 program->nthreads <= TT_MAX_THREADS;
    if (!sized) return tt_verify_fail(verify, NULL, "rank %d has no valid threads", rank);
    if (!boards_ok(program, model)) {
        return tt_verify_fail(verify, NULL,
                              "rank %d does not enter, or leave once, as all ranks must", rank);
    }
    for (int t = 0; t < program->nthreads; t++) {
        if (!thread_ok(program, t)) {
            return tt_verify_fail(verify, NULL, "rank %d thread %d is not well-formed", rank, t);
        }
    }
    for (int k = 0; k < program->ninsns; k++) {
        if (!insn_ok(verify, program, k)) {
            return tt_verify_fail(verify, NULL, "rank %d insn %d: not a valid instruction", rank,
                                  k);
        }
    }
    return true;
}

bool tt_verify_wellformed(struct tt_verify *verify)
{
    for (int rank = 0; rank < verify->nranks; rank++) {
        if (!program_ok(verify, rank)) return false;
    }
    return true;
}

/* The k-th chunk in the order in which chunks must follow each other in the buffer. */
static struct tt_extent nth_extent(const struct tt_geometry *geometry, size_t k)
{
    if (geometry->kind == TT_GEOMETRY_BLOCKS) {
        return tt_geometry_extent(geometry, (uint32_t)k, 0);
    }
    size_t nchunks = (size_t)geometry->nchunks;
    return tt_geometry_extent(geometry, (uint32_t)(k / nchunks), (int)(k % nchunks));
}

bool tt_verify_cover(struct tt_verify *verify)
{
    const struct tt_geometry *geometry = &verify->geometry;
    size_t per_pass = geometry->kind == TT_GEOMETRY_SPLIT ? (size_t)geometry->nchunks : 1;
    size_t at = geometry->lo;
    for (size_t k = 0; k < geometry->npasses * per_pass; k++) {
        struct tt_extent extent = nth_extent(geometry, k);
        bool aligned = (extent.first - geometry->lo) % geometry->grain == 0;
        if (extent.first != at || (extent.count && !aligned)) {
            return tt_verify_fail(verify, NULL, "chunk %zu begins at element %zu, not at %zu", k,
                                  extent.first, at);
        }
        at += extent.count;
    }
    if (at == geometry->hi) return true;
    return tt_verify_fail(verify, NULL, "chunks end at element %zu, not at %zu", at, geometry->hi);
}
