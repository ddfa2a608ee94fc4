/* Reductions and copies of any size: cuts them into tiles that stay in the first-level cache.
 *
 * A tile of the result is accumulated source by source (a reduction from left to right in listed
 * order, whatever the tile), then stored to every destination. So few streams are open at a time,
 * each source is read once, and destinations may be sources: a tile is stored after all its sources
 * were read. When nothing forbids it the first destination itself is the accumulator. */
#include "exec/host/reduce.h"

#include "base/mem.h"
#include "exec/exec.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define TILE_BYTES 4096 /* of accumulators; two of them and a tile per stream fit 32 KiB */

struct tile {
    _Alignas(64) char acc[TILE_BYTES];
    _Alignas(64) char aux[TILE_BYTES]; /* a source scaled or widened */
};

static ncclDataType_t type_of(const struct tt_reduce_job *job)
{
    return job->reduction->type;
}

static bool scaled(const struct tt_reduce_job *job, int k)
{
    return job->reduction->pre_mul && job->pre_mask && (job->pre_mask[k / 64] >> (k % 64) & 1);
}

const void *tt_reduce_scalar(const struct tt_reduction *reduction)
{
    return reduction->scalar_on_device ? reduction->scalar_ptr
                                       : (const void *)&reduction->scalar_bits;
}

static const void *scalar_for(const struct tt_reduce_job *job, int k)
{
    return job->scalars ? job->scalars[k] : tt_reduce_scalar(job->reduction);
}

static const char *source_at(const struct tt_reduce_job *job, int k, size_t byte)
{
    return (const char *)job->srcs[k] + byte;
}

static void store(const struct tt_reduce_job *job, size_t byte, const void *tile, size_t bytes)
{
    if (job->stream) {
        tt_stream_tile(&(struct tt_stream_tile){.from = tile,
                                                .at = byte,
                                                .bytes = bytes,
                                                .dsts = job->dsts,
                                                .srcs = job->srcs,
                                                .ndsts = job->ndsts,
                                                .nsrcs = job->nsrcs});
        return;
    }
    for (int k = 0; k < job->ndsts; k++) {
        char *dst = (char *)job->dsts[k] + byte;
        if (dst != tile) memcpy(dst, tile, bytes);
    }
}

/* ---- types that are their own accumulators ---- */

static const void *native_source(const struct tt_reduce_job *job, const struct tt_reduce_type *type,
                                 int k, size_t at, size_t count, struct tile *tile)
{
    const char *src = source_at(job, k, at * type->elem_bytes);
    if (!scaled(job, k)) return src;
    type->scale(tile->aux, src, scalar_for(job, k), count);
    return tile->aux;
}

/* The first destination can take the sums when it is no source that is read later. */
static bool can_accumulate(const struct tt_reduce_job *job)
{
    if (job->stream || job->ndsts == 0) return false;
    for (int k = 2; k < job->nsrcs; k++) {
        if (job->srcs[k] == job->dsts[0]) return false;
    }
    return true;
}

static void native_tile(const struct tt_reduce_job *job, const struct tt_reduce_type *type,
                        size_t at, size_t count, struct tile *tile)
{
    tt_reduce_pair_fn pair = type->pair[job->reduction->op];
    size_t byte = at * type->elem_bytes, bytes = count * type->elem_bytes;
    void *acc = can_accumulate(job) ? (char *)job->dsts[0] + byte : tile->acc;
    const void *first = source_at(job, 0, byte);
    if (scaled(job, 0)) {
        type->scale(tile->acc, first, scalar_for(job, 0), count);
        first = tile->acc;
    }
    if (job->nsrcs == 1 && first != acc) memcpy(acc, first, bytes);
    for (int k = 1; k < job->nsrcs; k++) {
        pair(acc, k == 1 ? first : acc, native_source(job, type, k, at, count, tile), count);
    }
    if (job->post && job->reduction->post_div > 1)
        type->divide(acc, job->reduction->post_div, count);
    store(job, byte, acc, bytes);
}

/* ---- narrow floats: fp32 accumulators ---- */

static void scale_narrow(const struct tt_reduce_type *type, const void *scalar, float *wide,
                         size_t count)
{
    uint16_t rounded[TILE_BYTES / sizeof(float)];
    float by;
    type->widen(&by, scalar, 1);
    for (size_t i = 0; i < count; i++)
        wide[i] *= by;
    type->narrow(rounded, wide, count); /* the product is a number of the type */
    type->widen(wide, rounded, count);
}

static void narrow_tile(const struct tt_reduce_job *job, const struct tt_reduce_type *type,
                        size_t at, size_t count, struct tile *tile)
{
    float *acc = (float *)(void *)tile->acc, *aux = (float *)(void *)tile->aux;
    size_t byte = at * type->elem_bytes, bytes = count * type->elem_bytes;
    for (int k = 0; k < job->nsrcs; k++) {
        float *wide = k == 0 ? acc : aux;
        type->widen(wide, source_at(job, k, byte), count);
        if (scaled(job, k)) scale_narrow(type, scalar_for(job, k), wide, count);
        if (k > 0) type->pair[job->reduction->op](acc, acc, aux, count);
    }
    if (job->post && job->reduction->post_div > 1)
        type->divide(acc, job->reduction->post_div, count);
    void *out = can_accumulate(job) ? (char *)job->dsts[0] + byte : tile->aux;
    type->narrow(out, acc, count);
    store(job, byte, out, bytes);
}

