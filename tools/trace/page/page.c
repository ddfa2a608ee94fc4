/* `tutti trace page`: the run as one HTML file that needs nothing else. What is fixed in it stands
 * in page.html, page.css and the scripts beside this file; embed.py makes them constants. Text of
 * the trace is in JSON only, where '<', '>' and '&' are escaped, and scripts are allowed by their
 * hash alone: nothing in a trace can become markup or run. */
#include "../tool.h"
#include "pack.h"
#include "source.h"
#include "tutti.h"

#include "base/mem.h"

#include <stdlib.h>

static void put_string(struct out *out, const char *text)
{
    out_text(out, "\"");
    for (; *text; text++) {
        const char letter[2] = {*text, 0};
        bool markup = *text == '<' || *text == '>' || *text == '&';
        if (markup) out_print(out, "\\u%04x", (unsigned int)(unsigned char)*text);
        if (!markup) out_text(out, letter);
    }
    out_text(out, "\"");
}

static void put_pair(struct out *out, const char *name, uint64_t number)
{
    out_print(out, "\"%s\":%llu,", name, (unsigned long long)number);
}

static void put_lanes(const struct page *page, struct out *out)
{
    const struct lanes *lanes = &page->lanes;
    char name[200];
    out_text(out, "\"groups\":[");
    for (uint32_t g = 0; g < lanes->ngroups; g++) {
        const struct timeline_process *process = &page->run->processes[lanes->groups[g].process];
        out_print(out, "%s[%d,%d,", g ? ",\n" : "", lanes->groups[g].rank, process->pid);
        put_string(out, process->host);
        out_text(out, ",");
        put_string(out, process->exe);
        out_text(out, "]");
    }
    out_text(out, "],\n\"lanes\":[");
    for (uint32_t l = 0; l < lanes->nlanes; l++) {
        lanes_name(page->run, &lanes->lanes[l], name, sizeof(name));
        out_print(out, "%s[%u,", l ? ",\n" : "", lanes->lanes[l].group);
        put_string(out, name);
        out_text(out, "]");
    }
    out_text(out, "],\n\"rows\":[");
    for (uint32_t r = 0; r < page->nrows; r++)
        out_print(out, "%s[%u,%u]", r ? "," : "", page->rows[r].lane, page->rows[r].count);
    out_text(out, "],\n");
}

static void put_kinds(const struct page *page, struct out *out)
{
    out_text(out, "\"kinds\":[");
    for (uint32_t k = 0; k < page->nkinds; k++) {
        const struct page_kind *kind = &page->kinds[k];
        out_print(out, "%s[%u,%u,%u,%u,%u,%d,%d,%d,%u]", k ? ",\n" : "", kind->type, kind->func,
                  kind->datatype, kind->algo, kind->proto,
                  kind->comm == TIMELINE_NONE ? -1 : (int)kind->comm, kind->marks & PAGE_OPEN,
                  kind->marks & PAGE_FLAG, kind->channel);
    }
    out_text(out, "],\n\"types\":[");
    for (int t = 0; t < TIMELINE_TYPE_COUNT_; t++) {
        if (t) out_text(out, ",");
        put_string(out, timeline_type_name((enum timeline_type)t));
    }
    out_text(out, "],\n\"words\":[");
    for (uint32_t w = 0; w < page->run->nwords; w++) {
        if (w) out_text(out, ",");
        put_string(out, page->run->words[w]);
    }
    out_text(out, "],\n");
}

static void put_run(const struct timeline *run, struct out *out)
{
    uint64_t lost = 0;
    out_text(out, "\"comms\":[");
    for (uint32_t c = 0; c < run->ncomms; c++) {
        const struct timeline_comm *comm = &run->comms[c];
        out_print(out, "%s[\"%016llx\",", c ? ",\n" : "", (unsigned long long)comm->id);
        put_string(out, comm->name);
        out_print(out, ",%d,%u]", comm->nranks, comm->nmembers);
    }
    out_text(out, "],\n\"clocks\":[");
    for (uint32_t c = 0; c < run->nclocks; c++) {
        const struct timeline_clock *clock = &run->clocks[c];
        out_text(out, c ? ",\n[" : "[");
        put_string(out, clock->host);
        out_print(out, ",%lld,%d]", (long long)clock->error_nsec, clock->by_operations);
    }
    for (uint32_t p = 0; p < run->nprocesses; p++)
        lost += run->processes[p].lost;
    out_text(out, "],\n");
    put_pair(out, "lost", lost);
    put_pair(out, "complaints", run->complaints);
    put_pair(out, "left_out", run->left_out);
    put_pair(out, "events", run->nevents);
    put_pair(out, "all_operations", run->noperations);
}

static bool put_table(const struct timeline *run, struct out *out)
{
    struct trace_table table;
    bool good = trace_table_make(run, &table);
    out_text(out, "\"table\":[");
    for (uint32_t r = 0; good && r < table.nrows; r++) {
        const struct trace_row *row = &table.rows[r];
        out_text(out, r ? ",\n[" : "[");
        put_string(out, timeline_word(run, row->func));
        out_print(out, ",%u,%llu,%llu,%llu,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f,%d,%.4f,%.3f,", row->comm,
                  (unsigned long long)row->message_bytes, (unsigned long long)row->operations,
                  (unsigned long long)row->broken, row->p50_usec, row->p99_usec, row->skew_p50_usec,
                  row->waiting_usec, row->moving_usec, row->busbw_gbps, row->slowest_rank,
                  row->slowest_share, row->behind_usec);
        put_string(out, timeline_word(run, row->algo));
        out_text(out, ",");
        put_string(out, timeline_word(run, row->proto));
        out_text(out, "]");
    }
    out_text(out, "]}\n");
    trace_table_fini(&table);
    return good;
}

