/* Streams and events of the host device, for the CUDA faces. Results are CUDA's numbers. Any
 * thread. Stream handles: 0 and 1 the legacy default stream of the current device, 2 the thread's
 * own default stream, else what tuttiHostStreamCreate() gave. Wrong or dead handles give 400. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

struct CUevent_st;

/* ---- streams ---- */
enum { TT_STREAM_NON_BLOCKING = 1 };
/* On the current device. 1 for unknown flags; the priority is clamped to -5..0. */
int tuttiHostStreamCreate(unsigned flags, int priority, struct CUstream_st **stream_out);
/* Destroy a stream without waiting; queued work still runs. 400 for the default streams. A capture
 * that includes the stream becomes invalid. */
int tuttiHostStreamDestroy(struct CUstream_st *stream);
/* 0 idle, 600 busy; does a slice of work. 900 in capture, which becomes invalid; 906 for the
 * legacy stream while a blocking stream of its device captures. So does synchronize. */
int tuttiHostStreamQuery(struct CUstream_st *stream);
/* The same for a call that no capture can take, and that waits for nothing: 0 also when busy. */
int tuttiHostStreamAllows(struct CUstream_st *stream);
int tuttiHostStreamFlags(struct CUstream_st *stream, unsigned *flags);
int tuttiHostStreamPriority(struct CUstream_st *stream, int *priority);
int tuttiHostStreamPrioritySet(struct CUstream_st *stream, int priority); /* clamped */
/* Attributes by number, TT_ATTRIBUTE_BYTES each; they are only stored. Get leaves *value unchanged
 * when none was set. */
enum { TT_ATTRIBUTE_BYTES = 64 };
int tuttiHostStreamAttributeSet(struct CUstream_st *stream, int id, const void *value);
int tuttiHostStreamAttributeGet(struct CUstream_st *stream, int id, void *value);
int tuttiHostStreamAttributesCopy(struct CUstream_st *to, struct CUstream_st *from);
/* Wait for the present work of all streams of the device; 900 when a capture forbids it. */
int tuttiHostDeviceSynchronize(int device);
/* Wait, then destroy the device's streams, events and pools, free its memory and the host memory
 * that was allocated, opened or registered while it was current, and reset its settings. */
int tuttiHostDeviceReset(int device);

/* ---- work that every program enqueues ---- */
/* A copy in stream order: of width bytes (height 0 or 1), of rows, or of slices (depth above 1). A
 * small copy runs at once when the stream is idle. The call returns when the copy is done if one
 * end is pageable or both are host memory (pageable, pinned, registered); else at once. 800: it
 * would have to wait inside a host function. */
struct tt_copy {
    void *dst;
    const void *src;
    size_t dst_pitch, src_pitch, width, height; /* bytes from row to row; bytes; rows */
    size_t dst_slice, src_slice, depth;         /* bytes from slice to slice; slices */
};
int tuttiHostCopy(struct CUstream_st *stream, const struct tt_copy *copy);
/* The same, and wait for the stream in this thread. Both: 1 for freed memory, and for more bytes
 * than an allocation has. */
int tuttiHostCopyNow(struct CUstream_st *stream, const struct tt_copy *copy);
/* The same two for plain bytes, with a fast path for the usual case.                         hot */
int tuttiHostCopyBytes(struct CUstream_st *stream, void *dst, const void *src, size_t bytes);
int tuttiHostCopyBytesNow(struct CUstream_st *stream, void *dst, const void *src, size_t bytes);
struct tt_set {
    void *ptr;
    unsigned value, elem_bytes;  /* 1, 2 or 4: so many low bytes of value */
    size_t pitch, width, height; /* bytes from row to row; elements; rows */
};
/* Write value to every element; 1 when they are not in one allocation, or not at multiples of their
 * size. */
int tuttiHostSet(struct CUstream_st *stream, const struct tt_set *set);
/* True when tuttiHostSet() would return 0 for a valid stream. The race checker counts false as a
 * call. */
bool tuttiHostSetFits(const struct tt_set *set);
/* Call fn(arg) in stream order, in a waiting thread or a worker, never inside this call. */
int tuttiHostCall(struct CUstream_st *stream, void (*fn)(void *), void *arg);

/* ---- events ---- */
enum { TT_EVENT_BLOCKING = 1, TT_EVENT_NO_TIMING = 2, TT_EVENT_INTERPROCESS = 4 };
/* On the current device. 1 for unknown flags, or interprocess with timing. */
int tuttiHostEventCreate(unsigned flags, struct CUevent_st **event_out);
int tuttiHostEventDestroy(struct CUevent_st *event); /* waits that were enqueued still hold */
/* 0 reached or never recorded, 600, 907 captured (the capture becomes invalid). */
int tuttiHostEventQuery(struct CUevent_st *event);
int tuttiHostEventSynchronize(struct CUevent_st *event);
/* 400 without timing or never recorded, 600 not reached. */
int tuttiHostEventElapsed(float *msec, struct CUevent_st *start, struct CUevent_st *end);
/* Make the stream wait for the latest record at the time of this call; no wait if never recorded.
 */
int tuttiHostStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event);
/* In capture: a node that records or waits at each launch (cudaEventRecordExternal,
 * cudaEventWaitExternal). 1 outside of a capture. */
int tuttiHostEventRecordExternal(struct CUevent_st *event, struct CUstream_st *stream);
int tuttiHostStreamWaitExternal(struct CUstream_st *stream, struct CUevent_st *event);

#pragma GCC visibility pop
