/* What a process tells `tutti run`, which started it, over a socket whose name is a variable. */
#pragma once

#include <stdint.h>

enum tt_launcher_kind {
    TT_LAUNCHER_EXIT,  /* the process exits with `status`, which is not 0 */
    TT_LAUNCHER_WAITS, /* its rank waits for others in the init of a communicator */
    TT_LAUNCHER_GOES,  /* that init is over */
};

struct tt_launcher_note { /* both sides run on one host, with one installation */
    int32_t kind;
    int32_t status;
    int32_t rank, nranks;
    uint64_t comm_id;
};

enum { TT_LAUNCHER_BYTES = 32 };
/* The launcher's socket, "" without one. Reads the environment, so for threads of the caller. */
void tt_launcher_name(char name[TT_LAUNCHER_BYTES]);
/* Tell it. Does nothing without a name, never blocks; where it fails, the launcher knows less. */
void tt_launcher_report(const char *name, const struct tt_launcher_note *note);
