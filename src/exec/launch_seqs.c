/* See launch_seqs.h. A launch whose run follows at once needs one word; those that wait behind it
 * stand in a ring that doubles, under a lock. The word is filled only while the ring is empty, so
 * it is always the oldest. */
#include "exec/launch_seqs.h"

#include <stdlib.h>

#define FIRST_CAPACITY 4

void tt_launch_seqs_init(struct tt_launch_seqs *seqs)
{
    *seqs = (struct tt_launch_seqs){.ring = NULL};
    pthread_mutex_init(&seqs->lock, NULL);
}

void tt_launch_seqs_fini(struct tt_launch_seqs *seqs)
{
    pthread_mutex_destroy(&seqs->lock);
    free(seqs->ring);
}

static size_t count_of(const struct tt_launch_seqs *seqs) /* under the lock */
{
    return atomic_load_explicit(&seqs->count, memory_order_relaxed);
}

static bool grow(struct tt_launch_seqs *seqs)
{
    size_t capacity = seqs->capacity ? 2 * seqs->capacity : FIRST_CAPACITY;
    uint64_t *ring = malloc(capacity * sizeof(*ring));
    if (!ring) return false;
    for (size_t i = 0; i < count_of(seqs); i++) {
        ring[i] = seqs->ring[(seqs->first + i) & (seqs->capacity - 1)];
    }
    free(seqs->ring);
    seqs->ring = ring;
    seqs->capacity = capacity;
    seqs->first = 0;
    return true;
}

static __attribute__((noinline)) bool ring_put(struct tt_launch_seqs *seqs, uint64_t seq)
{
    pthread_mutex_lock(&seqs->lock);
    size_t count = count_of(seqs);
    bool room = count < seqs->capacity || grow(seqs);
    if (room) {
        seqs->ring[(seqs->first + count) & (seqs->capacity - 1)] = seq;
        atomic_store_explicit(&seqs->count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&seqs->lock);
    return room;
}

static bool word_take(struct tt_launch_seqs *seqs, uint64_t *seq_out)
{
    uint64_t next = atomic_load_explicit(&seqs->next, memory_order_acquire);
    if (next == 0) return false;
    *seq_out = next - 1;
    atomic_store_explicit(&seqs->next, 0, memory_order_release);
    return true;
}

static __attribute__((noinline)) bool ring_take(struct tt_launch_seqs *seqs, uint64_t *seq_out)
{
    pthread_mutex_lock(&seqs->lock);
    size_t count = count_of(seqs);
    bool some = word_take(seqs, seq_out); /* filled before the ring, after it looked empty */
    if (!some && count > 0) {
        *seq_out = seqs->ring[seqs->first];
        seqs->first = (seqs->first + 1) & (seqs->capacity - 1);
        atomic_store_explicit(&seqs->count, count - 1, memory_order_release);
        some = true;
    }
    pthread_mutex_unlock(&seqs->lock);
    return some;
}

bool tt_launch_seqs_put(struct tt_launch_seqs *seqs, uint64_t seq)
{
    uint64_t none = 0;
    /* pairs with the release stores of the thread that empties the ring and the word */
    if (atomic_load_explicit(&seqs->count, memory_order_acquire) == 0 &&
        atomic_compare_exchange_strong_explicit(&seqs->next, &none, seq + 1, memory_order_acq_rel,
                                                memory_order_relaxed))
        return true;
    return ring_put(seqs, seq);
}

bool tt_launch_seqs_take(struct tt_launch_seqs *seqs, uint64_t *seq_out)
{
    if (word_take(seqs, seq_out)) return true;
    if (atomic_load_explicit(&seqs->count, memory_order_acquire) == 0) return false;
    return ring_take(seqs, seq_out);
}
