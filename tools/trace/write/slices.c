/* Lanes walked through from their first begin to their last end. */
#include "slices.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- moments ---- */

bool slices_make(const struct timeline *run, const struct lanes *lanes, struct slices *slices)
{
    memset(slices, 0, sizeof(*slices));
    slices->run = run;
    slices->lanes = lanes;
    slices->events = tt_calloc(run->nevents + (size_t)1, sizeof(slices->events[0]));
    slices->parts = tt_calloc(run->nevents + (size_t)1, sizeof(slices->parts[0]));
    slices->first = tt_calloc(lanes->nlanes + (size_t)2, sizeof(slices->first[0]));
    if (!slices->events || !slices->parts || !slices->first) {
        (void)fprintf(stderr, "tutti trace: out of memory\n");
        return false;
    }
    memset(slices->parts, 0xff, run->nevents * sizeof(slices->parts[0]));
    for (uint32_t p = 0; p < run->nparts; p++)
        slices->parts[run->parts[p].event] = p;
    /* first[l + 2] counts, then first[l + 1] is where the next event of lane l goes */
    for (uint32_t e = 0; e < run->nevents; e++)
        slices->first[lanes->of_event[e] + 2]++;
    for (uint32_t l = 2; l < lanes->nlanes + 2; l++)
        slices->first[l] += slices->first[l - 1];
    for (uint32_t i = 0; i < run->nevents; i++)
        slices->events[slices->first[lanes->of_event[lanes->order[i]] + 1]++] = lanes->order[i];
    return true;
}

void slices_fini(struct slices *slices)
{
    free(slices->events);
    free(slices->parts);
    free(slices->first);
    memset(slices, 0, sizeof(*slices));
}

void slices_of(struct slices *slices, uint32_t lane)
{
    slices->at = slices->first[lane];
    slices->last = slices->first[lane + 1];
    slices->depth = 0;
}

static int64_t end_of(const struct slices *slices, uint32_t event)
{
    const struct timeline_event *e = &slices->run->events[event];
    int64_t end_nsec = lanes_end(slices->lanes, e);
    return end_nsec > e->start_nsec ? end_nsec : e->start_nsec;
}

/* End the innermost open event if the next one begins after it, or none follows. */
static bool end_inner(struct slices *slices, struct slice_moment *moment)
{
    if (slices->depth == 0) return false;
    uint32_t inner = slices->open[slices->depth - 1];
    int64_t end_nsec = end_of(slices, inner);
    bool inside = slices->at < slices->last &&
                  slices->run->events[slices->events[slices->at]].start_nsec < end_nsec;
    if (inside) return false;
    slices->depth--;
    *moment = (struct slice_moment){inner, end_nsec, false};
    return true;
}

/* Begin the next event inside the innermost open one, unless it lies across that one's end. */
static bool begin_next(struct slices *slices, struct slice_moment *moment)
{
    uint32_t next = slices->events[slices->at++];
    int64_t end_nsec =
        slices->depth > 0 ? end_of(slices, slices->open[slices->depth - 1]) : INT64_MAX;
    if (slices->depth == LANE_DEEPEST || end_of(slices, next) > end_nsec) {
        slices->left_out++;
        return false;
    }
    slices->open[slices->depth++] = next;
    *moment = (struct slice_moment){next, slices->run->events[next].start_nsec, true};
    return true;
}

bool slices_next(struct slices *slices, struct slice_moment *moment)
{
    while (slices->at < slices->last || slices->depth > 0) {
        if (end_inner(slices, moment)) return true;
        if (slices->at < slices->last && begin_next(slices, moment)) return true;
    }
    return false;
}

void slices_report(const struct slices *slices)
{
    if (!slices->left_out) return;
    (void)fprintf(stderr,
                  "tutti trace: %llu events are left out: they lie across others of their lane, "
                  "which has no more rows\n",
                  (unsigned long long)slices->left_out);
}

/* ---- names ---- */

static size_t slot_of(const struct slice_names *names, const struct slice_name *name)
{
    return ((size_t)name->type * 2 + name->sends) * names->nwords + name->func;
}

static struct slice_name name_of(const struct timeline_event *event)
{
    struct slice_name name = {.type = event->type};
    if (event->type != TIMELINE_KERNEL_PHASE) name.func = event->func;
    name.sends = event->type == TIMELINE_PROXY_OP && !name.func && event->flag;
    return name;
}

