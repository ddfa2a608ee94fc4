/* See step.h. What instructions mean is said here and nowhere else: the order of loops and passes,
 * which ranks a set stands for and in which order, and which chunk an operand names there. */
#include "step.h"

enum { NO_RANK = -1 };

static bool is_set(const struct tt_operand *operand)
{
    return operand->peer == TT_PEER_EACH || operand->peer == TT_PEER_OTHERS ||
           operand->peer == TT_PEER_MULTICAST;
}

void tt_stepper_start(struct tt_stepper *stepper, const struct tt_program *program, int rank,
                      int thread, uint32_t npasses)
{
    const struct tt_text *text = tt_program_text(program, rank);
    const int32_t *position = tt_program_table(program, TT_TABLE_POSITION);
    int first = (int)tt_program_threads(program)[text->first + (uint32_t)thread].first;
    *stepper = (struct tt_stepper){.program = program,
                                   .insns = tt_program_insns(program),
                                   .operands = tt_program_operands(program),
                                   .rank = rank,
                                   .nranks = program->nranks,
                                   .ring_pos = position ? position[rank] : 0,
                                   .npasses = npasses,
                                   .first = first,
                                   .pc = first,
                                   .walk = -1};
}

/* A copy whose source stands for several ranks is one copy per rank; so is draining them. */
static bool walks(const struct tt_stepper *stepper, const struct tt_insn *insn)
{
    if ((insn->flags & TT_MOVE_REDUCE) || insn->nsrcs == 0) return false;
    const struct tt_operand *src = &stepper->operands[insn->first_src];
    return is_set(src) || src->chunk_by == TT_CHUNK_PEER;
}

static bool walks_others(const struct tt_stepper *stepper, const struct tt_insn *insn)
{
    const struct tt_operand *dst = &stepper->operands[insn->first_dst];
    bool others = stepper->operands[insn->first_src].peer == TT_PEER_OTHERS;
    for (int k = 0; k < insn->ndsts; k++)
        others = others || dst[k].peer == TT_PEER_OTHERS;
    return others;
}

static void begin_walk(struct tt_stepper *stepper, const struct tt_insn *insn)
{
    stepper->by_peer = walks(stepper, insn);
    stepper->walk = stepper->by_peer && walks_others(stepper, insn) ? 1 : 0;
    stepper->nwalk = stepper->by_peer ? stepper->nranks : 1;
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
    const struct tt_insn *insns = stepper->insns;
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
        case TT_OP_AWAIT: return TT_NEXT_AWAIT;
        case TT_OP_LOOP: begin_loop(stepper, insns); break;
        case TT_OP_NEXT: next_round(stepper, insns); break;
        case TT_OP_END:
            if (last_pass) return TT_NEXT_OVER;
            stepper->pass++;
            last_pass = stepper->pass + 1 >= stepper->npasses;
            stepper->pc = stepper->first - 1;
            break;
        case TT_OP_COUNT_: break;
        }
    }
}

void tt_stepper_done(struct tt_stepper *stepper)
{
    const struct tt_insn *insn = tt_stepper_insn(stepper);
    if (insn->op == TT_OP_MOVE) {
        if (++stepper->k < insn->nchunks) return;
        stepper->k = 0;
        if (++stepper->walk < stepper->nwalk) return;
    }
    stepper->walk = -1;
    stepper->pc++;
}

bool tt_stepper_awaited(const struct tt_stepper *stepper, const struct tt_stepper *other)
{
    if (other->pass != stepper->pass) return other->pass > stepper->pass;
    return other->pc > other->first + tt_stepper_insn(stepper)->arg;
}

/* ---- locations ---- */

/* Round the ranks; what generators write needs no division. */
static int wrap(int64_t number, int64_t n)
{
    if (number < -2 * n || number >= 2 * n) number %= n;
    while (number < 0)
        number += n;
    while (number >= n)
        number -= n;
    return (int)number;
}

static int64_t power(int64_t exponent)
{
    return exponent < 0 || exponent > 30 ? 0 : (int64_t)1 << exponent;
}

/* The rank at that distance in the block's ring. */
static int ring_rank(const struct tt_stepper *stepper, int64_t distance)
{
    const int32_t *ring = tt_program_table(stepper->program, TT_TABLE_RING);
    return ring[wrap(stepper->ring_pos + distance, stepper->nranks)];
}

