/* Lines as our plugin writes them. Three of four are states and ends, which have one form alone. A
 * begin has one form up to its type, and mostly one behind it for each type: that of the first line
 * of its type. Nothing is kept of a line but what goes into the model. What differs from all that
 * in a byte is for the tree of shapes.h, or for line_read(). */
#include "reader.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* The text at `at` of a constant length. */
#define IS_AT(at, text) (!memcmp(at, text, sizeof(text) - 1))

/* The name up to its quote takes the place; NULL: it has no end in the line, is too long or has
 * escapes. */
static struct usual_name *learn_name(struct timeline *run, struct usual_name *name, const char *at)
{
    const char *quote = at;
    for (; *quote != '"'; quote++) {
        if (*quote == '\n' || *quote == '\\') return NULL;
    }
    uint16_t word = timeline_word_of(run, at, (size_t)(quote - at));
    if (!word || !scan_set(&name->text, at, (size_t)(quote - at) + 1)) return NULL;
    name->word = word;
    return name;
}

/* The name at `at`, which is mostly the one that *guess says; that becomes it. */
static inline const struct usual_name *find_name(struct timeline *run, const char *at,
                                                 uint16_t *guess)
{
    struct usual *usual = &run->reader->usual;
    struct usual_name *name = &usual->names[*guess];
    if (!name->word || !scan_begins(at, &name->text)) {
        uint32_t place = scan_place(at) % USUAL_NAMES;
        name = &usual->names[place];
        /* two places for each hash, as a few texts share one */
        if (name->word && !scan_begins(at, &name->text)) name = &usual->names[place ^ 1];
        if (!name->word || !scan_begins(at, &name->text)) name = learn_name(run, name, at);
        if (!name) return NULL;
        *guess = (uint16_t)(name - usual->names);
    }
    return name;
}

/* ---- states and ends ---- */

/* Behind `{"t":"st`. */
static inline const char *read_moment(struct timeline *run, const char *at, const char *limit)
{
    struct timeline_reader *reader = run->reader;
    struct usual *usual = &reader->usual;
    struct later moment = {.event = TIMELINE_NONE};
    uint64_t at_nsec;
    bool stops = at[0] == 'o';
    if (!(stops ? IS_AT(at, "op\",\"id\":") : IS_AT(at, "ate\",\"id\":"))) return NULL;
    at += stops ? sizeof("op\",\"id\":") - 1 : sizeof("ate\",\"id\":") - 1;
    at = scan_number(&usual->id, at, &moment.id);
    if (!at || !IS_AT(at, ",\"ts\":")) return NULL;
    at = scan_number(&usual->ts, at + sizeof(",\"ts\":") - 1, &at_nsec);
    if (!at || at_nsec > TIMELINE_LATEST_NSEC) return NULL;
    if (!stops) {
        if (!IS_AT(at, ",\"state\":\"")) return NULL;
        uint16_t *guess = &usual->after[usual->last_state]; /* what came behind the last one */
        const struct usual_name *name = find_name(run, at + sizeof(",\"state\":\"") - 1, guess);
        if (!name) return NULL;
        usual->last_state = *guess;
        at += sizeof(",\"state\":\"") - 1 + name->text.bytes;
        moment.name = name->word;
        if (!IS_AT(at, ",\"value\":")) return NULL;
        at = scan_number(&usual->value, at + sizeof(",\"value\":") - 1, &moment.value);
        if (!at) return NULL;
    }
    if (at[0] != '}' || at[1] != '\n' || at + 1 >= limit) return NULL;
    moment.at_nsec = (int64_t)at_nsec;
    timeline_count_line(run);
    moment.line = reader->number;
    timeline_moment(run, &moment);
    return at + 1;
}

/* ---- begins ---- */

/* A member goes into the event. */
static inline void set_member(struct timeline_event *event, uint8_t member, uint64_t value)
{
    switch (member) {
    case LINE_SEQ: event->seq = value; break;
    case LINE_COUNT: event->count = value; break;
    case LINE_PEER: event->peer = (int32_t)value; break;
    case LINE_STEPS: event->steps = (int32_t)value; break;
    case LINE_CHUNK: event->chunk_bytes = (int32_t)value; break;
    case LINE_FUNC: event->func = (uint16_t)value; break;
    case LINE_DATATYPE: event->datatype = (uint16_t)value; break;
    case LINE_ALGO: event->algo = (uint16_t)value; break;
    case LINE_PROTO: event->proto = (uint16_t)value; break;
    case LINE_CHANNEL: event->channel = (uint16_t)value; break;
    case LINE_WARPS: event->warps = (uint8_t)value; break;
    case LINE_FLAG: event->flag = value != 0; break;
    default: break; /* not in the model */
    }
}

/* What is behind the type; returns the end of the line. */
static inline const char *read_members(struct timeline *run, struct usual_type *type,
                                       const char *at, struct timeline_event *event)
{
    for (uint32_t k = 0; k < type->count; k++) {
        struct usual_member *member = &type->members[k];
        uint64_t value;
        if (!scan_begins(at, &member->before)) return NULL;
        at += member->before.bytes;
        if (member->is_text) {
            const struct usual_name *name = find_name(run, at, &member->guess);
            if (!name) return NULL;
            at += name->text.bytes;
            value = name->word;
        } else {
            bool minus = *at == '-';
            at = scan_number(&member->head, at + minus, &value);
            if (!at) return NULL;
            value = minus ? 0 - value : value;
        }
        set_member(event, member->member, value);
    }
    return at[0] == '}' && at[1] == '\n' ? at + 1 : NULL;
}

