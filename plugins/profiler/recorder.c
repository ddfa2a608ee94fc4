/* From a call of the host to a record in the ring of its thread: no lock, no allocation but for the
 * first event of a thread, no system call. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(void *) == sizeof(uint64_t), "handles are numbers of 64 bits");
enum { AHEAD_WORDS = 128 }; /* some forty records */

struct trace_process trace_process = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .word_lock = PTHREAD_MUTEX_INITIALIZER,
    .sample = 1,
    .fd = -1,
};
/* Read with each call: a place that the loader knows, not one that it must ask for. */
static _Thread_local struct trace_ring *own_ring __attribute__((tls_model("initial-exec")));

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

static uint8_t new_word(const char *word)
{
    struct trace_process *all = &trace_process;
    char clean[TRACE_WORD_BYTES];
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

/* Texts are constants of the host as a rule: where one was seen it is looked at first. */
/* Keep a short word; what comes back is its number, which is the same each time. 0: no word. */
static uint8_t word_number(const char *word)
{
    struct trace_process *all = &trace_process;
    uint64_t where = (uint64_t)(uintptr_t)word;
    if (!word) return 0;
    _Atomic uint64_t *known = &all->known_words[(where ^ where >> 8) % TRACE_WORD_SLOTS];
    uint64_t seen = atomic_load_explicit(known, memory_order_acquire); /* pairs with the store */
    uint8_t number = (uint8_t)seen;
    if (number && seen >> 8 == (where & ~(uint64_t)0 >> 8) && !strcmp(all->words[number - 1], word))
        return number;
    number = new_word(word);
    atomic_store_explicit(known, where << 8 | number, memory_order_release);
    return number;
}

/* ---- rings ---- */

static struct trace_ring *ring_at(int i)
{
    struct trace_process *all = &trace_process;
    struct trace_ring *none = NULL;
    struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
    if (ring) return ring;
    size_t bytes = sizeof(*ring) + all->ring_words * sizeof(ring->words[0]);
    ring = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!ring) return NULL;
    memset(ring, 0, sizeof(*ring)); /* not the records: memory that is not used is not taken */
    ring->next_id = ring->reported_id = ((uint64_t)i + 1) << 40;
    if (atomic_compare_exchange_strong(&all->rings[i], &none, ring)) {
        pthread_cond_signal(&all->wake); /* so that the writer brings its memory */
        return ring;
    }
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
        ring->reported = false;
        pthread_setspecific(trace_process.thread_key, ring); /* so that its end is noticed */
        return own_ring = ring;
    }
    return NULL;
}

static uint64_t time_word(uint64_t kind)
{
    const struct trace_process *all = &trace_process;
    uint64_t ticks = all->ticks_are_nsec ? trace_clock_nsec() : trace_ticks();
    return (ticks - all->first_ticks) << TRACE_TIME_SHIFT | kind;
}

__attribute__((noinline, cold)) static bool count_lost(struct trace_ring *ring,
                                                       enum trace_kind kind)
{
    atomic_fetch_add_explicit(ring ? &ring->lost[kind] : &trace_process.lost[kind], 1,
                              memory_order_relaxed);
    return false;
}

/* Another eighth of the ring is full. The writer comes by itself as long as it keeps up: to wake it
 * costs a call of the system. Without its lock: a wake-up that is missed is made up for by its next
 * turn. */
__attribute__((noinline, cold)) static void pass_mark(struct trace_ring *ring, uint64_t head)
{
    struct trace_process *all = &trace_process;
    uint64_t most = all->ring_words / 8 * 3;
    atomic_store_explicit(&ring->marked, head, memory_order_relaxed);
    if (head - ring->seen_tail <= most) return;
    ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire); /* as push */
    if (head - ring->seen_tail > most) pthread_cond_signal(&all->wake);
}

/* The ring has `count` words more. */
static inline void publish(struct trace_ring *ring, uint64_t head, uint64_t count)
{
    struct trace_process *all = &trace_process;
    uint64_t next = head + count;
    atomic_store_explicit(&ring->head, next, memory_order_release); /* pairs with writer */
    /* The writer was the last to read that place: it is fetched before records come there. */
    __builtin_prefetch(&ring->words[(next + AHEAD_WORDS) & (all->ring_words - 1)], 1);
    if ((head ^ next) >= all->ring_words / 8) pass_mark(ring, next);
}

