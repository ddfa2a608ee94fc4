/* Checks before a program set is executed: after them, execution needs to look at values and order
 * only. */
#include "verify_state.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

bool tt_verify_wellformed(struct tt_verify *verify)
{
    const struct tt_program *model = verify->programs[0];
    char fault[160];
    for (int rank = 0; rank < verify->nranks; rank++) {
        const struct tt_program *program = verify->programs[rank];
        if (rank > 0 && program == verify->programs[rank - 1]) continue;
        if (!tt_program_check(program, program->bytes, fault, sizeof(fault)))
            return tt_verify_fail(verify, NULL, "rank %d: %s", rank, fault);
        if (program->nranks != verify->nranks) {
            return tt_verify_fail(verify, NULL, "rank %d runs a program of %d ranks", rank,
                                  program->nranks);
        }
        bool same_cut =
            program->nparts == model->nparts && program->in_blocks == model->in_blocks &&
            program->out_blocks == model->out_blocks &&
            program->whole_window == model->whole_window && program->scratch == model->scratch &&
            program->nchannels == model->nchannels &&
            program->needs_barrier == model->needs_barrier;
        if (!same_cut) {
            return tt_verify_fail(verify, NULL, "rank %d cuts the data differently than rank 0",
                                  rank);
        }
    }
    return true;
}

/* The k-th chunk in the order in which chunks must follow each other in the buffer. */
static struct tt_extent nth_extent(const struct tt_geometry *geometry, size_t k)
{
    size_t nparts = (size_t)geometry->nparts;
    return tt_geometry_extent(geometry, (uint32_t)(k / nparts), (int)(k % nparts));
}

bool tt_verify_cover(struct tt_verify *verify)
{
    const struct tt_geometry *geometry = &verify->geometry;
    size_t at = geometry->lo;
    for (size_t k = 0; k < geometry->npasses * (size_t)geometry->nparts; k++) {
        struct tt_extent extent = nth_extent(geometry, k);
        bool aligned = (extent.first - geometry->lo) % geometry->grain == 0;
        if (extent.first != at || (extent.count && !aligned)) {
            return tt_verify_fail(verify, NULL, "chunk %zu begins at element %zu, not at %zu", k,
                                  extent.first, at);
        }
        at += extent.count;
    }
    if (at == geometry->hi) return true;
    return tt_verify_fail(verify, NULL, "chunks end at element %zu, not at %zu", at, geometry->hi);
}

/* ---- ends of edges ---- */

/* One side of the transfer that the cursor stands at; `users`: 1 + the thread, per edge. */
static bool claim_ends(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                       int32_t *users, bool sends)
{
    struct tt_side side = {.sends = sends};
    struct tt_location location;
    while (tt_stepper_location(&cursor->stepper, &side, &location)) {
        if (!tt_location_is_slot(&location)) continue;
        int32_t *user = &users[location.edge];
        if (*user && *user != 1 + cursor->thread) {
            return tt_verify_fail(verify, cursor, "two threads %s rank %d on channel %d",
                                  sends ? "send to" : "receive from", location.rank,
                                  location.edge / verify->nranks);
        }
        *user = 1 + cursor->thread;
    }
    return true;
}

/* All passes use the same edges. */
static bool claim_of_thread(struct tt_verify *verify, int rank, int thread, int32_t *sent_by,
                            int32_t *received_by)
{
    struct tt_verify_cursor cursor = {.rank = rank, .thread = thread};
    cursor.program = verify->programs[rank];
    tt_stepper_start(&cursor.stepper, cursor.program, rank, thread, 1);
    for (;; tt_stepper_done(&cursor.stepper)) {
        enum tt_next next = tt_stepper_next(&cursor.stepper);
        if (next == TT_NEXT_OVER) return true;
        if (next != TT_NEXT_MOVE) continue;
        if (!claim_ends(verify, &cursor, received_by, false)) return false;
        if (!claim_ends(verify, &cursor, sent_by, true)) return false;
    }
}

bool tt_verify_ends(struct tt_verify *verify)
{
    size_t nedges = (size_t)verify->nchannels * (size_t)verify->nranks;
    int32_t *users = tt_calloc(2 * nedges, sizeof(*users));
    if (!users) return tt_verify_fail(verify, NULL, "out of memory for edges");
    bool right = true;
    for (int rank = 0; right && rank < verify->nranks; rank++) {
        int nthreads = tt_program_nthreads(verify->programs[rank], rank);
        if (nthreads < 2) continue;
        memset(users, 0, 2 * nedges * sizeof(*users));
        for (int thread = 0; right && thread < nthreads; thread++)
            right = claim_of_thread(verify, rank, thread, users, users + nedges);
    }
    free(users);
    return right;
}
