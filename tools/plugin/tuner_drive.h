/* What communicators ask of a tuner plugin. Calls go through the adapters of the library; every
 * answer is looked at, and what breaks the contract is named by function and argument. */
#pragma once

#include "check.h"

#include "plugin/plugin.h"
#include "plugin/tuner/tuner_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tuner_plugin { /* the library */
    struct tt_library library;
    struct tt_plugin_found found;
    struct tt_tuner_single single;
};

/* False: it cannot be used (said in the note). */
bool tuner_load(struct tuner_plugin *plugin, const char *file, struct check_case_state *state);
void tuner_unload(struct tuner_plugin *plugin);

struct tuner_drive { /* one communicator */
    struct tt_tuner_instance instance;
    const struct tt_tuner_abi *abi;
    struct check_case_state *state;
    ncclTunerConstants_v6_t constants; /* the plugin may keep the pointers */
    ncclNvlDomainInfo_v6_t domains;
};

/* Init; false when it failed (said). The drive stays where it is until it is closed. */
bool tuner_open(struct tuner_drive *drive, struct tuner_plugin *plugin,
                struct check_case_state *state, int nranks, int nnodes);
void tuner_close(struct tuner_drive *drive);

enum { TUNER_ENTRIES = TT_TUNER_ALGOS * TT_TUNER_PROTOS };

struct tuner_answer {
    float table[TUNER_ENTRIES];
    int nchannels;
    size_t chunk; /* of the first possible entry; 0: the plugin has no such function */
};

/* Ask with these entries possible (bit a * 3 + p) and judge the answer. */
void tuner_ask(struct tuner_drive *drive, const struct tt_tuner_query *query, uint32_t possible,
               struct tuner_answer *answer);
bool tuner_same(const struct tuner_answer *one, const struct tuner_answer *other);

/* The call under way, for a report. */
void tuner_where(const struct check_case_state *state, char *text, size_t text_bytes);
