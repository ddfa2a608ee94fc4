/* `tutti trace diff`: two runs side by side, operation by operation. Communicators have other ids
 * in another run: the n-th of so many ranks is compared with the n-th of as many. */
#include "tool.h"
#include "tutti.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct side {
    struct timeline run;
    struct trace_table table;
    struct trace_stops stops;
    uint32_t *nth; /* owned; of a communicator among those of as many ranks */
};

/* A row of either run, or of both. */
struct match {
    const struct trace_row *rows[2]; /* NULL: that run has none */
};

static bool open_side(const struct trace_options *options, int which, struct side *side)
{
    if (trace_load(options, which, 1, &side->run)) return false;
    trace_report_cut(&side->run);
    side->nth = tt_calloc(side->run.ncomms + (size_t)1, sizeof(side->nth[0]));
    if (!side->nth || !trace_table_make(&side->run, &side->table)) return false;
    if (!trace_stops_find(&side->run, &side->stops)) return false;
    for (uint32_t c = 0; c < side->run.ncomms; c++) {
        for (uint32_t other = 0; other < c; other++)
            side->nth[c] += side->run.comms[other].nranks == side->run.comms[c].nranks;
    }
    return true;
}

static void close_side(struct side *side)
{
    free(side->nth);
    trace_table_fini(&side->table);
    trace_stops_fini(&side->stops);
    timeline_close(&side->run);
}

static const char *func_of(const struct side *side, const struct trace_row *row)
{
    return timeline_word(&side->run, row->func);
}

/* The same but for the algorithm, which is compared only when it is asked for. */
static bool same(const struct side *sides, const struct trace_row *a, const struct trace_row *b,
                 bool algorithm)
{
    const struct timeline *left = &sides[0].run, *right = &sides[1].run;
    bool equal = a->count == b->count && sides[0].nth[a->comm] == sides[1].nth[b->comm] &&
                 left->comms[a->comm].nranks == right->comms[b->comm].nranks &&
                 !strcmp(func_of(&sides[0], a), func_of(&sides[1], b)) &&
                 !strcmp(timeline_word(left, a->datatype), timeline_word(right, b->datatype));
    if (!algorithm || !equal) return equal;
    return !strcmp(timeline_word(left, a->algo), timeline_word(right, b->algo)) &&
           !strcmp(timeline_word(left, a->proto), timeline_word(right, b->proto));
}

/* Give the row of the second run to the first row of the first that is the same and has none. */
static bool give(const struct side *sides, struct match *matches, const struct trace_row *row,
                 bool algorithm)
{
    for (uint32_t a = 0; a < sides[0].table.nrows; a++) {
        const struct trace_row *before = matches[a].rows[0];
        if (!before || matches[a].rows[1] || !same(sides, before, row, algorithm)) continue;
        matches[a].rows[1] = row;
        return true;
    }
    return false;
}

/* First those with the same algorithm, then the rest; how many matches there are. */
static uint32_t match_rows(const struct side *sides, struct match *matches, bool *given)
{
    uint32_t count = sides[0].table.nrows;
    for (uint32_t a = 0; a < count; a++)
        matches[a] = (struct match){{&sides[0].table.rows[a], NULL}};
    for (uint32_t b = 0; b < sides[1].table.nrows; b++)
        given[b] = give(sides, matches, &sides[1].table.rows[b], true);
    for (uint32_t b = 0; b < sides[1].table.nrows; b++) {
        const struct trace_row *row = &sides[1].table.rows[b];
        if (given[b] || give(sides, matches, row, false)) continue;
        matches[count++] = (struct match){{NULL, row}};
    }
    return count;
}

static double ratio(double after, double before)
{
    return before > 0 ? after / before : 0;
}

/* What one row says: "" where the runs do not differ by more than so many percent. */
static const char *verdict(const struct side *sides, const struct match *match, long percent)
{
    const struct trace_row *a = match->rows[0], *b = match->rows[1];
    if (!a) return "only in the second";
    if (!b) return "only in the first";
    double times = ratio(b->p50_usec, a->p50_usec), least = 1 + (double)percent / 100;
    if (a->broken != b->broken) return "not as whole";
    if (a->operations != b->operations) return "another number";
    if (times > least) return "slower";
    if (times > 0 && times < 1 / least) return "faster";
    return same(sides, a, b, true) ? "" : "another algorithm";
}

