/* Where chunk c of pass p lies, in elements. The chunks of all passes cover this channel's part
 * [lo, hi) of each block exactly once; every chunk begins at a multiple of the
 * grain from lo. */
#include "base/mem.h"
#include "program/program.h"

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

void tt_geometry_init(struct tt_geometry *geometry, const struct tt_program *program, size_t count,
                      struct tt_extent part, size_t chunk_limit, size_t grain)
{
    assert(part.first <= count && part.count <= count - part.first && grain > 0 &&
           program->nparts > 0);
    size_t nparts = (size_t)program->nparts;
    size_t even = tt_max_size(tt_round_up(ceil_div(part.count, nparts), grain), 1);
    bool whole = program->whole_window;
    size_t chunk = whole ? even : tt_min_size(even, chunk_bound(chunk_limit, grain));
    uint32_t npasses = whole ? 1 : pass_count(part.count, nparts * chunk);
    size_t before = (size_t)(npasses - 1) * nparts * chunk;
    *geometry = (struct tt_geometry){
        .count = count,
        .lo = part.first,
        .hi = part.first + part.count,
        .chunk = chunk,
        .tail_chunk = tt_round_up(ceil_div(part.count - before, nparts), grain),
        .block_stride = count,
        .scratch_stride = npasses * chunk,
        .grain = grain,
        .nparts = program->nparts,
        .npasses = npasses,
    };
}

struct tt_extent tt_geometry_extent(const struct tt_geometry *geometry, uint32_t pass, int chunk)
{
    size_t part = geometry->hi - geometry->lo;
    size_t length = pass + 1 == geometry->npasses ? geometry->tail_chunk : geometry->chunk;
    size_t base = geometry->lo;
    if (geometry->nparts == 1) {
        base += (size_t)chunk * geometry->block_stride;
        chunk = 0;
    } else if (chunk >= geometry->nparts) {
        base += (size_t)(chunk / geometry->nparts) * geometry->block_stride;
        chunk %= geometry->nparts;
    }
    size_t first = (size_t)pass * (size_t)geometry->nparts * geometry->chunk; /* from lo */
    first += (size_t)chunk * length;
    if (first >= part) return (struct tt_extent){base + part, 0};
    return (struct tt_extent){base + first, tt_min_size(length, part - first)};
}

struct tt_extent tt_geometry_scratch(const struct tt_geometry *geometry, uint32_t pass, int chunk)
{
    size_t first = (size_t)chunk * geometry->scratch_stride + (size_t)pass * geometry->chunk;
    return (struct tt_extent){first, tt_geometry_extent(geometry, pass, 0).count};
}