static int partner(const struct tt_stepper *stepper, int64_t mask)
{
    int64_t rank = stepper->rank ^ mask;
    return mask < 0 || rank >= stepper->nranks ? NO_RANK : (int)rank;
}

/* NO_RANK: the operand stands for nothing. Sets are member_of()'s. */
static int peer_of(const struct tt_stepper *stepper, const struct tt_operand *operand)
{
    int64_t me = stepper->rank, n = stepper->nranks;
    int64_t e = operand->peer_number + (int64_t)operand->peer_coef * stepper->i;
    switch ((enum tt_peer)operand->peer) {
    case TT_PEER_SELF: return stepper->rank;
    case TT_PEER_RANK: return e >= 0 && e < n ? (int)e : NO_RANK;
    case TT_PEER_RING: return ring_rank(stepper, e);
    case TT_PEER_SHIFT: return wrap(me + e, n);
    case TT_PEER_XOR: return partner(stepper, e);
    case TT_PEER_FLIP: return partner(stepper, power(e) ? power(e) : -1);
    case TT_PEER_UP: return wrap(me + power(e), n);
    case TT_PEER_DOWN: return wrap(me - power(e), n);
    case TT_PEER_TABLE:
        return tt_program_table(stepper->program, (enum tt_table)operand->peer_number)[me];
    case TT_PEER_EACH:
    case TT_PEER_OTHERS:
    case TT_PEER_MULTICAST:
    case TT_PEER_COUNT_: break;
    }
    return NO_RANK;
}

/* What the operand says without its stride, k chunks on. */
static int chunk_by(const struct tt_stepper *stepper, const struct tt_operand *operand, int peer,
                    int k)
{
    int64_t me = stepper->rank, n = stepper->nranks;
    int64_t power_e, e = operand->chunk + (int64_t)operand->chunk_coef * stepper->i;
    if (operand->chunk_by != TT_CHUNK_GROUP && operand->chunk_by != TT_CHUNK_SIBLING) e += k;
    switch ((enum tt_chunk)operand->chunk_by) {
    case TT_CHUNK_CONST: return (int)e;
    case TT_CHUNK_ME: return (int)(me + e);
    case TT_CHUNK_PEER: return peer + k;
    case TT_CHUNK_RING: return wrap(stepper->ring_pos + e, n);
    case TT_CHUNK_RING_RANK: return ring_rank(stepper, e);
    case TT_CHUNK_SHIFT: return wrap(me + e, n);
    case TT_CHUNK_XOR: return (int)(me ^ e);
    case TT_CHUNK_GROUP: power_e = power(e); return power_e ? (int)(me & -power_e) + k : NO_RANK;
    case TT_CHUNK_SIBLING:
        power_e = power(e);
        return power_e ? (int)((me ^ power_e) & -power_e) + k : NO_RANK;
    case TT_CHUNK_TABLE:
        return (int)(tt_program_table(stepper->program, (enum tt_table)operand->chunk_table)[me] +
                     e);
    case TT_CHUNK_ROUND:
        e += tt_program_table(stepper->program, TT_TABLE_ROUND)[me];
        return wrap(e, stepper->program->nparts);
    case TT_CHUNK_COUNT_: break;
    }
    return NO_RANK;
}

/* Numbers that are no chunk are the reader's to refuse: the verifier does. */
static int chunk_of(const struct tt_stepper *stepper, const struct tt_operand *operand, int peer)
{
    if (!operand->stride) return chunk_by(stepper, operand, peer, stepper->k);
    int64_t block = chunk_by(stepper, operand, peer, 0);
    int64_t chunk = block * operand->stride + operand->offset + stepper->k;
    return block < 0 || chunk > INT32_MAX ? NO_RANK : (int)chunk;
}

/* The operand where it stands at `peer`; in a set the own location among slots is the own IN. */
static struct tt_location location_at(const struct tt_stepper *stepper,
                                      const struct tt_operand *operand, int peer)
{
    int rank = is_set(operand) ? peer : peer_of(stepper, operand);
    if (operand->space == TT_SPACE_NETWORK &&
        tt_program_table(stepper->program, TT_TABLE_NETWORK)[stepper->rank] < 0)
        rank = NO_RANK;
    bool own_in = operand->space == TT_SPACE_SLOT && rank == stepper->rank && is_set(operand);
    return (struct tt_location){.space = own_in ? TT_SPACE_IN : operand->space,
                                .rank = rank,
                                .edge = operand->channel * stepper->nranks + rank,
                                .chunk = chunk_of(stepper, operand, peer)};
}

