/* A membership: one rank's place in the tree that carries everything after first contact. Guarded
 * by the service's lock; callers wait on `changed`. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "bootstrap/join/root.h"
#include "bootstrap/tree/shape.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/service.h"

#include <pthread.h>
#include <stdatomic.h>

#define TT_GATHER_BYTES 65536 /* of one rank */
#define TT_MESSAGE_BYTES 4096

enum tt_tree_frame {
    TT_FRAME_UP = 16, /* seq 8, bytes 4: contributions of a subtree, preorder */
    TT_FRAME_DOWN,    /* seq 8: the whole table in rank order */
    TT_FRAME_MESSAGE, /* source 4, target 4, tag 4: routed */
    TT_FRAME_FAIL,    /* rank 4, code 4, kind 4, begun 4, sentence: flooded */
    TT_FRAME_DONE,    /* up: my subtree has left */
    TT_FRAME_BYE,     /* down: everybody has left; or: I go now, without error */
    TT_FRAME_LATE,    /* seq 8: time is up, I wait for you */
    TT_FRAME_HERE,    /* seq 8: I live, and ask on */
};
enum tt_fail_kind { TT_FAIL_ERROR, TT_FAIL_EXIT, TT_FAIL_REVOKE };

struct tt_card { /* what the room itself must know of each rank */
    union tt_addr addr;
    int32_t pid;
    char host[TT_HOST_BYTES];
};
#define TT_CARD_BYTES (24 + 4 + TT_HOST_BYTES)
void tt_card_pack(const struct tt_card *card, unsigned char bytes[TT_CARD_BYTES]);
void tt_card_unpack(struct tt_card *card, const unsigned char *bytes);

struct tt_letter { /* a message that waits for its reader */
    struct tt_letter *next;
    int peer;
    uint32_t tag;
    size_t bytes;
    unsigned char text[];
};

#define TT_MAIL_BUCKETS 64
#define TT_MAIL_LIMIT_BYTES (64u << 20)
struct tt_mailbox {
    struct tt_letter *first[TT_MAIL_BUCKETS], *last[TT_MAIL_BUCKETS];
    size_t bytes;
};
bool tt_mailbox_put(struct tt_mailbox *mailbox, int peer, uint32_t tag, const void *text,
                    size_t bytes);
/* The oldest of (peer, tag), taken out; NULL when there is none. Free with free(). TT_ANY_PEER:
 * some peer's. */
struct tt_letter *tt_mailbox_take(struct tt_mailbox *mailbox, int peer, uint32_t tag);
void tt_mailbox_fini(struct tt_mailbox *mailbox);

struct tt_branch { /* the way to a child */
    int rank;
    struct tt_conn *conn;
    unsigned char *up; /* owned: contribution that waits for this rank's own */
    size_t up_bytes;
    uint64_t up_seq;
    bool came, done;
    bool asked, here; /* when an exchange is late: asked why, has answered */
};

struct tt_late {       /* the question who keeps an exchange waiting */
    uint64_t seq;      /* which exchange */
    uint64_t due_nsec; /* answers must be there; 0: no question is open */
    bool asked_up, here_up;
};

struct tt_exchange { /* the all-gather that the caller is in */
    uint64_t seq;    /* of the last one entered */
    bool entered, sent, arrived;
    const void *mine; /* borrowed from the caller */
    size_t bytes;
    unsigned char *table; /* owned: nranks * bytes, from above, until the caller took it */
    size_t table_bytes;
};

struct tt_bootstrap {
    struct tt_bootstrap *next;
    struct tt_member *member; /* borrowed; NULL once left */
    int rank, nranks;
    uint64_t epoch;
    int64_t timeout_sec;
    bool sealed;           /* TUTTI_NET_ENCRYPT, equal on all ranks */
    unsigned char *secret; /* owned, sodium_malloc */
    struct tt_door door;
    struct tt_card *cards;  /* owned; NULL before the first table */
    unsigned char *records; /* owned */
    struct tt_shape shape;
    int parent; /* rank; -1: none */
    struct tt_conn *up;
    struct tt_branch branches[TT_BRANCHES];
    int nbranches, subtree;
    bool dialing, placed, door_is_open;
    bool complete;            /* all ranks of the block have come to their root */
    struct tt_conn *own_root; /* borrowed: the way to that root, during join */
    struct tt_late late;
    int dial_error;             /* ECONNREFUSED: nobody listened there */
    uint64_t deadline_nsec;     /* of the whole init; 0: none, or it is over */
    struct tt_bootstrap *elder; /* borrowed: during the birth of a child, its parent */
    const int *elder_ranks;     /* borrowed: this one's ranks there */
    int error_rank;             /* whom the first error is about */
    uint64_t lost_nsec;         /* a neighbour hung up and nobody said why: blame it then */
    int lost_peer;
    char lost_why[64];
    struct tt_place place;
    pthread_cond_t changed;
    struct tt_exchange exchange;
    struct tt_mailbox mailbox;
    _Atomic uint64_t mail; /* letters that came */
    _Atomic int error;
    _Atomic bool worded; /* `sentence` is there and stays: of the error, or of this rank's own */
    char sentence[TT_SENTENCE_BYTES];
    bool told;                 /* the error was logged */
    int waiting;               /* callers in tt_tree_wait */
    _Atomic bool someone_left; /* a rank exited without goodbye to its communicator */
    char left_sentence[TT_SENTENCE_BYTES];
    uint32_t left_begun; /* collectives that the one with the fewest had begun, modulo 2^32 */
    bool *exited;        /* owned, by rank; NULL: nobody */
    struct tt_bootstrap_hooks hooks;
    bool leaving, done_sent, finished, abandoned;
    uint64_t linger_nsec; /* leaving: give up waiting for the others then */
    uint64_t hold_nsec;   /* leaving: keep `memory` until then */
    void *memory;         /* owned control memory, freed when nobody can write there any more */
    size_t memory_bytes;
    bool revoked, revoke_told; /* own revocation; somebody's was passed on */
};

