/* Lines into events: the members of a line become the fields of an event, whatever its type. */
#include "reader.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { LATEST = 1 << 22 };     /* lines that wait for the begin of their event */
enum { FORMAT_VERSION = 1 };   /* of the lines */
enum { MOST_RANKS = 1 << 20 }; /* of a communicator; more is no sound file */
/* Of which the states and the many small events are left out from half of the limit on. */
static const uint32_t small_types = 1u << TIMELINE_PROXY_STEP | 1u << TIMELINE_NET_PLUGIN;

static uint64_t number(const struct timeline *run, enum line_member member)
{
    return line_number(&run->reader->line, member, 0);
}

static int whole(const struct timeline *run, enum line_member member, int otherwise)
{
    return (int)line_number(&run->reader->line, member, (uint64_t)(int64_t)otherwise);
}

static uint16_t word(struct timeline *run, enum line_member member)
{
    const struct line *line = &run->reader->line;
    const struct line_value *value = &line->values[member];
    if (!line_has(line, member) || !value->is_text) return 0;
    uint16_t known = value->word ? *value->word : 0;
    if (known) return known;
    uint16_t found = timeline_word_of(run, value->text, value->bytes);
    if (value->word) *value->word = found;
    return found;
}

static void text(const struct timeline *run, enum line_member member, char *to, size_t bytes)
{
    const struct line *line = &run->reader->line;
    const struct line_value *value = &line->values[member];
    to[0] = '\0';
    if (line_has(line, member) && value->is_text)
        timeline_plain(to, bytes, value->text, value->bytes);
}

/* ---- who ---- */

static void take_head(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    timeline_end_process(run);
    if (!timeline_grow(run, &run->processes, run->nprocesses, sizeof(run->processes[0]))) return;
    struct timeline_process *process = &run->processes[run->nprocesses];
    *process = (struct timeline_process){
        .pid = whole(run, LINE_PID, 0),
        .api = whole(run, LINE_API, 0),
        .mask = whole(run, LINE_MASK, 0),
        .file = reader->file,
        .runs = timeline_is_written(reader->fd, whole(run, LINE_PID, 0)),
        .wall_nsec = number(run, LINE_WALL),
        .mono_nsec = number(run, LINE_MONO),
        .first_member = run->nmembers,
        .first_thread = run->nthreads,
        .first_event = run->nevents,
        .last_event = run->nevents,
    };
    if (process->wall_nsec > TIMELINE_LATEST_NSEC || process->mono_nsec > TIMELINE_LATEST_NSEC)
        process->wall_nsec = process->mono_nsec = 0;
    text(run, LINE_HOST, process->host, sizeof(process->host));
    text(run, LINE_EXE, process->exe, sizeof(process->exe));
    text(run, LINE_FLIGHT_WHY, process->flight, sizeof(process->flight));
    reader->process = run->nprocesses++;
    uint64_t version = line_number(&reader->line, LINE_VERSION, FORMAT_VERSION);
    if (version == FORMAT_VERSION) return;
    timeline_complain(run, COMPLAINT_VERSION, reader->number,
                      "version %llu of the format, of which only %d is known: lines and members "
                      "that are known are used",
                      (unsigned long long)version, FORMAT_VERSION);
}

/* TIMELINE_NONE: memory is short. */
static uint32_t comm_of(struct timeline *run, uint64_t id)
{
    struct timeline_reader *reader = run->reader;
    uint32_t comm = ids_get(&reader->comms, id);
    if (comm != UINT32_MAX) return comm;
    if (!timeline_grow(run, &run->comms, run->ncomms, sizeof(run->comms[0]))) return TIMELINE_NONE;
    if (!ids_put(&reader->comms, id, run->ncomms)) return TIMELINE_NONE;
    run->comms[run->ncomms] = (struct timeline_comm){.id = id, .nnodes = -1};
    return run->ncomms++;
}

