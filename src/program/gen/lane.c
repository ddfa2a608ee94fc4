/* See lane.h. */
#include "lane.h"

#include "base/mem.h"

#include <stdlib.h>

enum { NEXT_HOST = TT_TABLE_OTHER, LAST_HOST }; /* tables of uneven hosts */

struct tt_gen_chunk tt_lane_chunk(const struct tt_lane *lane, int j, int hosts, int coef)
{
    if (lane->uneven) {
        return (struct tt_gen_chunk){TT_CHUNK_ROUND, j + hosts * lane->rails, coef * lane->rails};
    }
    return (struct tt_gen_chunk){lane->by, j - lane->local + hosts * lane->locals,
                                 coef * lane->locals};
}

struct tt_operand tt_lane_beside(const struct tt_lane *lane, int j, struct tt_gen_chunk chunk)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, j - lane->local, chunk);
}

struct tt_operand tt_lane_rail(const struct tt_lane *lane, int hosts, struct tt_gen_chunk chunk)
{
    if (lane->uneven)
        return tt_gen_by(TT_SPACE_SLOT, TT_PEER_TABLE, hosts > 0 ? NEXT_HOST : LAST_HOST, chunk);
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, hosts * lane->locals, chunk);
}

void tt_lane_from_beside(struct tt_builder *builder, const struct tt_lane *lane,
                         struct tt_gen_chunk chunk)
{
    for (int j = 0; j < lane->locals; j++) {
        tt_build_src(builder, j == lane->local ? tt_gen_own(TT_SPACE_IN, chunk)
                                               : tt_lane_beside(lane, j, chunk));
    }
}

void tt_lane_to_beside(struct tt_builder *builder, const struct tt_lane *lane,
                       struct tt_gen_chunk chunk)
{
    for (int j = 0; j < lane->locals; j++) {
        if (j != lane->local) tt_build_dst(builder, tt_lane_beside(lane, j, chunk));
    }
}

void tt_lane_give_inputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                         int coef)
{
    for (int j = 0; j < lane->rails; j++) {
        struct tt_gen_chunk theirs = tt_lane_chunk(lane, j, hosts, coef);
        if (j == lane->local) continue;
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, theirs));
        tt_build_dst(builder, tt_lane_beside(lane, j, theirs));
    }
}

void tt_lane_take_outputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                          int coef)
{
    for (int j = 0; j < lane->rails; j++) {
        struct tt_gen_chunk theirs = tt_lane_chunk(lane, j, hosts, coef);
        if (j != lane->local) {
            tt_build_copy(builder, tt_lane_beside(lane, j, theirs),
                          tt_gen_own(TT_SPACE_OUT, theirs));
        }
    }
}

int tt_lane_first(const struct tt_shape *shape, int host)
{
    return shape->host_first ? shape->host_first[host] : shape->nranks / shape->nhosts * host;
}

static int host_size(const struct tt_shape *shape, int host)
{
    return tt_lane_first(shape, host + 1) - tt_lane_first(shape, host);
}

int tt_lane_rails(const struct tt_shape *shape)
{
    int least = shape->nranks;
    for (int host = 0; host < shape->nhosts; host++)
        least = host_size(shape, host) < least ? host_size(shape, host) : least;
    return least;
}

static struct tt_lane lane_of(const struct tt_shape *shape, int host, int local)
{
    return (struct tt_lane){.shape = shape,
                            .host = host,
                            .hosts = shape->nhosts,
                            .locals = host_size(shape, host),
                            .local = local,
                            .rails = tt_lane_rails(shape),
                            .uneven = shape->host_first};
}

bool tt_lane_begin(const struct tt_shape *shape, struct tt_builder *builder, int locals, int local,
                   struct tt_lane *lane_out)
{
    int text = -1;
    for (int host = 0; host < shape->nhosts; host++) {
        if (host_size(shape, host) != locals) continue;
        if (text < 0) {
            text = tt_build_text(builder);
            tt_build_thread(builder);
            *lane_out = lane_of(shape, host, local);
        }
        tt_build_assign(builder, shape->by_host[tt_lane_first(shape, host) + local], text);
    }
    return text >= 0;
}

void tt_lane_begin_host(const struct tt_shape *shape, struct tt_builder *builder, int host,
                        int local, struct tt_lane *lane_out)
{
    int text = tt_build_text(builder), end = shape->host_first ? host + 1 : shape->nhosts;
    for (int other = host; other < end; other++)
        tt_build_assign(builder, shape->by_host[tt_lane_first(shape, other) + local], text);
    tt_build_thread(builder);
    *lane_out = lane_of(shape, host, local);
}

/* Ranks of the host that is so many on; fewer than as many hosts as there are, back if negative. */
static int size_on(const struct tt_lane *lane, int hosts)
{
    return host_size(lane->shape, (lane->host + hosts + lane->hosts) % lane->hosts);
}

bool tt_lane_next_run(const struct tt_lane *lane, struct tt_lane_run *run)
{
    int first = run->first + run->count;
    if (!run->count) { /* the first one */
        first = 1;
        run->at = lane->locals;
        run->at_behind = -size_on(lane, -1);
    } else {
        run->at += run->count * run->locals;
        run->at_behind -= (run->count - 1) * run->behind;
        if (first < lane->hosts) run->at_behind -= size_on(lane, -first);
    }
    if (first >= lane->hosts) return false;
    run->first = first;
    run->locals = size_on(lane, first);
    run->behind = size_on(lane, -first);
    for (run->count = 1; first + run->count < lane->hosts; run->count++) {
        if (size_on(lane, first + run->count) != run->locals) break;
        if (size_on(lane, -first - run->count) != run->behind) break;
    }
    return true;
}

/* By rank: the first chunk that its host completes, and its neighbours on the rail. */
void tt_lane_tables(const struct tt_shape *shape, struct tt_builder *builder)
{
    size_t n = (size_t)shape->nranks;
    int rails = tt_lane_rails(shape), hosts = shape->nhosts;
    int32_t *tables = tt_calloc(3 * n, sizeof(*tables));
    if (!tables) {
        builder->rc = ncclSystemError;
        return;
    }
    int32_t *chunk = tables, *next = tables + n, *last = tables + 2 * n;
    for (int host = 0; host < hosts; host++) {
        int first = tt_lane_first(shape, host);
        int to = tt_lane_first(shape, (host + 1) % hosts);
        int from = tt_lane_first(shape, (host + hosts - 1) % hosts);
        for (int l = 0; l < host_size(shape, host); l++) {
            int rank = shape->by_host[first + l];
            chunk[rank] = host * rails;
            next[rank] = l < rails ? shape->by_host[to + l] : -1;
            last[rank] = l < rails ? shape->by_host[from + l] : -1;
        }
    }
    tt_build_table(builder, TT_TABLE_ROUND, chunk);
    tt_build_table(builder, (enum tt_table)NEXT_HOST, next);
    tt_build_table(builder, (enum tt_table)LAST_HOST, last);
    free(tables);
}
