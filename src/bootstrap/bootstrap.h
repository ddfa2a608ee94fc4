/* First contact of ranks: the unique id and its secret, the table of all ranks, small exchanges,
 * a descriptor for the processes of one host. One service thread per process serves all
 * sockets. Wire formats and bounds: docs/rooms/bootstrap.md. */
#pragma once

#include "nccl.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_member;
struct tt_bootstrap; /* one communicator's membership; opaque */

/* Make a 128-byte id: opens the root socket in this process (or takes NCCL_COMM_ID's address).
 * Errors as ncclGetUniqueId. */
ncclResult_t tt_id_create(ncclUniqueId *id_out);

/* Does anything of this process talk, or wait to be talked to? */
bool tt_bootstrap_talks(void);

/* Check an id's sum and magic. Errors: ncclInvalidArgument "damaged, or cut at a zero byte" /
 * "made by another library". */
ncclResult_t tt_id_check(const ncclUniqueId *id);
/* Whether tt_id_check() would take it; logs nothing. */
bool tt_id_valid(const ncclUniqueId *id);

/* Communicator id for logs and plugins: keyed hash, says nothing about the secret. */
uint64_t tt_id_comm(const ncclUniqueId *ids, int nids);

/* ---- ids by which a communicator grows ---- */

/* Make the `number`-th grow's id of a membership: as tt_id_create(), but it also proves to the
 * parent's ranks that it is theirs and of this grow, and says how many ranks there are already.
 * Errors: ncclInvalidUsage when NCCL_COMM_ID is set. */
ncclResult_t tt_id_create_grow(const struct tt_bootstrap *parent, uint64_t number,
                               ncclUniqueId *id_out);
/* Was it made by this membership for its `number`-th grow? Any 128 bytes; logs nothing. */
bool tt_id_is_grow(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);
/* Ranks that exist already; 0 for ids of new communicators. The id was checked. */
int tt_id_existing(const ncclUniqueId *id);

/* The maker of ids for a grow calls that grow by `id`, maybe one of them. In the order of its
 * calls; local, and nothing to other ranks. */
void tt_id_grow_by(const struct tt_bootstrap *parent, const ncclUniqueId *id);
/* The `number`-th grow goes by `id` (NULL: it fails). Of the ids that this rank made for it or
 * earlier and never grew by, one may have been given to a new rank: should that rank come, its init
 * and the join by `id` end with a sentence. */
void tt_id_pass_over(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);

/* Send the other ranks of a membership an id: n - 1 messages, sealed with the membership's secret.
 * Local, never blocks. */
ncclResult_t tt_id_hand_out(struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);

struct tt_grow_id {
    int rank; /* whose id it is */
    ncclUniqueId id;
};
/* The id that some rank handed out for the `number`-th grow: ncclInProgress until there is one.
 * Errors: ncclInvalidArgument (its maker counts another number of grows), the membership's. */
ncclResult_t tt_id_take(struct tt_bootstrap *parent, uint64_t number, struct tt_grow_id *id_out);

/* Show which id this rank takes, zeros for none: rank 0 to all others, the others to rank 0. Local,
 * never blocks. */
ncclResult_t tt_id_show(struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);
/* The next id that was shown to this rank for the `number`-th grow; likewise. */
ncclResult_t tt_id_shown(struct tt_bootstrap *parent, uint64_t number, struct tt_grow_id *id_out);

#define TT_RECORD_BYTES 320

struct tt_bootstrap_config {
    struct tt_member *member; /* borrowed until leave; abort is raised when a rank dies */
    const ncclUniqueId *ids;
    int nids;
    const void *record;          /* this rank's opaque record, TT_RECORD_BYTES */
    int64_t timeout_sec;         /* TUTTI_INIT_TIMEOUT; 0 none */
    int32_t thread;              /* of this process that called the init */
    struct tt_bootstrap *parent; /* borrowed: whose ranks grow, with the same numbers; NULL: none.
                                    Its failure is one of this bootstrap */
};

/* Meet all ranks; *records_out = nranks * TT_RECORD_BYTES in rank order (owned by the bootstrap).
 * Blocks, within the deadline. Errors: ncclInvalidUsage/Argument with the root's sentence
 * (duplicate rank, other nranks, other version), ncclTimeout with the missing ranks,
 * ncclRemoteError. */