/* A number and the text that stands before it; NULL: it is not there. */
static inline const char *read_field(struct scan_head *head, const char *at, const char *text,
                                     size_t bytes, uint64_t *value)
{
    if (memcmp(at, text, bytes) != 0) return NULL;
    return scan_number(head, at + bytes, value);
}
#define FIELD(at, text, k, value) read_field(&usual->fields[k], at, text, sizeof(text) - 1, value)

/* Behind `{"t":"st`. */
static inline const char *read_start(struct timeline *run, const char *at, const char *limit)
{
    struct timeline_reader *reader = run->reader;
    struct usual *usual = &reader->usual;
    struct beginning beginning;
    uint64_t tid, at_nsec;
    at = FIELD(at, "art\",\"id\":", 0, &beginning.id);
    if (at) at = FIELD(at, ",\"parent\":", 1, &beginning.parent);
    if (at) at = FIELD(at, ",\"c\":", 2, &beginning.context);
    if (at) at = FIELD(at, ",\"tid\":", 3, &tid);
    if (at) at = FIELD(at, ",\"ts\":", 4, &at_nsec);
    if (!at || !IS_AT(at, ",\"type\":\"") || at_nsec > TIMELINE_LATEST_NSEC) return NULL;
    at += sizeof(",\"type\":\"") - 1;
    uint16_t *guess = &usual->after[usual->last_type]; /* what came behind the last one */
    const struct usual_name *name = find_name(run, at, guess);
    if (!name || name->word > TIMELINE_TYPE_COUNT_) return NULL;
    usual->last_type = *guess;
    struct usual_type *type = &usual->types[name->word - 1];
    usual->is_new = !type->tried;
    beginning.event = type->event;
    at = type->known ? read_members(run, type, at + name->text.bytes, &beginning.event) : NULL;
    if (!at || at >= limit) return NULL;
    beginning.event.start_nsec = (int64_t)at_nsec;
    beginning.tid = (int)tid;
    beginning.creator = run->processes[reader->process].pid;
    beginning.comm = 0;
    timeline_count_line(run);
    timeline_begin(run, &beginning);
    return at;
}
#undef FIELD

/* Whether a member of that kind is what its name says; others are not learned. */
static bool is_plain(const struct line_span *span)
{
    switch (span->member) {
    case -1:
    case LINE_SEQ:
    case LINE_COUNT:
    case LINE_PEER:
    case LINE_STEPS:
    case LINE_CHUNK:
    case LINE_CHANNEL:
    case LINE_WARPS:
    case LINE_PID:
    case LINE_FLAG: return !span->is_text && (*span->begin == '-' || scan_is_digit(*span->begin));
    case LINE_FUNC:
    case LINE_DATATYPE:
    case LINE_ALGO:
    case LINE_PROTO: return span->is_text;
    default: return false;
    }
}

void timeline_usual_learn(struct timeline *run)
{
    static const int first[] = {LINE_T, LINE_ID, LINE_PARENT, LINE_C, LINE_TID, LINE_TS, LINE_TYPE};
    enum { FIRST = sizeof(first) / sizeof(first[0]) };
    const struct line *line = &run->reader->line;
    if (line->kind != LINE_START || line->nspans < FIRST || line->nspans > FIRST + USUAL_MEMBERS)
        return;
    for (uint32_t k = 0; k < FIRST; k++) {
        if (line->spans[k].member != first[k]) return;
    }
    const struct line_span *named = &line->spans[FIRST - 1];
    uint16_t word = timeline_word_of(run, named->begin, (size_t)(named->end - named->begin));
    if (word < 1 || word > TIMELINE_TYPE_COUNT_ || !named->is_text) return;
    struct usual_type *type = &run->reader->usual.types[word - 1];
    const char *at = named->end + 1;
    if (type->known) return;
    *type = (struct usual_type){.tried = true, .event = {.type = (uint8_t)(word - 1), .peer = -1}};
    for (uint32_t k = FIRST; k < line->nspans; k++) {
        const struct line_span *span = &line->spans[k];
        struct usual_member *member = &type->members[type->count++];
        if (!is_plain(span) || !scan_set(&member->before, at, (size_t)(span->begin - at))) return;
        member->member = (uint8_t)(span->member < 0 ? LINE_MEMBER_COUNT_ : span->member);
        member->is_text = span->is_text;
        at = span->end + span->is_text;
    }
    type->known = true;
}

const char *timeline_usual_line(struct timeline *run, const char *at, const char *limit)
{
    enum { TELLING = sizeof("{\"t\":\"st") - 1 };
    run->reader->usual.is_new = false;
    if (!IS_AT(at, "{\"t\":\"st") || run->reader->process == TIMELINE_NONE) return NULL;
    at += TELLING;
    return IS_AT(at, "ar") ? read_start(run, at, limit) : read_moment(run, at, limit);
}
#else
const char *timeline_usual_line(struct timeline *run, const char *at, const char *limit)
{
    (void)run, (void)at, (void)limit;
    return NULL;
}
void timeline_usual_learn(struct timeline *run)
{
    (void)run;
}
#endif
