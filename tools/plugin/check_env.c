/* Environment plugins: every variable that the library knows is asked for, and names that are not
 * set; what it says must stay, and be the same for every caller. */
#include "check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "plugin/env.h"
#include "topo/topo.h"
#include "tune/lists.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVES = 3, THREADS = 4, ROUNDS = 20, MOST = 1024 };
enum { CALL_INIT = 1, CALL_GET, CALL_FINALIZE };

struct fixture {
    struct check_case_state *state;
    struct tt_library library;
    struct tt_plugin_found found;
    const ncclEnv_v2_t *plugin;
    const struct tt_param *variables;
    size_t count;
};

static bool fixture_open(struct fixture *fixture, struct check_case_state *state,
                         const struct check_options *options, const char *doing)
{
    *fixture = (struct fixture){.state = state};
    snprintf(state->doing, sizeof(state->doing), "%s", doing);
    if (!tt_library_open("ENV", 0, "libnccl-env", options->file, &fixture->library) ||
        !tt_library_find(&fixture->library, tt_env_symbols, TT_ENV_VERSIONS, &fixture->found)) {
        snprintf(state->note, sizeof(state->note), "cannot be loaded: %s", fixture->library.why);
        return false;
    }
    fixture->plugin = fixture->found.object;
    fixture->variables = tt_param_table(&fixture->count);
    snprintf(state->name, sizeof(state->name), "%s",
             fixture->plugin->name ? fixture->plugin->name : "");
    if (!fixture->plugin->name) check_breach(state, "the table: name: there is none");
    static const char *const names[] = {"init", "finalize", "getEnv"}; /* NCCL calls all of them */
    const char *lacks = tt_table_lacks(fixture->plugin, names, TT_LEN(names));
    if (lacks) {
        check_breach(state, "the table: %s: it is missing", lacks);
        return false;
    }
    state->call = CALL_INIT;
    state->calls++;
    ncclResult_t rc = tt_env_init(&fixture->found);
    if (rc) check_result(state, "init", rc);
    if (!rc) state->version = fixture->found.version;
    return rc == ncclSuccess;
}

static int fixture_close(struct fixture *fixture)
{
    fixture->state->call = CALL_FINALIZE;
    fixture->state->calls++;
    ncclResult_t rc = fixture->plugin->finalize ? fixture->plugin->finalize() : ncclSuccess;
    if (rc) check_result(fixture->state, "finalize", rc);
    tt_library_close(&fixture->library);
    return fixture->state->nbreaches > 0;
}

/* `number` of a variable of the table, for a report on a crash. */
static const char *ask(struct fixture *fixture, const char *name, size_t number)
{
    fixture->state->call = CALL_GET;
    fixture->state->detail = number;
    fixture->state->calls++;
    return fixture->plugin->getEnv(name);
}

static const char *ask_row(struct fixture *fixture, size_t row)
{
    return ask(fixture, fixture->variables[row].name, row);
}

static bool same(const char *one, const char *other)
{
    return one && other ? !strcmp(one, other) : one == other;
}

static uint64_t environment_sum(void)
{
    uint64_t sum = TT_HASH_START;
    for (char **at = environ; at && *at; at++)
        sum = tt_hash_bytes(sum, *at, strlen(*at) + 1);
    return sum;
}

/* ---- cases ---- */

static int check_life(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    if (!fixture_open(&fixture, state, options, "every variable once")) return 1;
    const uint64_t before = environment_sum();
    for (size_t k = 0; k < fixture.count; k++)
        state->mask += ask_row(&fixture, k) != NULL;
    if (environment_sum() != before)
        check_breach(state, "getEnv: it changes the environment, which other threads read");
    return fixture_close(&fixture);
}

/* False: a number outside of "A..B", where that is how the table has it. What is no number here
 * was understood all the same (4K, TRUE), and the default is in no bounds. */
static bool is_in_bounds(const struct tt_param *param, const char *text)
{
    char *end = NULL, *dots = NULL;
    const long long value = strtoll(text, &end, 0), least = strtoll(param->values, &dots, 10);
    if (*end || strncmp(dots, "..", 2) != 0) return true;
    const long long most = strtoll(dots + 2, NULL, 10);
    if (value == -2 || (param->fallback && !strcmp(param->fallback, text))) return true;
    const bool even = !strstr(param->values, "multiple of 32") || value % 32 == 0;
    return value >= least && value <= most && even;
}

