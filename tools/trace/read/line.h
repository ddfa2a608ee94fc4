/* One line of a trace file: an object of JSON that is flat but for arrays, which stay text. Names
 * that say the same in different lines, or in the interface and in the file, are one member. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum line_kind {
    LINE_OTHER, /* of a kind that is not known: readers pass over it */
    LINE_HEAD,
    LINE_CLK,
    LINE_COMM,
    LINE_THREAD,
    LINE_START,
    LINE_STATE,
    LINE_STOP,
    LINE_END,
    LINE_EVENT,    /* begin and end in one line */
    LINE_FLIGHT,   /* of the flight recorder: how far a rank is, */
    LINE_MESSAGES, /* and messages to and from another one */
    LINE_WORD,     /* of records: the text of a number, */
    LINE_RECORDS,  /* and how many words of records stand behind the line */
};

enum line_member {
    LINE_T,
    LINE_ID,
    LINE_PARENT,
    LINE_C,
    LINE_C_PID,
    LINE_COMM_ID,
    LINE_TID,
    LINE_TS,
    LINE_DUR,
    LINE_TYPE,
    LINE_FUNC, /* or the phase of a kernel */
    LINE_DATATYPE,
    LINE_COUNT, /* or bytes */
    LINE_SEQ,   /* or a timer, or the id of a network plugin */
    LINE_PEER,  /* or root */
    LINE_ALGO,  /* or how copies are synchronised */
    LINE_PROTO,
    LINE_CHANNEL, /* or how many */
    LINE_WARPS,
    LINE_PID,
    LINE_STEPS, /* or which step, depth, batches, operations */
    LINE_CHUNK,
    LINE_FLAG, /* captured, send, complete */
    LINE_STATE_NAME,
    LINE_VALUE,
    LINE_STATES,
    LINE_HOST,
    LINE_EXE,
    LINE_WALL,
    LINE_MONO,
    LINE_API,
    LINE_MASK,
    LINE_NAME,
    LINE_RANK,
    LINE_NRANKS,
    LINE_NNODES,
    LINE_LOST_STARTS,
    LINE_LOST_STATES,
    LINE_LOST_STOPS,
    LINE_FLIGHT_WHY,
    LINE_REDOP,
    LINE_BEGUN,
    LINE_ENDED,
    LINE_QUEUED,
    LINE_WAITS,
    LINE_SINCE,
    LINE_SENT,
    LINE_RECEIVED,
    LINE_N,
    LINE_BASE,
    LINE_WORDS,
    LINE_VERSION,
    LINE_MEMBER_COUNT_
};

struct line_value {
    uint64_t number; /* two's complement where it is negative; of a text 0 */
    const char *text;
    uint32_t bytes; /* of the text, without its quotes and with its escapes as they stand */
    bool is_text;
    uint16_t *word; /* borrowed: where the reader keeps what it knows the text as; NULL: nowhere */
};

/* Where a value stands, in the order of the line; of a text without its quotes. */
struct line_span {
    const char *begin, *end;
    int member; /* -1: unknown */
    bool is_text;
};
enum { LINE_SPANS = 24 };

struct line {
    enum line_kind kind;
    uint64_t seen;                                    /* bits of the members that the line has */
    const char *wrong;                                /* what is not sound in it */
    struct line_value values[LINE_MEMBER_COUNT_ + 1]; /* the last one of unknown members */
    uint32_t nspans; /* of line_read(); over LINE_SPANS: there are more than the array has */
    struct line_span spans[LINE_SPANS];
};

/* Where the names of members are found. */
struct line_names {
    uint8_t slots[256]; /* row of the table in line.c, plus 1 */
    uint8_t bytes[256]; /* of its name */
};
void line_names_init(struct line_names *names);

/* Read the line at [at, end); `end` is its '\n', and 8 more bytes may be read. False: it is no
 * object, and line->wrong says why. Unknown members are passed over. */
bool line_read(const struct line_names *names, const char *at, const char *end, struct line *line);

static inline bool line_has(const struct line *line, enum line_member member)
{
    return line->seen >> member & 1;
}
static inline uint64_t line_number(const struct line *line, enum line_member member,
                                   uint64_t otherwise)
{
    return line_has(line, member) ? line->values[member].number : otherwise;
}
/* A number of 16 hex digits in a text. 0: no such text. */
uint64_t line_hex(const struct line *line, enum line_member member);
