/* Which streams have something queued: a bit per stream, set by a thread that queues and cleared by
 * a worker that finds the stream idle, and above them bits that say where any are set. */
#include "runnable.h"

#include "state.h"
#include "timeline.h"

static uint64_t bit_of(size_t number)
{
    return UINT64_C(1) << number % 64;
}

/* From the lowest level up: a thread that clears a bit looks at the level below afterwards. */
static void set_upper(size_t number)
{
    struct tt_host_runnable *all = &tt_host.runnable;
    atomic_fetch_or_explicit(&all->summary[number / 4096], bit_of(number / 64),
                             memory_order_seq_cst);
    atomic_fetch_or_explicit(&all->top, bit_of(number / 4096), memory_order_seq_cst);
}

bool tt_host_runnable_add(size_t number)
{
    struct tt_host_runnable *all = &tt_host.runnable;
    _Atomic uint64_t *word = &all->words[number / 64];
    if (atomic_load_explicit(word, memory_order_seq_cst) & bit_of(number)) return false;
    atomic_fetch_add_explicit(&all->begun, 1, memory_order_seq_cst);
    uint64_t before = atomic_fetch_or_explicit(word, bit_of(number), memory_order_seq_cst);
    set_upper(number);
    atomic_fetch_add_explicit(&all->ended, 1, memory_order_seq_cst);
    return !(before & bit_of(number));
}

/* A thread that queues takes a sequence number first and looks at the bit then. A bit of an upper
 * level goes when the lower one is empty. A thread that puts one back puts back all above it:
 * another thread that saw the level empty in between may be clearing those. */
void tt_host_runnable_remove(size_t number)
{
    const struct tt_host_timeline *line = tt_host_slab_object(&tt_host.streams.slab, number);
    struct tt_host_runnable *all = &tt_host.runnable;
    _Atomic uint64_t *word = &all->words[number / 64];
    _Atomic uint64_t *summary = &all->summary[number / 4096];
    atomic_fetch_add_explicit(&all->begun, 1, memory_order_seq_cst);
    atomic_fetch_and_explicit(word, ~bit_of(number), memory_order_seq_cst);
    if (!tt_host_timeline_idle(line)) tt_host_runnable_add(number);
    if (!atomic_load_explicit(word, memory_order_seq_cst)) {
        atomic_fetch_and_explicit(summary, ~bit_of(number / 64), memory_order_seq_cst);
        if (atomic_load_explicit(word, memory_order_seq_cst)) set_upper(number);
    }
    if (!atomic_load_explicit(summary, memory_order_seq_cst)) {
        atomic_fetch_and_explicit(&all->top, ~bit_of(number / 4096), memory_order_seq_cst);
        if (atomic_load_explicit(summary, memory_order_seq_cst)) {
            atomic_fetch_or_explicit(&all->top, bit_of(number / 4096), memory_order_seq_cst);
        }
    }
    atomic_fetch_add_explicit(&all->ended, 1, memory_order_seq_cst);
}

static void visit_word(size_t word, void (*see)(struct CUstream_st *stream, void *arg), void *arg)
{
    uint64_t bits = atomic_load_explicit(&tt_host.runnable.words[word], memory_order_acquire);
    for (; bits; bits &= bits - 1) {
        see(tt_host_slab_object(&tt_host.streams.slab, word * 64 + (size_t)__builtin_ctzll(bits)),
            arg);
    }
}

void tt_host_runnable_visit(void (*see)(struct CUstream_st *stream, void *arg), void *arg)
{
    uint64_t top = atomic_load_explicit(&tt_host.runnable.top, memory_order_acquire);
    for (; top; top &= top - 1) {
        size_t i = (size_t)__builtin_ctzll(top);
        uint64_t words = atomic_load_explicit(&tt_host.runnable.summary[i], memory_order_acquire);
        for (; words; words &= words - 1) {
            visit_word(i * 64 + (size_t)__builtin_ctzll(words), see, arg);
        }
    }
}

void tt_host_busy_visit(void (*see)(struct CUstream_st *stream, void *arg), void *arg)
{
    struct tt_host_runnable *all = &tt_host.runnable;
    uint64_t ended = atomic_load_explicit(&all->ended, memory_order_seq_cst);
    bool quiet = atomic_load_explicit(&all->begun, memory_order_seq_cst) == ended;
    if (quiet) tt_host_runnable_visit(see, arg);
    if (quiet && atomic_load_explicit(&all->begun, memory_order_seq_cst) == ended) return;
    size_t made = atomic_load_explicit(&tt_host.streams.slab.made, memory_order_acquire);
    for (size_t i = 0; i < made; i++) {
        see(tt_host_slab_object(&tt_host.streams.slab, i), arg);
    }
}
