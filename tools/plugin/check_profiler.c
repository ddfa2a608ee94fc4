/* Profilers: which cases there are, and what the report says of them. */
#include "check.h"
#include "profiler_drive.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, FULL_MASK = 0xffff, TURNS = 200, THREADS = 4, CHANNELS = 64 };
enum { FIRST_PLAIN_CONTEXT = 4 }; /* versions: what is below has a context of this library's */
enum { FREED = 0xa5 };            /* what bytes of freed memory become */

static void doing(struct check_case_state *state, const char *what)
{
    snprintf(state->doing, sizeof(state->doing), "%s", what);
}

/* A communicator of the case with every event that the version has. */
static bool open_measured(struct drive *drive, struct check_case_state *state)
{
    if (!drive_open(drive, 0, RANKS, 0x1234, state)) return false;
    drive->mask = FULL_MASK;
    return true;
}

/* The same where memory is not measured: malloc writes to what it gives and takes back, so large
 * pools that a plugin hardly uses are then there in full. */
static bool open_full(struct drive *drive, struct check_case_state *state)
{
    mallopt(M_PERTURB, FREED); /* who frees an event at its stop and has children look at it */
    return open_measured(drive, state);
}

/* ---- cases ---- */

static int check_own_mask(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    (void)options;
    doing(state, "with the plugin's own mask");
    if (!drive_open(&drive, 0, RANKS, 0x1234, state)) return 1;
    for (int k = 0; k < TURNS; k++)
        drive_allreduce(&drive);
    drive_control(&drive);
    drive_close(&drive);
    return 0;
}

static int judge_freed(struct check_case_state *state, const struct drive_freed *freed)
{
    if (drive_freed_written(freed))
        check_breach(state, "stopEvent: the event was freed, and was written to afterwards");
    return state->nbreaches > 0;
}

static int check_allreduce(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    (void)options;
    doing(state, "AllReduces over a network");
    if (!open_full(&drive, state)) return 1;
    drive.freed = drive_freed_create();
    for (int k = 0; k < TURNS; k++) {
        drive_control(&drive);
        drive_allreduce(&drive);
    }
    drive_close(&drive);
    return judge_freed(state, drive.freed);
}

static int check_messages(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    (void)options;
    doing(state, "sends and receives");
    if (!open_full(&drive, state)) return 1;
    drive.freed = drive_freed_create();
    for (int k = 0; k < TURNS; k++) {
        struct drive_call call = {.api = NULL};
        drive_call_begin(&drive, &call, k % 2 ? "Send" : "Recv");
        drive_work(&drive, &call, 0, 1, 3);
        drive_call_end(&drive, &call);
    }
    drive_close(&drive);
    return judge_freed(state, drive.freed);
}

static int check_channels(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    struct drive_call call = {.api = NULL};
    (void)options;
    doing(state, "channels 0 to 63");
    if (!open_full(&drive, state)) return 1;
    drive_call_begin(&drive, &call, "AllReduce");
    drive_call_end(&drive, &call);
    drive_work(&drive, &call, 0, CHANNELS, 1);
    drive_close(&drive);
    return 0;
}

static int check_many_steps(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    struct drive_call call = {.api = NULL};
    (void)options;
    doing(state, "5000 steps of one operation");
    if (!open_full(&drive, state)) return 1;
    drive_call_begin(&drive, &call, "AllGather");
    drive_call_end(&drive, &call);
    drive_work(&drive, &call, 0, 1, 5000);
    drive_close(&drive);
    return 0;
}

/* Parents are named long after their own stop, once per replay. */
static int check_replays(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    struct drive_call call = {.api = NULL};
    (void)options;
    doing(state, "a graph that is replayed");
    if (!open_full(&drive, state)) return 1;
    drive_call_begin(&drive, &call, "AllReduce");
    drive_call_end(&drive, &call);
    for (int k = 0; k < TURNS; k++) {
        drive_replay(&drive, &call);
        drive_work(&drive, &call, 0, 2, 2);
    }
    drive_close(&drive);
    return 0;
}

