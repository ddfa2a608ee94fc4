/* See tickets.h. A launch whose run follows at once needs one word; those that wait behind it stand
 * in a ring that doubles, under a lock. The word is filled only while the ring is empty, so it is
 * always the oldest. */
#include "exec/tickets.h"

#include <stdlib.h>

#define FIRST_CAPACITY 4

void tt_tickets_init(struct tt_tickets *tickets)
{
    *tickets = (struct tt_tickets){.ring = NULL};
    pthread_mutex_init(&tickets->lock, NULL);
}

void tt_tickets_fini(struct tt_tickets *tickets)
{
    pthread_mutex_destroy(&tickets->lock);
    free(tickets->ring);
}

static size_t count_of(const struct tt_tickets *tickets) /* under the lock */
{
    return atomic_load_explicit(&tickets->count, memory_order_relaxed);
}

static bool grow(struct tt_tickets *tickets)
{
    size_t capacity = tickets->capacity ? 2 * tickets->capacity : FIRST_CAPACITY;
    uint64_t *ring = malloc(capacity * sizeof(*ring));
    if (!ring) return false;
    for (size_t i = 0; i < count_of(tickets); i++) {
        ring[i] = tickets->ring[(tickets->first + i) & (tickets->capacity - 1)];
    }
    free(tickets->ring);
    tickets->ring = ring;
    tickets->capacity = capacity;
    tickets->first = 0;
    return true;
}

static bool ring_put(struct tt_tickets *tickets, uint64_t ticket)
{
    pthread_mutex_lock(&tickets->lock);
    size_t count = count_of(tickets);
    bool room = count < tickets->capacity || grow(tickets);
    if (room) {
        tickets->ring[(tickets->first + count) & (tickets->capacity - 1)] = ticket;
        atomic_store_explicit(&tickets->count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&tickets->lock);
    return room;
}

static bool word_take(struct tt_tickets *tickets, uint64_t *ticket_out)
{
    uint64_t next = atomic_load_explicit(&tickets->next, memory_order_acquire);
    if (next == 0) return false;
    *ticket_out = next - 1;
    atomic_store_explicit(&tickets->next, 0, memory_order_release);
    return true;
}

static bool ring_take(struct tt_tickets *tickets, uint64_t *ticket_out)
{
    pthread_mutex_lock(&tickets->lock);
    size_t count = count_of(tickets);
    bool some = word_take(tickets, ticket_out); /* filled before the ring, after it looked empty */
    if (!some && count > 0) {
        *ticket_out = tickets->ring[tickets->first];
        tickets->first = (tickets->first + 1) & (tickets->capacity - 1);
        atomic_store_explicit(&tickets->count, count - 1, memory_order_release);
        some = true;
    }
    pthread_mutex_unlock(&tickets->lock);
    return some;
}

bool tt_tickets_put(struct tt_tickets *tickets, uint64_t ticket)
{
    uint64_t none = 0;
    /* pairs with the release stores of whoever empties the ring and the word */
    if (atomic_load_explicit(&tickets->count, memory_order_acquire) == 0 &&
        atomic_compare_exchange_strong_explicit(&tickets->next, &none, ticket + 1,
                                                memory_order_acq_rel, memory_order_relaxed))
        return true;
    return ring_put(tickets, ticket);
}

bool tt_tickets_take(struct tt_tickets *tickets, uint64_t *ticket_out)
{
    if (word_take(tickets, ticket_out)) return true;
    if (atomic_load_explicit(&tickets->count, memory_order_acquire) == 0) return false;
    return ring_take(tickets, ticket_out);
}
