/* Records as our plugin's rings have them, which stand in a file instead of lines where
 * TUTTI_TRACE_OUTPUTS=records asks for that. plugins/profiler/record.h says what their words are,
 * blocks.c there how they come into the file. Any bytes may come: a record that is none ends the
 * use of its block. */
#include "reader.h"

#include "base/mem.h"

#include <endian.h>
#include <string.h>

enum { STOP = 2, STATE = 1, START = 0 }; /* kinds, in the lowest two bits of the first word */
enum { VALUED = 4, TIME_SHIFT = 8, ID_BITS = 56, START_WORDS = 3, FIELDS = 8 };
enum { TYPE_SHIFT = 48, FLAG_SHIFT = 55, FIELD_SHIFT = 56, PID_SHIFT = 24 };
enum { RECORD_WORDS = START_WORDS + FIELDS, STATE_WORDS = 256 };
enum field { SEQ, COUNT, PEER, WORDS, SIZES, GROUP, TAG, COMM };

/* Types whose flag the model has; those with a root. */
static const uint32_t flag_types = 1u << TIMELINE_GROUP_API | 1u << TIMELINE_COLL_API |
                                   1u << TIMELINE_P2P_API | 1u << TIMELINE_PROXY_OP |
                                   1u << TIMELINE_CE_SYNC;
static const uint32_t rooted_types =
    1u << TIMELINE_COLL_API | 1u << TIMELINE_COLL | 1u << TIMELINE_CE_COLL;

static uint64_t word_at(const char *bytes, size_t k)
{
    uint64_t word;
    memcpy(&word, bytes + k * sizeof(word), sizeof(word));
    return le64toh(word);
}

static uint16_t text_of(const struct timeline *run, uint64_t number)
{
    return run->reader->records.words[number & (STATE_WORDS - 1)];
}

void timeline_record_word(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    const struct line_value *name = &reader->line.values[LINE_NAME];
    uint64_t number = line_number(&reader->line, LINE_N, 0);
    if (number == 0 || number >= RECORD_WORD_SLOTS || !line_has(&reader->line, LINE_NAME) ||
        !name->is_text) {
        timeline_complain(run, COMPLAINT_LINE, reader->number, "a word without a number or a text");
        return;
    }
    reader->records.words[number] = timeline_word_of(run, name->text, name->bytes);
}

void timeline_records_begin(struct timeline *run)
{
    struct timeline_reader *reader = run->reader;
    struct records *block = &reader->records;
    uint64_t words = line_number(&reader->line, LINE_WORDS, 0);
    block->left_bytes = (words < UINT32_MAX ? words : UINT32_MAX) * sizeof(uint64_t);
    block->id = line_number(&reader->line, LINE_ID, 0);
    block->base_nsec = line_number(&reader->line, LINE_BASE, 0);
    block->tid = (int)line_number(&reader->line, LINE_TID, 0);
    block->unsound = block->base_nsec >> (ID_BITS + 5) != 0;
    if (block->unsound)
        timeline_complain(run, COMPLAINT_TIME, reader->number, "a time beyond any clock");
}

static void set_field(const struct timeline *run, struct beginning *to, enum field field,
                      uint64_t value)
{
    struct timeline_event *event = &to->event;
    switch (field) {
    case SEQ: event->seq = value; break;
    case COUNT: event->count = value; break;
    case PEER:
        event->peer = (int32_t)(uint32_t)value;
        event->steps = (int32_t)(uint32_t)(value >> 32);
        break;
    case WORDS:
        event->func = text_of(run, value);
        event->datatype = text_of(run, value >> 8);
        event->algo = text_of(run, value >> 16);
        event->proto = text_of(run, value >> 24);
        event->channel = (uint8_t)(value >> 32);
        event->warps = (uint8_t)(value >> 40);
        break;
    case SIZES: event->chunk_bytes = (int32_t)(uint32_t)value; break;
    case COMM: to->comm = value; break;
    default: break; /* the group and the user's tag are not in the model */
    }
}

