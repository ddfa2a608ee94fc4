/* TUTTI_CHECK=race: hooks through which the room's public functions report to the checker. Callers
 * test tt_host_checks() first, one predictable branch. A hook is called once the operation can no
 * longer be refused. The checker uses the order that the program asked for, not the times at which
 * operations ran, so it finds races that had no effect in this run.
 *
 * Order. Each stream is a task, and so are all host threads together. A task numbers its
 * operations. An operation has a vector clock: for each task, the last operation that is certain to
 * be over when it begins. Clocks are passed on by issuing, events, joins, synchronisation, the
 * rules of the legacy stream, collectives with other ranks of the process, and words that streams
 * write and wait for. Two operations are unordered if neither is in the other's clock.
 *
 * Bytes. For each piece of memory that was accessed, the shadow has the last operation that wrote
 * it and those that have read it since. What is found and what is not: docs/checking.md. */
#pragma once

#include "device/host/check/block.h"
#include "device/host/stream/stream.h"

struct tt_host_exec;

/* ---- order ---- */
/* elsewhere: an interprocess event; in waits, one whose last record was in another process. */
void tt_host_check_record(const struct CUevent_st *event, struct CUstream_st *stream,
                          bool elsewhere);
void tt_host_check_wait(const struct CUevent_st *event, struct CUstream_st *stream, bool elsewhere);
void tt_host_check_passed(const struct CUevent_st *event,
                          bool elsewhere); /* the host has seen it complete */
void tt_host_check_forget(const struct CUevent_st *event);
void tt_host_check_join(struct CUstream_st *after, struct CUstream_st *before);
void tt_host_check_synced(
    struct CUstream_st *stream); /* the host has waited for it, or seen it idle */
void tt_host_check_device_synced(int device);

/* ---- accesses ---- */
/* waits: the call returns when the copy is complete, where CUDA guarantees that. fits false: the
 * call fails, because the range is not allocated memory. */
void tt_host_check_copy(struct CUstream_st *stream, const struct tt_copy *copy, bool waits,
                        bool fits);
void tt_host_check_set(struct CUstream_st *stream, const struct tt_set *set, bool fits);
void tt_host_check_item(struct CUstream_st *stream, struct tt_item *item);
/* An item of a graph reports that it records an event, or (waits) waits for it. */
void tt_host_check_event_node(const struct CUevent_st *event, bool waits);
/* An item of a graph reports that it allocates memory, or (ends) frees it. */
void tt_host_check_memory_node(const void *ptr, size_t bytes, bool ends);
/* While an item reports its accesses: *slot is set to the operation of the item, which becomes
 * tt_host_thread.check.op while the item runs; then tt_host_check_end(). Not for items of graphs.
 */
void tt_host_check_keep(struct tt_check_op **slot);
void tt_host_check_end(struct tt_check_op *op);
void tt_host_check_graph(struct CUstream_st *stream, const struct tt_host_exec *exec);
/* Words in the arguments of a kernel that does not report its accesses; they may be addresses. The
 * memory there is protected while a part of the kernel runs, so that its accesses are observed. */
enum { TT_CHECK_WORDS_MOST = 64 };
struct tt_check_words {
    size_t count;
    bool registered; /* one of them is an address of registered memory */
    const void *at[TT_CHECK_WORDS_MOST];
};
void tt_host_check_word(struct tt_check_words *words, const void *word);
void tt_host_check_opaque(const struct tt_check_words *words,
                          const struct tt_item *item); /* while the item reports */
/* In a step of a launch of a graph (tt_host_thread.check.launches): the operation of the kernel,
 * until it ends. NULL: the kernel reports its accesses, or can no longer be observed. */
struct tt_check_op *tt_host_check_launched(const struct tt_item *item);
void tt_host_check_landed(const struct tt_item *item);
void tt_host_check_unlaunched(const void *launches); /* the last launch was not made */
void tt_host_check_kernel(const struct tt_check_words *words, bool begins);
/* Replace *fn and *arg by a wrapper, in which the host function can report its accesses. */
void tt_host_check_call(struct CUstream_st *stream, void (**fn)(void *), void **arg);

/* ---- memory of other processes; used without TUTTI_CHECK as well ---- */
/* The number of accesses that the item reports to open memory of other processes. */
unsigned tt_host_item_opened(struct tt_item *item);
/* True while an item reports for tt_host_item_opened(). Kernels then report each argument that may
 * be a pointer by tt_host_check_argument(). */
bool tt_host_check_counts(void);
void tt_host_check_argument(const void *ptr);

/* ---- stream-ordered allocation ---- */
void tt_host_check_alloc_async(void *ptr, size_t bytes, struct CUstream_st *stream);
void tt_host_check_free_async(void *ptr,
                              struct CUstream_st *stream); /* called before it is freed */
