/* Times that `tutti tune` measured on this machine: lines "time COLLECTIVE ALGORITHM PROTOCOL RANKS
 * NODES BYTES MICROSECONDS" of its table. Other lines of that file are for others. */
#include "tuner.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256 };

struct reading {
    char machine[TUNER_MACHINE_BYTES];
    struct tuner_measured *measured;
    const struct tuner_size *size;
    const struct tuner_notes *notes;
};

static bool append(struct tuner_measured *measured, const struct tuner_point *point)
{
    if ((measured->count & (measured->count - 1)) == 0) { /* full at every power of two */
        size_t room = measured->count ? measured->count * 2 : 1;
        struct tuner_point *grown = realloc(measured->points, room * sizeof(*grown));
        if (!grown) return false;
        measured->points = grown;
    }
    measured->points[measured->count++] = *point;
    return true;
}

/* False: out of memory. */
static bool read_line(const struct reading *reading, const char *line, int number)
{
    char words[3][32];
    size_t nranks = 0, nnodes = 0;
    struct tuner_point point = {0};
    int end = -1;
    if (strncmp(line, "time", 4) != 0) return true;
    /* NOLINTNEXTLINE(cert-err34-c): a number that does not fit loses its line below */
    int got = sscanf(line, "time %31s %31s %31s %zu %zu %zu %lf %n", words[0], words[1], words[2],
                     &nranks, &nnodes, &point.bytes, &point.usec, &end);
    point.func = got == 7 ? tuner_func_number(words[0]) : -1;
    point.algo = got == 7 ? tuner_algo_number(words[1]) : -1;
    point.proto = got == 7 ? tuner_proto_number(words[2]) : -1;
    bool known = point.func >= 0 && point.algo >= 0 && point.proto >= 0;
    if (!known || end < 0 || line[end] || !(point.usec > 0 && point.usec < 1e12)) {
        tuner_complain(reading->notes, number,
                       "is not 'time collective algorithm protocol ranks nodes bytes "
                       "microseconds'; the line is skipped");
        return true;
    }
    if (nranks != reading->size->nranks || nnodes != reading->size->nnodes) return true;
    return append(reading->measured, &point);
}

/* True for the line that says that the table is another machine's. */
static bool is_foreign(const struct reading *reading, const char *line, int number)
{
    if (strncmp(line, "machine ", 8) != 0 || !strcmp(line + 8, reading->machine)) return false;
    tuner_complain(reading->notes, number, "measured on '%.100s', this is '%.100s': it is refused",
                   line + 8, reading->machine);
    return true;
}

static int series_of(const struct tuner_point *point)
{
    return (point->func * TUNER_ALGOS + point->algo) * TUNER_PROTOS + point->proto;
}

static int by_series_and_bytes(const void *left, const void *right)
{
    const struct tuner_point *a = left, *b = right;
    int order = series_of(a) - series_of(b);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

bool tuner_measured_parse(struct tuner_measured *measured, const char *text, size_t bytes,
                          const struct tuner_size *size, const struct tuner_notes *notes)
{
    struct reading reading = {.measured = measured, .size = size, .notes = notes};
    tuner_machine_name(reading.machine);
    int number = 0;
    *measured = (struct tuner_measured){NULL, 0};
    for (const char *at = text, *end = text + bytes; at < end;) {
        char line[LINE_BYTES];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        number++;
        snprintf(line, sizeof(line), "%.*s", (int)(stop - at < LINE_BYTES ? stop - at : LINE_BYTES),
                 at);
        line[strcspn(line, "\r")] = '\0';
        bool foreign = is_foreign(&reading, line, number);
        if (foreign || !read_line(&reading, line, number)) {
            tuner_measured_free(measured);
            return foreign;
        }
        at = stop + 1;
    }
    if (measured->count)
        qsort(measured->points, measured->count, sizeof(*measured->points), by_series_and_bytes);
    return true;
}

void tuner_measured_free(struct tuner_measured *measured)
{
    free(measured->points);
    *measured = (struct tuner_measured){NULL, 0};
}

/* Below the first size the first time; beyond the last, in proportion to the bytes. */
static double between(const struct tuner_point *low, const struct tuner_point *high, size_t bytes)
{
    if (!low) return high->usec;
    if (!high) return low->usec * ((double)bytes / (double)(low->bytes ? low->bytes : 1));
    if (high->bytes == low->bytes) return low->usec;
    double share = (double)(bytes - low->bytes) / (double)(high->bytes - low->bytes);
    return low->usec + share * (high->usec - low->usec);
}

double tuner_measured_time(const struct tuner_measured *measured,
                           const struct tuner_question *question, int algo, int proto)
{
    const struct tuner_point wanted = {.func = question->func, .algo = algo, .proto = proto};
    const struct tuner_point *low = NULL, *high = NULL;
    for (size_t i = 0; i < measured->count && !high; i++) {
        const struct tuner_point *point = &measured->points[i];
        if (series_of(point) != series_of(&wanted)) continue;
        if (point->bytes <= question->bytes) low = point;
        if (point->bytes > question->bytes) high = point;
    }
    return low || high ? between(low, high, question->bytes) : -1;
}
