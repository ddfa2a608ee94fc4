/* Warnings that several ranks give in the same words: the first is printed as it came, and one line
 * says which ranks have repeated it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct launch_same;

enum { LAUNCH_KEY_BYTES = 1024 };

/* By what sentences are compared. */
struct launch_keys {
    char all[LAUNCH_KEY_BYTES];   /* the sentence with * for the rank's own number wherever it
                                     stands, */
    char first[LAUNCH_KEY_BYTES]; /* and where it stands first */
};

/* The sentence of a line that `rank` wrote, and its keys. NULL: the line is no warning of the
 * library, or too long to compare. */
const char *launch_same_keys(int rank, const char *line, size_t bytes, struct launch_keys *keys,
                             size_t *sentence_bytes);
/* What a rank says of itself has its number anywhere ("rank 3: ... rank 3 waits"), what ranks say
 * of each other at the start alone ("rank 3: rank 0 called ..., rank 3 called ..."). */
bool launch_same_keys_match(const struct launch_keys *left, const struct launch_keys *right);

/* NULL: memory is short. */
struct launch_same *launch_same_create(void);
void launch_same_destroy(struct launch_same *same); /* accepts NULL */

/* A line that a rank's process wrote. True: it is a warning of the library that another rank has
 * given before in the same words, its own number apart; the caller does not print it. Of several
 * ranks of a communicator in one process each is one. */
bool launch_same_repeats(struct launch_same *same, int rank, const char *line, size_t bytes);

/* A line that a rank wrote is a warning of the library. */
bool launch_same_is_warning(const char *line, size_t bytes);

/* The job is being ended because the user said so: what ranks warn of from now on (that others are
 * gone) is a consequence, and is not to be printed. Accepts NULL. */
void launch_same_hush(struct launch_same *same);

/* Print which ranks repeated a warning: as soon as no more are likely to, or `all` now. `name` is
 * the command's. True: some are left for later. */
bool launch_same_report(struct launch_same *same, const char *name, bool all, FILE *to);
