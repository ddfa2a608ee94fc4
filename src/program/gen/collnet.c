/* Programs over a network that reduces (CollNet): inside a host the ranks add up what they have,
 * one of them, the head, gives the sum to the network, and what comes back goes to the others. The
 * ranks stand in a ring of positions, host after host, L of them on each: position h*L + l. Those
 * with the same l are a group of the network.
 *
 * DIRECT: every rank is a head, rank l of each host for part l of L. All send all others of the
 * host their inputs, each reduces its part, and gives the sum of the group to the others. CHAIN:
 * one head on each host, rank `head`; sums come along a chain of the host's ranks up to it, and go
 * down again. Chains of several channels have different heads, so that each uses a group of its
 * own.
 *
 * Up and down are two threads: what goes up runs ahead of what comes down by as many slots as an
 * edge has. In a direct program both use the same pairs of ranks, so they have a channel each. The
 * sum is finished once, by the head. In place needs no care: a part comes down only after the
 * network had this host's sum of it, which this rank's input went into.
 *
 * AllGather and ReduceScatter are the two halves of DIRECT: rank l of a host is the head for blocks
 * of ranks l of all hosts, so each block crosses the network once, and the network itself gathers
 * them or scatters their sums. They go host by host, one block of each head at a time: no rank
 * gives two before it took one, so an edge of one slot is enough. */
#include "gen.h"

#include "base/mem.h"

#include <stdlib.h>

enum { UP, DOWN }; /* channels of a direct program */

struct role { /* what rank `local` of each host does */
    int locals, local;
};

/* Groups by position on the host; of a chain that of the head alone (`only` >= 0). */
static void add_groups(const struct tt_shape *shape, struct tt_builder *builder, int only)
{
    int locals = shape->nranks / shape->nhosts;
    int32_t *group = tt_calloc((size_t)shape->nranks, sizeof(*group));
    if (!group) {
        builder->rc = ncclSystemError;
        return;
    }
    for (int at = 0; at < shape->nranks; at++) {
        int local = at % locals;
        group[shape->by_host[at]] = only < 0 || local == only ? local : -1;
    }
    tt_build_table(builder, TT_TABLE_NETWORK, group);
    free(group);
}

static void begin_text(const struct tt_shape *shape, struct tt_builder *builder, int local)
{
    int text = tt_build_text(builder), locals = shape->nranks / shape->nhosts;
    for (int host = 0; host < shape->nhosts; host++)
        tt_build_assign(builder, shape->by_host[host * locals + local], text);
}

static struct tt_operand network(int chunk)
{
    return tt_gen_own(TT_SPACE_NETWORK, tt_gen_number(chunk));
}

/* Slots from or to rank j of the host. */
static struct tt_operand beside(struct role role, int j, int channel, int chunk)
{
    struct tt_operand operand =
        tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, j - role.local, tt_gen_number(chunk));
    operand.channel = (uint16_t)channel;
    return operand;
}

/* ---- all are heads ---- */

/* Parts to their heads, the next one first, so that not all send to the same one. */
static void direct_up(struct tt_builder *builder, struct role role)
{
    struct tt_gen_chunk own = tt_gen_number(role.local);
    tt_build_thread(builder);
    for (int k = 1; k < role.locals; k++) {
        int j = (role.local + k) % role.locals;
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(j)));
        tt_build_dst(builder, beside(role, j, UP, j));
    }
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE);
    for (int j = 0; j < role.locals; j++) {
        tt_build_src(builder, j == role.local ? tt_gen_own(TT_SPACE_IN, own)
                                              : beside(role, j, UP, role.local));
    }
    tt_build_dst(builder, network(role.local));
    tt_build_stop(builder);
}

static void direct_down(struct tt_builder *builder, struct role role)
{
    tt_build_thread(builder);
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_POST);
    tt_build_src(builder, network(role.local));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(role.local)));
    for (int j = 0; j < role.locals; j++) {
        if (j != role.local) tt_build_dst(builder, beside(role, j, DOWN, role.local));
    }
    for (int k = 1; k < role.locals; k++) {
        int j = (role.local + k) % role.locals;
        tt_build_copy(builder, beside(role, j, DOWN, j),
                      tt_gen_own(TT_SPACE_OUT, tt_gen_number(j)));
    }
    tt_build_stop(builder);
}

