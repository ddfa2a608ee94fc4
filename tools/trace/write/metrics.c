/* What the inspector's dashboards read: a JSON object for each operation and rank, and Prometheus
 * text with its four gauges and our own totals and histogram. */
#include "../tool.h"
#include "out.h"

#include "base/mem.h"

#include <string.h>

/* ---- the inspector's JSON ---- */

static void put_operation(const struct timeline *run, const struct timeline_part *part,
                          struct out *out)
{
    const struct timeline_event *event = &run->events[part->event];
    const struct timeline_member *member = &run->members[event->member];
    const struct timeline_process *process = &run->processes[member->process];
    const struct timeline_comm *comm = &run->comms[member->comm];
    const struct timeline_operation *operation = &run->operations[part->operation];
    const char *func = timeline_word(run, event->func);
    uint64_t bytes = event->count * timeline_type_bytes(run, event->datatype);
    double usec = (double)(part->end_nsec - part->begin_nsec) / 1e3;
    double algbw =
        (double)trace_traffic_bytes(func, bytes, comm->nranks) / (usec > 0 ? usec : 1e-3);
    const char *kind = operation->message ? "p2p" : "coll";
    int64_t at_usec = (int64_t)(process->wall_nsec / 1000) +
                      (part->end_nsec + run->origin_nsec - run->clocks[process->clock].offset_nsec -
                       (int64_t)process->mono_nsec) /
                          1000;
    out_print(out,
              "{\"header\":{\"id\":\"0x%llx\",\"comm_name\":\"%s\",\"rank\":%d,\"n_ranks\":%d,"
              "\"nnodes\":%d},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
              "\"git_rev\":\"\",\"rec_mechanism\":\"nccl_profiler_interface\","
              "\"dump_timestamp_us\":%lld,\"hostname\":\"%s\",\"pid\":%d},\"%s_perf\":{",
              (unsigned long long)comm->id, comm->name, member->rank, comm->nranks, comm->nnodes,
              (long long)at_usec, process->host, process->pid, kind);
    out_print(out, "\"%s\":\"%s\",", kind, func);
    if (event->algo) {
        out_print(out, "\"coll_algo\":\"%s\",\"coll_proto\":\"%s\",",
                  timeline_word(run, event->algo), timeline_word(run, event->proto));
    }
    out_print(out, "\"%s_sn\":%llu,", kind, (unsigned long long)operation->seq);
    if (operation->message) out_print(out, "\"p2p_peer\":%d,", event->peer);
    out_print(out,
              "\"%s_msg_size_bytes\":%llu,\"%s_exec_time_us\":%.3f,\"%s_timing_source\":"
              "\"kernel_cpu\",\"%s_algobw_gbs\":%.6f,\"%s_busbw_gbs\":%.6f}}\n",
              kind, (unsigned long long)bytes, kind, usec, kind, kind, algbw / 1e3, kind,
              algbw / 1e3 * trace_bus_factor(func, comm->nranks));
}

bool trace_write_inspector(const struct timeline *run, struct out *out)
{
    for (uint32_t o = 0; o < run->noperations; o++) {
        for (uint32_t k = 0; k < run->operations[o].count; k++) {
            const struct timeline_part *part = &run->parts[run->operations[o].first + k];
            if (part->end_nsec != TIMELINE_OPEN) put_operation(run, part, out);
        }
    }
    return true;
}

/* ---- Prometheus ---- */

/* The inspector's buckets are one unit wide: 4-5GB, 512-513MB, but for 0B. */
static void size_bucket(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < TT_LEN(units)) {
        bytes /= 1024;
        unit++;
    }
    if (!bytes) {
        (void)snprintf(text, room, "0B");
        return;
    }
    (void)snprintf(text, room, "%llu-%llu%s", (unsigned long long)bytes,
                   (unsigned long long)bytes + 1, units[unit]);
}

