/* What a collective moves, the bounds that follow from the links alone, and whether a schedule of a
 * given size exists, as a formula.
 *
 * Variables: held[c][r][s], chunk c is at rank r after step s; sent[c][l][s], it goes over link l
 * in step s; longer[s][k], step s has more than k rounds. A chunk is at a rank after a step if it
 * was there before, or came over one link in the step, whose sender had it before. Over a link of
 * width w go at most w chunks a round, and the rounds of all steps are R. Of schedules that differ
 * in the names of equal chunks one is looked for. */
#include "search.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- goals ---- */

static void add_kind(struct search_goal *goal, int from, int block, uint32_t to)
{
    goal->kinds[goal->nkinds++] = (struct search_kind){from, block, to & ~(UINT32_C(1) << from)};
}

bool search_goal_make(enum tt_func func, int nranks, struct search_goal *goal)
{
    uint32_t all = UINT32_MAX >> (SEARCH_MOST_RANKS - nranks);
    *goal = (struct search_goal){.func = func, .nranks = nranks};
    goal->sums =
        func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCESCATTER || func == TT_FUNC_REDUCE;
    goal->gathers = !goal->sums || func == TT_FUNC_ALLREDUCE;
    switch (func) {
    case TT_FUNC_ALLREDUCE:
    case TT_FUNC_REDUCESCATTER:
    case TT_FUNC_ALLGATHER:
        for (int r = 0; r < nranks; r++)
            add_kind(goal, r, r, all);
        return true;
    case TT_FUNC_REDUCE:
    case TT_FUNC_BROADCAST: add_kind(goal, 0, 0, all); return true;
    case TT_FUNC_GATHER:
        for (int r = 1; r < nranks; r++)
            add_kind(goal, r, r, 1);
        return true;
    case TT_FUNC_SCATTER:
        for (int r = 1; r < nranks; r++)
            add_kind(goal, 0, r, UINT32_C(1) << r);
        return true;
    case TT_FUNC_ALLTOALL:
        for (int k = 0; k < nranks * nranks; k++) {
            int from = k / nranks, to = k % nranks;
            if (from != to) add_kind(goal, from, to, UINT32_C(1) << to);
        }
        return true;
    default: return false;
    }
}

void search_goal_exchange(int nranks, struct search_goal *goal)
{
    *goal = (struct search_goal){.func = TT_FUNC_ALLREDUCE, .exchanges = true, .nranks = nranks};
    goal->kinds[goal->nkinds++] =
        (struct search_kind){0, 0, UINT32_MAX >> (SEARCH_MOST_RANKS - nranks)};
}

/* ---- bounds ---- */

/* Chunks that can come to the ranks of `inside` in a round. */
static int capacity_into(const struct search_machine *machine, uint32_t inside)
{
    int links = 0, in = 0;
    for (int k = 0; k < machine->nlinks; k++) {
        const struct search_link *link = &machine->links[k];
        if (!(inside >> link->from & 1) && inside >> link->to & 1) links += link->width;
    }
    for (int r = 0; r < machine->nranks; r++)
        in += (int)(inside >> r & 1);
    int out = machine->nranks - in, ports = machine->port * (in < out ? in : out);
    return machine->port && ports < links ? ports : links;
}

/* Each kind of chunk that begins outside of a set of ranks and is wanted inside has to come in
 * once. */
static void raise_bound(const struct search_goal *goal, const struct search_machine *machine,
                        uint32_t inside, struct search_bounds *bounds)
{
    int wanted = 0, capacity = capacity_into(machine, inside);
    for (int k = 0; k < goal->nkinds; k++) {
        const struct search_kind *kind = &goal->kinds[k];
        wanted += !(inside >> kind->from & 1) && (inside & kind->to);
    }
    if (wanted * bounds->chunks <= bounds->rounds * capacity) return;
    int a = wanted, b = capacity;
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    bounds->rounds = wanted / a;
    bounds->chunks = capacity / a;
}

