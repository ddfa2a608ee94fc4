/* Hierarchical programs: what crosses between hosts is first reduced inside each host, and every
 * rank of a host carries its part of it. The ranks stand in a ring of positions, host after host, L
 * of them on each: position h*L + l. Those with the same l are a rail: a ring over the hosts, in
 * which the neighbours of a position are L places on and L back. Inside a host each rank sends to
 * all others (one-shot), through slots that on a host refer to the sender's memory.
 *
 * In an AllReduce the rank at position q is to complete chunk q. Where a ring reduces what comes
 * with the own input, here it is reduced with the inputs of all ranks of the host, in one move: no
 * sum of the host is stored. In the second half what comes goes on along the rail, to OUT, and to
 * the others of the host. So each link of a host carries 2(H-1)/H of the buffer, once, however many
 * ranks a host has. ReduceScatter and AllGather are the halves. In Broadcast and Reduce rank l of
 * each host carries part l of L along its rail.
 *
 * SIMPLE goes round the rails host by host. LL, for messages that are short, sends to all hosts at
 * once: at_once.c.
 *
 * Hosts of different numbers of ranks: AllReduce, Broadcast and Reduce have as many rails as the
 * smallest host has ranks, and a chunk for each host and rail. The other ranks of a host give those
 * on rails their inputs and take results from them. AllGather and ReduceScatter over such hosts:
 * uneven.c.
 *
 * There is a text for each l (for each l and place in the chain, where there is a root). A chunk is
 * completed by one rank and copied: all ranks hold the same bits. The order of a reduction depends
 * on the positions alone. A move sends before it receives; on rails it holds what came until it is
 * passed on, so they need a slot more than a chunk has slices. In place needs no care: what others
 * need of the own input is sent before that chunk's output is written. */
#include "lane.h"

/* ---- the two halves, along the rail ---- */

static bool on_rail(const struct tt_lane *lane)
{
    return lane->local < lane->rails;
}

/* Begin, pass on, or complete (part 0, 1, 2) what is reduced along the rail. */
static void reduce_chunk(struct tt_builder *builder, const struct tt_lane *lane, int part,
                         struct tt_gen_chunk chunk)
{
    tt_build_move(builder,
                  (uint8_t)(TT_MOVE_REDUCE | TT_MOVE_PRE | (part == 2 ? TT_MOVE_POST : 0)));
    if (part > 0) tt_build_src(builder, tt_lane_rail(lane, -1, chunk));
    tt_lane_from_beside(builder, lane, chunk);
    if (part < 2) tt_build_dst(builder, tt_lane_rail(lane, 1, chunk));
}

/* Up to the move that completes the own chunk, if there is one; the caller adds destinations. */
static void reduce_rail(struct tt_builder *builder, const struct tt_lane *lane)
{
    const int turns[] = {1, lane->hosts - 2, 1}; /* begin, pass on, complete */
    for (int part = 0; part < 3; part++) {
        int first = part == 2 ? 0 : -1 - part;
        int coef = part == 1 ? -1 : 0;
        struct tt_gen_chunk chunk = tt_lane_chunk(lane, lane->local, first, coef);
        if (turns[part] <= 0) continue;
        if (part == 1) tt_build_loop(builder, turns[part]);
        tt_lane_give_inputs(builder, lane, first, coef);
        if (on_rail(lane)) reduce_chunk(builder, lane, part, chunk);
        if (part == 1) tt_build_next(builder);
    }
}

/* After the own chunk went out: what comes of the other hosts. */
static void gather_rail(struct tt_builder *builder, const struct tt_lane *lane)
{
    tt_lane_take_outputs(builder, lane, 0, 0);
    for (int part = 0; part < 2; part++) { /* pass on, keep */
        int first = part ? 1 : -1, coef = part ? 0 : -1;
        struct tt_gen_chunk chunk = tt_lane_chunk(lane, lane->local, first, coef);
        if (!part && lane->hosts == 2) continue;
        if (!part) tt_build_loop(builder, lane->hosts - 2);
        if (on_rail(lane)) {
            tt_build_copy(builder, tt_lane_rail(lane, -1, chunk), tt_gen_own(TT_SPACE_OUT, chunk));
            if (!part) tt_build_dst(builder, tt_lane_rail(lane, 1, chunk));
            tt_lane_to_beside(builder, lane, chunk);
        }
        tt_lane_take_outputs(builder, lane, first, coef);
        if (!part) tt_build_next(builder);
    }
}

/* ---- without a root ---- */

/* The own chunk, reduced or taken as it is; the caller adds destinations. */
static void begin_half(struct tt_builder *builder, const struct tt_lane *lane, bool reduces)
{
    if (!reduces) {
        tt_build_move(builder, 0);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    } else {
        reduce_rail(builder, lane);
    }
}

