/* The results as one JSON object: what was asked, where it ran, every figure of the table, the
 * closing lines. Valid also when an error ended the run early. Numbers are plain; text is escaped.
 */
#include "perf.h"
#include "tutti.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/* Another libnccl may stand in for ours.
 * NOLINTBEGIN(readability-redundant-declaration): it says that the symbol may be absent */
extern __typeof__(tuttiTunerUsed) tuttiTunerUsed __attribute__((weak));
extern __typeof__(tuttiVersion) tuttiVersion __attribute__((weak));
/* NOLINTEND(readability-redundant-declaration) */

static void text(FILE *out, const char *value)
{
    fputc('"', out);
    for (const char *c = value; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(out, "\\%c", *c);
        } else if ((unsigned char)*c < 0x20) {
            fprintf(out, "\\u%04x", (unsigned)*c);
        } else {
            fputc(*c, out);
        }
    }
    fputc('"', out);
}

/* "AMD EPYC 7B13": what the kernel calls the first processor; empty where it does not say. */
static void processor_name(char *name, size_t bytes)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    name[0] = '\0';
    while (file && !name[0] && fgets(line, sizeof(line), file)) {
        char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value) continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(name, bytes, "%s", value);
    }
    if (file) fclose(file);
}

/* Where rank 0 runs, and with which libraries. */
static void put_host(FILE *out, const struct perf_job *job)
{
    char processor[128];
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
    processor_name(processor, sizeof(processor));
    fprintf(out, " \"host\": ");
    text(out, job->locations[0].host);
    fprintf(out, ", \"cpu\": ");
    text(out, processor);
    fprintf(out, ", \"cores\": %d, \"tutti\": ", cores);
    if (tuttiVersion) {
        text(out, tuttiVersion());
    } else {
        fprintf(out, "null"); /* another libnccl */
    }
    fprintf(out, ",\n");
}

void perf_json_start(FILE *out, const struct perf_job *job)
{
    const struct perf_options *o = &job->options;
    int version = 0;
    ncclGetVersion(&version);
    fprintf(out, "{\"nccl\": %d, \"ranks\": %d, \"processes\": %d,\n", version, job->nranks,
            job->nprocs);
    put_host(out, job);
    fprintf(out,
            " \"options\": {\"nthreads\": %d, \"ngpus\": %d, \"minbytes\": %zu, "
            "\"maxbytes\": %zu, \"iters\": %d, \"warmup_iters\": %d, \"agg_iters\": %d, "
            "\"check\": %d, \"cudagraph\": %d, \"local_register\": %d, \"blocking\": %d, "
            "\"average\": %d, \"cputime\": %d},\n",
            o->nthreads, o->ngpus, o->min_bytes, o->max_bytes, o->iters, o->warmup_iters,
            o->agg_iters, o->check, o->graph_launches, o->local_register, o->blocking, o->average,
            o->cpu_time);
    fprintf(out, " \"devices\": [");
    for (int r = 0; r < job->nranks; r++) {
        const struct perf_location *location = &job->locations[r];
        fprintf(out, "%s\n  {\"rank\": %d, \"pid\": %d, \"host\": ", r ? "," : "", location->rank,
                location->pid);
        text(out, location->host);
        fprintf(out, ", \"device\": %d, \"busid\": ", location->device);
        text(out, location->busid);
        fprintf(out, ", \"name\": ");
        text(out, location->name);
        fprintf(out, "}");
    }
    fprintf(out, "],\n \"results\": [");
}

static void result(FILE *out, const char *name, const struct perf_result *r)
{
    if (r->usec < 0) {
        fprintf(out, "\"%s\": null", name);
        return;
    }
    fprintf(out, "\"%s\": {\"usec\": %.3f, \"algbw_gbps\": %.4f, \"busbw_gbps\": %.4f, \"wrong\": ",
            name, r->usec, r->algbw, r->busbw);
    if (r->wrong < 0) {
        fprintf(out, "null}");
    } else {
        fprintf(out, "%lld}", (long long)r->wrong);
    }
}

void perf_json_row(FILE *out, const struct perf_case *pc, const struct perf_result results[2],
                   bool first)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(stamp, sizeof(stamp), "%FT%T", localtime_r(&now, &parts));
    fprintf(out,
            "%s\n  {\"operation\": \"%s\", \"bytes\": %zu, \"count\": %zu, \"type\": \"%s\", "
            "\"op\": \"%s\", \"root\": %d, \"time\": \"%s\", ",
            first ? "" : ",", pc->operation->name, pc->bytes, pc->count, perf_type_name(pc->type),
            pc->operation->reduces ? perf_op_name(pc->op) : "none",
            pc->operation->rooted ? pc->root : -1, stamp);
    result(out, "out_of_place", &results[0]);
    fprintf(out, ", ");
    result(out, "in_place", &results[1]);
    fprintf(out, "}");
}

/* What rank 0's tuner plugin took; null without one. */
static void tuner(FILE *out, const struct perf_job *job)
{
    struct tuttiTunerUse use = {.size = sizeof(use)};
    if (!tuttiTunerUsed || tuttiTunerUsed(job->ranks[0].comm, &use) || !use.name[0]) {
        fprintf(out, "null");
        return;
    }
    fprintf(out, "{\"name\": ");
    text(out, use.name);
    fprintf(out, ", \"asked\": %llu, \"p50_usec\": %.3f, \"max_usec\": %.3f, \"sum_usec\": %.3f}",
            use.asked, use.p50_usec, use.max_usec, use.sum_usec);
}

void perf_json_end(FILE *out, const struct perf_job *job, const struct perf_sums *sums, bool failed)
{
    fprintf(out, "],\n \"tuner\": ");
    tuner(out, job);
    fprintf(out, ",\n \"wrong\": ");
    if (job->options.check) {
        fprintf(out, "%lld", (long long)sums->wrong);
    } else {
        fprintf(out, "null");
    }
    fprintf(out, ", \"average_busbw_gbps\": %g, \"complete\": %s}\n",
            sums->lines ? sums->bus / sums->lines : 0.0, failed ? "false" : "true");
}