/* Of a large machine not all sets: the ranks near to one, and the others. */
static void raise_near(const struct search_goal *goal, const struct search_machine *machine,
                       uint32_t all, struct search_bounds *bounds)
{
    for (int k = 0; k < goal->nranks * goal->nranks; k++) {
        int rank = k / goal->nranks, most = k % goal->nranks;
        uint32_t near = 0;
        for (int r = 0; r < goal->nranks; r++)
            near |= (uint32_t)(machine->distance[rank][r] <= most) << r;
        if (near == all) continue;
        raise_bound(goal, machine, near, bounds);
        raise_bound(goal, machine, all & ~near, bounds);
    }
}

struct search_bounds search_bounds(const struct search_goal *goal,
                                   const struct search_machine *machine)
{
    enum { ALL_SETS = 16 }; /* ranks */
    struct search_bounds bounds = {.steps = 0, .rounds = 0, .chunks = 1};
    const uint32_t all = UINT32_MAX >> (SEARCH_MOST_RANKS - goal->nranks);
    for (int k = 0; k < goal->nkinds; k++) {
        for (int r = 0; r < goal->nranks; r++) {
            int distance = machine->distance[goal->kinds[k].from][r];
            if (goal->kinds[k].to >> r & 1 && distance > bounds.steps) bounds.steps = distance;
        }
    }
    for (uint32_t inside = 1; goal->nranks <= ALL_SETS && inside < all; inside++)
        raise_bound(goal, machine, inside, &bounds);
    if (goal->nranks > ALL_SETS) raise_near(goal, machine, all, &bounds);
    return bounds;
}

/* ---- the formula ---- */

struct encoding {
    const struct search_goal *goal;
    const struct search_machine *machine;
    const struct search_symmetry *symmetry; /* NULL: none */
    struct search_size size;
    struct search_formula formula;
    int nchunks;
    int always;    /* the literal that is true */
    int *held;     /* owned; [chunk][rank][step from 0]: a literal */
    int *sent;     /* owned; [chunk][link][step from 1]: a variable; 0: never */
    int *longer;   /* owned; [step from 1][k from 1]: more than k rounds */
    int *adds;     /* owned; [chunk][rank][step from 1]: a variable */
    int *literals; /* owned; for one clause or count */
    int *counts;   /* owned; what a count gives */
};

static int *held_at(const struct encoding *encoding, int chunk, int rank, int step)
{
    size_t row = (size_t)chunk * (size_t)encoding->goal->nranks + (size_t)rank;
    return &encoding->held[row * (size_t)(encoding->size.steps + 1) + (size_t)step];
}

static int *sent_at(const struct encoding *encoding, int chunk, int link, int step)
{
    size_t row = (size_t)chunk * (size_t)encoding->machine->nlinks + (size_t)link;
    return &encoding->sent[row * (size_t)encoding->size.steps + (size_t)step - 1];
}

static int *longer_at(const struct encoding *encoding, int step, int k)
{
    int spare = encoding->size.rounds - encoding->size.steps;
    return &encoding->longer[(step - 1) * spare + k - 1];
}

static const struct search_kind *kind_of(const struct encoding *encoding, int chunk)
{
    return &encoding->goal->kinds[chunk / encoding->size.chunks];
}

/* Whether a chunk that reaches `rank` after `step` can be of use to any rank. */
static bool is_useful(const struct encoding *encoding, int chunk, int rank, int step)
{
    uint32_t to = kind_of(encoding, chunk)->to;
    for (int r = 0; r < encoding->goal->nranks; r++) {
        bool near = step + encoding->machine->distance[rank][r] <= encoding->size.steps;
        if (to >> r & 1 && near) return true;
    }
    return false;
}

static int held_literal(struct encoding *encoding, int chunk, int rank, int step)
{
    const struct search_kind *kind = kind_of(encoding, chunk);
    bool wanted = step == encoding->size.steps && kind->to >> rank & 1;
    if (rank == kind->from || wanted) return encoding->always;
    if (encoding->machine->distance[kind->from][rank] > step) return -encoding->always;
    return search_variable(&encoding->formula);
}

