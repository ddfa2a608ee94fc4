/* Devices: memory that peers can map, streams, work items, events.
 * Implemented by device/host in libtutti-host.so.1 (one state per process, shared by libnccl and
 * the CUDA faces). All functions may be called from any thread.
 *
 * Result codes are CUDA's numbers (0 success, 1 invalid value, 2 out of memory, 400 bad handle,
 * 600 not ready, ...), because a device's codes are what the faces must return; this is the one
 * exception to "ncclResult_t everywhere", and it ends at this header's callers.
 *
 * This part is what libnccl uses; what only the faces need is in device/host/host.h. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default) /* all of this is exported from libtutti-host */

struct CUevent_st;
struct CUstream_st; /* CUDA's stream handle is our stream object; 0, 1, 2 are the default streams */

/* ---- devices ---- */
int tuttiHostDeviceCount(void);     /* visible devices; 0 when there are none */
int tuttiHostGetDevice(void);       /* current device of the thread */
int tuttiHostSetDevice(int device); /* 101 on a bad ordinal */

struct tt_device_info {
    char name[256];
    char bus_id[16]; /* "0000:07:00.0", lower case */
    unsigned char uuid[16];
    int nvml_index; /* number on the machine, before CUDA_VISIBLE_DEVICES */
    int cc_major, cc_minor;
    size_t memory_bytes;
    int sms;
};
int tuttiHostDeviceInfo(int device, struct tt_device_info *info);

/* ---- memory ---- */

/* All memory that devices hand out lies in one range of addresses of the process, backed by one
 * sparse memfd: [control | pinned and managed | device 0 | device 1 | ...]. An offset into the
 * range names the byte in every process that maps the fd. */
struct tt_range {
    char *base;
    size_t bytes;
    int memfd;  /* owned by the device room; duplicate before handing out; -1 where the system has
                   none: the memory cannot be shared then */
    char *view; /* the bytes from view_offset on once more, see tuttiHostView(); or NULL */
    size_t view_offset;
};
const struct tt_range *
tuttiHostRange(void); /* NULL when the reservation failed (reason was logged) */

/* Memory of the control part: zeroed, 4096-aligned, not counted as device memory, sparse until
 * touched. */
int tuttiHostControlAlloc(size_t bytes, void **ptr_out);
void tuttiHostControlFree(void *ptr, size_t bytes);

int tuttiHostMalloc(int device, size_t bytes, void **ptr_out); /* as cudaMalloc */
int tuttiHostFree(void *ptr); /* of tuttiHostMalloc(); no work may use it any more */
/* As cudaFree, but without waiting; also for memory of a pool. From now on no look-up finds the
 * allocation; its bytes stay valid for all work that is queued now on any device. */
int tuttiHostFreeUsed(void *ptr);

/* What NCCL's objects need: who takes it from them is told, and the process exits with status 1. */
struct tt_hold {
    const void *owner; /* names it */
    const void *base;  /* memory that must not be freed; NULL: the device must not be reset */
    int device;        /* whose reset ends it */
    bool refuses;      /* tuttiHostFreeUsed() answers 1, as cudaFree() does */
    const char *why;   /* a literal, behind "... is freed, but " */
};
void tuttiHostHold(const struct tt_hold *hold); /* copied; nothing without TUTTI_STRICT */
void tuttiHostLet(const void *owner);           /* all that it needs */
bool tuttiHostForbidsCalls(void); /* in a host function, where CUDA does, under TUTTI_STRICT */
enum tt_memory_kind {
    TT_MEMORY_FOREIGN, /* not ours: malloc, mmap, stack */
    TT_MEMORY_DEVICE,
    TT_MEMORY_PINNED,
    TT_MEMORY_MANAGED,
    TT_MEMORY_CONTROL,
};
struct tt_pointer {
    enum tt_memory_kind kind;
    int device; /* of pinned and managed memory: the one that was current */
    char *base; /* start and size of the live allocation that holds it; NULL when freed or none */
    size_t bytes;
};
int tuttiHostPointer(const void *ptr, struct tt_pointer *pointer_out);
/* Count of allocations of the range that were freed: while it does not change, allocations that
 * were live still are. Valid as long as the process. */
