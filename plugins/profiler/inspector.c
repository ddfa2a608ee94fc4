/* One operation as NCCL's inspector writes it, an object a line; its exporter reads the members
 * `header`, `metadata` and `coll_perf`. With NCCL_INSPECTOR_DUMP_VERBOSE=1 the verbose members come
 * as well: when each event of the operation came, and which number it has in their order. */
#include "outputs.h"

#include <stdarg.h>
#include <stdio.h>

enum { MOMENTS = 2 + 3 * TRACE_CHANNELS };

struct line {
    char *text; /* borrowed: TRACE_INSPECTOR_BYTES */
    size_t used;
};

static void append(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    int bytes =
        vsnprintf(line->text + line->used, TRACE_INSPECTOR_BYTES - line->used, format, args);
    va_end(args);
    if (bytes > 0) line->used += (size_t)bytes;
    if (line->used >= TRACE_INSPECTOR_BYTES) line->used = TRACE_INSPECTOR_BYTES - 1;
}

static const char *word_of(uint8_t word)
{
    return word ? trace_process.words[word - 1] : "";
}

/* ---- the verbose members ---- */

/* The moments of an operation one behind the other: its own two, then three of each kernel. */
static uint32_t moments_of(const struct trace_operation *operation, uint64_t moments[MOMENTS])
{
    const struct trace_moments *from = operation->moments;
    uint32_t count = 0, kernels = operation->start.channel;
    moments[count++] = from->begin_nsec;
    moments[count++] = from->end_nsec;
    for (uint32_t c = 0; c < kernels && c < TRACE_CHANNELS; c++) {
        moments[count++] = from->kernels[c].begin_nsec;
        moments[count++] = from->kernels[c].end_nsec;
        moments[count++] = from->kernels[c].record_nsec;
    }
    return count;
}

/* The numbers from 1 on in which they came; 0: it did not. */
static void number(const uint64_t *moments, uint32_t count, uint64_t *numbers)
{
    for (uint32_t k = 0; k < count; k++) {
        numbers[k] = moments[k] != 0;
        for (uint32_t j = 0; j < count && moments[k]; j++) {
            numbers[k] +=
                moments[j] && (moments[j] < moments[k] || (moments[j] == moments[k] && j < k));
        }
    }
}

static void print_moments(struct line *line, const char *kind, const char *unit,
                          const uint64_t *values, uint32_t count)
{
    append(
        line, ",\"event_trace_%s\":{\"%s_start_%s\":%llu,\"%s_stop_%s\":%llu,\"kernel_events\":[",
        unit, kind, unit, (unsigned long long)values[0], kind, unit, (unsigned long long)values[1]);
    for (uint32_t k = 2; k + 2 < count; k += 3) {
        append(line,
               "%s{\"channel_id\":%u,\"kernel_start_%s\":%llu,\"kernel_stop_%s\":%llu,"
               "\"kernel_record_%s\":%llu}",
               k > 2 ? "," : "", (k - 2) / 3, unit, (unsigned long long)values[k], unit,
               (unsigned long long)values[k + 1], unit, (unsigned long long)values[k + 2]);
    }
    append(line, "]}");
}

static void print_verbose(struct line *line, const struct trace_operation *operation,
                          const char *kind)
{
    uint64_t moments[MOMENTS] = {0}, values[MOMENTS] = {0};
    uint32_t count = moments_of(operation, moments);
    number(moments, count, values);
    print_moments(line, kind, "sn", values, count);
    const uint64_t wall_nsec = trace_wall_nsec(), now_nsec = trace_clock_nsec();
    for (uint32_t k = 0; k < count; k++)
        values[k] = moments[k] ? (wall_nsec - (now_nsec - moments[k])) / 1000 : 0;
    print_moments(line, kind, "ts", values, count);
}

/* ---- the line ---- */

/* NOLINTNEXTLINE(readability-non-const-parameter): the line is written there */
size_t trace_inspector_line(const struct trace_operation *operation, const char *host, char *text)
{
    static const char *const timings[] = {
        [TRACE_TIMING_GPU] = "kernel_gpu",
        [TRACE_TIMING_KERNEL] = "kernel_cpu",
        [TRACE_TIMING_CALL] = "collective_cpu",
    };
    const struct trace_rank *rank = operation->rank;
    struct line line = {.text = text};
    /* both clocks now; the operation ended a moment ago */
    uint64_t ago_nsec = trace_clock_nsec() - operation->end_nsec;
    const char *kind = operation->message ? "p2p" : "coll";
    uint64_t sequence = operation->message ? operation->rank->messages++ : operation->start.seq;
    append(&line,
           "{\"header\":{\"id\":\"0x%llx\",\"comm_name\":\"%s\",\"rank\":%d,\"n_ranks\":%d,"
           "\"nnodes\":%d},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
           "\"git_rev\":\"\",\"rec_mechanism\":\"nccl_profiler_interface\","
           "\"dump_timestamp_us\":%llu,\"hostname\":\"%s\",\"pid\":%d},\"%s_perf\":{",
           (unsigned long long)rank->comm, rank->name, rank->rank, rank->nranks, rank->nnodes,
           (unsigned long long)((trace_wall_nsec() - ago_nsec) / 1000), host, trace_process.pid,
           kind);
    append(&line, "\"%s\":\"%s\",", kind, word_of(operation->start.func));
    if (!operation->message && operation->start.algo) {
        append(&line, "\"coll_algo\":\"%s\",\"coll_proto\":\"%s\",", word_of(operation->start.algo),
               word_of(operation->start.proto));
    }
    append(&line, "\"%s_sn\":%llu,", kind, (unsigned long long)sequence);
    if (operation->message) append(&line, "\"p2p_peer\":%d,", operation->start.peer);
    append(&line,
           "\"%s_msg_size_bytes\":%llu,\"%s_exec_time_us\":%.3f,\"%s_timing_source\":\"%s\","
           "\"%s_algobw_gbs\":%.6f,\"%s_busbw_gbs\":%.6f",
           kind, (unsigned long long)operation->bytes, kind, operation->usec, kind,
           timings[operation->timing], kind, operation->algbw_gbps, kind, operation->busbw_gbps);
    if (operation->moments) print_verbose(&line, operation, kind);
    append(&line, "}}\n");
    return line.used;
}
