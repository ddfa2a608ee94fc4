/* Memory of another process: a child that was forked before CUDA started lends it, and fills it,
 * copies in it and adds to it when it is asked. An ask comes when the work before it is queued, and
 * is answered when the work is: that the one waits for the other is left to two events. */
#include "oracle.h"

#include <sys/wait.h>
#include <unistd.h>

enum what { SHARED_FILL, SHARED_COPY, SHARED_ADD, SHARED_COUNT_ };

struct ask {
    enum what what;
    size_t store, first, count, to; /* words */
    uint32_t value;
};

struct store { /* of the lender */
    uint32_t *at;
    cudaStream_t stream;
    cudaEvent_t given, back;
};

/* ---- in the child ---- */

static int make_store(struct store *store, struct shared_store *shared_store)
{
    const unsigned flags = cudaEventDisableTiming | cudaEventInterprocess;
    int rc = cudaMalloc((void **)&store->at, BYTES);
    if (!rc) rc = cudaStreamCreateWithFlags(&store->stream, cudaStreamNonBlocking);
    if (!rc) rc = cudaEventCreateWithFlags(&store->given, flags);
    if (!rc) rc = cudaEventCreateWithFlags(&store->back, flags);
    if (!rc) rc = cudaIpcGetMemHandle(&shared_store->memory, store->at);
    if (!rc) rc = cudaIpcGetEventHandle(&shared_store->given, store->given);
    if (!rc) rc = cudaIpcGetEventHandle(&shared_store->back, store->back);
    return rc;
}

static void add_once(void *arg)
{
    oracle_change_run(arg);
    free(arg);
}

static int use(const struct store *store, const struct ask *ask)
{
    struct change *change;
    uint32_t *at = store->at + ask->first;
    int rc = cudaStreamWaitEvent(store->stream, store->given, 0);
    if (rc) return rc;
    switch (ask->what) {
    case SHARED_FILL:
        rc = cudaMemsetAsync(at, (int)ask->value, ask->count * 4, store->stream);
        break;
    case SHARED_COPY:
        rc = cudaMemcpyAsync(store->at + ask->to, at, ask->count * 4, cudaMemcpyDefault,
                             store->stream);
        break;
    default:
        change = malloc(sizeof(*change));
        *change = (struct change){NULL, at, ask->count, ask->value};
        rc = cudaLaunchHostFunc(store->stream, add_once, change);
        break;
    }
    if (!rc) rc = cudaEventRecord(store->back, store->stream);
    return rc;
}

static int lend(int in, int out)
{
    static struct store stores[STORE];
    struct shared_store shared_store;
    struct ask ask;
    for (int i = 0; i < STORE; i++) {
        int rc = cudaSetDevice(i % DEVICES);
        if (!rc) rc = make_store(&stores[i], &shared_store);
        if (rc || write(out, &shared_store, sizeof(shared_store)) != sizeof(shared_store)) return 1;
    }
    while (read(in, &ask, sizeof(ask)) == sizeof(ask)) {
        int rc = use(&stores[ask.store], &ask);
        if (write(out, &rc, sizeof(rc)) != sizeof(rc)) return 1;
    }
    return 0;
}

/* ---- in the oracle ---- */

void oracle_lender_start(struct run *run)
{
    int to[2], from[2];
    if (pipe(to) || pipe(from)) abort();
    pthread_mutex_init(&run->asks, NULL);
    run->lender = fork();
    if (run->lender == 0) {
        close(to[1]);
        close(from[0]);
        _exit(lend(to[0], from[1]));
    }
    close(to[0]);
    close(from[1]);
    run->to_lender = to[1];
    run->from_lender = from[0];
    for (int i = 0; i < STORE; i++) {
        if (read(from[0], &run->shared_store[i], sizeof(run->shared_store[i])) !=
            sizeof(run->shared_store[i]))
            abort();
    }
}

void oracle_lender_stop(struct run *run)
{
    int status = 0;
    close(run->to_lender);
    if (waitpid(run->lender, &status, 0) != run->lender || status) abort();
    close(run->from_lender);
}

void oracle_shared_open(struct world *world, struct buffer *buffer)
{
    const struct shared_store *shared_store =
        &world->run->shared_store[world->index * DEVICES + (size_t)buffer->device];
    OK(world, cudaIpcOpenMemHandle((void **)&buffer->at, shared_store->memory,
                                   cudaIpcMemLazyEnablePeerAccess));
    OK(world, cudaIpcOpenEventHandle(&world->given[buffer->device], shared_store->given));
    OK(world, cudaIpcOpenEventHandle(&world->back[buffer->device], shared_store->back));
}

void oracle_shared_close(struct world *world, struct buffer *buffer)
{
    OK(world, cudaIpcCloseMemHandle(buffer->at));
    OK(world, cudaEventDestroy(world->given[buffer->device]));
    OK(world, cudaEventDestroy(world->back[buffer->device]));
}

static int make_ask(struct run *run, const struct ask *ask)
{
    int rc = -1;
    pthread_mutex_lock(&run->asks);
    if (write(run->to_lender, ask, sizeof(*ask)) != sizeof(*ask) ||
        read(run->from_lender, &rc, sizeof(rc)) != sizeof(rc))
        rc = -1;
    pthread_mutex_unlock(&run->asks);
    return rc;
}

static void model(uint32_t *words, const struct ask *ask)
{
    size_t bytes = ask->count * 4;
    if (ask->what == SHARED_FILL) memset(words + ask->first, (int)ask->value, bytes);
    if (ask->what == SHARED_COPY) memmove(words + ask->to, words + ask->first, bytes);
    for (size_t i = 0; ask->what == SHARED_ADD && i < ask->count; i++) {
        words[ask->first + i] += ask->value;
    }
}

void oracle_shared_use(struct world *world)
{
    size_t device = oracle_pick(world, DEVICES);
    struct buffer *shared_store = &world->buffers[KIND_OPENED + KIND_COUNT_ * device];
    size_t stream = oracle_pick(world, STREAMS / DEVICES) * DEVICES + device;
    struct span span = oracle_pick_span(world);
    struct ask ask = {.what = (enum what)oracle_pick(world, SHARED_COUNT_),
                      .store = world->index * DEVICES + device,
                      .first = span.first,
                      .count = span.count,
                      .value = (uint32_t)oracle_pick(world, 256)};
    ask.to = span.first < WORDS / 2 ? WORDS / 2 : 0; /* the other half: no overlap */
    if (ask.what == SHARED_COPY && ask.count > WORDS / 2) ask.count = WORDS / 2;
    if (ask.what == SHARED_COPY && ask.first < WORDS / 2 && ask.first + ask.count > WORDS / 2)
        ask.count = WORDS / 2 - ask.first;
    oracle_begin(world, stream, &shared_store, 1);
    OK(world, cudaEventRecord(world->given[device], world->streams[stream]));
    OK(world, make_ask(world->run, &ask));
    OK(world, cudaStreamWaitEvent(world->streams[stream], world->back[device], 0));
    model(shared_store->model, &ask);
    oracle_end(world, stream, &shared_store, 1);
}
