/* A stranger's profiler that trusts the host in all that the interface promises, compiled once for
 * each version: its state is in the context, it looks at parents, counts what must come, and ends
 * the process at the first call that no host may make. OUTSIDER_STYLE has words: "pool" (each
 * seventh event gets no handle, as from a pool that is empty), "deaf" (only channels and steps get
 * one), "masks" (a thread of its own changes the mask all the time). OUTSIDER_MASK is what it asks
 * for; OUTSIDER_LOG gets a line of counts. */
#include "nccl/profiler.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC 0x6f75747369646572ull
enum { FUNCTIONS = 8, TYPES = 16, OUTSTANDING = 8 };

struct context {
    uint64_t magic;
    int rank, nranks;
    int open;
    uint64_t next[FUNCTIONS];  /* behind the last sequence number, by function */
    uint64_t count[FUNCTIONS]; /* how many there were; runs of graphs may overtake each other */
    struct event *all;
    struct context *following;
};

struct event { /* lives as long as its context */
    uint64_t magic, type;
    struct context *context;
    struct event *next, *op; /* op: of a ProxyStep */
    pid_t thread;
    bool stopped, is_send;
    bool copies;        /* a message to its own rank: it runs at once */
    int state;          /* the last one, or -1 */
    int open;           /* steps of a ProxyOp that are */
    int children, most; /* those that count: steps of a ProxyOp, channels of an operation */
    int begun;          /* ProxyStep of a ProxyOp: the last number */
    uint64_t channels;  /* of KernelCh */
    const char *func;
    size_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;
static uint64_t asked, seen[TYPES], starts;
static int *mask_of_host;
static pthread_t changer;
static bool changing;

#define demand(good, ...) ((good) ? (void)0 : die(__LINE__, __VA_ARGS__))
static void __attribute__((format(printf, 2, 3), noreturn)) die(int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "outsider:%d: ", line);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static bool style(const char *word)
{
    const char *words = getenv("OUTSIDER_STYLE");
    return words && strstr(words, word);
}

static int log_of(uint64_t bit)
{
    return __builtin_ctzll(bit);
}

/* ---- which types may come ---- */

static const struct {
    uint64_t type, causes, parents;
} rows[] = {
    {ncclProfileGroup, 1 | 2 | 4 | 8 | 16 | 64 | 128 | 32768, 0},
    {ncclProfileColl, 2 | 8 | 16 | 64 | 128 | 32768, OUTSIDER_VERSION > 4 ? 512 : 1},
    {ncclProfileP2p, 4 | 8 | 16 | 64 | 128 | 32768, OUTSIDER_VERSION > 4 ? 1024 : 1},
    {ncclProfileProxyOp, 8 | 16 | 128, 2 | 4},
    {ncclProfileProxyStep, 16 | 128, 8},
    {ncclProfileProxyCtrl, 32, 0},
    {ncclProfileKernelCh, 64 | 32768, 2 | 4},
    {ncclProfileNetPlugin, 128, 16},
    {ncclProfileGroupApi, 0xffff - 32, 0},
    {ncclProfileCollApi, 512 | 2 | 8 | 16 | 64 | 128 | 32768, 256},
    {ncclProfileP2pApi, 1024 | 4 | 8 | 16 | 64 | 128 | 32768, 256},
    {ncclProfileKernelLaunch, 2048, 256},
    {ncclProfileKernelPhase, 32768, 64},
};

static void check_parent(const struct event *event, struct event *parent)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].type != event->type) continue;
        demand(rows[i].causes & asked, "type %d was not asked for", (int)event->type);
        bool may_miss = !rows[i].parents || style("pool") || style("deaf") || style("masks");
        demand(parent || may_miss, "type %d without a parent", (int)event->type);
        if (!parent) return;
        demand(parent->magic == MAGIC, "the parent of type %d is nobody", (int)event->type);
        demand(parent->type & rows[i].parents, "type %d below type %d", (int)event->type,
               (int)parent->type);
        demand(parent->context->magic == MAGIC, "a parent of a context that has ended");
        bool foreign = parent->context != event->context && parent->type != ncclProfileGroupApi;
        demand(!foreign, "type %d below another context's event", (int)event->type);
        return;
    }
    die(__LINE__, "type %d is none of this version", (int)event->type);
}

/* ---- what belongs to a type ---- */

static int function_of(const char *func)
{
    static const char *const names[FUNCTIONS] = {"AllReduce", "Broadcast", "Reduce", "AllGather",
                                                 "ReduceScatter"};
    for (int i = 0; i < FUNCTIONS && names[i]; i++) {
        if (!strcmp(func, names[i])) return i;
    }
    return -1;
}

