/* Counts of an AlltoAllv, from the command line or a file. */
#include "tutti.h"

#include "base/mem.h"
#include "program_tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 512, MOST_COUNT = 4096, MOST_BYTES = 16 << 20 };

/* What the file holds; NULL: said. */
static char *read_file(const struct program_options *options, const char *path)
{
    FILE *in = fopen(path, "rb");
    char *text = in ? tt_calloc(1, MOST_BYTES + 1) : NULL;
    if (text) (void)fread(text, 1, MOST_BYTES, in);
    if (!text || ferror(in)) {
        (void)fprintf(stderr, "tutti %s: %s: %s\n", options->command, path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (in) (void)fclose(in);
    return text;
}

static bool ends_row(char c)
{
    return c == ';' || c == '\n';
}

static bool parts_numbers(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\r';
}

/* One row; *at comes to stand behind it. */
static int read_row(const struct program_options *options, const char **at, int row, int n,
                    int *counts)
{
    int found = 0;
    while (**at && !ends_row(**at)) {
        size_t len = strspn(*at, "0123456789");
        long number = len && len < 10 ? strtol(*at, NULL, 10) : -1;
        if (parts_numbers(**at)) {
            ++*at;
            continue;
        }
        if (number < 0 || number > MOST_COUNT || isalpha((unsigned char)(*at)[len])) {
            return tutti_usage_error(options->command,
                                     "--counts: row %d, number %d: no number from 0 to %d", row,
                                     found, (int)MOST_COUNT);
        }
        if (found < n) counts[found] = (int)number;
        found++;
        *at += len;
    }
    if (**at) ++*at;
    if (found == n) return 0;
    return tutti_usage_error(options->command, "--counts: row %d has %d numbers for %d ranks", row,
                             found, n);
}

static bool is_blank(const char *at)
{
    while (parts_numbers(*at) || ends_row(*at))
        at++;
    return !*at;
}

static int read_rows(const struct program_options *options, const char *text, int n, int *counts)
{
    int row = 0, wrong = 0;
    for (; !wrong && row < n && !is_blank(text); row++)
        wrong = read_row(options, &text, row, n, counts + (size_t)row * (size_t)n);
    if (wrong || (row == n && is_blank(text))) return wrong;
    return tutti_usage_error(options->command, "--counts: %s than %d rows, one for each rank",
                             row < n ? "fewer" : "more", n);
}

int program_read_counts(const struct program_options *options, const char *text, int n,
                        int **counts_out)
{
    if (n > MOST_RANKS) {
        return tutti_usage_error(options->command, "an alltoallv has at most %d ranks here",
                                 (int)MOST_RANKS);
    }
    char *file = text && *text == '@' ? read_file(options, text + 1) : NULL;
    if (text && *text == '@' && !file) return 2;
    size_t npairs = (size_t)n * (size_t)n;
    int *counts = tt_calloc(npairs, sizeof(*counts)), wrong = 2;
    if (!counts) (void)fprintf(stderr, "tutti: out of memory\n");
    for (size_t k = 0; counts && !text && k < npairs; k++)
        counts[k] = 1;
    if (counts) wrong = text ? read_rows(options, file ? file : text, n, counts) : 0;
    free(file);
    if (!wrong) {
        *counts_out = counts;
        return 0;
    }
    free(counts);
    return 2;
}
