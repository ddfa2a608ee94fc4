/* `tutti plugin check`: a plugin is driven as a communicator drives it, each case in a process of
 * its own, so that a crash or a hang is a line of the report. One file check_<kind>.c per kind. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct check_options {
    const char *file; /* as NCCL_<KIND>_PLUGIN would have it */
    long iterations;  /* of what is timed */
    long seconds;     /* for each case */
    bool json;
};

enum { CHECK_BREACHES = 16, CHECK_REASON_BYTES = 640 };

/* What a case reports to its parent as it goes on; shared memory. */
struct check_case_state {
    char doing[64];                /* what was last begun; "" nothing */
    char note[CHECK_REASON_BYTES]; /* why the answer is no, or a remark */
    int call;                      /* the kind's own: last call into the plugin */
    uint64_t detail;
    struct {
        int func, nranks;
        size_t bytes;
    } asked;        /* of a tuner, last */
    uint64_t calls; /* into the plugin */
    double nsec_per_call, bytes_per_turn;
    int version;
    uint32_t mask;
    char name[64];
    int nbreaches; /* of the contract of its kind */
    char breaches[CHECK_BREACHES][128];
    bool returned; /* the case came to its end, whatever it found */
};

/* CHECK_EXITED: the plugin ended the process in the middle of the case. */
enum check_end { CHECK_OK, CHECK_NO, CHECK_CRASHED, CHECK_HUNG, CHECK_EXITED };

/* Run `body` in a child with its standard output on ours for talk. It returns 0 when all is well.
 * `state` is shared with it, zeroed before; *ended_out is the signal of CHECK_CRASHED, or the exit
 * status of CHECK_EXITED. */
enum check_end check_isolated(int (*body)(struct check_case_state *state, void *arg), void *arg,
                              long seconds, struct check_case_state *state, int *ended_out);
/* Shared memory for one state; NULL: none available (reported). */
struct check_case_state *check_state_map(void);

/* The plugin broke its contract: a line of the report, each once. */
void check_breach(struct check_case_state *state, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A result that is none: which it is, or that it is no code of the interface. */
void check_result(struct check_case_state *state, const char *function, int rc);
/* ---- growth.c: what a process keeps ---- */

/* Resident memory of this process, once the plugin's own threads have done their work. */
double check_rested_bytes(void);
struct check_memory {
    double allocated, resident; /* of malloc, in use; of the process */
};
struct check_memory check_memory_now(void);
/* What was added since: what malloc gave and did not get back, which is exact; of memory from
 * elsewhere only what cannot be pages that were touched for the first time. */
double check_memory_grown(const struct check_memory *before);

/* A run is looked at after each of so many windows of the same length; the first one warms up. */
enum { CHECK_WINDOWS = 4 };
/* The least of what windows behind the first one added, for each turn; 0: one of them added
 * nothing. */
double check_growth_of(const double *amounts, int turns);
struct check_held {
    double allocated, mapped; /* bytes of malloc; of all mappings */
    double descriptors;
};
struct check_held check_held_now(void);
/* A breach where each `turn` keeps more than `most_bytes` of malloc, pages or descriptors. */
void check_held_judge(struct check_case_state *state, const struct check_held *held, int turns,
                      const char *turn, double most_bytes);

/* A breach where each `turn` of the measured ones kept memory. */
void check_kept(struct check_case_state *state, const char *turn);
/* Report nsec_per_call, and what memory grew by for each `turn`, in JSON as `key`. */
void check_say_cost(const struct check_case_state *state, const char *turn, const char *key,
                    bool in_words, json_t *report);

struct check_case {
    const char *name;
    /* 0: all is well */
    int (*run)(struct check_case_state *state, const struct check_options *options);
};

/* One kind of plugin. The first case finds out whether there is anything to drive (its state has a
 * version then); the last one may measure. */
struct check_kind {
    const char *name;     /* as --kind has it */
    const char *variable; /* the file goes there */
    const char *prefix;   /* of the file, when it is a name */
    const char *table;    /* symbol without its "_v<version>" */
    int oldest, newest;   /* versions that are driven */
    const struct check_case *cases;
    size_t ncases;
    /* The call that was under way. */
    void (*say_where)(const struct check_case_state *state, char *text, size_t text_bytes);
    /* After the first case: what the plugin is, for the report and in words. */
    void (*describe)(const struct check_case_state *state, bool in_words, json_t *report);
    /* After the last one, when all was well: what it measured. */
    void (*measured)(const struct check_case_state *state, bool in_words, json_t *report);
};
extern const struct check_kind check_profiler, check_net, check_collnet, check_tuner, check_env;

/* NULL: there is no such kind. */
const struct check_kind *check_kind_named(const char *name);

/* Open the library in a child and look at its symbols. Returns the kind that can be driven: the
 * wanted one, or without one (NULL) the only one. NULL: none, and `reason` says why.
 * *several_out   the library has several kinds and none was wanted */
const struct check_kind *check_look(const char *file, const struct check_kind *wanted,
                                    bool *several_out, char reason[CHECK_REASON_BYTES]);

/* Report that there is nothing to drive. `kind` NULL: none was named. Exit status of the command.
 */
int check_refuse(const struct check_kind *kind, const struct check_options *options,
                 const char *reason);
/* Run all cases and print the report. Exit status of the command. */
int check_run(const struct check_kind *kind, const struct check_options *options);
