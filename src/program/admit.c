/* Programs that no generator made: verified before their first use, once per content. */
#include "base/mem.h"
#include "program/verify/verify.h"

#include <stdio.h>
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
        if (!keys) return ncclSystemError;
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
                                         .parts_apart = true,
                                         .in_place = in_place};
        char said[192] = "";
        rc = tt_program_verify(programs, programs[0]->nranks, &size, said, sizeof(said));
        if (rc) {
            (void)snprintf(fault, fault_bytes, "%s: %s", in_place ? "in place" : "out of place",
                           said);
        }
    }
    return rc;
}

/* A window that ends in the first part, in the middle, full windows, several and a short last one:
 * parts are distinguished, so other ends only leave elements out. Where chunks take several slots,
 * they also take fewer slots: all ends are executed. */
static ncclResult_t verify_sizes(const struct tt_program *const *programs,
                                 const struct tt_admit_options *options, char *fault,
                                 size_t fault_bytes)
{
    size_t nparts = (size_t)programs[0]->nparts;
    size_t window = (size_t)options->nslices * GRAIN * nparts;
    size_t step = options->nslices == 1 ? tt_max_size(nparts / 2, 1) : 1;
    ncclResult_t rc = ncclSuccess;
    for (size_t k = 0; k < nparts && !rc; k += step)
        rc = verify_count(programs, options, k * GRAIN + 1, fault, fault_bytes);
    if (!rc) rc = verify_count(programs, options, window, fault, fault_bytes);
    if (!rc) rc = verify_count(programs, options, 2 * window + GRAIN + 1, fault, fault_bytes);
    return rc;
}

ncclResult_t tt_program_admit(struct tt_admitted **admitted, const struct tt_program *program,
                              const struct tt_admit_options *options, char *fault,
                              size_t fault_bytes)
{
    uint64_t key = key_of(program, options);
    for (size_t k = 0; *admitted && k < (*admitted)->count; k++) {
        if ((*admitted)->keys[k] == key) return ncclSuccess;
    }
    if (options->nslices < 1 || !(options->in_place || options->out_of_place)) {
        (void)snprintf(fault, fault_bytes, "no use is named, neither in place nor out of place");
        return ncclInvalidArgument;
    }
    if (!*admitted) *admitted = tt_calloc(1, sizeof(**admitted));
    size_t n = (size_t)program->nranks;
    const struct tt_program **programs = tt_calloc(n, sizeof(*programs));
    ncclResult_t rc = *admitted && programs ? ncclSuccess : ncclSystemError;
    for (size_t rank = 0; rank < n && !rc; rank++)
        programs[rank] = program;
    if (rc) (void)snprintf(fault, fault_bytes, "out of memory");
    if (!rc && verify_sizes(programs, options, fault, fault_bytes)) rc = ncclInvalidUsage;
    free(programs);
    if (rc) return rc;
    rc = remember(*admitted, key);
    if (rc) (void)snprintf(fault, fault_bytes, "out of memory");
    return rc;
}

ncclResult_t tt_program_admit_usual(struct tt_admitted **admitted, const struct tt_program *program,
                                    bool *copies_out, char *fault, size_t fault_bytes)
{
    struct tt_admit_options options = tt_admit_usual(program);
    ncclResult_t rc = tt_program_admit(admitted, program, &options, fault, fault_bytes);
    *copies_out = rc == ncclInvalidUsage && options.in_place;
    if (!*copies_out) return rc;
    char other[1];
    options.in_place = false;
    if (tt_program_admit(admitted, program, &options, other, sizeof(other))) return rc;
    return ncclSuccess;
}

int tt_program_agree(const uint64_t *hashes, int nranks)
{
    int rank = 1;
    while (rank < nranks && hashes[rank] == hashes[0])
        rank++;
    return rank;
}
