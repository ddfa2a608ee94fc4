/* The table that nccl-tests prints, and the same as JSON. Only rank 0's process prints. */
#include "perf.h"

#include <cuda_runtime.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void perf_table_start(const struct perf_job *job)
{
    const struct perf_options *o = &job->options;
    int version = 0;
    ncclGetVersion(&version);
    printf("# tutti perf: %d ranks in %d processes, nccl interface %d\n", job->nranks, job->nprocs,
           version);
    printf("# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %g(%s) warmup iters: %d "
           "iters: %d agg iters: %d validation: %d graph: %d\n#\n",
           o->nthreads, o->ngpus, o->min_bytes, o->max_bytes,
           o->step_factor > 0 ? o->step_factor : (double)o->step_bytes,
           o->step_factor > 0 ? "factor" : "bytes", o->warmup_iters, o->iters, o->agg_iters,
           o->check, o->graph_launches);
    printf("# Using devices\n");
    for (int r = 0; r < job->nranks; r++) {
        const struct perf_location *location = &job->locations[r];
        printf("#  Rank %2d Group  0 Pid %6d on %10s device %2d [%s] %s\n", location->rank,
               location->pid, location->host, location->device, location->busid, location->name);
    }
    printf("#\n");
}

void perf_table_head(const struct perf_job *job, const struct perf_operation *operation)
{
    const char *time = job->options.cpu_time ? "cputime" : "time";
    printf("# Collective test starting: %s\n", operation->title);
    printf("#%*s %46s %38s\n", 55, "", "out-of-place", "in-place");
    printf("#%11s %13s %9s %8s %7s %10s %8s %8s %7s %10s %8s %8s %7s\n", "size", "count", "type",
           "redop", "root", time, "algbw", "busbw", "#wrong", time, "algbw", "busbw", "#wrong");
    printf("#%11s %13s %9s %8s %7s %10s %8s %8s %7s %10s %8s %8s %7s\n", "(B)", "(elements)", "",
           "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
    fflush(stdout);
}

static void print_result(const struct perf_result *r)
{
    if (r->usec < 0) {
        printf(" %10s %8s %8s %7s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    printf(" %10.2f %8.2f %8.2f", r->usec, r->algbw, r->busbw);
    if (r->wrong < 0) {
        printf(" %7s", "N/A");
    } else {
        printf(" %7lld", (long long)r->wrong);
    }
}

void perf_table_row(const struct perf_job *job, const struct perf_case *pc,
                    const struct perf_result results[2])
{
    const char *op = pc->operation->reduces ? perf_op_name(pc->op) : "none";
    printf("%12zu %13zu %9s %8s %7d", pc->bytes, pc->count, perf_type_name(pc->type), op,
           pc->operation->rooted ? pc->root : -1);
    print_result(&results[0]);
    print_result(&results[1]);
    if (job->options.timestamps) {
        char stamp[32];
        time_t now = time(NULL);
        struct tm parts;
        strftime(stamp, sizeof(stamp), "%F %T", localtime_r(&now, &parts));
        printf("  %s", stamp);
    }
    printf("\n");
    fflush(stdout);
}

void perf_table_foot(const struct perf_job *job, const struct perf_sums *sums)
{
    if (job->options.check) {
        printf("# Out of bounds values : %lld %s\n", (long long)sums->wrong,
               sums->wrong ? "FAILED" : "OK");
    } else {
        printf("# Out of bounds values : not checked\n");
    }
    printf("# Avg bus bandwidth    : %g\n", sums->lines ? sums->bus / sums->lines : 0.0);
    fflush(stdout);
}
