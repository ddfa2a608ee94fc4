/* Small programs, each once with a wait missing and once complete, under TUTTI_CHECK=race:exit: the
 * checker names every one of the first kind and none of the second. Each runs in a process of its
 * own: `racy` runs all of them, `racy every N` every Nth, `racy NAME racy|sound` is one. */
#include "racy.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_FOUND = 66 };

struct racy_memory my;
struct racy_ranks ranks;

static void set_up(void)
{
    char **const buffers[] = {&my.x, &my.y, &my.z};
    OK(cudaStreamCreateWithFlags(&my.a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&my.b, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&my.event, cudaEventDisableTiming));
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
        OK(cudaMalloc((void **)buffers[i], BYTES));
        OK(cudaMemset(*buffers[i], 1, BYTES));
    }
    OK(cudaMallocHost((void **)&my.pinned, BYTES));
    my.pageable = calloc(1, BYTES);
    OK(cudaDeviceSynchronize());
}

void racy_join(cudaStream_t second, cudaStream_t first)
{
    cudaEvent_t event;
    int device, of_first;
    OK(cudaGetDevice(&device));
    OK(cudaStreamGetDevice(first, &of_first));
    OK(cudaSetDevice(of_first));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaSetDevice(device));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(cudaEventDestroy(event));
}

void racy_start_ranks(void)
{
    OK(ncclCommInitAll(ranks.comm, RANKS, NULL));
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        OK(cudaStreamCreateWithFlags(&ranks.stream[r], cudaStreamNonBlocking));
        OK(cudaStreamCreateWithFlags(&ranks.other[r], cudaStreamNonBlocking));
        OK(cudaMalloc((void **)&ranks.in[r], BYTES));
        OK(cudaMalloc((void **)&ranks.out[r], BYTES));
        OK(cudaMemset(ranks.in[r], 0, BYTES));
        OK(cudaMemset(ranks.out[r], 0, BYTES));
        OK(cudaDeviceSynchronize());
    }
}

void racy_finish_ranks(void)
{
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        OK(cudaDeviceSynchronize());
        OK(ncclCommDestroy(ranks.comm[r]));
    }
}

/* ---- each form in a process of its own ---- */

static int run_here(const struct racy_scenario *scenario, bool sound)
{
    bool leaks = !strcmp(scenario->says, "leak"); /* then what we set up must not be there */
    setenv("TUTTI_CHECK", leaks ? "race:exit,leaks" : "race:exit", 1);
    if (!leaks) set_up();
    scenario->run(sound);
    for (int d = 0; d < 2; d++) { /* nothing is left for the leak sanitizer */
        OK(cudaSetDevice(d));
        OK(cudaDeviceSynchronize());
    }
    return 0;
}

struct form {
    const struct racy_scenario *scenario;
    bool sound;
    pid_t child;
    FILE *from; /* what it says on stderr */
};

/* Forked before CUDA is used, which costs less than another program's start. */
static void start_form(struct form *form)
{
    int ends[2];
    OK(pipe(ends));
    OK(fflush(NULL));
    form->child = fork();
    if (form->child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        exit(run_here(form->scenario, form->sound));
    }
    close(ends[1]);
    form->from = fdopen(ends[0], "r"); /* read(2) is left to programs that hand it closed pages */
}

static bool is_right(struct form *form)
{
    static char said[1 << 16];
    char want[64];
    int status = -1;
    size_t len = 0;
    said[0] = 0;
    while (form->from && len + 1 < sizeof(said) &&
           fgets(said + len, (int)(sizeof(said) - len), form->from))
        len += strlen(said + len);
    if (form->from) fclose(form->from);
    OK(waitpid(form->child, &status, 0) != form->child);
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    snprintf(want, sizeof(want), "tutti check: %s", form->scenario->says);
    bool right = form->sound ? status == 0 && !strstr(said, "tutti check")
                             : status == STATUS_FOUND && strstr(said, want);
    if (!right)
        printf("%s, %s form: status %d, said:\n%s\n", form->scenario->name,
               form->sound ? "sound" : "racy", status, said);
    return right;
}

static const struct {
    const struct racy_scenario *at;
    const size_t *count;
} files[] = {
    /* each in a file of its own */
    {racy_patterns, &racy_npatterns}, {racy_order, &racy_norder},
    {racy_sides, &racy_nsides},       {racy_fresh, &racy_nfresh},
    {racy_lives, &racy_nlives},       {racy_more, &racy_nmore},
    {racy_host, &racy_nhost},         {racy_kernels, &racy_nkernels},
    {racy_parts, &racy_nparts},       {racy_training, &racy_ntraining},
    {racy_parallel, &racy_nparallel}, {racy_inside, &racy_ninside},
    {racy_edges, &racy_nedges},       {racy_together, &racy_ntogether},
    {racy_calls, &racy_ncalls},       {racy_basics, &racy_nbasics},
};

static const struct racy_scenario *scenario_at(size_t i)
{
    for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
        if (i < *files[k].count) return &files[k].at[i];
        i -= *files[k].count;
    }
    return NULL;
}

static int run_every(size_t step)
{
    int wrong = 0;
    size_t count = 0;
    for (size_t i = 0; scenario_at(i); i += step, count++) {
        struct form racy = {.scenario = scenario_at(i)},
                    sound = {.scenario = racy.scenario, .sound = true};
        start_form(&racy);
        start_form(&sound);
        wrong += !is_right(&racy);
        wrong += !is_right(&sound);
    }
    printf("%zu racy and %zu sound programs, %d judged wrongly\n", count, count, wrong);
    return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
    setenv("TUTTI_DEVICES", "2", 0);
    if (argc == 2 && !strcmp(argv[1], "lend")) return racy_lend();
    if (argc < 3) return run_every(1);
    if (!strcmp(argv[1], "every") && atoi(argv[2]) > 0) return run_every((size_t)atoi(argv[2]));
    for (size_t i = 0; scenario_at(i); i++) {
        const struct racy_scenario *scenario = scenario_at(i);
        if (!strcmp(scenario->name, argv[1])) return run_here(scenario, !strcmp(argv[2], "sound"));
    }
    fprintf(stderr, "no scenario %s\n", argv[1]);
    return 2;
}