static void take_comm(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    uint64_t key = number(run, LINE_C);
    int rank = whole(run, LINE_RANK, -1), nranks = whole(run, LINE_NRANKS, -1);
    if (ids_get(&reader->members, key) != UINT32_MAX) {
        timeline_complain(run, COMPLAINT_MEMBER, reader->number,
                          "a second communicator of number %llu", (unsigned long long)key);
        return;
    }
    if (nranks > 0 && timeline_is_older_dump(run, line_hex(&reader->line, LINE_COMM_ID), rank)) {
        (void)ids_put(&reader->members, key, TIMELINE_DROPPED);
        return;
    }
    if (!timeline_grow(run, &run->members, run->nmembers, sizeof(run->members[0]))) return;
    uint32_t comm = TIMELINE_NONE;
    if (nranks > MOST_RANKS || rank < -1 || (nranks > 0 && rank >= nranks)) {
        timeline_complain(run, COMPLAINT_MEMBER, reader->number, "rank %d of %d", rank, nranks);
        return;
    }
    if (nranks > 0) {
        comm = comm_of(run, line_hex(&reader->line, LINE_COMM_ID));
        if (comm == TIMELINE_NONE) return;
        struct timeline_comm *about = &run->comms[comm];
        if (!about->nranks) text(run, LINE_NAME, about->name, sizeof(about->name));
        if (about->nranks && about->nranks != nranks) {
            timeline_complain(run, COMPLAINT_MEMBER, reader->number,
                              "a communicator of %d ranks that has %d elsewhere", nranks,
                              about->nranks);
        }
        if (!about->nranks) about->nranks = nranks;
        about->nnodes = whole(run, LINE_NNODES, -1);
    }
    run->members[run->nmembers] = (struct timeline_member){.process = reader->process,
                                                           .comm = comm,
                                                           .number = (uint32_t)key,
                                                           .rank = rank,
                                                           .flight = TIMELINE_NONE};
    (void)ids_put(&reader->members, key, run->nmembers++);
}

static uint32_t thread_of(struct timeline *run, int tid)
{
    struct timeline_reader *reader = run->reader;
    uint32_t thread = ids_get(&reader->threads, (uint32_t)tid);
    if (thread != UINT32_MAX) return thread;
    if (!timeline_grow(run, &run->threads, run->nthreads, sizeof(run->threads[0]))) return 0;
    run->threads[run->nthreads] = (struct timeline_thread){.process = reader->process, .tid = tid};
    (void)ids_put(&reader->threads, (uint32_t)tid, run->nthreads);
    return run->nthreads++;
}

static void take_thread(struct timeline *run)
{
    uint32_t thread = thread_of(run, whole(run, LINE_TID, 0));
    if (thread < run->nthreads)
        text(run, LINE_NAME, run->threads[thread].name, sizeof(run->threads[thread].name));
}

/* ---- what ---- */

static bool time_of(struct timeline *run, int64_t *at_nsec)
{
    uint64_t ts = line_number(&run->reader->line, LINE_TS, UINT64_MAX);
    *at_nsec = (int64_t)ts;
    if (ts <= TIMELINE_LATEST_NSEC) return true;
    timeline_complain(run, COMPLAINT_TIME, run->reader->number, "no time, or one beyond any clock");
    return false;
}

static void put_later(struct timeline *run, const struct later *later)
{
    struct timeline_reader *reader = run->reader;
    if (reader->nlaters >= LATEST) {
        timeline_complain(run, COMPLAINT_UNKNOWN, reader->number,
                          "more than %d lines wait for the begin of their event", LATEST);
    } else if (timeline_grow(run, &reader->laters, reader->nlaters, sizeof(*later))) {
        reader->laters[reader->nlaters++] = *later;
    }
}

/* How much of the limit is used: 0, 1 (half), 2 (all). Said once for a file. */
static int fullness(struct timeline *run)
{
    size_t used = run->nevents * sizeof(run->events[0]) + run->nstates * sizeof(run->states[0]);
    if (!run->limit_bytes || used < run->limit_bytes / 2) return 0;
    if (!run->reader->limit_reported) {
        timeline_complain(run, COMPLAINT_LIMIT, run->reader->number,
                          "half of the limit of memory (%zu MiB) is used: from here on without "
                          "states and the steps of proxies",
                          run->limit_bytes >> 20);
    }
    run->reader->limit_reported = true;
    return used < run->limit_bytes ? 1 : 2;
}

static bool add_state(struct timeline *run, uint32_t event, const struct later *state)
{
    uint32_t *link = &run->events[event].states;
    if (fullness(run) > 0) {
        run->left_out++;
        return true;
    }
    if (!timeline_grow(run, &run->states, run->nstates, sizeof(run->states[0]))) return false;
    /* The last comes first until timeline_end_process() turns the list. */
    run->states[run->nstates] = (struct timeline_state){
        .at_nsec = state->at_nsec, .value = state->value, .next = *link, .name = state->name};
    *link = run->nstates++;
    return true;
}