static void put_labels(const struct timeline *run, const struct trace_row *row, struct out *out)
{
    const struct timeline_comm *comm = &run->comms[row->comm];
    bool message = row->algo == 0;
    char size[64];
    size_bucket(row->message_bytes, size, sizeof(size));
    out_print(out,
              "{version=\"v5.1\",slurm_job_id=\"unknown\",node=\"%s\",gpu=\"\",comm_name=\"%s\","
              "n_nodes=\"%d\",nranks=\"%d\",%s=\"%s\",message_size=\"%s\"",
              run->processes[0].host, *comm->name ? comm->name : "unknown", comm->nnodes,
              comm->nranks, message ? "p2p_operation" : "collective", timeline_word(run, row->func),
              size);
    if (!message) {
        out_print(out, ",algo_proto=\"%s_%s\"", timeline_word(run, row->algo),
                  timeline_word(run, row->proto));
    }
    /* so that no two rows have the same labels */
    out_print(out, ",comm_id=\"%016llx\",bytes=\"%llu\",datatype=\"%s\"}",
              (unsigned long long)comm->id, (unsigned long long)row->message_bytes,
              timeline_word(run, row->datatype));
}

static void put_family(const struct timeline *run, const struct trace_table *table,
                       const char *name, double (*value)(const struct trace_row *), struct out *out)
{
    static const char collective[] = "nccl_collective", bus[] = "nccl_bus";
    for (uint32_t r = 0; r < table->nrows; r++) {
        const struct trace_row *row = &table->rows[r];
        const char *rest = name;
        if (row->operations == 0) continue;
        /* messages have the same metrics under names of their own */
        if (row->algo == 0 && !strncmp(name, collective, sizeof(collective) - 1)) {
            out_text(out, "nccl_p2p");
            rest += sizeof(collective) - 1;
        } else if (row->algo == 0 && !strncmp(name, bus, sizeof(bus) - 1)) {
            out_text(out, "nccl_p2p_bus");
            rest += sizeof(bus) - 1;
        }
        out_text(out, rest);
        put_labels(run, row, out);
        out_print(out, " %.9g\n", value(row));
    }
}

static double bus_of(const struct trace_row *row)
{
    return row->busbw_gbps;
}
static double time_of(const struct trace_row *row)
{
    return row->mean_usec;
}
static double operations_of(const struct trace_row *row)
{
    return (double)row->operations;
}
static double bytes_of(const struct trace_row *row)
{
    return (double)row->operations * (double)row->message_bytes;
}
static double skew_of(const struct trace_row *row)
{
    return row->skew_p99_usec / 1e6;
}

bool trace_write_prometheus(const struct timeline *run, struct out *out)
{
    struct trace_table table = {0};
    uint64_t lost = 0;
    if (!trace_table_make(run, &table)) return false;
    put_family(run, &table, "nccl_bus_bandwidth_gbs", bus_of, out);
    put_family(run, &table, "nccl_collective_exec_time_microseconds", time_of, out);
    out_text(out, "# HELP nccl_operations_total Operations that all ranks ended.\n"
                  "# TYPE nccl_operations_total counter\n");
    put_family(run, &table, "nccl_operations_total", operations_of, out);
    out_text(out, "# HELP nccl_bytes_total Bytes of their messages.\n"
                  "# TYPE nccl_bytes_total counter\n");
    put_family(run, &table, "nccl_bytes_total", bytes_of, out);
    out_text(out, "# HELP nccl_skew_p99_seconds From the first rank's begin to the last one's.\n"
                  "# TYPE nccl_skew_p99_seconds gauge\n");
    put_family(run, &table, "nccl_skew_p99_seconds", skew_of, out);
    for (uint32_t p = 0; p < run->nprocesses; p++)
        lost += run->processes[p].lost;
    out_text(out, "# HELP nccl_profiler_lost_events_total Records that had no room.\n"
                  "# TYPE nccl_profiler_lost_events_total counter\n");
    out_print(out, "nccl_profiler_lost_events_total %llu\n", (unsigned long long)lost);
    trace_table_fini(&table);
    return true;
}