static void put_group(const struct page *page, uint32_t member, struct out *out, const char *before)
{
    uint32_t process = page->run->members[member].process;
    out_print(out, "%s%u", before, lanes_group(&page->lanes, process, page->stops->ranks[member]));
}

/* The groups of the ranks that wait in a stop. */
static void put_waiting(const struct page *page, const struct trace_stop *stop, struct out *out)
{
    const struct timeline *run = page->run;
    const struct timeline_operation *op = &run->operations[stop->operation];
    const char *before = "";
    for (uint32_t k = 0; k < op->count; k++) {
        const struct timeline_part *part = &run->parts[op->first + k];
        if (stop->behind == TIMELINE_NONE && !trace_part_waits(run, page->stops, part)) continue;
        put_group(page, run->events[part->event].member, out, before);
        before = ",";
    }
}

/* Where a flight recorder says that a rank waits, and no operation shows it. */
static void put_flight_waits(const struct timeline *run, struct out *out)
{
    const char *before = "";
    out_text(out, "\"waits\":[");
    for (uint32_t f = 0; f < run->nflights; f++) {
        char text[200];
        if (!trace_flight_waits(run, &run->flights[f], text, sizeof(text))) continue;
        out_text(out, before);
        put_string(out, text);
        before = ",";
    }
    out_text(out, "],");
}

/* [operation, 1: it is a cause, 2: it is queued behind another one, groups that are absent, that
 * wait, the text] */
static bool put_stops(const struct page *page, struct out *out)
{
    const struct timeline *run = page->run;
    const struct trace_stops *stops = page->stops;
    uint32_t *number = tt_calloc(run->noperations + (size_t)1, sizeof(*number));
    if (!number) return false;
    for (uint32_t o = 0; o < run->noperations; o++)
        number[o + 1] = number[o] + page_has_operation(page, &run->operations[o]);
    put_flight_waits(run, out);
    out_print(out, "\"circle\":\"%s\",\"stops\":[", stops->circle);
    for (uint32_t s = 0; s < stops->count; s++) {
        const struct trace_stop *stop = &stops->list[s];
        char text[TRACE_STOP_BYTES];
        out_print(out, "%s[%u,%d,[", s ? ",\n" : "", number[stop->operation],
                  stop->behind != TIMELINE_NONE ? 2 : stop->cause);
        for (uint32_t k = 0; k < stop->count && stop->behind == TIMELINE_NONE; k++)
            put_group(page, stops->absent[stop->first + k], out, k ? "," : "");
        out_text(out, "],[");
        put_waiting(page, stop, out);
        trace_stop_text(run, stops, stop, text, sizeof(text));
        out_text(out, "],");
        put_string(out, text);
        out_text(out, "]");
    }
    out_text(out, "],\n");
    free(number);
    return true;
}

static bool put_page(const struct page *page, struct out *out)
{
    for (const char *const *line = page_source_head; *line; line++)
        out_text(out, *line);
    out_text(out, "<script type=\"application/json\" id=\"facts\">\n{");
    put_lanes(page, out);
    put_kinds(page, out);
    put_run(page->run, out);
    put_pair(out, "operations", page->noperations);
    put_pair(out, "blocks", page->nblocks);
    put_pair(out, "states", page->nstates);
    put_pair(out, "all_states", page->all_states);
    put_pair(out, "join_nsec", (uint64_t)page->join_nsec);
    put_pair(out, "operation_nsec", (uint64_t)page->operation_nsec);
    put_pair(out, "end_nsec", (uint64_t)page->lanes.end_nsec);
    put_pair(out, "detailed", page->ndetailed);
    out_text(out, "\"chunks\":[");
    for (uint32_t c = 0; c < page->nchunks; c++) {
        out_print(out, "%s[%u,%u]", c ? "," : "", page->chunks[c].first, page->chunks[c].last);
    }
    out_text(out, "],\n");
    bool good = put_stops(page, out) && put_table(page->run, out);
    out_text(out, "</script>\n<script type=\"text/plain\" id=\"numbers\">");
    page_put_numbers(page, out);
    out_text(out, "</script>\n");
    page_put_details(page, out);
    for (const char *const *line = page_source_tail; *line; line++)
        out_text(out, *line);
    return good;
}

int trace_page(const struct trace_options *options)
{
    struct timeline run;
    struct page page = {0};
    struct trace_stops stops = {0};
    struct out *out = NULL;
    int status = trace_load(options, 0, options->npaths, &run);
    uint64_t events = (uint64_t)options->events, details = (uint64_t)options->details;
    if (status == 0) trace_report_cut(&run);
    if (status == 0) status = trace_stops_find(&run, &stops) ? 0 : 1;
    if (status == 0 && stops.count && !timeline_ranks(&run, stops.ranks)) status = 1;
    if (status == 0) status = page_pack(&run, &stops, events, details, &page) ? 0 : 1;
    if (status == 0) {
        out = tt_calloc(1, sizeof(*out));
        status = out && out_open(out, options->output) ? 0 : 1;
    }
    if (status == 0) {
        status = put_page(&page, out) ? 0 : 1;
        if (!out_close(out, options->output)) status = 1;
    }
    free(out);
    page_fini(&page);
    trace_stops_fini(&stops);
    timeline_close(&run);
    return status;
}
