/* `tutti trace summary`: what ran, how fast, and who kept the others waiting. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

void trace_print_json(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
    if (text) {
        (void)puts(text);
    } else {
        (void)fprintf(stderr, "tutti trace: out of memory\n");
    }
    free(text);
    json_decref(value);
}

void trace_report_cut(const struct timeline *run)
{
    enum { REPORTED_MOST = 3 };
    uint32_t cut = 0;
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        const struct timeline_process *process = &run->processes[p];
        int64_t last_nsec = 0;
        if (process->ended || ++cut > REPORTED_MOST) continue;
        for (uint32_t e = process->first_event; e < process->last_event; e++) {
            const struct timeline_event *event = &run->events[e];
            int64_t at = event->stop_nsec == TIMELINE_OPEN ? event->start_nsec : event->stop_nsec;
            if (at > last_nsec) last_nsec = at;
        }
        (void)fprintf(
            stderr,
            "%s: no line `end`: process %d on %s was killed, or still runs; what is there "
            "is used, up to %.6f s\n",
            run->paths[process->file], process->pid, process->host, (double)last_nsec / 1e9);
    }
    if (cut > REPORTED_MOST)
        (void)fprintf(stderr, "%u more without a line `end`\n", cut - REPORTED_MOST);
}

/* ---- JSON ---- */

static json_t *row_json(const struct timeline *run, const struct trace_row *row)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "function", timeline_word(run, row->func),
        "datatype", timeline_word(run, row->datatype), "algorithm", timeline_word(run, row->algo),
        "protocol", timeline_word(run, row->proto), "count", (json_int_t)row->count, "bytes",
        (json_int_t)row->message_bytes, "operations", (json_int_t)row->operations, "broken",
        (json_int_t)row->broken);
    json_object_set_new(json, "usec",
                        json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", row->mean_usec, "p50",
                                  row->p50_usec, "p99", row->p99_usec, "min", row->least_usec,
                                  "max", row->most_usec));
    json_object_set_new(json, "skew_usec",
                        json_pack("{s:f, s:f, s:f}", "p50", row->skew_p50_usec, "p99",
                                  row->skew_p99_usec, "max", row->skew_most_usec));
    json_object_set_new(json, "waiting_usec", json_real(row->waiting_usec));
    json_object_set_new(json, "moving_usec", json_real(row->moving_usec));
    json_object_set_new(json, "algbw_gbps", json_real(row->algbw_gbps));
    json_object_set_new(json, "busbw_gbps", json_real(row->busbw_gbps));
    if (row->slowest_rank >= 0) {
        json_object_set_new(json, "slowest",
                            json_pack("{s:i, s:f, s:f}", "rank", row->slowest_rank, "share",
                                      row->slowest_share, "behind_usec", row->behind_usec));
    }
    return json;
}

static json_t *process_json(const struct timeline *run, const struct timeline_process *process)
{
    return json_pack("{s:s, s:s, s:i, s:s, s:i, s:I, s:I, s:I, s:b}", "file",
                     run->paths[process->file], "host", process->host, "pid", process->pid, "exe",
                     process->exe, "api", process->api, "events", (json_int_t)process->starts,
                     "open", (json_int_t)process->open, "lost", (json_int_t)process->lost, "ended",
                     (int)process->ended);
}

static json_t *clock_json(const struct timeline_clock *clock)
{
    json_t *json = json_pack("{s:s, s:I, s:f, s:s}", "host", clock->host, "offset_ns",
                             (json_int_t)clock->offset_nsec, "drift", clock->drift, "by",
                             clock->by_operations ? "operations" : "wall clock");
    if (clock->error_nsec >= 0)
        json_object_set_new(json, "error_ns", json_integer(clock->error_nsec));
    return json;
}

static json_t *flight_waits_json(const struct timeline *run)
{
    json_t *list = json_array();
    char text[200];
    for (uint32_t f = 0; f < run->nflights; f++) {
        if (trace_flight_waits(run, &run->flights[f], text, sizeof(text)))
            json_array_append_new(list, json_string(text));
    }
    return list;
}