/* How `chunk` comes to `rank` in `step`. */
static void add_arrivals(struct encoding *encoding, int chunk, int rank, int step)
{
    struct search_formula *formula = &encoding->formula;
    int before = *held_at(encoding, chunk, rank, step - 1);
    int after = *held_at(encoding, chunk, rank, step);
    int *routes = encoding->literals, nroutes = 2;
    bool useful = is_useful(encoding, chunk, rank, step);
    for (int l = 0; l < encoding->machine->nlinks; l++) {
        const struct search_link *link = &encoding->machine->links[l];
        int source = *held_at(encoding, chunk, link->from, step - 1);
        if (link->to != rank || source == -encoding->always || !useful) continue;
        int sent = search_variable(formula);
        *sent_at(encoding, chunk, l, step) = sent;
        search_clause(formula, (int[]){-sent, source}, 2);
        search_clause(formula, (int[]){-sent, -before}, 2);
        search_clause(formula, (int[]){-sent, after}, 2);
        for (int k = 2; k < nroutes; k++)
            search_clause(formula, (int[]){-sent, -routes[k]}, 2);
        routes[nroutes++] = sent;
    }
    search_clause(formula, (int[]){-before, after}, 2);
    routes[0] = -after;
    routes[1] = before;
    search_clause(formula, routes, nroutes);
}

/* At most `width` of the `count` literals in each round of `step`. */
static void add_limit(struct encoding *encoding, int step, int width, int count)
{
    struct search_formula *formula = &encoding->formula;
    int spare = encoding->size.rounds - encoding->size.steps, most = width * (1 + spare) + 1;
    int used = search_count(formula, encoding->literals, count, encoding->counts, most);
    if (used == most) search_clause(formula, (int[]){-encoding->counts[most - 1]}, 1);
    for (int k = 1; k <= spare && width * k < used; k++) {
        search_clause(formula, (int[]){-encoding->counts[width * k], *longer_at(encoding, step, k)},
                      2);
    }
}

/* All that links which `picks` says carry in `step`, to literals. */
static int collect(struct encoding *encoding, int step, const bool *picks)
{
    int count = 0;
    for (int l = 0; l < encoding->machine->nlinks; l++) {
        for (int c = 0; c < encoding->nchunks && picks[l]; c++) {
            int sent = *sent_at(encoding, c, l, step);
            if (sent) encoding->literals[count++] = sent;
        }
    }
    return count;
}

/* Whether a symmetry makes it an earlier link or rank, which carries as much. */
static bool is_image(const struct search_symmetry *symmetry, int link, int rank)
{
    bool earlier = false;
    for (int e = 0; symmetry && e < symmetry->group.count; e++) {
        earlier = earlier || (link >= 0 && symmetry->links[e][link] < link) ||
                  (rank >= 0 && symmetry->group.images[e][rank] < rank);
    }
    return earlier;
}

static void add_limits(struct encoding *encoding, int step)
{
    const struct search_machine *machine = encoding->machine;
    bool picks[SEARCH_MOST_LINKS] = {false};
    for (int l = 0; l < machine->nlinks; l++) {
        if (is_image(encoding->symmetry, l, -1)) continue;
        picks[l] = true;
        add_limit(encoding, step, machine->links[l].width, collect(encoding, step, picks));
        picks[l] = false;
    }
    for (int k = 0; machine->port && k < 2 * machine->nranks; k++) {
        if (is_image(encoding->symmetry, -1, k / 2)) continue;
        for (int l = 0; l < machine->nlinks; l++) {
            const struct search_link *link = &machine->links[l];
            picks[l] = (k % 2 ? link->from : link->to) == k / 2;
        }
        add_limit(encoding, step, machine->port, collect(encoding, step, picks));
    }
}

static void add_rounds(struct encoding *encoding)
{
    struct search_formula *formula = &encoding->formula;
    int spare = encoding->size.rounds - encoding->size.steps, count = 0;
    for (int s = 1; s <= encoding->size.steps; s++) {
        for (int k = 1; k <= spare; k++) {
            int longer = search_variable(formula);
            *longer_at(encoding, s, k) = longer;
            encoding->literals[count++] = longer;
            if (k > 1) search_clause(formula, (int[]){-longer, *longer_at(encoding, s, k - 1)}, 2);
        }
    }
    int used = search_count(formula, encoding->literals, count, encoding->counts, spare + 1);
    if (used == spare + 1) search_clause(formula, (int[]){-encoding->counts[spare]}, 1);
}