ncclResult_t tt_bootstrap_join(const struct tt_bootstrap_config *config,
                               struct tt_bootstrap **bootstrap_out, const void **records_out);

struct tt_bootstrap_decline {
    const ncclUniqueId *ids;
    int nids, nranks, rank; /* as they were given, right or wrong */
    int32_t thread;         /* that called, as in struct tt_bootstrap_config */
    bool for_good; /* else the thread may call again within 2 s, and nothing has happened */
    bool stray;    /* it was to come to a grow, and the id is for none: the process that made the id
                      looks for that grow; the thread may call again within 0.3 s */
    ncclResult_t rc;
    const char *sentence;
};
/* This rank was to meet the others by these ids and does not come: they end with the sentence. An
 * id that cannot be read or where nobody listens is passed over. Blocks for 0.5 s at most. */
void tt_bootstrap_decline(const struct tt_bootstrap_decline *decline);

struct tt_bootstrap_child {
    struct tt_member *member; /* of the child; as above */
    const int *parent_ranks;  /* parent rank of each child rank */
    uint64_t salt[3];         /* kind, child counter, color: go into the child's secret */
    bool whole_parent;        /* any failure of the parent is the child's; else only a member's, */
    bool leaves_parent;       /* and if the parent may have been given up before: only one that
                                 comes during the bootstrap */
    const void *record;
};
/* A child of an existing membership; all its members call. The parent must stay alive meanwhile. */
ncclResult_t tt_bootstrap_child(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                                struct tt_bootstrap **bootstrap_out, const void **records_out);

/* This rank cannot take part in making a child: its nranks members end with the sentence. `child`
 * has parent_ranks and salt. */
void tt_bootstrap_child_fail(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                             int nranks, const char *sentence);

/* Give control memory (tuttiHostControlAlloc) that peers write to into the membership's keeping: it
 * is freed when all ranks have left, or 1 s after an error. */
void tt_bootstrap_own_memory(struct tt_bootstrap *bootstrap, void *memory, size_t bytes);

/* The communicator is complete: until now all exchanges together had the time-out of its init, from
 * now on each has it for itself. */
void tt_bootstrap_init_done(struct tt_bootstrap *bootstrap);

/* Goodbye to the peers and free. Accepts NULL, half-built. Never blocks longer than 1 s. */
void tt_bootstrap_leave(struct tt_bootstrap *bootstrap);

/* All ranks contribute `bytes` (<= 64 KiB) and get all contributions in rank order. Collective,
 * blocking, same order on all ranks. O(log n) messages per rank over a tree of arity 8. */
ncclResult_t tt_bootstrap_allgather(struct tt_bootstrap *bootstrap, const void *mine, size_t bytes,
                                    void *all_out);
ncclResult_t tt_bootstrap_barrier(struct tt_bootstrap *bootstrap);

#define TT_ANY_PEER (-1)
/* Point to point, bytes <= 4096. send never blocks (queued). poll: ncclInProgress until a message
 * of that (peer, tag) is there; *bytes_out its size. Tags are the caller's, above 0xffff0000 the
 * room's own; messages of one (peer, tag) stay in order. TT_ANY_PEER looks through all mail. */
ncclResult_t tt_bootstrap_send(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               const void *message, size_t bytes);
ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               void *message, size_t max_bytes, size_t *bytes_out);

/* Grows with each message that arrives: while it does not change, polling finds nothing new. One
 * load. */
uint64_t tt_bootstrap_mail(const struct tt_bootstrap *bootstrap);

/* Tell all ranks that this one gives up with that code and sentence (they get ncclRemoteError at
 * their next call and in tt_bootstrap_error). */
void tt_bootstrap_fail(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence);
/* The same, and this rank takes part in nothing any more: who makes a smaller communicator of this
 * one after an earlier error gets it too. */
void tt_bootstrap_abort(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence);

/* What went wrong is the fault of no rank alone: all ranks, this one too, get that code and
 * sentence, unless the membership has failed before. */
void tt_bootstrap_fail_all(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence);

/* Tell all ranks that this one has revoked the communicator: the abort flag of those that have not
 * done so is raised with ncclRemoteError, exchanges go on working. */
