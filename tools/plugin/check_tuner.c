/* Tuners: which cases there are. What matters most is that ranks agree: the same question must have
 * the same answer, at every rank and whatever was asked before. */
#include "base/mem.h"
#include "base/system/clock.h"
#include "program/program.h"
#include "tuner_drive.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { FUNCS = 5, LIVES = 3, THREADS = 4, NSIZES = 12, ASKS = FUNCS * NSIZES };

static const size_t sizes[NSIZES] = {
    1,       4,        1000,    1 << 10,         1 << 14, 100000,
    1 << 20, 12345678, 1 << 28, (size_t)1 << 32, 1 << 30, (size_t)1 << 40};
struct shape {
    int nranks, nnodes;
};
static const struct shape shapes[] = {{1, 1}, {2, 1}, {8, 1}, {7, 7}, {16, 2}, {1024, 128}};

#define ENTRY(algo, proto) (1U << ((algo)*TT_TUNER_PROTOS + (proto)))
static const uint32_t all_entries = (1U << TUNER_ENTRIES) - 1;
static const uint32_t tables[] = {
    (1U << TUNER_ENTRIES) - 1,                /* everything */
    ENTRY(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE), /* NCCL_ALGO and NCCL_PROTO leave one */
    ENTRY(NCCL_ALGO_TREE, NCCL_PROTO_LL) | ENTRY(NCCL_ALGO_RING, NCCL_PROTO_LL),
    ENTRY(NCCL_ALGO_PAT, NCCL_PROTO_SIMPLE),
    ENTRY(NCCL_ALGO_NVLS, NCCL_PROTO_SIMPLE) | ENTRY(NCCL_ALGO_RING, NCCL_PROTO_LL128),
};

struct fixture {
    struct tuner_plugin plugin;
    struct tuner_drive drive;
};

static bool fixture_open(struct fixture *fixture, struct check_case_state *state,
                         const struct check_options *options, const char *doing)
{
    snprintf(state->doing, sizeof(state->doing), "%s", doing);
    return tuner_load(&fixture->plugin, options->file, state) &&
           tuner_open(&fixture->drive, &fixture->plugin, state, 8, 2);
}

static int fixture_close(struct fixture *fixture)
{
    const struct check_case_state *state = fixture->drive.state;
    tuner_close(&fixture->drive);
    tuner_unload(&fixture->plugin);
    return state->nbreaches > 0;
}

/* Every collective in every size. */
static void ask_all(struct tuner_drive *drive, uint32_t possible, int nops, bool registered,
                    struct tuner_answer answers[ASKS])
{
    for (int k = 0; k < ASKS; k++) {
        const struct tt_tuner_query query = {
            .func = k / NSIZES, .bytes = sizes[k % NSIZES], .nops = nops, .registered = registered};
        tuner_ask(drive, &query, possible, &answers[k]);
    }
}

static void compare(struct check_case_state *state, const struct tuner_answer *ones,
                    const struct tuner_answer *others, const char *when)
{
    for (int k = 0; k < ASKS; k++) {
        if (tuner_same(&ones[k], &others[k])) continue;
        check_breach(state, "getCollInfo: the answer for %s, %zu byte%s is another one %s",
                     tt_func_name(k / NSIZES), sizes[k % NSIZES], sizes[k % NSIZES] == 1 ? "" : "s",
                     when);
        return;
    }
}

/* ---- cases ---- */

static int check_life(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    struct tuner_answer answer;
    const struct tt_tuner_query query = {.func = 4, .bytes = 1 << 20, .nops = 1};
    if (!fixture_open(&fixture, state, options, "init, a question, end")) return 1;
    tuner_ask(&fixture.drive, &query, all_entries, &answer);
    return fixture_close(&fixture);
}

static int check_shapes(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    struct tuner_answer answers[ASKS];
    if (!fixture_open(&fixture, state, options, "communicators of 1 to 1024 ranks")) return 1;
    for (size_t k = 0; k < TT_LEN(shapes); k++) {
        struct tuner_drive drive;
        if (!tuner_open(&drive, &fixture.plugin, state, shapes[k].nranks, shapes[k].nnodes))
            return 1;
        for (int nops = 1; nops <= 16; nops += 15) {
            ask_all(&drive, all_entries, nops, false, answers);
            ask_all(&drive, all_entries, nops, true, answers);
        }
        tuner_close(&drive);
    }
    return fixture_close(&fixture);
}

