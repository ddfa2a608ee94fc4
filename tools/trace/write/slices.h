/* A run as formats with begins and ends want it: the events of a lane, each end behind those inside
 * of it; their names; and the facts that belong to an event beside its name and times. */
#pragma once

#include "lanes.h"

/* Where a walk over a lane is: events begin and end in order of time. */
struct slices {
    const struct timeline *run; /* borrowed */
    const struct lanes *lanes;  /* borrowed */
    uint32_t *events;           /* owned; by lane, in the order in which they begin */
    uint32_t *first;            /* owned; of lane l: events[first[l] .. first[l + 1]) */
    uint32_t *parts;            /* owned; which of run->parts an event is, or TIMELINE_NONE */
    uint32_t at, last, depth;
    uint32_t open[LANE_DEEPEST]; /* events that have begun, the innermost last */
    uint64_t left_out;           /* events that would lie across another one of their lane */
};

struct slice_moment {
    uint32_t event;
    int64_t at_nsec;
    bool begins;
};

/* False: memory is short, and said. */
bool slices_make(const struct timeline *run, const struct lanes *lanes, struct slices *slices);
void slices_fini(struct slices *slices);
/* From here on slices_next() is about this lane. */
void slices_of(struct slices *slices, uint32_t lane);
/* False: the lane is over. */
bool slices_next(struct slices *slices, struct slice_moment *moment);
/* Say how many events were left out, where any were. */
void slices_report(const struct slices *slices);

/* ---- names: one for each function of each type of events ---- */

struct slice_name {
    uint8_t type; /* enum timeline_type */
    uint16_t func;
    bool sends;
};
struct slice_names {
    uint32_t *ids;           /* owned; id plus 1, by type, direction and function */
    struct slice_name *list; /* owned; by id */
    uint32_t count, nwords;
};
bool slice_names_make(const struct timeline *run, struct slice_names *names);
void slice_names_fini(struct slice_names *names);
uint32_t slice_name_of(const struct slice_names *names, const struct timeline_event *event);
/* "AllReduce", "ProxyOp send"; `text` has room for TIMELINE_NAME_BYTES. */
void slice_name_text(const struct timeline *run, const struct slice_name *name, char *text);

/* ---- facts ---- */

enum slice_fact_kind {
    FACT_TYPE, /* a word */
    FACT_HAS_NO_END,
    FACT_COMM, /* number of a communicator in the run */
    FACT_DATATYPE,
    FACT_COUNT,
    FACT_BYTES,
    FACT_ROOT,
    FACT_PEER,
    FACT_SEQ,
    FACT_ALGORITHM,
    FACT_PROTOCOL,
    FACT_CHANNELS,
    FACT_STEPS,
    FACT_STEP,
    FACT_CHUNK_BYTES,
    FACT_TIMER,
    FACT_KIND_COUNT_
};
enum { SLICE_FACTS_MOST = 12 };
struct slice_fact {
    enum slice_fact_kind kind;
    uint64_t value;
};
const char *slice_fact_name(enum slice_fact_kind kind);
/* The value is a word of the run. */
bool slice_fact_is_word(enum slice_fact_kind kind);
int slice_facts(const struct timeline *run, const struct timeline_event *event,
                struct slice_fact facts[static SLICE_FACTS_MOST]);
