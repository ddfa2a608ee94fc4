/* Lists of accesses, gathered before the lock is taken. Inside of the checker. */
#pragma once

#include "state.h"

enum check_touch_kind {
    CHECK_TOUCH_READ,
    CHECK_TOUCH_WRITE,
    CHECK_TOUCH_BEGIN, /* a graph's memory begins or ends; behind accesses, before the rest */
    CHECK_TOUCH_END,
    CHECK_TOUCH_AWAIT, /* an event's record */
    CHECK_TOUCH_TELL,  /* record an event */
    CHECK_TOUCH_WORD_WAIT,
    CHECK_TOUCH_WORD_WRITE,
    CHECK_TOUCH_COLLECTIVE, /* a collective: ptr is the member */
    CHECK_TOUCH_SEND,       /* a message */
    CHECK_TOUCH_RECEIVE,
    CHECK_TOUCH_KERNEL, /* ptr is the item, which tells nothing */
};

struct check_touch {
    enum check_touch_kind kind;
    const void *ptr;
    size_t bytes;
    size_t node;     /* of a graph */
    int part;        /* of an item */
    uintptr_t group; /* of a collective: the communicator's number, in place of an address */
    enum tt_sync_role role;
    int nranks;
    struct tt_peer_message message;
    struct tt_word word;
};

struct check_touches {
    struct check_touch *at; /* owned; free() it */
    size_t count, room;
    size_t node;              /* of those that are added next, */
    int part;                 /* as is this */
    struct check_op **keep;   /* borrowed; where the item wants its operation */
    bool closed;              /* the item that is asked does not know all */
    bool tells;               /* who does not tell all may write what the host polls */
    struct check_words words; /* of the kernel that tells nothing */
    bool refused;             /* it will not happen */
    bool counts;              /* nothing is kept, only counted: */
    unsigned opened;          /* what lies in memory of another process that is open now */
    char name[CHECK_NAME_BYTES];
};

/* ---- touches.c ---- */
void check_touches_add(struct check_touches *touches, const struct check_touch *touch);
void check_touches_bytes(struct check_touches *touches, const void *ptr, size_t bytes, bool write);
void check_touches_copy(struct check_touches *touches, const struct tt_copy *copy);
void check_touches_set(struct check_touches *touches, const struct tt_set *set);
/* False: it may touch what it does not tell. `item` stands for the operation's own unless NULL. */
bool check_touches_op(struct check_touches *touches, const struct host_op *op,
                      struct tt_item *item);
bool check_touches_item(struct check_touches *touches, struct tt_item *item);

/* ---- apply.c ---- */
/* All of them by one operation of the stream, the caller's to drop; NULL when out of memory. */
struct check_op *check_apply(struct host_check *check, struct CUstream_st *stream,
                             const struct check_touches *touches, const char *name);
/* The operation that is put on the stream next does what nobody tells. */
void check_note_opaque(struct host_check *check, struct CUstream_st *stream);
/* Parts of one item run side by side. */
void check_parts(struct host_check *check, const struct check_op *op,
                 const struct check_touch *touches, size_t count);

/* ---- sync.c ---- */
void check_collective(struct host_check *check, size_t task, const struct check_touch *touch);
void check_pass_message(struct host_check *check, size_t task, const struct check_touch *touch);
void check_tell_event(struct host_check *check, size_t task, const struct check_touch *touch);
void check_tell_member(struct host_check *check, size_t task, const void *member);

/* ---- word.c ---- */
void check_write_word(struct host_check *check, size_t task, const struct tt_word *word);
void check_await_word(struct host_check *check, size_t task, const struct tt_word *word);
/* Who copies a word may have waited for it to change. */
void check_see_words(struct host_check *check, size_t task, const struct check_touch *touch);
/* All that words tell whoever may look at them. */
void check_tell_words(struct host_check *check, struct check_clock **into);
/* What is written there by other ways takes the place of what a stream wrote. */
void check_cover_words(struct host_check *check, size_t task, const struct check_touch *touch);