static int check_tables(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    struct tuner_answer answers[ASKS];
    if (!fixture_open(&fixture, state, options, "tables with few possible entries")) return 1;
    for (size_t k = 0; k < TT_LEN(tables); k++)
        ask_all(&fixture.drive, tables[k], 1, false, answers);
    return fixture_close(&fixture);
}

/* Twice, at another rank of the process, and after what another communicator asked. */
static int check_agreement(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    struct tuner_drive rank, other;
    const struct tt_tuner_query odd = {.func = 4, .bytes = 77, .nops = 1};
    struct tuner_answer first[ASKS], again[ASKS];
    if (!fixture_open(&fixture, state, options, "the same questions again")) return 1;
    if (!tuner_open(&rank, &fixture.plugin, state, 8, 2)) return 1;
    ask_all(&fixture.drive, all_entries, 1, false, first);
    tuner_ask(&fixture.drive, &odd, all_entries, &again[0]); /* an even number is a period, too */
    ask_all(&fixture.drive, all_entries, 1, false, again);
    compare(state, first, again, "the second time");
    ask_all(&rank, all_entries, 1, false, again);
    compare(state, first, again, "at another rank");
    if (!tuner_open(&other, &fixture.plugin, state, 64, 8)) return 1;
    ask_all(&other, all_entries, 1, false, again);
    tuner_close(&other);
    ask_all(&fixture.drive, all_entries, 1, false, again);
    compare(state, first, again, "after another communicator");
    tuner_close(&rank);
    return fixture_close(&fixture);
}

struct elsewhere {
    const struct check_options *options;
    struct tuner_answer *answers; /* shared memory */
};

/* As another rank has it: the library is loaded by a process that knows nothing of this one. */
static int ask_elsewhere(struct check_case_state *state, void *arg)
{
    const struct elsewhere *own = arg;
    struct fixture fixture;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!fixture_open(&fixture, state, own->options, "in another process")) return 1;
    ask_all(&fixture.drive, all_entries, 1, false, own->answers);
    return fixture_close(&fixture);
}

/* False: it did not end as it should (noted). */
static bool ask_in_child(struct check_case_state *state, struct elsewhere *elsewhere)
{
    int ended = 0;
    const enum check_end end =
        check_isolated(ask_elsewhere, elsewhere, elsewhere->options->seconds, state, &ended);
    if (end == CHECK_CRASHED) {
        snprintf(state->note, sizeof(state->note), "another process ends with signal %d (%s)",
                 ended, strsignal(ended));
    }
    if (end == CHECK_EXITED) {
        snprintf(state->note, sizeof(state->note),
                 "the plugin ended another process with status %d", ended);
    }
    state->returned = false; /* of this process */
    if (end == CHECK_HUNG)
        snprintf(state->note, sizeof(state->note), "another process does not end");
    return end == CHECK_OK;
}

/* Several processes, so that what an answer may owe to the process's number differs. */
static int check_processes(struct check_case_state *state, const struct check_options *options)
{
    enum { PROCESSES = 4 };
    const size_t bytes = sizeof(struct tuner_answer) * ASKS;
    struct tuner_answer first[ASKS];
    struct elsewhere elsewhere = {options, MAP_FAILED};
    elsewhere.answers =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (elsewhere.answers == MAP_FAILED) abort();
    for (int k = 0; k < PROCESSES && !state->nbreaches; k++) {
        const uint64_t calls = state->calls;
        if (!ask_in_child(state, &elsewhere)) return 1;
        state->calls += calls;
        if (k == 0) memcpy(first, elsewhere.answers, bytes);
        compare(state, first, elsewhere.answers, "in another process");
    }
    munmap(elsewhere.answers, bytes);
    return state->nbreaches > 0;
}

struct worker {
    struct tuner_plugin *plugin;
    struct check_case_state state; /* its own: what it finds is taken over at the end */
    struct tuner_answer answers[ASKS];
    bool opened;
};

static void *live(void *arg)
{
    struct worker *own = arg;
    struct tuner_drive drive;
    own->opened = tuner_open(&drive, own->plugin, &own->state, 8, 2);
    if (!own->opened) return NULL;
    for (int k = 0; k < LIVES; k++)
        ask_all(&drive, all_entries, 1, false, own->answers);
    tuner_close(&drive);
    return NULL;
}

