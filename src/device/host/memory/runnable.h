/* The streams that have something queued, by number. Private to the room; thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct CUstream_st;

/* True when it was not among them. */
bool tt_host_runnable_add(size_t number);
/* The stream was seen idle; it stays if it is not any more. */
void tt_host_runnable_remove(size_t number);
/* Each of them in turn. One whose bit another thread is just changing may be missed. */
void tt_host_runnable_visit(void (*see)(struct CUstream_st *stream, void *arg), void *arg);
/* Every stream on which a call that has returned has queued something that is not done; others too,
 * and some twice. Costs what there is to do as a rule, not what streams there ever were. */
void tt_host_busy_visit(void (*see)(struct CUstream_st *stream, void *arg), void *arg);
