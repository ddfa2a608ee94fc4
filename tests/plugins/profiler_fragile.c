/* A profiler with a mistake, as plugins of the field have them. PROFILER_MISTAKE: "channel" (dies
 * of channel 32), "hang" (the end of a step never comes back), "decline" (no context), "open" (dies
 * in finalize of a communicator with open events), "name" (takes every communicator to have one),
 * "foreign" (looks at the parent of another process's operation), "kept" (looks at a descriptor
 * after its call), "freed" (looks at a parent that it freed at its stop), "counts" (writes to such
 * a parent), "fork" (waits at the exit of a child for a thread that only its parent has), "unknown"
 * (dies of a type after version 5), "context" (looks at another process's context), "grows" (keeps
 * something of each collective), "leaves" (keeps something of each communicator), "thread" (its
 * thread goes on after finalize), "races" (of inits at once all but the first get no context),
 * "start-fails", "stop-fails", "state-fails", "end-fails" (that call returns an error, and no
 * result), "late" (stores the handle of a Group once more when it has ended). No mistake: "roomy"
 * (large pools that are not used; those of the 8th communicator and later ones must not have been
 * written to). */
#include "nccl/profiler_v7.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t types[16]; /* handles: one per type of event */
static int open_events;

static bool mistake(const char *name)
{
    const char *text = getenv("PROFILER_MISTAKE");
    return text && !strcmp(text, name);
}

static pid_t loaded_by;

/* Memory that will not be seen again. */
static void keep(size_t bytes)
{
    static char *volatile lost;
    lost = malloc(bytes);
    if (lost) memset(lost, 1, bytes);
}

static void *sleep_on(void *arg)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int k = 0; k < 8; k++)
        nanosleep(&pause, NULL);
    return arg;
}

static void leave_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_on, NULL) == 0) pthread_detach(thread);
}

/* A pool that is never written to; from the 8th on it must not be there. */
static void make_room(void)
{
    enum { POOL_BYTES = 32 << 20, PAGE_BYTES = 4096 };
    static int pools;
    char *pool = calloc(1, POOL_BYTES);
    unsigned char there = 0;
    uintptr_t middle = (uintptr_t)pool + POOL_BYTES / 2;
    if (!pool || ++pools < 8) return;
    mincore((void *)(middle - middle % PAGE_BYTES), PAGE_BYTES, &there);
    if (there & 1) abort();
}

/* A lock that is tried once, as a plugin does that wants one of all threads to set something up. */
static bool alone(void)
{
    static int inside;
    const struct timespec pause = {.tv_nsec = 3000000};
    if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST) > 0) return false;
    nanosleep(&pause, NULL);
    __atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
    return true;
}

static ncclResult_t fragile_init(void **context, uint64_t comm, int *mask, const char *name,
                                 int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    (void)comm, (void)nnodes, (void)nranks, (void)rank, (void)log;
    if (mistake("decline")) return ncclSuccess;
    __atomic_store_n(mask, ncclProfileProxyStep | ncclProfileKernelCh, __ATOMIC_RELAXED);
    *context = mistake("races") && !alone() ? NULL : &open_events;
    loaded_by = getpid();
    if (mistake("leaves")) keep(32768);
    if (mistake("roomy")) make_room();
    if (mistake("name") && strlen(name) > 1000) *context = NULL;
    return ncclSuccess;
}

/* ---- the mistakes with memory ---- */

struct node { /* "freed", "counts": an event of its own */
    uint64_t type;
    struct node *self;
    int children;
};
static const ncclProfilerEventDescr_v7_t *kept;
static __thread void **late; /* where the handle of a Group was stored */

static void look(const void *memory)
{
    volatile const char *byte = memory;
    (void)*byte;
}

static void touch(const void *context, const ncclProfilerEventDescr_v7_t *descr)
{
    struct node *parent = descr->parentObj;
    if (mistake("foreign") && descr->type == ncclProfileProxyOp && parent) look(parent);
    if (mistake("context")) look(context);
    if (mistake("freed") && descr->type == ncclProfileColl && parent) look(parent->self);
    if (mistake("counts") && descr->type == ncclProfileKernelCh && parent) parent->children++;
    if (mistake("unknown") && descr->type > ncclProfileKernelLaunch) abort();
    if (mistake("kept") && descr->type == ncclProfileColl) kept = descr;
}

static ncclResult_t fragile_start(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    uint64_t *event = &types[__builtin_ctzll(descr->type)];
    if (descr->type == ncclProfileKernelCh && descr->kernelCh.channelId >= 32 && mistake("channel"))
        raise(SIGSEGV);
    touch(context, descr);
    if (mistake("grows") && descr->type == ncclProfileColl) keep(200);
    __atomic_store_n(event, descr->type, __ATOMIC_RELAXED);
    __atomic_fetch_add(&open_events, 1, __ATOMIC_RELAXED);
    *handle = event;
    if (descr->type == ncclProfileGroup) late = handle;
    if (mistake("start-fails") && descr->type == ncclProfileColl) return ncclSystemError;
    if (!mistake("freed") && !mistake("counts")) return ncclSuccess;
    struct node *own = calloc(1, sizeof(*own));
    if (own) *own = (struct node){.type = descr->type, .self = own};
    *handle = own;
    return ncclSuccess;
}

static ncclResult_t fragile_stop(void *handle)
{
    const uint64_t *event = handle;
    uint64_t type = __atomic_load_n(event, __ATOMIC_RELAXED);
    if (type == ncclProfileProxyStep && mistake("hang")) pause();
    if (type == ncclProfileColl && mistake("kept")) look(kept->coll.func);
    if (type == ncclProfileGroup && mistake("late")) *late = NULL;
    if (mistake("freed") && type == ncclProfileCollApi) free(handle);
    if (mistake("counts")) free(handle);
    __atomic_fetch_sub(&open_events, 1, __ATOMIC_RELAXED);
    return mistake("stop-fails") && type == ncclProfileKernelCh ? ncclInvalidArgument : ncclSuccess;
}

__attribute__((destructor)) static void at_exit(void)
{
    if (mistake("fork") && loaded_by && loaded_by != getpid()) pause();
}

static ncclResult_t fragile_state(void *handle, ncclProfilerEventState_v7_t state,
                                  ncclProfilerEventStateArgs_v7_t *args)
{
    (void)handle, (void)args;
    return mistake("state-fails") && state == ncclProfilerKernelChStop ? (ncclResult_t)77
                                                                       : ncclSuccess;
}

static ncclResult_t fragile_finalize(void *context)
{
    (void)context;
    if (__atomic_load_n(&open_events, __ATOMIC_RELAXED) > 0 && mistake("open")) abort();
    if (mistake("thread")) leave_thread();
    return mistake("end-fails") ? ncclInternalError : ncclSuccess;
}

__attribute__((visibility("default"))) ncclProfiler_v7_t ncclProfiler_v7 = {
    .name = "Fragile",
    .init = fragile_init,
    .startEvent = fragile_start,
    .stopEvent = fragile_stop,
    .recordEventState = fragile_state,
    .finalize = fragile_finalize,
};

/* Functions that a table may lack. */
__attribute__((constructor)) static void leave_out(void)
{
    if (mistake("no-init")) ncclProfiler_v7.init = NULL;
    if (mistake("no-start")) ncclProfiler_v7.startEvent = NULL;
    if (mistake("no-stop")) ncclProfiler_v7.stopEvent = NULL;
    if (mistake("no-state")) ncclProfiler_v7.recordEventState = NULL;
    if (mistake("no-end")) ncclProfiler_v7.finalize = NULL;
}
