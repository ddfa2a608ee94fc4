/* Environment plugins: every variable that the library knows is asked for, and names that nobody
 * sets; what it says must stay, and be the same for everybody who asks. */
#include "check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/param.h"
#include "plugin/env.h"

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

struct scene {
    struct check_case_state *state;
    struct tt_library library;
    struct tt_plugin_found found;
    const ncclEnv_v2_t *plugin;
    const struct tt_param *variables;
    size_t count;
};

static bool scene_open(struct scene *scene, struct check_case_state *state,
                       const struct check_options *options, const char *doing)
{
    *scene = (struct scene){.state = state};
    snprintf(state->doing, sizeof(state->doing), "%s", doing);
    if (!tt_library_open("ENV", 0, "libnccl-env", options->file, &scene->library) ||
        !tt_library_find(&scene->library, tt_env_symbols, TT_ENV_VERSIONS, &scene->found)) {
        snprintf(state->note, sizeof(state->note), "cannot be loaded: %s", scene->library.why);
        return false;
    }
    scene->plugin = scene->found.object;
    scene->variables = tt_param_table(&scene->count);
    snprintf(state->name, sizeof(state->name), "%s",
             scene->plugin->name ? scene->plugin->name : "");
    if (!scene->plugin->name) check_breach(state, "the table: name: there is none");
    if (!scene->plugin->init || !scene->plugin->getEnv) {
        check_breach(state, "the table: %s: it is missing",
                     scene->plugin->init ? "getEnv" : "init");
        return false;
    }
    state->call = CALL_INIT;
    state->calls++;
    ncclResult_t rc = tt_env_init(&scene->found);
    if (rc) check_result(state, "init", rc);
    if (!rc) state->version = scene->found.version;
    return rc == ncclSuccess;
}

static int scene_close(struct scene *scene)
{
    scene->state->call = CALL_FINALIZE;
    scene->state->calls++;
    ncclResult_t rc = scene->plugin->finalize ? scene->plugin->finalize() : ncclSuccess;
    if (rc) check_result(scene->state, "finalize", rc);
    tt_library_close(&scene->library);
    return scene->state->nbreaches > 0;
}

/* `number` of a variable of the table, for a report on a crash. */
static const char *ask(struct scene *scene, const char *name, size_t number)
{
    scene->state->call = CALL_GET;
    scene->state->detail = number;
    scene->state->calls++;
    return scene->plugin->getEnv(name);
}

static const char *ask_row(struct scene *scene, size_t row)
{
    return ask(scene, scene->variables[row].name, row);
}

static bool same(const char *one, const char *other)
{
    return one && other ? !strcmp(one, other) : one == other;
}

/* ---- cases ---- */

static int check_life(struct check_case_state *state, const struct check_options *options)
{
    struct scene scene;
    if (!scene_open(&scene, state, options, "every variable once")) return 1;
    for (size_t k = 0; k < scene.count; k++)
        state->mask += ask_row(&scene, k) != NULL;
    return scene_close(&scene);
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
        if (tt_param_is_set(table[k].name)) continue;
        check_breach(state, "getEnv: %s: '%.24s' is none of: %.40s", table[k].name, text,
                     table[k].values);
    }
    return state->nbreaches > 0;
}

static int check_names(struct check_case_state *state, const struct check_options *options)
{
    static const char *const names[] = {
        "",           "=",           "NCCL_",         "NCCL_NOBODY_SETS_THIS",
        "nccl_debug", "NCCL_%s%n%d", "NCCL_\xff\xfe", "NCCL_A B\n"};
    char lengthy[4096];
    struct scene scene;
    if (!scene_open(&scene, state, options, "names that nobody sets")) return 1;
    for (size_t k = 0; k < TT_LEN(names); k++) {
        if (!ask(&scene, names[k], scene.count)) continue;
        check_breach(state, "getEnv: name: '%.24s' has a value", k == 6 ? "not UTF-8" : names[k]);
    }
    memset(lengthy, 'N', sizeof(lengthy) - 1);
    for (size_t bytes = 255; bytes < sizeof(lengthy); bytes = bytes * 4 + 3) {
        lengthy[bytes] = '\0';
        if (ask(&scene, lengthy, scene.count))
            check_breach(state, "getEnv: name: one of %zu bytes has a value", bytes);
        lengthy[bytes] = 'N';
    }
    return scene_close(&scene);
}

