/* The set of streams that have queued work, by number. Private to the room; thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct CUstream_st;

/* True: it was not in the set. */
bool tt_host_runnable_add(size_t number);
/* Remove a stream that was idle; it stays where it has work again. */
void tt_host_runnable_remove(size_t number);
/* Visit each stream of the set. One that is added or removed meanwhile may be missed. */
void tt_host_runnable_visit(void (*see)(struct CUstream_st *stream, void *arg), void *arg);
/* Visit every stream with unfinished work of calls that have returned; maybe others, and some
 * twice. The cost grows with the number of such streams, not of all streams. */
void tt_host_busy_visit(void (*see)(struct CUstream_st *stream, void *arg), void *arg);
