/* Readable listing of a program: one line per instruction, operands as SPACE@peer[chunk].
 * Golden files hold this text, so its form is a contract with people who compare listings. */
#include "program.h"

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

static void put_chunk(struct page *page, const struct tt_operand *operand)
{
    switch ((enum tt_chunk)operand->chunk_by) {
    case TT_CHUNK_CONST: put(page, "[%d]", (int)operand->chunk); return;
    case TT_CHUNK_ME: put(page, "[me]"); return;
    case TT_CHUNK_PEER: put(page, "[peer]"); return;
    case TT_CHUNK_RING:
    case TT_CHUNK_RING_RANK: break;
    }
    put(page, "[%s", operand->chunk_by == TT_CHUNK_RING ? "pos" : "ring");
    if (operand->chunk) put(page, "%+d", (int)operand->chunk);
    if (operand->coef == 1 || operand->coef == -1) {
        put(page, "%ci", operand->coef > 0 ? '+' : '-');
    } else if (operand->coef) {
        put(page, "%+d*i", operand->coef);
    }
    put(page, "]");
}

static void put_operand(struct page *page, const struct tt_operand *operand)
{
    static const char *const spaces[] = {"NONE", "IN", "OUT", "SLOT"};
    put(page, " %s", operand->space < 4 ? spaces[operand->space] : "?");
    switch ((enum tt_peer)operand->peer) {
    case TT_PEER_SELF: break;
    case TT_PEER_RANK: put(page, "@%d", (int)operand->peer_rank); break;
    case TT_PEER_EACH: put(page, "@each"); break;
    case TT_PEER_OTHERS: put(page, "@others"); break;
    }
    put_chunk(page, operand);
}

static void put_move(struct page *page, const struct tt_insn *insn)
{
    put(page, "%s", insn->flags & TT_MOVE_FOLD ? "fold" : "move");
    for (int k = 0; k < insn->nsrcs; k++)
        put_operand(page, &insn->src[k]);
    put(page, " ->");
    for (int k = 0; k < insn->ndsts; k++)
        put_operand(page, &insn->dst[k]);
    if (insn->flags & TT_MOVE_PRE) put(page, "  pre");
    if (insn->flags & TT_MOVE_POST) put(page, "  post");
}

static void put_insn(struct page *page, const struct tt_insn *insn)
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
        put(page, "leave%s", insn->flags & TT_MOVE_ONE_WAY ? "" : ", await all");
        break;
    case TT_OP_MOVE: put_move(page, insn); break;
    case TT_OP_LOOP: put(page, "loop i = 0 .. %d", (int)insn->arg - 1); break;
    case TT_OP_NEXT: put(page, "next"); break;
    default: put(page, "unknown operation %d", insn->op); break;
    }
    put(page, "\n");
}

static void put_head(struct page *page, const struct tt_program *program)
{
    put(page, "%s %s %s rank %d of %d", tt_func_name(program->func), tt_algo_name(program->algo),
        tt_proto_name(program->proto), program->rank, program->nranks);
    if (program->root >= 0) put(page, " root %d", program->root);
    if (program->geometry == TT_GEOMETRY_SPLIT) {
        put(page, ", split into %d chunks%s", program->nchunks,
            program->whole_window ? ", one window" : " a window");
    } else {
        put(page, ", blocks in %d out %d", program->in_blocks ? program->nranks : 1,
            program->out_blocks ? program->nranks : 1);
    }
    put(page, "%s\n", program->needs_board ? ", direct" : "");
}

int tt_program_print(const struct tt_program *program, char *text, size_t text_bytes)
{
    struct page page = {text, text_bytes, 0};
    if (text_bytes) text[0] = '\0';
    put_head(&page, program);
    for (int t = 0; t < program->nthreads; t++) {
        put(&page, "thread %d\n", t);
        int depth = 0;
        for (int i = program->thread_first[t]; i < program->thread_first[t + 1]; i++) {
            const struct tt_insn *insn = &program->insns[i];
            if (insn->op == TT_OP_NEXT && depth > 0) depth--;
            put(&page, "%4d  %*s", i, 2 * depth, "");
            put_insn(&page, insn);
            if (insn->op == TT_OP_LOOP) depth++;
        }
    }
    return (int)page.length;
}