/* A text may change when its own name is asked for again, and is the same then. */
static int check_texts(struct check_case_state *state, const struct check_options *options)
{
    const char *texts[MOST];
    char *copies[MOST];
    struct scene scene;
    if (!scene_open(&scene, state, options, "texts that stay")) return 1;
    for (size_t k = 0; k < scene.count; k++) {
        texts[k] = ask_row(&scene, k);
        copies[k] = texts[k] ? strdup(texts[k]) : NULL;
    }
    if (scene.count % 2 == 0) ask(&scene, "NCCL_", scene.count); /* an even number is a period */
    for (size_t k = 0; k < scene.count; k++) {
        const char *name = scene.variables[k].name;
        if (texts[k] && !same(texts[k], copies[k]))
            check_breach(state, "getEnv: %s: its text changed when others were asked for", name);
        if (!same(ask_row(&scene, k), copies[k]))
            check_breach(state, "getEnv: %s: another answer the second time", name);
        free(copies[k]);
    }
    return scene_close(&scene);
}

struct worker {
    struct scene scene;
    struct check_case_state state; /* its own: what it finds is taken over at the end */
    char *const *expected;
};

static void *ask_all(void *arg)
{
    struct worker *own = arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < own->scene.count; k++) {
            if (same(ask_row(&own->scene, k), own->expected[k])) continue;
            check_breach(&own->state, "getEnv: %s: another answer while four threads ask",
                         own->scene.variables[k].name);
        }
    }
    return NULL;
}

static int check_threads(struct check_case_state *state, const struct check_options *options)
{
    char *expected[MOST];
    pthread_t threads[THREADS];
    struct scene scene;
    struct worker workers[THREADS];
    if (!scene_open(&scene, state, options, "four threads ask")) return 1;
    for (size_t k = 0; k < scene.count; k++) {
        const char *text = ask_row(&scene, k);
        expected[k] = text ? strdup(text) : NULL;
    }
    state->call = 0;
    for (int t = 0; t < THREADS; t++) {
        memset(&workers[t], 0, sizeof(workers[t]));
        workers[t].scene = scene;
        workers[t].scene.state = &workers[t].state;
        workers[t].expected = expected;
        if (pthread_create(&threads[t], NULL, ask_all, &workers[t]) != 0) abort();
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        state->calls += workers[t].state.calls;
        for (int b = 0; b < workers[t].state.nbreaches; b++)
            check_breach(state, "%s", workers[t].state.breaches[b]);
    }
    for (size_t k = 0; k < scene.count; k++)
        free(expected[k]);
    return scene_close(&scene);
}

/* Programs fork after they have made communicators: Python's data loaders. */
static int check_fork(struct check_case_state *state, const struct check_options *options)
{
    int status = -1;
    struct scene scene;
    if (!scene_open(&scene, state, options, "a child of fork asks")) return 1;
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may hang */
        for (size_t k = 0; k < scene.count; k++)
            ask_row(&scene, k);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        check_breach(state, "getEnv: it does not return in a child of fork");
    return scene_close(&scene);
}

static int check_lives(struct check_case_state *state, const struct check_options *options)
{
    for (int k = 0; k < LIVES; k++) {
        struct scene scene;
        if (!scene_open(&scene, state, options, "three lives of the library")) return 1;
        for (size_t row = 0; row < scene.count; row++)
            ask_row(&scene, row);
        scene_close(&scene);
    }
    return state->nbreaches > 0;
}

static int check_cost(struct check_case_state *state, const struct check_options *options)
{
    struct scene scene;
    if (!scene_open(&scene, state, options, "cost of a question")) return 1;
    const long half = options->iterations / 2;
    for (long k = 0; k < half; k++)
        ask_row(&scene, (size_t)k % scene.count);
    const double bytes = check_resident_bytes();
    const uint64_t start = tt_now_nsec();
    for (long k = 0; k < half; k++)
        ask_row(&scene, (size_t)k % scene.count);
    state->nsec_per_call = (double)(tt_now_nsec() - start) / (double)half;
    state->bytes_per_turn = (check_resident_bytes() - bytes) / (double)half;
    return scene_close(&scene);
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
