/* What the subcommands of `tutti trace` share. */
#pragma once

#include "model.h"

#include <jansson.h>
#include <stdio.h>

enum trace_option {
    TRACE_JSON = 1,
    TRACE_TO = 2,
    TRACE_OUTPUT = 4,
    TRACE_BY = 8,
    TRACE_EVENTS = 16,
    TRACE_DETAILS = 32
};

struct trace_options {
    const char *command; /* for messages: "trace summary" */
    const char **paths;  /* owned; files and folders */
    int npaths;
    const char *to, *output; /* NULL: not given; "-" is standard output */
    uint32_t types;          /* bits */
    size_t limit_bytes;
    long percent; /* diff: what counts as slower or faster */
    long events;  /* page: about so many bars at most */
    long details; /* page: and so many events below joined bars */
    bool json;
};

/* Read all paths, or those of [first, first + count). 0: done; 1: the files cannot be read, said.
 */
int trace_load(const struct trace_options *options, int first, int count, struct timeline *run);

/* Say on stderr which files have no end, and how far they go. */
void trace_report_cut(const struct timeline *run);

/* Print a JSON value and free it. */
void trace_print_json(json_t *value);

int trace_summary(const struct trace_options *options);
int trace_check(const struct trace_options *options);
int trace_diff(const struct trace_options *options);
int trace_convert(const struct trace_options *options);
int trace_page(const struct trace_options *options);

/* ---- check ---- */

struct trace_findings {
    json_t *list; /* owned */
    uint64_t count;
    json_t *notes; /* owned; what is no fault */
};
enum { TRACE_FINDINGS_KEPT = 1000 };
void trace_find(struct trace_findings *findings, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void trace_note(struct trace_findings *findings, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Who is behind, whose call differs, who waits for whom. False: memory is short. */
bool trace_check_flights(const struct timeline *run, struct trace_findings *findings);
/* Whether its files were asked for and none of its ranks has waited for long: they are well, and a
 * few operations apart. */
bool trace_flight_at_work(const struct timeline *run, uint32_t comm);
/* A rank that waits outside of collectives, in a message: "rank 0 of communicator ... has waited
 * 4.3 s in a Send or Recv: data of rank 1". False: that one does not. */
bool trace_flight_waits(const struct timeline *run, const struct timeline_flight *flight,
                        char *text, size_t bytes);

/* ---- where the run stopped: summary, diff and page ---- */

enum { TRACE_STOPS_MOST = 1000, TRACE_STOP_BYTES = 640 };

/* An operation that ranks whose files are here never began, or did not end. */
struct trace_stop {
    uint32_t operation;
    uint32_t first, count; /* of trace_stops.absent: who never began it */
    uint32_t waiting;      /* ranks that began nothing after it */
    uint32_t behind;       /* an earlier stop, which all who are there wait in; TIMELINE_NONE */
    uint32_t cut;          /* of which an abort ended so many */
    bool open;             /* of which some have no end in the files */
    bool cause;            /* those who are absent wait for no rank */
    int64_t since_nsec, until_nsec; /* the last begin; the last end of those who wait */
};
struct trace_stops {
    struct trace_stop *list; /* owned; causes first, then by begin */
    uint32_t *absent;        /* owned; members */
    int *ranks;              /* owned; by member: what texts call it; the caller may change it */
    uint32_t *last;          /* owned; by member: the last part that it began, or TIMELINE_NONE */
    uint32_t *waits_in;      /* owned; by member: an operation, or TIMELINE_NONE */
    uint32_t count, nabsent;
    bool has_cause;     /* false: ranks wait for each other */
    const char *circle; /* how, where they do; else "" */
};
/* False: memory is short, and said. */
bool trace_stops_find(const struct timeline *run, struct trace_stops *stops);
void trace_stops_fini(struct trace_stops *stops);
/* "ranks 0 and 1 waited 4.98 s for rank 2, which never began it: it has begun nothing". */
void trace_stop_text(const struct timeline *run, const struct trace_stops *stops,
                     const struct trace_stop *stop, char *text, size_t bytes);
/* Whether its rank waits in that operation, and began nothing after it. */
bool trace_part_waits(const struct timeline *run, const struct trace_stops *stops,
                      const struct timeline_part *part);
/* Print a line for each of the first few, and how many more there are; `head` stands before. */
void trace_stops_print(const struct timeline *run, const struct trace_stops *stops,
                       const char *head);
/* Whether its process died or was killed, as its file lacks the end. */
bool trace_breaks_off(const struct timeline *run, uint32_t member);
/* A list of objects. */
json_t *trace_stops_json(const struct timeline *run, const struct trace_stops *stops);

/* ---- formats; false: memory is short, or a file cannot be written, and said ---- */
struct out;
bool trace_write_chrome(const struct timeline *run, struct out *out);
bool trace_write_perfetto(const struct timeline *run, struct out *out);
bool trace_write_inspector(const struct timeline *run, struct out *out);
bool trace_write_prometheus(const struct timeline *run, struct out *out);
bool trace_write_otf2(const struct timeline *run, const char *folder); /* which is new, or empty */

/* ---- what operations of one kind have in common: summary, diff and metrics ---- */

/* All operations of one function, size, algorithm and protocol in a communicator. */
struct trace_row {
    uint32_t comm;
    uint16_t func, algo, proto, datatype;
    uint64_t count;              /* elements */
    uint64_t message_bytes;      /* count times the type's size */
    uint64_t operations, broken; /* whole ones; those that are not */
    double mean_usec, p50_usec, p99_usec, least_usec, most_usec;
    double skew_p50_usec, skew_p99_usec, skew_most_usec;
    double waiting_usec, moving_usec; /* of a rank and operation, means */
    double algbw_gbps, busbw_gbps;    /* of the mean time */
    int slowest_rank;                 /* the last to begin most often; -1: none */
    double slowest_share;             /* of the operations */
    double behind_usec;               /* how late it came on average when it was */
};
struct trace_table {
    struct trace_row *rows; /* owned; by communicator, function and size */
    uint32_t nrows;
    bool types_differ; /* rows of one communicator have different types, so texts name them */
};
bool trace_table_make(const struct timeline *run, struct trace_table *table);
void trace_table_fini(struct trace_table *table);

/* What a collective moves, as nccl-tests count it; n ranks. */
double trace_bus_factor(const char *func, int n);
uint64_t trace_traffic_bytes(const char *func, uint64_t message_bytes, int n);