/* The own chunk goes to all others, and those of all others come. */
static void end_half(struct tt_builder *builder, const struct tt_lane *lane)
{
    struct tt_gen_chunk own = tt_lane_chunk(lane, lane->local, 0, 0);
    if (on_rail(lane)) {
        tt_build_dst(builder, tt_lane_rail(lane, 1, own));
        tt_lane_to_beside(builder, lane, own);
    }
    gather_rail(builder, lane);
}

static int most_locals(const struct tt_shape *shape)
{
    int most = 0;
    for (int host = 0; host < shape->nhosts; host++) {
        int locals = tt_lane_first(shape, host + 1) - tt_lane_first(shape, host);
        if (locals > most) most = locals;
    }
    return most;
}

static void half_texts(const struct tt_shape *shape, struct tt_builder *builder, int locals,
                       bool reduces, bool gathers)
{
    for (int local = 0; local < locals; local++) {
        struct tt_lane lane;
        if (!tt_lane_begin(shape, builder, locals, local, &lane)) return;
        lane.by = reduces && gathers ? TT_CHUNK_RING : TT_CHUNK_RING_RANK;
        struct tt_gen_chunk own = tt_lane_chunk(&lane, local, 0, 0);
        begin_half(builder, &lane, reduces);
        if (on_rail(&lane))
            tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, gathers ? own : tt_gen_number(0)));
        if (gathers) end_half(builder, &lane);
        tt_build_stop(builder);
    }
}

/* Texts of hosts with the same number of ranks are the same. */
static void halves(const struct tt_shape *shape, struct tt_builder *builder, bool reduces,
                   bool gathers)
{
    bool both = reduces && gathers;
    if (both) builder->head.nparts = shape->nhosts * tt_lane_rails(shape);
    builder->head.in_blocks = reduces && !both;
    builder->head.out_blocks = gathers && !both;
    if (builder->head.proto == TT_PROTO_LL) {
        tt_gen_at_once(shape, builder, reduces, gathers);
        return;
    }
    for (int locals = tt_lane_rails(shape); locals <= most_locals(shape); locals++)
        half_texts(shape, builder, locals, reduces, gathers);
}

void tt_gen_hierarchical_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (shape->host_first) tt_lane_tables(shape, builder);
    halves(shape, builder, true, true);
}

void tt_gen_hierarchical_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (shape->host_first && builder->head.proto != TT_PROTO_LL) {
        tt_gen_uneven_reducescatter(shape, builder);
    } else {
        halves(shape, builder, true, false);
    }
}

void tt_gen_hierarchical_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (shape->host_first && builder->head.proto != TT_PROTO_LL) {
        tt_gen_uneven_allgather(shape, builder);
    } else {
        halves(shape, builder, false, true);
    }
}

/* ---- with a root ---- */

struct place { /* of the root */
    int host, local;
};

static struct place place_of_root(const struct tt_shape *shape, const struct tt_builder *builder)
{
    struct place root = {0, 0};
    int at = 0;
    while (shape->by_host[at] != builder->head.root)
        at++;
    while (tt_lane_first(shape, root.host + 1) <= at)
        root.host++;
    root.local = at - tt_lane_first(shape, root.host);
    return root;
}

/* Begin a text for rank `local` of the hosts [first, end), counted from the root's, that have
 * `locals` ranks. False: there is none. */
static bool begin_role(const struct tt_shape *shape, struct tt_builder *builder, int root_host,
                       const int range[2], struct tt_lane *lane)
{
    int text = -1;
    for (int host = range[0]; host < range[1]; host++) {
        int number = (root_host + host) % shape->nhosts, at = tt_lane_first(shape, number);
        if (tt_lane_first(shape, number + 1) - at != lane->locals) continue;
        if (text < 0) {
            text = tt_build_text(builder);
            tt_build_thread(builder);
        }
        tt_build_assign(builder, shape->by_host[at + lane->local], text);
    }
    return text >= 0;
}

/* The root gives each rank of its host its part first, then all others. */
static void root_gives(struct tt_builder *builder, const struct tt_lane *lane)
{
    for (int part = 0; part < lane->rails; part++) {
        struct tt_gen_chunk chunk = tt_gen_number(part);
        bool own = part == lane->local;
        tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, chunk), tt_gen_own(TT_SPACE_OUT, chunk));
        tt_build_dst(builder,
                     own ? tt_lane_rail(lane, 1, chunk) : tt_lane_beside(lane, part, chunk));
    }
    for (int part = 0; part < lane->rails; part++) {
        struct tt_gen_chunk chunk = tt_gen_number(part);
        if (lane->locals == 1 || (lane->locals == 2 && part != lane->local)) continue;
        tt_build_move(builder, 0);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, chunk));
        for (int j = 0; j < lane->locals; j++) {
            if (j != lane->local && j != part)
                tt_build_dst(builder, tt_lane_beside(lane, j, chunk));
        }
    }
}

