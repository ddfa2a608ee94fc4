/* See misuse.h. */
#include "misuse.h"

#include "../check.h"
#include "random_program.h"

#include "program/format/step.h"

#include <string.h>

struct search {
    const struct schedules_set *set;
    struct schedules_where where;
    bool (*wrong)(const struct search *search, const struct tt_stepper *stepper);
};

static int chunks_of(const struct tt_program *program, const struct tt_location *location)
{
    int in = tt_program_in_chunks(program), out = tt_program_out_chunks(program);
    switch ((enum tt_space)location->space) {
    case TT_SPACE_IN: return in;
    case TT_SPACE_OUT: return out;
    case TT_SPACE_SCRATCH: return program->scratch;
    default: return in > out ? in : out;
    }
}

/* ---- of one transfer ---- */

static bool any_outside(const struct search *search, const struct tt_stepper *stepper)
{
    const struct tt_program *program = search->set->program;
    bool sized = false;
    for (int sends = 0; sends < 2; sends++) {
        struct tt_side side = {.sends = sends};
        struct tt_location location;
        while (tt_stepper_location(stepper, &side, &location)) {
            int bound = chunks_of(program, &location);
            if (location.chunk < 0 || location.chunk >= bound) return true;
            sized = sized || location.space != TT_SPACE_SCRATCH;
        }
    }
    struct tt_location any = {.space = TT_SPACE_SLOT};
    return !sized && tt_stepper_like(stepper) >= chunks_of(program, &any);
}

static bool unequal(const struct search *search, const struct tt_stepper *stepper)
{
    size_t count = SIZE_MAX;
    for (int sends = 0; sends < 2; sends++) {
        struct tt_side side = {.sends = sends};
        struct tt_location location;
        while (tt_stepper_location(stepper, &side, &location)) {
            if (location.space == TT_SPACE_SCRATCH) continue;
            size_t other =
                tt_geometry_extent(&search->set->geometry, stepper->pass, location.chunk).count;
            if (count != SIZE_MAX && other != count) return true;
            count = other;
        }
    }
    return false;
}

static bool own_edge(const struct search *search, const struct tt_stepper *stepper)
{
    (void)search;
    for (int sends = 0; sends < 2; sends++) {
        struct tt_side side = {.sends = sends};
        struct tt_location location;
        while (tt_stepper_location(stepper, &side, &location)) {
            if (location.space == TT_SPACE_SLOT && location.rank == stepper->rank) return true;
        }
    }
    return false;
}

static bool twice(const struct search *search, const struct tt_stepper *stepper)
{
    (void)search;
    for (int sends = 0; sends < 2; sends++) {
        bool seen[2 * RANDOM_RANKS] = {0};
        struct tt_side side = {.sends = sends};
        struct tt_location location;
        while (tt_stepper_location(stepper, &side, &location)) {
            if (!tt_location_is_slot(&location)) continue;
            if (seen[location.edge]) return true;
            seen[location.edge] = true;
        }
    }
    return false;
}

/* Some transfer of that instruction is wrong, in that pass. */
static bool found_in(const struct search *search, int thread)
{
    const struct schedules_where *where = &search->where;
    struct tt_stepper stepper;
    enum tt_next next;
    tt_stepper_start(&stepper, search->set->program, where->rank, thread,
                     search->set->geometry.npasses);
    for (; (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        bool here = next == TT_NEXT_MOVE && stepper.pc == where->pc && stepper.pass == where->pass;
        if (here && search->wrong(search, &stepper)) return true;
    }
    return false;
}

/* ---- of a rank's threads ---- */

static void use_edges(const struct tt_program *program, int rank, int thread, int users[2][64])
{
    struct tt_stepper stepper;
    enum tt_next next;
    tt_stepper_start(&stepper, program, rank, thread, 1);
    for (; (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        for (int sends = 0; next == TT_NEXT_MOVE && sends < 2; sends++) {
            struct tt_side side = {.sends = sends};
            struct tt_location location;
            while (tt_stepper_location(&stepper, &side, &location))
                if (tt_location_is_slot(&location)) users[sends][location.edge] |= 1 << thread;
        }
    }
}

static bool shared_end(const struct tt_program *program, int rank)
{
    int users[2][64] = {{0}};
    for (int t = 0; t < tt_program_nthreads(program, rank); t++)
        use_edges(program, rank, t, users);
    for (int k = 0; k < 2 * 64; k++) {
        int threads = users[k / 64][k % 64];
        if (threads & (threads - 1)) return true;
    }
    return false;
}

enum misuse misuse_find(const struct schedules_set *set, const char *fault)
{
    static const struct {
        const char *part;
        bool (*wrong)(const struct search *search, const struct tt_stepper *stepper);
    } rows[] = {
        {"there is no chunk", any_outside}, {"is outside of", any_outside},
        {"must be equally long", unequal},  {"as the other end of an edge", own_edge},
        {"twice in one move", twice},
    };
    struct search search = {.set = set};
    bool about = schedules_where(fault, &search.where);
    if (strstr(fault, "two threads"))
        return shared_end(set->program, search.where.rank) ? MISUSE_SHOWN : MISUSE_MISSED;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        if (strstr(fault, rows[k].part)) search.wrong = rows[k].wrong;
    }
    if (!about || !search.wrong) return MISUSE_NONE;
    for (int t = 0; t < tt_program_nthreads(set->program, search.where.rank); t++) {
        if (found_in(&search, t)) return MISUSE_SHOWN;
    }
    return MISUSE_MISSED;
}