/* One GroupApi, in the context of the first communicator, is the parent in both. */
static int check_two_contexts(struct check_case_state *state, const struct check_options *options)
{
    struct drive one, two;
    struct drive_call first = {.api = NULL}, second;
    (void)options;
    doing(state, "a group over two communicators");
    if (!open_full(&one, state)) return 1;
    if (!drive_open(&two, 1, RANKS, 0x5678, state)) return 1;
    two.mask = FULL_MASK;
    for (int k = 0; k < TURNS; k++) {
        drive_call_begin(&one, &first, "AllReduce");
        struct drive_call inner = {.api = NULL};
        drive_call_begin(&two, &inner, "AllReduce");
        drive_call_end(&two, &inner);
        second = (struct drive_call){.group_api = first.group_api, .api = inner.api};
        drive_replay(&two, &second);
        drive_call_end(&one, &first);
        drive_work(&two, &second, 0, 1, 1);
        drive_work(&one, &first, 0, 1, 1);
    }
    drive_close(&one);
    drive_allreduce(&two); /* the other one lives on */
    drive_close(&two);
    return 0;
}

/* A mask that changes: children whose parents were not tracked, and parents without children. */
static int check_changing_mask(struct check_case_state *state, const struct check_options *options)
{
    static const uint32_t masks[] = {0,
                                     ncclProfileProxyStep,
                                     FULL_MASK,
                                     ncclProfileKernelCh,
                                     ncclProfileColl,
                                     ncclProfileProxyCtrl};
    struct drive drive;
    (void)options;
    doing(state, "a mask that changes");
    if (!open_full(&drive, state)) return 1;
    for (size_t k = 0; k < TURNS; k++) {
        struct drive_call call = {.api = NULL};
        drive.mask = masks[k % (sizeof(masks) / sizeof(masks[0]))];
        drive_call_begin(&drive, &call, "AllReduce");
        drive.mask = masks[(k + 1) % (sizeof(masks) / sizeof(masks[0]))];
        drive_work(&drive, &call, 0, 2, 2);
        drive.mask = FULL_MASK;
        drive_call_end(&drive, &call);
        drive_control(&drive);
    }
    drive_close(&drive);
    return 0;
}

/* As NCCL leaves an aborted communicator. */
static int check_abort(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    struct drive_call call = {.api = NULL};
    (void)options;
    doing(state, "finalize with open events");
    if (!open_full(&drive, state)) return 1;
    drive_call_begin(&drive, &call, "AllReduce");
    for (int k = 0; k < 2; k++) {
        ncclProfilerEventDescr_v7_t op = {.type = ncclProfileProxyOp, .parentObj = call.op_event};
        op.proxyOp.pid = getpid();
        ncclProfilerEventDescr_v7_t step = {.type = ncclProfileProxyStep};
        step.parentObj = drive_start(&drive, &op);
        if (step.parentObj) drive_start(&drive, &step);
    }
    drive_close(&drive);
    return 0;
}

/* Where the proxy of one process drives the network for another (PXN), context and parent of an
 * operation are that one's: here addresses at which nothing is. */
static int check_foreign(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    struct drive_call call = {.api = NULL};
    (void)options;
    doing(state, "operations of another process");
    if (!open_full(&drive, state)) return 1;
    char *nowhere = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nowhere == MAP_FAILED) abort();
    struct tt_profiler *own = drive.profiler, foreign = *own;
    if (state->version >= FIRST_PLAIN_CONTEXT) foreign.context = nowhere + 4096;
    call.op_event = nowhere + 64;
    drive.profiler = &foreign;
    drive.pid = getppid();
    drive_network(&drive, &call, 3);
    drive.profiler = own;
    drive.pid = getpid();
    drive_allreduce(&drive);
    drive_close(&drive);
    return 0;
}

/* Half of the case's time; the note says what went wrong. */
static void wait_for_child(struct check_case_state *state, pid_t child, long seconds)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int status = 0;
    for (long k = 0; k < seconds * 500; k++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            if (status == 0) return;
            snprintf(state->note, sizeof(state->note), "the child of a fork ends with %s %d",
                     WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            return;
        }
        nanosleep(&pause, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    snprintf(state->note, sizeof(state->note), "the child of a fork does not end");
}

/* Programs fork in the middle of a job; the child ends without a word to NCCL. */
static int check_fork(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    doing(state, "a fork, whose child ends");
    if (!open_full(&drive, state)) return 1;
    for (int k = 0; k < TURNS; k++)
        drive_allreduce(&drive);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exit(0); /* with what the plugin does at an exit */
    }
    if (child > 0) wait_for_child(state, child, options->seconds);
    bool good = !*state->note;
    drive_allreduce(&drive);
    drive_close(&drive);
    return !good;
}

static int check_engines(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    (void)options;
    doing(state, "copy engines and phases of kernels");
    if (!open_full(&drive, state)) return 1;
    for (int k = 0; k < TURNS; k++) {
        struct drive_call call = {.api = NULL};
        drive_call_begin(&drive, &call, "AllGather");
        drive_copies(&drive, &call);
        drive_call_end(&drive, &call);
        drive_phases(&drive, &call);
    }
    drive_close(&drive);
    return 0;
}

