/* A tuner plugin as a stranger writes it: with declarations of its own, taken from the published
 * tables, none of our headers. Built once for each of the versions 1 to 6 (OUTSIDER_VERSION;
 * OUTSIDER_TABLE is the symbol).
 * OUTSIDER_CHOICE "algorithm,protocol,channels" is its answer; OUTSIDER_FAIL=init or ask makes that
 * function fail; OUTSIDER_LOG names a file that gets one line for each call; OUTSIDER_NULL=init,
 * ask or end leaves that function out; OUTSIDER_EDIT "place value,place value" sets constants of
 * the model at init (versions 5 and 6: place counts the numbers of the struct). */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int result_t; /* 0 success, 2 system error, 3 internal error */
typedef void (*logger_t)(int level, unsigned long flags, const char *file, int line,
                         const char *fmt, ...);
enum { LEVEL_INFO = 3, SUBSYSTEM_TUNING = 64 };

static int instances;

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    const char *path = getenv("OUTSIDER_LOG");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file) return;
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    vfprintf(file, fmt, args);
    va_end(args);
    fputc('\n', file);
    fclose(file);
}

static int fails(const char *what)
{
    const char *text = getenv("OUTSIDER_FAIL");
    return text && !strcmp(text, what);
}

static void prefer(int *algorithm, int *protocol, int *channels)
{
    const char *text = getenv("OUTSIDER_CHOICE");
    if (text) sscanf(text, "%d,%d,%d", algorithm, protocol, channels);
}

static result_t begin(size_t ranks, size_t nodes, logger_t logger)
{
    note("init %zu %zu", ranks, nodes);
    if (fails("init")) return 2;
    if (instances++ == 0)
        logger(LEVEL_INFO, SUBSYSTEM_TUNING, __FILE__, __LINE__, "outsider is up");
    return 0;
}

static result_t end(void)
{
    note("end %d", --instances);
    return 0;
}

#if OUTSIDER_VERSION <= 2
/* Calls that run at this moment. */
static atomic_int inside;

static result_t answer(size_t ranks, const size_t operation[2], const int support[2], int *out[3])
{
    int callers = atomic_fetch_add(&inside, 1);
    note("ask %zu %zu collnet %d nvls %d ranks %zu guests %d", operation[0], operation[1],
         support[0], support[1], ranks, callers);
    prefer(out[0], out[1], out[2]);
    atomic_fetch_sub(&inside, 1);
    return fails("ask") ? 3 : 0;
}
#else
static result_t edit(int collective, size_t bytes, float *table, const int sizes[2], int *channels)
{
    int algorithm = -1, protocol = -1;
    note("ask %d %zu table %dx%d", collective, bytes, sizes[0], sizes[1]);
    prefer(&algorithm, &protocol, channels);
    if (fails("ask")) {
        for (int i = 0; i < sizes[0] * sizes[1]; i++)
            table[i] = 0;
        return 3;
    }
    if (algorithm < 0 || algorithm >= sizes[0] || protocol < 0 || protocol >= sizes[1]) return 0;
    float *entry = &table[algorithm * sizes[1] + protocol];
    if (*entry >= 0) *entry = 0;
    return 0;
}
#endif

#if OUTSIDER_VERSION == 1
static struct {
    size_t ranks, nodes;
} one_state;

static result_t open_one(size_t ranks, size_t nodes, logger_t logger)
{
    one_state.ranks = ranks;
    one_state.nodes = nodes;
    return begin(ranks, nodes, logger);
}

static result_t ask(int collective, size_t bytes, int collnet, int nvls, int pipe, int *algorithm,
                    int *protocol, int *channels)
{
    const int support[2] = {collnet, nvls};
    int *out[3] = {algorithm, protocol, channels};
    const size_t operation[2] = {(size_t)collective, bytes};
    (void)pipe;
    return answer(one_state.ranks, operation, support, out);
}

struct tuner {
    const char *name;
    result_t (*init)(size_t, size_t, logger_t);
    result_t (*ask)(int, size_t, int, int, int, int *, int *, int *);
    result_t (*destroy)(void);
};
__attribute__((visibility("default"))) struct tuner OUTSIDER_TABLE = {"Outsider", open_one, ask,
                                                                      end};
#else
/* ---- versions with a context ---- */
struct context {
    size_t ranks, nodes;
};

/* What a table without an end makes would never be freed. */
static struct context *make_context(void)
{
    static struct context kept;
    const char *left_out = getenv("OUTSIDER_NULL");
    return left_out && !strcmp(left_out, "end") ? &kept : malloc(sizeof(struct context));
}

static result_t open_context(size_t ranks, size_t nodes, logger_t logger, void **out)
{
    result_t rc = begin(ranks, nodes, logger);
    struct context *context = rc ? NULL : make_context();
    if (!context) return rc ? rc : 2;
    *context = (struct context){ranks, nodes};
    *out = context;
    return 0;
}

static result_t close_context(void *context)
{
    free(context);
    return end();
}
#endif