static void end_event(struct timeline *run, uint32_t event, int64_t at_nsec, uint64_t line)
{
    struct timeline_event *e = &run->events[event];
    if (e->stop_nsec != TIMELINE_OPEN) {
        timeline_complain(run, COMPLAINT_TWICE, line, "a second end of one event");
        return;
    }
    if (at_nsec < e->start_nsec) {
        timeline_complain(run, COMPLAINT_TIME, line, "an end %lld ns before its begin",
                          (long long)(e->start_nsec - at_nsec));
        at_nsec = e->start_nsec;
    }
    e->stop_nsec = at_nsec;
    run->processes[run->reader->process].open--;
}

static void fill_event(struct timeline *run, struct timeline_event *event)
{
    event->seq = number(run, LINE_SEQ);
    event->count = number(run, LINE_COUNT);
    event->peer = whole(run, LINE_PEER, -1);
    event->steps = whole(run, LINE_STEPS, whole(run, LINE_REDOP, 0));
    event->chunk_bytes = whole(run, LINE_CHUNK, 0);
    event->func = word(run, LINE_FUNC);
    event->datatype = word(run, LINE_DATATYPE);
    event->algo = word(run, LINE_ALGO);
    event->proto = word(run, LINE_PROTO);
    event->channel = (uint16_t)number(run, LINE_CHANNEL);
    event->warps = (uint8_t)number(run, LINE_WARPS);
    event->flag = number(run, LINE_FLAG) != 0;
}

/* TIMELINE_NONE: it is not known. TIMELINE_DROPPED: not kept. `comm`: see struct beginning. */
static uint32_t member_of(struct timeline *run, uint64_t key, uint64_t comm)
{
    struct timeline_reader *reader = run->reader;
    uint32_t member = ids_get(&reader->members, key);
    if (member == UINT32_MAX) {
        timeline_complain(run, COMPLAINT_MEMBER, reader->number, "no communicator of number %llu",
                          (unsigned long long)key);
    } else if (comm && member != TIMELINE_DROPPED && run->members[member].comm == TIMELINE_NONE) {
        run->members[member].comm = comm_of(run, comm);
    }
    return member;
}

/* A parent begins before its child, so that no event is above itself. */
static void set_parent(struct timeline *run, uint32_t event, uint32_t parent, uint64_t line)
{
    int64_t early = run->events[parent].start_nsec - run->events[event].start_nsec;
    if (early < 0 || (early == 0 && parent < event)) {
        run->events[event].parent = parent;
    } else {
        timeline_complain(run, COMPLAINT_TIME, line, "an event begins %lld ns before its parent",
                          (long long)early);
    }
}

void timeline_begin(struct timeline *run, const struct beginning *beginning)
{
    struct timeline_reader *reader = run->reader;
    struct timeline_process *process = &run->processes[reader->process];
    uint64_t id = beginning->id, parent = beginning->parent;
    const uint32_t bit = 1u << beginning->event.type;
    const int64_t start_nsec = beginning->event.start_nsec;
    uint32_t member = TIMELINE_NONE;
    if (!id || ids_get(&reader->events, id) != UINT32_MAX) {
        timeline_complain(run, COMPLAINT_ID, reader->number, "id %llu is %s",
                          (unsigned long long)id, id ? "an event already" : "no id");
        return;
    }
    int full = fullness(run);
    if (beginning->creator == process->pid)
        member = member_of(run, beginning->context, beginning->comm);
    bool dropped = member == TIMELINE_DROPPED;
    bool kept = !dropped && (run->types & bit) && full < (small_types & bit ? 1 : 2);
    if (!ids_put(&reader->events, id, kept ? run->nevents : TIMELINE_DROPPED) ||
        !timeline_grow(run, &run->events, run->nevents, sizeof(run->events[0]))) {
        reader->short_of_memory = true;
        return;
    }
    if (!kept) {
        run->left_out += full > 0 && !dropped;
        return;
    }
    uint32_t above = parent ? ids_get(&reader->events, parent) : TIMELINE_NONE;
    struct timeline_event *event = &run->events[run->nevents];
    *event = beginning->event;
    event->stop_nsec = TIMELINE_OPEN;
    event->member = member;
    event->states = event->parent = TIMELINE_NONE;
    event->thread = thread_of(run, beginning->tid);
    if (parent && above == TIMELINE_NONE) {
        put_later(run,
                  &(struct later){.id = parent, .event = run->nevents, .line = reader->number});
    }
    if (!process->starts || start_nsec < process->first_nsec) process->first_nsec = start_nsec;
    process->starts++;
    process->open++;
    reader->nparts += bit == 1u << TIMELINE_COLL || bit == 1u << TIMELINE_P2P;
    run->nevents++;
    process->last_event = run->nevents;
    if (above != TIMELINE_NONE && above != TIMELINE_DROPPED)
        set_parent(run, run->nevents - 1, above, reader->number);
}

