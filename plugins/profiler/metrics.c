/* Operations of one kind as rows of Prometheus's text: the four gauges of NCCL's inspector, of the
 * operations since the text before (of the last ones, where there were none), its totals of a
 * device, and totals and a histogram under names of our own. */
#include "outputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1024, SLOTS = 4096, BUCKETS = 12 };
/* Upper bounds of the histogram in microseconds. */
static const double bounds_usec[BUCKETS] = {3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 1e6, 1e7};

/* What makes a row. Compared as bytes, so it has no holes. */
struct row_key {
    const struct trace_rank *rank; /* borrowed */
    uint64_t bytes;
    uint8_t func, datatype, algo, proto;
    uint32_t message;
};
_Static_assert(sizeof(struct row_key) == 24, "a hole in struct row_key");

struct row {
    struct row_key key;
    uint64_t count, buckets[BUCKETS];
    double sum_usec;
    /* since the text before */
    uint64_t recent, recent_moved; /* moved: with bytes that crossed */
    double recent_usec, recent_log_busbw;
    double mean_usec, busbw_gbps; /* what the gauges say */
};

struct trace_metrics {
    uint16_t slots[SLOTS]; /* number of a row plus 1 */
    uint32_t nrows;
    uint64_t unlisted[2]; /* collectives, messages that have no row */
    struct row rows[ROWS];
};

struct trace_metrics *trace_metrics_create(void)
{
    return calloc(1, sizeof(struct trace_metrics));
}

void trace_metrics_destroy(struct trace_metrics *metrics)
{
    free(metrics);
}

static uint32_t slot_of(const struct row_key *key)
{
    uint64_t words[3], hash = 0;
    memcpy(words, key, sizeof(words));
    for (int k = 0; k < 3; k++)
        hash = (hash ^ words[k] ^ words[k] >> 32) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 40) & (SLOTS - 1);
}

static struct row *row_of(struct trace_metrics *metrics, const struct row_key *key)
{
    uint32_t slot = slot_of(key);
    for (; metrics->slots[slot]; slot = (slot + 1) & (SLOTS - 1)) {
        struct row *row = &metrics->rows[metrics->slots[slot] - 1];
        if (!memcmp(&row->key, key, sizeof(*key))) return row;
    }
    if (metrics->nrows == ROWS) return NULL;
    struct row *row = &metrics->rows[metrics->nrows++];
    row->key = *key;
    metrics->slots[slot] = (uint16_t)metrics->nrows;
    return row;
}

void trace_metrics_add(struct trace_metrics *metrics, const struct trace_operation *operation)
{
    struct row_key key = {
        .rank = operation->rank,
        .bytes = operation->bytes,
        .func = operation->start.func,
        .datatype = operation->start.datatype,
        .algo = operation->start.algo,
        .proto = operation->start.proto,
        .message = operation->message,
    };
    struct row *row = row_of(metrics, &key);
    if (!row) {
        metrics->unlisted[operation->message != 0]++;
        return;
    }
    row->count++;
    row->sum_usec += operation->usec;
    row->recent++;
    row->recent_usec += operation->usec;
    if (operation->busbw_gbps > 0) {
        row->recent_moved++;
        row->recent_log_busbw += log(operation->busbw_gbps);
    }
    for (int k = 0; k < BUCKETS; k++)
        row->buckets[k] += operation->usec <= bounds_usec[k];
}

/* ---- text ---- */

static const char *word_of(uint8_t word)
{
    return word ? trace_process.words[word - 1] : "unknown";
}

/* The inspector's buckets are one unit wide: 4-5GB, 512-513MB, but for 0B. */
static void size_bucket(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        bytes /= 1024;
    if (!bytes) {
        snprintf(text, room, "0B");
        return;
    }
    snprintf(text, room, "%llu-%llu%s", (unsigned long long)bytes, (unsigned long long)bytes + 1,
             units[unit]);
}

static void put_device(int device, const char *host, FILE *to)
{
    const char *job = getenv("SLURM_JOB_ID");
    char clean[64], gpu[16] = "";
    trace_clean(clean, sizeof(clean), job && *job ? job : "unknown");
    if (device >= 0) snprintf(gpu, sizeof(gpu), "GPU%d", device);
    fprintf(to, "{version=\"v5.1\",slurm_job_id=\"%s\",node=\"%s\",gpu=\"%s\"", clean, host, gpu);
}

/* Labels of the inspector first; those behind make rows differ. `more`: a last label. */
static void put_labels(const struct row *row, const char *host, const char *more, FILE *to)
{
    const struct trace_rank *rank = row->key.rank;
    char size[64];
    size_bucket(row->key.bytes, size, sizeof(size));
    put_device(rank->device, host, to);
    fprintf(to, ",comm_name=\"%s\",n_nodes=\"%d\",nranks=\"%d\",%s=\"%s\",message_size=\"%s\"",
            *rank->name ? rank->name : "unknown", rank->nnodes, rank->nranks,
            row->key.message ? "p2p_operation" : "collective", word_of(row->key.func), size);
    if (!row->key.message)
        fprintf(to, ",algo_proto=\"%s_%s\"", word_of(row->key.algo), word_of(row->key.proto));
    fprintf(to, ",comm_id=\"%016llx\",rank=\"%d\",bytes=\"%llu\",datatype=\"%s\"%s}",
            (unsigned long long)rank->comm, rank->rank, (unsigned long long)row->key.bytes,
            word_of(row->key.datatype), more);
}

enum family { BUS_BANDWIDTH, EXEC_TIME, OPERATIONS, BYTES, FAMILIES };

