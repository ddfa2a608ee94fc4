/* One operation as NCCL's inspector writes it, an object a line; its exporter reads the members
 * `header`, `metadata` and `coll_perf`. */
#include "outputs.h"

#include <stdio.h>

static const char *word_of(uint8_t word)
{
    return word ? trace_process.words[word - 1] : "";
}

size_t trace_inspector_line(const struct trace_operation *operation, const char *host, char *line)
{
    static const char *const timings[] = {
        [TRACE_TIMING_GPU] = "kernel_gpu",
        [TRACE_TIMING_KERNEL] = "kernel_cpu",
        [TRACE_TIMING_CALL] = "collective_cpu",
    };
    const struct trace_rank *rank = operation->rank;
    /* both clocks now; the operation ended a moment ago */
    uint64_t ago_nsec = trace_clock_nsec() - operation->end_nsec;
    const char *kind = operation->message ? "p2p" : "coll";
    uint64_t number = operation->message ? operation->rank->messages++ : operation->start.seq;
    char peer[32] = "";
    if (operation->message) snprintf(peer, sizeof(peer), "\"p2p_peer\":%d,", operation->start.peer);
    int bytes = snprintf(
        line, TRACE_LINE_BYTES,
        "{\"header\":{\"id\":\"0x%llx\",\"comm_name\":\"%s\",\"rank\":%d,\"n_ranks\":%d,"
        "\"nnodes\":%d},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
        "\"git_rev\":\"\",\"rec_mechanism\":\"nccl_profiler_interface\","
        "\"dump_timestamp_us\":%llu,\"hostname\":\"%s\",\"pid\":%d},\"%s_perf\":{"
        "\"%s\":\"%s\",\"%s_sn\":%llu,%s\"%s_msg_size_bytes\":%llu,\"%s_exec_time_us\":%.3f,"
        "\"%s_timing_source\":\"%s\",\"%s_algobw_gbs\":%.6f,\"%s_busbw_gbs\":%.6f}}\n",
        (unsigned long long)rank->comm, rank->name, rank->rank, rank->nranks, rank->nnodes,
        (unsigned long long)((trace_wall_nsec() - ago_nsec) / 1000), host, trace_process.pid, kind,
        kind, word_of(operation->start.func), kind, (unsigned long long)number, peer, kind,
        (unsigned long long)operation->bytes, kind, operation->usec, kind,
        timings[operation->timing], kind, operation->algbw_gbps, kind, operation->busbw_gbps);
    return bytes > 0 && bytes < TRACE_LINE_BYTES ? (size_t)bytes : 0;
}