/* Lock held. */
ncclResult_t tt_tree_create(struct tt_member *member, int nblocks,
                            struct tt_bootstrap **bootstrap_out);
void tt_tree_open_door(struct tt_bootstrap *bootstrap);
void tt_tree_attach(struct tt_bootstrap *bootstrap, struct tt_conn *conn);
size_t tt_tree_limit(const struct tt_bootstrap *bootstrap);
struct tt_bootstrap *tt_tree_next(struct tt_bootstrap *bootstrap);
bool tt_tree_tick(uint64_t now_nsec);
void tt_tree_orphan(struct tt_bootstrap *bootstrap);
/* Take it out of the service and free it. */
void tt_tree_destroy(struct tt_bootstrap *bootstrap);
/* Its storage alone: the service does not know it, as after fork. */
void tt_tree_free(struct tt_bootstrap *bootstrap);
const struct tt_conn_ops *tt_tree_up_ops(void);

/* Wait until something changed, helping other work; lock held (released meanwhile).
 * Errors: the membership's, the member's abort, ncclTimeout after deadline_nsec (0: none). */
ncclResult_t tt_tree_wait(struct tt_bootstrap *bootstrap, uint64_t deadline_nsec);

/* To all neighbours but one (NULL: to all). */
void tt_tree_flood(struct tt_bootstrap *bootstrap, const struct tt_conn *except, uint16_t type,
                   const void *bytes, size_t len);
/* The child at the end of a connection; NULL: it is the parent's, or nobody's. */
struct tt_branch *tt_tree_branch(struct tt_bootstrap *bootstrap, const struct tt_conn *conn);

/* failure.c, lock held. First error wins; raises the member's abort flag, wakes waiters, tells the
 * neighbours. */
__attribute__((format(printf, 4, 5))) void tt_tree_fail(struct tt_bootstrap *bootstrap, int rank,
                                                        ncclResult_t rc, const char *fmt, ...);
/* A neighbour's words; they go on to the others. */
void tt_failure_frame(struct tt_bootstrap *bootstrap, struct tt_conn *conn,
                      const unsigned char *bytes, size_t len);
/* The connection to `peer` ended without goodbye. */
void tt_failure_lost(struct tt_bootstrap *bootstrap, int peer, const char *why);
/* To a child that connects after the error. */
void tt_failure_repeat(const struct tt_bootstrap *bootstrap, struct tt_conn *conn);
/* Log the error once, in the caller's thread; returns its code. */
ncclResult_t tt_failure_tell(struct tt_bootstrap *bootstrap);
/* As long as a child is being born, the parent's tree is what notices deaths. */
void tt_failure_watch_elder(struct tt_bootstrap *bootstrap);
/* The process exits. */
void tt_tree_exit(struct tt_bootstrap *bootstrap, int code);

/* leave.c, lock held. Look whether a goodbye is due; a neighbour's; the end without more words. */
void tt_leave_step(struct tt_bootstrap *bootstrap);
void tt_leave_bye(struct tt_bootstrap *bootstrap, struct tt_conn *conn);
void tt_leave_finish(struct tt_bootstrap *bootstrap);

/* exits.c, lock held. Note that a rank exited; false when that was known. */
bool tt_exit_note(struct tt_bootstrap *bootstrap, int rank, uint32_t begun, const char *sentence);
/* Collectives that this rank has begun. */
uint32_t tt_exit_begun(const struct tt_bootstrap *bootstrap);

/* late.c, lock held. The time of the exchange that the caller is in is up: find who is missing, and
 * fail with that name here and everywhere. At most 2 messages per connection of the tree. */
void tt_late_begin(struct tt_bootstrap *bootstrap);
void tt_late_asked(struct tt_bootstrap *bootstrap, struct tt_conn *conn, const unsigned char *bytes,
                   size_t len);
/* `branch` (NULL: the parent) lives. */
void tt_late_answered(struct tt_bootstrap *bootstrap, struct tt_branch *branch);
/* True while a question is open. */
bool tt_late_tick(struct tt_bootstrap *bootstrap, uint64_t now_nsec);

/* exchange.c, for tree.c */
void tt_exchange_up(struct tt_bootstrap *bootstrap, struct tt_branch *branch,
                    const unsigned char *bytes, size_t len);
void tt_exchange_down(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
void tt_exchange_message(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