static void print_json(const struct timeline *run, const struct trace_table *rows,
                       const struct trace_stops *stops)
{
    json_t *processes = json_array(), *clocks = json_array(), *comms = json_array();
    for (uint32_t p = 0; p < run->nprocesses; p++)
        json_array_append_new(processes, process_json(run, &run->processes[p]));
    for (uint32_t c = 0; c < run->nclocks; c++)
        json_array_append_new(clocks, clock_json(&run->clocks[c]));
    for (uint32_t c = 0, row = 0; c < run->ncomms; c++) {
        const struct timeline_comm *comm = &run->comms[c];
        char id[24];
        json_t *list = json_array();
        (void)snprintf(id, sizeof(id), "%016llx", (unsigned long long)comm->id);
        for (; row < rows->nrows && rows->rows[row].comm == c; row++)
            json_array_append_new(list, row_json(run, &rows->rows[row]));
        json_array_append_new(comms,
                              json_pack("{s:s, s:s, s:i, s:i, s:i, s:o}", "id", id, "name",
                                        comm->name, "ranks", comm->nranks, "nodes", comm->nnodes,
                                        "ranks_here", (int)comm->nmembers, "operations", list));
    }
    trace_print_json(json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "events",
                               (json_int_t)run->nevents, "complaints", (json_int_t)run->complaints,
                               "left_out", (json_int_t)run->left_out, "processes", processes,
                               "clocks", clocks, "communicators", comms, "stopped",
                               trace_stops_json(run, stops), "waits", flight_waits_json(run)));
}

/* ---- text ---- */

static void print_head(const struct timeline *run)
{
    uint64_t lost = 0, open = 0;
    uint32_t cut = 0;
    int64_t last_nsec = 0;
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        lost += run->processes[p].lost;
        open += run->processes[p].open;
        cut += !run->processes[p].ended;
    }
    for (uint32_t e = 0; e < run->nevents; e++) {
        const struct timeline_event *event = &run->events[e];
        int64_t at = event->stop_nsec == TIMELINE_OPEN ? event->start_nsec : event->stop_nsec;
        if (at > last_nsec) last_nsec = at;
    }
    printf("%u events of %u process%s on %u host%s in %.6f s\n", run->nevents, run->nprocesses,
           run->nprocesses == 1 ? "" : "es", run->nclocks, run->nclocks == 1 ? "" : "s",
           (double)last_nsec / 1e9);
    if (lost) printf("%llu records were lost while recording\n", (unsigned long long)lost);
    if (open) printf("%llu events have no end\n", (unsigned long long)open);
    if (cut) {
        printf(cut == 1 ? "1 file has no line `end`: its process was killed or still runs\n"
                        : "%u files have no line `end`: their processes were killed or still run\n",
               cut);
    }
    if (run->left_out) {
        printf("%llu records were left out for want of memory\n",
               (unsigned long long)run->left_out);
    }
    for (uint32_t c = 1; c < run->nclocks; c++) {
        const struct timeline_clock *clock = &run->clocks[c];
        printf("clock of %s: %+.3f ms", clock->host, (double)clock->offset_nsec / 1e6);
        if (clock->drift != 0) printf(", drift %+.2f ppm", clock->drift * 1e6);
        if (clock->error_nsec >= 0) {
            printf(", good to %.3f us\n", (double)clock->error_nsec / 1e3);
        } else {
            printf(" by its wall clock: how good that is cannot be known\n");
        }
    }
}

/* "64 KiB" where it is that exactly, else bytes. */
static const char *size_text(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"", " KiB", " MiB", " GiB", " TiB"};
    int unit = 0;
    while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(text, room, "%llu%s", (unsigned long long)bytes, units[unit]);
    return text;
}