static void look_operation(struct event *event, OUTSIDER_DESCR *d, const struct event *parent)
{
    struct context *context = event->context;
    bool coll = d->type == ncclProfileColl;
    event->func = coll ? d->coll.func : d->p2p.func;
    event->count = coll ? d->coll.count : d->p2p.count;
    event->most = 64;
#if OUTSIDER_VERSION > 3
    event->most = coll ? d->coll.nChannels : d->p2p.nChannels;
    demand(event->most >= coll && event->most <= 64, "%d channels", event->most);
#else
    demand(coll ? d->coll.nMaxChannels >= 1 : true, "no channels");
#endif
    if (!coll) {
        bool sends = !strcmp(event->func, "Send");
        demand(sends || !strcmp(event->func, "Recv"), "a message called %s", event->func);
        event->copies = d->p2p.peer == context->rank && asked & ncclProfileKernelCh &&
                        !style("pool") && !style("deaf") && !style("masks");
        demand(d->p2p.peer >= 0 && (context->nranks < 0 || d->p2p.peer < context->nranks), "peer");
    } else {
        int function = function_of(event->func);
        demand(*d->coll.algo && *d->coll.proto && *d->coll.datatype, "empty names");
        if (function >= 0) {
            uint64_t *next = &context->next[function], number = d->coll.seqNumber;
            demand(number + 64 > *next, "%s %d after %d", event->func, (int)number, (int)*next - 1);
            if (number >= *next) *next = number + 1;
            context->count[function]++;
        }
    }
    if (OUTSIDER_VERSION < 5 || !parent) return;
    demand(!strcmp(parent->func, event->func), "%s below %s", event->func, parent->func);
    demand(parent->count ? event->count % parent->count == 0 : !event->count, /* or its bytes */
           "%s of %zu for one of %zu", event->func, event->count, parent->count);
}

static void look_proxy(struct event *event, const OUTSIDER_DESCR *d)
{
    event->is_send = d->proxyOp.isSend != 0;
    event->most = d->proxyOp.nSteps;
    event->begun = -1;
    demand(d->proxyOp.pid == getpid(), "an operation of process %d", (int)d->proxyOp.pid);
    demand(d->proxyOp.channelId < 64 && d->proxyOp.peer >= 0, "channel or peer of a ProxyOp");
    demand(d->proxyOp.nSteps >= 0 && d->proxyOp.chunkSize >= 0, "size of a ProxyOp");
}

static void look_step(struct event *event, const OUTSIDER_DESCR *d, struct event *op)
{
    if (!op) return;
    event->is_send = op->is_send;
    demand(!op->stopped, "a step of an operation that has ended");
    demand(d->proxyStep.step > op->begun && d->proxyStep.step < op->most, "step %d after %d of %d",
           d->proxyStep.step, op->begun, op->most);
    op->begun = d->proxyStep.step;
    demand(op->open < OUTSTANDING, "%d steps at once", op->open);
}

#if OUTSIDER_VERSION > 2
static void look_kernel(const OUTSIDER_DESCR *d, struct event *parent)
{
    uint64_t bit = (uint64_t)1 << (d->kernelCh.channelId & 63);
    demand(d->kernelCh.channelId < 64, "channel %d", d->kernelCh.channelId);
#if OUTSIDER_VERSION > 3
    demand(d->kernelCh.pTimer != 0, "no time of a kernel");
#endif
    if (!parent) return;
    demand(!(parent->channels & bit), "channel %d twice", d->kernelCh.channelId);
    parent->channels |= bit;
    demand(++parent->children <= parent->most, "%d channels of %d", parent->children, parent->most);
}
#endif

static void look(struct event *event, OUTSIDER_DESCR *d, struct event *parent)
{
    switch (d->type) {
    case ncclProfileColl:
    case ncclProfileP2p: look_operation(event, d, parent); break;
    case ncclProfileProxyOp: look_proxy(event, d); break;
    case ncclProfileProxyStep: look_step(event, d, parent); break;
#if OUTSIDER_VERSION > 2
    case ncclProfileKernelCh: look_kernel(d, parent); break;
    case ncclProfileNetPlugin:
        demand(!parent || !parent->stopped, "below a step that is over");
        break;
#endif
#if OUTSIDER_VERSION > 4
    case ncclProfileGroupApi: demand(d->groupApi.groupDepth >= 1, "depth"); break;
    case ncclProfileCollApi:
        event->func = d->collApi.func;
        event->count = d->collApi.count;
        demand(!parent || !parent->stopped, "a call in a group that is over");
        break;
    case ncclProfileP2pApi:
        event->func = d->p2pApi.func;
        event->count = d->p2pApi.count;
        demand(!parent || !parent->stopped, "a call in a group that is over");
        break;
#endif
    default: break;
    }
}

