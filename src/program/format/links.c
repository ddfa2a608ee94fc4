/* Which ranks a program exchanges slots with, which a planner must connect before it can run, and
 * how many slots those will be. */
#include "step.h"

#include <string.h>

struct visit { /* one pass of all threads */
    const struct tt_program *program;
    int rank;
    const struct tt_geometry *geometry;
    size_t slice_count;
    uint32_t pass;
    uint64_t times;                /* it stands for that many alike */
    uint8_t *links;                /* NULL: slots are counted */
    struct tt_slot_counts *counts; /* else NULL */
};

/* An empty chunk takes a slot as well. */
static uint64_t slots_of(const struct visit *visit, int chunk)
{
    struct tt_extent extent = tt_geometry_extent(visit->geometry, visit->pass, chunk);
    uint64_t slots = extent.count / visit->slice_count + (extent.count % visit->slice_count != 0);
    return (slots ? slots : 1) * visit->times;
}

static void visit_side(const struct visit *visit, const struct tt_stepper *stepper, bool sends)
{
    struct tt_side side = {.sends = sends};
    struct tt_location location;
    while (tt_stepper_location(stepper, &side, &location)) {
        if (!tt_location_is_slot(&location)) continue;
        if (visit->links) {
            visit->links[location.edge] |= sends ? TT_LINK_SENDS : TT_LINK_RECEIVES;
        } else if (sends) {
            visit->counts[location.edge].sends += slots_of(visit, location.chunk);
        } else {
            visit->counts[location.edge].receives += slots_of(visit, location.chunk);
        }
    }
}

static void visit_pass(const struct visit *visit)
{
    int nthreads = tt_program_nthreads(visit->program, visit->rank);
    for (int thread = 0; thread < nthreads; thread++) {
        struct tt_stepper stepper;
        tt_stepper_start(&stepper, visit->program, visit->rank, thread, 1);
        for (;; tt_stepper_done(&stepper)) {
            enum tt_next next = tt_stepper_next(&stepper);
            if (next == TT_NEXT_OVER) break;
            if (next != TT_NEXT_MOVE) continue;
            visit_side(visit, &stepper, false);
            visit_side(visit, &stepper, true);
        }
    }
}

void tt_program_links(const struct tt_program *program, int rank, uint8_t *links)
{
    struct visit visit = {.program = program, .rank = rank, .links = links};
    memset(links, 0, (size_t)program->nchannels * (size_t)program->nranks);
    visit_pass(&visit);
}

void tt_program_slots(const struct tt_program *program, int rank,
                      const struct tt_geometry *geometry, size_t slice_count,
                      struct tt_slot_counts *counts)
{
    struct visit visit = {.program = program,
                          .rank = rank,
                          .geometry = geometry,
                          .slice_count = slice_count,
                          .times = geometry->npasses - 1,
                          .counts = counts};
    memset(counts, 0, (size_t)program->nchannels * (size_t)program->nranks * sizeof(*counts));
    if (visit.times > 0) visit_pass(&visit); /* all but the last are alike */
    visit.pass = geometry->npasses - 1;
    visit.times = 1;
    visit_pass(&visit);
}
