/* Every variable the library obeys, in one table (param_table.c): type, default, meaning.
 * Values are read once: environment, then NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tt_param_type { TT_PARAM_INT, TT_PARAM_BOOL, TT_PARAM_STR, TT_PARAM_BYTES };

struct tt_param {
    const char *name; /* full environment name */
    enum tt_param_type type;
    const char *fallback; /* default as text; NULL: unset */
    const char *area;     /* debug, init, net, socket, ... as in the table of variables */
    const char *values;   /* what it accepts, for people */
    const char *meaning;  /* one line */
    bool obeyed;          /* false: known, accepted, without effect on the host device */
};

/* All known variables, sorted by name. *count_out entries. */
const struct tt_param *tt_param_table(size_t *count_out);

/* Value of a variable of the table; asserts on an unknown name. First read logs
 * "<NAME> set by environment to <value>" (ENV). TT_PARAM_INT: strtoll base 0; BOOL:
 * 0/1/T/F/TRUE/FALSE; BYTES: number with K, M, G. A bad value is one WARN naming variable, value
 * and what is accepted, and the default is used. Set-up paths only: looks the name up. Thread-safe.
 */
int64_t tt_param_int(const char *name);
bool tt_param_bool(const char *name);
const char *tt_param_str(const char *name); /* NULL when unset; valid for ever */
bool tt_param_is_set(const char *name);

/* "environment", "file <path>", "default": where the value came from. */
const char *tt_param_origin(const char *name);

/* Read configuration files into the environment (once), then name every unknown NCCL_ and TUTTI_
 * variable once, with the nearest known one. Called by every init entry. */
void tt_param_load(void);

/* Tests only: forget cached values. */
void tt_param_forget(void);
