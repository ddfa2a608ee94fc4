/* Lists of accesses of an operation, which are made before the lock is taken. Private to check/. */
#pragma once

#include "state.h"

enum tt_check_touch_kind {
    TT_CHECK_TOUCH_READ,
    TT_CHECK_TOUCH_WRITE,
    TT_CHECK_TOUCH_BEGIN, /* memory of a graph is allocated or freed; these kinds come after
                             accesses */
    TT_CHECK_TOUCH_END,
    TT_CHECK_TOUCH_AWAIT,  /* wait for an event */
    TT_CHECK_TOUCH_REPORT, /* record an event */
    TT_CHECK_TOUCH_WORD_WAIT,
    TT_CHECK_TOUCH_WORD_WRITE,
    TT_CHECK_TOUCH_COLLECTIVE, /* ptr: the member of the communicator */
    TT_CHECK_TOUCH_SEND,       /* a message */
    TT_CHECK_TOUCH_RECEIVE,
    TT_CHECK_TOUCH_KERNEL, /* ptr: the item of a kernel that reports nothing */
};

struct tt_check_touch {
    enum tt_check_touch_kind kind;
    const void *ptr;
    size_t bytes;
    size_t node;      /* of a graph */
    int part;         /* of an item */
    const char *call; /* in a group, for reports: a literal; NULL: not known */
    int call_number;  /* 0: not known */
    bool direct;      /* see struct tt_check_op */
    uintptr_t group;  /* collectives: number of the communicator */
    enum tt_sync_role role;
    int nranks;
    struct tt_peer_message message;
    struct tt_word word;
};

struct tt_check_touches {
    struct tt_check_touch *at; /* owned; free() it */
    size_t count, room;
    size_t node;                 /* of the accesses that are added next */
    int part;                    /* of the accesses that are added next */
    const char *call;            /* the same */
    int call_number;             /* the same */
    struct tt_check_op **keep;   /* borrowed; set to the operation, for tt_host_check_keep() */
    bool closed;                 /* the item does not report all accesses */
    bool reports;                /* such an item may write words that the host polls */
    struct tt_check_words words; /* arguments of a kernel that reports nothing */
    bool refused;                /* the call fails: nothing is accessed */
    bool direct;                 /* the accesses are reported by an item */
    bool counts;                 /* accesses are not stored; `opened` is counted */
    unsigned opened;             /* accesses to memory that another process has shared */
    char name[TT_CHECK_NAME_BYTES];
};

/* ---- touches.c ---- */
/* Order of struct tt_check_touch by address, for qsort(). */
int tt_check_by_address(const void *a, const void *b);
void tt_check_touches_bytes(struct tt_check_touches *touches, const void *ptr, size_t bytes,
                            bool write);
void tt_check_touches_copy(struct tt_check_touches *touches, const struct tt_copy *copy);
void tt_check_touches_set(struct tt_check_touches *touches, const struct tt_set *set);
/* Add the accesses of an operation. False: it may make others as well. item: used in place of the
 * operation's item, unless NULL. */
bool tt_check_touches_op(struct tt_check_touches *touches, const struct tt_host_op *op,
                         struct tt_item *item);
bool tt_check_touches_item(struct tt_check_touches *touches, struct tt_item *item);

/* ---- apply.c ---- */
/* Make the accesses as one operation of the stream, which the caller drops. NULL: out of memory. */
struct tt_check_op *tt_check_apply(struct tt_host_check *check, struct CUstream_st *stream,
                                   const struct tt_check_touches *touches, const char *name);
/* The next operation of the stream makes accesses that are not reported. */
void tt_check_note_opaque(struct tt_host_check *check, struct CUstream_st *stream);
/* Accesses of the parts of one item, which run concurrently. */
void tt_check_parts(struct tt_host_check *check, const struct tt_check_op *op,
                    const struct tt_check_touch *touches, size_t count);

/* ---- sync.c ---- */
void tt_check_collective(struct tt_host_check *check, size_t task,
                         const struct tt_check_touch *touch);
void tt_check_pass_message(struct tt_host_check *check, size_t task,
                           const struct tt_check_touch *touch);
/* By how many messages one end of the pair is ahead of the other. */
uint64_t tt_check_messages_ahead(struct tt_host_check *check, const struct tt_peer_message *key,
                                 bool sends);
void tt_check_report_event(struct tt_host_check *check, size_t task,
                           const struct tt_check_touch *touch);
void tt_check_report_member(struct tt_host_check *check, size_t task, const void *member);

/* ---- word.c ---- */
void tt_check_write_word(struct tt_host_check *check, size_t task, const struct tt_word *word);
void tt_check_await_word(struct tt_host_check *check, size_t task, const struct tt_word *word);
/* A read of a word may be a wait for its change. */
void tt_check_see_words(struct tt_host_check *check, size_t task,
                        const struct tt_check_touch *touch);
/* What a thread may know that can read all words. */
void tt_check_report_words(struct tt_host_check *check, struct tt_check_clock **into);
/* A plain write to a word replaces what a stream wrote there. */
void tt_check_cover_words(struct tt_host_check *check, size_t task,
                          const struct tt_check_touch *touch);
