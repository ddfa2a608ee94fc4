/* What two machines are to each other, in words. */
#pragma once

#include "explain/explain.h"

/* Add one line about b, as seen from a, of which it differs. channels: what is known of theirs,
 * e.g. "rings over 2 nodes give 192 instead of 384 GB/s". */
void verdict_make(const struct box *a, const struct box *b, const char *channels,
                  struct text *verdict);
