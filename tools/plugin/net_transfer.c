/* Messages with contents: what is sent is a pattern of its own for each message, so that one that
 * comes twice, late or cut is seen. */
#include "net_drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char pattern(int seed, int number, size_t at)
{
    return (unsigned char)((size_t)seed * 53 + (size_t)number * 17 + at * 7 + (at >> 8));
}

static size_t side_bytes(const struct net_plan *plan)
{
    size_t bytes = 0;
    for (int k = 0; k < plan->count; k++)
        bytes += plan->sizes[k] + plan->spare;
    return bytes ? bytes : 1;
}

static void add_messages(struct net_batch *batch, const struct net_side *side)
{
    const struct net_plan *plan = side->plan;
    unsigned char *at = side->data;
    for (int k = 0; k < plan->count; k++) {
        bool sending = side->end->sending;
        struct net_message *message = &batch->messages[batch->nmessages++];
        *message = (struct net_message){.end = side->end, .bytes = plan->sizes[k]};
        message->part = (struct tt_net_part){.data = at,
                                             .bytes = plan->sizes[k] + (sending ? 0 : plan->spare),
                                             .tag = plan->first_tag + k * plan->tag_step,
                                             .mhandle = side->mhandle};
        for (size_t i = 0; sending && i < plan->sizes[k]; i++)
            at[i] = pattern(side->seed, k, i);
        at += plan->sizes[k] + plan->spare;
    }
}

bool net_batch_add(struct net_batch *batch, struct net_end *end, const struct net_plan *plan,
                   int seed)
{
    if (batch->nmessages + plan->count > NET_MOST_MESSAGES ||
        batch->nsides == 2 * NET_MOST_TRANSFERS)
        return false;
    struct net_side *side = &batch->sides[batch->nsides];
    *side = (struct net_side){.end = end, .plan = plan, .seed = seed};
    side->data = calloc(1, side_bytes(plan));
    if (!side->data || !net_drive_register(end, side->data, side_bytes(plan), &side->mhandle)) {
        free(side->data);
        return false;
    }
    batch->nsides++;
    add_messages(batch, side);
    return true;
}

/* What came is what was sent. */
static bool compare(const struct net_side *side)
{
    const struct net_plan *plan = side->plan;
    const unsigned char *at = side->data;
    for (int k = 0; k < plan->count; k++) {
        for (size_t i = 0; i < plan->sizes[k]; i++) {
            struct check_case_state *state = side->end->drive->state;
            if (at[i] == pattern(side->seed, k, i)) continue;
            snprintf(state->note, sizeof(state->note),
                     "irecv: message %d of %zu byte%s is another one than was sent, from byte %zu",
                     k, plan->sizes[k], plan->sizes[k] == 1 ? "" : "s", i);
            return false;
        }
        at += plan->sizes[k] + plan->spare;
    }
    return true;
}

bool net_batch_run(struct net_drive *drive, struct net_batch *batch)
{
    /* after a failure requests are under way, and their memory must stay: the process ends soon */
    if (!net_drive_exchange(drive, batch->messages, batch->nmessages)) return false;
    bool good = true;
    for (int k = 0; good && k < batch->nsides; k++)
        good = batch->sides[k].end->sending || compare(&batch->sides[k]);
    for (int k = 0; k < batch->nsides; k++) {
        struct net_side *side = &batch->sides[k];
        if (!net_drive_deregister(side->end, side->mhandle)) good = false;
        free(side->data);
    }
    batch->nsides = batch->nmessages = 0;
    return good;
}

bool net_transfer(struct net_end ends[2], const struct net_plan *plan)
{
    struct net_batch batch = {.nsides = 0};
    return net_batch_add(&batch, &ends[1], plan, 1) && net_batch_add(&batch, &ends[0], plan, 1) &&
           net_batch_run(ends[1].drive, &batch);
}