const _Atomic uint64_t *tuttiHostFrees(void);
/* As tuttiHostPointer(), also for memory outside of the range that CUDA knows: parts that are
 * mapped next to each other, memory of another process, and registered host memory (as pinned). */
int tuttiHostLocate(const void *ptr, struct tt_pointer *pointer_out);

/* Under the race checker the program's own mapping of pinned and managed memory is closed to it
 * while work uses that memory and the program has not waited for the work. Work on streams
 * therefore uses a second address of the same memory, which is always open: the view. */
bool tuttiHostHasViews(void);
void *tuttiHostView(const void *ptr);

/* ---- work ---- */

enum tt_step {
    TT_STEP_DONE,     /* finished, well or not: the stream goes on */
    TT_STEP_PROGRESS, /* did something, call again soon */
    TT_STEP_WAIT,     /* nothing to do now: waits for a peer */
};
enum tt_item_call {
    TT_ITEM_STEP,    /* do a slice of work, never block */
    TT_ITEM_RELEASE, /* no call will follow: free yourself */
    TT_ITEM_HOLD,  /* captured and `wants_issue`: a graph with this item is about to be launched */
    TT_ITEM_ISSUE, /* after HOLD: the launch has its position on the stream */
    TT_ITEM_LET,   /* after HOLD instead: the stream refused the launch */
    TT_ITEM_TOUCH, /* `reports_touches`: report by tuttiHostTouch() what a run reads and writes */
};

/* One unit of work in stream order. `step` is the only function pointer by which a lower room calls
 * a higher one. `step(item, TT_ITEM_STEP)` is called by one thread at a time (any thread: the
 * submitter, a waiter, a worker) until it answers TT_STEP_DONE; a captured item is run again at
 * each graph launch. `step(item, TT_ITEM_RELEASE)` comes exactly once: after DONE, or when the last
 * graph that holds the item is destroyed. A captured item that wants it gets TT_ITEM_HOLD and
 * TT_ITEM_ISSUE once for each run to come, from the launching thread, in the order of the launches
 * and of the graph's nodes, before the run's first step. One graph is launched at a time in the
 * process; the launch takes its position on the stream between the two calls. */
struct tt_item {
    enum tt_step (*step)(struct tt_item *item, enum tt_item_call call);
    bool wants_issue;
    bool
        reports_touches; /* it handles TT_ITEM_TOUCH; else the checker does not know its accesses */
    bool asks_one;       /* it waits for one peer only, which may answer at once */
};

/* ---- what items report to the checker (TUTTI_CHECK=race), inside step(item, TT_ITEM_TOUCH) ----
 */
void tuttiHostTouch(const void *ptr, size_t bytes, bool write);
/* The touches that follow belong to part `part` of the item; parts run concurrently. */
void tuttiHostTouchPart(int part);
/* They belong to a call of a group, for reports: its name (a literal), and its number in the group
 * from 1 on; 0: not known. */
void tuttiHostTouchCall(const char *name, int number);
void tuttiHostTouchName(const char *name); /* of the operation, for reports; copied */
void tuttiHostTouchUnknown(void);          /* it may touch more than it reports */
/* A word that a stream writes, or waits for until it holds what is asked. */
struct tt_word {
    void *address;
    uint64_t value;
    unsigned compare; /* CU_STREAM_WAIT_VALUE_* */
    bool wide, waits; /* wide: 64 bits */
};
/* True when the word's memory may be read, and written unless the stream waits for it. Memory that
 * did not come from this runtime is not checked. */
bool tuttiHostWordFits(const struct tt_word *word);
bool tuttiHostWordHolds(const struct tt_word *word, uint64_t now);
uint64_t tuttiHostWordNow(const struct tt_word *word); /* what it holds, loaded to acquire */
void tuttiHostTouchWord(const struct tt_word *word);
/* A collective of the ranks of `group` that are in this process. `member` identifies this rank; its
 * n-th call meets the n-th of the others. */
