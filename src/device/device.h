/* What a device is: memory that peers can map, in-order streams, work items, events.
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
    int memfd; /* owned by the device room; duplicate before handing out; -1 where the system has
                  none: the memory cannot be shared then */
};
const struct tt_range *
tuttiHostRange(void); /* NULL when the reservation failed (reason was logged) */

/* Memory of the control part: zeroed, 4096-aligned, not counted as device memory, sparse until
 * touched. */
int tuttiHostControlAlloc(size_t bytes, void **ptr_out);
void tuttiHostControlFree(void *ptr, size_t bytes);

int tuttiHostMalloc(int device, size_t bytes, void **ptr_out); /* as cudaMalloc */
int tuttiHostFree(void *ptr); /* of tuttiHostMalloc(); nothing uses it any more */
/* As cudaFree but for its wait: also memory of a pool. At once nobody finds it any more; its bytes
 * are kept for the work of any device that is queued now and may use it. */
int tuttiHostFreeUsed(void *ptr);

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
/* Grows with each allocation of that range that is freed: while it does not, what was live still
 * is. Lives as long as the process. */
const _Atomic uint64_t *tuttiHostFrees(void);
/* tuttiHostPointer(), and of memory outside of the range that CUDA knows: parts that are mapped
 * side by side, what another process owns, and host memory that was registered (as pinned). */
int tuttiHostLocate(const void *ptr, struct tt_pointer *pointer_out);

/* Under the race checker the program's own mapping of pinned and managed memory is closed while
 * work that it has not waited for uses it. What runs on streams takes the address that is always
 * open. */
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
    TT_ITEM_HOLD,    /* captured and `wants_issue`: a graph launch with this item gets its place */
    TT_ITEM_ISSUE,   /* that launch was issued, */
    TT_ITEM_LET,     /* or it was not, as the stream did not take it */
    TT_ITEM_TOUCH,   /* `tells_touches`: say by tuttiHostTouch() what a run reads and writes */
};

/* One unit of work in stream order. The only function pointer that crosses the house upward.
 * `step(item, TT_ITEM_STEP)` is called by one thread at a time (any thread: the submitter, a
 * waiter, a worker) until it answers TT_STEP_DONE; a captured item is run again at each graph
 * launch. `step(item, TT_ITEM_RELEASE)` comes exactly once: after DONE, or when the last graph that
 * holds the item is destroyed. A captured item that wants it gets TT_ITEM_HOLD and TT_ITEM_ISSUE
 * once for each run to come, from the launching thread, in the order of the launches and of the
 * graph's nodes, before the run's first step; one launch at a time in the process, which gets its
 * place on the stream between the two. */
struct tt_item {
    enum tt_step (*step)(struct tt_item *item, enum tt_item_call call);
    bool wants_issue;
    bool tells_touches; /* else the checker knows nothing of what it does */
    bool asks_one;      /* waits for one peer alone, which may answer at once */
};

/* ---- what items report to the checker (TUTTI_CHECK=race), inside step(item, TT_ITEM_TOUCH) ----
 */
void tuttiHostTouch(const void *ptr, size_t bytes, bool write);
/* What follows is another part of the item; its parts run side by side. */
void tuttiHostTouchPart(int part);
void tuttiHostTouchName(const char *name); /* of the operation, for reports; copied */
void tuttiHostTouchUnknown(void);          /* it may touch more than it reports */
/* A word that a stream writes, or waits for until it holds what is asked. */
struct tt_word {
    void *address;
    uint64_t value;
    unsigned compare; /* CU_STREAM_WAIT_VALUE_* */
    bool wide, waits; /* wide: 64 bits */
};
/* Whether the word lies in memory that may be read, and written unless it is waited for. Of memory
 * that the program has by itself nothing is known. */
bool tuttiHostWordFits(const struct tt_word *word);
bool tuttiHostWordHolds(const struct tt_word *word, uint64_t now);
uint64_t tuttiHostWordNow(const struct tt_word *word); /* what it holds, loaded to acquire */
void tuttiHostTouchWord(const struct tt_word *word);
/* A collective of the ranks of `group` that are in this process. `member` is this rank's, counted
 * by calls. */