/* Chunks of one kind can be exchanged, so of each set of such schedules one is enough: that in
 * which what is held where and when, read as a binary number, does not grow from one chunk to the
 * next. `same` says that both are alike so far. */
static void add_order(struct encoding *encoding, int chunk, int next)
{
    struct search_formula *formula = &encoding->formula;
    int same = encoding->always;
    for (int k = 0; k < encoding->goal->nranks * (encoding->size.steps - 1); k++) {
        int step = 1 + k / encoding->goal->nranks, rank = k % encoding->goal->nranks;
        int a = *held_at(encoding, chunk, rank, step), b = *held_at(encoding, next, rank, step);
        if (a == b) continue; /* always, or never */
        int longer = search_variable(formula);
        search_clause(formula, (int[]){-same, a, -b}, 3);
        search_clause(formula, (int[]){-same, -a, -b, longer}, 4);
        search_clause(formula, (int[]){-same, a, b, longer}, 4);
        same = longer;
    }
}

/* Where and when a chunk of its own is held and sent. */
static void add_chunk(struct encoding *encoding, int chunk)
{
    int nranks = encoding->goal->nranks, steps = encoding->size.steps;
    for (int r = 0; r < nranks; r++) {
        for (int s = 0; s <= steps; s++)
            *held_at(encoding, chunk, r, s) = held_literal(encoding, chunk, r, s);
    }
    for (int r = 0; r < nranks; r++) {
        for (int s = 1; s <= steps && r != kind_of(encoding, chunk)->from; s++)
            add_arrivals(encoding, chunk, r, s);
    }
}

/* ---- exchanges ---- */

static int *adds_at(const struct encoding *encoding, int chunk, int rank, int step)
{
    size_t row = (size_t)chunk * (size_t)encoding->goal->nranks + (size_t)rank;
    return &encoding->adds[row * (size_t)encoding->size.steps + (size_t)step - 1];
}

/* A literal that is true where both are. */
static int both_of(struct encoding *encoding, int a, int b)
{
    struct search_formula *formula = &encoding->formula;
    if (a == -encoding->always || b == -encoding->always) return -encoding->always;
    if (a == encoding->always) return b;
    if (b == encoding->always) return a;
    int both = search_variable(formula);
    search_clause(formula, (int[]){-both, a}, 2);
    search_clause(formula, (int[]){-both, b}, 2);
    search_clause(formula, (int[]){both, -a, -b}, 3);
    return both;
}

/* After a step a rank's sum has a contribution where exactly one of those that make it has. */
static int mixed(struct encoding *encoding, int chunk, int rank, int step, int before,
                 const int *came)
{
    struct search_formula *formula = &encoding->formula;
    int *routes = encoding->literals, nroutes = 1;
    int kept = both_of(encoding, *adds_at(encoding, chunk, rank, step), before);
    if (kept != -encoding->always) routes[nroutes++] = kept;
    for (int l = 0; l < encoding->machine->nlinks; l++) {
        if (encoding->machine->links[l].to != rank) continue;
        int sent = both_of(encoding, *sent_at(encoding, chunk, l, step), came[l]);
        if (sent != -encoding->always) routes[nroutes++] = sent;
    }
    if (nroutes == 1) return -encoding->always;
    int after = search_variable(formula);
    for (int k = 1; k < nroutes; k++) {
        search_clause(formula, (int[]){-routes[k], after}, 2);
        for (int j = 1; j < k; j++)
            search_clause(formula, (int[]){-routes[k], -routes[j]}, 2);
    }
    routes[0] = -after;
    search_clause(formula, routes, nroutes);
    return after;
}

/* held[rank][step] of one contribution of a chunk, to the end where all ranks have it. */
static void add_contribution(struct encoding *encoding, int chunk, int of)
{
    int nranks = encoding->goal->nranks, came[SEARCH_MOST_LINKS] = {0};
    for (int r = 0; r < nranks; r++)
        *held_at(encoding, chunk, r, 0) = r == of ? encoding->always : -encoding->always;
    for (int s = 1; s <= encoding->size.steps; s++) {
        for (int l = 0; l < encoding->machine->nlinks; l++)
            came[l] = *held_at(encoding, chunk, encoding->machine->links[l].from, s - 1);
        for (int r = 0; r < nranks; r++) {
            *held_at(encoding, chunk, r, s) =
                mixed(encoding, chunk, r, s, *held_at(encoding, chunk, r, s - 1), came);
        }
    }
    for (int r = 0; r < nranks; r++)
        search_clause(&encoding->formula, held_at(encoding, chunk, r, encoding->size.steps), 1);
}

