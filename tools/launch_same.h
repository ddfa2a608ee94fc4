/* Warnings that several ranks give in the same words: the first is printed as it came, and one line
 * says which ranks have repeated it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct launch_same;

/* NULL: memory is short. */
struct launch_same *launch_same_create(int nranks);
void launch_same_destroy(struct launch_same *same); /* accepts NULL */

/* A line that a rank wrote. True: it is a warning of the library that another rank has given before
 * in the same words, its own number apart; whoever asks does not print it. */
bool launch_same_repeats(struct launch_same *same, int rank, const char *line, size_t bytes);

/* A line that a rank wrote is a warning of the library. */
bool launch_same_is_warning(const char *line, size_t bytes);

/* The job is being ended because the user said so: what ranks warn of from now on (that others are
 * gone) is a consequence, and is not to be printed. Accepts NULL. */
void launch_same_hush(struct launch_same *same);

/* Print which ranks repeated a warning: as soon as no more are likely to, or `all` now. `name` is
 * the command's. True: some are left for later. */
bool launch_same_tell(struct launch_same *same, const char *name, bool all, FILE *to);