/* What the readers of lists and levels say: "<variable>: <what> (accepted: ...)". */
static void take_sentence(struct check_case_state *state, const char *sentence)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(sentence, ":"), sentence);
    if (strncmp(tt_param_origin(name), "plugin", 6) != 0) return;
    const char *accepted = strstr(sentence, " (accepted");
    const size_t len = accepted ? (size_t)(accepted - sentence) : strlen(sentence);
    check_breach(state, "getEnv: %.*s", (int)len, sentence);
}

static void judge_words(struct check_case_state *state)
{
    struct tt_tune_lists lists;
    state->call = 0;
    if (tt_tune_lists_read(&lists)) take_sentence(state, tt_last_error());
    char *before = strdup(tt_last_error());
    tt_topo_env_check();
    if (before && strcmp(before, tt_last_error()) != 0) take_sentence(state, tt_last_error());
    free(before);
}

/* As the library reads them. */
static int check_values(struct check_case_state *state, const struct check_options *options)
{
    size_t count;
    const struct tt_param *table = tt_param_table(&count);
    (void)options;
    snprintf(state->doing, sizeof(state->doing), "values as the library reads them");
    tt_env_open(); /* ends with the process */
    for (size_t k = 0; k < count; k++) {
        state->call = CALL_GET;
        state->detail = k;
        state->calls++;
        const char *text = tt_param_text(table[k].name);
        if (!text || !*text || strncmp(tt_param_origin(table[k].name), "plugin", 6) != 0) continue;
        if (tt_param_is_set(table[k].name) && is_in_bounds(&table[k], text)) continue;
        check_breach(state, "getEnv: %s: '%.24s' is none of: %.40s", table[k].name, text,
                     table[k].values);
    }
    judge_words(state);
    return state->nbreaches > 0;
}

static int check_names(struct check_case_state *state, const struct check_options *options)
{
    static const char *const names[] = {
        "",           "=",           "NCCL_",         "NCCL_NOBODY_SETS_THIS",
        "nccl_debug", "NCCL_%s%n%d", "NCCL_\xff\xfe", "NCCL_A B\n"};
    char lengthy[4096];
    struct fixture fixture;
    if (!fixture_open(&fixture, state, options, "names that nobody sets")) return 1;
    for (size_t k = 0; k < TT_LEN(names); k++) {
        if (!ask(&fixture, names[k], fixture.count)) continue;
        check_breach(state, "getEnv: name: '%.24s' has a value", k == 6 ? "not UTF-8" : names[k]);
    }
    memset(lengthy, 'N', sizeof(lengthy) - 1);
    for (size_t bytes = 255; bytes < sizeof(lengthy); bytes = bytes * 4 + 3) {
        lengthy[bytes] = '\0';
        if (ask(&fixture, lengthy, fixture.count))
            check_breach(state, "getEnv: name: one of %zu bytes has a value", bytes);
        lengthy[bytes] = 'N';
    }
    return fixture_close(&fixture);
}

/* A text may change when its own name is asked for again, and is the same then. */
static int check_texts(struct check_case_state *state, const struct check_options *options)
{
    const char *texts[MOST];
    char *copies[MOST];
    struct fixture fixture;
    if (!fixture_open(&fixture, state, options, "texts that stay")) return 1;
    for (size_t k = 0; k < fixture.count; k++) {
        texts[k] = ask_row(&fixture, k);
        copies[k] = texts[k] ? strdup(texts[k]) : NULL;
    }
    if (fixture.count % 2 == 0)
        ask(&fixture, "NCCL_", fixture.count); /* an even number is a period */
    for (size_t k = 0; k < fixture.count; k++) {
        const char *name = fixture.variables[k].name;
        if (texts[k] && !same(texts[k], copies[k]))
            check_breach(state, "getEnv: %s: its text changed when others were asked for", name);
        if (!same(ask_row(&fixture, k), copies[k]))
            check_breach(state, "getEnv: %s: another answer the second time", name);
        free(copies[k]);
    }
    return fixture_close(&fixture);
}

struct worker {
    struct fixture fixture;
    struct check_case_state state; /* its own: what it finds is taken over at the end */
    char *const *expected;
};

static void *ask_all(void *arg)
{
    struct worker *own = arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < own->fixture.count; k++) {
            if (same(ask_row(&own->fixture, k), own->expected[k])) continue;
            check_breach(&own->state, "getEnv: %s: another answer while four threads ask",
                         own->fixture.variables[k].name);
        }
    }
    return NULL;
}

