/* Lists of accesses, gathered before the lock is taken. Inside of the checker. */
#pragma once

#include "state.h"

enum tt_check_touch_kind {
    TT_CHECK_TOUCH_READ,
    TT_CHECK_TOUCH_WRITE,
    TT_CHECK_TOUCH_BEGIN, /* a graph's memory begins or ends; behind accesses, before the rest */
    TT_CHECK_TOUCH_END,
    TT_CHECK_TOUCH_AWAIT, /* an event's record */
    TT_CHECK_TOUCH_TELL,  /* record an event */
    TT_CHECK_TOUCH_WORD_WAIT,
    TT_CHECK_TOUCH_WORD_WRITE,
    TT_CHECK_TOUCH_COLLECTIVE, /* a collective: ptr is the member */
    TT_CHECK_TOUCH_SEND,       /* a message */
    TT_CHECK_TOUCH_RECEIVE,
    TT_CHECK_TOUCH_KERNEL, /* ptr is the item, which reports nothing */
};

struct tt_check_touch {
    enum tt_check_touch_kind kind;
    const void *ptr;
    size_t bytes;
    size_t node;     /* of a graph */
    int part;        /* of an item */
    bool direct;     /* by an item */
    uintptr_t group; /* of a collective: the communicator's number, in place of an address */
    enum tt_sync_role role;
    int nranks;
    struct tt_peer_message message;
    struct tt_word word;
};

struct tt_check_touches {
    struct tt_check_touch *at; /* owned; free() it */
    size_t count, room;
    size_t node;                 /* of those that are added next, */
    int part;                    /* as is this */
    struct tt_check_op **keep;   /* borrowed; where the item wants its operation */
    bool closed;                 /* the item that is asked does not know all */
    bool tells;                  /* one that does not report all may write what the host polls */
    struct tt_check_words words; /* of the kernel that reports nothing */
    bool refused;                /* it will not happen */
    bool direct;                 /* an item is asked */
    bool counts;                 /* nothing is kept, only counted: */
    unsigned opened;             /* what lies in memory of another process that is open now */
    char name[TT_CHECK_NAME_BYTES];
};

/* ---- touches.c ---- */
void tt_check_touches_add(struct tt_check_touches *touches, const struct tt_check_touch *touch);
void tt_check_touches_bytes(struct tt_check_touches *touches, const void *ptr, size_t bytes,
                            bool write);
void tt_check_touches_copy(struct tt_check_touches *touches, const struct tt_copy *copy);
void tt_check_touches_set(struct tt_check_touches *touches, const struct tt_set *set);
/* False: it may touch what it does not report. `item` stands for the operation's own unless NULL.
 */
bool tt_check_touches_op(struct tt_check_touches *touches, const struct tt_host_op *op,
                         struct tt_item *item);
bool tt_check_touches_item(struct tt_check_touches *touches, struct tt_item *item);

/* ---- apply.c ---- */
/* All of them by one operation of the stream, the caller's to drop; NULL when out of memory. */
struct tt_check_op *tt_check_apply(struct tt_host_check *check, struct CUstream_st *stream,
                                   const struct tt_check_touches *touches, const char *name);
/* The operation that is put on the stream next does what nobody reports. */
void tt_check_note_opaque(struct tt_host_check *check, struct CUstream_st *stream);
/* Parts of one item run side by side. */
void tt_check_parts(struct tt_host_check *check, const struct tt_check_op *op,
                    const struct tt_check_touch *touches, size_t count);

/* ---- sync.c ---- */
void tt_check_collective(struct tt_host_check *check, size_t task,
                         const struct tt_check_touch *touch);
void tt_check_pass_message(struct tt_host_check *check, size_t task,
                           const struct tt_check_touch *touch);
/* How many messages one end of the pair is ahead of the other. */
uint64_t tt_check_messages_ahead(struct tt_host_check *check, const struct tt_peer_message *key,
                                 bool sends);
void tt_check_tell_event(struct tt_host_check *check, size_t task,
                         const struct tt_check_touch *touch);
void tt_check_tell_member(struct tt_host_check *check, size_t task, const void *member);

/* ---- word.c ---- */
void tt_check_write_word(struct tt_host_check *check, size_t task, const struct tt_word *word);
void tt_check_await_word(struct tt_host_check *check, size_t task, const struct tt_word *word);
/* Who copies a word may have waited for it to change. */
void tt_check_see_words(struct tt_host_check *check, size_t task,
                        const struct tt_check_touch *touch);
/* All that words tell a thread that may look at them. */
void tt_check_tell_words(struct tt_host_check *check, struct tt_check_clock **into);
/* What is written there by other ways takes the place of what a stream wrote. */
void tt_check_cover_words(struct tt_host_check *check, size_t task,
                          const struct tt_check_touch *touch);
