/* Static checks of a block, whatever made it: after them the stepper stays inside of it for every
 * rank, and every thread ends. */
#include "base/mem.h"
#include "program/program.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    MOST_TURNS = 1 << 16, /* of a loop: what is hostile shall not take for ever, */
    MOST_MOVED = 1 << 20, /* nor chunks of a thread's pass */
    MOST_RANKS = 1 << 20,
    MOST_CHUNKS = 1 << 24, /* of a move, and of scratch */
    MOST_CHANNELS = TT_MAX_CHANNELS,
};

struct check {
    const struct tt_program *program;
    size_t bytes;
    char *fault;
    size_t fault_bytes;
};

static bool refuse(const struct check *check, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(const struct check *check, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(check->fault, check->fault_bytes, fmt, args);
    va_end(args);
    return false;
}

/* ---- the head and its offsets ---- */

static bool part_ok(const struct check *check, uint32_t at, size_t count, size_t item_bytes)
{
    size_t bytes;
    if (count == 0) return true;
    return at >= sizeof(struct tt_program) && at % 4 == 0 && at < check->bytes &&
           tt_mul_size(count, item_bytes, &bytes) && bytes <= check->bytes - at;
}

static bool head_ok(const struct check *check)
{
    const struct tt_program *program = check->program;
    if (check->bytes < sizeof(*program) || program->magic != TT_PROGRAM_MAGIC ||
        program->bytes != check->bytes || program->bytes % 4) {
        return refuse(check, "not a program: wrong mark or size");
    }
    if (program->nranks < 1 || program->nranks > MOST_RANKS || program->root < -1 ||
        program->root >= program->nranks || program->nparts < 1 || program->nparts > MOST_RANKS ||
        program->nchannels < 1 || program->nchannels > MOST_CHANNELS || program->scratch < 0 ||
        program->scratch > MOST_CHUNKS || program->in_blocks > 1 || program->out_blocks > 1 ||
        program->whole_window > 1 || program->needs_barrier > 1) {
        return refuse(check, "ranks, root or parts are out of range");
    }
    bool blocks = program->in_blocks || program->out_blocks;
    if (blocks && (int64_t)program->nranks * program->nparts > INT32_MAX)
        return refuse(check, "more chunks than numbers");
    size_t n = (size_t)program->nranks;
    bool inside = program->ntexts > 0 && program->ninsns > 0;
    inside = inside && program->ntexts <= UINT16_MAX &&
             part_ok(check, program->texts_at, program->ntexts, sizeof(struct tt_text)) &&
             part_ok(check, program->threads_at, program->nthreads, sizeof(struct tt_thread)) &&
             part_ok(check, program->insns_at, program->ninsns, sizeof(struct tt_insn)) &&
             part_ok(check, program->operands_at, program->noperands, sizeof(struct tt_operand)) &&
             part_ok(check, program->text_of_at, program->text_of_at ? n : 0, sizeof(uint16_t));
    for (int k = 0; k < TT_MAX_TABLES && inside; k++) {
        inside = part_ok(check, program->table_at[k], program->table_at[k] ? n : 0, 4);
    }
    return inside || refuse(check, "a part lies outside of the block");
}

/* An AlltoAllv has a count for each pair, of the parts that a block has. */
static bool pairs_ok(const struct check *check)
{
    const struct tt_program *program = check->program;
    bool counted = program->func == TT_FUNC_ALLTOALLV;
    size_t n = (size_t)program->nranks;
    if (counted != (program->counts_at != 0) || (counted && !program->in_blocks) ||
        (counted && !program->out_blocks))
        return refuse(check, "an AlltoAllv and counts of pairs go together");
    if (!part_ok(check, program->counts_at, counted ? n * n : 0, sizeof(uint32_t)))
        return refuse(check, "the counts of pairs lie outside of the block");
    const uint32_t *counts = (const void *)((const char *)program + program->counts_at);
    for (size_t k = 0; counted && k < n * n; k++) {
        if (counts[k] <= (uint32_t)program->nparts) continue;
        return refuse(check, "rank %zu has %u parts for rank %zu, of %d", k / n,
                      (unsigned int)counts[k], k % n, (int)program->nparts);
    }
    return true;
}

static bool ring_ok(const struct check *check)
{
    const int32_t *ring = tt_program_table(check->program, TT_TABLE_RING);
    const int32_t *position = tt_program_table(check->program, TT_TABLE_POSITION);
    if (!ring && !position) return true;
    if (!ring || !position) return refuse(check, "a ring and its positions go together");
    for (int rank = 0; rank < check->program->nranks; rank++) {
        bool on_ring = position[rank] >= 0 && position[rank] < check->program->nranks;
        if (!on_ring || ring[position[rank]] != rank)
            return refuse(check, "rank %d has no location in its ring", rank);
    }
    return true;
}

static bool tables_ok(const struct check *check)
{
    const struct tt_program *program = check->program;
    for (int k = TT_TABLE_PARENT; k < TT_MAX_TABLES; k++) {
        const int32_t *table = tt_program_table(program, (enum tt_table)k);
        for (int rank = 0; table && k < TT_TABLE_OTHER && rank < program->nranks; rank++) {
            if (table[rank] < program->nranks) continue;
            return refuse(check, "table %d: rank %d is linked to rank %d of %d", k, rank,
                          table[rank], program->nranks);
        }
    }
    for (int rank = 0; program->text_of_at && rank < program->nranks; rank++) {
        const uint16_t *text_of = (const void *)((const char *)program + program->text_of_at);
        if (text_of[rank] < program->ntexts) continue;
        return refuse(check, "rank %d runs text %d of %u", rank, text_of[rank],
                      (unsigned int)program->ntexts);
    }
    return ring_ok(check) && pairs_ok(check);
}

/* ---- operands ---- */

/* Whether a table may be used as peers: its numbers are ranks, or negative. */
static bool peer_table_ok(const struct tt_program *program, int number)
{
    if (number < TT_TABLE_PARENT || number >= TT_MAX_TABLES) return false;
    const int32_t *table = tt_program_table(program, (enum tt_table)number);
    for (int rank = 0; table && number >= TT_TABLE_OTHER && rank < program->nranks; rank++) {
        if (table[rank] >= program->nranks) return false;
    }
    return table;
}

/* Slots are another rank's, on a channel; scratch is the own. */
static bool space_ok(const struct tt_program *program, const struct tt_operand *operand)
{
    bool own = operand->peer == TT_PEER_SELF;
    switch ((enum tt_space)operand->space) {
    case TT_SPACE_SLOT: return !own && operand->channel < program->nchannels;
    case TT_SPACE_SCRATCH: return own && operand->channel == 0;
    case TT_SPACE_IN:
    case TT_SPACE_OUT: return operand->channel == 0;
    case TT_SPACE_NETWORK:
        return own && operand->channel < program->nchannels && program->table_at[TT_TABLE_NETWORK];
    case TT_SPACE_NONE:
    case TT_SPACE_COUNT_: break;
    }
    return false;
}

static bool operand_ok(const struct tt_program *program, const struct tt_operand *operand)
{
    if (!space_ok(program, operand)) return false;
    bool memory = operand->space == TT_SPACE_IN || operand->space == TT_SPACE_OUT;
    if (operand->peer == TT_PEER_MULTICAST && (!memory || operand->chunk_by == TT_CHUNK_PEER))
        return false;
    if (operand->peer >= TT_PEER_COUNT_ || operand->chunk_by >= TT_CHUNK_COUNT_) return false;
    bool ring = operand->peer == TT_PEER_RING || operand->chunk_by == TT_CHUNK_RING ||
                operand->chunk_by == TT_CHUNK_RING_RANK;
    if (ring && !program->table_at[TT_TABLE_RING]) return false;
    if (operand->peer == TT_PEER_TABLE && !peer_table_ok(program, operand->peer_number))
        return false;
    if (operand->peer == TT_PEER_RANK && !operand->peer_coef &&
        (operand->peer_number < 0 || operand->peer_number >= program->nranks))
        return false;
    if (operand->chunk_by == TT_CHUNK_ROUND && !program->table_at[TT_TABLE_ROUND]) return false;
    return operand->chunk_by != TT_CHUNK_TABLE ||
           (operand->chunk_table < TT_MAX_TABLES && program->table_at[operand->chunk_table]);
}

static bool counts_ok(const struct tt_program *program, const struct tt_insn *insn)
{
    uint32_t all = program->noperands;
    if (insn->nchunks < 1 || insn->nchunks > MOST_CHUNKS || insn->thread) return false;
    if (insn->first_src > all || insn->nsrcs > all - insn->first_src) return false;
    if (insn->first_dst > all || insn->ndsts > all - insn->first_dst) return false;
    if (insn->nsrcs + insn->ndsts == 0) return false;
    return insn->flags & TT_MOVE_REDUCE ? insn->nsrcs > 0 : insn->nsrcs <= 1;
}

static bool is_set(const struct tt_operand *operand)
{
    return operand->peer == TT_PEER_EACH || operand->peer == TT_PEER_OTHERS ||
           operand->peer == TT_PEER_MULTICAST;
}

/* Sets of one independent copy must be the same, and [peer] needs one. */
static bool sets_agree(const struct tt_insn *insn, const struct tt_operand *operands)
{
    int set = -1;
    bool by_peer = false;
    bool agree = true;
    for (int k = 0; k < insn->nsrcs + insn->ndsts; k++) {
        const struct tt_operand *operand =
            k < insn->nsrcs ? &operands[insn->first_src + (uint32_t)k]
                            : &operands[insn->first_dst + (uint32_t)(k - insn->nsrcs)];
        by_peer = by_peer || operand->chunk_by == TT_CHUNK_PEER;
        if (!is_set(operand)) continue;
        agree = agree && (set < 0 || set == operand->peer);
        set = operand->peer;
    }
    bool walked = set == TT_PEER_EACH || set == TT_PEER_OTHERS;
    return insn->flags & TT_MOVE_REDUCE || (agree && (walked || !by_peer));
}

/* ---- instructions ---- */

static bool move_ok(const struct tt_program *program, const struct tt_insn *insn)
{
    const struct tt_operand *operands = tt_program_operands(program);
    bool reduce = insn->flags & TT_MOVE_REDUCE;
    if (!counts_ok(program, insn)) return false;
    for (int k = 0; k < insn->nsrcs; k++) {
        const struct tt_operand *src = &operands[insn->first_src + (uint32_t)k];
        if (!operand_ok(program, src)) return false;
        if (!reduce && src->peer == TT_PEER_MULTICAST) return false; /* loads reduce */
    }
    for (int k = 0; k < insn->ndsts; k++) {
        const struct tt_operand *dst = &operands[insn->first_dst + (uint32_t)k];
        if (!operand_ok(program, dst)) return false;
        if (dst->space == TT_SPACE_SLOT && dst->peer == TT_PEER_EACH) return false;
        if (reduce && dst->chunk_by == TT_CHUNK_PEER) return false;
    }
    return sets_agree(insn, operands);
}

static bool insn_ok(const struct tt_program *program, const struct tt_insn *insn)
{
    bool move = insn->op == TT_OP_MOVE, await = insn->op == TT_OP_AWAIT;
    if ((insn->thread && !await) || (insn->nchunks && !move)) return false;
    switch ((enum tt_op)insn->op) {
    case TT_OP_MOVE: return insn->arg >= 0 && insn->arg < MOST_MOVED && move_ok(program, insn);
    case TT_OP_ENTER: return insn->arg < program->nranks;
    case TT_OP_LOOP: return insn->arg >= 0 && insn->arg <= MOST_TURNS;
    case TT_OP_LEAVE:
    case TT_OP_NEXT:
    case TT_OP_AWAIT: /* text_ok() has looked at it */
    case TT_OP_END: return true;
    case TT_OP_COUNT_: break;
    }
    return false;
}

/* Loops are closed and flat; END ends the thread and nothing else. */
static bool thread_ok(const struct tt_program *program, const struct tt_thread *thread)
{
    if (thread->end > program->ninsns || thread->end <= thread->first) return false;
    bool looping = false;
    for (uint32_t k = thread->first; k < thread->end; k++) {
        enum tt_op op = (enum tt_op)tt_program_insns(program)[k].op;
        if ((op == TT_OP_END) != (k == thread->end - 1)) return false;
        if (op == TT_OP_LOOP && looping) return false;
        if (op == TT_OP_NEXT && !looping) return false;
        if (op == TT_OP_LOOP || op == TT_OP_NEXT) looping = op == TT_OP_LOOP;
    }
    return !looping;
}

/* What a pass moves is bounded. */
static bool moves_ok(const struct tt_program *program, const struct tt_thread *thread)
{
    int64_t chunks = 0, turns = 1;
    for (uint32_t k = thread->first; k < thread->end && chunks <= MOST_MOVED; k++) {
        const struct tt_insn *insn = &tt_program_insns(program)[k];
        if (insn->op == TT_OP_LOOP) turns = insn->arg;
        if (insn->op == TT_OP_NEXT) turns = 1;
        if (insn->op == TT_OP_MOVE) chunks += turns * insn->nchunks;
    }
    return chunks <= MOST_MOVED;
}

/* Whose buffers are touched enters and leaves, once, as all others do: the barriers of all ranks
 * count the operations that use them. */
static bool barrier_ok(const struct tt_program *program, uint32_t first, uint32_t end)
{
    int nenters = 0, nleaves = 0;
    bool looping = false;
    for (uint32_t pc = first; pc < end; pc++) {
        enum tt_op op = (enum tt_op)tt_program_insns(program)[pc].op;
        if (op == TT_OP_LOOP || op == TT_OP_NEXT) looping = op == TT_OP_LOOP;
        if (looping && (op == TT_OP_ENTER || op == TT_OP_LEAVE)) return false;
        nenters += op == TT_OP_ENTER;
        nleaves += op == TT_OP_LEAVE;
    }
    bool uses = program->needs_barrier;
    return uses == (nenters > 0) && nleaves == (uses ? 1 : 0);
}

/* What is awaited is another thread's move outside of loops. */
static bool await_ok(const struct tt_program *program, const struct tt_text *text, uint32_t pc)
{
    const struct tt_insn *insns = tt_program_insns(program), *await = &insns[pc];
    if (await->thread >= text->end - text->first || await->arg < 0) return false;
    const struct tt_thread *other = &tt_program_threads(program)[text->first + await->thread];
    if ((pc >= other->first && pc < other->end) ||
        (uint32_t)await->arg >= other->end - other->first)
        return false;
    uint32_t target = other->first + (uint32_t)await->arg;
    bool looping = false;
    for (uint32_t k = other->first; k < target; k++) {
        enum tt_op op = (enum tt_op)insns[k].op;
        if (op == TT_OP_LOOP || op == TT_OP_NEXT) looping = op == TT_OP_LOOP;
    }
    return !looping && insns[target].op == TT_OP_MOVE;
}

/* A text's threads follow each other, in the block as well. */
static bool text_ok(const struct check *check, int number)
{
    const struct tt_program *program = check->program;
    const struct tt_text *text =
        (const struct tt_text *)(const void *)((const char *)program + program->texts_at) + number;
    const struct tt_thread *threads = tt_program_threads(program);
    if (text->end > program->nthreads || text->end <= text->first)
        return refuse(check, "text %d has no valid threads", number);
    for (uint32_t t = text->first; t < text->end; t++) {
        bool follows = t == text->first || threads[t].first == threads[t - 1].end;
        if (follows && thread_ok(program, &threads[t]) && moves_ok(program, &threads[t])) {
            continue;
        }
        return refuse(check, "text %d thread %u is not well-formed", number,
                      (unsigned int)(t - text->first));
    }
    for (uint32_t pc = threads[text->first].first; pc < threads[text->end - 1].end; pc++) {
        if (tt_program_insns(program)[pc].op != TT_OP_AWAIT || await_ok(program, text, pc))
            continue;
        return refuse(check, "text %d insn %u: awaits what is no other thread's move", number,
                      (unsigned int)pc);
    }
    if (!barrier_ok(program, threads[text->first].first, threads[text->end - 1].end)) {
        return refuse(check, "text %d does not enter, or leave once, as all ranks must", number);
    }
    return true;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): refuse() writes to `fault` */
bool tt_program_check(const struct tt_program *program, size_t bytes, char *fault,
                      size_t fault_bytes)
{
    const struct check check = {
        .program = program, .bytes = bytes, .fault = fault, .fault_bytes = fault_bytes};
    if (!head_ok(&check) || !tables_ok(&check)) return false;
    for (uint32_t k = 0; k < program->ntexts; k++) {
        if (!text_ok(&check, (int)k)) return false;
    }
    for (uint32_t k = 0; k < program->ninsns; k++) {
        const struct tt_insn *insn = &tt_program_insns(program)[k];
        if (insn_ok(program, insn)) continue;
        return refuse(&check, "insn %u: not a valid instruction", (unsigned int)k);
    }
    return true;
}

/* FNV-1a over 32-bit words, finished with a mixer; a block has no gaps and no pointers. */
uint64_t tt_program_hash(const struct tt_program *program)
{
    const uint32_t *words = (const void *)program;
    uint64_t hash = 0xcbf29ce484222325ull;
    for (uint32_t k = 0; k < program->bytes / 4; k++)
        hash = (hash ^ words[k]) * 0x100000001b3ull;
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}
