/* Operations of one kind as one row: how often, how long, how fast, who was late.
 *
 * An operation's time is from the begin of the last rank to the end of the last rank: what it took
 * once all were there. Before that a rank waits; the rest of its own time it moves data. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

double trace_bus_factor(const char *func, int n)
{
    double ranks = n > 1 ? n : 1;
    if (!strcmp(func, "AllReduce")) return 2 * (ranks - 1) / ranks;
    bool all = !strcmp(func, "AllGather") || !strcmp(func, "ReduceScatter");
    if (all || !strcmp(func, "AlltoAll")) return (ranks - 1) / ranks;
    return 1;
}

uint64_t trace_traffic_bytes(const char *func, uint64_t message_bytes, int n)
{
    bool all = !strcmp(func, "AllGather") || !strcmp(func, "ReduceScatter");
    return all && n > 1 ? message_bytes * (uint64_t)n : message_bytes;
}

/* An operation by what makes its row. */
struct kind {
    uint32_t operation, comm;
    uint16_t func, algo, proto, datatype;
    uint64_t count;
};

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_kind(const void *left, const void *right)
{
    const struct kind *a = left, *b = right;
    int order = compare(a->comm, b->comm);
    if (!order) order = compare(a->func, b->func);
    if (!order) order = compare(a->count, b->count);
    if (!order) order = compare(a->datatype, b->datatype);
    if (!order) order = compare(a->algo, b->algo);
    return order ? order : compare(a->proto, b->proto);
}

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Of sorted values; q in [0, 1]. */
static double quantile(const double *values, uint64_t count, double q)
{
    if (count == 0) return 0;
    uint64_t at = (uint64_t)(q * (double)(count - 1) + 0.5);
    return values[at];
}

/* What is added up over the operations of a row. */
struct sums {
    double *times, *skews; /* owned; microseconds */
    uint32_t *late;        /* owned; by rank: how often it was the last to begin */
    double *behind;        /* owned; by rank: how late it was then, microseconds */
    double waiting, moving;
    uint64_t parts;
};

static void add_parts(const struct timeline *run, const struct timeline_operation *operation,
                      struct sums *sums, int nranks)
{
    const struct timeline_part *parts = &run->parts[operation->first];
    int64_t before_nsec = operation->first_begin_nsec; /* of the last but one */
    uint32_t last = 0;
    for (uint32_t k = 0; k < operation->count; k++) {
        int64_t begin = parts[k].begin_nsec, end = parts[k].end_nsec;
        int64_t start = end < operation->last_begin_nsec ? end : operation->last_begin_nsec;
        sums->waiting += (double)(start - begin) / 1e3;
        sums->moving += (double)(end - start) / 1e3;
        if (begin > parts[last].begin_nsec) last = k;
    }
    sums->parts += operation->count;
    for (uint32_t k = 0; k < operation->count; k++) {
        if (k != last && parts[k].begin_nsec > before_nsec) before_nsec = parts[k].begin_nsec;
    }
    int rank = run->members[run->events[parts[last].event].member].rank;
    if (operation->count < 2 || rank < 0 || rank >= nranks) return;
    sums->late[rank]++;
    sums->behind[rank] += (double)(parts[last].begin_nsec - before_nsec) / 1e3;
}

static void find_slowest(const struct sums *sums, int nranks, struct trace_row *row)
{
    row->slowest_rank = -1;
    for (int r = 0; r < nranks; r++) {
        if (sums->late[r] == 0) continue;
        if (row->slowest_rank >= 0 && sums->late[r] <= sums->late[row->slowest_rank]) continue;
        row->slowest_rank = r;
    }
    if (row->slowest_rank < 0) return;
    uint32_t times = sums->late[row->slowest_rank];
    row->slowest_share = (double)times / (double)row->operations;
    row->behind_usec = sums->behind[row->slowest_rank] / times;
}