static void take_start(struct timeline *run, const char *bytes, int64_t at_nsec)
{
    struct timeline_reader *reader = run->reader;
    uint64_t what = word_at(bytes, 2);
    uint64_t context = what & (((uint64_t)1 << TYPE_SHIFT) - 1);
    uint32_t type = (uint32_t)(what >> TYPE_SHIFT) & 0x7f;
    struct beginning beginning = {.id = ++reader->records.id,
                                  .parent = word_at(bytes, 1),
                                  .context = context & ((1u << PID_SHIFT) - 1),
                                  .creator = (int)(context >> PID_SHIFT),
                                  .tid = reader->records.tid};
    struct timeline_event *event = &beginning.event;
    if (type >= TIMELINE_TYPE_COUNT_) {
        timeline_complain(run, COMPLAINT_ID, reader->number, "no type of events has the number %u",
                          type);
        return;
    }
    event->start_nsec = at_nsec;
    event->type = (uint8_t)type;
    event->peer = rooted_types >> type & 1 ? 0 : -1;
    event->steps = type == TIMELINE_GROUP_API; /* its depth */
    event->flag = (what >> FLAG_SHIFT & 1) && (flag_types >> type & 1);
    size_t k = START_WORDS;
    for (uint64_t fields = what >> FIELD_SHIFT; fields; fields &= fields - 1)
        set_field(run, &beginning, (enum field)__builtin_ctzll(fields), word_at(bytes, k++));
    if (type == TIMELINE_CE_SYNC) event->steps = 0; /* ranks, which the model has not */
    timeline_begin(run, &beginning);
}

static void take_moment(struct timeline *run, const char *bytes, uint64_t first, int64_t at_nsec)
{
    struct timeline_reader *reader = run->reader;
    uint64_t what = word_at(bytes, 1);
    struct later moment = {.id = what & (((uint64_t)1 << ID_BITS) - 1),
                           .at_nsec = at_nsec,
                           .line = reader->number,
                           .event = TIMELINE_NONE};
    if (first & VALUED) moment.value = word_at(bytes, 2);
    if ((first & 3) == STATE) {
        moment.name = reader->records.words[STATE_WORDS + (what >> ID_BITS)];
        if (!moment.name) moment.name = timeline_word_of(run, "unknown", 7);
    }
    timeline_moment(run, &moment);
}

/* The words of the record at `bytes`; 0: more must be known than `count` bytes. */
static size_t size_of(const char *bytes, size_t count)
{
    if (count < 2 * sizeof(uint64_t)) return 0;
    uint64_t first = word_at(bytes, 0);
    if ((first & 3) != START) return first & VALUED ? 3 : 2;
    if (count < START_WORDS * sizeof(uint64_t)) return 0;
    return START_WORDS + (size_t)__builtin_popcountll(word_at(bytes, 2) >> FIELD_SHIFT);
}

size_t timeline_records_take(struct timeline *run, const char *bytes, size_t count)
{
    struct timeline_reader *reader = run->reader;
    struct records *block = &reader->records;
    size_t used = 0, here = tt_min_size(count, block->left_bytes);
    while (!block->unsound && used < here && !reader->short_of_memory) {
        const char *at = bytes + used;
        size_t size = size_of(at, here - used) * sizeof(uint64_t);
        bool ends_early = here == block->left_bytes && (size == 0 || size > here - used);
        if (ends_early || (size && (word_at(at, 0) & 3) > STOP)) {
            timeline_complain(run, COMPLAINT_LINE, reader->number,
                              "a block of records that is not sound from its byte %zu on", used);
            block->unsound = true;
            break;
        }
        if (size == 0 || size > here - used) break; /* its rest comes with the next bytes */
        uint64_t first = word_at(at, 0);
        int64_t at_nsec = (int64_t)(block->base_nsec + (first >> TIME_SHIFT));
        if ((first & 3) == START) {
            take_start(run, at, at_nsec);
        } else {
            take_moment(run, at, first, at_nsec);
        }
        used += size;
    }
    if (block->unsound || reader->short_of_memory) used = here;
    block->left_bytes -= used;
    return used;
}
