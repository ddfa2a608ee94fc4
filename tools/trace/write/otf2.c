/* An archive of OTF2, for Vampir, Scalasca and other tools of Score-P's family: Enter and Leave of
 * each event, and beside them collectives and messages as those tools know them from MPI. One
 * location is written after the other, so that memory is needed for one. */
#include "../tool.h"
#include "otf2_archive.h"

#include "base/mem.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MOST = 1 << 16 };  /* each is two files, and closing one looks at all of them */
enum { CHUNK_BYTES = 1 << 20 }; /* of events and of definitions, in memory until they are written */

void otf2_check(struct otf2_archive *archive, OTF2_ErrorCode code)
{
    if (code == OTF2_SUCCESS) return;
    if (!archive->failed) {
        (void)fprintf(stderr, "tutti trace: %s: %s\n", archive->folder,
                      archive->otf2.describe(code));
    }
    archive->failed = true;
}

/* The library's own words about what is wrong with the first error. */
static OTF2_ErrorCode receive(void *archive, const char *file, uint64_t line, const char *function,
                              OTF2_ErrorCode code, const char *format, va_list args)
{
    (void)file, (void)line, (void)function, (void)format, (void)args;
    otf2_check(archive, code);
    return code;
}

static OTF2_FlushType before_flush(void *data, OTF2_FileType type, OTF2_LocationRef location,
                                   void *caller, bool final)
{
    (void)data, (void)type, (void)location, (void)caller, (void) final;
    return OTF2_FLUSH;
}

static OTF2_TimeStamp time_of(const struct otf2_archive *archive, int64_t at_nsec)
{
    return (OTF2_TimeStamp)(at_nsec - archive->base_nsec);
}

/* ---- operations ---- */

/* The end of a part, to be written when the walk over its lane comes to its time. */
struct ending {
    uint32_t lane, part;
    int64_t at_nsec;
};
struct endings {
    struct ending *list; /* owned; by lane and time */
    bool *begun;         /* owned; of a part: its begin was written */
    uint32_t count, at;
};

static int by_time(const void *left, const void *right)
{
    const struct ending *a = left, *b = right;
    if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
    if (a->at_nsec != b->at_nsec) return a->at_nsec < b->at_nsec ? -1 : 1;
    return (a->part > b->part) - (a->part < b->part);
}

struct collective {
    const char *func;
    OTF2_CollectiveOp op;
    bool sends_all, receives_all; /* a part for each rank; else one */
    bool only_root_sends, only_root_receives;
};
static const struct collective collectives[] = {
    {"AllReduce", OTF2_COLLECTIVE_OP_ALLREDUCE, false, false, false, false},
    {"AllGather", OTF2_COLLECTIVE_OP_ALLGATHER, false, true, false, false},
    {"ReduceScatter", OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, true, false, false, false},
    {"AlltoAll", OTF2_COLLECTIVE_OP_ALLTOALL, true, true, false, false},
    {"Broadcast", OTF2_COLLECTIVE_OP_BCAST, false, false, true, false},
    {"Reduce", OTF2_COLLECTIVE_OP_REDUCE, false, false, false, true},
    {"Gather", OTF2_COLLECTIVE_OP_GATHER, false, true, false, true},
    {"Scatter", OTF2_COLLECTIVE_OP_SCATTER, true, false, true, false},
};

static const struct collective *collective_of(const struct timeline *run, uint16_t func)
{
    for (size_t k = 0; k < TT_LEN(collectives); k++) {
        if (!strcmp(collectives[k].func, timeline_word(run, func))) return &collectives[k];
    }
    return NULL;
}

/* All ranks have ended it, and all of them are members of the communicator in the archive. */
static bool is_reported(const struct otf2_archive *archive,
                        const struct timeline_operation *operation)
{
    const struct timeline *run = archive->run;
    if (!operation->whole || (operation->message && operation->count != 2)) return false;
    if (!operation->message && !collective_of(run, operation->func)) return false;
    for (uint32_t k = 0; k < operation->count; k++) {
        const struct timeline_part *part = &run->parts[operation->first + k];
        const struct timeline_event *event = &run->events[part->event];
        if (part->end_nsec == TIMELINE_OPEN || archive->comm_rank[event->member] == TIMELINE_NONE)
            return false;
    }
    return true;
}