static json_t *match_json(const struct side *sides, const struct match *match, long percent)
{
    static const char *const names[] = {"first", "second"};
    int first = match->rows[0] ? 0 : 1; /* the first run that has it */
    const struct trace_row *any = match->rows[first];
    const struct side *side = &sides[first];
    if (!any) return NULL;
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:i, s:i, s:s}", "function", func_of(side, any), "datatype",
                  timeline_word(&side->run, any->datatype), "bytes", (json_int_t)any->message_bytes,
                  "ranks", side->run.comms[any->comm].nranks, "communicator",
                  (int)side->nth[any->comm], "verdict", verdict(sides, match, percent));
    for (int k = 0; k < 2; k++) {
        const struct trace_row *row = match->rows[k];
        if (!row) continue;
        json_object_set_new(json, names[k],
                            json_pack("{s:I, s:f, s:f, s:f, s:f, s:s, s:s}", "operations",
                                      (json_int_t)row->operations, "p50_usec", row->p50_usec,
                                      "p99_usec", row->p99_usec, "skew_p50_usec",
                                      row->skew_p50_usec, "busbw_gbps", row->busbw_gbps,
                                      "algorithm", timeline_word(&sides[k].run, row->algo),
                                      "protocol", timeline_word(&sides[k].run, row->proto)));
    }
    return json;
}

static bool names_types(const struct side *sides)
{
    return sides[0].table.types_differ || sides[1].table.types_differ;
}

static void print_match(const struct side *sides, const struct match *match, long percent)
{
    static const struct trace_row none = {0};
    const struct trace_row *a = match->rows[0] ? match->rows[0] : &none;
    const struct trace_row *b = match->rows[1] ? match->rows[1] : &none;
    const struct side *side = &sides[match->rows[0] ? 0 : 1];
    const struct trace_row *any = match->rows[0] ? a : b;
    printf("%-13s ", func_of(side, any));
    if (names_types(sides)) printf("%-14s ", timeline_word(&side->run, any->datatype));
    printf("%12llu %6d %8llu %8llu %9.1f %9.1f %6.2f %9.1f %9.1f %9.1f %9.1f  %s\n",
           (unsigned long long)any->message_bytes, side->run.comms[any->comm].nranks,
           (unsigned long long)a->operations, (unsigned long long)b->operations, a->p50_usec,
           b->p50_usec, ratio(b->p50_usec, a->p50_usec), a->p99_usec, b->p99_usec, a->skew_p50_usec,
           b->skew_p50_usec, verdict(sides, match, percent));
}

static int report(const struct trace_options *options, const struct side *sides,
                  const struct match *matches, uint32_t count)
{
    json_t *list = json_array();
    int differ = 0;
    if (!options->json) {
        trace_stops_print(&sides[0].run, &sides[0].stops, "first: ");
        trace_stops_print(&sides[1].run, &sides[1].stops, "second: ");
        printf("%-13s ", "");
        if (names_types(sides)) printf("%-14s ", "type");
        printf("%12s %6s %8s %8s %9s %9s %6s %9s %9s %9s %9s\n", "bytes", "ranks", "count", "count",
               "p50 us", "p50 us", "ratio", "p99 us", "p99 us", "skew us", "skew us");
    }
    for (uint32_t m = 0; m < count; m++) {
        if (*verdict(sides, &matches[m], options->percent)) differ = 1;
        if (options->json) {
            json_array_append_new(list, match_json(sides, &matches[m], options->percent));
        } else {
            print_match(sides, &matches[m], options->percent);
        }
    }
    if (options->json) {
        trace_print_json(json_pack("{s:b, s:o, s:{s:o, s:o}}", "differ", differ, "operations", list,
                                   "stopped", "first",
                                   trace_stops_json(&sides[0].run, &sides[0].stops), "second",
                                   trace_stops_json(&sides[1].run, &sides[1].stops)));
    } else {
        json_decref(list);
    }
    return differ;
}

int trace_diff(const struct trace_options *options)
{
    struct side sides[2] = {{.nth = NULL}, {.nth = NULL}};
    struct match *matches = NULL;
    bool *given = NULL;
    int status = 2;
    if (options->npaths != 2)
        return tutti_usage_error(options->command, "two runs are needed, each a file or a folder");
    bool good = open_side(options, 0, &sides[0]) && open_side(options, 1, &sides[1]);
    if (good) {
        size_t rows = (size_t)sides[0].table.nrows + sides[1].table.nrows + 1;
        matches = tt_calloc(rows, sizeof(*matches));
        given = tt_calloc(rows, sizeof(*given));
    }
    if (matches && given)
        status = report(options, sides, matches, match_rows(sides, matches, given));
    free(matches);
    free(given);
    close_side(&sides[0]);
    close_side(&sides[1]);
    return status;
}
