/* What a process tells `tutti run`, which started it, over a socket whose name is a variable; on
 * another host over a pipe, whose lines the shell that started it sends on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum tt_launcher_kind {
    TT_LAUNCHER_EXIT,  /* the process exits with `status`, which is not 0 */
    TT_LAUNCHER_INITS, /* its ranks wait for others in `status` inits of communicators; told again
                          each second, and when one is over */
};

struct tt_launcher_note { /* both sides are of one installation */
    int32_t kind;
    int32_t status;
    int32_t rank, nranks; /* of the last of the inits */
    uint64_t comm_id;
};

enum { TT_LAUNCHER_BYTES = 128 };
/* The launcher's socket, or the path of a pipe; "" without one. Reads the environment, so for
 * threads of the caller. */
void tt_launcher_name(char name[TT_LAUNCHER_BYTES]);
/* Tell it. Does nothing without a name, never blocks; where it fails, the launcher knows less. */
void tt_launcher_report(const char *name, const struct tt_launcher_note *note);
/* The line that came through a pipe. False: it is none. */
bool tt_launcher_read(const char *line, struct tt_launcher_note *note_out, pid_t *pid_out);
