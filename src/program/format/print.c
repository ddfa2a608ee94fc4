/* Readable listing of a program: one line per instruction, operands as SPACE@peer[chunk].
 * Golden files hold this text, so its form is a contract with people who compare listings. */
#include "program/program.h"

#include <stdarg.h>
#include <stdio.h>

struct page { /* snprintf that goes on: length counts what would have been written */
    char *text;
    size_t text_bytes;
    size_t length;
};

static void put(struct page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct page *page, const char *fmt, ...)
{
    bool room = page->length < page->text_bytes;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(room ? page->text + page->length : NULL,
                      room ? page->text_bytes - page->length : 0, fmt, args);
    va_end(args);
    if (n > 0) page->length += (size_t)n;
}

/* "+1-i": what is added to where counting starts. */
static void put_sum(struct page *page, int number, int coef)
{
    if (number) put(page, "%+d", number);
    if (coef == 1 || coef == -1) {
        put(page, "%ci", coef > 0 ? '+' : '-');
    } else if (coef) {
        put(page, "%+d*i", coef);
    }
}

/* "3+i": the number itself. */
static void put_number(struct page *page, int number, int coef)
{
    put(page, "%d", number);
    put_sum(page, 0, coef);
}

static void put_table(struct page *page, int table)
{
    static const char *const names[] = {"ring",   "position", "parent", "child0",
                                        "child1", "child2",   "network"};
    if (table >= 0 && table < TT_TABLE_OTHER) {
        put(page, "%s", names[table]);
    } else {
        put(page, "table%d", table);
    }
}

static void put_chunk(struct page *page, const struct tt_operand *operand)
{
    static const char *const starts[TT_CHUNK_COUNT_] = {[TT_CHUNK_ME] = "me",
                                                        [TT_CHUNK_RING] = "pos",
                                                        [TT_CHUNK_RING_RANK] = "ring",
                                                        [TT_CHUNK_SHIFT] = "me",
                                                        [TT_CHUNK_XOR] = "me^",
                                                        [TT_CHUNK_GROUP] = "group 2^",
                                                        [TT_CHUNK_SIBLING] = "sibling 2^"};
    int number = operand->chunk, coef = operand->chunk_coef;
    put(page, operand->stride ? "[(" : "[");
    switch ((enum tt_chunk)operand->chunk_by) {
    case TT_CHUNK_CONST: put_number(page, number, coef); break;
    case TT_CHUNK_PEER: put(page, "peer"); break;
    case TT_CHUNK_XOR:
    case TT_CHUNK_GROUP:
    case TT_CHUNK_SIBLING:
        put(page, "%s", starts[operand->chunk_by]);
        put_number(page, number, coef);
        break;
    case TT_CHUNK_ME:
    case TT_CHUNK_RING:
    case TT_CHUNK_RING_RANK:
    case TT_CHUNK_SHIFT:
        put(page, "%s", starts[operand->chunk_by]);
        put_sum(page, number, coef);
        if (operand->chunk_by == TT_CHUNK_SHIFT) put(page, " mod n");
        break;
    case TT_CHUNK_TABLE:
        put_table(page, operand->chunk_table);
        put_sum(page, number, coef);
        break;
    case TT_CHUNK_ROUND:
        put(page, "start");
        put_sum(page, number, coef);
        put(page, " mod parts");
        break;
    case TT_CHUNK_COUNT_: put(page, "?"); break;
    }
    if (operand->stride) put(page, ")*%d%+d", operand->stride, (int)operand->offset);
    put(page, "]");
}

static void put_peer(struct page *page, const struct tt_operand *operand)
{
    static const char *const starts[TT_PEER_COUNT_] = {
        [TT_PEER_RING] = "@ring",  [TT_PEER_SHIFT] = "@me", [TT_PEER_XOR] = "@me^",
        [TT_PEER_FLIP] = "@me^2^", [TT_PEER_UP] = "@me+2^", [TT_PEER_DOWN] = "@me-2^"};
    int number = operand->peer_number, coef = operand->peer_coef;
    switch ((enum tt_peer)operand->peer) {
    case TT_PEER_SELF: break;
    case TT_PEER_RANK:
        put(page, "@");
        put_number(page, number, coef);
        break;
    case TT_PEER_EACH: put(page, "@each"); break;
    case TT_PEER_OTHERS: put(page, "@others"); break;
    case TT_PEER_MULTICAST: put(page, "@multicast"); break;
    case TT_PEER_RING:
    case TT_PEER_SHIFT:
        put(page, "%s", starts[operand->peer]);
        put_sum(page, number, coef);
        break;
    case TT_PEER_XOR:
    case TT_PEER_FLIP:
    case TT_PEER_UP:
    case TT_PEER_DOWN:
        put(page, "%s", starts[operand->peer]);
        put_number(page, number, coef);
        break;
    case TT_PEER_TABLE:
        put(page, "@");
        put_table(page, number);
        break;
    case TT_PEER_COUNT_: put(page, "@?"); break;
    }
}

static void put_operand(struct page *page, const struct tt_operand *operand)
{
    static const char *const spaces[TT_SPACE_COUNT_] = {"NONE", "IN",      "OUT",
                                                        "SLOT", "SCRATCH", "NETWORK"};
    put(page, " %s", operand->space < TT_SPACE_COUNT_ ? spaces[operand->space] : "?");
    if (operand->channel) put(page, ".%d", operand->channel);
    put_peer(page, operand);
    put_chunk(page, operand);
}

