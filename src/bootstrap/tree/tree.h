/* A membership: one rank in the tree that carries all messages after the init. Guarded by the
 * service's lock; callers wait on `changed`. */
#pragma once

#include "base/member.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/blocks.h"
#include "bootstrap/tree/contact.h"
#include "bootstrap/tree/mailbox.h"
#include "bootstrap/wire/acceptor.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/dial_path.h"
#include "bootstrap/wire/frame.h"
#include "bootstrap/wire/service.h"

#include <pthread.h>
#include <stdatomic.h>

#define TT_GATHER_BYTES 65536 /* of one rank */
#define TT_MESSAGE_BYTES 4096

enum tt_fail_kind {
    TT_FAIL_ERROR,
    TT_FAIL_EXIT,
    TT_FAIL_REVOKE,
    TT_FAIL_ALL,
    TT_FAIL_DEATH,
    TT_FAIL_LEFT, /* by an abort */
    TT_FAIL_ENDED /* in order, while others still ask for it */
};

struct tt_gone { /* after the first error: a rank that died or left as well */
    struct tt_gone *next;
    int rank;
    char sentence[];
};

struct tt_branch { /* the connection to a child */
    int rank;
    struct tt_conn *conn;
    unsigned char *up; /* owned: contribution that waits for this rank's own */
    size_t up_bytes;
    uint64_t up_seq;
    bool came, done;  /* its contribution arrived; its subtree has left */
    bool asked, here; /* after a time-out: a LATE frame was sent to it, it answered with HERE */
    struct tt_probe { /* while it has not connected: checks whether its process listens */
        int fd;       /* owned; -1: none */
        int refusals; /* in a row */
        uint64_t next_nsec;
    } probe;
};

struct tt_late {            /* the search for the rank that an exchange waits for */
    uint64_t seq;           /* which exchange */
    uint64_t due_nsec;      /* deadline of the answers; 0: none is outstanding */
    bool asked_up, here_up; /* of the parent, as in struct tt_branch */
    bool absent;            /* a child has not connected; another rank may be the cause */
    bool all_due; /* the neighbours have answered; the ranks behind them have a second more */
};

struct tt_exchange { /* the all-gather that the caller is in */
    uint64_t seq;    /* of the last one entered */
    bool entered, sent, arrived;
    _Atomic uint64_t since_nsec; /* when it was entered; 0: the caller is in none */
    unsigned char *kept; /* owned: what was sent up in the first one, which the parent may not have
                            got (dispatch.c); NULL: nothing */
    size_t kept_bytes;
    const void *mine; /* borrowed from the caller */
    size_t bytes;
    unsigned char *table; /* owned: nranks * bytes, from above, until the caller took it */
    size_t table_bytes;
};

struct tt_bootstrap {
    struct tt_bootstrap *next;
    struct tt_member *member; /* borrowed; NULL once left */
    int rank, nranks;
    int device; /* in logs */
    uint64_t epoch;
    int64_t timeout_sec;
    bool sealed;           /* TUTTI_NET_ENCRYPT, equal on all ranks */
    unsigned char *secret; /* owned, sodium_malloc */
    struct tt_acceptor acceptor;
    struct tt_contact *contacts; /* owned; NULL before the first table */
    unsigned char *records;      /* owned */
    struct tt_blocks blocks;
    int parent; /* rank; -1: none */
    struct tt_conn *up;
    struct tt_branch branches[TT_BRANCHES];
    int nbranches, subtree;
    bool dialing, assigned, accepts;
    bool seconds;             /* the acceptor stays: children may have second connections */
    uint64_t second_nsec;     /* not before: a try at a second connection to the parent; 0: none */
    bool calls_again;         /* the parent closed the connection before it had this rank's proof */
    bool complete;            /* all ranks of the block have come to their root */
    struct tt_conn *own_root; /* borrowed: the connection to that root, during join */
    struct tt_late late;
    uint64_t kept_nsec;     /* when to report that children wait for this rank; 0: none waits */
    int dial_error;         /* of the parent; ECONNREFUSED: no listener there */
    uint64_t deadline_nsec; /* of the whole init; 0: none, or it is over */
    struct tt_bootstrap *parent_tree; /* borrowed: during the init of a child, its parent */
    const int *parent_ranks;          /* borrowed: this one's ranks there; NULL: the same */
    bool watches_parent;              /* an error of the parent's tree ends the init: ... */
    bool whole_parent;                /* ... any, or else one that is about a member */
    uint32_t parent_given_up;         /* its `given_up` at the start; only later ones count */
    uint64_t salt[3];                 /* of a child */
    uint32_t given_up;                /* how often this rank itself failed or aborted it ... */
    ncclResult_t given_up_code;       /* ... and the last code */
    int error_rank;                   /* whom the first error is about */
    enum tt_fail_kind error_kind;     /* TT_FAIL_ERROR, _ALL, _DEATH or _LEFT */
    struct tt_gone *gone;             /* owned */
    int ngone;
    uint64_t lost_nsec; /* a neighbour closed without a reason: report it as dead at this time */
    int lost_peer;
    char lost_why[64];
    struct tt_contact parent_contact;
    struct tt_dial_path parent_path;
    pthread_cond_t changed;
    struct tt_exchange exchange;
    struct tt_mailbox mailbox;
    _Atomic uint64_t mail; /* messages that came */
    _Atomic int error;
    _Atomic bool
        has_sentence; /* `sentence` is there and stays: of the error, or of this rank's own */
    char sentence[TT_SENTENCE_BYTES];
    bool reported;              /* the error was logged */
    int waiting;                /* callers in tt_tree_wait() */
    _Atomic bool someone_left;  /* a rank exited without goodbye to its communicator, */
    _Atomic bool someone_ended; /* or at least left it before all others did */
    char left_sentence[TT_SENTENCE_BYTES];
    uint32_t left_begun; /* collectives that the one with the fewest had begun, modulo 2^32 */
    unsigned char
        *exits;         /* owned, by rank: enum tt_fail_kind of an exit, or 0; NULL: none so far */
    uint32_t own_begun; /* by this rank, when it left */
    char refused[TT_WHY_BYTES];    /* tt_member_refused() when it left */
    bool end_reported;             /* leaving: reported to the others */
    const _Atomic uint64_t *begun; /* borrowed from the owner; NULL: not attached */
    int event_fd; /* borrowed: posted when a rank exited or wrote to the owner; -1: none */
    bool up_left; /* the parent has said goodbye */
    bool leaving, done_sent, finished, abandoned;
    uint64_t linger_nsec; /* leaving: wait for the others until then */
    uint64_t hold_nsec;   /* leaving: keep `memory` until then */
    void *memory;         /* owned control memory, freed when no peer can write there any more */
    size_t memory_bytes;
    bool revoked, revoke_sent; /* revoked by this rank; a revocation was passed on */
};

/* ---- lock held ---- */

/* Remove the membership from the service and free it. */
void tt_tree_destroy(struct tt_bootstrap *bootstrap);
/* Free the storage of a membership that the service does not know, as after fork. */
void tt_tree_free(struct tt_bootstrap *bootstrap);

/* Send a frame to all neighbours but one (NULL: to all). */
void tt_tree_flood(struct tt_bootstrap *bootstrap, const struct tt_conn *except, uint16_t type,
                   const void *bytes, size_t len);
/* The child at the other end of a connection; NULL: it leads to the parent, or to no rank. */
struct tt_branch *tt_tree_branch(struct tt_bootstrap *bootstrap, const struct tt_conn *conn);