/* What a rank has it loses only to what comes. */
static void add_keeping(struct encoding *encoding, int chunk, int rank, int step)
{
    int *routes = encoding->literals, nroutes = 0;
    routes[nroutes++] = *adds_at(encoding, chunk, rank, step);
    for (int l = 0; l < encoding->machine->nlinks; l++) {
        if (encoding->machine->links[l].to == rank)
            routes[nroutes++] = *sent_at(encoding, chunk, l, step);
    }
    search_clause(&encoding->formula, routes, nroutes);
}

static void add_exchanges(struct encoding *encoding, int chunk)
{
    for (int s = 1; s <= encoding->size.steps; s++) {
        for (int r = 0; r < encoding->goal->nranks; r++)
            *adds_at(encoding, chunk, r, s) = search_variable(&encoding->formula);
        for (int l = 0; l < encoding->machine->nlinks; l++)
            *sent_at(encoding, chunk, l, s) = search_variable(&encoding->formula);
        for (int r = 0; r < encoding->goal->nranks; r++)
            add_keeping(encoding, chunk, r, s);
    }
    for (int r = 0; r < encoding->goal->nranks; r++)
        add_contribution(encoding, chunk, r);
}

/* What a chunk does is an earlier one's, seen through a symmetry. False: it is the first such. */
static bool repeat_chunk(struct encoding *encoding, int chunk)
{
    const struct search_symmetry *symmetry = encoding->symmetry;
    int each = encoding->size.chunks, kind = chunk / each, first = kind, by = 0, turn = 0;
    if (symmetry && symmetry->turns) {
        by = turn = chunk % each % symmetry->group.count;
        for (first = 0; symmetry->kinds[by][first] != kind; first++) {
        }
    }
    for (int e = 0; symmetry && !symmetry->turns && e < symmetry->group.count; e++) {
        for (int k = 0; k < first; k++) {
            if (symmetry->kinds[e][k] != kind) continue;
            first = k;
            by = e;
        }
    }
    if (by == 0) return false;
    int of = first * each + chunk % each - turn;
    for (int s = 1; s <= encoding->size.steps; s++) {
        for (int l = 0; l < encoding->machine->nlinks; l++) {
            *sent_at(encoding, chunk, symmetry->links[by][l], s) = *sent_at(encoding, of, l, s);
        }
        for (int r = 0; r < encoding->goal->nranks; r++) {
            int image = symmetry->group.images[by][r];
            *adds_at(encoding, chunk, image, s) = *adds_at(encoding, of, r, s);
        }
    }
    return true;
}

/* Chunks that symmetries make of each of a kind. */
static int turns_of(const struct encoding *encoding)
{
    const struct search_symmetry *symmetry = encoding->symmetry;
    return symmetry && symmetry->turns ? symmetry->group.count : 1;
}

/* What chunks do, those first of which symmetries make others. */
static void add_chunks(struct encoding *encoding)
{
    int turns = turns_of(encoding);
    for (int c = 0; c < encoding->nchunks; c++) {
        bool before = c % encoding->size.chunks >= turns;
        if (c % encoding->size.chunks % turns > 0) continue;
        if (turns == 1 && repeat_chunk(encoding, c)) continue;
        if (encoding->goal->exchanges) {
            add_exchanges(encoding, c);
        } else {
            add_chunk(encoding, c);
            if (before) add_order(encoding, c - turns, c);
        }
    }
    for (int c = 0; c < encoding->nchunks && turns > 1; c++)
        (void)repeat_chunk(encoding, c);
}