static void put_move(struct page *page, const struct tt_operand *operands,
                     const struct tt_insn *insn)
{
    put(page, "%s", insn->flags & TT_MOVE_REDUCE ? "reduce" : "move");
    if (insn->nchunks > 1) put(page, " %d chunks", (int)insn->nchunks);
    for (int k = 0; k < insn->nsrcs; k++)
        put_operand(page, &operands[insn->first_src + (uint32_t)k]);
    put(page, " ->");
    for (int k = 0; k < insn->ndsts; k++)
        put_operand(page, &operands[insn->first_dst + (uint32_t)k]);
    if (insn->arg) put(page, "  as long as [%d]", (int)insn->arg);
    if (insn->flags & TT_MOVE_PRE) put(page, "  pre");
    if (insn->flags & TT_MOVE_POST) put(page, "  post");
}

static void put_insn(struct page *page, const struct tt_operand *operands,
                     const struct tt_insn *insn)
{
    switch ((enum tt_op)insn->op) {
    case TT_OP_END: put(page, "end"); break;
    case TT_OP_ENTER:
        if (insn->arg < 0) {
            put(page, "enter, await all");
        } else {
            put(page, "enter, await %d", (int)insn->arg);
        }
        break;
    case TT_OP_LEAVE:
        put(page, "leave%s", insn->flags & TT_MOVE_NO_WAIT ? "" : ", await all");
        break;
    case TT_OP_AWAIT: put(page, "await thread %d insn %d", insn->thread, (int)insn->arg); break;
    case TT_OP_MOVE: put_move(page, operands, insn); break;
    case TT_OP_LOOP: put(page, "loop i = 0 .. %d", (int)insn->arg - 1); break;
    case TT_OP_NEXT: put(page, "next"); break;
    case TT_OP_COUNT_:
    default: put(page, "unknown operation %d", insn->op); break;
    }
    put(page, "\n");
}

static void put_thread(struct page *page, const struct tt_program *program,
                       const struct tt_thread *thread)
{
    int depth = 0;
    for (uint32_t i = thread->first; i < thread->end; i++) {
        const struct tt_insn *insn = &tt_program_insns(program)[i];
        if (insn->op == TT_OP_NEXT && depth > 0) depth--;
        put(page, "%4u  %*s", (unsigned int)i, 2 * depth, "");
        put_insn(page, tt_program_operands(program), insn);
        if (insn->op == TT_OP_LOOP) depth++;
    }
}

/* "0 2..5 9": the ranks that run that text. */
static void put_ranks(struct page *page, const struct tt_program *program,
                      const struct tt_text *text)
{
    for (int rank = 0; rank < program->nranks; rank++) {
        int last = rank;
        if (tt_program_text(program, rank) != text) continue;
        while (last + 1 < program->nranks && tt_program_text(program, last + 1) == text)
            last++;
        put(page, " %d", rank);
        if (last > rank) put(page, "..%d", last);
        rank = last;
    }
}

static void put_tables(struct page *page, const struct tt_program *program)
{
    enum { SHOWN = 16 };
    for (int k = 0; k < TT_MAX_TABLES; k++) {
        const int32_t *table = tt_program_table(program, (enum tt_table)k);
        if (!table || k == TT_TABLE_POSITION) continue;
        put_table(page, k);
        for (int rank = 0; rank < program->nranks && rank < SHOWN; rank++)
            put(page, " %d", (int)table[rank]);
        put(page, "%s\n", program->nranks > SHOWN ? " ..." : "");
    }
}

/* What each rank has for all ranks, in parts. */
static void put_counts(struct page *page, const struct tt_program *program)
{
    enum { SHOWN = 16 };
    for (int from = 0; program->counts_at && from < program->nranks && from < SHOWN; from++) {
        put(page, "counts of %d:", from);
        for (int to = 0; to < program->nranks && to < SHOWN; to++)
            put(page, " %d", tt_program_pair(program, from, to));
        put(page, "%s\n", program->nranks > SHOWN ? " ..." : "");
    }
}

static void put_head(struct page *page, const struct tt_program *program)
{
    put(page, "%s %s %s of %d ranks", tt_func_name((enum tt_func)program->func),
        tt_algo_name((enum tt_algo)program->algo), tt_proto_name((enum tt_proto)program->proto),
        program->nranks);
    if (program->root >= 0) put(page, " root %d", program->root);
    put(page, ", blocks in %d out %d", program->in_blocks ? program->nranks : 1,
        program->out_blocks ? program->nranks : 1);
    if (program->nparts > 1) {
        put(page, ", split into %d chunks%s", program->nparts,
            program->whole_window ? ", one window" : " a window");
    }
    if (program->nchannels > 1) put(page, ", %d channels", (int)program->nchannels);
    if (program->scratch) put(page, ", scratch of %d chunks", (int)program->scratch);
    put(page, "%s\n", program->needs_barrier ? ", direct" : "");
}

int tt_program_print(const struct tt_program *program, char *text, size_t text_bytes)
{
    struct page page = {text, text_bytes, 0};
    const struct tt_text *texts = (const void *)((const char *)program + program->texts_at);
    if (text_bytes) text[0] = '\0';
    put_head(&page, program);
    put_tables(&page, program);
    put_counts(&page, program);
    for (uint32_t k = 0; k < program->ntexts; k++) {
        put(&page, "ranks");
        put_ranks(&page, program, &texts[k]);
        put(&page, "\n");
        for (uint32_t t = texts[k].first; t < texts[k].end; t++) {
            put(&page, "thread %u\n", (unsigned int)(t - texts[k].first));
            put_thread(&page, program, &tt_program_threads(program)[t]);
        }
    }
    return (int)page.length;
}