/* Take the own part from the rank that is `from` on, pass it on, and take the others. */
static void pass_parts(struct tt_builder *builder, const struct tt_lane *lane, int from_root,
                       bool last)
{
    struct tt_gen_chunk own = tt_gen_number(lane->local);
    bool at_root = from_root >= 0;
    if (on_rail(lane)) {
        tt_build_copy(builder,
                      at_root ? tt_lane_beside(lane, from_root, own) : tt_lane_rail(lane, -1, own),
                      tt_gen_own(TT_SPACE_OUT, own));
        if (!last) tt_build_dst(builder, tt_lane_rail(lane, 1, own));
        if (!at_root) tt_lane_to_beside(builder, lane, own);
    }
    for (int part = 0; part < lane->rails; part++) {
        struct tt_gen_chunk chunk = tt_gen_number(part);
        if (part == lane->local) continue;
        tt_build_copy(builder, tt_lane_beside(lane, at_root ? from_root : part, chunk),
                      tt_gen_own(TT_SPACE_OUT, chunk));
    }
}

typedef void role_text(struct tt_builder *builder, const struct tt_lane *lane, int root, int role);

struct roles { /* in the chain of hosts: the root's (0), the next ones from [1] and from [2] on */
    int first[4];
    role_text *write;
};

/* A text for each rank of a host of `locals` ranks and role. */
static void chain_texts(const struct tt_shape *shape, struct tt_builder *builder,
                        const struct roles *roles, int locals)
{
    struct place root = place_of_root(shape, builder);
    for (int k = 0; k < locals * 3; k++) {
        int role = k % 3;
        struct tt_lane lane = {.hosts = shape->nhosts,
                               .locals = locals,
                               .local = k / 3,
                               .rails = builder->head.nparts,
                               .uneven = shape->host_first};
        if (!begin_role(shape, builder, root.host, &roles->first[role], &lane)) continue;
        roles->write(builder, &lane, root.local, role);
        tt_build_stop(builder);
    }
}

static void chain(const struct tt_shape *shape, struct tt_builder *builder, int second, int third,
                  role_text *write)
{
    const struct roles roles = {{0, second, third, shape->nhosts}, write};
    builder->head.nparts = tt_lane_rails(shape);
    for (int locals = tt_lane_rails(shape); locals <= most_locals(shape); locals++)
        chain_texts(shape, builder, &roles, locals);
}

static void broadcast_text(struct tt_builder *builder, const struct tt_lane *lane, int root,
                           int role)
{
    if (role == 0 && lane->local == root) {
        root_gives(builder, lane);
    } else {
        pass_parts(builder, lane, role == 0 ? root : -1, role == 2);
    }
}

void tt_gen_hierarchical_broadcast(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (shape->host_first) tt_lane_tables(shape, builder);
    chain(shape, builder, 1, shape->nhosts - 1, broadcast_text); /* between; the last */
}

static void reduce_text(struct tt_builder *builder, const struct tt_lane *lane, int root, int role)
{
    struct tt_gen_chunk own = tt_gen_number(lane->local);
    struct tt_operand dst = role > 0              ? tt_lane_rail(lane, 1, own)
                            : lane->local == root ? tt_gen_own(TT_SPACE_OUT, own)
                                                  : tt_lane_beside(lane, root, own);
    for (int j = 0; j < lane->rails; j++) {
        if (j == lane->local) continue;
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(j)));
        tt_build_dst(builder, tt_lane_beside(lane, j, tt_gen_number(j)));
    }
    if (on_rail(lane)) {
        tt_build_move(builder,
                      (uint8_t)(TT_MOVE_REDUCE | TT_MOVE_PRE | (role == 0 ? TT_MOVE_POST : 0)));
        if (role != 1) tt_build_src(builder, tt_lane_rail(lane, -1, own));
        tt_lane_from_beside(builder, lane, own);
        tt_build_dst(builder, dst);
    }
    for (int j = 0; role == 0 && lane->local == root && j < lane->rails; j++) {
        if (j == root) continue;
        tt_build_copy(builder, tt_lane_beside(lane, j, tt_gen_number(j)),
                      tt_gen_own(TT_SPACE_OUT, tt_gen_number(j)));
    }
}

void tt_gen_hierarchical_reduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (shape->host_first) tt_lane_tables(shape, builder);
    chain(shape, builder, 1, 2, reduce_text); /* the next one begins; the others */
}
