/* See tickets.h. A ring that doubles; locked, because a launch is no small call anyway. */
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

static bool grow(struct tt_tickets *tickets)
{
    size_t capacity = tickets->capacity ? 2 * tickets->capacity : FIRST_CAPACITY;
    uint64_t *ring = malloc(capacity * sizeof(*ring));
    if (!ring) return false;
    for (size_t i = 0; i < tickets->count; i++) {
        ring[i] = tickets->ring[(tickets->first + i) & (tickets->capacity - 1)];
    }
    free(tickets->ring);
    tickets->ring = ring;
    tickets->capacity = capacity;
    tickets->first = 0;
    return true;
}

bool tt_tickets_put(struct tt_tickets *tickets, uint64_t ticket)
{
    pthread_mutex_lock(&tickets->lock);
    bool room = tickets->count < tickets->capacity || grow(tickets);
    if (room) {
        size_t last = tickets->first + tickets->count++;
        tickets->ring[last & (tickets->capacity - 1)] = ticket;
    }
    pthread_mutex_unlock(&tickets->lock);
    return room;
}

bool tt_tickets_take(struct tt_tickets *tickets, uint64_t *ticket_out)
{
    pthread_mutex_lock(&tickets->lock);
    bool some = tickets->count > 0;
    if (some) {
        *ticket_out = tickets->ring[tickets->first];
        tickets->first = (tickets->first + 1) & (tickets->capacity - 1);
        tickets->count--;
    }
    pthread_mutex_unlock(&tickets->lock);
    return some;
}
