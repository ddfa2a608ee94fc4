/* TUTTI_CHECK=race: what the room's public functions report to the checker. Each hook stands behind
 * tt_host_checks(), one predictable branch, and is called when the call it is about is certain to
 * be made. The checker decides by the order that the program asked for, never by the moment at
 * which something happened to run: a race is found although it went well this time.
 *
 * Order. Every stream, and the host's threads together, are a task that counts its operations.
 * An operation knows, per task, the last operation that is certain to be over when it begins (a
 * vector clock). Issuing, events, joins, synchronisation, the legacy stream's rules, collectives
 * with other ranks of the process and words that streams write and await pass that knowledge on.
 * Two operations of which neither knows the other are unordered.
 *
 * Bytes. For every piece of memory that was touched the shadow keeps the last operation that wrote
 * it and those that read it since. docs/checking.md says what is seen and what is not. */
#pragma once

#include "device/host/check/block.h"
#include "device/host/stream/stream.h"

struct tt_host_exec;

/* ---- order ---- */
/* elsewhere: an interprocess event; on the waiting side, one that another process recorded last. */
void tt_host_check_record(const struct CUevent_st *event, struct CUstream_st *stream,
                          bool elsewhere);
void tt_host_check_wait(const struct CUevent_st *event, struct CUstream_st *stream, bool elsewhere);
void tt_host_check_passed(const struct CUevent_st *event,
                          bool elsewhere); /* the host knows it is */
void tt_host_check_forget(const struct CUevent_st *event);
void tt_host_check_join(struct CUstream_st *after, struct CUstream_st *before);
void tt_host_check_synced(
    struct CUstream_st *stream); /* the host has waited for it, or seen it idle */
void tt_host_check_device_synced(int device);

/* ---- accesses ---- */
/* waits: a call that returns when the copy is made, as far as CUDA promises that. Not fits: it is
 * refused, since there is no such memory. */
void tt_host_check_copy(struct CUstream_st *stream, const struct tt_copy *copy, bool waits,
                        bool fits);
void tt_host_check_set(struct CUstream_st *stream, const struct tt_set *set, bool fits);
void tt_host_check_item(struct CUstream_st *stream, struct tt_item *item);
/* An item of a graph reports that it records an event, or waits for it. */
void tt_host_check_event_node(const struct CUevent_st *event, bool waits);
/* An item of a graph reports that memory begins or ends there. */
void tt_host_check_memory_node(const void *ptr, size_t bytes, bool ends);
/* Inside of an item that is asked: *slot becomes the operation that it is put on the stream as, for
 * tt_host_thread.checked while it runs; tt_host_check_end() then. Not when a graph launches it. */
void tt_host_check_keep(struct tt_check_op **slot);
void tt_host_check_end(struct tt_check_op *op);
void tt_host_check_graph(struct CUstream_st *stream, const struct tt_host_exec *exec);
/* Words of a kernel's arguments that may be addresses, when it does not report what it touches. Its
 * memory is closed while a part of it runs, so that it is seen what it does there. */
enum { TT_CHECK_WORDS_MOST = 64 };
struct tt_check_words {
    size_t count;
    bool registered; /* one is an address of registered memory */
    const void *at[TT_CHECK_WORDS_MOST];
};
void tt_host_check_word(struct tt_check_words *words, const void *word);
void tt_host_check_opaque(const struct tt_check_words *words,
                          const struct tt_item *item); /* which is asked */
/* Inside of a step of launches of one executable (tt_host_thread.launches): what the kernel is
 * there, until it is over. NULL: it reports, or comes too late to be seen. */
struct tt_check_op *tt_host_check_launched(const struct tt_item *item);
void tt_host_check_landed(const struct tt_item *item);
void tt_host_check_unlaunched(const void *launches); /* what was put there last does not run */
void tt_host_check_kernel(const struct tt_check_words *words, bool begins);
/* *fn and *arg become those of a frame around the function, in which it can report its accesses. */
void tt_host_check_call(struct CUstream_st *stream, void (**fn)(void *), void **arg);

/* ---- memory of other processes, also without TUTTI_CHECK ---- */
/* How much of what the item touches, as far as it reports, is such memory that is open now. */
unsigned tt_host_item_opened(struct tt_item *item);
/* Inside of an item that is asked: that is the question. A word of a kernel's arguments, which may
 * be a pointer, is reported as it is then. */
bool tt_host_check_counts(void);
void tt_host_check_argument(const void *ptr);

/* ---- life of memory, in the order of a stream ---- */
void tt_host_check_alloc_async(void *ptr, size_t bytes, struct CUstream_st *stream);
void tt_host_check_free_async(void *ptr,
                              struct CUstream_st *stream); /* while it is allocated yet */
