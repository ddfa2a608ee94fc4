/* Trace events as Chrome's and Perfetto's viewers read them: a process for each rank, a thread for
 * each lane, and arrows from rank to rank along the parts of each operation. */
#include "lanes.h"
#include "out.h"
#include "tool.h"

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

static void put_pair(struct out *out, const char *name, uint64_t number)
{
    out_text(out, ",\"");
    out_text(out, name);
    out_text(out, "\":");
    out_number(out, number);
}

static void put_word(const struct timeline *run, struct out *out, const char *name, uint16_t word)
{
    if (!word) return;
    out_text(out, ",\"");
    out_text(out, name);
    out_text(out, "\":\"");
    out_text(out, timeline_word(run, word));
    out_text(out, "\"");
}

static void put_args(const struct timeline *run, const struct timeline_event *event,
                     struct out *out)
{
    enum timeline_type type = (enum timeline_type)event->type;
    bool operation = type == TIMELINE_COLL || type == TIMELINE_P2P || type == TIMELINE_CE_COLL;
    bool call = type == TIMELINE_COLL_API || type == TIMELINE_P2P_API;
    out_text(out, "\"type\":\"");
    out_text(out, timeline_type_name(type));
    out_text(out, "\"");
    if (event->stop_nsec == TIMELINE_OPEN) out_text(out, ",\"has_no_end\":1");
    if (event->member != TIMELINE_NONE && run->members[event->member].comm != TIMELINE_NONE) {
        out_print(out, ",\"comm\":\"%016llx\"",
                  (unsigned long long)run->comms[run->members[event->member].comm].id);
    }
    if (operation || call) {
        put_word(run, out, "datatype", event->datatype);
        put_pair(out, "count", event->count);
        put_pair(out, "bytes", event->count * timeline_type_bytes(run, event->datatype));
        if (event->peer >= 0)
            put_pair(out, type == TIMELINE_P2P ? "peer" : "root", (uint64_t)event->peer);
    }
    if (operation) {
        put_pair(out, "seq", event->seq);
        put_word(run, out, "algorithm", event->algo);
        put_word(run, out, "protocol", event->proto);
        put_pair(out, "channels", event->channel);
    }
    if (type == TIMELINE_PROXY_OP) {
        if (event->peer >= 0) put_pair(out, "peer", (uint64_t)event->peer);
        put_pair(out, "steps", (uint64_t)event->steps);
        put_pair(out, "chunk_bytes", (uint64_t)event->chunk_bytes);
    }
    if (type == TIMELINE_KERNEL_CH) put_pair(out, "timer", event->seq);
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

static void put_place(const struct lanes *lanes, uint32_t event, int64_t at_nsec, struct out *out)
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
    put_place(lanes, index, event->start_nsec, out);
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
        put_place(lanes, parts[k].event, run->events[parts[k].event].start_nsec, out);
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
