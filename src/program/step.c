/* See step.h. What instructions mean is said here and nowhere else: the order of loops and passes,
 * which ranks a set stands for and in which order, and which chunk an operand names there. */
#include "step.h"

static bool is_set(const struct tt_operand *operand)
{
    return operand->peer == TT_PEER_EACH || operand->peer == TT_PEER_OTHERS;
}

void tt_stepper_start(struct tt_stepper *stepper, const struct tt_program *program, int thread,
                      uint32_t npasses)
{
    int first = program->thread_first[thread];
    *stepper = (struct tt_stepper){
        .program = program, .npasses = npasses, .first = first, .pc = first, .walk = -1};
}

/* A copy whose source stands for several ranks is one copy per rank; so is draining them. */
static bool walks(const struct tt_insn *insn)
{
    if ((insn->flags & TT_MOVE_FOLD) || insn->nsrcs == 0) return false;
    return is_set(&insn->src[0]) || insn->src[0].chunk_by == TT_CHUNK_PEER;
}

static bool walks_others(const struct tt_insn *insn)
{
    bool others = insn->src[0].peer == TT_PEER_OTHERS;
    for (int k = 0; k < insn->ndsts; k++)
        others = others || insn->dst[k].peer == TT_PEER_OTHERS;
    return others;
}

static void begin_walk(struct tt_stepper *stepper, const struct tt_insn *insn)
{
    stepper->by_peer = walks(insn);
    stepper->walk = stepper->by_peer && walks_others(insn) ? 1 : 0;
    stepper->nwalk = stepper->by_peer ? stepper->program->nranks : 1;
}

static void begin_loop(struct tt_stepper *stepper, const struct tt_insn *insns)
{
    stepper->i = 0;
    stepper->loop_pc = stepper->pc;
    if (insns[stepper->pc].arg > 0) return;
    while (insns[stepper->pc].op != TT_OP_NEXT)
        stepper->pc++;
}

static void next_round(struct tt_stepper *stepper, const struct tt_insn *insns)
{
    stepper->i++;
    if (stepper->i < insns[stepper->loop_pc].arg) {
        stepper->pc = stepper->loop_pc;
    } else {
        stepper->i = 0;
    }
}

enum tt_next tt_stepper_next(struct tt_stepper *stepper)
{
    const struct tt_insn *insns = stepper->program->insns;
    bool last_pass = stepper->pass + 1 >= stepper->npasses;
    for (;; stepper->pc++) {
        const struct tt_insn *insn = &insns[stepper->pc];
        switch ((enum tt_op)insn->op) {
        case TT_OP_MOVE:
            if (stepper->walk < 0) begin_walk(stepper, insn);
            if (stepper->walk < stepper->nwalk) return TT_NEXT_MOVE;
            stepper->walk = -1;
            break;
        case TT_OP_ENTER:
            if (stepper->pass == 0) return TT_NEXT_ENTER;
            break;
        case TT_OP_LEAVE:
            if (last_pass) return TT_NEXT_LEAVE;
            break;
        case TT_OP_LOOP: begin_loop(stepper, insns); break;
        case TT_OP_NEXT: next_round(stepper, insns); break;
        case TT_OP_END:
            if (last_pass) return TT_NEXT_OVER;
            stepper->pass++;
            last_pass = stepper->pass + 1 >= stepper->npasses;
            stepper->pc = stepper->first - 1;
            break;
        }
    }
}

void tt_stepper_done(struct tt_stepper *stepper)
{
    if (tt_stepper_insn(stepper)->op == TT_OP_MOVE && ++stepper->walk < stepper->nwalk) return;
    stepper->walk = -1;
    stepper->pc++;
}

/* ---- places ---- */

/* Ring positions go round; what generators write needs no division. */
static int position_of(const struct tt_program *program, const struct tt_operand *operand, int i)
{
    int64_t n = program->nranks;
    int64_t position = program->ring_pos + (int64_t)operand->chunk + (int64_t)operand->coef * i;
    if (position < -2 * n || position >= 2 * n) position %= n;
    while (position < 0)
        position += n;
    while (position >= n)
        position -= n;
    return (int)position;
}