static int check_reload(struct check_case_state *state, const struct check_options *options)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    (void)options;
    doing(state, "loaded again and again");
    for (int k = 0; k < 5; k++) {
        struct drive drive;
        if (!open_full(&drive, state)) return 1;
        drive_allreduce(&drive);
        drive_close(&drive);
        doing(state, "after the library was unloaded"); /* by a thread that finalize left */
        nanosleep(&pause, NULL);
        doing(state, "loaded again and again");
    }
    return 0;
}

struct worker {
    struct drive drive;
    struct check_case_state *state;
    long turns;
    int rank;
    bool opened;
};

static void *live(void *arg)
{
    struct worker *own = arg;
    own->opened = drive_open(&own->drive, own->rank, THREADS, 0x9abc, own->state);
    if (!own->opened) return NULL;
    own->drive.mask = FULL_MASK;
    for (long k = 0; k < own->turns; k++)
        drive_allreduce(&own->drive);
    return NULL;
}

static int check_threads(struct check_case_state *state, const struct check_options *options)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    bool all = true;
    (void)options;
    doing(state, "four ranks as threads");
    for (int k = 0; k < THREADS; k++) {
        workers[k] = (struct worker){.state = state, .turns = TURNS, .rank = k};
        if (pthread_create(&threads[k], NULL, live, &workers[k]) != 0) abort();
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
        all = all && workers[k].opened;
    }
    for (int k = 0; k < THREADS; k++) {
        if (workers[k].opened) drive_close(&workers[k].drive);
    }
    return !all;
}

/* ---- inits at once ---- */

enum { INIT_ROUNDS = 20, INIT_THREADS = 8 };

struct first_init {
    struct drive drive;
    struct check_case_state *state;
    pthread_barrier_t *together;
    int rank;
    bool opened;
};

static void *init_thread(void *arg)
{
    struct first_init *own = arg;
    pthread_barrier_wait(own->together);
    own->opened = drive_open_at_once(&own->drive, own->rank, INIT_THREADS, 0xdef0, own->state);
    pthread_barrier_wait(own->together);
    if (own->opened) drive_allreduce(&own->drive);
    return NULL;
}

/* One round; how many have no context. */
static int init_together(struct check_case_state *state)
{
    struct first_init inits[INIT_THREADS];
    pthread_t threads[INIT_THREADS];
    pthread_barrier_t together;
    int without = 0;
    pthread_barrier_init(&together, NULL, INIT_THREADS);
    for (int k = 0; k < INIT_THREADS; k++) {
        inits[k] = (struct first_init){.state = state, .together = &together, .rank = k};
        if (pthread_create(&threads[k], NULL, init_thread, &inits[k]) != 0) abort();
    }
    for (int k = 0; k < INIT_THREADS; k++)
        pthread_join(threads[k], NULL);
    for (int k = 0; k < INIT_THREADS; k++) {
        without += !inits[k].opened || !inits[k].drive.profiler->context;
        if (inits[k].opened) drive_close(&inits[k].drive);
    }
    pthread_barrier_destroy(&together);
    return without;
}

/* NCCL calls init from each thread that makes a communicator, and only the loading has a lock: here
 * the first communicators of the process come together, once and again. */
static int check_inits_at_once(struct check_case_state *state, const struct check_options *options)
{
    (void)options;
    doing(state, "inits at once");
    for (int round = 0; round < INIT_ROUNDS; round++) {
        int without = init_together(state);
        *state->note = 0;
        if (without > 0 && without < INIT_THREADS) {
            check_breach(state, "init: of %d threads at once some got no context", INIT_THREADS);
            break;
        }
    }
    return state->nbreaches > 0;
}

/* ---- memory ---- */

enum { WINDOW_TURNS = 2000, WINDOW_COMMS = 16 };

