/* Perfetto's own form: packets of one sequence. A rank is the track of a process, a lane a track
 * below it; slices begin and end; texts are written once and then referred to by number
 * ("interned"). Numbers of fields are those of perfetto's protos/perfetto/trace. */
#include "../tool.h"
#include "out.h"
#include "proto.h"
#include "slices.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum trace_field { TRACE_PACKET = 1 };
enum packet_field {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
    PACKET_FIRST = 87
};
enum packet_flag { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum track_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_PARENT = 5,
    TRACK_CHILD_ORDER = 11,
    TRACK_RANK = 12
};
enum { ORDER_EXPLICIT = 3 }; /* children by their TRACK_RANK */
enum process_field { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum event_field {
    EVENT_CATEGORY = 3,
    EVENT_FACT = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_FLOW = 47,
    EVENT_LAST_FLOW = 48
};
enum event_type { SLICE_BEGIN = 1, SLICE_END = 2 };
enum fact_field {
    FACT_FIELD_NAME = 1,
    FACT_FIELD_NUMBER = 3,
    FACT_FIELD_SIGNED = 4,
    FACT_FIELD_TEXT = 6,
    FACT_FIELD_DICT = 11,
    FACT_FIELD_WORD = 17
};
enum interned_field {
    INTERNED_CATEGORIES = 1,
    INTERNED_NAMES = 2,
    INTERNED_FACTS = 3,
    INTERNED_WORDS = 29
};
enum { TEXT_NUMBER = 1, TEXT_TEXT = 2 }; /* of each interned text */

/* Numbers of texts begin with 1. Names of facts: their kinds, two of a state, then words. */
enum { NAME_OF_AT = FACT_KIND_COUNT_ + 1, NAME_OF_VALUE, NAMES_BEFORE_WORDS = NAME_OF_VALUE };

struct writing {
    const struct timeline *run;
    struct lanes lanes;
    struct slices slices;
    struct slice_names names;
    uint32_t *last_part; /* owned; of an operation: the part that begins last */
    int64_t base_nsec;
    struct proto packet;
    struct out *out;
};

static size_t begin_packet(struct writing *writing)
{
    proto_clear(&writing->packet);
    size_t begun = proto_begin(&writing->packet, TRACE_PACKET);
    proto_number(&writing->packet, PACKET_SEQUENCE, 1);
    return begun;
}

static void end_packet(struct writing *writing, size_t begun)
{
    proto_end(&writing->packet, begun);
    if (!writing->packet.failed)
        out_bytes(writing->out, writing->packet.bytes, writing->packet.used);
}

/* ---- texts and tracks ---- */

static void put_interned(struct proto *packet, int field, uint64_t number, const char *text)
{
    size_t begun = proto_begin(packet, field);
    proto_number(packet, TEXT_NUMBER, number);
    proto_text(packet, TEXT_TEXT, text);
    proto_end(packet, begun);
}

/* The first packet: all texts that events refer to. */
static void put_texts(struct writing *writing)
{
    struct proto *packet = &writing->packet;
    char name[TIMELINE_NAME_BYTES];
    size_t begun = begin_packet(writing);
    proto_number(packet, PACKET_FLAGS, FLAG_STATE_CLEARED);
    proto_number(packet, PACKET_FIRST, 1);
    size_t texts = proto_begin(packet, PACKET_INTERNED);
    for (int type = 0; type < TIMELINE_TYPE_COUNT_; type++) {
        put_interned(packet, INTERNED_CATEGORIES, (uint64_t)type + 1,
                     timeline_type_name((enum timeline_type)type));
    }
    for (uint32_t n = 0; n < writing->names.count; n++) {
        slice_name_text(writing->run, &writing->names.list[n], name);
        put_interned(packet, INTERNED_NAMES, (uint64_t)n + 1, name);
    }
    for (int kind = 0; kind < FACT_KIND_COUNT_; kind++) {
        put_interned(packet, INTERNED_FACTS, (uint64_t)kind + 1,
                     slice_fact_name((enum slice_fact_kind)kind));
    }
    put_interned(packet, INTERNED_FACTS, NAME_OF_AT, "at_ns");
    put_interned(packet, INTERNED_FACTS, NAME_OF_VALUE, "value");
    for (uint32_t w = 1; w < writing->run->nwords; w++) {
        put_interned(packet, INTERNED_FACTS, NAMES_BEFORE_WORDS + (uint64_t)w,
                     writing->run->words[w]);
        put_interned(packet, INTERNED_WORDS, w, writing->run->words[w]);
    }
    proto_end(packet, texts);
    end_packet(writing, begun);
}

static uint64_t track_of(const struct writing *writing, uint32_t lane)
{
    return (uint64_t)writing->lanes.ngroups + lane + 1; /* those of groups come first, from 1 */
}

/* Process ids may be alike on several hosts, and ranks of one process: a rank's is its number. */
static void put_tracks(struct writing *writing)
{
    const struct lanes *lanes = &writing->lanes;
    struct proto *packet = &writing->packet;
    char name[200];
    for (uint32_t g = 0; g < lanes->ngroups; g++) {
        lanes_group_name(writing->run, lanes, g, name, sizeof(name));
        size_t begun = begin_packet(writing), track = proto_begin(packet, PACKET_TRACK);
        proto_number(packet, TRACK_UUID, (uint64_t)g + 1);
        proto_number(packet, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
        size_t process = proto_begin(packet, TRACK_PROCESS);
        proto_number(packet, PROCESS_PID, (uint64_t)g + 1);
        proto_text(packet, PROCESS_NAME, name);
        proto_end(packet, process);
        proto_end(packet, track);
        end_packet(writing, begun);
    }
    for (uint32_t l = 0; l < lanes->nlanes; l++) {
        lanes_name(writing->run, &lanes->lanes[l], name, sizeof(name));
        size_t begun = begin_packet(writing), track = proto_begin(packet, PACKET_TRACK);
        proto_number(packet, TRACK_UUID, track_of(writing, l));
        proto_number(packet, TRACK_PARENT, (uint64_t)lanes->lanes[l].group + 1);
        proto_text(packet, TRACK_NAME, name);
        proto_number(packet, TRACK_RANK, l);
        proto_end(packet, track);
        end_packet(writing, begun);
    }
}

/* ---- events ---- */

static void put_fact(struct writing *writing, const struct slice_fact *fact)
{
    struct proto *packet = &writing->packet;
    char id[OUT_ID_BYTES];
    size_t begun = proto_begin(packet, EVENT_FACT);
    proto_number(packet, FACT_FIELD_NAME, (uint64_t)fact->kind + 1);
    if (slice_fact_is_word(fact->kind)) {
        proto_number(packet, FACT_FIELD_WORD, fact->value);
    } else if (fact->kind == FACT_COMM) {
        out_id_text(id, writing->run->comms[fact->value].id);
        proto_text(packet, FACT_FIELD_TEXT, id);
    } else {
        proto_number(packet, FACT_FIELD_NUMBER, fact->value);
    }
    proto_end(packet, begun);
}

static void put_part_of_state(struct proto *packet, uint64_t name, int field, uint64_t value)
{
    size_t begun = proto_begin(packet, FACT_FIELD_DICT);
    proto_number(packet, FACT_FIELD_NAME, name);
    proto_number(packet, field, value);
    proto_end(packet, begun);
}

static void put_facts(struct writing *writing, const struct timeline_event *event)
{
    const struct timeline *run = writing->run;
    struct proto *packet = &writing->packet;
    struct slice_fact facts[SLICE_FACTS_MOST];
    int nfacts = slice_facts(run, event, facts);
    for (int k = 0; k < nfacts; k++)
        put_fact(writing, &facts[k]);
    for (uint32_t s = event->states; s != TIMELINE_NONE; s = run->states[s].next) {
        const struct timeline_state *state = &run->states[s];
        size_t begun = proto_begin(packet, EVENT_FACT);
        proto_number(packet, FACT_FIELD_NAME, NAMES_BEFORE_WORDS + (uint64_t)state->name);
        put_part_of_state(packet, NAME_OF_AT, FACT_FIELD_SIGNED,
                          (uint64_t)(state->at_nsec - writing->base_nsec));
        if (state->value) put_part_of_state(packet, NAME_OF_VALUE, FACT_FIELD_NUMBER, state->value);
        proto_end(packet, begun);
    }
}

/* An arrow through the slices of one flow goes in the order of time, and ends at the last one. */
static void put_flow(struct writing *writing, uint32_t part)
{
    uint32_t operation = writing->run->parts[part].operation;
    if (writing->run->operations[operation].count < 2) return;
    bool last = writing->last_part[operation] == part;
    proto_fixed(&writing->packet, last ? EVENT_LAST_FLOW : EVENT_FLOW, (uint64_t)operation + 1);
}

static void put_moment(struct writing *writing, uint32_t lane, const struct slice_moment *moment)
{
    const struct timeline_event *event = &writing->run->events[moment->event];
    struct proto *packet = &writing->packet;
    uint32_t part = writing->slices.parts[moment->event];
    size_t begun = begin_packet(writing);
    proto_number(packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
    proto_number(packet, PACKET_TIMESTAMP, (uint64_t)(moment->at_nsec - writing->base_nsec));
    size_t slice = proto_begin(packet, PACKET_EVENT);
    proto_number(packet, EVENT_TYPE, moment->begins ? SLICE_BEGIN : SLICE_END);
    proto_number(packet, EVENT_TRACK, track_of(writing, lane));
    if (moment->begins) {
        proto_number(packet, EVENT_CATEGORY, (uint64_t)event->type + 1);
        proto_number(packet, EVENT_NAME, (uint64_t)slice_name_of(&writing->names, event) + 1);
        put_facts(writing, event);
        if (part != TIMELINE_NONE) put_flow(writing, part);
    }
    proto_end(packet, slice);
    end_packet(writing, begun);
}

/* ---- the whole ---- */

/* Of begins at one time the one whose lane is written last. */
static bool find_last_parts(struct writing *writing)
{
    const struct timeline *run = writing->run;
    writing->last_part = tt_calloc(run->noperations + (size_t)1, sizeof(writing->last_part[0]));
    if (!writing->last_part) {
        (void)fprintf(stderr, "tutti trace: out of memory\n");
        return false;
    }
    for (uint32_t o = 0; o < run->noperations; o++) {
        const struct timeline_operation *operation = &run->operations[o];
        uint32_t *last = &writing->last_part[o];
        *last = operation->first;
        for (uint32_t p = operation->first; p < operation->first + operation->count; p++) {
            uint32_t best = run->parts[*last].event, event = run->parts[p].event;
            int64_t later = run->events[event].start_nsec - run->events[best].start_nsec;
            const uint32_t *lane = writing->lanes.of_event;
            if (later > 0 || (later == 0 && lane[event] >= lane[best])) *last = p;
        }
    }
    return true;
}

bool trace_write_perfetto(const struct timeline *run, struct out *out)
{
    struct writing writing = {.run = run, .out = out};
    struct slice_moment moment;
    bool good = lanes_make(run, &writing.lanes) &&
                slices_make(run, &writing.lanes, &writing.slices) &&
                slice_names_make(run, &writing.names) && find_last_parts(&writing);
    if (good) {
        if (run->nevents) writing.base_nsec = run->events[writing.lanes.order[0]].start_nsec;
        if (writing.base_nsec > 0) writing.base_nsec = 0;
        put_texts(&writing);
        put_tracks(&writing);
        for (uint32_t l = 0; l < writing.lanes.nlanes; l++) {
            slices_of(&writing.slices, l);
            while (slices_next(&writing.slices, &moment))
                put_moment(&writing, l, &moment);
        }
        slices_report(&writing.slices);
        if (writing.packet.failed) (void)fprintf(stderr, "tutti trace: out of memory\n");
        good = !writing.packet.failed;
    }
    proto_fini(&writing.packet);
    free(writing.last_part);
    slice_names_fini(&writing.names);
    slices_fini(&writing.slices);
    lanes_fini(&writing.lanes);
    return good;
}