enum tt_sync_role {
    TT_SYNC_ALL,    /* this rank and all others wait for each other */
    TT_SYNC_SOURCE, /* the others wait for this rank, it waits for none: a root that sends */
    TT_SYNC_SINK,   /* this rank waits for the others */
    TT_SYNC_NONE,   /* no rank waits; it is still work of the member */
};
struct tt_collective {
    uint64_t group;
    int nranks; /* of the group, in all processes */
    enum tt_sync_role role;
};
void tuttiHostTouchCollective(const void *member, const struct tt_collective *collective);
/* A message between two ranks of the group: the receiver waits for the sender. */
struct tt_peer_message {
    uint64_t group;
    int from, to;
};
void tuttiHostTouchMessage(const struct tt_peer_message *message, bool sends);
/* True when the race checker is on. The functions that follow are called outside of items. */
bool tuttiHostChecks(void);
/* Do not check an allocation: the caller alone uses it and orders the uses. */
void tuttiHostTouchNever(const void *base);
/* The stream gets several items that run concurrently. `item` reports for all of them: its step is
 * called here with TT_ITEM_TOUCH, and it is not put on the stream. Only with tuttiHostChecks(). */
void tuttiHostCheckParts(struct CUstream_st *stream, struct tt_item *item);
/* The caller has waited for all work of the member, and no more follows. */
void tuttiHostMemberOver(const void *member);

/* Put an item on a stream.
 * Idle stream, nothing captured: claims it and steps the item once; an unfinished item is parked.
 * `allow_inline` false: always queue. Capturing stream: the item becomes a graph node.
 * Errors (nothing was queued, RELEASE was not called): 400 bad stream, 900.. capture errors. */
int tuttiHostSubmit(struct CUstream_st *stream, struct tt_item *item, bool allow_inline);

/* Claim an idle stream, for a caller that steps its item itself: two direct calls instead of one
 * through a function pointer. */
enum tt_claim {
    TT_CLAIM_TAKEN, /* it was idle: the caller owns it until tuttiHostClaimEnd() or ...Park() */
    TT_CLAIM_BUSY,  /* tuttiHostSubmit() without `allow_inline` queues */
    TT_CLAIM_CAPTURING,
    TT_CLAIM_INVALID, /* no stream: tuttiHostSubmit() says why */
};
/* *stream_out is set when the stream is taken. With the race checker, which must see all items,
 * streams count as busy.                                                                    hot */
enum tt_claim tuttiHostClaim(struct CUstream_st *handle, struct CUstream_st **stream_out);
/* End the claim: the item is done and was released.                                         hot */
void tuttiHostClaimEnd(struct CUstream_st *stream);
/* End the claim with an unfinished item: waiters and workers step it. */
void tuttiHostClaimPark(struct CUstream_st *stream, struct tt_item *item);

struct tt_stream_info {
    int device;
    bool capturing;
    uint64_t capture_id; /* names the capture; 0 when not capturing */
    uint64_t stream_id;  /* process-unique */
};
int tuttiHostStreamInfo(struct CUstream_st *stream, struct tt_stream_info *info);

/* Make later work of `after` wait for all present work of `before` (record + wait of a private
 * event); in capture this adds the dependency to the graph. */
int tuttiHostStreamJoin(struct CUstream_st *after, struct CUstream_st *before);

/* Record an event: it completes when the work that is on the stream now is done. 400 when stream
 * and event belong to different devices. On a capturing stream the event is captured. */
int tuttiHostEventRecord(struct CUevent_st *event, struct CUstream_st *stream);
/* 0 when the event has no timing and is not shared with other processes; else 1. 400: no event. */
int tuttiHostEventPlain(const struct CUevent_st *event);

/* Block until the stream's present work is done, running work of this process meanwhile. */
int tuttiHostStreamSynchronize(struct CUstream_st *stream);

/* Run one slice of any runnable work of this process; for threads that wait for something else
 * (bootstrap, connection set-up). Returns true when something was done. Never blocks. */
bool tuttiHostHelp(void);

/* Number of threads that may run at once (cores this process may use). */
int tuttiHostCores(void);

/* Note that the ranks on this host, in all processes, outnumber the cores that they may use: from
 * now on waits of this process yield the core at once. */
void tuttiHostOversubscribe(void);
bool tuttiHostOversubscribed(void); /* true after that */

/* Let the process exit with status 1, after all reports at its end were written, where it would end
 * well; one line then says so. A finding of the race checker replaces it. why: a literal */
void tuttiHostFail(const char *why);

/* The marker by which our faces differ from NVIDIA's: version text. */
extern const char tuttiHostcuda[];

#pragma GCC visibility pop
