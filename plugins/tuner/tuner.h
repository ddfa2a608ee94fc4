/* The parts of our tuner plugin. It sees include/ only, so that any host of NCCL's tuner interface
 * can load it; whatever the host's version, one instance answers. */
#pragma once

#include "nccl/tuner.h"

#include <stdbool.h>
#include <stddef.h>

enum { TUNER_FUNCS = 5, TUNER_ALGOS = NCCL_NUM_ALGORITHMS, TUNER_PROTOS = NCCL_NUM_PROTOCOLS };

struct tuner_question {
    int func; /* 0..4 */
    size_t bytes;
    int nops, registered;
};

struct tuner_size { /* of the communicator */
    size_t nranks, nnodes;
};

/* Where complaints about a file go. */
struct tuner_notes {
    ncclDebugLogger_t log; /* borrowed */
    const char *path;      /* borrowed */
};
/* One line at level WARN that names file, line and reason. */
void tuner_complain(const struct tuner_notes *notes, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Numbers of words as NCCL writes them, lower case; -1: unknown. */
int tuner_func_number(const char *word);
int tuner_algo_number(const char *word);
int tuner_proto_number(const char *word);

/* ---- rules (rules.c) ---- */
struct tuner_rule {
    int func;
    size_t least_bytes, most_bytes; /* both belong to it */
    int algo, proto;
    int nchannels;                              /* -1: keep */
    long long nnodes, nranks, nops, registered; /* -1: any */
};
struct tuner_rules {
    struct tuner_rule *items; /* owned */
    size_t count;
};
/* Read CSV text of `bytes` bytes; bad lines are reported and skipped. False: out of memory. */
bool tuner_rules_parse(struct tuner_rules *rules, const char *text, size_t bytes,
                       const struct tuner_notes *notes);
void tuner_rules_free(struct tuner_rules *rules);
/* The first rule at or after *at that fits; *at moves behind it. NULL: no more. */
const struct tuner_rule *tuner_rules_next(const struct tuner_rules *rules,
                                          const struct tuner_question *question,
                                          const struct tuner_size *size, size_t *at);

/* ---- an analytical model of MI300 machines over Ethernet (mi300.c) ---- */
/* Predicted microseconds; -1: it knows no such combination. */
double tuner_mi300_time(const struct tuner_size *size, const struct tuner_question *question,
                        int algo, int proto);

/* ---- times that `tutti tune` measured (measured.c, machine.c) ---- */
enum { TUNER_MACHINE_BYTES = 160 };
void tuner_machine_name(char name[TUNER_MACHINE_BYTES]);

struct tuner_point {
    int func, algo, proto;
    size_t bytes;
    double usec;
};
struct tuner_measured {
    struct tuner_point *points; /* owned; ascending by function, algorithm, protocol, bytes */
    size_t count;
};
/* Read the rows of the table that are about this size of communicator. A table that names another
 * machine is refused and reported, and nothing is measured. False: out of memory. */
bool tuner_measured_parse(struct tuner_measured *measured, const char *text, size_t bytes,
                          const struct tuner_size *size, const struct tuner_notes *notes);
void tuner_measured_free(struct tuner_measured *measured);
/* Between two sizes along a straight line; -1: nothing was measured. */
double tuner_measured_time(const struct tuner_measured *measured,
                           const struct tuner_question *question, int algo, int proto);

/* ---- an instance (instance.c) ---- */
struct tuner; /* opaque */

/* comm_id 0: unknown. NULL: out of memory. */
struct tuner *tuner_create(const struct tuner_size *size, unsigned long long comm_id,
                           ncclDebugLogger_t log);
void tuner_destroy(struct tuner *tuner);
/* Edit the table of predicted times; *nchannels is set only when a rule says so. */
void tuner_answer(struct tuner *tuner, const struct tuner_question *question,
                  float table[TUNER_ALGOS][TUNER_PROTOS], int *nchannels);
