/* What can be said of a file without following its steps: ranks and blocks are all there, numbers
 * fit the buffers, every connection has two ends with as many messages of the same lengths, every
 * dependency is a step that says when it is done. */
#include "msccl.h"

#include "base/mem.h"

#include <stdlib.h>

/* ---- ranks, blocks and chunks ---- */

static int by_rank_id(const void *a, const void *b)
{
    const struct msccl_rank *left = a, *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

static int by_block_id(const void *a, const void *b)
{
    const struct msccl_block *left = a, *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

/* Chunks that the collective has in that buffer. */
static int chunks_of(const struct msccl_file *file, enum msccl_buffer buffer)
{
    bool many_in = msccl_in_blocks(file->func), many_out = msccl_out_blocks(file->func);
    bool part = buffer == MSCCL_IN ? many_out && !many_in : many_in && !many_out;
    return part ? file->nchunks / file->nranks : file->nchunks;
}

static bool set_parts(struct msccl_file *file)
{
    enum tt_func func = file->func;
    bool blocks = msccl_in_blocks(func) || msccl_out_blocks(func);
    file->nparts = blocks ? file->nchunks / file->nranks : file->nchunks;
    if (!blocks || file->nchunks % file->nranks == 0) return true;
    return tt_msccl_refuse(file, file->line, "%s of %d ranks cannot be cut into %d chunks",
                           tt_func_name(func), file->nranks, file->nchunks);
}

/* A buffer that no step names may have no chunks; scratch has any number. */
static bool check_chunks(struct msccl_file *file, const struct msccl_rank *rank, int64_t *total)
{
    static const char *const names[] = {"i_chunks", "o_chunks"};
    for (int buffer = MSCCL_IN; buffer <= MSCCL_OUT; buffer++) {
        int want = chunks_of(file, (enum msccl_buffer)buffer), have = rank->chunks[buffer];
        *total += want;
        if (have == want || have == 0) continue;
        return tt_msccl_refuse(file, rank->line,
                               "gpu %d: %s is %d; %s with nchunksperloop %d has %d", rank->id,
                               names[buffer], have, tt_func_name(file->func), file->nchunks, want);
    }
    *total += rank->chunks[MSCCL_SCRATCH];
    if (*total <= MSCCL_TOTAL) return true;
    return tt_msccl_refuse(file, rank->line, "gpu %d: more than %d chunks in all buffers", rank->id,
                           (int)MSCCL_TOTAL);
}

static bool check_blocks(struct msccl_file *file, const struct msccl_rank *rank)
{
    uint32_t count = rank->end - rank->first;
    if (count == 0) return tt_msccl_refuse(file, rank->line, "gpu %d has no tb", rank->id);
    qsort(msccl_block(file, rank->first), count, sizeof(struct msccl_block), by_block_id);
    for (uint32_t k = 0; k < count; k++) {
        const struct msccl_block *block = msccl_block(file, rank->first + k);
        if (block->id == (int)k) continue;
        return tt_msccl_refuse(file, block->line,
                               "gpu %d: tb %d where tb %u is due: they count from 0", rank->id,
                               block->id, (unsigned int)k);
    }
    return true;
}

static bool check_ranks(struct msccl_file *file)
{
    int64_t total = 0;
    if ((int)file->ranks.count != file->nranks) {
        return tt_msccl_refuse(file, file->line, "ngpus is %d, and there are %zu gpu elements",
                               file->nranks, file->ranks.count);
    }
    qsort(file->ranks.items, file->ranks.count, sizeof(struct msccl_rank), by_rank_id);
    for (int r = 0; r < file->nranks; r++) {
        const struct msccl_rank *rank = msccl_rank(file, r);
        if (rank->id != r) {
            return tt_msccl_refuse(file, rank->line, "gpu %d is there twice, gpu %d is not",
                                   rank->id, r);
        }
        if (!check_chunks(file, rank, &total) || !check_blocks(file, rank)) return false;
    }
    return true;
}

/* ---- steps ---- */

static bool check_range(struct msccl_file *file, const struct msccl_block *block,
                        const struct msccl_step *step, enum msccl_buffer buffer, int first)
{
    static const char *const names[] = {"input", "output", "scratch"};
    int chunks = msccl_rank(file, block->rank)->chunks[buffer];
    if (first >= 0 && first < chunks && step->cnt <= chunks - first) return true;
    return tt_msccl_refuse(file, step->line,
                           "gpu %d tb %d: %s of chunks %d to %lld of the %s, which has %d",
                           block->rank, block->id, tt_msccl_kinds[step->type].name, first,
                           (long long)first + step->cnt - 1, names[buffer], chunks);
}

static bool check_step(struct msccl_file *file, const struct msccl_block *block,
                       const struct msccl_step *step)
{
    const struct msccl_kind *kind = &tt_msccl_kinds[step->type];
    const char *lacks = kind->sends && block->send < 0      ? "send"
                        : kind->receives && block->recv < 0 ? "receive"
                                                            : NULL;
    if (lacks) {
        return tt_msccl_refuse(file, step->line,
                               "gpu %d tb %d: %s in a block that names no peer to %s", block->rank,
                               block->id, kind->name, lacks);
    }
    bool nop = step->type == MSCCL_NOP;
    if (nop != (step->cnt == 0)) {
        return tt_msccl_refuse(file, step->line, "gpu %d tb %d: cnt %d of a %s", block->rank,
                               block->id, step->cnt, kind->name);
    }
    if (kind->reduces && !msccl_reduces(file->func)) {
        return tt_msccl_refuse(file, step->line, "gpu %d tb %d: %s, where %s reduces nothing",
                               block->rank, block->id, kind->name, tt_func_name(file->func));
    }
    if (kind->reads &&
        !check_range(file, block, step, (enum msccl_buffer)step->src_buffer, step->src))
        return false;
    return !kind->writes ||
           check_range(file, block, step, (enum msccl_buffer)step->dst_buffer, step->dst);
}

static bool check_dependency(struct msccl_file *file, const struct msccl_block *block,
                             const struct msccl_step *step)
{
    const struct msccl_rank *rank = msccl_rank(file, block->rank);
    int other = step->dep_block;
    if (other < 0 && step->dep_step < 0) return true;
    if (other < 0 || step->dep_step < 0 || other == block->id ||
        (uint32_t)other >= rank->end - rank->first) {
        return tt_msccl_refuse(file, step->line,
                               "gpu %d tb %d waits for tb %d, which is no other one", block->rank,
                               block->id, other);
    }
    const struct msccl_block *awaited = msccl_block(file, rank->first + (uint32_t)other);
    if ((uint32_t)step->dep_step >= awaited->end - awaited->first) {
        return tt_msccl_refuse(
            file, step->line, "gpu %d tb %d waits for step %d of tb %d, which has %u", block->rank,
            block->id, step->dep_step, other, (unsigned int)(awaited->end - awaited->first));
    }
    const struct msccl_step *target = msccl_step(file, awaited->first + (uint32_t)step->dep_step);
    if (target->has_dep && target->type != MSCCL_NOP) return true;
    return tt_msccl_refuse(
        file, step->line,
        "gpu %d tb %d waits for step %d of tb %d, which never says that it is done "
        "(line %d: %s)",
        block->rank, block->id, step->dep_step, other, target->line,
        target->type == MSCCL_NOP ? "a nop" : "hasdep is 0");
}

static void note_limits(struct msccl_file *file, const struct msccl_block *block, int most_cnt)
{
    if (block->end - block->first > MSCCL_OLD_STEPS) {
        tt_msccl_note(file, block->line, "gpu %d tb %d has %u steps; MSCCL's runtime takes %d",
                      block->rank, block->id, (unsigned int)(block->end - block->first),
                      (int)MSCCL_OLD_STEPS);
    }
    if (most_cnt > MSCCL_OLD_CNT) {
        tt_msccl_note(file, block->line,
                      "gpu %d tb %d moves %d chunks in a step; MSCCL's runtime %d", block->rank,
                      block->id, most_cnt, (int)MSCCL_OLD_CNT);
    }
}

static bool check_steps(struct msccl_file *file)
{
    int64_t moves = 0;
    for (uint32_t b = 0; b < file->blocks.count; b++) {
        const struct msccl_block *block = msccl_block(file, b);
        int most_cnt = 0;
        for (uint32_t s = block->first; s < block->end; s++) {
            struct msccl_step *step = msccl_step(file, s);
            if (!check_step(file, block, step) || !check_dependency(file, block, step))
                return false;
            step->first = (uint32_t)moves;
            moves += step->cnt;
            most_cnt = step->cnt > most_cnt ? step->cnt : most_cnt;
            if (moves <= MSCCL_TOTAL) continue;
            return tt_msccl_refuse(file, step->line, "all steps move more than %d chunks",
                                   (int)MSCCL_TOTAL);
        }
        if (block->end > block->first && msccl_step(file, block->end - 1)->type == MSCCL_NOP) {
            return tt_msccl_refuse(
                file, msccl_step(file, block->end - 1)->line,
                "gpu %d tb %d ends with a nop: nothing waits for what it waits for", block->rank,
                block->id);
        }
        if (!file->plan) note_limits(file, block, most_cnt);
    }
    file->nmoves = (uint32_t)moves;
    return true;
}

/* ---- connections ---- */

struct end { /* of a connection */
    int from, to, channel;
    uint32_t block;
};

static int by_connection(const void *a, const void *b)
{
    const struct end *left = a, *right = b;
    int by_from = (left->from > right->from) - (left->from < right->from);
    int by_to = (left->to > right->to) - (left->to < right->to);
    int by_channel = (left->channel > right->channel) - (left->channel < right->channel);
    return by_from ? by_from : by_to ? by_to : by_channel;
}

/* All ends of one direction, sorted; -1: two blocks of a rank have the same. */
static int collect_ends(struct msccl_file *file, bool sends, struct end *ends)
{
    int count = 0;
    for (uint32_t b = 0; b < file->blocks.count; b++) {
        const struct msccl_block *block = msccl_block(file, b);
        int peer = sends ? block->send : block->recv;
        if (peer < 0) continue;
        ends[count++] = (struct end){.from = sends ? block->rank : peer,
                                     .to = sends ? peer : block->rank,
                                     .channel = block->channel,
                                     .block = b};
        if (peer != block->rank) continue;
        (void)tt_msccl_refuse(file, block->line, "gpu %d tb %d names its own rank as peer",
                              block->rank, block->id);
        return -1;
    }
    qsort(ends, (size_t)count, sizeof(*ends), by_connection);
    for (int k = 1; k < count; k++) {
        if (by_connection(&ends[k - 1], &ends[k]) != 0) continue;
        const struct msccl_block *one = msccl_block(file, ends[k - 1].block);
        const struct msccl_block *other = msccl_block(file, ends[k].block);
        (void)tt_msccl_refuse(file, other->line,
                              "gpu %d: tb %d and tb %d both %s gpu %d on channel %d", one->rank,
                              one->id, other->id, sends ? "send to" : "receive from",
                              sends ? one->send : one->recv, one->channel);
        return -1;
    }
    return count;
}

/* The next step from `at` on that sends (receives). */
static uint32_t next_message(const struct msccl_file *file, const struct msccl_block *block,
                             uint32_t at, bool sends)
{
    for (; at < block->end; at++) {
        const struct msccl_kind *kind = &tt_msccl_kinds[msccl_step(file, at)->type];
        if (sends ? kind->sends : kind->receives) break;
    }
    return at;
}

/* The k-th message that is sent is the k-th that is received. */
static bool join_ends(struct msccl_file *file, const struct msccl_block *from,
                      const struct msccl_block *to)
{
    uint32_t out = next_message(file, from, from->first, true);
    uint32_t in = next_message(file, to, to->first, false);
    for (; out < from->end && in < to->end; out = next_message(file, from, out + 1, true),
                                            in = next_message(file, to, in + 1, false)) {
        const struct msccl_step *sent = msccl_step(file, out);
        struct msccl_step *received = msccl_step(file, in);
        received->partner = out;
        if (sent->cnt == received->cnt) continue;
        return tt_msccl_refuse(file, received->line,
                               "gpu %d tb %d receives %d chunks where gpu %d sends %d (line %d)",
                               to->rank, to->id, received->cnt, from->rank, sent->cnt, sent->line);
    }
    if (out < from->end) {
        return tt_msccl_refuse(file, msccl_step(file, out)->line,
                               "gpu %d tb %d sends what gpu %d never receives", from->rank,
                               from->id, to->rank);
    }
    if (in < to->end) {
        return tt_msccl_refuse(file, msccl_step(file, in)->line,
                               "gpu %d tb %d receives what gpu %d never sends", to->rank, to->id,
                               from->rank);
    }
    return true;
}

/* Both ends of all connections, in the same order. */
static bool match_ends(struct msccl_file *file, const struct end *out, int nout,
                       const struct end *in, int nin)
{
    for (int k = 0; k < nout || k < nin; k++) {
        int order = k >= nout ? 1 : k >= nin ? -1 : by_connection(&out[k], &in[k]);
        const struct end *lonely = order < 0 ? &out[k] : &in[k];
        if (order != 0) {
            const struct msccl_block *block = msccl_block(file, lonely->block);
            return tt_msccl_refuse(file, block->line,
                                   "gpu %d tb %d: no block of gpu %d %s it on channel %d",
                                   block->rank, block->id, order < 0 ? block->send : block->recv,
                                   order < 0 ? "receives from" : "sends to", block->channel);
        }
        if (!join_ends(file, msccl_block(file, out[k].block), msccl_block(file, in[k].block)))
            return false;
    }
    return true;
}

static void note_blocks(struct msccl_file *file, const struct end *ends, int count)
{
    int *blocks = tt_calloc((size_t)file->nranks * (size_t)file->nchannels, sizeof(*blocks));
    for (int k = 0; blocks && k < count; k++) {
        const struct msccl_block *block = msccl_block(file, ends[k].block);
        if (++blocks[block->rank * file->nchannels + block->channel] != MSCCL_OLD_BLOCKS + 1)
            continue;
        tt_msccl_note(file, block->line,
                      "gpu %d has more than %d blocks in a direction of channel %d, which MSCCL's "
                      "runtime does not take",
                      block->rank, (int)MSCCL_OLD_BLOCKS, block->channel);
    }
    free(blocks);
}

static bool check_connections(struct msccl_file *file)
{
    size_t most = file->blocks.count;
    struct end *ends = tt_calloc(2 * most, sizeof(*ends));
    if (!ends) return tt_msccl_no_memory(file);
    int nout = collect_ends(file, true, ends);
    int nin = nout < 0 ? -1 : collect_ends(file, false, ends + most);
    bool joined = nin >= 0 && match_ends(file, ends, nout, ends + most, nin);
    if (joined && !file->plan) note_blocks(file, ends, nout);
    free(ends);
    return joined;
}

bool tt_msccl_check(struct msccl_file *file)
{
    return set_parts(file) && check_ranks(file) && check_steps(file) && check_connections(file);
}