#if OUTSIDER_VERSION == 2
static result_t ask(void *context, int collective, size_t bytes, int collnet, int nvls, int pipe,
                    int *algorithm, int *protocol, int *channels)
{
    const int support[2] = {collnet, nvls};
    int *out[3] = {algorithm, protocol, channels};
    const size_t operation[2] = {(size_t)collective, bytes};
    (void)pipe;
    return answer(((struct context *)context)->ranks, operation, support, out);
}

struct tuner {
    const char *name;
    result_t (*init)(size_t, size_t, logger_t, void **);
    result_t (*ask)(void *, int, size_t, int, int, int, int *, int *, int *);
    result_t (*destroy)(void *);
};
__attribute__((visibility("default"))) struct tuner OUTSIDER_TABLE = {"Outsider", open_context, ask,
                                                                      close_context};
#elif OUTSIDER_VERSION == 3
static result_t ask(void *context, int collective, size_t bytes, int pipe, float **table,
                    int algorithms, int protocols, int *channels)
{
    const int sizes[2] = {algorithms, protocols};
    (void)context, (void)pipe;
    return edit(collective, bytes, (float *)(void *)table, sizes, channels);
}

struct tuner {
    const char *name;
    result_t (*init)(size_t, size_t, logger_t, void **);
    result_t (*ask)(void *, int, size_t, int, float **, int, int, int *);
    result_t (*destroy)(void *);
};
__attribute__((visibility("default"))) struct tuner OUTSIDER_TABLE = {"Outsider", open_context, ask,
                                                                      close_context};
#elif OUTSIDER_VERSION >= 4
static result_t ask(void *context, int collective, size_t bytes, int pipe, float **table,
                    int algorithms, int protocols, int registered, int *channels)
{
    const int sizes[2] = {algorithms, protocols};
    (void)context, (void)pipe;
    if (registered < 0 || registered > 1) return 3;
    return edit(collective, bytes, (float *)(void *)table, sizes, channels);
}
#endif

#if OUTSIDER_VERSION == 4
struct tuner {
    const char *name;
    result_t (*init)(size_t, size_t, logger_t, void **);
    result_t (*ask)(void *, int, size_t, int, float **, int, int, int, int *);
    result_t (*destroy)(void *);
};
__attribute__((visibility("default"))) struct tuner OUTSIDER_TABLE = {"Outsider", open_context, ask,
                                                                      close_context};
#elif OUTSIDER_VERSION >= 5
struct domains {
    int count, least, most;
};
struct constants {
    double base[7][3], hop[3][7][3], bandwidths[5][4][3];
};

static void edit_constants(double *numbers)
{
    const char *text = getenv("OUTSIDER_EDIT");
    for (; text && *text; text = strchr(text, ',')) {
        unsigned index = 0;
        double value = 0;
        if (*text == ',') text++;
        if (sscanf(text, "%u %lf", &index, &value) == 2 &&
            index < sizeof(struct constants) / sizeof(double))
            numbers[index] = value;
    }
}

static result_t open_five(void **out, uint64_t communicator, size_t ranks, size_t nodes,
                          logger_t logger, struct domains *domains, struct constants *constants)
{
    note("v5 comm %llx domains %d of %d..%d ring latency %.1f", (unsigned long long)communicator,
         domains->count, domains->least, domains->most, constants->base[1][2]);
    edit_constants(&constants->base[0][0]);
    return open_context(ranks, nodes, logger, out);
}

struct tuner {
    const char *name;
    result_t (*init)(void **, uint64_t, size_t, size_t, logger_t, struct domains *,
                     struct constants *);
    result_t (*ask)(void *, int, size_t, int, float **, int, int, int, int *);
    result_t (*destroy)(void *); /* finalize, as it is called here */
#if OUTSIDER_VERSION == 6
    result_t (*chunk)(void *, int, size_t, int, int, int, size_t *);
#endif
};
#if OUTSIDER_VERSION == 6
static result_t chunk(void *context, int collective, size_t bytes, int algorithm, int protocol,
                      int channels, size_t *chunk_bytes)
{
    const char *text = getenv("OUTSIDER_CHUNK");
    (void)context;
    note("chunk %d %zu of %d/%d on %d: %zu", collective, bytes, algorithm, protocol, channels,
         *chunk_bytes);
    if (text) *chunk_bytes = strtoul(text, NULL, 10);
    return fails("chunk") ? 3 : 0;
}
__attribute__((visibility("default"))) struct tuner OUTSIDER_TABLE = {"Outsider", open_five, ask,
                                                                      close_context, chunk};
#else
__attribute__((visibility("default"))) struct tuner OUTSIDER_TABLE = {"Outsider", open_five, ask,
                                                                      close_context};
#endif
#endif

__attribute__((constructor)) static void leave_out(void)
{
    const char *what = getenv("OUTSIDER_NULL");
    if (!what) return;
    if (!strcmp(what, "init")) OUTSIDER_TABLE.init = NULL;
    if (!strcmp(what, "ask")) OUTSIDER_TABLE.ask = NULL;
    if (!strcmp(what, "end")) OUTSIDER_TABLE.destroy = NULL;
}