/* Where the longest record has room in one piece, so that it is written where it stays; NULL: such
 * a place is not known, and push() looks closer. */
static inline uint64_t *place_of(struct trace_ring *ring, uint64_t head)
{
    uint64_t room = trace_process.ring_words, at = head & (room - 1);
    bool is_free = head + TRACE_RECORD_WORDS - ring->seen_tail <= room;
    return is_free && at + TRACE_RECORD_WORDS <= room ? &ring->words[at] : NULL;
}

/* Put `count` words into the ring; the first gets the time. */
__attribute__((noinline)) static bool push(struct trace_ring *ring, uint64_t *words, uint64_t count)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t room = trace_process.ring_words, mask = room - 1;
    if (head + count - ring->seen_tail > room) {
        /* pairs with the release store of the writer: the place was read */
        ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head + count - ring->seen_tail > room)
            return count_lost(ring, (enum trace_kind)(words[0] & (TRACE_VALUED - 1)));
    }
    words[0] = time_word(words[0]);
    for (uint64_t i = 0; i < count; i++)
        ring->words[(head + i) & mask] = words[i];
    publish(ring, head, count);
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
        ring->done = atomic_load(&ring->head);
        ring->reported_id = ring->next_id;
        for (int kind = 0; kind < TRACE_KIND_COUNT_; kind++)
            atomic_store(&ring->lost[kind], 0);
        atomic_store(&ring->passed, 0);
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

/* A start while its fields are put behind each other, in the order of their bits. */
struct start {
    uint64_t *words; /* borrowed: in the ring, or of the caller */
    uint64_t used, fields;
    uint64_t tag;
    bool flag, tagged;
};

static void put(struct start *start, enum trace_field field, uint64_t word)
{
    start->words[start->used++] = word;
    start->fields |= (uint64_t)1 << field;
}

static uint64_t pair(int low, int high)
{
    return (uint32_t)low | (uint64_t)(uint32_t)high << 32;
}

static void put_root(struct start *start, int root, int batches)
{
    if (root || batches) put(start, TRACE_PEER, pair(root, batches));
}

static void put_channel(struct start *start, uint8_t channel)
{
    if (channel) put(start, TRACE_WORDS, (uint64_t)channel << 32);
}

/* NCCL has a name for each type but ncclUint8, which is "Unknown" there. */
static uint64_t texts(const char *func, const char *datatype)
{
    if (datatype && *datatype == 'U') datatype = "ncclUint8";
    return word_number(func) | (uint64_t)word_number(datatype) << 8;
}

static uint64_t channels(uint8_t channel, uint8_t warps)
{
    return (uint64_t)channel << 32 | (uint64_t)warps << 40;
}

static void describe_call(struct start *s, const ncclProfilerEventDescr_v7_t *d)
{
    if (d->type == ncclProfileCollApi) {
        put(s, TRACE_COUNT, d->collApi.count);
        put_root(s, d->collApi.root, 0);
        put(s, TRACE_WORDS, texts(d->collApi.func, d->collApi.datatype));
        s->flag = d->collApi.graphCaptured;
        if (s->tagged) s->tag = d->collApi.userTag;
    } else if (d->type == ncclProfileP2pApi) {
        put(s, TRACE_COUNT, d->p2pApi.count);
        put(s, TRACE_WORDS, texts(d->p2pApi.func, d->p2pApi.datatype));
        s->flag = d->p2pApi.graphCaptured;
        if (s->tagged) s->tag = d->p2pApi.userTag;
    } else if (d->type == ncclProfileColl) {
        put(s, TRACE_SEQ, d->coll.seqNumber);
        put(s, TRACE_COUNT, d->coll.count);
        put_root(s, d->coll.root, 0);
        put(s, TRACE_WORDS,
            texts(d->coll.func, d->coll.datatype) | (uint64_t)word_number(d->coll.algo) << 16 |
                (uint64_t)word_number(d->coll.proto) << 24 |
                channels(d->coll.nChannels, d->coll.nWarps));
        if (d->coll.parentGroup) put(s, TRACE_GROUP, number_of(d->coll.parentGroup));
        if (s->tagged) s->tag = d->coll.userTag;
    } else {
        put(s, TRACE_COUNT, d->p2p.count);
        put(s, TRACE_PEER, pair(d->p2p.peer, 0));
        put(s, TRACE_WORDS, texts(d->p2p.func, d->p2p.datatype) | channels(d->p2p.nChannels, 0));
        if (d->p2p.parentGroup) put(s, TRACE_GROUP, number_of(d->p2p.parentGroup));
        if (s->tagged) s->tag = d->p2p.userTag;
    }
}

