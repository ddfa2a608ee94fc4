/* Streams and events of the host device, for the CUDA faces. Results are CUDA's numbers. Any
 * thread. Stream handles: 0 and 1 the legacy default stream of the current device, 2 the thread's
 * own default stream, else what tuttiHostStreamCreate() gave. Wrong or dead handles give 400. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

struct CUevent_st;

enum { TT_STREAM_NON_BLOCKING = 1 };
int tuttiHostStreamCreate(unsigned flags, int priority, struct CUstream_st **stream_out);
int tuttiHostStreamDestroy(
    struct CUstream_st *stream);                      /* returns at once; queued work still runs */
int tuttiHostStreamQuery(struct CUstream_st *stream); /* 0, 600; does a slice of work */
int tuttiHostStreamFlags(struct CUstream_st *stream, unsigned *flags);
int tuttiHostStreamPriority(struct CUstream_st *stream, int *priority);
int tuttiHostDeviceSynchronize(int device);
/* Wait for everything, then forget streams' and allocations' contents of the device. */
int tuttiHostDeviceReset(int device);

/* ---- work that every program enqueues ---- */
/* height 1: plain copy of width bytes. Runs now when the stream is idle. */
struct tt_copy {
    void *dst;
    const void *src;
    size_t dst_pitch, src_pitch, width, height;
};
int tuttiHostCopy(struct CUstream_st *stream, const struct tt_copy *copy);
int tuttiHostSet(struct CUstream_st *stream, void *ptr, unsigned value, unsigned elem_bytes,
                 size_t pitch, size_t width, size_t height);
/* Runs in stream order on a waiter or a worker, never inside this call. */
int tuttiHostCall(struct CUstream_st *stream, void (*fn)(void *), void *arg);

/* ---- events ---- */
enum { TT_EVENT_BLOCKING = 1, TT_EVENT_NO_TIMING = 2, TT_EVENT_INTERPROCESS = 4 };
int tuttiHostEventCreate(unsigned flags, struct CUevent_st **event_out);
int tuttiHostEventDestroy(struct CUevent_st *event);
int tuttiHostEventRecord(struct CUevent_st *event, struct CUstream_st *stream);
int tuttiHostEventQuery(struct CUevent_st *event);
int tuttiHostEventSynchronize(struct CUevent_st *event);
int tuttiHostEventElapsed(float *msec, struct CUevent_st *start, struct CUevent_st *end);
int tuttiHostStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event);

#pragma GCC visibility pop
