/* What the subcommands of `tutti program` and `tutti verify` share: options, a program from a file
 * or a generator, what is proved of it, and how it is printed. */
#pragma once

#include "program/format/flow.h"
#include "program/import/import.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum program_option { PROGRAM_JSON = 1, PROGRAM_SVG = 2, PROGRAM_CHUNK = 4 };

struct program_options {
    const char *command; /* for messages: "verify", "program show" */
    const char *paths[2];
    int npaths;
    const char *algo, *op, *proto;  /* NULL: not given */
    const char *counts;             /* likewise; of an AlltoAllv */
    long ranks, hosts, root, chunk; /* hosts 0: not given; chunk -1: all */
    const char *host_sizes;         /* ranks of each host, "4,3,4"; NULL: as many on each */
    long host_ranks;                /* their sum */
    bool json, svg;
};

/* Read the words behind the command. 0: done; 2: wrong, and said; -1: help is wanted. */
int program_options_read(struct program_options *options, unsigned int allowed, int argc,
                         char **argv);
void program_options_help(unsigned int allowed);

struct program_source {
    struct tt_program *program; /* owned, by `import` where there is one */
    struct tt_import *import;   /* owned; NULL: a generator's */
    const char *name;           /* borrowed: of the file, or "" */
    int nhosts;                 /* that predictions are for; 1: this machine */
    int *host_first; /* owned, [nhosts + 1]: rank at which each begins, and the end; NULL: hosts
                        have as many ranks each */
};

/* The options' program: of the file `path`, or where that is NULL what a generator makes. 0: there;
 * 1: refused; 2: usage. What is wrong has been said, with the file's line. */
int program_open(const struct program_options *options, const char *path,
                 struct program_source *source);
void program_close(struct program_source *source);
/* "AllReduce RING SIMPLE of 8 ranks", and the file's own name. */
void program_title(const struct program_source *source, char *text, size_t bytes);

enum { PROGRAM_SLOTS = 8 }; /* messages that are under way on an edge of the library */

enum { PROGRAM_PREDICTED = 4 }; /* sizes */

struct program_prediction {
    const char *size; /* "4 KiB" */
    size_t bytes;
    double usec, own_usec; /* of the program; of what the library has without it */
    const char *own_algo;  /* NULL: it has none */
};

struct program_predictions {
    bool there, measured; /* measured: by figures of `tutti tune` */
    int nhosts;
    struct program_prediction rows[PROGRAM_PREDICTED];
};

struct program_proof {
    bool proved;         /* for all uses that are meant */
    bool right[2];       /* out of place, in place */
    bool meant[2];       /* likewise: what the file says it is for; a generator's: out of place */
    char fault[2][320];  /* of those that are not right */
    int nslots;          /* the fewest that it ends with */
    char counts[160];    /* elements that it was proved for, in chunks of 4 */
    struct tt_flow flow; /* owned; when proved */
    struct program_predictions predicted;
};
/* False: memory is short, and said. */
bool program_prove(const struct program_source *source, struct program_proof *proof);
void program_proof_fini(struct program_proof *proof);

/* Steps, and what the busiest rank sends, beside what any program needs; of an unproved program
 * that never ends nothing is known (nsteps < 0). */
void program_flow_print(const struct tt_program *program, const struct tt_flow *flow);

/* Predict the time of a program that ends. */
void program_predict(const struct program_source *source, struct program_predictions *predictions);
void program_predict_print(const struct program_predictions *predictions);
json_t *program_predict_json(const struct program_predictions *predictions);

/* The collective of that name, whatever the case, '-' and '_'; -1: none. */
int program_find_op(const char *word);

/* Read counts of n ranks: rows parted by ';' or line ends, numbers by ',' or blanks; `text` is the
 * list, or '@' and a file's name; NULL: 1 for each pair. 0: *counts_out is the caller's, n * n of
 * them; 2: wrong, said. */
int program_read_counts(const struct program_options *options, const char *text, int n,
                        int **counts_out);

int program_verify(const struct program_options *options);
int program_list(const struct program_options *options);
int program_show(const struct program_options *options);
int program_export(const struct program_options *options);
int program_diff(const struct program_options *options);
/* Options of its own: exit status, or -1: help is wanted. */
int program_search(int argc, char **argv);
void program_search_help(void);
/* A space-time diagram of `chunk` (-1: all); false when it cannot be drawn, and said. */
bool program_svg(const struct program_source *source, const struct tt_flow *flow, int chunk,
                 FILE *out);

void program_print_json(json_t *value); /* and free it */
