/* What reading a run needs besides the run itself. */
#pragma once

#include "../model.h"
#include "ids.h"
#include "line.h"
#include "reserve.h"
#include "scan.h"
#include "shapes.h"

#include <dirent.h>

/* What can be wrong with a line; each kind is reported three times for a file and then counted. */
enum complaint {
    COMPLAINT_LINE,
    COMPLAINT_HEAD,
    COMPLAINT_VERSION,
    COMPLAINT_ID,
    COMPLAINT_TIME,
    COMPLAINT_UNKNOWN,
    COMPLAINT_TWICE,
    COMPLAINT_MEMBER,
    COMPLAINT_LIMIT,
    COMPLAINT_COUNT_
};

/* A state or an end whose event has not begun in the file yet, or a parent likewise. */
struct later {
    uint64_t id, value;
    int64_t at_nsec;
    uint64_t line;
    uint32_t event; /* whose parent; TIMELINE_NONE: a state or an end */
    uint16_t name;  /* 0: an end */
};

/* An event that begins, as a file tells it. */
struct beginning {
    struct timeline_event event; /* its time, its type and what belongs to that */
    uint64_t id, parent;         /* parent: 0: none */
    uint64_t context;            /* the communicator's number in its process */
    uint64_t comm;               /* versions 1 to 3: its id; 0: not here */
    int creator;                 /* whose communicator it is: a pid, or -1: it has none */
    int tid;
};

/* Times beyond this are no clock's (73 years), and sums of a few of them fit their type. */
#define TIMELINE_LATEST_NSEC ((uint64_t)1 << 61)

/* A block of records on its way (records.c). */
enum { RECORD_WORD_SLOTS = 512 };
struct records {
    uint64_t left_bytes;
    uint64_t id, base_nsec;
    int tid;
    bool unsound;                      /* the rest of the block is passed over */
    uint16_t words[RECORD_WORD_SLOTS]; /* from the file's numbers; of a process */
};

/* What usual.c knows of the lines before: texts, numbers, and what stands behind a type. */
enum { USUAL_NAMES = 128, USUAL_MEMBERS = 12, USUAL_FIELDS = 5 };
struct usual_name {
    struct scan_text text; /* with its closing quote */
    uint16_t word;         /* 0: none */
};
struct usual_member {
    struct scan_text before; /* its name, and what else is between two values */
    struct scan_head head;
    uint16_t guess; /* the last name here */
    uint8_t member; /* LINE_MEMBER_COUNT_: unknown */
    bool is_text;
};
struct usual_type {
    struct timeline_event event; /* that of the type, without values */
    bool known, tried;
    uint8_t count;
    struct usual_member members[USUAL_MEMBERS];
};
struct usual {
    struct scan_head id, ts, value; /* of states and ends */
    struct scan_head fields[USUAL_FIELDS];
    bool is_new; /* the last line is the first of its type, from which line_read() is to learn it */
    uint16_t last_state, last_type; /* names */
    uint16_t after[USUAL_NAMES];    /* the name that came behind one the last time */
    struct usual_name names[USUAL_NAMES];
    struct usual_type types[TIMELINE_TYPE_COUNT_];
};

struct timeline_reader {
    struct line_names names;
    struct line line;
    struct shapes shapes;
    struct usual usual;
    struct records records;
    struct ids events;                  /* of the process */
    struct ids members, threads, comms; /* of the process; comms of all */
    struct ids dumped;                  /* ranks in flight recorders' files: their file */
    uint16_t words[4096];               /* slots: number of a word plus 1 */
    struct reserve space_of_events, space_of_states;
    struct later *laters; /* owned */
    uint32_t nlaters;
    uint32_t nparts;                     /* events that may be parts of operations */
    uint32_t process, file;              /* TIMELINE_NONE: no head yet */
    uint64_t number;                     /* of the line */
    uint64_t reported[COMPLAINT_COUNT_]; /* in this file */
    uint64_t said_at_nsec;               /* progress */
    int fd;                              /* of the file */
    bool short_of_memory, limit_reported;
};

void timeline_complain(struct timeline *run, enum complaint kind, uint64_t number, const char *fmt,
                       ...) __attribute__((format(printf, 4, 5)));
bool timeline_widen(struct timeline *run, void *array, uint32_t count, size_t size);
/* Room for one more behind `count`; *array is owned. False: memory is short, and said. */
static inline bool timeline_grow(struct timeline *run, void *array, uint32_t count, size_t size)
{
    enum { LEAST = 16 }; /* there is room up to the next power of two, or to this */
    if (count != 0 && (count < LEAST || (count & (count - 1)) != 0)) return true;
    return timeline_widen(run, array, count ? (uint32_t)2 * count : LEAST, size);
}
/* The number of a text; 0: no text, or too many different ones. */
uint16_t timeline_word_of(struct timeline *run, const char *text, size_t bytes);
/* Copy a text of a file, made plain. */
void timeline_plain(char *to, size_t to_bytes, const char *from, size_t bytes);

/* One line that line_read() took; what does not fit is complained of. load.c hands them over. */
void timeline_take(struct timeline *run);
/* An event that begins, and a state or an end; what is not sound in them is complained of. */
void timeline_begin(struct timeline *run, const struct beginning *beginning);
void timeline_moment(struct timeline *run, const struct later *moment);

/* usual.c: take the line at `at`, if it is a begin, a state or an end as our plugin writes them,
 * with its '\n' before `limit`, which is one as well and behind which SCAN_SLACK_BYTES may be read.
 * Returns its '\n'; NULL: it is none, and nothing was taken. */
const char *timeline_usual_line(struct timeline *run, const char *at, const char *limit);
/* line_read() has just read it. */
void timeline_usual_learn(struct timeline *run);
void timeline_report_progress(struct timeline *run);
static inline void timeline_count_line(struct timeline *run)
{
    enum { PROGRESS_LINES = 1 << 16 };
    run->lines++;
    if (++run->reader->number % PROGRESS_LINES == 0) timeline_report_progress(run);
}

/* ---- records.c ---- */
/* The lines `word` and `records`. */
void timeline_record_word(struct timeline *run);
void timeline_records_begin(struct timeline *run);
/* Take whole records from the beginning of these bytes of the block; returns how many bytes they
 * had, which may be none. */
size_t timeline_records_take(struct timeline *run, const char *bytes, size_t count);

/* The process's file ends, or another head comes: what refers to nothing is complained of. */
void timeline_end_process(struct timeline *run);

/* ---- several files of one process: dumps.c ---- */

#define TIMELINE_DROPPED (UINT32_MAX - 1) /* an event or a member that is there and not kept */
/* By name, and the newest file of a process first. */
int timeline_by_dump(const struct dirent **left, const struct dirent **right);
/* A flight recorder's newer file had this rank already. */
bool timeline_is_older_dump(struct timeline *run, uint64_t comm, int rank);

/* live.c: whether that process has the file open to write into it, as far as one can see. */
bool timeline_is_written(int fd, int pid);

/* ---- after the last file ---- */
bool timeline_report_runs(const struct timeline *run); /* runs.c; before the clocks */
bool timeline_match(struct timeline *run);             /* operations.c */
bool timeline_set_clocks(struct timeline *run);        /* clocks.c */
/* clocks.c; after the clocks: begin and end of operations, and their order. operations.c */
void timeline_time_operations(struct timeline *run);
