/* `tutti trace convert`: the same run in the words of other tools. */
#include "tool.h"
#include "tutti.h"
#include "write/out.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- JSON Lines: one file of all ranks, on one clock, an event a line ---- */

static void put_number(struct out *out, const char *name, int64_t number)
{
    out_text(out, name);
    out_signed(out, number);
}

static void put_word(const struct timeline *run, const char *name, uint16_t word, struct out *out)
{
    if (!word) return;
    out_text(out, name);
    out_text(out, timeline_word(run, word));
    out_text(out, "\"");
}

static void put_states(const struct timeline *run, const struct timeline_event *e, struct out *out)
{
    const char *before = ",\"states\":[[\"";
    for (uint32_t s = e->states; s != TIMELINE_NONE; s = run->states[s].next) {
        out_text(out, before);
        out_text(out, timeline_word(run, run->states[s].name));
        put_number(out, "\",", run->states[s].at_nsec);
        out_text(out, ",");
        out_number(out, run->states[s].value);
        before = "],[\"";
    }
    if (e->states != TIMELINE_NONE) out_text(out, "]]");
}

static void put_event(const struct timeline *run, uint32_t index, struct out *out)
{
    const struct timeline_event *e = &run->events[index];
    uint32_t parent = e->parent + 1; /* 0: none */
    put_number(out, "{\"t\":\"ev\",\"id\":", (int64_t)index + 1);
    put_number(out, ",\"parent\":", parent);
    put_number(out, ",\"c\":", e->member == TIMELINE_NONE ? 0 : run->members[e->member].number);
    put_number(out, ",\"tid\":", run->threads[e->thread].tid);
    put_number(out, ",\"ts\":", e->start_nsec);
    if (e->stop_nsec != TIMELINE_OPEN) put_number(out, ",\"dur\":", e->stop_nsec - e->start_nsec);
    if (e->member == TIMELINE_NONE) out_text(out, ",\"c_pid\":-1");
    out_text(out, ",\"type\":\"");
    out_text(out, timeline_type_name((enum timeline_type)e->type));
    out_text(out, "\"");
    put_word(run, ",\"func\":\"", e->func, out);
    put_word(run, ",\"datatype\":\"", e->datatype, out);
    put_word(run, ",\"algo\":\"", e->algo, out);
    put_word(run, ",\"proto\":\"", e->proto, out);
    if (e->count) {
        out_text(out, ",\"count\":");
        out_number(out, e->count);
    }
    out_text(out, ",\"seq\":");
    out_number(out, e->seq);
    put_number(out, ",\"peer\":", e->peer);
    if (e->steps) put_number(out, ",\"steps\":", e->steps);
    if (e->chunk_bytes) put_number(out, ",\"chunk\":", e->chunk_bytes);
    if (e->channel) put_number(out, ",\"channel\":", e->channel);
    if (e->warps) put_number(out, ",\"warps\":", e->warps);
    if (e->flag) out_text(out, ",\"send\":1");
    put_states(run, e, out);
    out_text(out, "}\n");
}

/* Who it is: the lines before the events. */
static void put_process(const struct timeline *run, const struct timeline_process *process,
                        struct out *out)
{
    out_print(out,
              "{\"t\":\"head\",\"v\":1,\"host\":\"%s\",\"pid\":%d,\"exe\":\"%s\","
              "\"start_wall_ns\":0,\"start_mono_ns\":0,\"clock\":\"run\",\"api\":%d,"
              "\"mask\":%d}\n",
              process->host, process->pid, process->exe, process->api, process->mask);
    for (uint32_t m = process->first_member; m < process->first_member + process->nmembers; m++) {
        const struct timeline_member *member = &run->members[m];
        const struct timeline_comm *comm =
            member->comm == TIMELINE_NONE ? NULL : &run->comms[member->comm];
        out_print(out,
                  "{\"t\":\"comm\",\"c\":%u,\"comm\":\"%016llx\",\"name\":\"%s\",\"rank\":%d,"
                  "\"nranks\":%d,\"nnodes\":%d}\n",
                  member->number, comm ? (unsigned long long)comm->id : 0, comm ? comm->name : "",
                  member->rank, comm ? comm->nranks : -1, comm ? comm->nnodes : -1);
    }
    for (uint32_t t = process->first_thread; t < process->first_thread + process->nthreads; t++) {
        out_print(out, "{\"t\":\"thread\",\"tid\":%d,\"name\":\"%s\"}\n", run->threads[t].tid,
                  run->threads[t].name);
    }
}

static bool write_jsonl(const struct timeline *run, struct out *out)
{
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        const struct timeline_process *process = &run->processes[p];
        put_process(run, process, out);
        for (uint32_t e = process->first_event; e < process->last_event; e++)
            put_event(run, e, out);
        if (process->ended) {
            out_print(out, "{\"t\":\"end\",\"starts\":%llu,\"lost\":%llu,\"open\":%llu}\n",
                      (unsigned long long)process->starts, (unsigned long long)process->lost,
                      (unsigned long long)process->open);
        }
    }
    return true;
}

/* ---- formats ---- */

struct format {
    const char *name;
    bool (*write)(const struct timeline *run, struct out *out);
    bool (*write_folder)(const struct timeline *run, const char *folder);
};
static const struct format formats[] = {
    {"chrome", trace_write_chrome, NULL},
    {"perfetto-json", trace_write_chrome, NULL},
    {"perfetto", trace_write_perfetto, NULL},
    {"otf2", NULL, trace_write_otf2},
    {"jsonl", write_jsonl, NULL},
    {"inspector", trace_write_inspector, NULL},
    {"prometheus", trace_write_prometheus, NULL},
};

static bool write_file(const struct timeline *run, const struct format *format, const char *path)
{
    struct out *out = tt_calloc(1, sizeof(*out));
    bool good = out && out_open(out, path);
    if (good) {
        good = format->write(run, out);
        if (!out_close(out, path)) good = false;
    }
    free(out);
    return good;
}

int trace_convert(const struct trace_options *options)
{
    struct timeline run;
    size_t f = 0;
    if (!options->to) return tutti_usage_error(options->command, "--to FORMAT is missing");
    while (f < TT_LEN(formats) && strcmp(formats[f].name, options->to) != 0)
        f++;
    if (f == TT_LEN(formats)) {
        char names[128] = "";
        size_t used = 0;
        for (f = 0; f < TT_LEN(formats) && used < sizeof(names); f++) {
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", f ? ", " : "",
                                     formats[f].name);
        }
        return tutti_usage_error(options->command, "no format '%s' but %s", options->to, names);
    }
    if (formats[f].write_folder && (!options->output || !strcmp(options->output, "-"))) {
        return tutti_usage_error(options->command, "--to %s writes a folder: -o FOLDER is missing",
                                 options->to);
    }
    int status = trace_load(options, 0, options->npaths, &run);
    if (status == 0) {
        trace_report_cut(&run);
        bool good = formats[f].write ? write_file(&run, &formats[f], options->output)
                                     : formats[f].write_folder(&run, options->output);
        status = good ? 0 : 1;
    }
    timeline_close(&run);
    return status;
}