static bool encode(struct encoding *encoding)
{
    const struct search_size *size = &encoding->size;
    size_t nchunks = (size_t)encoding->nchunks, nlinks = (size_t)encoding->machine->nlinks;
    size_t nranks = (size_t)encoding->goal->nranks, steps = (size_t)size->steps;
    size_t spare = (size_t)(size->rounds - size->steps);
    encoding->held = tt_calloc(nchunks * nranks * (steps + 1), sizeof(int));
    encoding->sent = tt_calloc(nchunks * nlinks * steps, sizeof(int));
    encoding->adds = tt_calloc(nchunks * nranks * steps, sizeof(int));
    encoding->longer = tt_calloc(steps * spare + 1, sizeof(int));
    encoding->literals = tt_calloc(nchunks * nlinks + steps * spare + 2, sizeof(int));
    encoding->counts = tt_calloc((spare + 1) * 64 + nchunks * nlinks + 2, sizeof(int));
    if (!encoding->held || !encoding->sent || !encoding->adds || !encoding->longer ||
        !encoding->literals || !encoding->counts)
        return false;
    encoding->always = search_variable(&encoding->formula);
    search_clause(&encoding->formula, &encoding->always, 1);
    add_rounds(encoding);
    add_chunks(encoding);
    for (int s = 1; s <= size->steps; s++)
        add_limits(encoding, s);
    return true;
}

static void encoding_fini(struct encoding *encoding)
{
    free(encoding->held);
    free(encoding->sent);
    free(encoding->adds);
    free(encoding->longer);
    free(encoding->literals);
    free(encoding->counts);
    search_formula_fini(&encoding->formula);
}

/* ---- the answer ---- */

/* Drop what no rank needs: arrivals at ranks that neither want the chunk nor pass it on. */
static int drop_useless(const struct search_goal *goal, struct search_move *moves, int nmoves)
{
    int kept = nmoves;
    for (int k = nmoves - 1; k >= 0; k--) {
        const struct search_move move = moves[k];
        bool used = goal->kinds[move.kind].to >> move.to & 1;
        for (int later = k + 1; later < kept && !used; later++) {
            const struct search_move *other = &moves[later];
            used = other->kind == move.kind && other->chunk == move.chunk && other->from == move.to;
        }
        if (used) continue;
        memmove(moves + k, moves + k + 1, (size_t)(kept - k - 1) * sizeof(*moves));
        kept--;
    }
    return kept;
}

static bool decode(const struct encoding *encoding, const char *values,
                   struct search_schedule *schedule_out)
{
    int nlinks = encoding->machine->nlinks, count = 0;
    int most = encoding->nchunks *
               (encoding->goal->exchanges ? nlinks * encoding->size.steps : encoding->goal->nranks);
    struct search_move *moves = tt_calloc((size_t)most, sizeof(*moves));
    for (int s = 1; moves && s <= encoding->size.steps; s++) {
        for (int k = 0; k < encoding->nchunks * nlinks && count < most; k++) {
            int c = k / nlinks, sent = *sent_at(encoding, c, k % nlinks, s);
            const struct search_link *link = &encoding->machine->links[k % nlinks];
            if (!sent || !values[sent]) continue;
            moves[count++] = (struct search_move){.kind = c / encoding->size.chunks,
                                                  .chunk = c % encoding->size.chunks,
                                                  .from = link->from,
                                                  .to = link->to,
                                                  .step = s};
            if (encoding->goal->exchanges)
                moves[count - 1].adds = values[*adds_at(encoding, c, link->to, s)];
        }
    }
    if (moves) count = drop_useless(encoding->goal, moves, count);
    *schedule_out = (struct search_schedule){moves, count};
    return moves;
}

enum search_answer search_schedule(const struct search_question *question,
                                   struct search_solver *solver, double limit_sec,
                                   struct search_schedule *schedule_out)
{
    struct encoding encoding = {.goal = question->goal,
                                .machine = question->machine,
                                .symmetry = question->symmetry,
                                .size = question->size,
                                .nchunks = question->goal->nkinds * question->size.chunks};
    enum search_answer answer = SEARCH_BROKEN;
    char *values = NULL;
    bool room = encode(&encoding);
    if (room) answer = search_solve(solver, &encoding.formula, limit_sec, &values);
    if (answer == SEARCH_FOUND) room = decode(&encoding, values, schedule_out);
    if (!room) {
        (void)fprintf(stderr, "tutti program search: out of memory\n");
        answer = SEARCH_BROKEN;
    }
    free(values);
    encoding_fini(&encoding);
    return answer;
}
