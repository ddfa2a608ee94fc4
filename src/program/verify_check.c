/* Checks before a program set is executed: after them, execution needs to look at values and order
 * only. */
#include "verify_state.h"

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
        bool alike = program->nparts == model->nparts && program->in_blocks == model->in_blocks &&
                     program->out_blocks == model->out_blocks &&
                     program->whole_window == model->whole_window &&
                     program->scratch == model->scratch && program->nchannels == model->nchannels &&
                     program->needs_barrier == model->needs_barrier;
        if (!alike) {
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
