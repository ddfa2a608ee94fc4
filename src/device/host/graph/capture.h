/* Capture, as calls and streams use it. Private to the room. */
#pragma once

struct CUstream_st;
struct host_op;

/* Add a node behind the stream's tips. Takes what op refers to. */
int host_capture_add(struct CUstream_st *stream, const struct host_op *op);
void host_capture_invalidate(struct CUstream_st *stream);
/* A stream that is destroyed leaves its capture; what was captured on it must still be joined. The
 * capture of a destroyed origin is lost. */
void host_capture_orphan(struct CUstream_st *stream);
void host_capture_leave(struct CUstream_st *stream);
struct host_capture_place; /* where in a capture an event was recorded */
struct host_capture_place *host_capture_place(struct CUstream_st *stream);
void host_capture_place_drop(struct host_capture_place *place);
void host_capture_place_spoil(const struct host_capture_place *place); /* its capture is invalid */
int host_capture_join(struct CUstream_st *stream, const struct host_capture_place *place);