static void take_start(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    int pid = run->processes[reader->process].pid;
    uint16_t type = word(run, LINE_TYPE);
    struct beginning beginning = {.id = number(run, LINE_ID),
                                  .parent = number(run, LINE_PARENT),
                                  .context = number(run, LINE_C),
                                  .creator = -1,
                                  .tid = whole(run, LINE_TID, 0)};
    if (!time_of(run, &beginning.event.start_nsec)) return;
    if (type < 1 || type > TIMELINE_TYPE_COUNT_) {
        timeline_complain(run, COMPLAINT_ID, reader->number, "no type of events is called '%s'",
                          run->words[type]);
        return;
    }
    if (line_has(&reader->line, LINE_C)) beginning.creator = whole(run, LINE_C_PID, pid);
    beginning.comm = line_hex(&reader->line, LINE_COMM_ID);
    beginning.event.type = (uint8_t)(type - 1);
    fill_event(run, &beginning.event);
    timeline_begin(run, &beginning);
}

/* `states` of an event in one line: [["name",time,value],...] */
static void take_states(struct timeline *run, uint32_t event)
{
    const struct line_value *list = &run->reader->line.values[LINE_STATES];
    const char *at = list->text, *end = list->text + list->bytes;
    if (!line_has(&run->reader->line, LINE_STATES) || !list->is_text) return;
    while (at < end && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *name = at + 1;
        const char *quote = memchr(name, '"', (size_t)(end - name));
        char *stop = NULL;
        if (!quote) return;
        struct later state = {.name = timeline_word_of(run, name, (size_t)(quote - name))};
        at = quote + 1;
        if (*at != ',') continue;
        state.at_nsec = strtoll(at + 1, &stop, 10);
        if (*stop == ',') state.value = strtoull(stop + 1, &stop, 10);
        if (state.at_nsec >= 0 && state.at_nsec <= (int64_t)TIMELINE_LATEST_NSEC)
            add_state(run, event, &state);
        at = stop;
    }
}

static void take_event(struct timeline *run)
{
    uint32_t before = run->nevents;
    uint64_t dur = number(run, LINE_DUR);
    take_start(run);
    if (run->nevents == before) return;
    take_states(run, before);
    if (line_has(&run->reader->line, LINE_DUR) && dur <= TIMELINE_LATEST_NSEC)
        end_event(run, before, run->events[before].start_nsec + (int64_t)dur, run->reader->number);
}

void timeline_moment(struct timeline *run, const struct later *moment)
{
    struct timeline_reader *reader = run->reader;
    uint32_t event = ids_get(&reader->events, moment->id);
    if (event == UINT32_MAX) {
        put_later(run, moment);
    } else if (event == TIMELINE_DROPPED) {
        run->left_out += fullness(run) > 0;
    } else if (moment->name) {
        add_state(run, event, moment);
    } else {
        end_event(run, event, moment->at_nsec, reader->number);
    }
}

/* A state (its name is a word), or an end (name 0). */
static void take_moment(struct timeline *run, uint16_t name)
{
    struct later moment = {.id = number(run, LINE_ID),
                           .value = number(run, LINE_VALUE),
                           .line = run->reader->number,
                           .event = TIMELINE_NONE,
                           .name = name};
    if (time_of(run, &moment.at_nsec)) timeline_moment(run, &moment);
}

/* What the flight recorder says of a rank, and of its messages. */
static void take_flight(struct timeline *run)
{
    const struct line *line = &run->reader->line;
    if (!line_has(line, LINE_C)) return;
    uint32_t member = member_of(run, number(run, LINE_C), line_hex(line, LINE_COMM_ID));
    if (member >= run->nmembers) return;
    if (run->reader->line.kind == LINE_MESSAGES) {
        if (!timeline_grow(run, &run->messages, run->nmessages, sizeof(run->messages[0]))) return;
        run->messages[run->nmessages++] = (struct timeline_messages){
            member, whole(run, LINE_PEER, -1), number(run, LINE_SENT), number(run, LINE_RECEIVED)};
        return;
    }
    if (!timeline_grow(run, &run->flights, run->nflights, sizeof(run->flights[0]))) return;
    uint64_t now = run->processes[run->reader->process].mono_nsec;
    uint64_t since = line_number(&run->reader->line, LINE_SINCE, UINT64_MAX);
    run->members[member].flight = run->nflights;
    if (run->members[member].comm != TIMELINE_NONE)
        run->comms[run->members[member].comm].flies = true;
    run->flights[run->nflights++] = (struct timeline_flight){
        .begun = number(run, LINE_BEGUN),
        .ended = number(run, LINE_ENDED),
        .queued = number(run, LINE_QUEUED),
        .waits_nsec = since <= now ? (int64_t)(now - since) : -1,
        .waits_for = whole(run, LINE_PEER, -1),
        .waits = word(run, LINE_WAITS),
        .member = member,
    };
}

