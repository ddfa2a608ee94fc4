/* Programs that no generator made: verified before their first use, once per content. */
#include "verify.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>

enum { GRAIN = 4 }; /* elements, as a slice is here */

struct tt_admitted {
    uint64_t *keys; /* owned */
    size_t count, capacity;
};

void tt_admitted_destroy(struct tt_admitted *admitted)
{
    if (!admitted) return;
    free(admitted->keys);
    free(admitted);
}

/* What was proved: the contents, for those options. */
static uint64_t key_of(const struct tt_program *program, const struct tt_admit_options *options)
{
    uint64_t word = (uint64_t)options->nslots << 32 | (uint64_t)options->nslices << 2 |
                    (uint64_t)options->in_place << 1 | (uint64_t)options->out_of_place;
    return tt_program_hash(program) ^ (word + 1) * 0x9e3779b97f4a7c15ull;
}

static ncclResult_t remember(struct tt_admitted *admitted, uint64_t key)
{
    if (admitted->count == admitted->capacity) {
        size_t want = admitted->capacity ? 2 * admitted->capacity : 16;
        uint64_t *keys = realloc(admitted->keys, want * sizeof(*keys));
        if (!keys) return tt_fail(ncclSystemError, "admitted programs: out of memory");
        admitted->keys = keys;
        admitted->capacity = want;
    }
    admitted->keys[admitted->count++] = key;
    return ncclSuccess;
}

/* One count, in the ways that the program will be used in. */
static ncclResult_t verify_count(const struct tt_program *const *programs,
                                 const struct tt_admit_options *options, size_t count, char *fault,
                                 size_t fault_bytes)
{
    ncclResult_t rc = ncclSuccess;
    for (int in_place = 0; in_place < 2 && !rc; in_place++) {
        if (!(in_place ? options->in_place : options->out_of_place)) continue;
        struct tt_verify_options size = {.count = count,
                                         .chunk_limit = (size_t)options->nslices * GRAIN,
                                         .grain = GRAIN,
                                         .slice = GRAIN,
                                         .nslots = options->nslots,
                                         .in_place = in_place};
        rc = tt_program_verify(programs, programs[0]->nranks, &size, fault, fault_bytes);
    }
    return rc;
}

/* A last window that ends in each part in turn, so that no two parts are always equally long; full
 * windows; several and a short last one. */
static ncclResult_t verify_sizes(const struct tt_program *const *programs,
                                 const struct tt_admit_options *options, char *fault,
                                 size_t fault_bytes)
{
    size_t nparts = (size_t)programs[0]->nparts;
    size_t window = (size_t)options->nslices * GRAIN * nparts;
    ncclResult_t rc = ncclSuccess;
    for (size_t k = 0; k < nparts && !rc; k++)
        rc = verify_count(programs, options, k * GRAIN + 1, fault, fault_bytes);
    if (!rc) rc = verify_count(programs, options, window, fault, fault_bytes);
    if (!rc) rc = verify_count(programs, options, 2 * window + GRAIN + 1, fault, fault_bytes);
    return rc;
}

ncclResult_t tt_program_admit(struct tt_admitted **admitted, const struct tt_program *program,
                              const struct tt_admit_options *options)
{
    char fault[256] = "";
    uint64_t key = key_of(program, options);
    for (size_t k = 0; *admitted && k < (*admitted)->count; k++) {
        if ((*admitted)->keys[k] == key) return ncclSuccess;
    }
    if (options->nslices < 1 || !(options->in_place || options->out_of_place)) {
        return tt_fail(ncclInvalidArgument,
                       "program %016llx: no use is named, neither in place nor out of place",
                       (unsigned long long)tt_program_hash(program));
    }
    if (!*admitted) *admitted = tt_calloc(1, sizeof(**admitted));
    size_t n = (size_t)program->nranks;
    const struct tt_program **programs = tt_calloc(n, sizeof(*programs));
    ncclResult_t rc = *admitted && programs ? ncclSuccess : ncclSystemError;
    for (size_t rank = 0; rank < n && !rc; rank++)
        programs[rank] = program;
    if (!rc) {
        rc = verify_sizes(programs, options, fault, sizeof(fault));
        if (rc) rc = ncclInvalidUsage;
    }
    free(programs);
    if (!rc) return remember(*admitted, key);
    return tt_fail(rc, "program %016llx of %d ranks is refused: %s",
                   (unsigned long long)tt_program_hash(program), program->nranks,
                   fault[0] ? fault : "out of memory");
}

ncclResult_t tt_program_agree(const uint64_t *hashes, int nranks)
{
    for (int rank = 1; rank < nranks; rank++) {
        if (hashes[rank] == hashes[0]) continue;
        return tt_fail(ncclInvalidUsage,
                       "rank %d holds another program (%016llx) than rank 0 (%016llx): all ranks "
                       "must read the same files",
                       rank, (unsigned long long)hashes[rank], (unsigned long long)hashes[0]);
    }
    return ncclSuccess;
}
