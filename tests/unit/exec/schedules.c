/* See schedules.h. A step is one slice of a transfer, as in the executor: all its slots are there
 * before anything moves. The k-th access of a thread is the same in every schedule, since nothing
 * that a thread does depends on data. */
#include "schedules.h"

#include "../check.h"

#include "base/mem.h"
#include "program/format/step.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_THREADS = 64,
    MOST_EDGES = 2 * 16 * 16,
    MOST_LOCATIONS = 64,
    MOST_SLOTS = 256,
};

struct element { /* the first of a slice: what is touched together */
    int rank, region;
    size_t first;
};

struct access {
    struct element element;
    bool write, early; /* early: of a rank that the own one had not seen enter */
    int pc;
    uint32_t pass;
    long time;
};

struct thread {
    int rank;
    struct tt_stepper stepper;
    size_t slice;
    bool over, broken; /* broken: names what is not there; goes no further */
    bool begun;        /* the transfer that it stands at: it has looked up the addresses */
    bool saw[16];      /* whom its rank had seen enter then */
    struct access *accesses;
    size_t count, capacity;
};

struct edge {
    uint32_t head, tail;
    bool refers[MOST_SLOTS];
    struct element element[MOST_SLOTS];
    uint64_t senders, receivers; /* threads, as bits */
};

struct run {
    const struct schedules_set *set;
    struct thread threads[MOST_THREADS];
    int first_thread[17]; /* by rank */
    struct edge edges[MOST_EDGES];
    bool entered[16], left[16];
    bool seen[16][16];               /* by rank: whom it saw enter */
    uint64_t enters[16], leaves[16]; /* by rank: the threads that do it */
    struct tt_location src[MOST_LOCATIONS], dst[MOST_LOCATIONS];
    long time;
    long over_at[16]; /* by rank: when its last thread was over; 0: not yet */
};

/* ---- where things are ---- */

static struct edge *edge_at(struct run *run, int rank, const struct tt_location *location,
                            bool sends)
{
    int n = run->set->program->nranks, channel = location->edge / n;
    int from = sends ? rank : location->rank, to = sends ? location->rank : rank;
    return &run->edges[(channel * n + from) * n + to];
}

/* In place the smaller buffer is a block of the larger one. */
static struct element element_of(const struct run *run, const struct thread *thread,
                                 const struct tt_location *location)
{
    const struct schedules_set *set = run->set;
    const struct tt_program *program = set->program;
    uint32_t pass = thread->stepper.pass;
    struct element element = {.rank = location->rank, .region = location->space};
    if (location->space == TT_SPACE_SCRATCH) {
        element.first = tt_geometry_scratch(&set->geometry, pass, location->chunk).first;
    } else {
        bool larger = location->space == TT_SPACE_IN ? program->in_blocks : program->out_blocks;
        element.first = tt_geometry_extent(&set->geometry, pass, location->chunk).first;
        if (set->in_place) element.region = TT_SPACE_IN;
        if (set->in_place && program->in_blocks != program->out_blocks && !larger)
            element.first += (size_t)location->rank * set->geometry.block_stride;
    }
    element.first += thread->slice * set->slice;
    return element;
}

static bool same(struct element a, struct element b)
{
    return a.rank == b.rank && a.region == b.region && a.first == b.first;
}

static void note(struct run *run, struct thread *thread, struct element element, bool write)
{
    if (thread->count == thread->capacity) {
        thread->capacity = 2 * thread->capacity + 16;
        thread->accesses = realloc(thread->accesses, thread->capacity * sizeof(struct access));
        assert_non_null(thread->accesses);
    }
    bool foreign = element.rank != thread->rank;
    thread->accesses[thread->count++] = (struct access){
        .element = element,
        .write = write,
        .early = foreign && !thread->saw[element.rank],
        .pc = thread->stepper.pc,
        .pass = thread->stepper.pass,
        .time = run->time,
    };
}

/* ---- one step ---- */

/* How many elements each place means: those of the first that is not scratch. False: a place is not
 * there. */
