/* Operations out of records. Those of different threads come in any order within a turn of the
 * writer, so a kernel may be seen before its operation: whichever comes first makes the entry.
 * What never ends (a message to oneself has no kernel) goes when there is no room any more. */
#include "outputs.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_ENTRIES = 1024, MOST_ENTRIES = 32768, FIRST_TIMED_VERSION = 4 };
enum { FIRST_KERNEL_VERSION = 3, UNDEFINED_CHANNELS_VERSION = 4 };

/* An operation, or a kernel of one. */
struct followed {
    uint64_t id;        /* 0: free */
    uint64_t operation; /* of a kernel: whose; of an operation 0 */
    uint64_t begin_nsec, end_nsec;
    uint64_t first_timer, last_timer;
    struct trace_record start;
    struct trace_moments *moments; /* owned; NULL: not kept, or a kernel */
    uint32_t begun, ended;         /* kernels */
    uint8_t channel;               /* of a kernel */
    bool started, stopped;
};

struct trace_operations {
    struct followed *entries; /* owned */
    size_t room, used;
    uint64_t given_up;
    bool keeps_moments;
    struct trace_moments *ended_moments; /* owned; of the operation that ended last */
};

struct trace_operations *trace_operations_create(bool keeps_moments)
{
    struct trace_operations *all = calloc(1, sizeof(*all));
    struct followed *entries = calloc(LEAST_ENTRIES, sizeof(*entries));
    if (!all || !entries) {
        free(all);
        free(entries);
        return NULL;
    }
    all->entries = entries;
    all->room = LEAST_ENTRIES;
    all->keeps_moments = keeps_moments;
    return all;
}

static void forget(struct trace_operations *all)
{
    for (size_t k = 0; k < all->room; k++)
        if (all->entries[k].id) free(all->entries[k].moments);
}

void trace_operations_destroy(struct trace_operations *all)
{
    if (!all) return;
    forget(all);
    free(all->entries);
    free(all->ended_moments);
    free(all);
}

uint64_t trace_operations_given_up(const struct trace_operations *all)
{
    return all->given_up;
}

/* ---- entries ---- */

static size_t slot_of(const struct trace_operations *all, uint64_t id)
{
    return (size_t)(id * 0x9e3779b97f4a7c15u >> 20) & (all->room - 1);
}

static struct followed *find(const struct trace_operations *all, uint64_t id)
{
    if (!id) return NULL;
    for (size_t at = slot_of(all, id);; at = (at + 1) & (all->room - 1)) {
        if (all->entries[at].id == id) return &all->entries[at];
        if (!all->entries[at].id) return NULL;
    }
}

/* The place where an id that is not there goes. */
static struct followed *find_slot(struct trace_operations *all, uint64_t id)
{
    size_t at = slot_of(all, id);
    while (all->entries[at].id)
        at = (at + 1) & (all->room - 1);
    return &all->entries[at];
}

static void widen(struct trace_operations *all)
{
    struct followed *before = all->entries;
    size_t count = all->room;
    struct followed *wider = count < MOST_ENTRIES ? calloc(count * 2, sizeof(*wider)) : NULL;
    if (!wider) { /* nothing that is still under way is so old */
        all->given_up += all->used;
        all->used = 0;
        forget(all);
        memset(before, 0, count * sizeof(*before));
        return;
    }
    all->entries = wider;
    all->room = count * 2;
    for (size_t k = 0; k < count; k++) {
        if (before[k].id) *find_slot(all, before[k].id) = before[k];
    }
    free(before);
}

/* The entry of an id, which is made if it is not there; NULL: there is no such id. */
static struct followed *entry_of(struct trace_operations *all, uint64_t id)
{
    struct followed *entry = find(all, id);
    if (entry || !id) return entry;
    if (all->used * 4 >= all->room * 3) widen(all);
    entry = find_slot(all, id);
    *entry = (struct followed){.id = id, .begin_nsec = UINT64_MAX};
    all->used++;
    return entry;
}

/* Those behind it move up, so that each is found from its slot on. */
static void drop(struct trace_operations *all, const struct followed *entry)
{
    size_t hole = (size_t)(entry - all->entries), mask = all->room - 1;
    all->used--;
    for (size_t at = (hole + 1) & mask; all->entries[at].id; at = (at + 1) & mask) {
        size_t home = slot_of(all, all->entries[at].id);
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        all->entries[hole] = all->entries[at];
        hole = at;
    }
    all->entries[hole].id = 0;
}

/* ---- what an operation was ---- */

static bool is_message(const struct followed *entry)
{
    return 1u << entry->start.type == ncclProfileP2p;
}

/* Kernels that the operation has; 0: unknown. */
static uint32_t kernels_of(const struct followed *entry, const struct trace_rank *rank)
{
    const int *mask = trace_process.mask;
    bool asked = mask && (__atomic_load_n(mask, __ATOMIC_RELAXED) & (int)ncclProfileKernelCh);
    if (rank->version < FIRST_KERNEL_VERSION || !(asked || entry->begun)) return 0;
    bool counted = entry->start.channel > 0 &&
                   !(is_message(entry) && rank->version <= UNDEFINED_CHANNELS_VERSION);
    return counted ? entry->start.channel : 1;
}

static const char *word_of(uint8_t word)
{
    return word ? trace_process.words[word - 1] : "";
}

static uint64_t bytes_of(const struct trace_record *start)
{
    const char *digits = strpbrk(word_of(start->datatype), "123468");
    long bits = digits ? strtol(digits, NULL, 10) : 0;
    return start->count * (uint64_t)(bits >= 8 ? bits / 8 : 1);
}

