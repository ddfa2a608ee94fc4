/* Trace events as Chrome's and Perfetto's viewers read them: a process for each rank, a thread for
 * each lane, and arrows from rank to rank along the parts of each operation. */
#include "../tool.h"
#include "out.h"
#include "slices.h"

#include <stdlib.h>
#include <string.h>

static void put_names(const struct timeline *run, const struct lanes *lanes, struct out *out)
{
    char name[200];
    for (uint32_t g = 0; g < lanes->ngroups; g++) {
        lanes_group_name(run, lanes, g, name, sizeof(name));
        out_print(
            out,
            "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}},\n"
            "{\"ph\":\"M\",\"pid\":%u,\"name\":\"process_sort_index\",\"args\":"
            "{\"sort_index\":%u}},\n",
            g + 1, name, g + 1, g + 1);
    }
    for (uint32_t l = 0; l < lanes->nlanes; l++) {
        uint32_t pid = lanes->lanes[l].group + 1;
        lanes_name(run, &lanes->lanes[l], name, sizeof(name));
        out_print(out,
                  "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":"
                  "\"%s\"}},\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\","
                  "\"args\":{\"sort_index\":%u}},\n",
                  pid, l + 1, name, pid, l + 1, l + 1);
    }
}

static void put_fact(const struct timeline *run, const struct slice_fact *fact, struct out *out)
{
    out_text(out, fact->kind == FACT_TYPE ? "\"" : ",\"");
    out_text(out, slice_fact_name(fact->kind));
    out_text(out, "\":");
    if (slice_fact_is_word(fact->kind)) {
        out_text(out, "\"");
        out_text(out, timeline_word(run, (uint16_t)fact->value));
        out_text(out, "\"");
    } else if (fact->kind == FACT_COMM) {
        char id[OUT_ID_BYTES];
        out_id_text(id, run->comms[fact->value].id);
        out_text(out, "\"");
        out_bytes(out, id, OUT_ID_BYTES - 1);
        out_text(out, "\"");
    } else {
        out_number(out, fact->value);
    }
}

static void put_args(const struct timeline *run, const struct timeline_event *event,
                     struct out *out)
{
    struct slice_fact facts[SLICE_FACTS_MOST];
    int nfacts = slice_facts(run, event, facts);
    for (int k = 0; k < nfacts; k++)
        put_fact(run, &facts[k], out);
    for (uint32_t s = event->states; s != TIMELINE_NONE; s = run->states[s].next) {
        out_text(out, ",\"");
        out_text(out, timeline_word(run, run->states[s].name));
        out_text(out, "\":\"at ");
        out_usec(out, run->states[s].at_nsec);
        if (run->states[s].value) {
            out_text(out, " value ");
            out_number(out, run->states[s].value);
        }
        out_text(out, "\"");
    }
}

static void put_name(const struct timeline *run, const struct timeline_event *event,
                     struct out *out)
{
    enum timeline_type type = (enum timeline_type)event->type;
    if (event->func && type != TIMELINE_KERNEL_PHASE) {
        out_text(out, timeline_word(run, event->func));
        return;
    }
    out_text(out, timeline_type_name(type));
    if (type == TIMELINE_PROXY_STEP) {
        out_text(out, " ");
        out_signed(out, event->steps);
    }
    if (type == TIMELINE_PROXY_OP) out_text(out, event->flag ? " send" : " receive");
}

static void put_position(const struct lanes *lanes, uint32_t event, int64_t at_nsec,
                         struct out *out)
{
    uint32_t lane = lanes->of_event[event];
    out_text(out, ",\"pid\":");
    out_number(out, lanes->lanes[lane].group + 1);
    out_text(out, ",\"tid\":");
    out_number(out, lane + 1);
    out_text(out, ",\"ts\":");
    out_usec(out, at_nsec);
}

static void put_event(const struct timeline *run, const struct lanes *lanes, uint32_t index,
                      struct out *out)
{
    const struct timeline_event *event = &run->events[index];
    out_text(out, "{\"ph\":\"X\",\"name\":\"");
    put_name(run, event, out);
    out_text(out, "\",\"cat\":\"");
    out_text(out, timeline_type_name((enum timeline_type)event->type));
    out_text(out, "\"");
    put_position(lanes, index, event->start_nsec, out);
    out_text(out, ",\"dur\":");
    out_usec(out, lanes_end(lanes, event) - event->start_nsec);
    out_text(out, ",\"args\":{");
    put_args(run, event, out);
    out_text(out, "}},\n");
}

static int by_begin(const void *left, const void *right)
{
    const struct timeline_part *a = left, *b = right;
    return (a->begin_nsec > b->begin_nsec) - (a->begin_nsec < b->begin_nsec);
}

/* One arrow through all parts of an operation, in the order of their begins; a message's from the
 * Send to the Recv. */
static void put_arrow(const struct timeline *run, const struct lanes *lanes, uint32_t index,
                      struct out *out)
{
    const struct timeline_operation *operation = &run->operations[index];
    struct timeline_part *parts = malloc(operation->count * sizeof(*parts));
    if (!parts) return;
    memcpy(parts, &run->parts[operation->first], operation->count * sizeof(*parts));
    if (!operation->message) qsort(parts, operation->count, sizeof(*parts), by_begin);
    for (uint32_t k = 0; k < operation->count; k++) {
        bool last = k + 1 == operation->count;
        out_text(out, "{\"ph\":\"");
        out_text(out, k == 0 ? "s" : last ? "f\",\"bp\":\"e" : "t");
        out_text(out, "\",\"cat\":\"operation\",\"name\":\"");
        out_text(out, timeline_word(run, operation->func));
        out_text(out, "\",\"id\":");
        out_number(out, index + 1);
        put_position(lanes, parts[k].event, run->events[parts[k].event].start_nsec, out);
        out_text(out, "},\n");
    }
    free(parts);
}

bool trace_write_chrome(const struct timeline *run, struct out *out)
{
    struct lanes lanes;
    bool good = lanes_make(run, &lanes);
    if (good) {
        out_text(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"clocks\":[");
        for (uint32_t c = 0; c < run->nclocks; c++) {
            out_print(out, "%s{\"host\":\"%s\",\"offset_ns\":%lld,\"error_ns\":%lld}", c ? "," : "",
                      run->clocks[c].host, (long long)run->clocks[c].offset_nsec,
                      (long long)run->clocks[c].error_nsec);
        }
        out_text(out, "]},\"traceEvents\":[\n");
        put_names(run, &lanes, out);
        for (uint32_t i = 0; i < run->nevents; i++)
            put_event(run, &lanes, lanes.order[i], out);
        for (uint32_t o = 0; o < run->noperations; o++) {
            if (run->operations[o].count > 1) put_arrow(run, &lanes, o, out);
        }
        /* so that each line above can end with a comma */
        out_text(out, "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
                      "\"\"}}\n]}\n");
    }
    lanes_fini(&lanes);
    return good;
}