/* The type follows the function where `types` says so. */
static void print_row(const struct timeline *run, const struct trace_row *row, bool types)
{
    char size[32], algorithm[2 * TIMELINE_NAME_BYTES], slowest[64] = "";
    double whole = row->waiting_usec + row->moving_usec;
    const char *algo = timeline_word(run, row->algo);
    (void)snprintf(algorithm, sizeof(algorithm), "%s%s%s", algo, *algo ? "/" : "",
                   timeline_word(run, row->proto));
    if (row->slowest_rank >= 0) {
        (void)snprintf(slowest, sizeof(slowest), "  %4d %3.0f%% %9.1f", row->slowest_rank,
                       100 * row->slowest_share, row->behind_usec);
    }
    printf("%-13s ", timeline_word(run, row->func));
    if (types) printf("%-14s ", timeline_word(run, row->datatype));
    if (row->operations == 0) {
        printf("%10s %-12s %8d  none of %llu came to its end at all ranks\n",
               size_text(row->message_bytes, size, sizeof(size)), algorithm, 0,
               (unsigned long long)row->broken);
        return;
    }
    printf("%10s %-12s %8llu %9.1f %9.1f %8.3f %8.3f %9.1f %9.1f %5.0f%%%s", /* one line */
           size_text(row->message_bytes, size, sizeof(size)), algorithm,
           (unsigned long long)row->operations, row->p50_usec, row->p99_usec, row->algbw_gbps,
           row->busbw_gbps, row->skew_p50_usec, row->skew_p99_usec,
           whole > 0 ? 100 * row->waiting_usec / whole : 0, slowest);
    if (row->broken) printf("  (%llu not whole)", (unsigned long long)row->broken);
    (void)putchar('\n');
}

static void print_flight_waits(const struct timeline *run)
{
    char text[200];
    for (uint32_t f = 0; f < run->nflights; f++) {
        if (trace_flight_waits(run, &run->flights[f], text, sizeof(text))) printf("%s\n", text);
    }
}

static void print_text(const struct timeline *run, const struct trace_table *rows,
                       const struct trace_stops *stops)
{
    print_head(run);
    trace_stops_print(run, stops, "");
    print_flight_waits(run);
    for (uint32_t row = 0; row < rows->nrows; row++) {
        const struct timeline_comm *comm = &run->comms[rows->rows[row].comm];
        if (row == 0 || rows->rows[row - 1].comm != rows->rows[row].comm) {
            printf("\ncommunicator %016llx%s%s: ", (unsigned long long)comm->id,
                   *comm->name ? " " : "", comm->name);
            if (comm->nranks) printf("%u of %d ranks here\n", comm->nmembers, comm->nranks);
            if (!comm->nranks) printf("%u ranks here\n", comm->nmembers);
            printf("%-13s ", "");
            if (rows->types_differ) printf("%-14s ", "type");
            printf("%10s %-12s %8s %9s %9s %8s %8s %9s %9s %6s  %s\n", "bytes", "", "count",
                   "p50 us", "p99 us", "algbw", "busbw", "skew p50", "skew p99", "waits",
                   "last rank, how often, us behind");
        }
        print_row(run, &rows->rows[row], rows->types_differ);
    }
    if (rows->nrows == 0) printf("no collective and no message in it\n");
}

int trace_summary(const struct trace_options *options)
{
    struct timeline run;
    struct trace_table rows = {0};
    struct trace_stops stops = {0};
    int status = trace_load(options, 0, options->npaths, &run);
    if (status == 0) trace_report_cut(&run);
    if (status == 0 && !trace_table_make(&run, &rows)) status = 1;
    if (status == 0 && !trace_stops_find(&run, &stops)) status = 1;
    if (status == 0 && options->json) print_json(&run, &rows, &stops);
    if (status == 0 && !options->json) print_text(&run, &rows, &stops);
    trace_stops_fini(&stops);
    trace_table_fini(&rows);
    timeline_close(&run);
    return status;
}
