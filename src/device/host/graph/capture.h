/* Capture, as calls and streams use it. Private to the room. */
#pragma once

#include <stddef.h>

struct CUevent_st;
struct CUstream_st;
struct host_op;
struct tt_node;

/* Add a node behind the stream's tips. Takes what op refers to. told: what the node is said to be,
 * where op does not say it; or NULL. */
int host_capture_add_node(struct CUstream_st *stream, const struct host_op *op,
                          const struct tt_node *params);
static inline int host_capture_add(struct CUstream_st *stream, const struct host_op *op)
{
    return host_capture_add_node(stream, op, NULL);
}
void host_capture_invalidate(struct CUstream_st *stream);
void host_capture_leave(struct CUstream_st *stream);
struct host_capture_position; /* where in a capture an event was recorded */
struct host_capture_position *host_capture_position(struct CUstream_st *stream);
void host_capture_position_drop(struct host_capture_position *position);
void host_capture_position_spoil(
    const struct host_capture_position *position); /* its capture is invalid */
int host_capture_join(struct CUstream_st *stream, const struct host_capture_position *position);
/* Forget that the latest record was captured. The event's spinlock is held. */
void host_event_uncapture(struct CUevent_st *event);