/* ---- the interface ---- */

static void *change_masks(void *unused)
{
    static const int masks[] = {0,
                                ncclProfileColl,
                                4095,
                                ncclProfileProxyCtrl,
                                ncclProfileKernelCh,
                                ncclProfileProxyStep,
                                ncclProfileGroupApi};
    (void)unused;
    for (size_t k = 0; __atomic_load_n(&changing, __ATOMIC_RELAXED); k++) {
        __atomic_store_n(mask_of_host, masks[k % (sizeof(masks) / sizeof(masks[0]))],
                         __ATOMIC_RELAXED);
        usleep(50);
    }
    return NULL;
}

static ncclResult_t make_context(void **out, int *mask, int nranks, int rank)
{
    const char *wanted = getenv("OUTSIDER_MASK");
    struct context *context = calloc(1, sizeof(*context));
    demand(context, "memory");
    *context = (struct context){.magic = MAGIC, .rank = rank, .nranks = nranks};
    pthread_mutex_lock(&lock);
    bool first = !contexts;
    asked = wanted ? strtoull(wanted, NULL, 0) : 4095;
    if (style("masks")) asked |= 4095;
    if (!style("masks")) __atomic_store_n(mask, (int)asked, __ATOMIC_RELAXED);
    context->following = contexts;
    contexts = context;
    if (first) mask_of_host = mask; /* the thread reads it */
    if (first && style("masks")) {
        changing = true;
        demand(!pthread_create(&changer, NULL, change_masks, NULL), "thread");
    }
    pthread_mutex_unlock(&lock);
    *out = context;
    return ncclSuccess;
}

#if OUTSIDER_VERSION < 4
static ncclResult_t out_init(void **out, int *mask)
{
    return make_context(out, mask, -1, -1);
}
#elif OUTSIDER_VERSION == 4
static ncclResult_t out_init(void **out, int *mask, const char *name, uint64_t id, int nnodes,
                             int nranks, int rank, ncclDebugLogger_t log)
{
    (void)name, (void)nnodes;
    demand(id && rank >= 0 && rank < nranks && log, "arguments of init");
    return make_context(out, mask, nranks, rank);
}
#else
static ncclResult_t out_init(void **out, uint64_t id, int *mask, const char *name, int nnodes,
                             int nranks, int rank, ncclDebugLogger_t log)
{
    (void)name, (void)nnodes;
    demand(id && rank >= 0 && rank < nranks && log, "arguments of init");
    return make_context(out, mask, nranks, rank);
}
#endif

static ncclResult_t out_start(void *opaque, void **handle, OUTSIDER_DESCR *d)
{
    struct context *context = opaque;
    struct event *event = calloc(1, sizeof(*event)), *parent = d->parentObj;
    demand(event && context && context->magic == MAGIC, "no context of ours");
    demand(!*handle, "the handle is not cleared");
    demand(__builtin_popcountll(d->type) == 1, "no type: %d", (int)d->type);
    *event = (struct event){.magic = MAGIC,
                            .type = d->type,
                            .context = context,
                            .state = -1,
                            .thread = (pid_t)syscall(SYS_gettid),
                            .func = ""};
    pthread_mutex_lock(&lock);
    check_parent(event, parent);
    demand(context->rank < 0 || d->rank == context->rank, "rank %d is %d", context->rank, d->rank);
    look(event, d, parent);
    seen[log_of(d->type)]++;
    bool none = style("pool") && ++starts % 7 == 0;
    none |= style("deaf") && !(d->type & (ncclProfileKernelCh | ncclProfileProxyStep));
    if (!none) {
        if (d->type == ncclProfileProxyStep && parent) {
            event->op = parent;
            parent->open++;
        }
        context->open++;
        event->next = context->all;
        context->all = event;
        *handle = event;
    }
    pthread_mutex_unlock(&lock);
    if (none) free(event);
    return ncclSuccess;
}

static const uint64_t of_one_thread = ncclProfileGroup | ncclProfileColl | ncclProfileP2p |
                                      ncclProfileCollApi | ncclProfileP2pApi |
                                      ncclProfileKernelLaunch;

