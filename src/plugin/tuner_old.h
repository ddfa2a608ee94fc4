/* Older tuner tables, seen as the newest one. Private to the room.
 *
 * An adapter's init finds the older object through *ctx, which then becomes the instance; nothing
 * is kept in a file. */
#pragma once

#include "nccl/tuner.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The one state that a version 1 plugin has in a process. It belongs to the communicator size that
 * asked last: when another size asks, it is ended and started anew, so that an answer never depends
 * on which communicator of the process came first. */
struct tt_tuner_lone {
    pthread_mutex_t lock; /* guards the rest, and every call of the plugin */
    int users;
    bool alive;
    size_t nranks, nnodes; /* what it was started for */
};

struct tt_tuner_origin {        /* *ctx before an adapter's init */
    const void *object;         /* the plugin's own table; borrowed */
    struct tt_tuner_lone *lone; /* borrowed; version 1 */
};

extern const ncclTuner_v6_t tt_tuner_from_v1, tt_tuner_from_v2, tt_tuner_from_v3, tt_tuner_from_v4,
    tt_tuner_from_v5;

/* What versions 1 and 2 answer with, and are told. */
struct tt_tuner_answer {
    int algo, proto;
};
bool tt_tuner_has_collnet(float **opaque);
bool tt_tuner_has_nvls(float **opaque);
/* Make the answer the cheapest entry, when it is a possible one. */
void tt_tuner_prefer(float **opaque, struct tt_tuner_answer answer);
