/* Every variable the library knows, in one table (variables.tsv): type, default, meaning.
 * Values are read once: environment, then NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf; or,
 * instead of all these, an environment plugin. */
#pragma once

#include "base/log.h"
#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tt_param_type {
    TT_PARAM_INT,   /* strtoll, base 0 */
    TT_PARAM_BOOL,  /* 0/1/T/F/TRUE/FALSE in any case, or any integer */
    TT_PARAM_STR,   /* any text */
    TT_PARAM_BYTES, /* number with an optional K, M or G */
    TT_PARAM_WORD,  /* one of the words in `values`, in any case */
};

struct tt_param {
    const char *name; /* full environment name */
    enum tt_param_type type;
    const char *fallback; /* value when unset, as text; NULL: none */
    const char *area;     /* debug, init, net, socket, ... as in the table of variables */
    const char *values;   /* what it accepts, for people */
    const char *unset;    /* what happens when unset, for people */
    const char *meaning;  /* a whole sentence */
    bool obeyed;          /* false: known, accepted, without effect on the host device */
};

/* True when the values are words or texts, not numbers. */
static inline bool tt_param_is_text(const struct tt_param *param)
{
    return param->type == TT_PARAM_STR || param->type == TT_PARAM_WORD;
}

/* All known variables, sorted by name. *count_out entries. */
const struct tt_param *tt_param_table(size_t *count_out);

/* Names of the table's rows, in its order; valid for ever. NULL: out of memory. */
const char **tt_param_names(void);

/* Value of a variable of the table; asserts on an unknown name. The first read logs
 * "<NAME> set by environment to <value>" (ENV) when it is set. A bad value is one WARN naming
 * variable, value and what is accepted, and the fallback is used. An empty number counts as unset.
 * Set-up paths only: looks the name up. Thread-safe. */
int64_t tt_param_int(const char *name);     /* INT, BOOL, BYTES; 0 when unset without a fallback */
bool tt_param_bool(const char *name);       /* INT, BOOL: not zero */
const char *tt_param_str(const char *name); /* any type; NULL when unset without a fallback; for a
                                             * WORD as spelled in the table; valid for ever */
/* The value as text, valid for ever: a number in decimal, a BOOL as 0 or 1, "" when unset. */
const char *tt_param_shown(const char *name);
bool tt_param_is_set(const char *name);

/* Where values come from instead of the process's environment: an environment plugin. */
struct tt_param_source {
    const char *origin;                      /* "plugin <name>" */
    const char *(*lookup)(const char *name); /* NULL: unset. Any thread; valid for ever */
};
/* Read variables that have not been read yet from `source` (NULL: the environment). The variables
 * that name plugins and files, and those of the log, are still read from the environment. */
void tt_param_set_source(const struct tt_param_source *source);
/* The text of a variable as the environment or the source has it now; NULL: unset. */
const char *tt_param_text(const char *name);

/* "environment", "file <path>", "plugin <name>", "default": where the value came from. */
const char *tt_param_origin(const char *name);

/* Write what is wrong with the name of an environment variable into `text` ("is not a known
 * variable and has no effect; did you mean ...?"). False: it is known, or is not one of the
 * library's. */
bool tt_param_name_wrong(const char *name, char *text, size_t text_bytes);

#define TT_MACHINE_FILE_BYTES 1024

/* Path of the machine file in use: that of NCCL_TOPO_FILE (empty: none), which need not exist; else
 * that of virtual machines (/var/run/nvidia-topologyd/virtualTopology.xml below HWLOC_FSROOT) if it
 * can be read. False: none. */
bool tt_param_machine_file(char path[TT_MACHINE_FILE_BYTES]);

/* Read configuration files into the environment (once), then name every unknown NCCL_ and TUTTI_
 * variable once, with the nearest known one. Called by every init entry. */
void tt_param_load(void);

/* True when another rank of this host says what is wrong with the environment (base/beside.h). Any
 * thread, set-up paths only. */
bool tt_param_are_reported(void);

/* Warn of a setting that has no effect: misspelt, not understood, out of bounds, or naming a
 * missing file or plugin. Under TUTTI_STRICT the first such sentence is kept for
 * tt_param_check(). Any thread, set-up paths only. */
#define tt_warn_setting(...)                                                                       \
    tt_warn_setting_at(&(const struct tt_log_location){__FILE__, __LINE__, __func__}, __VA_ARGS__)
void tt_warn_setting_at(const struct tt_log_location *location, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Under TUTTI_STRICT, when tt_warn_setting() was called: ncclInvalidUsage with its first sentence;
 * else ncclSuccess. */
ncclResult_t tt_param_check(void);

/* Tests only: forget cached values. */
void tt_param_forget(void);