static void describe_copy(struct start *s, const ncclProfilerEventDescr_v7_t *d)
{
    if (d->type == ncclProfileCeColl) {
        put(s, TRACE_SEQ, d->ceColl.seqNumber);
        put(s, TRACE_COUNT, d->ceColl.count);
        put_root(s, d->ceColl.root, (int)d->ceColl.numBatches);
        put(s, TRACE_WORDS,
            texts(d->ceColl.func, d->ceColl.datatype) |
                (uint64_t)word_number(d->ceColl.syncStrategy) << 16);
        if (s->tagged) s->tag = d->ceColl.userTag;
        s->flag = d->ceColl.intraBatchSync;
    } else if (d->type == ncclProfileCeSync) {
        put(s, TRACE_PEER, pair(-1, d->ceCollSync.nRanks));
        s->flag = d->ceCollSync.isComplete;
    } else {
        put(s, TRACE_COUNT, d->ceCollBatch.totalBytes);
        put(s, TRACE_PEER, pair(-1, d->ceCollBatch.numOps));
        s->flag = d->ceCollBatch.useIntraSync;
    }
}

static void describe(struct start *s, const ncclProfilerEventDescr_v7_t *d)
{
    switch (d->type) {
    case ncclProfileProxyStep:
        if (d->proxyStep.step) put(s, TRACE_PEER, pair(-1, d->proxyStep.step));
        break;
    case ncclProfileProxyOp:
        put(s, TRACE_PEER, pair(d->proxyOp.peer, d->proxyOp.nSteps));
        put_channel(s, d->proxyOp.channelId);
        put(s, TRACE_SIZES, pair(d->proxyOp.chunkSize, (int)d->proxyOp.pid));
        s->flag = d->proxyOp.isSend;
        break;
    case ncclProfileGroupApi:
        if (d->groupApi.groupDepth != 1) put(s, TRACE_PEER, pair(-1, d->groupApi.groupDepth));
        s->flag = d->groupApi.graphCaptured;
        break;
    case ncclProfileCollApi:
    case ncclProfileP2pApi:
    case ncclProfileColl:
    case ncclProfileP2p: describe_call(s, d); break;
    case ncclProfileKernelCh:
        put(s, TRACE_SEQ, d->kernelCh.pTimer);
        put_channel(s, d->kernelCh.channelId);
        break;
    case ncclProfileKernelPhase:
        put(s, TRACE_SEQ, d->kernelPhase.pTimer);
        put(s, TRACE_WORDS,
            word_number(d->kernelPhase.phaseName) | channels(d->kernelPhase.channelId, 0));
        break;
    case ncclProfileNetPlugin: put(s, TRACE_SEQ, (uint64_t)d->netPlugin.id); break;
    case ncclProfileCeColl:
    case ncclProfileCeSync:
    case ncclProfileCeBatch: describe_copy(s, d); break;
    default: break; /* Group, KernelLaunch, ProxyCtrl, and what comes after version 7: times only */
    }
}

/* How many messages of that kind were recorded before: both ends count alike, so no two kinds may
 * share a counter while there is one left. */
static uint32_t count_message(const void *context, int peer, const char *func)
{
    uint64_t key = number_of(context) * 0x9e3779b97f4a7c15u + (uint32_t)peer;
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93u + (func ? (uint8_t)*func : 0);
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93u | 1;
    struct trace_pair *pairs = trace_process.messages, *pair = NULL;
    for (uint32_t k = 0; k < TRACE_PROBES; k++) {
        uint64_t seen = 0;
        pair = &pairs[((key >> 32) + k) % TRACE_PAIRS];
        if (atomic_load_explicit(&pair->key, memory_order_relaxed) == key ||
            atomic_compare_exchange_strong(&pair->key, &seen, key) || seen == key)
            break;
    }
    return atomic_fetch_add_explicit(&pair->reported, 1, memory_order_relaxed);
}