/* A plugin may keep what it is told of up to its finalize, but not for ever. */
static int check_growth(struct check_case_state *state, const struct check_options *options)
{
    enum { MOST_BYTES = 32 }; /* an AllReduce, which is 21 events */
    struct drive drive;
    double bytes[CHECK_WINDOWS];
    (void)options;
    doing(state, "memory of a long run");
    const double before = check_memory_now().allocated;
    if (!open_measured(&drive, state)) return 1;
    for (int w = 0; w < CHECK_WINDOWS; w++) {
        for (int k = 0; k < WINDOW_TURNS; k++)
            drive_allreduce(&drive);
        bytes[w] = check_rested_bytes();
    }
    double growth = check_growth_of(bytes, WINDOW_TURNS);
    drive_close(&drive);
    double left = (check_memory_now().allocated - before) / (CHECK_WINDOWS * WINDOW_TURNS);
    if (growth > MOST_BYTES && left * 2 < growth) {
        snprintf(state->note, sizeof(state->note),
                 "keeps %.0f bytes of each AllReduce until finalize", growth);
    } else if (growth > MOST_BYTES) {
        check_breach(state, "memory: %.0f bytes of each AllReduce are kept, after finalize as well",
                     left);
    }
    return state->nbreaches > 0;
}

/* Programs split and destroy communicators all the time while the first one lives. */
static int check_leavings(struct check_case_state *state, const struct check_options *options)
{
    enum { MOST_BYTES = 4096 };
    struct drive first, drive;
    double bytes[CHECK_WINDOWS];
    (void)options;
    doing(state, "communicators that come and go");
    if (!open_measured(&first, state)) return 1;
    for (int w = 0; w < CHECK_WINDOWS; w++) {
        for (int k = 0; k < WINDOW_COMMS; k++) {
            if (!drive_open(&drive, 1, RANKS, 0x2000 + (uint64_t)k, state)) return 1;
            drive.mask = FULL_MASK;
            drive_allreduce(&drive);
            drive_close(&drive);
        }
        bytes[w] = check_rested_bytes();
    }
    double growth = check_growth_of(bytes, WINDOW_COMMS);
    if (growth > MOST_BYTES)
        check_breach(state, "memory: a communicator that has ended leaves %.0f bytes", growth);
    drive_close(&first);
    return state->nbreaches > 0;
}

/* ---- cost ---- */

static double now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The first half warms up; the second is measured. */
static int check_cost(struct check_case_state *state, const struct check_options *options)
{
    struct drive drive;
    long half = options->iterations / 2;
    doing(state, "cost with every event");
    if (!open_full(&drive, state)) return 1;
    for (long k = 0; k < half; k++)
        drive_allreduce(&drive);
    uint64_t calls = drive.calls;
    const struct check_memory before = check_memory_now();
    double start = now_nsec();
    for (long k = 0; k < half; k++)
        drive_allreduce(&drive);
    state->nsec_per_call = (now_nsec() - start) / (double)(drive.calls - calls);
    state->bytes_per_turn = check_memory_grown(&before) / (double)half;
    drive_close(&drive);
    return 0;
}

static const struct check_case cases[] = {
    {"own mask", check_own_mask},
    {"AllReduce over a network", check_allreduce},
    {"send and receive", check_messages},
    {"64 channels", check_channels},
    {"5000 steps", check_many_steps},
    {"graph replays", check_replays},
    {"two communicators", check_two_contexts},
    {"changing mask", check_changing_mask},
    {"abort", check_abort},
    {"another process", check_foreign},
    {"fork", check_fork},
    {"engines and phases", check_engines},
    {"unload and load", check_reload},
    {"four threads", check_threads},
    {"inits at once", check_inits_at_once},
    {"a long run", check_growth},
    {"come and go", check_leavings},
    {"cost", check_cost},
};

/* ---- the report ---- */

static void say_where(const struct check_case_state *state, char *text, size_t text_bytes)
{
    drive_say(state->call, state->detail, text, text_bytes);
    size_t len = strlen(text);
    if (!state->call) snprintf(text + len, text_bytes - len, ", %s", state->doing);
}

static void describe(const struct check_case_state *state, bool in_words, json_t *report)
{
    json_object_set_new(report, "mask", json_integer((json_int_t)state->mask));
    if (in_words && state->version) {
        printf("plugin     \"%s\", version %d, mask 0x%x (%u)\n", state->name, state->version,
               state->mask, state->mask);
    }
}

static void say_cost(const struct check_case_state *state, bool in_words, json_t *report)
{
    check_say_cost(state, "AllReduce", "bytes_per_allreduce", in_words, report);
}

const struct check_kind check_profiler = {
    .name = "profiler",
    .variable = "NCCL_PROFILER_PLUGIN",
    .prefix = "libnccl-profiler",
    .table = "ncclProfiler",
    .oldest = 1,
    .newest = 7,
    .cases = cases,
    .ncases = sizeof(cases) / sizeof(cases[0]),
    .say_where = say_where,
    .describe = describe,
    .measured = say_cost,
};
