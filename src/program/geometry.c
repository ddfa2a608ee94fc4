/* Where chunk c of pass p lies, in elements. The chunks of all passes cover this channel's part
 * [lo, hi) of the buffer (of each block) exactly once; every chunk begins at a multiple of the
 * grain from lo. */
#include "base/mem.h"
#include "program.h"

#include <assert.h>

static size_t ceil_div(size_t value, size_t by)
{
    return value / by + (value % by != 0);
}

/* Largest chunk: the limit cut down to the grain, at least one grain. */
static size_t chunk_bound(size_t limit, size_t grain)
{
    return limit < grain ? grain : limit - limit % grain;
}

static uint32_t pass_count(size_t part, size_t window)
{
    size_t npasses = part ? ceil_div(part, window) : 1;
    assert(npasses <= UINT32_MAX);
    return (uint32_t)npasses;
}

static void split_init(struct tt_geometry *geometry, size_t limit, bool whole)
{
    size_t part = geometry->hi - geometry->lo;
    size_t nchunks = (size_t)geometry->nchunks;
    size_t even = tt_max_size(tt_round_up(ceil_div(part, nchunks), geometry->grain), 1);
    geometry->chunk = whole ? even : tt_min_size(even, chunk_bound(limit, geometry->grain));
    geometry->npasses = whole ? 1 : pass_count(part, nchunks * geometry->chunk);
    size_t before = (size_t)(geometry->npasses - 1) * nchunks * geometry->chunk;
    geometry->tail_chunk = tt_round_up(ceil_div(part - before, nchunks), geometry->grain);
}

static void blocks_init(struct tt_geometry *geometry, size_t limit)
{
    size_t part = geometry->hi - geometry->lo;
    size_t all = tt_max_size(tt_round_up(part, geometry->grain), 1);
    geometry->chunk = tt_min_size(all, chunk_bound(limit, geometry->grain));
    geometry->npasses = pass_count(part, geometry->chunk);
    geometry->tail_chunk = geometry->chunk;
}

void tt_geometry_init(struct tt_geometry *geometry, const struct tt_program *program, size_t count,
                      struct tt_extent part, size_t chunk_limit, size_t grain)
{
    assert(part.first <= count && part.count <= count - part.first && grain > 0 &&
           program->nchunks > 0);
    *geometry = (struct tt_geometry){
        .kind = program->geometry,
        .count = count,
        .lo = part.first,
        .hi = part.first + part.count,
        .block_stride = count,
        .grain = grain,
        .nchunks = program->nchunks,
    };
    if (program->geometry == TT_GEOMETRY_SPLIT) {
        split_init(geometry, chunk_limit, program->whole_window);
    } else {
        blocks_init(geometry, chunk_limit);
    }
}

struct tt_extent tt_geometry_extent(const struct tt_geometry *geometry, uint32_t pass, int chunk)
{
    size_t part = geometry->hi - geometry->lo;
    size_t first; /* from lo */
    size_t length = geometry->chunk;
    size_t base = geometry->lo;
    if (geometry->kind == TT_GEOMETRY_SPLIT) {
        first = (size_t)pass * (size_t)geometry->nchunks * geometry->chunk;
        if (pass + 1 == geometry->npasses) length = geometry->tail_chunk;
        first += (size_t)chunk * length;
    } else {
        first = (size_t)pass * geometry->chunk;
        base += (size_t)chunk * geometry->block_stride;
    }
    if (first >= part) return (struct tt_extent){base + part, 0};
    return (struct tt_extent){base + first, tt_min_size(length, part - first)};
}