static bool measure(const struct run *run, const struct thread *thread, const struct tt_move *move,
                    size_t *count_out)
{
    const struct tt_program *program = run->set->program;
    bool sized = false;
    *count_out = tt_geometry_scratch(&run->set->geometry, thread->stepper.pass, 0).count;
    for (int k = 0; k < move->nsrcs + move->ndsts; k++) {
        const struct tt_location *location =
            k < move->nsrcs ? &move->src[k] : &move->dst[k - move->nsrcs];
        int in = tt_program_in_chunks(program), out = tt_program_out_chunks(program);
        int bound = in > out ? in : out;
        if (location->space == TT_SPACE_SCRATCH) bound = program->scratch;
        if (location->chunk < 0 || location->chunk >= bound) return false;
        if (location->space == TT_SPACE_SLOT && location->rank == thread->rank) return false;
        if (sized || location->space == TT_SPACE_SCRATCH) continue;
        *count_out =
            tt_geometry_extent(&run->set->geometry, thread->stepper.pass, location->chunk).count;
        sized = true;
    }
    return true;
}

static bool slots_ready(struct run *run, const struct thread *thread, const struct tt_move *move)
{
    for (int k = 0; k < move->nsrcs; k++) {
        if (move->src[k].space != TT_SPACE_SLOT) continue;
        const struct edge *edge = edge_at(run, thread->rank, &move->src[k], false);
        if (edge->head == edge->tail) return false;
    }
    for (int k = 0; k < move->ndsts; k++) {
        if (move->dst[k].space != TT_SPACE_SLOT) continue;
        const struct edge *edge = edge_at(run, thread->rank, &move->dst[k], true);
        if (edge->tail - edge->head >= (uint32_t)run->set->nslots) return false;
    }
    return true;
}

/* What the slots of the transfer may refer to; NULL: they hold copies. */
static const struct tt_location *referred(const struct run *run, const struct thread *thread,
                                          const struct tt_move *move)
{
    int refs = run->set->refs[thread->rank][thread->stepper.pc];
    if (run->set->in_place) refs >>= TT_REF_IN_PLACE_;
    bool one = move->nsrcs == 1 && move->src[0].space != TT_SPACE_SLOT;
    if (one && (refs & TT_REF_SRC)) return &move->src[0];
    for (int k = 0; k < move->ndsts && (refs & TT_REF_DST); k++) {
        if (move->dst[k].space != TT_SPACE_SLOT) return &move->dst[k];
    }
    return NULL;
}

static void take(struct run *run, struct thread *thread, const struct tt_move *move, bool moves)
{
    for (int k = 0; k < move->nsrcs; k++) {
        const struct tt_location *location = &move->src[k];
        if (location->space != TT_SPACE_SLOT) {
            if (moves) note(run, thread, element_of(run, thread, location), false);
            continue;
        }
        struct edge *edge = edge_at(run, thread->rank, location, false);
        uint32_t slot = edge->head % MOST_SLOTS;
        if (edge->refers[slot] && moves) /* reads where the sender's memory lies */
            note(run, thread, edge->element[slot], false);
    }
}

static void give(struct run *run, struct thread *thread, const struct tt_move *move, bool moves)
{
    bool copies = !tt_stepper_insn(&thread->stepper)->flags && move->nsrcs == 1 &&
                  move->src[0].space != TT_SPACE_SLOT;
    const struct tt_location *memory = moves ? referred(run, thread, move) : NULL;
    for (int k = 0; k < move->ndsts && moves; k++) {
        const struct tt_location *location = &move->dst[k];
        if (location->space == TT_SPACE_SLOT) continue;
        struct element element = element_of(run, thread, location);
        bool onto_itself = copies && same(element, element_of(run, thread, &move->src[0]));
        if (!onto_itself) note(run, thread, element, true);
    }
    for (int k = 0; k < move->ndsts; k++) {
        if (move->dst[k].space != TT_SPACE_SLOT) continue;
        struct edge *edge = edge_at(run, thread->rank, &move->dst[k], true);
        uint32_t slot = edge->tail++ % MOST_SLOTS;
        edge->refers[slot] = memory != NULL;
        if (memory) edge->element[slot] = element_of(run, thread, memory);
    }
    for (int k = 0; k < move->nsrcs; k++) {
        if (move->src[k].space == TT_SPACE_SLOT)
            edge_at(run, thread->rank, &move->src[k], false)->head++;
    }
}