void timeline_take(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    enum line_kind kind = reader->line.kind;
    if (kind == LINE_OTHER) return;
    if (kind == LINE_HEAD) {
        take_head(run);
        return;
    }
    if (reader->process == TIMELINE_NONE) {
        timeline_complain(run, COMPLAINT_HEAD, reader->number,
                          "a line before the first `head`: whose it is cannot be known");
        return;
    }
    struct timeline_process *process = &run->processes[reader->process];
    switch (kind) {
    case LINE_COMM: take_comm(run); break;
    case LINE_THREAD: take_thread(run); break;
    case LINE_START: take_start(run); break;
    case LINE_EVENT: take_event(run); break;
    case LINE_FLIGHT:
    case LINE_MESSAGES: take_flight(run); break;
    case LINE_STOP: take_moment(run, 0); break;
    case LINE_STATE: {
        uint16_t name = word(run, LINE_STATE_NAME);
        take_moment(run, name ? name : timeline_word_of(run, "unknown", 7));
        break;
    }
    case LINE_WORD: timeline_record_word(run); break;
    case LINE_RECORDS: timeline_records_begin(run); break;
    case LINE_END:
        process->ended = true;
        process->lost = number(run, LINE_LOST_STARTS) + number(run, LINE_LOST_STATES) +
                        number(run, LINE_LOST_STOPS);
        break;
    default: break;
    }
}

/* ---- the end of a process ---- */

static void resolve(struct timeline *run, const struct later *later)
{
    struct timeline_reader *reader = run->reader;
    const struct timeline_process *process = &run->processes[reader->process];
    bool lost_any = process->lost > 0 || (process->runs && !process->ended);
    uint32_t event = ids_get(&reader->events, later->id);
    if (event == TIMELINE_DROPPED) return;
    if (event == UINT32_MAX) {
        const char *what = later->event != TIMELINE_NONE ? "the parent" : "an end";
        if (later->event == TIMELINE_NONE && later->name) what = "a state";
        /* A proxy may work for another process, whose events are in its own file. */
        if (later->event != TIMELINE_NONE && run->events[later->event].type == TIMELINE_PROXY_OP)
            return;
        if (!lost_any) {
            timeline_complain(run, COMPLAINT_UNKNOWN, later->line,
                              "%s of event %llu, which does not begin in this file", what,
                              (unsigned long long)later->id);
        }
    } else if (later->event != TIMELINE_NONE) {
        set_parent(run, later->event, event, later->line);
    } else if (later->name) {
        add_state(run, event, later);
    } else {
        end_event(run, event, later->at_nsec, later->line);
    }
}

/* Lists of states were made from their ends, but for those that came late: in order of time. */
static void order_states(struct timeline *run, struct timeline_event *event)
{
    enum { FARTHEST = 1024 }; /* so that a file made for it takes no time squared */
    uint32_t sorted = TIMELINE_NONE;
    uint32_t at = event->states;
    while (at != TIMELINE_NONE) {
        struct timeline_state *state = &run->states[at];
        uint32_t next = state->next, *link = &sorted;
        for (int k = 0; k < FARTHEST && *link != TIMELINE_NONE; k++) {
            if (run->states[*link].at_nsec >= state->at_nsec) break;
            link = &run->states[*link].next;
        }
        state->next = *link;
        *link = at;
        at = next;
    }
    event->states = sorted;
}

void timeline_end_process(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    if (reader->process == TIMELINE_NONE) return;
    struct timeline_process *process = &run->processes[reader->process];
    for (uint32_t i = 0; i < reader->nlaters; i++)
        resolve(run, &reader->laters[i]);
    reader->nlaters = 0;
    free(reader->laters);
    reader->laters = NULL;
    for (uint32_t e = process->first_event; e < process->last_event; e++)
        order_states(run, &run->events[e]);
    process->nmembers = run->nmembers - process->first_member;
    process->nthreads = run->nthreads - process->first_thread;
    ids_clear(&reader->events);
    ids_clear(&reader->members);
    ids_clear(&reader->threads);
    memset(&reader->records, 0, sizeof(reader->records));
    reader->process = TIMELINE_NONE;
}
