/* Prints ranks' lines whole; a line longer than the buffer is broken, never lost. */
#include "output.h"

#include "env.h"
#include "inits.h"
#include "report.h"
#include "same.h"

#include "base/launcher.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static void print_line(struct launch_output *output, const char *line, size_t bytes)
{
    if (output->prefix) fprintf(output->to, "[%d] ", output->rank);
    fwrite(line, 1, bytes, output->to);
    fputc('\n', output->to);
}

/* The line that is awaited, where it is there as a whole. */
static char *find_awaited(struct launch_output *output)
{
    const size_t len = strlen(output->awaited);
    char *from = output->line;
    char *end = output->line + output->used;
    char *newline = memchr(from, '\n', (size_t)(end - from));
    while (newline) {
        if ((size_t)(newline - from) == len && !memcmp(from, output->awaited, len)) return from;
        from = newline + 1;
        newline = memchr(from, '\n', (size_t)(end - from));
    }
    return NULL;
}

/* Take out what the rank's shell sends on. It may stand behind an unfinished line of the rank. */
static void take_notes(struct launch_output *output)
{
    static const char mark[] = LAUNCH_NOTE;
    char *from = output->line;
    for (;;) {
        char *const end = output->line + output->used;
        char *at = memmem(from, (size_t)(end - from), mark, sizeof(mark) - 1);
        char *newline = at ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        struct tt_launcher_note note;
        pid_t pid;
        if (!newline) return;
        *newline = 0;
        from = newline + 1;
        const bool is_note = tt_launcher_read(at + sizeof(mark) - 1, &note, &pid);
        *newline = '\n';
        if (!is_note) continue;
        if (note.kind == TT_LAUNCHER_INITS)
            launch_inits_take(output->inits, output->rank, pid, &note);
        memmove(at, from, (size_t)(end - from));
        output->used -= (size_t)(from - at);
        from = at;
    }
}

/* Whether lines are kept still. Takes the awaited one out. */
static bool waits(struct launch_output *output)
{
    if (!output->awaited) return false;
    const size_t len = strlen(output->awaited) + 1;
    char *found = find_awaited(output);
    if (!found && output->used < sizeof(output->line)) return true;
    output->awaited = NULL;
    if (!found) return false;
    output->used -= len;
    memmove(found, found + len, output->used - (size_t)(found - output->line));
    return false;
}

/* An empty line goes before a warning, and belongs to it: where ranks' numbers are put before lines
 * it would separate nothing. */
static void print_finished(struct launch_output *output)
{
    char *from = output->line;
    char *end = output->line + output->used;
    char *newline = memchr(from, '\n', (size_t)(end - from));
    bool empty = false;
    while (newline) {
        const size_t bytes = (size_t)(newline - from);
        launch_report_line(output->report, output->rank, from, bytes);
        const bool repeats =
            output->same && launch_same_repeats(output->same, output->rank, from, bytes);
        const bool parts = !output->prefix || !launch_same_is_warning(from, bytes);
        if (empty && !repeats && parts) print_line(output, "", 0);
        empty = output->is_log && bytes == 0;
        if (!empty && !repeats) print_line(output, from, bytes);
        from = newline + 1;
        newline = memchr(from, '\n', (size_t)(end - from));
    }
    if (empty && from == end) print_line(output, "", 0);
    if (empty && from < end) from--; /* what follows it is not there as a whole */
    output->used = (size_t)(end - from);
    memmove(output->line, from, output->used);
    if (output->used == sizeof(output->line)) {
        print_line(output, output->line, output->used);
        output->used = 0;
    }
    fflush(output->to);
}

void launch_output_read(struct launch_output *output)
{
    ssize_t n = read(output->fd, output->line + output->used, sizeof(output->line) - output->used);
    if (n > 0) {
        output->used += (size_t)n;
        if (output->inits) take_notes(output);
        if (!waits(output)) print_finished(output);
        if (output->at_once && output->used && (*output->line == '\r' || *output->line == '\033')) {
            fwrite(output->line, 1, output->used, output->to);
            output->used = 0;
            fflush(output->to);
        }
        return;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    close(output->fd);
    output->fd = -1;
    if (output->awaited && *output->reported) output->used = 0; /* the same words once more */
    if (output->awaited && output->used) *output->reported = true;
    print_finished(output);
    if (output->used) print_line(output, output->line, output->used);
    output->used = 0;
    fflush(output->to);
}

void launch_output_drain(struct launch_output *output)
{
    enum { READS = 64 }; /* more than a pipe holds, and an end, whatever is written */
    for (int k = 0; k < READS && output->fd >= 0; k++) {
        struct pollfd ready = {.fd = output->fd, .events = POLLIN};
        if (poll(&ready, 1, 0) <= 0) return;
        launch_output_read(output);
    }
}
