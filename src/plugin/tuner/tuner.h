/* Tuner plugins: finding, loading and calling them. Every communicator has its own instance; the
 * caller serialises calls for one instance. */
#pragma once

#include "nccl.h"
#include "nccl/tuner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_TUNER_ALGOS 7  /* NCCL's algorithm numbers 0..6 */
#define TT_TUNER_PROTOS 3 /* NCCL's protocol numbers 0..2 */

struct tt_tuner; /* opaque */

struct tt_tuner_query { /* one operation, or a bundle of equal ones */
    int func;           /* ncclFunc_t: Broadcast 0 .. AllReduce 4; no others */
    size_t bytes;
    int nops;
    bool registered;
};

/* Let the plugin edit `table` (predicted microseconds; -1: impossible) and ask for channels
 * (*nchannels_out: 0 or less when it has no preference). Entries that were -1 stay so. After an
 * error, and when it leaves nothing to choose, the table is as it was. */
ncclResult_t tt_tuner_ask(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                          float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS], int *nchannels_out);

struct tt_tuner_layout { /* what was chosen for a query; NCCL's numbers */
    int algo, proto, nchannels;
};
/* Ask the plugin for the size of a chunk, in bytes, given ours. Returns ours when the plugin cannot
 * be asked, fails or answers 0. The caller limits it. */
size_t tt_tuner_chunk(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                      const struct tt_tuner_layout *layout, size_t chunk_bytes);

struct tt_tuner_config {
    uint64_t comm_id;
    int nranks, nnodes;
    int least_local, most_local;              /* ranks of a node */
    const ncclTunerConstants_v6_t *constants; /* what versions 5 and 6 are shown; NULL: zeros */
    const char *net_library; /* tt_net_library(), or NULL: searched when there is no own file */
};

/* Load the plugin of NCCL_TUNER_PLUGIN (or libnccl-tuner.so when there is one; once per process)
 * and make this communicator's instance. *tuner_out NULL: none, or it failed (logged). */
void tt_tuner_open(const struct tt_tuner_config *config, struct tt_tuner **tuner_out);
/* The constants as init left them, unless it touched none (or is older than version 5): then NULL,
 * as for NULL. What is no number of at least 0 counts as untouched. Valid until the tuner is
 * closed. */
const ncclTunerConstants_v6_t *tt_tuner_constants(const struct tt_tuner *tuner);
/* What the plugin's calls took; zeros and the name "" for NULL. The median is that of a bucket, at
 * most an eighth below the true one. The name is valid until the tuner is closed. */
struct tt_tuner_stats {
    const char *name;
    uint64_t asked;
    double p50_usec, max_usec, sum_usec;
};
void tt_tuner_stats(const struct tt_tuner *tuner, struct tt_tuner_stats *stats_out);
/* Logs how often it was asked and what that took (TUNING). Accepts NULL. */
void tt_tuner_close(struct tt_tuner *tuner);
