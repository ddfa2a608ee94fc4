/* A tuner plugin of version 6 with one mistake at a time, named by FAULTY; without it, a sound one.
 * Declarations are its own, taken from the published table. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALGOS = 7, PROTOS = 3, RING = 1, SIMPLE = 2 };

struct context {
    size_t ranks;
    int number; /* of the instance in this process */
    int asked;
};
static int instances;
static size_t last_ranks;
static void *volatile kept; /* the last of many */
static pthread_mutex_t inside = PTHREAD_MUTEX_INITIALIZER;

static int has(const char *fault)
{
    const char *planted = getenv("FAULTY");
    return planted && !strcmp(planted, fault);
}

static int faulty_init(void **out, uint64_t communicator, size_t ranks, size_t nodes, void *logger,
                       int *domains, double *constants)
{
    struct context *own = calloc(1, sizeof(*own));
    (void)communicator, (void)nodes, (void)logger;
    while (has("init-hangs"))
        sleep(1);
    if (!own || has("init-fails")) return 3;
    if (has("init-code")) return 99;
    if (has("init-crashes")) abort();
    if (has("constants-nan")) constants[5] = nan("");
    if (has("constants-negative")) constants[5] = -2;
    if (has("domains")) domains[0]++;
    own->ranks = last_ranks = ranks;
    own->number = __atomic_fetch_add(&instances, 1, __ATOMIC_RELAXED);
    if (has("one-instance") && own->number > 0) return 3;
    *out = own;
    return 0;
}

static void edit(const struct context *own, float *table, int *channels)
{
    float *best = &table[RING * PROTOS + SIMPLE];
    if (*best >= 0) *best = 0;
    if (has("revives")) table[2 * PROTOS + 1] = 1;
    if (has("not-a-number")) table[0] = nanf("");
    if (has("infinite")) table[0] = INFINITY;
    if (has("negative")) table[0] = -7;
    if (has("beyond")) table[ALGOS * PROTOS] = 0;
    if (has("before")) table[-1] = 0;
    for (int i = 0; has("nothing-left") && i < ALGOS * PROTOS; i++)
        table[i] = -1;
    if (has("channels-negative")) *channels = -3;
    if (has("channels-many")) *channels = 1000;
    if (has("unsteady")) *channels = 1 + own->asked % 2;
    if (has("by-rank")) *channels = 1 + own->number % 8;
    if (has("by-process")) *channels = 1 + getpid() % 50;
    if (has("one-state")) *channels = last_ranks > 8 ? 2 : 1;
}

static int faulty_ask(void *context, int function, size_t bytes, int operations, float *table,
                      int algos, int protos, int registered, int *channels)
{
    struct context *own = context;
    (void)function, (void)operations, (void)registered, (void)algos, (void)protos;
    own->asked++;
    if (has("keeps")) kept = malloc(100);
    while (has("hangs"))
        sleep(1);
    if (has("ask-fails")) return 5;
    if (has("crashes") && bytes > 1 << 30) abort();
    if (has("not-threads") && pthread_mutex_trylock(&inside)) abort();
    if (has("not-threads")) usleep(20);
    edit(own, table, channels);
    if (has("not-threads")) pthread_mutex_unlock(&inside);
    return 0;
}

static int end(void *context)
{
    if (!has("keeps-contexts")) free(context);
    __atomic_fetch_sub(&instances, 1, __ATOMIC_RELAXED);
    if (has("end-crashes")) abort();
    return has("end-fails") ? 2 : 0;
}

static int faulty_chunk(void *context, int function, size_t bytes, int algo, int proto,
                        int channels, size_t *chunk_bytes)
{
    (void)context, (void)function, (void)bytes, (void)algo, (void)proto, (void)channels;
    if (has("chunk-zero")) *chunk_bytes = 0;
    return has("chunk-fails") ? 3 : 0;
}

struct table {
    const char *name;
    int (*init)(void **, uint64_t, size_t, size_t, void *, int *, double *);
    int (*ask)(void *, int, size_t, int, float *, int, int, int, int *);
    int (*end)(void *);
    int (*chunk)(void *, int, size_t, int, int, int, size_t *);
};
__attribute__((visibility("default"))) struct table ncclTunerPlugin_v6 = {
    "Faulty", faulty_init, faulty_ask, end, faulty_chunk};

__attribute__((constructor)) static void leave_out(void)
{
    if (has("no-name")) ncclTunerPlugin_v6.name = NULL;
    if (has("no-init")) ncclTunerPlugin_v6.init = NULL;
    if (has("no-ask")) ncclTunerPlugin_v6.ask = NULL;
    if (has("no-end")) ncclTunerPlugin_v6.end = NULL;
    if (has("no-chunk")) ncclTunerPlugin_v6.chunk = NULL; /* which is no mistake */
}