/* The k-th rank of a set: sources in rank order, destinations from the next rank on, so that not
 * all ranks send to the same one first. */
static int member_of(const struct tt_stepper *stepper, const struct tt_operand *operand, bool sends,
                     int k)
{
    int n = stepper->nranks, own = stepper->rank;
    if (operand->peer != TT_PEER_OTHERS) return k;
    if (!sends) return k < own ? k : k + 1;
    return own + 1 + k < n ? own + 1 + k : own + 1 + k - n;
}

bool tt_stepper_location(const struct tt_stepper *stepper, struct tt_side *side,
                         struct tt_location *location_out)
{
    const struct tt_insn *insn = tt_stepper_insn(stepper);
    const struct tt_operand *operands =
        &stepper->operands[side->sends ? insn->first_dst : insn->first_src];
    int n = stepper->nranks;
    int noperands = side->sends ? insn->ndsts : insn->nsrcs;
    for (; side->operand < noperands; side->operand++, side->k = 0) {
        const struct tt_operand *operand = &operands[side->operand];
        bool set = is_set(operand) && !stepper->by_peer;
        int count = !set ? 1 : operand->peer != TT_PEER_OTHERS ? n : n - 1;
        if (side->k >= count) continue;
        int peer = stepper->rank;
        if (set) {
            peer = member_of(stepper, operand, side->sends, side->k);
        } else if (stepper->by_peer) {
            peer += stepper->walk < n - peer ? stepper->walk : stepper->walk - n;
        }
        *location_out = location_at(stepper, operand, peer);
        if (location_out->rank < 0) continue;
        location_out->pre =
            !side->sends && (insn->flags & TT_MOVE_PRE) && location_out->space == TT_SPACE_IN;
        side->k++;
        return true;
    }
    return false;
}

void tt_stepper_move(const struct tt_stepper *stepper, struct tt_move *move)
{
    struct tt_side src = {.sends = false}, dst = {.sends = true};
    move->nsrcs = move->ndsts = 0;
    while (tt_stepper_location(stepper, &src, &move->src[move->nsrcs]))
        move->nsrcs++;
    while (tt_stepper_location(stepper, &dst, &move->dst[move->ndsts]))
        move->ndsts++;
}

static size_t count_locations(const struct tt_operand *operands, int noperands, int nranks)
{
    size_t count = 0;
    for (int k = 0; k < noperands; k++)
        count += is_set(&operands[k]) ? (size_t)nranks : 1;
    return count;
}

int tt_network_member(const struct tt_program *program, int rank, int *at)
{
    const int32_t *group = tt_program_table(program, TT_TABLE_NETWORK);
    const int32_t *ring = tt_program_table(program, TT_TABLE_RING);
    if (!group || group[rank] < 0) return NO_RANK;
    for (; *at < program->nranks; ++*at) {
        int member = ring ? ring[*at] : *at;
        if (group[member] == group[rank]) return member;
    }
    return NO_RANK;
}

struct tt_network_call tt_program_network(const struct tt_program *program, int rank)
{
    struct tt_network_call call = {.gives = 1, .takes = 1};
    int member;
    for (int at = 0; (member = tt_network_member(program, rank, &at)) >= 0; at++) {
        if (member == rank) call.own = call.members;
        call.members++;
    }
    if (call.members && program->func == TT_FUNC_REDUCESCATTER) call.gives = call.members;
    if (call.members && program->func == TT_FUNC_ALLGATHER) call.takes = call.members;
    return call;
}

size_t tt_stepper_locations(const struct tt_program *program, int rank)
{
    const struct tt_thread insns = tt_text_insns(program, rank);
    const struct tt_operand *operands = tt_program_operands(program);
    size_t most = 1;
    for (uint32_t pc = insns.first; pc < insns.end; pc++) {
        const struct tt_insn *insn = &tt_program_insns(program)[pc];
        if (insn->op != TT_OP_MOVE) continue;
        size_t srcs = count_locations(&operands[insn->first_src], insn->nsrcs, program->nranks);
        size_t dsts = count_locations(&operands[insn->first_dst], insn->ndsts, program->nranks);
        most = srcs > most ? srcs : most;
        most = dsts > most ? dsts : most;
    }
    return most;
}
