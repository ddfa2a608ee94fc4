/* A profiler plugin for tests: one JSON line per call into the file PROFILER_LOG (shared by all
 * communicators of all processes). PROFILER_MASK: the events asked for (default: all of v5).
 * PROFILER_FAIL=init: init fails; =null: it succeeds and gives no context. It counts what a host
 * must not do: stops of unknown handles end the process. */
#include "nccl/profiler.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENT_MAGIC 0x6576656e74ull

struct context {
    int rank;
    uint64_t comm_id;
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

static ncclResult_t json_init(void **context_out, uint64_t comm_id, int *mask,
                              const char *comm_name, int nnodes, int nranks, int rank,
                              ncclDebugLogger_t log)
{
    const char *fail = getenv("PROFILER_FAIL");
    const char *wanted = getenv("PROFILER_MASK");
    char line[256];
    if (fail && !strcmp(fail, "init")) return ncclInternalError;
    if (fail && !strcmp(fail, "null")) return ncclSuccess;
    struct context *context = calloc(1, sizeof(*context));
    if (!context) return ncclSystemError;
    context->rank = rank;
    context->comm_id = comm_id;
    __atomic_store_n(mask, wanted ? (int)strtol(wanted, NULL, 0) : 4095, __ATOMIC_RELAXED);
    snprintf(line, sizeof(line),
             "{\"call\":\"init\",\"pid\":%d,\"comm\":\"%lx\",\"name\":\"%s\",\"nodes\":%d,"
             "\"ranks\":%d,\"rank\":%d}\n",
             (int)getpid(), (unsigned long)comm_id, comm_name ? comm_name : "", nnodes, nranks,
             rank);
    note(line);
    pthread_mutex_lock(&lock);
    contexts++;
    pthread_mutex_unlock(&lock);
    log(NCCL_LOG_INFO, NCCL_INIT, __FILE__, __LINE__, "TestProfiler: rank %d", rank);
    *context_out = context;
    return ncclSuccess;
}

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

/* The part of the union, as further JSON members. */
static void describe(const ncclProfilerEventDescr_v6_t *d, char *text, size_t bytes)
{
    *text = '\0';
    switch (d->type) {
    case ncclProfileGroupApi:
        snprintf(text, bytes, ",\"depth\":%d,\"captured\":%d", d->groupApi.groupDepth,
                 d->groupApi.graphCaptured);
        break;
    case ncclProfileCollApi:
        snprintf(text, bytes, ",\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"root\":%d",
                 d->collApi.func, d->collApi.count, d->collApi.datatype, d->collApi.root);
        break;
    case ncclProfileP2pApi:
        snprintf(text, bytes, ",\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\"", d->p2pApi.func,
                 d->p2pApi.count, d->p2pApi.datatype);
        break;
    case ncclProfileColl:
        snprintf(text, bytes,
                 ",\"seq\":%lu,\"func\":\"%s\",\"count\":%zu,\"datatype\":\"%s\",\"channels\":%d,"
                 "\"algo\":\"%s\",\"proto\":\"%s\",\"group\":%lu",
                 (unsigned long)d->coll.seqNumber, d->coll.func, d->coll.count, d->coll.datatype,
                 d->coll.nChannels, d->coll.algo, d->coll.proto, number_of(d->coll.parentGroup));
        break;
    case ncclProfileP2p:
        snprintf(text, bytes, ",\"func\":\"%s\",\"count\":%zu,\"peer\":%d,\"group\":%lu",
                 d->p2p.func, d->p2p.count, d->p2p.peer, number_of(d->p2p.parentGroup));
        break;
    case ncclProfileProxyOp:
        snprintf(text, bytes,
                 ",\"pid_of_op\":%d,\"channel\":%d,\"peer\":%d,\"steps\":%d,\"send\":%d",
                 (int)d->proxyOp.pid, d->proxyOp.channelId, d->proxyOp.peer, d->proxyOp.nSteps,
                 d->proxyOp.isSend);
        break;
    case ncclProfileProxyStep: snprintf(text, bytes, ",\"step\":%d", d->proxyStep.step); break;
    case ncclProfileKernelCh:
        snprintf(text, bytes, ",\"channel\":%d,\"timer\":%lu", d->kernelCh.channelId,
                 (unsigned long)d->kernelCh.pTimer);
        break;
    default: break;
    }
}

static ncclResult_t json_start(void *opaque, void **handle, ncclProfilerEventDescr_v6_t *descr)
{
    const struct context *context = opaque;
    char line[512];
    char more[320];
    struct event *event = event_create(descr->type);
    describe(descr, more, sizeof(more));
    snprintf(
        line, sizeof(line),
        "{\"call\":\"start\",\"pid\":%d,\"rank\":%d,\"event\":%lu,\"type\":%lu,\"parent\":%lu%s}\n",
        (int)getpid(), context->rank, event->number, (unsigned long)descr->type,
        number_of(descr->parentObj), more);
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

static ncclResult_t json_state(void *handle, ncclProfilerEventState_v6_t state,
                               ncclProfilerEventStateArgs_v6_t *args)
{
    char line[160];
    if (!handle || !args) abort();
    snprintf(line, sizeof(line),
             "{\"call\":\"state\",\"pid\":%d,\"event\":%lu,\"state\":%d,\"value\":%zu}\n",
             (int)getpid(), number_of(handle), (int)state, args->proxyStep.transSize);
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

__attribute__((visibility("default"))) const ncclProfiler_v6_t ncclProfiler_v6 = {
    .name = "TestProfiler",
    .init = json_init,
    .startEvent = json_start,
    .stopEvent = json_stop,
    .recordEventState = json_state,
    .finalize = json_finalize,
};