void tt_gen_collnet_direct_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    int locals = shape->nranks / shape->nhosts;
    builder->head.nparts = locals;
    builder->head.nchannels = locals > 1 ? 2 : 1;
    add_groups(shape, builder, -1);
    for (int local = 0; local < locals; local++) {
        struct role role = {locals, local};
        begin_text(shape, builder, local);
        direct_up(builder, role);
        direct_down(builder, role);
    }
}

/* In the loop over hosts, from the own one on: the block of rank j of the host. */
static struct tt_gen_chunk block_of(struct role role, int j)
{
    return (struct tt_gen_chunk){TT_CHUNK_RING_RANK, j - role.local, role.locals};
}

static struct tt_operand block_beside(struct role role, int j, int owner)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, j - role.local, block_of(role, owner));
}

/* Blocks of the own group as they come, to the others of the host, and theirs from them. */
static void gather_down(struct tt_builder *builder, struct role role, int hosts)
{
    struct tt_gen_chunk own = block_of(role, role.local);
    tt_build_thread(builder);
    tt_build_loop(builder, hosts);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_NETWORK, own), tt_gen_own(TT_SPACE_OUT, own));
    for (int j = 0; j < role.locals; j++) {
        if (j != role.local) tt_build_dst(builder, block_beside(role, j, role.local));
    }
    for (int k = 1; k < role.locals; k++) {
        int j = (role.local + k) % role.locals;
        tt_build_copy(builder, block_beside(role, j, j),
                      tt_gen_own(TT_SPACE_OUT, block_of(role, j)));
    }
    tt_build_next(builder);
    tt_build_stop(builder);
}

void tt_gen_collnet_direct_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    int locals = shape->nranks / shape->nhosts;
    builder->head.out_blocks = true;
    add_groups(shape, builder, -1);
    for (int local = 0; local < locals; local++) {
        begin_text(shape, builder, local);
        tt_build_thread(builder);
        tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)), network(0));
        tt_build_stop(builder);
        gather_down(builder, (struct role){locals, local}, shape->nhosts);
    }
}

/* Blocks to their heads, and the host's sums of the own ones to the network. */
static void scatter_up(struct tt_builder *builder, struct role role, int hosts)
{
    struct tt_gen_chunk own = block_of(role, role.local);
    tt_build_thread(builder);
    tt_build_loop(builder, hosts);
    for (int k = 1; k < role.locals; k++) {
        int j = (role.local + k) % role.locals;
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, block_of(role, j)));
        tt_build_dst(builder, block_beside(role, j, j));
    }
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE);
    for (int j = 0; j < role.locals; j++) {
        tt_build_src(builder, j == role.local ? tt_gen_own(TT_SPACE_IN, own)
                                              : block_beside(role, j, role.local));
    }
    tt_build_dst(builder, tt_gen_own(TT_SPACE_NETWORK, own));
    tt_build_next(builder);
    tt_build_stop(builder);
}

void tt_gen_collnet_direct_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    int locals = shape->nranks / shape->nhosts;
    builder->head.in_blocks = true;
    add_groups(shape, builder, -1);
    for (int local = 0; local < locals; local++) {
        begin_text(shape, builder, local);
        scatter_up(builder, (struct role){locals, local}, shape->nhosts);
        tt_build_thread(builder);
        tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_POST);
        tt_build_src(builder, network(0));
        tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
        tt_build_stop(builder);
    }
}

/* ---- one head ---- */

/* `further`: how many ranks there are between this one and the head, and it; 0: this is the head.
 * The chain goes round the host, so the next rank is nearer to the head. */
static void chain_text(struct tt_builder *builder, struct role role, int further)
{
    int nearer = (role.local + role.locals - 1) % role.locals;
    int farther = (role.local + 1) % role.locals;
    bool last = further == role.locals - 1;
    struct tt_operand up = further ? beside(role, nearer, 0, 0) : network(0);
    tt_build_thread(builder);
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    if (!last) tt_build_src(builder, beside(role, farther, 0, 0));
    tt_build_dst(builder, up);
    tt_build_stop(builder);
    tt_build_thread(builder);
    tt_build_move(builder, further ? 0 : TT_MOVE_REDUCE | TT_MOVE_POST);
    tt_build_src(builder, up);
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    if (!last) tt_build_dst(builder, beside(role, farther, 0, 0));
    tt_build_stop(builder);
}

void tt_gen_collnet_chain_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    int locals = shape->nranks / shape->nhosts, head = shape->head % locals;
    add_groups(shape, builder, head);
    for (int local = 0; local < locals; local++) {
        begin_text(shape, builder, local);
        chain_text(builder, (struct role){locals, local}, (local + locals - head) % locals);
    }
}
