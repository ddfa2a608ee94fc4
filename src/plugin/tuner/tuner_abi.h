/* Calls of each version of the tuner table; one row per version. Private to the room.
 *
 * The version is that of the symbol which the library exports, so a table is never called with
 * another version's arguments. */
#pragma once

#include "nccl/tuner.h"
#include "plugin/plugin.h"
#include "plugin/tuner/tuner.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* State of a version 1 plugin, which has one instance per process. The instance was started for the
 * size of the communicator that called last: when a communicator of another size calls, it is ended
 * and started anew, so that results do not depend on the order of communicators. */
struct tt_tuner_single {
    pthread_mutex_t lock; /* guards the rest, and every call of the plugin */
    int users;
    bool alive;
    size_t nranks, nnodes; /* what it was started for */
};

struct tt_tuner_instance {          /* one communicator's */
    const void *object;             /* the plugin's own table, of its version's type; borrowed */
    int version;                    /* 1 to 6 */
    struct tt_tuner_single *single; /* borrowed from the slot; version 1 */
    void *ctx;                      /* the plugin's, set by its init; version 1 has none */
    uint64_t comm_id;
    size_t nranks, nnodes;
    struct tt_tuner_choice *choice; /* borrowed; NULL: it is not kept */
};

struct tt_tuner_choice { /* what a plugin of version 1 or 2 answered, and what it was told */
    int algo, proto;
    bool collnet, nvls;
};

typedef float tt_tuner_row[TT_TUNER_PROTOS];

/* What differs between versions. The plugin's result is passed on. Calls for one instance are
 * serial; those of several may run at the same time, but for version 1. */
struct tt_tuner_abi {
    /* Versions before 5 see neither domains nor constants. */
    ncclResult_t (*init)(struct tt_tuner_instance *self, ncclNvlDomainInfo_v6_t *domains,
                         ncclTunerConstants_v6_t *constants);
    ncclResult_t (*ask)(const struct tt_tuner_instance *self, const struct tt_tuner_query *query,
                        tt_tuner_row *table, int *nchannels);
    /* Only after an init that succeeded. Plugins may do without. */
    ncclResult_t (*finalize)(const struct tt_tuner_instance *self);
};

enum { TT_TUNER_VERSIONS = 6 };
/* The symbols of all versions, newest first. */
extern const struct tt_plugin_abi tt_tuner_symbols[TT_TUNER_VERSIONS];

/* How `version`, one of 1 to 6, is called. */
const struct tt_tuner_abi *tt_tuner_abi(int version);

/* Whether the plugin can ask for chunks; only then may it be asked. */
bool tt_tuner_has_chunk(const struct tt_tuner_instance *self);
ncclResult_t tt_tuner_ask_chunk(const struct tt_tuner_instance *self,
                                const struct tt_tuner_query *query,
                                const struct tt_tuner_layout *layout, size_t *chunk_bytes);
