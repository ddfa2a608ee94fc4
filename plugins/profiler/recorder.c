/* From a call of the host to a record in the ring of its thread: no lock, no allocation but for the
 * first event of a thread, no system call. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(void *) == sizeof(uint64_t), "handles are numbers of 64 bits");

struct trace_process trace_process = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .word_lock = PTHREAD_MUTEX_INITIALIZER,
    .fd = -1,
};
static _Thread_local struct trace_ring *own_ring;

uint64_t trace_clock_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void trace_clean(char *to, size_t bytes, const char *from)
{
    size_t i = 0;
    for (; from && from[i] && i + 1 < bytes; i++) {
        bool plain = from[i] >= ' ' && from[i] <= '~' && from[i] != '"' && from[i] != '\\';
        to[i] = from[i];
        if (!plain) to[i] = '_';
    }
    to[i] = '\0';
}

static uint32_t find_word(const char *clean, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && strcmp(trace_process.words[i], clean) != 0)
        i++;
    return i;
}

uint8_t trace_word(const char *word)
{
    struct trace_process *all = &trace_process;
    char clean[TRACE_WORD_BYTES];
    if (!word) return 0;
    trace_clean(clean, sizeof(clean), word);
    /* pairs with the release store below: a word that is counted is whole */
    uint32_t count = atomic_load_explicit(&all->word_count, memory_order_acquire);
    uint32_t at = find_word(clean, count);
    if (at < count) return (uint8_t)(at + 1);
    pthread_mutex_lock(&all->word_lock);
    count = atomic_load_explicit(&all->word_count, memory_order_relaxed);
    at = find_word(clean, count);
    if (at == count && count < 255) {
        memcpy(all->words[count], clean, sizeof(clean));
        atomic_store_explicit(&all->word_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&all->word_lock);
    return at < 255 ? (uint8_t)(at + 1) : 0;
}

/* ---- rings ---- */

static struct trace_ring *ring_at(int i)
{
    struct trace_process *all = &trace_process;
    struct trace_ring *none = NULL;
    struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
    if (ring) return ring;
    size_t bytes = sizeof(*ring) + all->ring_records * sizeof(ring->records[0]);
    ring = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!ring) return NULL;
    memset(ring, 0, sizeof(*ring)); /* not the records: memory that is not used is not taken */
    ring->next_id = ((uint64_t)i + 1) << 40;
    if (atomic_compare_exchange_strong(&all->rings[i], &none, ring)) return ring;
    free(ring);
    return none;
}

static struct trace_ring *take_ring(void)
{
    for (int i = 0; i < TRACE_RINGS; i++) {
        int is_free = TRACE_RING_FREE;
        struct trace_ring *ring = ring_at(i);
        if (!ring) return NULL;
        if (!atomic_compare_exchange_strong(&ring->state, &is_free, TRACE_RING_USED)) continue;
        ring->tid = (int)syscall(SYS_gettid);
        if (pthread_getname_np(pthread_self(), ring->name, sizeof(ring->name)))
            ring->name[0] = '\0';
        trace_clean(ring->name, sizeof(ring->name), ring->name);
        ring->told = false;
        pthread_setspecific(trace_process.thread_key, ring); /* so that its end is noticed */
        return own_ring = ring;
    }
    return NULL;
}

static bool push(const struct trace_record *record)
{
    struct trace_process *all = &trace_process;
    struct trace_ring *ring = own_ring ? own_ring : take_ring();
    if (!ring) {
        atomic_fetch_add_explicit(&all->lost[record->kind], 1, memory_order_relaxed);
        return false;
    }
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    /* pairs with the release store of the writer: the place was read */
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head - tail >= all->ring_records) {
        atomic_fetch_add_explicit(&ring->lost[record->kind], 1, memory_order_relaxed);
        return false;
    }
    ring->records[head & (all->ring_records - 1)] = *record;
    atomic_store_explicit(&ring->head, head + 1, memory_order_release); /* pairs with the writer */
    /* Without its lock: a wake-up that is missed is made up for by the writer's next turn. */
    if (head - tail == all->ring_records / 2) pthread_cond_signal(&all->wake);
    return true;
}

void trace_leave_ring(void)
{
    own_ring = NULL;
}

void trace_forget_rings(void)
{
    own_ring = NULL;
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring = atomic_load(&trace_process.rings[i]);
        if (!ring) continue;
        atomic_store(&ring->tail, atomic_load(&ring->head));
        for (int kind = 0; kind < TRACE_KIND_COUNT_; kind++)
            atomic_store(&ring->lost[kind], 0);
        atomic_store(&ring->state, TRACE_RING_FREE);
    }
    for (int kind = 0; kind < TRACE_KIND_COUNT_; kind++)
        atomic_store(&trace_process.lost[kind], 0);
    pthread_setspecific(trace_process.thread_key, NULL);
}

/* ---- records ---- */

static uint64_t number_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