static void fill_row(const struct timeline *run, const struct kind *kinds, uint32_t count,
                     struct sums *sums, struct trace_row *row)
{
    const struct timeline_comm *comm = &run->comms[kinds[0].comm];
    const char *func = timeline_word(run, kinds[0].func);
    double sum = 0;
    *row = (struct trace_row){.comm = kinds[0].comm,
                              .func = kinds[0].func,
                              .algo = kinds[0].algo,
                              .proto = kinds[0].proto,
                              .datatype = kinds[0].datatype,
                              .count = kinds[0].count};
    row->message_bytes = row->count * timeline_type_bytes(run, row->datatype);
    memset(sums->late, 0, (size_t)comm->nranks * sizeof(sums->late[0]));
    memset(sums->behind, 0, (size_t)comm->nranks * sizeof(sums->behind[0]));
    sums->waiting = sums->moving = 0;
    sums->parts = 0;
    for (uint32_t k = 0; k < count; k++) {
        const struct timeline_operation *operation = &run->operations[kinds[k].operation];
        uint64_t at = row->operations;
        row->broken += !operation->whole;
        if (!operation->whole) continue;
        sums->times[at] = (double)(operation->last_end_nsec - operation->last_begin_nsec) / 1e3;
        sums->skews[at] = (double)(operation->last_begin_nsec - operation->first_begin_nsec) / 1e3;
        sum += sums->times[at];
        row->operations++;
        add_parts(run, operation, sums, comm->nranks);
    }
    if (row->operations == 0) {
        row->slowest_rank = -1;
        return;
    }
    qsort(sums->times, row->operations, sizeof(double), by_value);
    qsort(sums->skews, row->operations, sizeof(double), by_value);
    row->mean_usec = sum / (double)row->operations;
    row->least_usec = sums->times[0];
    row->p50_usec = quantile(sums->times, row->operations, 0.5);
    row->p99_usec = quantile(sums->times, row->operations, 0.99);
    row->most_usec = quantile(sums->times, row->operations, 1);
    row->skew_p50_usec = quantile(sums->skews, row->operations, 0.5);
    row->skew_p99_usec = quantile(sums->skews, row->operations, 0.99);
    row->skew_most_usec = quantile(sums->skews, row->operations, 1);
    row->waiting_usec = sums->waiting / (double)sums->parts;
    row->moving_usec = sums->moving / (double)sums->parts;
    uint64_t bytes = trace_traffic_bytes(func, row->message_bytes, comm->nranks);
    row->algbw_gbps = row->mean_usec > 0 ? (double)bytes / row->mean_usec / 1e3 : 0;
    row->busbw_gbps = row->algbw_gbps * trace_bus_factor(func, comm->nranks);
    find_slowest(sums, comm->nranks, row);
}

static struct kind kind_of(const struct timeline *run, uint32_t index)
{
    const struct timeline_operation *operation = &run->operations[index];
    const struct timeline_event *event = &run->events[run->parts[operation->first].event];
    return (struct kind){index,        operation->comm, operation->func, event->algo,
                         event->proto, event->datatype, event->count};
}

static bool types_differ(const struct trace_table *table)
{
    for (uint32_t r = 1; r < table->nrows; r++) {
        const struct trace_row *row = &table->rows[r], *before = &table->rows[r - 1];
        if (row->comm == before->comm && row->datatype != before->datatype) return true;
    }
    return false;
}

bool trace_table_make(const struct timeline *run, struct trace_table *table)
{
    struct kind *kinds = calloc(run->noperations + (size_t)1, sizeof(*kinds));
    struct sums sums = {.times = calloc(run->noperations + (size_t)1, sizeof(double)),
                        .skews = calloc(run->noperations + (size_t)1, sizeof(double))};
    int most_ranks = 0;
    for (uint32_t c = 0; c < run->ncomms; c++) {
        if (run->comms[c].nranks > most_ranks) most_ranks = run->comms[c].nranks;
    }
    sums.late = calloc((size_t)most_ranks + 1, sizeof(sums.late[0]));
    sums.behind = calloc((size_t)most_ranks + 1, sizeof(sums.behind[0]));
    table->rows = calloc(run->noperations + (size_t)1, sizeof(table->rows[0]));
    table->nrows = 0;
    bool good = kinds && sums.times && sums.skews && sums.late && sums.behind && table->rows;
    for (uint32_t o = 0; good && o < run->noperations; o++)
        kinds[o] = kind_of(run, o);
    if (good) timeline_sort(kinds, run->noperations, sizeof(*kinds), by_kind);
    for (uint32_t o = 0, first = 0; good && o < run->noperations; o++) {
        if (o + 1 < run->noperations && by_kind(&kinds[o], &kinds[o + 1]) == 0) continue;
        fill_row(run, &kinds[first], o + 1 - first, &sums, &table->rows[table->nrows++]);
        first = o + 1;
    }
    if (!good) (void)fprintf(stderr, "tutti trace: out of memory\n");
    table->types_differ = types_differ(table);
    free(kinds);
    free(sums.times);
    free(sums.skews);
    free(sums.late);
    free(sums.behind);
    return good;
}

void trace_table_fini(struct trace_table *table)
{
    free(table->rows);
    *table = (struct trace_table){0};
}