static int chunk_of(const struct tt_stepper *stepper, const struct tt_operand *operand, int peer)
{
    const struct tt_program *program = stepper->program;
    switch ((enum tt_chunk)operand->chunk_by) {
    case TT_CHUNK_CONST: return operand->chunk;
    case TT_CHUNK_ME: return program->rank;
    case TT_CHUNK_PEER: return peer;
    case TT_CHUNK_RING: return position_of(program, operand, stepper->i);
    case TT_CHUNK_RING_RANK: return program->ring_rank[position_of(program, operand, stepper->i)];
    }
    return -1;
}

/* The operand where it stands at `peer`; in a set the own place among slots is the own IN. */
static struct tt_place place_at(const struct tt_stepper *stepper, const struct tt_operand *operand,
                                int peer)
{
    int own = stepper->program->rank;
    int rank = operand->peer == TT_PEER_SELF   ? own
               : operand->peer == TT_PEER_RANK ? operand->peer_rank
                                               : peer;
    bool stands_for_in = operand->space == TT_SPACE_SLOT && rank == own && is_set(operand);
    return (struct tt_place){.space = stands_for_in ? TT_SPACE_IN : operand->space,
                             .rank = rank,
                             .chunk = chunk_of(stepper, operand, peer)};
}

/* The k-th rank of a set: sources in rank order, destinations from the next rank on, so that not
 * all ranks send to the same one first. */
static int member_of(const struct tt_stepper *stepper, const struct tt_operand *operand, bool sends,
                     int k)
{
    int n = stepper->program->nranks, own = stepper->program->rank;
    if (operand->peer == TT_PEER_EACH) return k;
    if (!sends) return k < own ? k : k + 1;
    return own + 1 + k < n ? own + 1 + k : own + 1 + k - n;
}

bool tt_stepper_place(const struct tt_stepper *stepper, struct tt_side *side,
                      struct tt_place *place_out)
{
    const struct tt_insn *insn = tt_stepper_insn(stepper);
    int n = stepper->program->nranks;
    int noperands = side->sends ? insn->ndsts : insn->nsrcs;
    for (; side->operand < noperands; side->operand++, side->k = 0) {
        const struct tt_operand *operand =
            side->sends ? &insn->dst[side->operand] : &insn->src[side->operand];
        bool set = is_set(operand) && !stepper->by_peer;
        int count = !set ? 1 : operand->peer == TT_PEER_EACH ? n : n - 1;
        if (side->k >= count) continue;
        int peer = stepper->program->rank;
        if (set) {
            peer = member_of(stepper, operand, side->sends, side->k);
        } else if (stepper->by_peer) {
            peer += stepper->walk < n - peer ? stepper->walk : stepper->walk - n;
        }
        *place_out = place_at(stepper, operand, peer);
        place_out->pre =
            !side->sends && (insn->flags & TT_MOVE_PRE) && place_out->space == TT_SPACE_IN;
        side->k++;
        return true;
    }
    return false;
}

void tt_stepper_move(const struct tt_stepper *stepper, struct tt_move *move)
{
    struct tt_side src = {.sends = false}, dst = {.sends = true};
    move->nsrcs = move->ndsts = 0;
    while (tt_stepper_place(stepper, &src, &move->src[move->nsrcs]))
        move->nsrcs++;
    while (tt_stepper_place(stepper, &dst, &move->dst[move->ndsts]))
        move->ndsts++;
}

static int count_sets(const struct tt_operand *operands, int noperands)
{
    int count = 0;
    for (int k = 0; k < noperands; k++)
        count += is_set(&operands[k]);
    return count;
}

size_t tt_stepper_places(const struct tt_program *program)
{
    int most = 0;
    for (int pc = 0; pc < program->ninsns; pc++) {
        const struct tt_insn *insn = &program->insns[pc];
        int srcs = count_sets(insn->src, insn->nsrcs), dsts = count_sets(insn->dst, insn->ndsts);
        most = srcs > most ? srcs : most;
        most = dsts > most ? dsts : most;
    }
    return (size_t)most * (size_t)program->nranks + TT_MAX_OPERANDS;
}