static void describe_call(struct trace_record *r, const ncclProfilerEventDescr_v7_t *d)
{
    if (r->type == ncclProfileCollApi) {
        r->func = trace_word(d->collApi.func);
        r->datatype = trace_word(d->collApi.datatype);
        r->count = d->collApi.count;
        r->peer = d->collApi.root;
        r->flag = d->collApi.graphCaptured;
        r->tag = d->collApi.userTag;
    } else if (r->type == ncclProfileP2pApi) {
        r->func = trace_word(d->p2pApi.func);
        r->datatype = trace_word(d->p2pApi.datatype);
        r->count = d->p2pApi.count;
        r->flag = d->p2pApi.graphCaptured;
        r->tag = d->p2pApi.userTag;
    } else if (r->type == ncclProfileColl) {
        r->func = trace_word(d->coll.func);
        r->datatype = trace_word(d->coll.datatype);
        r->algo = trace_word(d->coll.algo);
        r->proto = trace_word(d->coll.proto);
        r->seq = d->coll.seqNumber;
        r->count = d->coll.count;
        r->peer = d->coll.root;
        r->channel = d->coll.nChannels;
        r->warps = d->coll.nWarps;
        r->group = number_of(d->coll.parentGroup);
        r->tag = d->coll.userTag;
    } else {
        r->func = trace_word(d->p2p.func);
        r->datatype = trace_word(d->p2p.datatype);
        r->count = d->p2p.count;
        r->peer = d->p2p.peer;
        r->channel = d->p2p.nChannels;
        r->group = number_of(d->p2p.parentGroup);
        r->tag = d->p2p.userTag;
    }
}

static void describe_copy(struct trace_record *r, const ncclProfilerEventDescr_v7_t *d)
{
    if (r->type == ncclProfileCeColl) {
        r->func = trace_word(d->ceColl.func);
        r->datatype = trace_word(d->ceColl.datatype);
        r->algo = trace_word(d->ceColl.syncStrategy);
        r->seq = d->ceColl.seqNumber;
        r->count = d->ceColl.count;
        r->peer = d->ceColl.root;
        r->steps = (int32_t)d->ceColl.numBatches;
        r->flag = d->ceColl.intraBatchSync;
        r->tag = d->ceColl.userTag;
    } else if (r->type == ncclProfileCeSync) {
        r->flag = d->ceCollSync.isComplete;
        r->steps = d->ceCollSync.nRanks;
    } else {
        r->steps = d->ceCollBatch.numOps;
        r->count = d->ceCollBatch.totalBytes;
        r->flag = d->ceCollBatch.useIntraSync;
    }
}

static void describe(struct trace_record *r, const ncclProfilerEventDescr_v7_t *d)
{
    switch (r->type) {
    case ncclProfileGroupApi:
        r->flag = d->groupApi.graphCaptured;
        r->steps = d->groupApi.groupDepth;
        break;
    case ncclProfileCollApi:
    case ncclProfileP2pApi:
    case ncclProfileColl:
    case ncclProfileP2p: describe_call(r, d); break;
    case ncclProfileProxyOp:
        r->pid = d->proxyOp.pid;
        r->channel = d->proxyOp.channelId;
        r->peer = d->proxyOp.peer;
        r->steps = d->proxyOp.nSteps;
        r->chunk_bytes = d->proxyOp.chunkSize;
        r->flag = d->proxyOp.isSend;
        break;
    case ncclProfileProxyStep: r->steps = d->proxyStep.step; break;
    case ncclProfileKernelCh:
        r->channel = d->kernelCh.channelId;
        r->seq = d->kernelCh.pTimer;
        break;
    case ncclProfileKernelPhase:
        r->channel = d->kernelPhase.channelId;
        r->func = trace_word(d->kernelPhase.phaseName);
        r->seq = d->kernelPhase.pTimer;
        break;
    case ncclProfileNetPlugin: r->seq = (uint64_t)d->netPlugin.id; break;
    case ncclProfileCeColl:
    case ncclProfileCeSync:
    case ncclProfileCeBatch: describe_copy(r, d); break;
    default: break; /* Group, KernelLaunch, ProxyCtrl, and what comes after version 7: times only */
    }
}

void trace_start(void *context, void **handle, const ncclProfilerEventDescr_v7_t *descr,
                 uint64_t comm)
{
    *handle = NULL;
    if (!atomic_load_explicit(&trace_process.on, memory_order_acquire)) return;
    struct trace_record record = {
        .kind = TRACE_START,
        .context = number_of(context),
        .parent = number_of(descr->parentObj),
        .comm = comm,
        .type = (uint32_t)descr->type,
        .peer = -1,
    };
    struct trace_ring *ring = own_ring ? own_ring : take_ring();
    describe(&record, descr);
    record.id = ring ? ring->next_id + 1 : 0;
    record.ts_nsec = trace_clock_nsec();
    if (!push(&record) || !ring) return;
    ring->next_id++;
    *handle = (void *)(uintptr_t)record.id; /* NOLINT(performance-no-int-to-ptr): no address */
}

void trace_state(void *handle, int state, uint64_t value)
{
    if (!handle || !atomic_load_explicit(&trace_process.on, memory_order_acquire)) return;
    push(&(struct trace_record){.kind = TRACE_STATE,
                                .id = number_of(handle),
                                .type = (uint32_t)state,
                                .count = value,
                                .ts_nsec = trace_clock_nsec()});
}

void trace_stop(void *handle)
{
    if (!handle || !atomic_load_explicit(&trace_process.on, memory_order_acquire)) return;
    push(&(struct trace_record){
        .kind = TRACE_STOP, .id = number_of(handle), .ts_nsec = trace_clock_nsec()});
}
