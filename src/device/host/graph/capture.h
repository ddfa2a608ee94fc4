/* Stream capture, for files of the room that submit operations. Private to the room. */
#pragma once

#include <stddef.h>

struct CUevent_st;
struct CUstream_st;
struct tt_host_op;
struct tt_node;

/* Add a node that depends on the stream's last captured nodes. Takes ownership of what op refers
 * to. params: the node's parameters, where op does not contain them; or NULL. */
int tt_host_capture_add_node(struct CUstream_st *stream, const struct tt_host_op *op,
                             const struct tt_node *params);
static inline int tt_host_capture_add(struct CUstream_st *stream, const struct tt_host_op *op)
{
    return tt_host_capture_add_node(stream, op, NULL);
}
void tt_host_capture_invalidate(struct CUstream_st *stream);
struct tt_host_capture_position; /* where in a capture an event was recorded */
struct tt_host_capture_position *tt_host_capture_position(struct CUstream_st *stream);
void tt_host_capture_position_drop(struct tt_host_capture_position *position);
void tt_host_capture_position_spoil(
    const struct tt_host_capture_position *position); /* invalidate its capture */
int tt_host_capture_join(struct CUstream_st *stream,
                         const struct tt_host_capture_position *position);
/* The event was recorded outside a capture: drop its position. Its spinlock is held. */
void tt_host_event_uncapture(struct CUevent_st *event);
