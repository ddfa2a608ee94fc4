/* Fuzz target: any bytes as an algorithm of MSCCL. What is taken is a program, ends or is refused
 * when it is proved, and prints. */
#include "fuzz/target.h"

#include "program/import/import.h"
#include "program/verify/verify.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16, MOST_MOVES = 4096 }; /* of what is proved: others only take longer */

static void prove(const struct tt_import *import)
{
    const struct tt_program *programs[MOST_RANKS];
    const struct tt_program *program = import->program;
    char fault[256] = "";
    if (program->nranks > MOST_RANKS || program->ninsns > MOST_MOVES ||
        program->scratch > MOST_MOVES || program->nparts > MOST_MOVES)
        return;
    for (int rank = 0; rank < program->nranks; rank++)
        programs[rank] = program;
    for (int in_place = 0; in_place < 2; in_place++) {
        struct tt_verify_options options = {.count = 9,
                                            .chunk_limit = 4,
                                            .grain = 4,
                                            .slice = 4,
                                            .nslots = 8,
                                            .in_place = in_place};
        ncclResult_t rc =
            tt_program_verify(programs, program->nranks, &options, fault, sizeof(fault));
        if (rc && !fault[0]) abort();
        if (rc && tt_import_line(import, fault) < 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct tt_import *import = NULL;
    char fault[256] = "";
    ncclResult_t rc = tt_import_read((const char *)bytes, count, &import, fault, sizeof(fault));
    if (rc) {
        bool reported = strncmp(fault, "line ", 5) == 0 || strcmp(fault, "out of memory") == 0;
        if (import || !reported) abort();
        return 0;
    }
    if (!tt_program_check(import->program, import->program->bytes, fault, sizeof(fault))) abort();
    prove(import);
    tt_import_destroy(import);
    return 0;
}
