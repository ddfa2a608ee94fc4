/* Prints ranks' lines whole; a line longer than the buffer is broken, never lost. */
#include "launch_output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void print_line(struct launch_output *output, const char *line, size_t bytes)
{
    if (output->prefix) fprintf(output->to, "[%d] ", output->rank);
    fwrite(line, 1, bytes, output->to);
    fputc('\n', output->to);
}

static void print_finished(struct launch_output *output)
{
    char *from = output->line;
    char *end = output->line + output->used;
    char *newline = memchr(from, '\n', (size_t)(end - from));
    while (newline) {
        print_line(output, from, (size_t)(newline - from));
        from = newline + 1;
        newline = memchr(from, '\n', (size_t)(end - from));
    }
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
        print_finished(output);
        return;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (output->used) print_line(output, output->line, output->used);
    fflush(output->to);
    close(output->fd);
    output->fd = -1;
}
