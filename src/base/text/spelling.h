/* Suggestions for misspelt words. Pure: no I/O, any thread. */
#pragma once

#include <stddef.h>

enum { TT_SPELLING_BYTES = 128 }; /* longer words are cut */

/* Number of letters to add, drop, change or swap with the next one that turn `a` into `b`; SIZE_MAX
 * when `b` is longer than TT_SPELLING_BYTES. */
size_t tt_edit_distance(const char *a, const char *b);

/* What stands between the words of a list: ", ", or "; " where a word may have commas. */
const char *tt_param_between(const char *words);

/* For messages about a word that is not in the list `words` ("ONE,TWO, THREE"): "; did you mean
 * TWO?" into `out`, or an empty text when none is near. Case does not count. */
void tt_param_suggest(const char *words, const char *text, size_t len, char *out, size_t out_bytes);
