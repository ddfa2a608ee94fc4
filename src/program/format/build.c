/* See build.h. Lists grow by doubling; the block is laid out once, at the end. */
#include "build.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 30) /* offsets are 32 bits */

static void mistake(struct tt_builder *builder, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void mistake(struct tt_builder *builder, const char *fmt, ...)
{
    if (builder->rc) return;
    builder->rc = ncclInvalidArgument;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(builder->fault, sizeof(builder->fault), fmt, args);
    va_end(args);
}

/* Room for one more item, zeroed, at the list's end; NULL: something went wrong before or now. */
static void *append(struct tt_builder *builder, struct tt_build_list *list, size_t bytes)
{
    if (builder->rc) return NULL;
    if (list->bytes + bytes > list->capacity_bytes) {
        size_t want = tt_max_size(2 * list->capacity_bytes, list->bytes + tt_max_size(bytes, 512));
        char *items = want > MOST_BYTES ? NULL : realloc(list->items, want);
        if (!items) {
            builder->rc = ncclSystemError;
            return NULL;
        }
        list->items = items;
        list->capacity_bytes = want;
    }
    void *item = list->items + list->bytes;
    memset(item, 0, bytes);
    list->bytes += bytes;
    return item;
}

static uint32_t length_of(const struct tt_build_list *list, size_t item_bytes)
{
    return (uint32_t)(list->bytes / item_bytes);
}

void tt_build_begin(struct tt_builder *builder, int nranks)
{
    *builder = (struct tt_builder){
        .head = {
            .magic = TT_PROGRAM_MAGIC, .nranks = nranks, .root = -1, .nparts = 1, .nchannels = 1}};
}

int tt_build_text(struct tt_builder *builder)
{
    int number = (int)length_of(&builder->texts, sizeof(struct tt_text));
    struct tt_text *text = append(builder, &builder->texts, sizeof(*text));
    if (text) text->first = text->end = length_of(&builder->threads, sizeof(struct tt_thread));
    return number;
}

void tt_build_assign(struct tt_builder *builder, int rank, int text)
{
    size_t n = (size_t)builder->head.nranks;
    if (rank < 0 || rank >= builder->head.nranks || text < 0 || text > UINT16_MAX) {
        mistake(builder, "text %d is given to rank %d of %zu", text, rank, n);
    } else if (builder->text_of.bytes || append(builder, &builder->text_of, n * sizeof(uint16_t))) {
        ((uint16_t *)(void *)builder->text_of.items)[rank] = (uint16_t)text;
    }
}

void tt_build_table(struct tt_builder *builder, enum tt_table table, const int32_t *values)
{
    size_t bytes = (size_t)builder->head.nranks * sizeof(*values);
    if ((unsigned int)table >= TT_MAX_TABLES || builder->tables[table].bytes) {
        mistake(builder, "table %d is out of range, or there already", (int)table);
        return;
    }
    void *copy = append(builder, &builder->tables[table], bytes);
    if (copy) memcpy(copy, values, bytes);
}

void tt_build_counts(struct tt_builder *builder, const int *counts)
{
    size_t n = (size_t)builder->head.nranks;
    uint32_t *copy = append(builder, &builder->counts, n * n * sizeof(*copy));
    for (size_t k = 0; copy && k < n * n; k++)
        copy[k] = (uint32_t)counts[k];
}

void tt_build_thread(struct tt_builder *builder)
{
    if (!builder->texts.bytes) tt_build_text(builder);
    uint32_t at = length_of(&builder->insns, sizeof(struct tt_insn));
    struct tt_thread *thread = append(builder, &builder->threads, sizeof(*thread));
    if (!thread) return;
    thread->first = thread->end = at;
    struct tt_text *texts = (void *)builder->texts.items;
    texts[length_of(&builder->texts, sizeof(*texts)) - 1].end++;
}

void tt_build_insn(struct tt_builder *builder, enum tt_op op, uint8_t flags, int arg)
{
    if (!builder->threads.bytes) mistake(builder, "an instruction stands before any thread");
    uint32_t operand = length_of(&builder->operands, sizeof(struct tt_operand));
    struct tt_insn *insn = append(builder, &builder->insns, sizeof(*insn));
    if (!insn) return;
    *insn = (struct tt_insn){
        .op = (uint8_t)op, .flags = flags, .arg = arg, .first_src = operand, .first_dst = operand};
    insn->nchunks = op == TT_OP_MOVE ? 1 : 0;
    struct tt_thread *threads = (void *)builder->threads.items;
    threads[length_of(&builder->threads, sizeof(*threads)) - 1].end++;
}

void tt_build_enter(struct tt_builder *builder, int rank)
{
    builder->head.needs_barrier = true;
    tt_build_insn(builder, TT_OP_ENTER, 0, rank);
}

void tt_build_leave(struct tt_builder *builder, uint8_t flags)
{
    tt_build_insn(builder, TT_OP_LEAVE, flags, -1);
}

void tt_build_loop(struct tt_builder *builder, int times)
{
    tt_build_insn(builder, TT_OP_LOOP, 0, times > 0 ? times : 0);
}

void tt_build_next(struct tt_builder *builder)
{
    tt_build_insn(builder, TT_OP_NEXT, 0, 0);
}

void tt_build_stop(struct tt_builder *builder)
{
    tt_build_insn(builder, TT_OP_END, 0, 0);
}

static struct tt_insn *last_insn(struct tt_builder *builder)
{
    if (builder->rc || !builder->insns.bytes) return NULL;
    struct tt_insn *insns = (void *)builder->insns.items;
    return &insns[length_of(&builder->insns, sizeof(*insns)) - 1];
}

void tt_build_await(struct tt_builder *builder, int thread, int insn)
{
    if (thread < 0 || thread > UINT16_MAX) {
        mistake(builder, "thread %d is awaited", thread);
        return;
    }
    tt_build_insn(builder, TT_OP_AWAIT, 0, insn);
    struct tt_insn *await = last_insn(builder);
    if (await) await->thread = (uint16_t)thread;
}

void tt_build_move(struct tt_builder *builder, uint8_t flags)
{
    tt_build_insn(builder, TT_OP_MOVE, flags, 0);
}

/* The move that operands are added to; NULL: none. */
static struct tt_insn *last_move(struct tt_builder *builder)
{
    struct tt_insn *insn = last_insn(builder);
    return insn && insn->op == TT_OP_MOVE ? insn : NULL;
}

void tt_build_like(struct tt_builder *builder, int chunk)
{
    struct tt_insn *insn = last_move(builder);
    if (insn) {
        insn->arg = chunk;
    } else {
        mistake(builder, "a length without a move");
    }
}

void tt_build_range(struct tt_builder *builder, int nchunks)
{
    struct tt_insn *insn = last_move(builder);
    if (insn) {
        insn->nchunks = nchunks;
    } else {
        mistake(builder, "a number of chunks without a move");
    }
}

static void add_operand(struct tt_builder *builder, struct tt_operand operand)
{
    struct tt_operand *added = append(builder, &builder->operands, sizeof(*added));
    if (added) *added = operand;
}

void tt_build_src(struct tt_builder *builder, struct tt_operand operand)
{
    struct tt_insn *insn = last_move(builder);
    if (!insn || insn->ndsts || insn->nsrcs == UINT16_MAX) {
        mistake(builder, "a source without a move, after its destinations, or too many");
        return;
    }
    insn->nsrcs++;
    insn->first_dst++;
    add_operand(builder, operand);
}

void tt_build_dst(struct tt_builder *builder, struct tt_operand operand)
{
    struct tt_insn *insn = last_move(builder);
    if (!insn || insn->ndsts == UINT16_MAX) {
        mistake(builder, "a destination without a move, or too many");
        return;
    }
    insn->ndsts++;
    add_operand(builder, operand);
}

void tt_build_copy(struct tt_builder *builder, struct tt_operand src, struct tt_operand dst)
{
    tt_build_move(builder, 0);
    tt_build_src(builder, src);
    tt_build_dst(builder, dst);
}

/* ---- the block ---- */

/* Where the list comes to lie, and with a block copy it there; 0: it is empty. */
static uint32_t add_list(struct tt_program *block, size_t *bytes, const struct tt_build_list *list)
{
    size_t at = *bytes;
    if (!list->bytes) return 0;
    if (block) memcpy((char *)block + at, list->items, list->bytes);
    *bytes = tt_round_up(at + list->bytes, 4);
    return (uint32_t)at;
}

/* Fill the head, and copy the parts when there is a block; how many bytes it takes. */
static size_t lay_out(struct tt_builder *builder, struct tt_program *block)
{
    struct tt_program *head = &builder->head;
    size_t bytes = sizeof(*head);
    head->texts_at = add_list(block, &bytes, &builder->texts);
    head->text_of_at = add_list(block, &bytes, &builder->text_of);
    head->threads_at = add_list(block, &bytes, &builder->threads);
    head->insns_at = add_list(block, &bytes, &builder->insns);
    head->operands_at = add_list(block, &bytes, &builder->operands);
    for (int k = 0; k < TT_MAX_TABLES; k++)
        head->table_at[k] = add_list(block, &bytes, &builder->tables[k]);
    head->counts_at = add_list(block, &bytes, &builder->counts);
    head->ntexts = length_of(&builder->texts, sizeof(struct tt_text));
    head->nthreads = length_of(&builder->threads, sizeof(struct tt_thread));
    head->ninsns = length_of(&builder->insns, sizeof(struct tt_insn));
    head->noperands = length_of(&builder->operands, sizeof(struct tt_operand));
    head->bytes = (uint32_t)bytes;
    if (block) *block = *head;
    return bytes;
}

static void free_lists(struct tt_builder *builder)
{
    free(builder->texts.items);
    free(builder->threads.items);
    free(builder->insns.items);
    free(builder->operands.items);
    free(builder->text_of.items);
    free(builder->counts.items);
    for (int k = 0; k < TT_MAX_TABLES; k++)
        free(builder->tables[k].items);
}

ncclResult_t tt_build_end(struct tt_builder *builder, struct tt_program **program_out)
{
    struct tt_program *block = NULL;
    size_t bytes = builder->rc ? 0 : lay_out(builder, NULL);
    if (!builder->rc && bytes <= MOST_BYTES) block = tt_calloc(1, bytes);
    if (!builder->rc && !block) builder->rc = ncclSystemError;
    if (block) {
        lay_out(builder, block);
        if (!tt_program_check(block, bytes, builder->fault, sizeof(builder->fault)))
            builder->rc = ncclInvalidArgument;
    }
    free_lists(builder);
    if (!builder->rc) {
        *program_out = block;
        return ncclSuccess;
    }
    free(block);
    return tt_fail(builder->rc, "program of %d ranks: %s", builder->head.nranks,
                   builder->fault[0] ? builder->fault : "out of memory");
}