static bool find_endings(const struct otf2_archive *archive, struct endings *endings)
{
    const struct timeline *run = archive->run;
    endings->list = tt_calloc(run->nparts + (size_t)1, sizeof(endings->list[0]));
    endings->begun = tt_calloc(run->nparts + (size_t)1, sizeof(endings->begun[0]));
    if (!endings->list || !endings->begun) return false;
    for (uint32_t o = 0; o < run->noperations; o++) {
        const struct timeline_operation *operation = &run->operations[o];
        if (!is_reported(archive, operation)) continue;
        for (uint32_t p = operation->first; p < operation->first + operation->count; p++) {
            const struct timeline_part *part = &run->parts[p];
            int64_t begin_nsec = run->events[part->event].start_nsec, end_nsec = part->end_nsec;
            endings->list[endings->count++] =
                (struct ending){archive->lanes.of_event[part->event], p,
                                end_nsec > begin_nsec ? end_nsec : begin_nsec};
        }
    }
    if (endings->count) qsort(endings->list, endings->count, sizeof(endings->list[0]), by_time);
    return true;
}

/* The place of a rank in its communicator, by the parts of an operation, which are in the order of
 * ranks. */
static uint32_t root_of(const struct otf2_archive *archive,
                        const struct timeline_operation *operation, int rank)
{
    const struct timeline *run = archive->run;
    uint32_t low = operation->first, high = operation->first + operation->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t member = run->events[run->parts[middle].event].member;
        if (run->members[member].rank == rank) return archive->comm_rank[member];
        if (run->members[member].rank < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return OTF2_COLLECTIVE_ROOT_NONE;
}

static uint64_t bytes_of(const struct timeline *run, const struct timeline_event *event)
{
    return event->count * timeline_type_bytes(run, event->datatype);
}

static void end_collective(struct otf2_archive *archive, OTF2_EvtWriter *writer,
                           const struct timeline_operation *operation, const struct ending *ending)
{
    const struct timeline *run = archive->run;
    const struct timeline_event *event = &run->events[run->parts[ending->part].event];
    const struct collective *collective = collective_of(run, operation->func);
    uint64_t bytes = bytes_of(run, event), all = bytes * operation->count;
    uint32_t root = OTF2_COLLECTIVE_ROOT_NONE;
    if (collective->only_root_sends || collective->only_root_receives)
        root = root_of(archive, operation, event->peer);
    bool is_root = root == archive->comm_rank[event->member];
    uint64_t sent = collective->sends_all ? all : bytes;
    uint64_t received = collective->receives_all ? all : bytes;
    if (collective->only_root_sends && !is_root) sent = 0;
    if (collective->only_root_receives && !is_root) received = 0;
    otf2_check(archive, archive->otf2.collective_ends(
                            writer, NULL, time_of(archive, ending->at_nsec), collective->op,
                            operation->comm, root, sent, received, ending->part));
}

/* Of a message: the Send is its first part, the Recv its second. */
static void end_part(struct otf2_archive *archive, OTF2_EvtWriter *writer,
                     const struct ending *ending)
{
    const struct timeline *run = archive->run;
    const struct timeline_operation *operation =
        &run->operations[run->parts[ending->part].operation];
    const struct timeline_event *sender = &run->events[run->parts[operation->first].event];
    OTF2_TimeStamp at = time_of(archive, ending->at_nsec);
    if (!operation->message) {
        end_collective(archive, writer, operation, ending);
    } else if (ending->part == operation->first) {
        otf2_check(archive, archive->otf2.send_ends(writer, NULL, at, ending->part));
    } else {
        otf2_check(archive, archive->otf2.receive_ends(
                                writer, NULL, at, archive->comm_rank[sender->member],
                                operation->comm, 0, bytes_of(run, sender), ending->part));
    }
}

static void begin_part(struct otf2_archive *archive, OTF2_EvtWriter *writer, uint32_t part,
                       OTF2_TimeStamp at)
{
    const struct timeline *run = archive->run;
    const struct timeline_operation *operation = &run->operations[run->parts[part].operation];
    if (!operation->message) {
        otf2_check(archive, archive->otf2.collective_begins(writer, NULL, at, part));
    } else if (part == operation->first) {
        const struct timeline_event *sender = &run->events[run->parts[part].event];
        uint32_t receiver = run->events[run->parts[part + 1].event].member;
        otf2_check(archive,
                   archive->otf2.send_begins(writer, NULL, at, archive->comm_rank[receiver],
                                             operation->comm, 0, bytes_of(run, sender), part));
    } else {
        otf2_check(archive, archive->otf2.receive_begins(writer, NULL, at, part));
    }
}

/* A walk over a lane, in order of time. */
struct walk {
    OTF2_EvtWriter *writer;
    struct endings *endings;
    uint32_t lane, depth;
    uint32_t states[LANE_DEEPEST]; /* of the events that have begun, the next ones */
    int64_t last_nsec;             /* of what was written last */
};

/* Ends of this lane before `until_nsec`, of parts that have begun. */
static void write_endings(struct otf2_archive *archive, struct walk *walk, int64_t until_nsec)
{
    struct endings *endings = walk->endings;
    for (; endings->at < endings->count; endings->at++) {
        const struct ending *ending = &endings->list[endings->at];
        if (ending->lane > walk->lane) return;
        if (ending->lane == walk->lane && ending->at_nsec >= until_nsec) return;
        if (!endings->begun[ending->part]) continue;
        end_part(archive, walk->writer, ending);
        walk->last_nsec = ending->at_nsec;
    }
}

/* ---- states ---- */

/* Where the next state of those that have begun is; NULL: none has one. */
static uint32_t *earliest_state(const struct otf2_archive *archive, struct walk *walk)
{
    const struct timeline_state *states = archive->run->states;
    uint32_t *found = NULL;
    for (uint32_t k = 0; k < walk->depth; k++) {
        uint32_t *link = &walk->states[k];
        if (*link == TIMELINE_NONE) continue;
        if (!found || states[*link].at_nsec < states[*found].at_nsec) found = link;
    }
    return found;
}

/* Neither before what is written nor behind the end of its event. */
static void write_state(struct otf2_archive *archive, struct walk *walk, uint32_t *link,
                        int64_t latest_nsec)
{
    const struct timeline_state *state = &archive->run->states[*link];
    int64_t at_nsec = state->at_nsec > walk->last_nsec ? state->at_nsec : walk->last_nsec;
    if (at_nsec > latest_nsec) at_nsec = latest_nsec;
    if (state->value) {
        otf2_check(archive,
                   archive->otf2.add_number(archive->facts, OTF2_STATE_VALUE, state->value));
    }
    otf2_check(archive,
               archive->otf2.parameter(walk->writer, archive->facts, time_of(archive, at_nsec),
                                       OTF2_STATE_PARAMETER, (OTF2_StringRef)state->name));
    walk->last_nsec = at_nsec;
    *link = state->next;
}

/* States, and ends of parts, before `until_nsec`. */
static void write_until(struct otf2_archive *archive, struct walk *walk, int64_t until_nsec)
{
    for (;;) {
        uint32_t *link = earliest_state(archive, walk);
        int64_t next_nsec = link ? archive->run->states[*link].at_nsec : INT64_MAX;
        write_endings(archive, walk, next_nsec < until_nsec ? next_nsec : until_nsec);
        if (!link || next_nsec >= until_nsec || archive->failed) return;
        write_state(archive, walk, link, until_nsec);
    }
}

/* ---- events ---- */

static void add_facts(struct otf2_archive *archive, const struct timeline_event *event)
{
    struct slice_fact facts[SLICE_FACTS_MOST];
    int nfacts = slice_facts(archive->run, event, facts);
    for (int k = 0; k < nfacts; k++) {
        OTF2_AttributeRef fact = (OTF2_AttributeRef)facts[k].kind;
        if (slice_fact_is_word(facts[k].kind)) {
            otf2_check(archive, archive->otf2.add_text(archive->facts, fact,
                                                       (OTF2_StringRef)facts[k].value));
        } else {
            uint64_t value = facts[k].value;
            if (facts[k].kind == FACT_COMM) value = archive->run->comms[value].id;
            otf2_check(archive, archive->otf2.add_number(archive->facts, fact, value));
        }
    }
}

static void write_begin(struct otf2_archive *archive, struct walk *walk,
                        const struct slice_moment *moment)
{
    const struct timeline *run = archive->run;
    const struct timeline_event *event = &run->events[moment->event];
    OTF2_TimeStamp at = time_of(archive, moment->at_nsec);
    uint32_t part = archive->slices.parts[moment->event];
    bool *begun = walk->endings->begun;
    add_facts(archive, event);
    otf2_check(archive, archive->otf2.enter(walk->writer, archive->facts, at,
                                            slice_name_of(&archive->names, event)));
    walk->states[walk->depth++] = event->states;
    if (part == TIMELINE_NONE || !begun) return;
    begun[part] = is_reported(archive, &run->operations[run->parts[part].operation]);
    if (begun[part]) begin_part(archive, walk->writer, part, at);
}

static void write_end(struct otf2_archive *archive, struct walk *walk,
                      const struct slice_moment *moment)
{
    const struct timeline_event *event = &archive->run->events[moment->event];
    uint32_t *link = &walk->states[walk->depth - 1];
    while (*link != TIMELINE_NONE && !archive->failed)
        write_state(archive, walk, link, moment->at_nsec);
    otf2_check(archive, archive->otf2.leave(walk->writer, NULL, time_of(archive, moment->at_nsec),
                                            slice_name_of(&archive->names, event)));
    walk->depth--;
}

static void write_lane(struct otf2_archive *archive, uint32_t lane, struct endings *endings)
{
    struct slice_moment moment;
    struct walk walk = {.lane = lane, .endings = endings, .last_nsec = archive->base_nsec};
    walk.writer = archive->otf2.events_of(archive->archive, lane);
    if (!walk.writer) {
        otf2_check(archive, OTF2_ERROR_PROCESSED_WITH_FAULTS);
        return;
    }
    slices_of(&archive->slices, lane);
    while (!archive->failed && slices_next(&archive->slices, &moment)) {
        write_until(archive, &walk, moment.at_nsec);
        if (moment.begins) {
            write_begin(archive, &walk, &moment);
        } else {
            write_end(archive, &walk, &moment);
        }
        walk.last_nsec = moment.at_nsec;
    }
    if (!archive->failed) write_until(archive, &walk, INT64_MAX);
    otf2_check(archive, archive->otf2.count_events(walk.writer, &archive->nevents[lane]));
    otf2_check(archive, archive->otf2.close_events_of(archive->archive, walk.writer));
}

/* Readers look for a file of definitions of each location, though none has its own. */
static void write_local_definitions(struct otf2_archive *archive)
{
    otf2_check(archive, archive->otf2.open_definitions(archive->archive));
    for (uint32_t l = 0; l < archive->lanes.nlanes && !archive->failed; l++) {
        OTF2_DefWriter *writer = archive->otf2.definitions_of(archive->archive, l);
        otf2_check(archive, writer ? archive->otf2.close_definitions_of(archive->archive, writer)
                                   : OTF2_ERROR_PROCESSED_WITH_FAULTS);
    }
    otf2_check(archive, archive->otf2.close_definitions(archive->archive));
}

static void write_events(struct otf2_archive *archive, struct endings *endings)
{
    otf2_check(archive, archive->otf2.open_events(archive->archive));
    for (uint32_t l = 0; l < archive->lanes.nlanes && !archive->failed; l++)
        write_lane(archive, l, endings);
    otf2_check(archive, archive->otf2.close_events(archive->archive));
    slices_report(&archive->slices);
}

/* ---- the archive ---- */

/* Readers take an archive without a location for a broken one. */
static bool has_events(const struct timeline *run)
{
    if (!run->nevents)
        (void)fprintf(stderr, "tutti trace: no event was read, and an archive needs one\n");
    return run->nevents > 0;
}

static bool has_room(const struct otf2_archive *archive)
{
    if (archive->lanes.nlanes <= LANES_MOST) return true;
    (void)fprintf(stderr,
                  "tutti trace: %u lanes, of which an archive has %d at most, as each is two "
                  "files: --types leaves some out, --to perfetto has them all\n",
                  archive->lanes.nlanes, LANES_MOST);
    return false;
}

/* An older archive's files would stand among the new one's. */
static bool is_free(const char *folder)
{
    DIR *stream = opendir(folder);
    const struct dirent *entry = NULL;
    bool empty = true;
    while (stream &&
           (entry = readdir(stream)) != NULL) /* NOLINT(concurrency-mt-unsafe): one thread */
        empty = empty && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."));
    if (stream) closedir(stream);
    if (!empty) {
        (void)fprintf(stderr,
                      "tutti trace: %s is there and not empty: an archive needs a folder "
                      "of its own\n",
                      folder);
    }
    return empty;
}

static bool make(struct otf2_archive *archive)
{
    const struct timeline *run = archive->run;
    bool good = lanes_make(run, &archive->lanes) &&
                slices_make(run, &archive->lanes, &archive->slices) &&
                slice_names_make(run, &archive->names);
    if (!good) return false;
    archive->nevents = tt_calloc(archive->lanes.nlanes + (size_t)1, sizeof(archive->nevents[0]));
    good = archive->nevents && otf2_make_ranks(archive);
    if (!good) (void)fprintf(stderr, "tutti trace: out of memory\n");
    if (good && run->nevents) {
        int64_t first_nsec = run->events[archive->lanes.order[0]].start_nsec;
        if (first_nsec < 0) archive->base_nsec = first_nsec;
    }
    return good;
}

static void write_all(struct otf2_archive *archive)
{
    static const OTF2_FlushCallbacks flush = {before_flush, NULL};
    struct endings endings = {0};
    archive->archive =
        archive->otf2.open(archive->folder, "traces", OTF2_FILEMODE_WRITE, CHUNK_BYTES, CHUNK_BYTES,
                           OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    archive->facts = archive->otf2.facts_new();
    if (!archive->archive || !archive->facts || !find_endings(archive, &endings))
        otf2_check(archive, OTF2_ERROR_PROCESSED_WITH_FAULTS);
    if (!archive->failed) {
        otf2_check(archive, archive->otf2.set_flush(archive->archive, &flush, NULL));
        otf2_check(archive, archive->otf2.set_serial(archive->archive));
        otf2_check(archive, archive->otf2.set_creator(archive->archive, "tutti trace"));
    }
    if (!archive->failed) write_events(archive, &endings);
    if (!archive->failed) write_local_definitions(archive);
    if (!archive->failed) otf2_write_definitions(archive);
    free(endings.list);
    free(endings.begun);
    if (archive->facts) archive->otf2.facts_delete(archive->facts);
    if (archive->archive) otf2_check(archive, archive->otf2.close(archive->archive));
}

bool trace_write_otf2(const struct timeline *run, const char *folder)
{
    struct otf2_archive archive = {.run = run, .folder = folder};
    bool good = has_events(run) && is_free(folder) && otf2_open(&archive.otf2) && make(&archive);
    good = good && has_room(&archive);
    if (good) {
        OTF2_ErrorCallback before = archive.otf2.on_error(receive, &archive);
        write_all(&archive);
        (void)archive.otf2.on_error(before, NULL);
    }
    otf2_close(&archive.otf2);
    free(archive.ranks);
    free(archive.comm_rank);
    free(archive.station);
    free(archive.nevents);
    slice_names_fini(&archive.names);
    slices_fini(&archive.slices);
    lanes_fini(&archive.lanes);
    return good && !archive.failed;
}
