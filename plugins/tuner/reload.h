/* Rules that change while communicators live. */
#pragma once

#include <stddef.h>

struct tuner_size;
struct tuner_reload; /* opaque */

/* Watch the file for a communicator. NULL: its rules stay as they were at its init, because its
 * ranks cannot agree on a call from which new ones hold: it spans hosts, or its host does not say
 * its number (comm_id 0), or there is no shared memory, or TUTTI_TUNER_RELOAD is 0. */
struct tuner_reload *tuner_reload_open(const char *path, unsigned long long comm_id,
                                       const struct tuner_size *size);
/* The text as the communicator's first rank saw it; free() it. NULL: read the file. Accepts NULL.
 */
char *tuner_reload_first(struct tuner_reload *reload, size_t *bytes_out);
/* Count one call. The file's new text, when the ranks agreed that it holds from this call on;
 * free() it. NULL: nothing new. Looks at the file at most once a second. Accepts NULL. */
char *tuner_reload_step(struct tuner_reload *reload, size_t *bytes_out);
void tuner_reload_close(struct tuner_reload *reload);
