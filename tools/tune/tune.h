/* What the files of `tutti tune` share: a run of the measuring program, and what follows of it. */
#pragma once

#include "tune/host.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct tune_run {             /* one start of `tutti perf` */
    const char *algo, *proto; /* NCCL_ALGO, NCCL_PROTO; NULL: any */
    const char *program;      /* a file to run in place of the library's own; NULL: none */
    const char *figures;      /* TUTTI_TUNE_FILE; NULL: the built-in ones */
    int nranks;
    const char *least, *most;  /* sizes, as perf takes them; a factor of 8 from one to the next */
    const char *operations[6]; /* ended by NULL */
    int repeats;               /* of the whole table; the least disturbed time counts */
    bool over_network;
    int cores;          /* pinned to the first so many that this process may use; 0: to none */
    double timeout_sec; /* given up then; 0 or less: not even started, nothing is said */
};
/* Called for each size of each operation with the least time over the repeats. */
typedef void (*tune_seen)(void *context, const char *operation, size_t bytes, double usec);
/* False when it failed (said). */
bool tune_run(const struct tune_run *run, tune_seen seen, void *context);
/* The time of a run of one size; -1 when it failed (said). */
double tune_time(const struct tune_run *run);

double tune_now_sec(void);

/* Add what the programs of the folder TUTTI_PROGRAM_DIR take on this machine, and what the library
 * takes in their place. What is not measured then is said. */
void tune_programs(const char *machine, double end_sec, struct tt_tune_host *host);

/* Times in microseconds from which the figures follow; -1: not measured. AllReduce of floats. */
struct tune_samples {
    int cores;                     /* that the crowd shares */
    double oneshot_8, oneshot_64k; /* 2 ranks, a core each */
    double direct_1m;              /* 2 ranks */
    double shared2_8, shared4_8;   /* one-shot, 2 and 4 ranks per core, 8 bytes */
    double shared2_64k;            /* one-shot, 2 ranks per core */
    double net_8, net_1m;          /* ring, 2 ranks over sockets */
};
/* Solve the model (tune/model.c) for its figures. A figure that cannot be had of the samples keeps
 * its built-in value, and its bit in *kept_out is set (by the number that tune/host.h gives it). */
void tune_fit(const struct tune_samples *samples, struct tt_tune_host *host_out,
              unsigned *kept_out);

/* ---- figures.c ---- */

/* Print each figure beside the built-in one; `kept` as tune_fit() says it. A member for each is
 * added to `list` (NULL: to none). False when one of them is hard to believe (said). */
bool tune_figures_compare(const struct tt_tune_host *host, unsigned kept, json_t *list);
/* Name, value and built-in value of each. A new reference. */
json_t *tune_figures_json(const struct tt_tune_host *host);
