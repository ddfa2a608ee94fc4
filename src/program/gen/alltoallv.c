/* AlltoAllv: an AlltoAll whose blocks have lengths of their own. A block is cut into as many parts
 * as the longest one has; the counts (struct tt_shape) say how many of them each rank has for each
 * other one. What no rank has is not moved: no message of another number of parts is sent, none
 * that is empty.
 *
 * Pairwise: in step k each rank sends to the rank k on and receives from the one k back. Bruck: a
 * block whose receiver is t on travels by the bits of t, in log2(n) steps; what is under way is in
 * scratch, twice, as a rank may get the next one of that t before it has passed on the last one
 * (blocks that are exchanged may have different lengths): by the number of hops it has behind it.
 *
 * All counts are known, so each rank has a text of its own without loops. Up to TT_GEN_AHEAD parts
 * go before as many come, so a chunk is one slot. In place needs a copy of the input. */
#include "gen.h"

struct step {
    int distance;
    bool relays; /* all blocks that have this bit; otherwise those for the rank at that distance */
};

struct place { /* in what a rank sends, or receives, in a step: a part of a block that goes t on */
    int t, part;
    bool sends;
};

struct text {
    struct tt_builder *builder;
    const struct tt_shape *shape;
    int rank;
};

static bool carries(const struct step *step, int t)
{
    return step->relays ? (t & step->distance) != 0 : t == step->distance;
}

static int hops_behind(const struct step *step, int t)
{
    int hops = 0;
    for (int bit = 1; step->relays && bit < step->distance; bit *= 2)
        hops += (t & bit) != 0;
    return hops;
}

/* First chunk of scratch that holds a block with so many hops behind it. */
static int kept(const struct text *text, int t, int hops)
{
    return ((hops & 1) * text->shape->nranks + t) * text->builder->head.nparts;
}

/* Move some parts of the block at `place` between memory and the slots of the step. */
static void move_parts(const struct text *text, const struct step *step, const struct place *place,
                       int from, int nparts)
{
    int n = text->shape->nranks, of_block = text->builder->head.nparts;
    int to = (from + place->t) % n, hops = hops_behind(step, place->t);
    bool starts = hops == 0, ends = !step->relays || place->t < 2 * step->distance;
    int peer = (text->rank + (place->sends ? step->distance : n - step->distance)) % n;
    struct tt_operand slot =
        tt_gen_at(TT_SPACE_SLOT, peer, tt_gen_number(to * of_block + place->part));
    struct tt_operand memory = tt_gen_own(
        TT_SPACE_SCRATCH, tt_gen_number(kept(text, place->t, hops + !place->sends) + place->part));
    if (place->sends && starts)
        memory = tt_gen_own(TT_SPACE_IN, tt_gen_number(to * of_block + place->part));
    if (!place->sends && ends)
        memory = tt_gen_own(TT_SPACE_OUT, tt_gen_number(from * of_block + place->part));
    tt_build_copy(text->builder, place->sends ? memory : slot, place->sends ? slot : memory);
    tt_build_range(text->builder, nparts);
}

/* The next parts of the step, as many as an edge has slots. */
static void move_some(const struct text *text, const struct step *step, struct place *place)
{
    int n = text->shape->nranks, room = TT_GEN_AHEAD;
    int sender = (text->rank + (place->sends ? 0 : n - step->distance)) % n;
    while (place->t < n && room > 0) {
        int behind = step->relays ? place->t & (step->distance - 1) : 0;
        int from = (sender + n - behind) % n, to = (from + place->t) % n;
        int left = text->shape->counts[(size_t)from * (size_t)n + (size_t)to] - place->part;
        if (!carries(step, place->t)) left = 0;
        int now = left < room ? left : room;
        if (now > 0) move_parts(text, step, place, from, now);
        place->part += now > 0 ? now : 0;
        room -= now > 0 ? now : 0;
        if (now < left) continue;
        place->t++;
        place->part = 0;
    }
}

static void take_step(const struct text *text, const struct step *step)
{
    struct place out = {.t = 1, .sends = true}, in = {.t = 1};
    while (out.t < text->shape->nranks || in.t < text->shape->nranks) {
        move_some(text, step, &out);
        move_some(text, step, &in);
    }
}

static void begin(const struct text *text)
{
    struct tt_builder *builder = text->builder;
    size_t own = (size_t)text->rank * (size_t)text->shape->nranks + (size_t)text->rank;
    int first = text->rank * builder->head.nparts;
    tt_build_assign(builder, text->rank, tt_build_text(builder));
    tt_build_thread(builder);
    if (!text->shape->counts[own]) return;
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(first)),
                  tt_gen_own(TT_SPACE_OUT, tt_gen_number(first)));
    tt_build_range(builder, text->shape->counts[own]);
}

void tt_gen_pairwise_alltoallv(const struct tt_shape *shape, struct tt_builder *builder)
{
    for (int rank = 0; rank < shape->nranks; rank++) {
        const struct text text = {builder, shape, rank};
        begin(&text);
        for (int k = 1; k < shape->nranks; k++)
            take_step(&text, &(struct step){k, false});
        tt_build_stop(builder);
    }
}

void tt_gen_bruck_alltoallv(const struct tt_shape *shape, struct tt_builder *builder)
{
    int n = shape->nranks;
    if (n > 3) builder->head.scratch = 2 * n * builder->head.nparts;
    for (int rank = 0; rank < n; rank++) {
        const struct text text = {builder, shape, rank};
        begin(&text);
        for (int bit = 1; bit < n; bit *= 2)
            take_step(&text, &(struct step){bit, true});
        tt_build_stop(builder);
    }
}
