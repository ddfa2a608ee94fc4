/* The measuring program: one process of a job, started by `tutti perf` (or mpirun, srun). Walks
 * over operations, types, operators, roots and sizes; rank 0's process prints. */
#include "perf.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct walk {
    struct perf_job *job;
    FILE *json;
    bool json_first;
    struct perf_sums sums;
    bool failed;
};

/* Elements per call for a size of the table; like nccl-tests, block operations round down to whole
 * blocks. */
static size_t count_of(const struct perf_case *pc, size_t bytes, int nranks)
{
    size_t elems = bytes / perf_type_bytes(pc->type);
    size_t count = pc->operation->size_is_total ? elems / (size_t)nranks : elems;
    return count == 0 && bytes > 0 ? 1 : count; /* a line about nothing is of no use */
}

static void progress(const struct walk *walk, const struct perf_case *pc)
{
    if (walk->job->proc != 0 || !walk->job->options.on_terminal) return;
    fprintf(stderr, "\r  %s %zu bytes %s ...\033[K\r", pc->operation->title, pc->bytes,
            perf_type_name(pc->type));
}

static void one_line(struct walk *walk, struct perf_case *pc, size_t bytes)
{
    struct perf_job *job = walk->job;
    struct perf_result results[2] = {{.usec = -1}, {.usec = -1}};
    pc->count = count_of(pc, bytes, job->nranks);
    pc->bytes = pc->count * perf_type_bytes(pc->type) *
                (size_t)(pc->operation->size_is_total ? job->nranks : 1);
    progress(walk, pc);
    for (int in_place = 0; in_place < 2; in_place++) {
        pc->in_place = in_place;
        if (!perf_job_measure(job, pc, &results[in_place])) {
            walk->failed = true;
            return;
        }
        walk->sums.bus += results[in_place].busbw;
        walk->sums.lines++;
        if (results[in_place].wrong > 0) walk->sums.wrong += results[in_place].wrong;
    }
    if (job->proc != 0) return;
    if (!job->options.json) perf_table_row(job, pc, results);
    if (walk->json) perf_json_row(walk->json, pc, results, walk->json_first);
    walk->json_first = false;
}

static void all_sizes(struct walk *walk, struct perf_case *pc)
{
    const struct perf_options *o = &walk->job->options;
    size_t bytes = o->min_bytes;
    while (bytes <= o->max_bytes && !walk->failed) {
        one_line(walk, pc, bytes);
        size_t next =
            o->step_factor > 0 ? (size_t)((double)bytes * o->step_factor) : bytes + o->step_bytes;
        if (!bytes && o->step_factor > 0) next = perf_type_bytes(pc->type);
        if (next <= bytes) break;
        bytes = next;
    }
}

static void all_roots(struct walk *walk, struct perf_case *pc)
{
    const struct perf_options *o = &walk->job->options;
    int first = pc->operation->rooted && o->root < 0 ? 0 : o->root < 0 ? 0 : o->root;
    int last = pc->operation->rooted && o->root < 0 ? walk->job->nranks - 1 : first;
    for (pc->root = first; pc->root <= last && !walk->failed; pc->root++) {
        all_sizes(walk, pc);
    }
}

static void one_operation(struct walk *walk, const struct perf_operation *operation)
{
    const struct perf_options *o = &walk->job->options;
    if (walk->job->proc == 0 && !o->json) perf_table_head(walk->job, operation);
    for (int t = 0; t < o->ntypes && !walk->failed; t++) {
        for (int k = 0; k < (operation->reduces ? o->nops : 1) && !walk->failed; k++) {
            struct perf_case pc = {.operation = operation, .type = o->types[t], .op = o->ops[k]};
            all_roots(walk, &pc);
        }
    }
}

static void report_memory(const struct perf_job *job)
{
    struct rusage usage;
    if (job->proc != 0 || !job->options.memory_report || getrusage(RUSAGE_SELF, &usage)) return;
    fprintf(job->options.json ? stderr : stdout, "# Peak memory of process 0: %ld KiB\n",
            usage.ru_maxrss);
}