static int check_threads(struct check_case_state *state, const struct check_options *options)
{
    char *expected[MOST];
    pthread_t threads[THREADS];
    struct fixture fixture;
    struct worker workers[THREADS];
    if (!fixture_open(&fixture, state, options, "four threads ask")) return 1;
    for (size_t k = 0; k < fixture.count; k++) {
        const char *text = ask_row(&fixture, k);
        expected[k] = text ? strdup(text) : NULL;
    }
    state->call = 0;
    for (int t = 0; t < THREADS; t++) {
        memset(&workers[t], 0, sizeof(workers[t]));
        workers[t].fixture = fixture;
        workers[t].fixture.state = &workers[t].state;
        workers[t].expected = expected;
        if (pthread_create(&threads[t], NULL, ask_all, &workers[t]) != 0) abort();
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        state->calls += workers[t].state.calls;
        for (int b = 0; b < workers[t].state.nbreaches; b++)
            check_breach(state, "%s", workers[t].state.breaches[b]);
    }
    for (size_t k = 0; k < fixture.count; k++)
        free(expected[k]);
    return fixture_close(&fixture);
}

/* Programs fork after they have made communicators: Python's data loaders. */
static int check_fork(struct check_case_state *state, const struct check_options *options)
{
    int status = -1;
    struct fixture fixture;
    if (!fixture_open(&fixture, state, options, "a child of fork asks")) return 1;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may hang */
        for (size_t k = 0; k < fixture.count; k++)
            ask_row(&fixture, k);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        check_breach(state, "getEnv: it does not return in a child of fork");
    return fixture_close(&fixture);
}

static int check_lives(struct check_case_state *state, const struct check_options *options)
{
    for (int k = 0; k < LIVES; k++) {
        struct fixture fixture;
        if (!fixture_open(&fixture, state, options, "three lives of the library")) return 1;
        for (size_t row = 0; row < fixture.count; row++)
            ask_row(&fixture, row);
        fixture_close(&fixture);
    }
    return state->nbreaches > 0;
}

static int check_cost(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    if (!fixture_open(&fixture, state, options, "cost of a question")) return 1;
    const long half = options->iterations / 2;
    for (long k = 0; k < half; k++)
        ask_row(&fixture, (size_t)k % fixture.count);
    const struct check_memory before = check_memory_now();
    const uint64_t start = tt_now_nsec();
    for (long k = 0; k < half; k++)
        ask_row(&fixture, (size_t)k % fixture.count);
    state->nsec_per_call = (double)(tt_now_nsec() - start) / (double)half;
    state->bytes_per_turn = check_memory_grown(&before) / (double)half;
    check_kept(state, "question");
    return fixture_close(&fixture);
}

static const struct check_case cases[] = {
    {"every variable", check_life},   {"values", check_values},
    {"strange names", check_names},   {"texts", check_texts},
    {"four threads", check_threads},  {"a child of fork", check_fork},
    {"unload and load", check_lives}, {"cost", check_cost},
};

/* ---- the report ---- */

static void say_where(const struct check_case_state *state, char *text, size_t text_bytes)
{
    size_t count;
    const struct tt_param *table = tt_param_table(&count);
    const char *call = state->call == CALL_INIT ? "init" : state->call ? "finalize" : "a call";
    if (state->call != CALL_GET) {
        snprintf(text, text_bytes, "%s (%s)", call, state->doing);
    } else {
        snprintf(text, text_bytes, "getEnv of %s (%s)",
                 state->detail < count ? table[state->detail].name : "a strange name",
                 state->doing);
    }
}

static void describe(const struct check_case_state *state, bool in_words, json_t *report)
{
    json_object_set_new(report, "answers", json_integer((json_int_t)state->mask));
    if (in_words && state->version) {
        printf("plugin     \"%s\", version %d, answers for %u variables\n", state->name,
               state->version, state->mask);
    }
}

static void say_cost(const struct check_case_state *state, bool in_words, json_t *report)
{
    check_say_cost(state, "question", "bytes_per_question", in_words, report);
}

const struct check_kind check_env = {
    .name = "env",
    .variable = "NCCL_ENV_PLUGIN",
    .prefix = "libnccl-env",
    .table = "ncclEnvPlugin",
    .oldest = 1,
    .newest = TT_ENV_VERSIONS,
    .cases = cases,
    .ncases = TT_LEN(cases),
    .say_where = say_where,
    .describe = describe,
    .measured = say_cost,
};
