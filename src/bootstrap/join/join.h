/* The join of one rank. It connects to the root of its block; the head of a block connects to the
 * root of the block above as well, which names its parent. Guarded by the service's lock. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "bootstrap/join/id.h"
#include "bootstrap/join/root.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/dial_path.h"

struct join;

struct root_conn { /* to one root */
    struct join *join;
    struct tt_id_parts id;
    struct tt_key key;
    int index; /* of the root among the ids */
    struct tt_conn *conn;
    bool opened;       /* proved and introduced */
    bool assigned;     /* its block is complete */
    int32_t root_rank; /* rank in whose process it is; -1: not known */
    int refusals;      /* refused connections in a row */
    bool again;        /* to connect again: the last connection ended too early */
    struct tt_dial_path path;
    uint64_t next_nsec, pause_nsec; /* when to try again */
    const char *why;                /* the last connection ended; NULL: it has not */
};

#define TT_ROOT_CONNS 2

struct join {
    const struct tt_bootstrap_config *config;
    struct tt_bootstrap *b;
    struct root_conn roots[TT_ROOT_CONNS]; /* own block's root; of a head: the one above */
    int nroots;
    unsigned char combined[TT_SECRET_BYTES], nonce[TT_SECRET_BYTES];
    struct tt_join request;
    uint64_t deadline_nsec; /* 0: none */
    ncclResult_t code;      /* what a root refused with */
    char sentence[TT_SENTENCE_BYTES];
};

/* The root that sends this rank the address of its parent: the last one. */
static inline struct root_conn *tt_join_last_root(struct join *join)
{
    return &join->roots[join->nroots - 1];
}

/* Read the ids of the roots to connect to. The caller wipes their secrets. */
ncclResult_t tt_root_conns_init(struct join *join);
/* Connect to all roots; ends when all are reached or one refuses. With a fixed address rank 0 may
 * come late. Otherwise the root has existed as long as the id, and 10 s are the limit. Blocks with
 * the lock released. */
ncclResult_t tt_root_conns_open(struct join *join);
/* Wait until this rank knows its parent. Blocks likewise. */
ncclResult_t tt_root_conns_wait(struct join *join);
/* Close the connections in order; roots get the reason when the join failed. */
void tt_root_conns_close(struct join *join, ncclResult_t rc);

/* parent.c: connect to the parent in the tree, of which the address is known. Blocks likewise. */
ncclResult_t tt_join_parent(struct tt_bootstrap *bootstrap, uint64_t deadline_nsec);

/* The reason why this rank itself gives up, for the root. */
const char *tt_join_reason(const struct join *join);

/* The earlier of two times; 0 means none. */
uint64_t tt_sooner(uint64_t a, uint64_t b);