void tt_bootstrap_revoke(struct tt_bootstrap *bootstrap);

/* ncclSuccess, or the first error known: a rank died, left with an error, or its connection broke;
 * the sentence names rank, host and pid (or is what this rank itself said in tt_bootstrap_fail()).
 * One relaxed load when all is well. */
ncclResult_t tt_bootstrap_error(const struct tt_bootstrap *bootstrap, const char **sentence_out);

/* The rank that failed, when tt_bootstrap_error() says that one did and the code came over the
 * tree; else -1. */
int tt_bootstrap_error_rank(const struct tt_bootstrap *bootstrap);

/* Its process has ended, or all connection with it is lost: as far as bootstrap knows. */
bool tt_bootstrap_rank_died(struct tt_bootstrap *bootstrap, int rank);

/* True when a rank's process exited without leaving the communicator (no error as long as nothing
 * is outstanding); the sentence says which. */
bool tt_bootstrap_exited(struct tt_bootstrap *bootstrap, char *sentence, size_t sentence_bytes);
bool tt_bootstrap_someone_exited(const struct tt_bootstrap *bootstrap);           /* one load */
const _Atomic bool *tt_bootstrap_exit_flag(const struct tt_bootstrap *bootstrap); /* of this */
/* Whether it was this one. */
bool tt_bootstrap_rank_exited(struct tt_bootstrap *bootstrap, int rank);
/* The same of ranks that exited, or have left in order and were asked for since, or whose process
 * has ended then. */
bool tt_bootstrap_ended(struct tt_bootstrap *bootstrap, char *sentence, size_t sentence_bytes);
bool tt_bootstrap_someone_ended(const struct tt_bootstrap *bootstrap); /* one load */
bool tt_bootstrap_rank_ended(struct tt_bootstrap *bootstrap, int rank);
/* How many collectives, modulo 2^32, the one of them with the fewest had begun. */
uint32_t tt_bootstrap_exit_begun(struct tt_bootstrap *bootstrap);

/* Connect a membership with its owner; both are borrowed until this is called with NULL and -1.
 * begun   collectives that this rank has begun: an exit of the process reports it to the others
 * event_fd  an eventfd (-1: none), posted when another rank's exit becomes known, and when a
 * message with a tag for the owner (TT_TAG_OWNER and above, below the room's own) comes */
void tt_bootstrap_attach(struct tt_bootstrap *bootstrap, const _Atomic uint64_t *begun,
                         int event_fd);
#define TT_TAG_OWNER 0xfffe0000u
#define TT_TAG_OWN 0xffff0000u /* of this room */

/* Host and pid of a rank, for reports. Valid until leave. */
const char *tt_bootstrap_peer(const struct tt_bootstrap *bootstrap, int rank, int *pid_out);

/* Its numeric address, "" when unknown. Any thread. */
void tt_bootstrap_address(const struct tt_bootstrap *bootstrap, int rank, char *text,
                          size_t text_bytes);

/* A 32-byte key for connections of another kind (proxy, net) derived from the communicator's
 * secret. */
void tt_bootstrap_key(const struct tt_bootstrap *bootstrap, const char *kind,
                      unsigned char key_out[32]);

/* ---- a descriptor for the other processes of the machine ---- */

/* Where a process hands it over (abstract local socket), and what proves the right to ask. */
struct tt_fd_name {
    char name[40];
    unsigned char key[16];
};
struct tt_fd_server; /* opaque */

/* Hand `fd` and a word over to every process of this user that holds the key. The descriptor is
 * borrowed until tt_fd_unserve(), which in a child of fork frees the server and no more.
 * Errors: ncclInProgress (this process may have no local sockets; in the log), ncclSystemError. */
ncclResult_t tt_fd_serve(const struct tt_fd_name *name, int fd, uint64_t word,
                         struct tt_fd_server **server_out);
void tt_fd_unserve(struct tt_fd_server *server); /* accepts NULL */

/* The descriptor that is served under that name, owned by the caller; -1 with *why (static, or
 * strerror's). Blocks for 2 s at most. */
int tt_fd_fetch(const struct tt_fd_name *name, uint64_t *word_out, const char **why);