/* Two sources, a plain sum: no fp32 in memory. */
static void sum_two_tile(const struct tt_reduce_job *job, const struct tt_reduce_type *type,
                         size_t at, size_t count, struct tile *tile)
{
    size_t byte = at * type->elem_bytes;
    void *out = can_accumulate(job) ? (char *)job->dsts[0] + byte : tile->acc;
    type->sum_two(out, source_at(job, 0, byte), source_at(job, 1, byte), count);
    store(job, byte, out, count * type->elem_bytes);
}

/* The same of more sources. */
static void sum_many_tile(const struct tt_reduce_job *job, const struct tt_reduce_type *type,
                          size_t at, size_t count, struct tile *tile)
{
    size_t byte = at * type->elem_bytes;
    void *out = can_accumulate(job) ? (char *)job->dsts[0] + byte : tile->acc;
    type->sum_many(out, job->srcs, job->nsrcs, at, count);
    store(job, byte, out, count * type->elem_bytes);
}

static void sum_give_tile(const struct tt_reduce_job *job, const struct tt_reduce_type *type,
                          size_t at, size_t count, struct tile *tile)
{
    void *const acc = tile->acc;
    struct tt_reduce_give give = {.dsts = job->dsts,
                                  .srcs = job->srcs,
                                  .ndsts = job->ndsts,
                                  .nsrcs = job->nsrcs,
                                  .to = at,
                                  .from = at};
    if (!job->stream) {
        type->sum_give(&give, count);
        return;
    }
    give.dsts = &acc;
    give.ndsts = 1;
    give.to = 0;
    type->sum_give(&give, count);
    store(job, at * type->elem_bytes, acc, count * type->elem_bytes);
}

static bool is_plain_sum(const struct tt_reduce_job *job)
{
    bool plain = job->reduction->op == ncclSum && !(job->post && job->reduction->post_div > 1);
    for (int k = 0; plain && k < job->nsrcs; k++)
        plain = !scaled(job, k);
    return plain;
}

typedef void (*tile_fn)(const struct tt_reduce_job *job, const struct tt_reduce_type *type,
                        size_t at, size_t count, struct tile *tile);

static tile_fn narrow_fn(const struct tt_reduce_job *job, const struct tt_reduce_type *type)
{
    if (!is_plain_sum(job)) return narrow_tile;
    if (type->sum_two && job->nsrcs == 2) return sum_two_tile;
    if (type->sum_give && job->nsrcs > 2) return sum_give_tile;
    return type->sum_many && job->nsrcs > 2 ? sum_many_tile : narrow_tile;
}

static const struct tt_reduce_level *best_level(void)
{
    int count;
    const struct tt_reduce_level *levels = tt_reduce_levels(&count);
    return &levels[count - 1];
}

tt_reduce_pair_fn tt_reduce_native_pair(ncclDataType_t type, ncclRedOp_t op)
{
    const struct tt_reduce_type *native = &best_level()->native[type];
    return native->elem_bytes && (int)op < TT_REDUCE_OPS ? native->pair[op] : NULL;
}

static bool is_copy(const struct tt_reduce_job *job)
{
    bool post = job->post && job->reduction->post_div > 1;
    return job->nsrcs == 1 && !post && !scaled(job, 0);
}

static void copy(const struct tt_reduce_job *job)
{
    size_t bytes = job->count * tt_type_bytes(type_of(job));
    for (int k = 0; k < job->ndsts; k++) {
        if (job->dsts[k] == job->srcs[0]) continue;
        tt_copy_run(job->dsts[k], job->srcs[0], bytes, job->stream);
    }
}

static void reduce(const struct tt_reduce_level *level, const struct tt_reduce_job *job)
{
    const struct tt_reduce_type *type = &level->native[type_of(job)];
    tile_fn run = native_tile;
    size_t per_tile = TILE_BYTES / sizeof(float);
    if (type->elem_bytes) {
        per_tile = TILE_BYTES / type->elem_bytes;
    } else {
        type = &level->narrow[type_of(job)];
        run = narrow_fn(job, type);
        if (run != narrow_tile) per_tile = TILE_BYTES / type->elem_bytes; /* no fp32 in memory */
    }
    if (job->stream) per_tile /= 2; /* what is asked for ahead must still be there */
    struct tile tile;
    for (size_t at = 0; at < job->count; at += per_tile) {
        run(job, type, at, tt_min_size(per_tile, job->count - at), &tile);
    }
    if (job->stream) tt_stream_fence();
}

void tt_reduce_run_at(const struct tt_reduce_level *level, const struct tt_reduce_job *job)
{
    if (is_copy(job)) {
        copy(job);
    } else {
        reduce(level, job);
    }
}

void tt_reduce_run(const struct tt_reduce_job *job)
{
    if (is_copy(job)) {
        copy(job);
    } else {
        reduce(best_level(), job);
    }
}

/* ---- copies ---- */

void tt_copy_run(void *dst, const void *src, size_t bytes, bool stream)
{
    if (bytes == 0) return; /* the pointers may be NULL then */
    if (stream && bytes >= TILE_BYTES) {
        tt_stream_copy(dst, src, bytes);
        tt_stream_fence();
    } else {
        memcpy(dst, src, bytes);
    }
}