enum tt_sync_role {
    TT_SYNC_ALL,    /* waits for what all others bring, and they for it */
    TT_SYNC_SOURCE, /* they wait for it, it for nobody: the root that gives */
    TT_SYNC_SINK,   /* it waits for them */
    TT_SYNC_NONE,   /* work of the member all the same */
};
struct tt_collective {
    uint64_t group;
    int nranks; /* of the group, in all processes */
    enum tt_sync_role role;
};
void tuttiHostTouchCollective(const void *member, const struct tt_collective *collective);
/* A message from rank to rank of the group: who receives it waits for who sends it. */
struct tt_peer_message {
    uint64_t group;
    int from, to;
};
void tuttiHostTouchMessage(const struct tt_peer_message *message, bool sends);
/* Outside of items: parts of what goes onto the stream as several items run side by side, and
 * `item`, which is asked here and not put on it, reports them. Call it under tuttiHostChecks(). */
bool tuttiHostChecks(void);
/* Outside of items: an allocation is nobody's business but the caller's, who orders its uses. */
void tuttiHostTouchNever(const void *base);
void tuttiHostCheckParts(struct CUstream_st *stream, struct tt_item *item);
/* Outside of items: the caller has waited for all work of the member, and none follows. */
void tuttiHostMemberOver(const void *member);

/* Put an item on a stream.
 * Idle stream, nothing captured: claims it and steps the item once; an unfinished item is parked.
 * `allow_inline` false: always queue. Capturing stream: the item becomes a graph node.
 * Errors (nothing was queued, RELEASE was not called): 400 bad stream, 900.. capture errors. */
int tuttiHostSubmit(struct CUstream_st *stream, struct tt_item *item, bool allow_inline);

/* For a caller that steps its item itself, as nothing stands before it: that is two calls and no
 * pointer upward. */
enum tt_claim {
    TT_CLAIM_TAKEN, /* idle: the caller holds its only place until release or park */
    TT_CLAIM_BUSY,  /* tuttiHostSubmit() without `allow_inline` queues */
    TT_CLAIM_CAPTURING,
    TT_CLAIM_INVALID, /* no stream: tuttiHostSubmit() says why */
};
/* *stream_out is set when it is taken. Under the race checker, which wants to see items, streams
 * are busy.                                                                                 hot */
enum tt_claim tuttiHostClaim(struct CUstream_st *handle, struct CUstream_st **stream_out);
/* The item of a taken stream is done and was released.                                      hot */
void tuttiHostClaimEnd(struct CUstream_st *stream);
/* It is not: it is left to waiters and workers. */
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

/* An event of the stream's device is reached when the stream's present work is done. 400 when they
 * are of different devices. In capture it becomes a captured one. */
int tuttiHostEventRecord(struct CUevent_st *event, struct CUstream_st *stream);
/* 0 when the event lives, takes no time and is known to this process alone; 1 otherwise, 400 when
 * it is none. */
int tuttiHostEventPlain(const struct CUevent_st *event);

/* Block until the stream's present work is done, running work of this process meanwhile. */
int tuttiHostStreamSynchronize(struct CUstream_st *stream);

/* Run one slice of any runnable work of this process; for threads that wait for something else
 * (bootstrap, connection set-up). Returns true when something was done. Never blocks. */
bool tuttiHostHelp(void);

/* Number of threads that may run at once (cores this process may use). */
int tuttiHostCores(void);

/* The ranks on this host, in all processes, outnumber the cores that they may use: from now on
 * waits of this process give the core away at once. */
void tuttiHostOversubscribe(void);
bool tuttiHostOversubscribed(void); /* it was said */

/* At the program's end: it ends with this status, once all have said what they have to say. A
 * finding of the checker outranks it. */
void tuttiHostExitStatus(int status);

/* The marker by which our faces differ from NVIDIA's: version text. */
extern const char tuttiHostcuda[];

#pragma GCC visibility pop