static void run_tables(struct walk *walk)
{
    const struct perf_options *o = &walk->job->options;
    if (walk->job->proc == 0 && !o->json) perf_table_start(walk->job);
    for (int cycle = 0; (cycle < o->run_cycles || !o->run_cycles) && !walk->failed; cycle++) {
        for (int i = 0; i < o->noperations && !walk->failed; i++) {
            one_operation(walk, perf_operation_find(o->operations[i]));
        }
    }
    if (walk->job->proc == 0 && o->on_terminal) fprintf(stderr, "\033[K");
    if (walk->json) perf_json_end(walk->json, walk->job, &walk->sums, walk->failed);
    if (walk->failed || walk->job->proc != 0 || o->json) return;
    perf_table_foot(walk->job, &walk->sums);
}

/* Before any rank starts to wait for us. */
static bool open_json(struct walk *walk)
{
    const struct perf_options *o = &walk->job->options;
    int rank = perf_rank_of_process();
    if (rank == 0 && o->json) walk->json = stdout;
    if (rank != 0 || !o->output_file) return true;
    walk->json = fopen(o->output_file, "we");
    if (walk->json) return true;
    fprintf(stderr, "tutti perf: -J %s: %m\n", o->output_file);
    return false;
}

/* -T bounds the ranks' init, too: what is left of it since the launcher began, which may be much
 * less than all where ranks are many more than cores. */
static bool bound_start(const struct perf_options *o)
{
    struct timespec now;
    char text[32];
    if (!(o->timeout_sec > 0)) return true;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double at = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    double left = o->timeout_sec - (o->since_sec > 0 ? at - o->since_sec : 0);
    if (left <= 0) {
        fprintf(stderr, "tutti perf: rank %d: the process began only after %g s (-T)\n",
                perf_rank_of_process(), o->timeout_sec);
        return false;
    }
    snprintf(text, sizeof(text), "%.0f", left < 1 ? 1 : left);
    setenv("TUTTI_INIT_TIMEOUT", text, 0);
    return true;
}

/* The reader of our table has enough (`| head`): the launcher ends as other commands do, and the
 * other ranks with it, before they notice that this one has gone. */
static void reader_gone(int signal_number)
{
    kill(getppid(), signal_number);
    poll(NULL, 0, 500); /* meanwhile we are ended */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Each call is timed to its end: the communicators are blocking. */
static void block(void)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    if (!blocking || strcmp(blocking, "0") != 0) return;
    if (perf_rank_of_process() == 0) {
        fprintf(stderr, "tutti perf: NCCL_COMM_BLOCKING=0 is left out of account: it measures "
                        "with communicators that block\n");
    }
    setenv("NCCL_COMM_BLOCKING", "1", 1);
}

int main(int argc, char **argv)
{
    struct perf_job job;
    struct walk walk = {.job = &job, .json_first = true};
    memset(&job, 0, sizeof(job));
    int status = perf_options_parse(argc, argv, &job.options);
    if (status >= 0) return status;
    job.options.on_terminal |= isatty(STDERR_FILENO) != 0;
    if (!open_json(&walk)) return 2;
    /* only where `tutti perf` is our parent, and this is no rank of mpirun's */
    if (job.options.since_sec > 0 && perf_rank_of_process() == 0) signal(SIGPIPE, reader_gone);
    if (!bound_start(&job.options)) return 1;
    block();
    if (!perf_job_open(&job)) return 1;
    if (job.options.pairs) {
        status = perf_pairs_run(&job) ? 0 : 1;
        perf_job_close(&job);
        return status;
    }
    if (walk.json) perf_json_start(walk.json, &job);
    run_tables(&walk);
    bool written = !walk.json || (!ferror(walk.json) && !fflush(walk.json));
    if (!written) fprintf(stderr, "tutti perf: writing the results: %m\n");
    if (walk.json && walk.json != stdout) fclose(walk.json);
    if (walk.failed) return 1;
    report_memory(&job);
    perf_job_close(&job);
    return walk.sums.wrong || !written ? 1 : 0;
}