/* One slice; true: it moved. */
static bool step_move(struct run *run, struct thread *thread)
{
    struct tt_move move = {.src = run->src, .dst = run->dst};
    size_t count;
    tt_stepper_move(&thread->stepper, &move);
    if (!thread->begun) memcpy(thread->saw, run->seen[thread->rank], sizeof(thread->saw));
    thread->begun = true;
    thread->broken = !measure(run, thread, &move, &count);
    if (thread->broken || !slots_ready(run, thread, &move)) return false;
    bool moves = count > 0 && move.nsrcs > 0 && move.ndsts > 0;
    take(run, thread, &move, moves);
    give(run, thread, &move, moves);
    thread->slice++;
    if (thread->slice * run->set->slice < count) return true;
    thread->slice = 0;
    thread->begun = false;
    tt_stepper_done(&thread->stepper);
    return true;
}

static bool all_have(const struct run *run, const bool *flags, int only)
{
    for (int r = 0; r < run->set->program->nranks; r++) {
        if ((only < 0 || only == r) && !flags[r]) return false;
    }
    return true;
}

static bool step_barrier(struct run *run, struct thread *thread, enum tt_next next)
{
    const struct tt_insn *insn = tt_stepper_insn(&thread->stepper);
    bool *mine = next == TT_NEXT_ENTER ? &run->entered[thread->rank] : &run->left[thread->rank];
    bool said = !*mine, through;
    *mine = true;
    if (said) return true; /* to be seen is one step, to see the others the next */
    if (next == TT_NEXT_ENTER) {
        through = all_have(run, run->entered, insn->arg);
        for (int r = 0; r < run->set->program->nranks && through; r++)
            run->seen[thread->rank][r] |= insn->arg < 0 || insn->arg == r;
    } else {
        through = (insn->flags & TT_MOVE_NO_WAIT) || all_have(run, run->left, -1);
    }
    if (through) tt_stepper_done(&thread->stepper);
    return through;
}

static void note_end(struct run *run, int rank)
{
    bool over = true;
    for (int t = run->first_thread[rank]; t < run->first_thread[rank + 1]; t++)
        over = over && run->threads[t].over;
    if (over) run->over_at[rank] = run->time;
}

/* True: the thread came further. */
static bool step(struct run *run, int t)
{
    struct thread *thread = &run->threads[t];
    bool moved = false;
    if (thread->over || thread->broken) return false;
    run->time++;
    enum tt_next next = tt_stepper_next(&thread->stepper);
    if (next == TT_NEXT_MOVE) {
        moved = step_move(run, thread);
    } else if (next == TT_NEXT_ENTER || next == TT_NEXT_LEAVE) {
        moved = step_barrier(run, thread, next);
    } else if (next == TT_NEXT_AWAIT) {
        int other = run->first_thread[thread->rank] + tt_stepper_insn(&thread->stepper)->thread;
        moved = tt_stepper_awaited(&thread->stepper, &run->threads[other].stepper);
        if (moved) tt_stepper_done(&thread->stepper);
    } else {
        thread->over = moved = true;
        note_end(run, thread->rank);
    }
    return moved;
}

/* ---- schedules ---- */

/* Which threads use which edges, enter and leave. */
static void survey_side(struct run *run, int t, const struct tt_stepper *stepper, bool sends)
{
    struct tt_side side = {.sends = sends};
    struct tt_location location;
    int rank = run->threads[t].rank;
    while (tt_stepper_location(stepper, &side, &location)) {
        if (location.space != TT_SPACE_SLOT || location.rank == rank) continue;
        struct edge *edge = edge_at(run, rank, &location, sends);
        *(sends ? &edge->senders : &edge->receivers) |= (uint64_t)1 << t;
    }
}

