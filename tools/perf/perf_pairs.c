/* Latency and bandwidth between all pairs of ranks: one pair at a time, the others wait. */
#include "perf.h"

#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAIR_SMALL = 8, PAIR_ROUNDS = 200, PAIR_LARGE_ROUNDS = 10 };

static double now_usec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static struct perf_rank *local_rank(struct perf_job *job, int rank)
{
    for (int i = 0; i < job->nlocal; i++) {
        if (job->ranks[i].rank == rank) return &job->ranks[i];
    }
    return NULL;
}

/* One message there and one back; both ends may be in this process. */
static bool round_trip(struct perf_job *job, int a, int b, size_t bytes)
{
    int ends[2] = {a, b};
    for (int direction = 0; direction < 2; direction++) {
        struct perf_rank *from = local_rank(job, ends[direction]);
        struct perf_rank *to = local_rank(job, ends[1 - direction]);
        ncclResult_t rc = ncclGroupStart();
        if (!rc && from) {
            rc = ncclSend(from->send, bytes, ncclInt8, ends[1 - direction], from->comm,
                          from->stream);
        }
        if (!rc && to)
            rc = ncclRecv(to->recv, bytes, ncclInt8, ends[direction], to->comm, to->stream);
        ncclResult_t ended = ncclGroupEnd();
        if (perf_nccl_failed(rc ? rc : ended, "send and receive")) return false;
        if (from) cudaStreamSynchronize(from->stream);
        if (to) cudaStreamSynchronize(to->stream);
    }
    return true;
}

/* Half a round trip in microseconds, sent to all by rank a's process; negative on failure. */
static double measure(struct perf_job *job, int a, int b, size_t bytes, int rounds)
{
    double usec = 0;
    bool mine = local_rank(job, a) || local_rank(job, b);
    bool ok = true;
    if (mine) {
        for (int i = 0; ok && i < rounds / 10 + 1; i++) {
            ok = round_trip(job, a, b, bytes);
        }
        double start = now_usec();
        for (int i = 0; ok && i < rounds; i++) {
            ok = round_trip(job, a, b, bytes);
        }
        if (local_rank(job, a)) usec = (now_usec() - start) / rounds / 2;
    }
    usec = perf_job_agree(job, usec, ncclMax);
    return ok ? usec : -1;
}

static void print_json(const double *cells, int n, const char *title)
{
    printf("\"%s\": [", title);
    for (int a = 0; a < n; a++) {
        printf("%s[", a ? ", " : "");
        for (int b = 0; b < n; b++)
            printf("%s%.3f", b ? ", " : "", cells[a * n + b]);
        printf("]");
    }
    printf("]");
}

static void print_cell(double value, bool own)
{
    if (own) {
        printf(" %9s", "-");
    } else {
        printf(" %9.2f", value);
    }
}

static void print_matrix(const double *cells, int n, const char *title)
{
    printf("# %s\n%8s", title, "");
    for (int b = 0; b < n; b++) {
        printf(" %9d", b);
    }
    printf("\n");
    for (int a = 0; a < n; a++) {
        printf("%8d", a);
        for (int b = 0; b < n; b++) {
            print_cell(cells[a * n + b], a == b);
        }
        printf("\n");
    }
}

static void print_both(const double *lat, const double *bw, int n, bool json)
{
    if (json) {
        printf("{\"ranks\": %d, ", n);
        print_json(lat, n, "latency_usec");
        printf(", ");
        print_json(bw, n, "bandwidth_gbps");
        printf("}\n");
    } else {
        print_matrix(lat, n, "latency of 8 bytes (us)");
        print_matrix(bw, n, "bandwidth (GB/s)");
    }
    fflush(stdout);
}

bool perf_pairs_run(struct perf_job *job)
{
    int n = job->nranks;
    size_t large = job->options.max_bytes;
    double *lat = calloc((size_t)n * (size_t)n, sizeof(double));
    double *bw = calloc((size_t)n * (size_t)n, sizeof(double));
    bool ok = lat && bw;
    for (int a = 0; ok && a < n; a++) {
        for (int b = a + 1; ok && b < n; b++) {
            double small_usec = measure(job, a, b, PAIR_SMALL, PAIR_ROUNDS);
            double large_usec = measure(job, a, b, large, PAIR_LARGE_ROUNDS);
            ok = small_usec >= 0 && large_usec > 0;
            lat[a * n + b] = lat[b * n + a] = small_usec;
            bw[a * n + b] = bw[b * n + a] = (double)large / large_usec * 1e-3;
        }
    }
    if (ok && job->proc == 0) {
        print_both(lat, bw, n, job->options.json);
    }
    free(lat);
    free(bw);
    return ok;
}
