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

struct tt_operand tt_lane_rail_of_turn(const struct tt_lane *lane, struct tt_gen_chunk chunk)
{
    struct tt_operand operand = tt_lane_rail(lane, 1, chunk);
    operand.peer_coef = (int16_t)lane->locals;
    return operand;
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

bool tt_lane_begin(const struct tt_shape *shape, struct tt_builder *builder, int locals, int local,
                   struct tt_lane *lane_out)
{
    int text = -1;
    for (int host = 0; host < shape->nhosts; host++) {
        if (host_size(shape, host) != locals) continue;
        if (text < 0) {
            text = tt_build_text(builder);
            tt_build_thread(builder);
        }
        tt_build_assign(builder, shape->by_host[tt_lane_first(shape, host) + local], text);
    }
    *lane_out = (struct tt_lane){.hosts = shape->nhosts,
                                 .locals = locals,
                                 .local = local,
                                 .rails = tt_lane_rails(shape),
                                 .uneven = shape->host_first};
    return text >= 0;
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