static void survey(struct run *run, int t)
{
    const struct thread *thread = &run->threads[t];
    struct tt_stepper stepper = thread->stepper;
    enum tt_next next;
    for (; (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        if (next == TT_NEXT_ENTER) run->enters[thread->rank] |= (uint64_t)1 << t;
        if (next == TT_NEXT_LEAVE) run->leaves[thread->rank] |= (uint64_t)1 << t;
        if (next != TT_NEXT_MOVE) continue;
        survey_side(run, t, &stepper, false);
        survey_side(run, t, &stepper, true);
    }
}

static struct run *begin(const struct schedules_set *set)
{
    struct run *run = tt_calloc(1, sizeof(*run));
    assert_non_null(run);
    run->set = set;
    assert_true(set->nslots <= MOST_SLOTS);
    int n = set->program->nranks, count = 0;
    for (int r = 0; r < n; r++) {
        run->first_thread[r] = count;
        assert_true(tt_stepper_locations(set->program, r) <= MOST_LOCATIONS);
        for (int t = 0; t < tt_program_nthreads(set->program, r); t++, count++) {
            assert_true(count < MOST_THREADS);
            run->threads[count].rank = r;
            tt_stepper_start(&run->threads[count].stepper, set->program, r, t,
                             set->geometry.npasses);
        }
    }
    run->first_thread[n] = count;
    for (int t = 0; t < count; t++)
        survey(run, t);
    return run;
}

static void end(struct run *run)
{
    for (int t = 0; t < MOST_THREADS; t++)
        free(run->threads[t].accesses);
    free(run);
}

static int thread_count(const struct run *run)
{
    return run->first_thread[run->set->program->nranks];
}

/* All threads but that one (-1: all) as far as they go. */
static bool run_others(struct run *run, int but)
{
    bool any = false;
    for (bool moved = true; moved;) {
        moved = false;
        for (int t = 0; t < thread_count(run); t++) {
            while (t != but && step(run, t))
                moved = any = true;
        }
    }
    return any;
}

/* Threads that could let that one go on, as bits: of one side of its move. */
static uint64_t awaited_side(struct run *run, const struct thread *thread, bool sends)
{
    struct tt_side side = {.sends = sends};
    struct tt_location location;
    uint64_t threads = 0;
    while (tt_stepper_location(&thread->stepper, &side, &location)) {
        if (location.space != TT_SPACE_SLOT) continue;
        const struct edge *edge = edge_at(run, thread->rank, &location, sends);
        bool full = edge->tail - edge->head >= (uint32_t)run->set->nslots;
        if (sends && full) threads |= edge->receivers;
        if (!sends && edge->head == edge->tail) threads |= edge->senders;
    }
    return threads;
}

static uint64_t awaited_by(struct run *run, int t)
{
    struct thread *thread = &run->threads[t];
    uint64_t threads = 0;
    if (thread->over || thread->broken) return 0;
    enum tt_next next = tt_stepper_next(&thread->stepper);
    if (next == TT_NEXT_MOVE)
        return awaited_side(run, thread, false) | awaited_side(run, thread, true);
    if (next == TT_NEXT_AWAIT) {
        int other = run->first_thread[thread->rank] + tt_stepper_insn(&thread->stepper)->thread;
        return (uint64_t)1 << other;
    }
    for (int r = 0; r < run->set->program->nranks; r++) {
        if (next == TT_NEXT_ENTER && !run->entered[r]) threads |= run->enters[r];
        if (next == TT_NEXT_LEAVE && !run->left[r]) threads |= run->leaves[r];
    }
    return threads;
}

/* One step of a thread for which that one waits, directly or not. */
static bool serve(struct run *run, int t, uint64_t *asked)
{
    uint64_t threads = awaited_by(run, t);
    for (int u = 0; u < thread_count(run); u++) {
        uint64_t bit = (uint64_t)1 << u;
        if (!(threads & bit) || (*asked & bit)) continue;
        *asked |= bit;
        if (step(run, u) || serve(run, u, asked)) return true;
    }
    return false;
}

/* That thread first: the others do only what it waits for. */
static void run_eager(struct run *run, int t)
{
    uint64_t asked;
    do {
        while (step(run, t)) {
        }
        asked = (uint64_t)1 << t;
    } while (serve(run, t, &asked));
}

/* That thread last: it takes a step when no other one can. */
static void run_lazy(struct run *run, int t)
{
    do {
        run_others(run, t);
    } while (step(run, t));
    run_others(run, -1);
}

/* ---- what is asked ---- */

static bool number_after(const char **text, const char *word, int *number_out)
{
    const char *at = strstr(*text, word);
    if (!at) return false;
    char *end;
    *number_out = (int)strtol(at + strlen(word), &end, 10);
    *text = end;
    return true;
}

bool schedules_where(const char *fault, struct schedules_where *where_out)
{
    int pass = 0;
    *where_out = (struct schedules_where){0, 0, 0};
    bool rank = number_after(&fault, "rank ", &where_out->rank);
    bool all = rank && number_after(&fault, "insn ", &where_out->pc) &&
               number_after(&fault, "pass ", &pass);
    where_out->pass = (uint32_t)pass;
    return all;
}

static int thread_of(const struct run *run, int rank, int pc)
{
    int t = run->first_thread[rank];
    while (t + 1 < run->first_thread[rank + 1] && run->threads[t + 1].stepper.first <= pc)
        t++;
    return t;
}

/* The k-th access of thread t and the j-th of u come in different orders. */
static bool flips(const struct run *a, const struct run *b, const int at[2], const size_t number[2])
{
    const struct thread *x[2] = {&a->threads[at[0]], &b->threads[at[0]]};
    const struct thread *y[2] = {&a->threads[at[1]], &b->threads[at[1]]};
    if (number[0] >= x[1]->count || number[1] >= y[1]->count) return false;
    bool first = x[0]->accesses[number[0]].time < y[0]->accesses[number[1]].time;
    bool second = x[1]->accesses[number[0]].time < y[1]->accesses[number[1]].time;
    return first != second;
}

/* The k-th access of thread t comes before and after one of u's that meets it. */
static bool flips_with(const struct run *a, const struct run *b, int t, size_t k, int u)
{
    const struct access *own = &a->threads[t].accesses[k];
    for (size_t j = 0; j < a->threads[u].count; j++) {
        const struct access *other = &a->threads[u].accesses[j];
        bool meet = (own->write || other->write) && same(own->element, other->element);
        if (meet && flips(a, b, (int[]){t, u}, (size_t[]){k, j})) return true;
    }
    return false;
}

static bool any_flip(const struct run *a, const struct run *b, int t, int pc, uint32_t pass)
{
    for (size_t k = 0; k < a->threads[t].count; k++) {
        const struct access *own = &a->threads[t].accesses[k];
        if (own->pc != pc || own->pass != pass) continue;
        for (int u = 0; u < thread_count(a); u++) {
            if (u != t && flips_with(a, b, t, k, u)) return true;
        }
    }
    return false;
}

bool schedules_flip(const struct schedules_set *set, int rank, int pc, uint32_t pass)
{
    struct run *eager = begin(set), *lazy = begin(set);
    int t = thread_of(eager, rank, pc);
    run_eager(eager, t);
    run_others(eager, -1);
    run_lazy(lazy, t);
    bool flip = any_flip(eager, lazy, t, pc, pass);
    end(eager);
    end(lazy);
    return flip;
}

bool schedules_touch_early(const struct schedules_set *set, int rank, int pc, uint32_t pass)
{
    struct run *run = begin(set);
    int t = thread_of(run, rank, pc);
    bool early = false;
    run_eager(run, t);
    for (size_t k = 0; k < run->threads[t].count; k++) {
        const struct access *access = &run->threads[t].accesses[k];
        early = early || (access->pc == pc && access->pass == pass && access->early);
    }
    end(run);
    return early;
}

bool schedules_touch_late(const struct schedules_set *set, int rank)
{
    struct run *run = begin(set);
    bool late = false;
    for (int t = run->first_thread[rank]; t < run->first_thread[rank + 1]; t++)
        run_eager(run, t);
    run_others(run, -1);
    for (int t = 0; t < thread_count(run); t++) {
        const struct thread *thread = &run->threads[t];
        for (size_t k = 0; k < thread->count && thread->rank != rank; k++) {
            const struct access *access = &thread->accesses[k];
            late = late || (access->element.rank == rank && run->over_at[rank] &&
                            access->time > run->over_at[rank]);
        }
    }
    end(run);
    return late;
}

bool schedules_end(const struct schedules_set *set)
{
    struct run *run = begin(set);
    bool over = true;
    run_others(run, -1);
    for (int t = 0; t < thread_count(run); t++)
        over = over && run->threads[t].over;
    end(run);
    return over;
}
