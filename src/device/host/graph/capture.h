/* Capture, as calls and streams use it. Private to the room. */
#pragma once

#include <stddef.h>

struct CUevent_st;
struct CUstream_st;
struct tt_host_op;
struct tt_node;

/* Add a node behind the stream's tips. Takes what op refers to. params: what the node is said to
 * be, where op does not say it; or NULL. */
int tt_host_capture_add_node(struct CUstream_st *stream, const struct tt_host_op *op,
                             const struct tt_node *params);
static inline int tt_host_capture_add(struct CUstream_st *stream, const struct tt_host_op *op)
{
    return tt_host_capture_add_node(stream, op, NULL);
}
void tt_host_capture_invalidate(struct CUstream_st *stream);
void tt_host_capture_leave(struct CUstream_st *stream);
struct tt_host_capture_position; /* where in a capture an event was recorded */
struct tt_host_capture_position *tt_host_capture_position(struct CUstream_st *stream);
void tt_host_capture_position_drop(struct tt_host_capture_position *position);
void tt_host_capture_position_spoil(
    const struct tt_host_capture_position *position); /* its capture is invalid */
int tt_host_capture_join(struct CUstream_st *stream,
                         const struct tt_host_capture_position *position);
/* Forget that the latest record was captured. The event's spinlock is held. */
void tt_host_event_uncapture(struct CUevent_st *event);
