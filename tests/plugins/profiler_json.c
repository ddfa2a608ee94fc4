/* A profiler plugin for tests, compiled once for each version of the interface: one JSON line per
 * call into the file PROFILER_LOG (shared by all communicators of all processes). PROFILER_MASK:
 * the events asked for (default: all of v5). PROFILER_FAIL=init: init fails; =null: it succeeds and
 * gives no context; =bare: the same, and it asks for Colls; =threads: it ends the process when two
 * threads are in init at once. It counts what a host must not do: stops of unknown handles end the
 * process.
 *
 * JSON_VERSION and the names that contain it come from the build: JSON_DESCR, JSON_STATE,
 * JSON_ARGS, JSON_TYPE (of the table) and JSON_TABLE. */
#include "nccl/profiler.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT_MAGIC 0x6576656e74ull

struct context {
    int rank; /* -1: init did not say */
    uint64_t comm_id;
    unsigned long number; /* of the process, from 1 */
};

struct event { /* freed with the last context: handles stay parents after their stop */
    uint64_t magic;
    unsigned long number;
    uint64_t type;
    int stops;
    struct event *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event *all;
static unsigned long count;
static unsigned long made; /* contexts, ever */
static int contexts;

static void note(const char *line)
{
    const char *path = getenv("PROFILER_LOG");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    if (write(fd, line, strlen(line)) < 0) abort();
    close(fd);
}

static unsigned long number_of(const void *handle)
{
    const struct event *event = handle;
    if (event && event->magic != EVENT_MAGIC) abort();
    return event ? event->number : 0;
}

static struct context *context_create(int *mask)
{
    static int inside;
    const char *fail = getenv("PROFILER_FAIL");
    const char *wanted = getenv("PROFILER_MASK");
    if (fail && !strcmp(fail, "bare")) __atomic_store_n(mask, ncclProfileColl, __ATOMIC_RELAXED);
    if (fail && (!strcmp(fail, "null") || !strcmp(fail, "bare"))) return NULL;
    bool counts = fail && !strcmp(fail, "threads");
    if (counts && __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST)) abort();
    if (counts) usleep(2000); /* for another thread to come in, if it may */
    if (counts) __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    struct context *context = calloc(1, sizeof(*context));
    if (!context) abort();
    context->rank = -1;
    __atomic_store_n(mask, wanted ? (int)strtol(wanted, NULL, 0) : 4095, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    contexts++;
    context->number = ++made;
    pthread_mutex_unlock(&lock);
    return context;
}

static bool init_fails(void)
{
    const char *fail = getenv("PROFILER_FAIL");
    return fail && !strcmp(fail, "init");
}

#if JSON_VERSION < 4
static ncclResult_t json_init(void **context_out, int *mask)
{
    char line[64];
    if (init_fails()) return ncclInternalError;
    *context_out = context_create(mask);
    snprintf(line, sizeof(line), "{\"call\":\"init\",\"pid\":%d}\n", (int)getpid());
    if (*context_out) note(line);
    return ncclSuccess;
}
#else
static ncclResult_t json_init_named(void **context_out, uint64_t comm_id, int *mask,
                                    const char *comm_name, int nnodes, int nranks, int rank,
                                    ncclDebugLogger_t log)
{
    char line[256];
    if (init_fails()) return ncclInternalError;
    struct context *context = context_create(mask);
    if (!context) return ncclSuccess;
    context->rank = rank;
    context->comm_id = comm_id;
    snprintf(line, sizeof(line),
             "{\"call\":\"init\",\"pid\":%d,\"comm\":\"%lx\",\"name\":\"%s\",\"nodes\":%d,"
             "\"ranks\":%d,\"rank\":%d}\n",
             (int)getpid(), (unsigned long)comm_id, comm_name ? comm_name : "", nnodes, nranks,
             rank);
    note(line);
    log(NCCL_LOG_INFO, NCCL_INIT, __FILE__, __LINE__, "TestProfiler: rank %d", rank);
    *context_out = context;
    return ncclSuccess;
}
#endif
#if JSON_VERSION == 4
static ncclResult_t json_init(void **context_out, int *mask, const char *comm_name,
                              uint64_t comm_id, int nnodes, int nranks, int rank,
                              ncclDebugLogger_t log)
{
    return json_init_named(context_out, comm_id, mask, comm_name, nnodes, nranks, rank, log);
}
#endif

static struct event *event_create(uint64_t type)
{
    struct event *event = calloc(1, sizeof(*event));
    if (!event) abort();
    pthread_mutex_lock(&lock);
    *event = (struct event){EVENT_MAGIC, ++count, type, 0, all};
    all = event;
    pthread_mutex_unlock(&lock);
    return event;
}

/* ---- the part of the union, as further JSON members ---- */

#if JSON_VERSION == 1 /* everything is a number */
static void describe_coll(const JSON_DESCR *d, char *text, size_t bytes)
{
    snprintf(text, bytes,
             ",\"comm\":\"%lx\",\"name\":\"%s\",\"seq\":%lu,\"func\":%d,\"count\":%zu,"
             "\"datatype\":%d,\"channels\":%d,\"algo\":%d,\"proto\":%d,\"rank_of_op\":%d",
             (unsigned long)d->coll.commHash, d->coll.name ? d->coll.name : "",
             (unsigned long)d->coll.seqNumber, d->coll.func, d->coll.count, d->coll.datatype,
             d->coll.nMaxChannels, d->coll.algo, d->coll.proto, d->rank);
}

static void describe_p2p(const JSON_DESCR *d, char *text, size_t bytes)
{
    snprintf(text, bytes,
             ",\"comm\":\"%lx\",\"name\":\"%s\",\"func\":%d,\"count\":%zu,\"datatype\":%d,"
             "\"peer\":%d,\"rank_of_op\":%d",
             (unsigned long)d->p2p.commHash, d->p2p.name ? d->p2p.name : "", d->p2p.func,
             d->p2p.count, d->p2p.datatype, d->p2p.peer, d->rank);
}
#elif JSON_VERSION < 4
static void describe_coll(const JSON_DESCR *d, char *text, size_t bytes)
{
    snprintf(text, bytes,
             ",\"comm\":\"%lx\",\"name\":\"%s\",\"seq\":%lu,\"func\":\"%s\",\"count\":%zu,"
             "\"datatype\":\"%s\",\"channels\":%d,\"algo\":\"%s\",\"proto\":\"%s\","
             "\"rank_of_op\":%d",
             (unsigned long)d->coll.commHash, d->coll.name ? d->coll.name : "",
             (unsigned long)d->coll.seqNumber, d->coll.func, d->coll.count, d->coll.datatype,
             d->coll.nMaxChannels, d->coll.algo, d->coll.proto, d->rank);
}

static void describe_p2p(const JSON_DESCR *d, char *text, size_t bytes)
{
    snprintf(text, bytes,
             ",\"comm\":\"%lx\",\"name\":\"%s\",\"func\":\"%s\",\"count\":%zu,"
             "\"datatype\":\"%s\",\"peer\":%d,\"rank_of_op\":%d",
             (unsigned long)d->p2p.commHash, d->p2p.name ? d->p2p.name : "", d->p2p.func,
             d->p2p.count, d->p2p.datatype, d->p2p.peer, d->rank);
}
#else
static void describe_coll(const JSON_DESCR *d, char *text, size_t bytes)
{
    unsigned long group = 0, tag = 0;
#if JSON_VERSION > 4
    group = number_of(d->coll.parentGroup);
#endif
#if JSON_VERSION > 6
    tag = (unsigned long)d->coll.userTag;
#endif
    snprintf(text, bytes,
             ",\"seq\":%lu,\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"channels\":%d,"
             "\"algo\":\"%s\",\"proto\":\"%s\",\"group\":%lu,\"rank_of_op\":%d,\"tag\":%lu",
             (unsigned long)d->coll.seqNumber, d->coll.func, d->coll.count, d->coll.datatype,
             d->coll.nChannels, d->coll.algo, d->coll.proto, group, d->rank, tag);
}

static void describe_p2p(const JSON_DESCR *d, char *text, size_t bytes)
{
    unsigned long group = 0, tag = 0;
#if JSON_VERSION > 4
    group = number_of(d->p2p.parentGroup);
#endif
#if JSON_VERSION > 6
    tag = (unsigned long)d->p2p.userTag;
#endif
    snprintf(text, bytes,
             ",\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"peer\":%d,\"channels\":%d,"
             "\"group\":%lu,\"rank_of_op\":%d,\"tag\":%lu",
             d->p2p.func, d->p2p.count, d->p2p.datatype, d->p2p.peer, d->p2p.nChannels, group,
             d->rank, tag);
}
#endif

#if JSON_VERSION > 4
static void describe_api(const JSON_DESCR *d, char *text, size_t bytes)
{
    unsigned long tag = 0;
    if (d->type == ncclProfileGroupApi) {
        snprintf(text, bytes, ",\"depth\":%d,\"captured\":%d", d->groupApi.groupDepth,
                 d->groupApi.graphCaptured);
    } else if (d->type == ncclProfileCollApi) {
#if JSON_VERSION > 6
        tag = (unsigned long)d->collApi.userTag;
#endif
        snprintf(text, bytes,
                 ",\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"root\":%d,"
                 "\"captured\":%d,\"tag\":%lu",
                 d->collApi.func, d->collApi.count, d->collApi.datatype, d->collApi.root,
                 d->collApi.graphCaptured, tag);
    } else if (d->type == ncclProfileP2pApi) {
#if JSON_VERSION > 6
        tag = (unsigned long)d->p2pApi.userTag;
#endif
        snprintf(text, bytes,
                 ",\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"captured\":%d,"
                 "\"tag\":%lu",
                 d->p2pApi.func, d->p2pApi.count, d->p2pApi.datatype, d->p2pApi.graphCaptured, tag);
    }
}
#else
static void describe_api(const JSON_DESCR *d, char *text, size_t bytes)
{
    (void)d, (void)text, (void)bytes;
}
#endif

static void describe_kernel(const JSON_DESCR *d, char *text, size_t bytes)
{
#if JSON_VERSION > 3
    snprintf(text, bytes, ",\"channel\":%d,\"timer\":%lu", d->kernelCh.channelId,
             (unsigned long)d->kernelCh.pTimer);
#elif JSON_VERSION == 3
    snprintf(text, bytes, ",\"channel\":%d", d->kernelCh.channelId);
#else
    (void)d, (void)text, (void)bytes;
    abort(); /* unknown to this version */
#endif
}

static void describe(const JSON_DESCR *d, char *text, size_t bytes)
{
    *text = '\0';
    switch (d->type) {
    case ncclProfileColl: describe_coll(d, text, bytes); break;
    case ncclProfileP2p: describe_p2p(d, text, bytes); break;
    case ncclProfileProxyOp:
        snprintf(text, bytes,
                 ",\"pid_of_op\":%d,\"channel\":%d,\"peer\":%d,\"steps\":%d,\"send\":%d",
                 (int)d->proxyOp.pid, d->proxyOp.channelId, d->proxyOp.peer, d->proxyOp.nSteps,
                 d->proxyOp.isSend);
        break;
    case ncclProfileProxyStep: snprintf(text, bytes, ",\"step\":%d", d->proxyStep.step); break;
    case ncclProfileKernelCh: describe_kernel(d, text, bytes); break;
    case ncclProfileGroup:
    case ncclProfileProxyCtrl: break;
    case ncclProfileNetPlugin:
        if (JSON_VERSION < 3) abort();
        break;
    default:
        if (JSON_VERSION < 5) abort();
        describe_api(d, text, bytes);
        break;
    }
}

static ncclResult_t json_start(void *opaque, void **handle, JSON_DESCR *descr)
{
    const struct context *context = opaque;
    char line[768];
    char more[512];
    if (*handle) abort(); /* the host clears it */
    if (descr->type == ncclProfileProxyOp && descr->proxyOp.pid != getpid())
        return ncclSuccess; /* context and parent are of that process */
    struct event *event = event_create(descr->type);
    describe(descr, more, sizeof(more));
    snprintf(line, sizeof(line),
             "{\"call\":\"start\",\"pid\":%d,\"rank\":%d,\"event\":%lu,\"type\":%lu,"
             "\"parent\":%lu,\"context\":%lu%s}\n",
             (int)getpid(), context ? context->rank : -1, event->number, (unsigned long)descr->type,
             number_of(descr->parentObj), context ? context->number : 0, more);
    note(line);
    *handle = event;
    return ncclSuccess;
}

static ncclResult_t json_stop(void *handle)
{
    char line[128];
    struct event *event = handle;
    if (!event || event->magic != EVENT_MAGIC || event->stops++) abort();
    snprintf(line, sizeof(line), "{\"call\":\"stop\",\"pid\":%d,\"event\":%lu,\"type\":%lu}\n",
             (int)getpid(), event->number, (unsigned long)event->type);
    note(line);
    return ncclSuccess;
}

static size_t state_value(const JSON_ARGS *args)
{
#if JSON_VERSION > 3
    return args->proxyStep.transSize;
#else
    return args->proxyOp.transSize;
#endif
}

static ncclResult_t json_state(void *handle, JSON_STATE state, JSON_ARGS *args)
{
    char line[160];
    if (!handle || !args) abort();
    snprintf(line, sizeof(line),
             "{\"call\":\"state\",\"pid\":%d,\"event\":%lu,\"state\":%d,\"value\":%zu}\n",
             (int)getpid(), number_of(handle), (int)state, state_value(args));
    note(line);
    return ncclSuccess;
}

static ncclResult_t json_finalize(void *opaque)
{
    char line[128];
    const struct context *context = opaque;
    snprintf(line, sizeof(line), "{\"call\":\"finalize\",\"pid\":%d,\"rank\":%d}\n", (int)getpid(),
             context->rank);
    note(line);
    free(opaque);
    pthread_mutex_lock(&lock);
    for (contexts--; contexts == 0 && all;) {
        struct event *event = all;
        all = event->next;
        free(event);
    }
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

__attribute__((visibility("default"))) const JSON_TYPE JSON_TABLE = {
    .name = "TestProfiler",
#if JSON_VERSION < 5
    .init = json_init,
#else
    .init = json_init_named,
#endif
    .startEvent = json_start,
    .stopEvent = json_stop,
    .recordEventState = json_state,
    .finalize = json_finalize,
};
