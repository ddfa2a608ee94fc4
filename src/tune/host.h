/* Figures of this host's cost model, and the file in which `tutti tune` keeps them. A file is used
 * only on the machine that it names. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A program from a file at one size, and what the library itself chose there: one line of the file.
 */
struct tt_tune_measured {
    uint64_t hash;  /* tt_program_hash() */
    uint64_t bytes; /* as tt_tune_query has them */
    double usec, own_usec;
};

enum { TT_TUNE_MEASURED_MOST = 256 };

struct tt_tune_host {
    double phase_usec;              /* calls around a phase, and a line to the other core */
    double switch_usec;             /* hand the core to the next rank */
    double net_phase_usec;          /* one message between hosts, proxies included */
    double touch_usec;              /* one slot filled or emptied */
    double direct_bytes_usec;       /* bytes per microsecond: user buffers in a shared cache */
    double slot_bytes_usec;         /* slots of another rank */
    double crowded_slot_bytes_usec; /* the same when others used the core since */
    double net_bytes_usec;          /* one host's socket traffic */
    uint64_t nmeasured;
    struct tt_tune_measured measured[TT_TUNE_MEASURED_MOST];
};
/* The figures that are used without a file; measured on two cores of a server processor. */
extern const struct tt_tune_host tt_tune_host_default;

enum { TT_TUNE_FIGURES = 8 };
/* The figures by the names that the file has. */
const char *tt_tune_host_name(int figure);
double *tt_tune_host_figure(struct tt_tune_host *host, int figure);

enum { TT_TUNE_MACHINE_BYTES = 160 };
/* One line that names the machine: equal for the same processor and number of cores. */
void tt_tune_machine_name(char name[TT_TUNE_MACHINE_BYTES]);

/* Read figures written for `machine`. Lines that begin with # are remarks, those with "time" are
 * for tuner plugins, but must be whole. Errors: ncclInvalidUsage, *reason_out (of reason_bytes)
 * says in a sentence what is wrong with the file: another machine's, a line that means nothing or
 * is cut, a figure missing or absurd. */
ncclResult_t tt_tune_host_parse(const char *text, const char *machine,
                                struct tt_tune_host *host_out, char *reason, size_t reason_bytes);
/* Print the head, the figures and the measured programs of the file; `tutti tune` prints its lines
 * after them. */
void tt_tune_host_print(FILE *out, const char *machine, const struct tt_tune_host *host);

/* Path of the file: TUTTI_TUNE_FILE, else ~/.config/tutti/machine.tune. False: there is none, or
 * TUTTI_TUNE_FILE is "none". */
bool tt_tune_host_path(char *path, size_t path_bytes);

struct tt_tune_found {
    char path[4096];  /* of the file; "": there is no place for one */
    char reason[512]; /* why it is refused; "": it is not, or there is none */
    uint64_t hash;    /* equal for equal figures; 0: the built-in ones */
};
/* This machine's file if there is one; else, or when it is refused, the default. */
void tt_tune_host_find(struct tt_tune_host *host_out, struct tt_tune_found *found_out);
/* The same, with a line in the log. *hash_out as above. */
void tt_tune_host_load(struct tt_tune_host *host_out, uint64_t *hash_out);