static void set_speed(struct trace_operation *operation)
{
    const char *func = word_of(operation->start.func);
    double n = operation->rank->nranks > 1 ? operation->rank->nranks : 1, factor = 1;
    bool in_parts = !strcmp(func, "AllGather") || !strcmp(func, "ReduceScatter");
    if (!strcmp(func, "AllReduce")) factor = 2 * (n - 1) / n;
    if (in_parts || !strcmp(func, "AlltoAll")) factor = (n - 1) / n;
    double bytes = (double)operation->bytes * (in_parts ? n : 1);
    operation->algbw_gbps = operation->usec > 0 ? bytes / operation->usec / 1e3 : 0;
    operation->busbw_gbps = operation->algbw_gbps * factor;
}

/* Whether the operation has ended; then its entry goes. */
static bool finish(struct trace_operations *all, const struct followed *entry,
                   struct trace_operation *operation)
{
    struct trace_rank *rank =
        entry && entry->started ? trace_outputs_rank(entry->start.context) : NULL;
    uint32_t kernels = rank ? kernels_of(entry, rank) : 0;
    if (!rank || !entry->stopped || entry->ended < kernels) return false;
    bool timed = kernels && rank->version >= FIRST_TIMED_VERSION && entry->first_timer &&
                 entry->last_timer > entry->first_timer;
    uint64_t nsec =
        timed ? entry->last_timer - entry->first_timer : entry->end_nsec - entry->begin_nsec;
    free(all->ended_moments);
    all->ended_moments = entry->moments;
    *operation = (struct trace_operation){
        .start = entry->start,
        .rank = rank,
        .message = is_message(entry),
        .bytes = bytes_of(&entry->start),
        .end_nsec = entry->end_nsec,
        .usec = (double)nsec / 1e3,
        .timing = timed     ? TRACE_TIMING_GPU
                  : kernels ? TRACE_TIMING_KERNEL
                            : TRACE_TIMING_CALL,
        .moments = all->ended_moments,
    };
    set_speed(operation);
    drop(all, entry);
    return true;
}

/* ---- records ---- */

/* Those of an operation, made with the first of its events; NULL: they are not kept. */
static struct trace_moments *moments_of(const struct trace_operations *all, struct followed *entry)
{
    if (all->keeps_moments && !entry->moments) entry->moments = calloc(1, sizeof(*entry->moments));
    return entry->moments;
}

static void start_kernel(struct trace_operations *all, const struct trace_record *record)
{
    struct followed *entry = entry_of(all, record->parent);
    if (!entry) return;
    struct trace_moments *moments = moments_of(all, entry);
    const uint8_t channel = record->channel % TRACE_CHANNELS;
    if (moments) moments->kernels[channel].begin_nsec = record->ts_nsec;
    if (entry->begun++ == 0) entry->begin_nsec = UINT64_MAX; /* not that of the call any more */
    if (record->ts_nsec < entry->begin_nsec) entry->begin_nsec = record->ts_nsec;
    if (record->seq && (!entry->first_timer || record->seq < entry->first_timer))
        entry->first_timer = record->seq;
    entry = entry_of(all, record->id);
    entry->operation = record->parent;
    entry->channel = channel;
}

static void start_operation(struct trace_operations *all, const struct trace_record *record)
{
    struct followed *entry = entry_of(all, record->id);
    struct trace_moments *moments = moments_of(all, entry);
    if (moments) moments->begin_nsec = record->ts_nsec;
    entry->start = *record;
    entry->started = true;
    if (!entry->begun) entry->begin_nsec = record->ts_nsec;
}

/* The operation whose kernel it was. */
static struct followed *stop_kernel(struct trace_operations *all, const struct followed *kernel,
                                    uint64_t ts_nsec)
{
    uint64_t id = kernel->operation;
    const uint8_t channel = kernel->channel;
    drop(all, kernel);
    struct followed *entry = find(all, id);
    if (!entry) return NULL;
    if (entry->moments) entry->moments->kernels[channel].end_nsec = ts_nsec;
    if (entry->ended++ == 0 || ts_nsec > entry->end_nsec) entry->end_nsec = ts_nsec;
    return entry;
}

/* The kernel of an operation has told its time. */
static void follow_state(struct trace_operations *all, const struct followed *kernel,
                         const struct trace_record *record)
{
    struct followed *entry = find(all, kernel->operation);
    if (!entry || record->type != ncclProfilerKernelChStop) return;
    if (record->count > entry->last_timer) entry->last_timer = record->count;
    if (entry->moments) entry->moments->kernels[kernel->channel].record_nsec = record->ts_nsec;
}

bool trace_operations_follow(struct trace_operations *all, const struct trace_record *record,
                             struct trace_operation *operation)
{
    uint32_t type = 1u << record->type;
    if (record->kind == TRACE_START) {
        if (type == ncclProfileKernelCh) start_kernel(all, record);
        if (type == ncclProfileColl || type == ncclProfileP2p) start_operation(all, record);
        return false;
    }
    struct followed *entry = find(all, record->id);
    if (!entry) return false;
    if (record->kind == TRACE_STATE) {
        follow_state(all, entry, record);
        return false;
    }
    if (entry->operation) {
        entry = stop_kernel(all, entry, record->ts_nsec);
    } else {
        entry->stopped = true;
        if (entry->moments) entry->moments->end_nsec = record->ts_nsec;
        if (!entry->ended) entry->end_nsec = record->ts_nsec;
    }
    return finish(all, entry, operation);
}