/* Which operations a sample has all ranks decide alike: collectives by their number, messages by
 * how many went between the two ranks before. What is below an operation has a parent when that was
 * kept; calls and groups are known too early to be of any. */
static bool is_sampled(const void *context, const ncclProfilerEventDescr_v7_t *d, uint32_t every)
{
    switch (d->type) {
    case ncclProfileColl: return d->coll.seqNumber % every == 0;
    case ncclProfileCeColl: return d->ceColl.seqNumber % every == 0;
    case ncclProfileP2p: return count_message(context, d->p2p.peer, d->p2p.func) % every == 0;
    case ncclProfileGroup:
    case ncclProfileGroupApi:
    case ncclProfileCollApi:
    case ncclProfileP2pApi:
    case ncclProfileKernelLaunch:
    case ncclProfileProxyCtrl: return false;
    default: return d->parentObj != NULL;
    }
}

void trace_start(void *context, void **handle, const ncclProfilerEventDescr_v7_t *descr,
                 const struct trace_extra *extra)
{
    *handle = NULL;
    if (!atomic_load_explicit(&trace_process.on, memory_order_acquire)) return;
    struct trace_ring *ring = own_ring ? own_ring : take_ring();
    struct start start;
    uint64_t aside[TRACE_RECORD_WORDS];
    uint64_t context_bits = number_of(context) & (((uint64_t)1 << TRACE_TYPE_SHIFT) - 1);
    start.used = 3;
    start.fields = 0;
    start.tag = 0;
    start.flag = false;
    start.tagged = extra->tagged;
    if (!ring) {
        count_lost(NULL, TRACE_START);
        return;
    }
    uint32_t every = atomic_load_explicit(&trace_process.sample, memory_order_relaxed);
    if (every > 1 && !is_sampled(context, descr, every)) {
        atomic_fetch_add_explicit(&ring->passed, 1, memory_order_relaxed);
        return;
    }
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t *where = place_of(ring, head);
    start.words = where ? where : aside;
    describe(&start, descr);
    if (start.tag) put(&start, TRACE_TAG, start.tag);
    if (extra->comm) put(&start, TRACE_COMM, extra->comm);
    start.words[0] = TRACE_START;
    start.words[1] = number_of(descr->parentObj);
    start.words[2] = context_bits |
                     (uint64_t)__builtin_ctzll(descr->type | 1ull << 63) << TRACE_TYPE_SHIFT |
                     (uint64_t)start.flag << TRACE_FLAG_SHIFT | start.fields << TRACE_FIELD_SHIFT;
    if (where) {
        where[0] = time_word(TRACE_START);
        publish(ring, head, start.used);
    } else if (!push(ring, aside, start.used)) {
        return;
    }
    *handle =
        (void *)(uintptr_t)++ring->next_id; /* NOLINT(performance-no-int-to-ptr): no address */
}

/* A state or an end: a record of two words, or of three where it has a value. */
static inline void report(uint64_t kind, uint64_t what, uint64_t value)
{
    struct trace_ring *ring = own_ring ? own_ring : take_ring();
    uint64_t words[] = {kind, what, value}, count = kind & TRACE_VALUED ? 3 : 2;
    if (!ring) {
        count_lost(NULL, (enum trace_kind)(kind & (TRACE_VALUED - 1)));
        return;
    }
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t *where = place_of(ring, head);
    if (!where) {
        push(ring, words, count);
        return;
    }
    where[0] = time_word(kind);
    where[1] = what;
    where[2] = value;
    publish(ring, head, count);
}

void trace_state(void *handle, int state, uint64_t value)
{
    if (!handle || !atomic_load_explicit(&trace_process.on, memory_order_acquire)) return;
    report(value ? TRACE_STATE | TRACE_VALUED : TRACE_STATE,
           number_of(handle) | (uint64_t)(uint8_t)state << TRACE_ID_BITS, value);
}

void trace_stop(void *handle)
{
    if (!handle || !atomic_load_explicit(&trace_process.on, memory_order_acquire)) return;
    report(TRACE_STOP, number_of(handle), 0);
}