static ncclResult_t out_stop(void *handle)
{
    struct event *event = handle;
    demand(event && event->magic == MAGIC, "a stop of nobody");
    pthread_mutex_lock(&lock);
    demand(event->context->magic == MAGIC, "a stop after finalize");
    demand(!event->stopped, "type %d stops twice", (int)event->type);
    bool own = event->thread == (pid_t)syscall(SYS_gettid);
    demand(own || !(event->type & of_one_thread), "type %d stops elsewhere", (int)event->type);
    if (OUTSIDER_VERSION > 4 && event->type == ncclProfileGroupApi)
        demand(event->state >= ncclProfilerGroupStartApiStop, "a group that did not begin");
    if (OUTSIDER_VERSION > 3 && event->type == ncclProfileKernelCh)
        demand(event->state == ncclProfilerKernelChStop, "a channel without its end");
    demand(!event->open, "an operation ends before %d of its steps", event->open);
    if (event->op) event->op->open--;
    event->stopped = true;
    event->context->open--;
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

/* May `next` follow `last` (-1: none) in an event of that type? */
static bool may_follow(const struct event *event, int next)
{
    int last = event->state;
    switch (event->type) {
    case ncclProfileGroupApi: return next == (last < 0 ? 23 : 24) && last != 24;
    case ncclProfileProxyOp: return next == 19 && last < 0;
    case ncclProfileProxyCtrl:
        if (last < 0) return next == 13 || next == 14 || next == 15 || next == 17;
        return (last == 15 && next == 16) || (last == 17 && next == 18);
    case ncclProfileKernelCh: return next == 22 && last < 0;
    case ncclProfileNetPlugin: return next == 21;
    case ncclProfileKernelPhase: return next == 31 && last < 0;
    case ncclProfileProxyStep:
        if (last < 0) return next == 8 || next == 10;
        if (last == 8 || last == 20) return next == 9 || (next == 20 && OUTSIDER_VERSION > 3);
        return (last == 10 && next == 11) || (last == 11 && next == 12);
    default: return false;
    }
}

static ncclResult_t out_state(void *handle, OUTSIDER_STATE state, OUTSIDER_ARGS *args)
{
    struct event *event = handle;
    demand(event && event->magic == MAGIC && args, "a state of nobody");
    pthread_mutex_lock(&lock);
    demand(event->context->magic == MAGIC, "a state after finalize");
    demand(!event->stopped, "state %d after the stop", (int)state);
    demand(may_follow(event, (int)state), "state %d after %d in type %d", (int)state, event->state,
           (int)event->type);
    event->state = (int)state;
    pthread_mutex_unlock(&lock);
    return ncclSuccess;
}

static void write_counts(void)
{
    const char *path = getenv("OUTSIDER_LOG");
    char line[512];
    int used = snprintf(line, sizeof(line), "counts");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    for (int type = 0; type < TYPES; type++)
        used += snprintf(line + used, sizeof(line) - (size_t)used, " %d", (int)seen[type]);
    line[used++] = '\n';
    demand(write(fd, line, (size_t)used) == used, "log");
    close(fd);
}

static ncclResult_t out_finalize(void *opaque)
{
    struct context *context = opaque, **link = &contexts;
    demand(context && context->magic == MAGIC, "finalize of no context");
    pthread_mutex_lock(&lock);
    for (const struct event *event = context->all; event; event = event->next) {
        demand(event->stopped, "type %d of rank %d is open at the end, in state %d",
               (int)event->type, context->rank, event->state);
        demand(!event->copies || event->children == event->most, "%d channels of %d",
               event->children, event->most);
    }
    for (int k = 0; k < FUNCTIONS && !style("masks"); k++) {
        demand(context->count[k] == context->next[k], "function %d: %d numbers up to %d", k,
               (int)context->count[k], (int)context->next[k]);
    }
    while (*link && *link != context)
        link = &(*link)->following;
    demand(*link, "finalize of an unknown context");
    *link = context->following;
    context->magic = 0;
    bool last = !contexts;
    if (last) write_counts();
    bool joins = last && __atomic_exchange_n(&changing, false, __ATOMIC_RELAXED);
    while (context->all) {
        struct event *event = context->all;
        context->all = event->next;
        event->magic = 0;
        free(event);
    }
    pthread_mutex_unlock(&lock);
    if (joins) pthread_join(changer, NULL);
    free(context);
    return ncclSuccess;
}

__attribute__((visibility("default"))) const OUTSIDER_TYPE OUTSIDER_TABLE = {
    .name = "outsider",
    .init = out_init,
    .startEvent = out_start,
    .stopEvent = out_stop,
    .recordEventState = out_state,
    .finalize = out_finalize,
};