static int check_threads(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    pthread_t threads[THREADS];
    struct tuner_answer first[ASKS];
    struct worker workers[THREADS];
    if (!fixture_open(&fixture, state, options, "four ranks as threads")) return 1;
    ask_all(&fixture.drive, all_entries, 1, false, first);
    state->call = 0;
    for (int k = 0; k < THREADS; k++) {
        memset(&workers[k], 0, sizeof(workers[k]));
        workers[k].plugin = &fixture.plugin;
        if (pthread_create(&threads[k], NULL, live, &workers[k]) != 0) abort();
    }
    for (int k = 0; k < THREADS; k++) {
        const struct check_case_state *its = &workers[k].state;
        pthread_join(threads[k], NULL);
        state->calls += its->calls;
        for (int b = 0; b < its->nbreaches; b++)
            check_breach(state, "%s", its->breaches[b]);
        if (workers[k].opened) compare(state, first, workers[k].answers, "in another thread");
        if (!workers[k].opened) check_breach(state, "init: it fails in a second thread");
    }
    return fixture_close(&fixture);
}

static int check_lives(struct check_case_state *state, const struct check_options *options)
{
    struct tuner_answer first[ASKS], again[ASKS];
    for (int k = 0; k < LIVES; k++) {
        struct fixture fixture;
        if (!fixture_open(&fixture, state, options, "three lives of the library")) return 1;
        ask_all(&fixture.drive, all_entries, 1, false, k ? again : first);
        if (k) compare(state, first, again, "in another life");
        fixture_close(&fixture);
    }
    return state->nbreaches > 0;
}

/* Programs split and destroy communicators all the time while the first one lives. */
static int check_leavings(struct check_case_state *state, const struct check_options *options)
{
    enum { COMMUNICATORS = 64, MOST_BYTES = 16 };
    const struct tt_tuner_query query = {.func = 4, .bytes = 1 << 20, .nops = 1};
    struct fixture fixture;
    struct tuner_drive drive;
    struct tuner_answer answer;
    struct check_held held[CHECK_WINDOWS];
    if (!fixture_open(&fixture, state, options, "communicators that come and go")) return 1;
    for (int k = 0; k < CHECK_WINDOWS * COMMUNICATORS; k++) {
        if (!tuner_open(&drive, &fixture.plugin, state, 8, 2)) return 1;
        tuner_ask(&drive, &query, all_entries, &answer);
        tuner_close(&drive);
        if ((k + 1) % COMMUNICATORS == 0) held[k / COMMUNICATORS] = check_held_now();
    }
    check_held_judge(state, held, COMMUNICATORS, "each communicator that has ended", MOST_BYTES);
    return fixture_close(&fixture);
}

static int check_cost(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    struct tuner_answer answer;
    const struct tt_tuner_query query = {.func = 4, .bytes = 1 << 20, .nops = 1};
    if (!fixture_open(&fixture, state, options, "cost of a question")) return 1;
    const long half = options->iterations / 2;
    for (long k = 0; k < half; k++)
        tuner_ask(&fixture.drive, &query, all_entries, &answer);
    const uint64_t calls = state->calls;
    const struct check_memory before = check_memory_now();
    const uint64_t start = tt_now_nsec();
    for (long k = 0; k < half; k++)
        tuner_ask(&fixture.drive, &query, all_entries, &answer);
    state->nsec_per_call = (double)(tt_now_nsec() - start) / (double)(state->calls - calls);
    state->bytes_per_turn = check_memory_grown(&before) / (double)half;
    check_kept(state, "question");
    return fixture_close(&fixture);
}

static const struct check_case cases[] = {
    {"init and end", check_life},
    {"shapes", check_shapes},
    {"few entries", check_tables},
    {"the same answer", check_agreement},
    {"several processes", check_processes},
    {"four threads", check_threads},
    {"unload and load", check_lives},
    {"come and go", check_leavings},
    {"cost", check_cost},
};

static void describe(const struct check_case_state *state, bool in_words, json_t *report)
{
    (void)report;
    if (in_words && state->version)
        printf("plugin     \"%s\", version %d\n", state->name, state->version);
}

static void say_cost(const struct check_case_state *state, bool in_words, json_t *report)
{
    check_say_cost(state, "question", "bytes_per_question", in_words, report);
}

const struct check_kind check_tuner = {
    .name = "tuner",
    .variable = "NCCL_TUNER_PLUGIN",
    .prefix = "libnccl-tuner",
    .table = "ncclTunerPlugin",
    .oldest = 1,
    .newest = 6,
    .cases = cases,
    .ncases = TT_LEN(cases),
    .say_where = tuner_where,
    .describe = describe,
    .measured = say_cost,
};
