/* See coverage.h. */
#include "coverage.h"

#include "../check.h"

#include "base/mem.h"

enum {
    PEERS,                             /* enum tt_peer follow */
    CHUNKS = PEERS + TT_PEER_COUNT_,   /* enum tt_chunk follow */
    SPACES = CHUNKS + TT_CHUNK_COUNT_, /* enum tt_space follow */
    OPS = SPACES + TT_SPACE_COUNT_,    /* enum tt_op follow */
    OTHERS_MEMORY = OPS + TT_OP_COUNT_,
    SECOND_CHANNEL,
    STRIDE,
    PEER_MOVES_ON,
    CHUNK_MOVES_ON,
    PARTS_OF_BLOCKS,
    BLOCKS_NOT_RANKS,
    RANGE,
    REDUCE,
    PRE,
    POST,
    NO_WAIT,
    ENTER_ONE,
    AWAIT_IN_LOOP,
    THREADS,
    SHARED_TEXT,
    DRAIN,
    EMPTY_POST,
    FEATURES,
};

static const char *const names[FEATURES] = {
    [PEERS + TT_PEER_SELF] = "own rank",
    [PEERS + TT_PEER_RANK] = "peer by number",
    [PEERS + TT_PEER_EACH] = "each",
    [PEERS + TT_PEER_OTHERS] = "others",
    [PEERS + TT_PEER_RING] = "peer by ring",
    [PEERS + TT_PEER_SHIFT] = "peer mod n",
    [PEERS + TT_PEER_XOR] = "peer xor",
    [PEERS + TT_PEER_FLIP] = "peer xor 2^e",
    [PEERS + TT_PEER_UP] = "peer + 2^e",
    [PEERS + TT_PEER_DOWN] = "peer - 2^e",
    [PEERS + TT_PEER_TABLE] = "peer by table",
    [PEERS + TT_PEER_MULTICAST] = "multicast",
    [CHUNKS + TT_CHUNK_CONST] = "chunk by number",
    [CHUNKS + TT_CHUNK_ME] = "chunk from own rank",
    [CHUNKS + TT_CHUNK_PEER] = "chunk of peer",
    [CHUNKS + TT_CHUNK_RING] = "chunk by position",
    [CHUNKS + TT_CHUNK_RING_RANK] = "chunk by rank on the ring",
    [CHUNKS + TT_CHUNK_SHIFT] = "chunk mod n",
    [CHUNKS + TT_CHUNK_XOR] = "chunk xor",
    [CHUNKS + TT_CHUNK_GROUP] = "chunk of group",
    [CHUNKS + TT_CHUNK_SIBLING] = "chunk of group beside",
    [CHUNKS + TT_CHUNK_TABLE] = "chunk by table",
    [SPACES + TT_SPACE_IN] = "IN",
    [SPACES + TT_SPACE_OUT] = "OUT",
    [SPACES + TT_SPACE_SLOT] = "slots",
    [SPACES + TT_SPACE_SCRATCH] = "scratch",
    [OPS + TT_OP_ENTER] = "enter",
    [OPS + TT_OP_LEAVE] = "leave",
    [OPS + TT_OP_MOVE] = "move",
    [OPS + TT_OP_AWAIT] = "await",
    [OPS + TT_OP_LOOP] = "loop",
    [OTHERS_MEMORY] = "memory of others",
    [SECOND_CHANNEL] = "a second channel",
    [STRIDE] = "stride",
    [PEER_MOVES_ON] = "peer moves on in a loop",
    [CHUNK_MOVES_ON] = "chunk moves on in a loop",
    [PARTS_OF_BLOCKS] = "blocks of several parts",
    [BLOCKS_NOT_RANKS] = "parts other than ranks",
    [RANGE] = "several chunks",
    [REDUCE] = "reduce",
    [PRE] = "pre",
    [POST] = "post",
    [NO_WAIT] = "leave without waiting",
    [ENTER_ONE] = "enter for one rank",
    [AWAIT_IN_LOOP] = "await in a loop",
    [THREADS] = "threads",
    [SHARED_TEXT] = "a shared text",
    [DRAIN] = "drained slots",
    [EMPTY_POST] = "empty slots",
}; /* NULL: no feature, or none that the worlds of this test have (a network that reduces) */

static long counts[FEATURES];

static void note_operands(const struct tt_program *program, const struct tt_insn *insn, bool *used)
{
    const struct tt_operand *operands = tt_program_operands(program);
    for (uint32_t k = 0; k < (uint32_t)insn->nsrcs + insn->ndsts; k++) {
        const struct tt_operand *operand = k < insn->nsrcs
                                               ? &operands[insn->first_src + k]
                                               : &operands[insn->first_dst + k - insn->nsrcs];
        bool memory = operand->space == TT_SPACE_IN || operand->space == TT_SPACE_OUT;
        used[PEERS + operand->peer] = used[CHUNKS + operand->chunk_by] = true;
        used[SPACES + operand->space] = true;
        if (memory && operand->peer != TT_PEER_SELF) used[OTHERS_MEMORY] = true;
        if (operand->channel) used[SECOND_CHANNEL] = true;
        if (operand->stride) used[STRIDE] = true;
        if (operand->peer_coef) used[PEER_MOVES_ON] = true;
        if (operand->chunk_coef) used[CHUNK_MOVES_ON] = true;
    }
}

static void note_insn(const struct tt_program *program, const struct tt_insn *insn, bool *used)
{
    used[OPS + insn->op] = true;
    if (insn->op == TT_OP_LEAVE && insn->flags) used[NO_WAIT] = true;
    if (insn->op == TT_OP_ENTER && insn->arg >= 0) used[ENTER_ONE] = true;
    if (insn->op != TT_OP_MOVE) return;
    if (insn->nchunks > 1) used[RANGE] = true;
    if (insn->flags & TT_MOVE_REDUCE) used[REDUCE] = true;
    if (insn->flags & TT_MOVE_PRE) used[PRE] = true;
    if (insn->flags & TT_MOVE_POST) used[POST] = true;
    if (!insn->ndsts) used[DRAIN] = true;
    if (!insn->nsrcs) used[EMPTY_POST] = true;
    note_operands(program, insn, used);
}

void coverage_count(const struct tt_program *program)
{
    bool used[FEATURES] = {0};
    bool blocks = program->in_blocks || program->out_blocks, looping = false;
    used[PARTS_OF_BLOCKS] = blocks && program->nparts > 1;
    used[BLOCKS_NOT_RANKS] = !blocks && program->nparts > 1 && program->nparts != program->nranks;
    used[SHARED_TEXT] = (int)program->ntexts < program->nranks;
    for (int rank = 0; rank < program->nranks; rank++)
        used[THREADS] = used[THREADS] || tt_program_nthreads(program, rank) > 1;
    for (uint32_t pc = 0; pc < program->ninsns; pc++) {
        const struct tt_insn *insn = &tt_program_insns(program)[pc];
        if (insn->op == TT_OP_LOOP || insn->op == TT_OP_NEXT) looping = insn->op == TT_OP_LOOP;
        if (insn->op == TT_OP_AWAIT && looping) used[AWAIT_IN_LOOP] = true;
        note_insn(program, insn, used);
    }
    for (int k = 0; k < FEATURES; k++)
        counts[k] += used[k];
}

void coverage_print(void)
{
    for (int k = 0; k < FEATURES; k++) {
        if (names[k]) print_message("with %s: %ld\n", names[k], counts[k]);
    }
}

const char *coverage_missing(void)
{
    for (int k = 0; k < FEATURES; k++) {
        if (names[k] && !counts[k]) return names[k];
    }
    return NULL;
}
