/* A root and the connections of its clients: what root.c (a root's life) and root_client.c (what
 * clients say, and what they get) share. Private to join/. All of it under the service's lock. */
#pragma once

#include "bootstrap/join/root.h"
#include "bootstrap/tree/blocks.h"
#include "bootstrap/wire/acceptor.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_ROOT_PROGRESS_NSEC 5000000000ull /* between two lines that name the missing ranks */
enum { MOST_REFUSED = 8 };                  /* callers at a time */

struct tt_bootstrap;

enum root_state { ROOT_OPEN, ROOT_ASSIGNED, ROOT_FAILED };

struct root_client { /* one connection; lives until that closes */
    struct root_client *next;
    struct tt_root *root;
    struct tt_conn *conn; /* NULL once gone */
    struct tt_join join;
    bool identified, done, root_rank_sent;
};

struct root_grow {   /* an id for a grow; all zero: one for a new communicator */
    uint64_t maker;  /* which rank of which communicator made it */
    uint64_t number; /* of the grow */
    int existing;    /* ranks of the communicator */
    bool taken;      /* its maker grows by it */
    bool passed;     /* its maker grows by another, the one with this key: */
    unsigned char by[TT_KEY_NAME_BYTES];
};

struct root_stray { /* a new rank that came to this root, to which no grow belongs */
    uint32_t nranks;
    int rank;
    uint64_t counts_nsec, until_nsec; /* until 0: there is none */
    struct tt_decline decline;
};

struct tt_root {
    struct tt_root *next;
    struct root_grow grow;
    struct root_stray stray;
    struct tt_acceptor acceptor;
    struct tt_listener *listener; /* own one; NULL: the process's */
    enum root_state state;
    struct root_client *clients;
    struct root_client **slots; /* by tt_blocks_slot(); NULL before the first JOIN */
    struct tt_blocks blocks;
    int nslots, njoined;
    uint64_t comm_id;            /* 0: no rank of this process has come */
    uint32_t nclients, expected; /* connections so far; those that may still come */
    struct tt_join first;
    int32_t root_rank; /* rank in this process; -1: none so far */
    unsigned char nonce[TT_SECRET_BYTES];
    bool has_nonce;
    uint64_t first_nsec, deadline_nsec, progress_nsec, report_nsec;
    struct root_refused { /* a rank's call was refused, and may be repeated */
        struct tt_decline decline;
        uint64_t counts_nsec; /* from then on, unless its thread calls again; 0: unused */
    } refused[MOST_REFUSED];
    ncclResult_t code;
    char sentence[TT_SENTENCE_BYTES];
};

/* What clients of a root say; `owner` of their connections is a struct root_client. */
extern const struct tt_conn_ops tt_root_client_ops;

/* Set how many connections are expected; the listener's limit is derived from it. */
void tt_root_expect(struct tt_root *root, uint32_t connections);
/* Fail the root, the first time: all clients get the sentence, and so do ranks that come later. */
__attribute__((format(printf, 3, 4))) void tt_root_fail(struct tt_root *root, ncclResult_t rc,
                                                        const char *fmt, ...);
/* The ranks that have not come, as "1, 3, 5 and 12 more". */
void tt_root_list_missing(const struct tt_root *root, char *text, size_t text_bytes);
/* Peers that came and did not prove the secret, as text to append to a message; "" for none. */
#define TT_UNPROVEN_BYTES 320
void tt_root_unproven(const struct tt_root *root, char text[TT_UNPROVEN_BYTES]);
/* A rank does not come. A refused caller may call again: then the others lose nothing; else they
 * need not wait long. */
void tt_root_decline(struct tt_root *root, const struct tt_decline *decline);
/* A number for this rank of this membership. */
uint64_t tt_root_maker(const struct tt_bootstrap *parent);
/* Fail the root of a grow whose communicator ended or failed before its maker called the grow. */
void tt_root_end_grow(struct tt_root *root);
/* Fail the root because the deadline has passed, with the list of missing ranks. */
void tt_root_overdue(struct tt_root *root);

/* ---- stray.c ---- */

#define TT_STRAY_AGAIN_NSEC 300000000ull /* for the caller to call again */
/* End the grow that waits for the rank that came here. True: look again. */
bool tt_root_stray_waits(struct tt_root *root, uint64_t now_nsec);