static void put_value(const struct row *row, enum family family, FILE *to)
{
    switch (family) {
    case BUS_BANDWIDTH: fprintf(to, " %.9g\n", row->busbw_gbps); break;
    case EXEC_TIME: fprintf(to, " %.9g\n", row->mean_usec); break;
    case OPERATIONS: fprintf(to, " %llu\n", (unsigned long long)row->count); break;
    default: fprintf(to, " %.17g\n", (double)row->count * (double)row->key.bytes); break;
    }
}

/* All rows of one metric stand side by side, as the format demands. */
static void put_family(const struct trace_metrics *metrics, enum family family, bool messages,
                       const char *host, FILE *to)
{
    static const struct {
        const char *collective, *message, *help;
    } names[FAMILIES] = {
        {"nccl_bus_bandwidth_gbs", "nccl_p2p_bus_bandwidth_gbs", NULL},
        {"nccl_collective_exec_time_microseconds", "nccl_p2p_exec_time_microseconds", NULL},
        {"nccl_operations_total", NULL,
         "# HELP nccl_operations_total Operations that ended.\n"
         "# TYPE nccl_operations_total counter\n"},
        {"nccl_bytes_total", NULL,
         "# HELP nccl_bytes_total Bytes of their messages.\n"
         "# TYPE nccl_bytes_total counter\n"},
    };
    bool both = names[family].message == NULL;
    if (names[family].help) fputs(names[family].help, to);
    for (uint32_t r = 0; r < metrics->nrows; r++) {
        const struct row *row = &metrics->rows[r];
        if (!both && messages != (row->key.message != 0)) continue;
        fputs(!both && messages ? names[family].message : names[family].collective, to);
        put_labels(row, host, "", to);
        put_value(row, family, to);
    }
}

static void put_histogram(const struct trace_metrics *metrics, const char *host, FILE *to)
{
    static const char name[] = "nccl_duration_seconds";
    char bound[64];
    fprintf(to, "# HELP %s Time of operations.\n# TYPE %s histogram\n", name, name);
    for (uint32_t r = 0; r < metrics->nrows; r++) {
        const struct row *row = &metrics->rows[r];
        for (int k = 0; k < BUCKETS; k++) {
            snprintf(bound, sizeof(bound), ",le=\"%g\"", bounds_usec[k] / 1e6);
            fprintf(to, "%s_bucket", name);
            put_labels(row, host, bound, to);
            fprintf(to, " %llu\n", (unsigned long long)row->buckets[k]);
        }
        fprintf(to, "%s_bucket", name);
        put_labels(row, host, ",le=\"+Inf\"", to);
        fprintf(to, " %llu\n%s_sum", (unsigned long long)row->count, name);
        put_labels(row, host, "", to);
        fprintf(to, " %.9g\n%s_count", row->sum_usec / 1e6, name);
        put_labels(row, host, "", to);
        fprintf(to, " %llu\n", (unsigned long long)row->count);
    }
}

/* Operations of a kind on that device. */
static uint64_t count_of_device(const struct trace_metrics *metrics, int device, bool messages)
{
    uint64_t count = 0;
    for (uint32_t r = 0; r < metrics->nrows; r++) {
        const struct row *row = &metrics->rows[r];
        if (row->key.rank->device == device && messages == (row->key.message != 0))
            count += row->count;
    }
    return count;
}

/* The inspector's totals, which it writes on demand. What has no row is the first device's. */
static void put_devices(const struct trace_metrics *metrics, const char *host, FILE *to)
{
    static const char *const names[] = {"nccl_collectives_total", "nccl_p2p_total",
                                        "nccl_collectives_dropped_total", "nccl_p2p_dropped_total"};
    for (int k = 0; k < 4; k++) {
        if (metrics->nrows) fprintf(to, "# TYPE %s counter\n", names[k]);
        for (uint32_t r = 0; r < metrics->nrows; r++) {
            const int device = metrics->rows[r].key.rank->device;
            uint32_t first = 0;
            while (metrics->rows[first].key.rank->device != device)
                first++;
            if (first != r) continue;
            const uint64_t dropped = r == 0 ? metrics->unlisted[k % 2] : 0;
            uint64_t count = k < 2 ? count_of_device(metrics, device, k == 1) : dropped;
            fputs(names[k], to);
            put_device(device, host, to);
            fprintf(to, "} %llu\n", (unsigned long long)count);
        }
    }
}

static void put_total(const char *name, const char *help, uint64_t value, FILE *to)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s counter\n%s{pid=\"%d\"} %llu\n", name, help, name, name,
            trace_process.pid, (unsigned long long)value);
}

void trace_metrics_print(struct trace_metrics *metrics, const char *host, uint64_t given_up,
                         FILE *to)
{
    for (uint32_t r = 0; r < metrics->nrows; r++) {
        struct row *row = &metrics->rows[r];
        if (!row->recent) continue;
        row->mean_usec = row->recent_usec / (double)row->recent;
        row->busbw_gbps =
            row->recent_moved ? exp(row->recent_log_busbw / (double)row->recent_moved) : 0;
        row->recent = row->recent_moved = 0;
        row->recent_usec = row->recent_log_busbw = 0;
    }
    put_family(metrics, BUS_BANDWIDTH, false, host, to);
    put_family(metrics, EXEC_TIME, false, host, to);
    put_family(metrics, BUS_BANDWIDTH, true, host, to);
    put_family(metrics, EXEC_TIME, true, host, to);
    put_family(metrics, OPERATIONS, false, host, to);
    put_family(metrics, BYTES, false, host, to);
    put_histogram(metrics, host, to);
    put_devices(metrics, host, to);
    put_total("nccl_profiler_lost_events_total", "Records that had no room.", trace_lost(), to);
    put_total("nccl_profiler_unlisted_operations_total",
              "Operations without a row, as there are too many kinds, or too many under way.",
              metrics->unlisted[0] + metrics->unlisted[1] + given_up, to);
}