bool slice_names_make(const struct timeline *run, struct slice_names *names)
{
    memset(names, 0, sizeof(*names));
    size_t slots = (size_t)TIMELINE_TYPE_COUNT_ * 2 * run->nwords;
    names->nwords = run->nwords;
    names->ids = tt_calloc(slots, sizeof(names->ids[0]));
    names->list = tt_calloc(slots, sizeof(names->list[0]));
    if (!names->ids || !names->list) {
        (void)fprintf(stderr, "tutti trace: out of memory\n");
        return false;
    }
    for (uint32_t e = 0; e < run->nevents; e++) {
        struct slice_name name = name_of(&run->events[e]);
        uint32_t *id = &names->ids[slot_of(names, &name)];
        if (*id) continue;
        names->list[names->count++] = name;
        *id = names->count;
    }
    return true;
}

void slice_names_fini(struct slice_names *names)
{
    free(names->ids);
    free(names->list);
    memset(names, 0, sizeof(*names));
}

uint32_t slice_name_of(const struct slice_names *names, const struct timeline_event *event)
{
    struct slice_name name = name_of(event);
    return names->ids[slot_of(names, &name)] - 1;
}

void slice_name_text(const struct timeline *run, const struct slice_name *name, char *text)
{
    const char *what = name->func ? timeline_word(run, name->func)
                                  : timeline_type_name((enum timeline_type)name->type);
    const char *direction = "";
    if (name->type == TIMELINE_PROXY_OP && !name->func)
        direction = name->sends ? " send" : " receive";
    (void)snprintf(text, TIMELINE_NAME_BYTES, "%s%s", what, direction);
}

/* ---- facts ---- */

const char *slice_fact_name(enum slice_fact_kind kind)
{
    static const char *const names[FACT_KIND_COUNT_] = {
        "type", "has_no_end", "comm",     "datatype", "count", "bytes", "root",        "peer",
        "seq",  "algorithm",  "protocol", "channels", "steps", "step",  "chunk_bytes", "timer"};
    return names[kind];
}

bool slice_fact_is_word(enum slice_fact_kind kind)
{
    return kind == FACT_TYPE || kind == FACT_DATATYPE || kind == FACT_ALGORITHM ||
           kind == FACT_PROTOCOL;
}

static int add(struct slice_fact *facts, int n, enum slice_fact_kind kind, uint64_t value)
{
    facts[n] = (struct slice_fact){kind, value};
    return n + (value != 0 || !slice_fact_is_word(kind)); /* word 0 is no word */
}

int slice_facts(const struct timeline *run, const struct timeline_event *event,
                struct slice_fact facts[static SLICE_FACTS_MOST])
{
    enum timeline_type type = (enum timeline_type)event->type;
    bool operation = type == TIMELINE_COLL || type == TIMELINE_P2P || type == TIMELINE_CE_COLL;
    bool call = type == TIMELINE_COLL_API || type == TIMELINE_P2P_API;
    uint32_t comm =
        event->member == TIMELINE_NONE ? TIMELINE_NONE : run->members[event->member].comm;
    int n = add(facts, 0, FACT_TYPE, (uint64_t)type + 1); /* its word */
    if (event->stop_nsec == TIMELINE_OPEN) n = add(facts, n, FACT_HAS_NO_END, 1);
    if (comm != TIMELINE_NONE) n = add(facts, n, FACT_COMM, comm);
    if (operation || call) {
        n = add(facts, n, FACT_DATATYPE, event->datatype);
        n = add(facts, n, FACT_COUNT, event->count);
        n = add(facts, n, FACT_BYTES, event->count * timeline_type_bytes(run, event->datatype));
        if (event->peer >= 0)
            n = add(facts, n, type == TIMELINE_P2P ? FACT_PEER : FACT_ROOT, (uint64_t)event->peer);
    }
    if (operation) {
        n = add(facts, n, FACT_SEQ, event->seq);
        n = add(facts, n, FACT_ALGORITHM, event->algo);
        n = add(facts, n, FACT_PROTOCOL, event->proto);
        n = add(facts, n, FACT_CHANNELS, event->channel);
    }
    if (type == TIMELINE_PROXY_OP) {
        if (event->peer >= 0) n = add(facts, n, FACT_PEER, (uint64_t)event->peer);
        n = add(facts, n, FACT_STEPS, (uint64_t)event->steps);
        n = add(facts, n, FACT_CHUNK_BYTES, (uint64_t)event->chunk_bytes);
    }
    if (type == TIMELINE_PROXY_STEP) n = add(facts, n, FACT_STEP, (uint64_t)event->steps);
    if (type == TIMELINE_KERNEL_CH) n = add(facts, n, FACT_TIMER, event->seq);
    return n;
}
