/* How ranks find each other: the unique id and its secret, the table of all ranks, small exchanges,
 * and file descriptors for other processes of the host. One service thread per process serves all
 * sockets. A membership is the set of ranks that joined by one id. Wire formats and limits:
 * docs/rooms/bootstrap.md. */
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

/* True when a membership or a root of this process uses the service thread. */
bool tt_bootstrap_talks(void);

/* Check an id's checksum and magic number. Errors: ncclInvalidArgument with the reason: damaged,
 * cut at a zero byte, or made by another library. */
ncclResult_t tt_id_check(const ncclUniqueId *id);
/* True when tt_id_check() would succeed; logs nothing. */
bool tt_id_valid(const ncclUniqueId *id);

/* Communicator id for logs and plugins: a keyed hash that does not reveal the secret. */
uint64_t tt_id_comm(const ncclUniqueId *ids, int nids);

/* ---- ids by which a communicator grows ---- */

/* Make the id of a membership's `number`-th grow. As tt_id_create(), but the id also proves to the
 * parent's ranks that it belongs to this grow, and holds the number of existing ranks.
 * Errors: ncclInvalidUsage when NCCL_COMM_ID is set. */
ncclResult_t tt_id_create_grow(const struct tt_bootstrap *parent, uint64_t number,
                               ncclUniqueId *id_out);
/* True when this membership made the id for its `number`-th grow. Accepts any 128 bytes; logs
 * nothing. */
bool tt_id_is_grow(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);
/* Number of existing ranks in a checked id; 0 for ids of new communicators. */
int tt_id_existing(const ncclUniqueId *id);

/* Note that this rank calls a grow with `id` (one that it made, or another). Call it in the order
 * of the grows. Sends nothing. */
void tt_id_grow_by(const struct tt_bootstrap *parent, const ncclUniqueId *id);
/* Note that the `number`-th grow uses `id` (NULL: it fails). Ids that this rank made for this grow
 * or an earlier one and never used may have been given to a new rank. When such a rank comes, its
 * init and the join by `id` end with a message. */
void tt_id_pass_over(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);

/* Send an id to the other ranks of a membership: n - 1 messages, encrypted with the membership's
 * secret. Never blocks. */
ncclResult_t tt_id_hand_out(struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);

struct tt_grow_id {
    int rank; /* whose id it is */
    ncclUniqueId id;
};
/* Take the id that some rank handed out for the `number`-th grow; ncclInProgress until there is
 * one. Errors: ncclInvalidArgument (its maker has counted another number of grows), the
 * membership's. */
ncclResult_t tt_id_take(struct tt_bootstrap *parent, uint64_t number, struct tt_grow_id *id_out);

/* Send the id that this rank uses (zeros: none): rank 0 to all others, the others to rank 0. Never
 * blocks. */
ncclResult_t tt_id_show(struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id);
/* Receive the next id that another rank has shown for the `number`-th grow; ncclInProgress until
 * there is one. */
ncclResult_t tt_id_shown(struct tt_bootstrap *parent, uint64_t number, struct tt_grow_id *id_out);

#define TT_RECORD_BYTES 320

struct tt_bootstrap_config {
    struct tt_member *member; /* borrowed until leave; abort is raised when a rank dies */
    const ncclUniqueId *ids;
    int nids;
    const void *record;          /* this rank's opaque record, TT_RECORD_BYTES */
    int64_t timeout_sec;         /* TUTTI_INIT_TIMEOUT; 0 none */
    int32_t thread;              /* id of the thread of this process that called the init */
    struct tt_bootstrap *parent; /* borrowed: the membership that grows; its ranks keep their
                                    numbers. Its failure fails this bootstrap. NULL: none */
};

/* Join all ranks that use these ids. Blocks, at most timeout_sec.
 * *bootstrap_out  owned by the caller: tt_bootstrap_leave()
 * *records_out    nranks * TT_RECORD_BYTES in rank order; owned by the bootstrap
 * Errors: ncclInvalidUsage or ncclInvalidArgument with the root's reason (duplicate rank, different
 * nranks, different version), ncclTimeout with the missing ranks, ncclRemoteError. */
ncclResult_t tt_bootstrap_join(const struct tt_bootstrap_config *config,
                               struct tt_bootstrap **bootstrap_out, const void **records_out);

struct tt_bootstrap_decline {
    const ncclUniqueId *ids;
    int nids, nranks, rank; /* as they were given, right or wrong */
    int32_t thread;         /* that called, as in struct tt_bootstrap_config */
    bool for_good; /* false: the thread may call again within 2 s, as if nothing had happened */
    bool stray;    /* a new rank of a grow whose id belongs to no grow: the process that made the id
                      looks for that grow; the thread may call again within 0.3 s */
    ncclResult_t rc;
    const char *sentence;
};
/* Tell the ranks that join by these ids that this rank will not join: their joins end with the
 * sentence. Ids that cannot be read or have no root are ignored. Blocks 0.5 s at most. */
void tt_bootstrap_decline(const struct tt_bootstrap_decline *decline);

/* What the root of a communicator in its init knows of a rank. Any thread. */
struct tt_joined {
    bool known, came; /* the root is in this process; the rank has come to it */
    int pid;          /* -1: not known */
    char host[64];
};
struct tt_joined tt_bootstrap_joined(uint64_t comm_id, int rank);

struct tt_bootstrap_child {
    struct tt_member *member; /* of the child; as above */
    const int *parent_ranks;  /* parent rank of each child rank */
    uint64_t salt[3];   /* kind, child counter, color: the child's secret is derived from them */
    bool whole_parent;  /* any failure of the parent fails the child; false: only a member's */
    bool leaves_parent; /* the parent may have failed before: only failures that come during
                           the bootstrap count */
    const void *record;
};
/* Make a child of a membership, which must stay alive meanwhile; all members of the child call.
 * Blocks, outputs and errors as tt_bootstrap_join(). */
ncclResult_t tt_bootstrap_child(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                                struct tt_bootstrap **bootstrap_out, const void **records_out);

/* Tell the `nranks` members of a child that this rank cannot take part in making it: they end with
 * the sentence. Of `child`, parent_ranks and salt are used. */
void tt_bootstrap_child_fail(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                             int nranks, const char *sentence);

/* Move the ownership of control memory (tuttiHostControlAlloc) that peers write to: the membership
 * frees it when all ranks have left, or 1 s after an error. */
void tt_bootstrap_own_memory(struct tt_bootstrap *bootstrap, void *memory, size_t bytes);

/* Note that the init is complete. Until now the time-out covered all exchanges of the init
 * together; from now on it covers each exchange. */
void tt_bootstrap_init_done(struct tt_bootstrap *bootstrap);

/* Leave in order: tell the peers, and free. Accepts NULL and half-built ones. Blocks up to 1 s. */
void tt_bootstrap_leave(struct tt_bootstrap *bootstrap);

/* All ranks contribute `bytes` (<= 64 KiB) and get all contributions in rank order. Collective,
 * blocking, same order on all ranks. O(log n) messages per rank over a tree of arity 8. */
ncclResult_t tt_bootstrap_allgather(struct tt_bootstrap *bootstrap, const void *mine, size_t bytes,
                                    void *all_out);
ncclResult_t tt_bootstrap_barrier(struct tt_bootstrap *bootstrap);

/* Set the handlers of fork, at the latest now. For a room whose lock is held while it calls this
 * one: it sets its own afterwards, so that a fork takes that lock first. Any thread. */
void tt_bootstrap_hook_fork(void);

#define TT_ANY_PEER (-1)
/* Messages between two ranks, 4096 bytes at most. send queues and never blocks. poll returns
 * ncclInProgress until a message of that (peer, tag) has come; *bytes_out is its size. Messages of
 * one (peer, tag) stay in order. Callers choose tags below TT_TAG_OWN. poll accepts TT_ANY_PEER. */
ncclResult_t tt_bootstrap_send(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               const void *message, size_t bytes);
ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               void *message, size_t max_bytes, size_t *bytes_out);

/* The rank behind `from` on the way of a message to `to`. */
int tt_bootstrap_next(const struct tt_bootstrap *bootstrap, int from, int to);
/* Count of messages that have arrived: until it changes, polling finds nothing new. One load. */
uint64_t tt_bootstrap_mail(const struct tt_bootstrap *bootstrap);

/* Since when a caller of this rank waits for others in an exchange; 0: none does. Any thread. */
uint64_t tt_bootstrap_exchange_nsec(const struct tt_bootstrap *bootstrap);

/* Tell all ranks that this one has failed. Calls and tt_bootstrap_error() give ncclRemoteError. */
void tt_bootstrap_fail(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence);
/* The same, and this rank takes part in nothing any more: members of a child that is made of this
 * membership after an earlier error get the failure too. */
void tt_bootstrap_abort(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence);

/* Fail at all ranks, this one included, with that code and sentence, for errors that are no single
 * rank's fault. Does nothing when the membership has failed before. */
void tt_bootstrap_fail_all(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence);

/* Tell all ranks that this one has revoked the communicator: ranks that have not done so get their
 * abort flag raised with ncclRemoteError. Exchanges still work. */
void tt_bootstrap_revoke(struct tt_bootstrap *bootstrap);

/* ncclSuccess, or the first error known: a rank died, left with an error, or its connection broke;
 * the sentence names it (or was given to tt_bootstrap_fail()). One load when all is well. */
ncclResult_t tt_bootstrap_error(const struct tt_bootstrap *bootstrap, const char **sentence_out);

/* The rank that failed, when tt_bootstrap_error() reports an error that a rank sent; else -1. */
int tt_bootstrap_error_rank(const struct tt_bootstrap *bootstrap);

/* True when the rank's process is known to have ended, or all connections with it are lost. */
bool tt_bootstrap_rank_died(struct tt_bootstrap *bootstrap, int rank);

/* True when a rank's process exited without leaving the communicator (no error as long as nothing
 * is outstanding); the sentence says which. */
bool tt_bootstrap_exited(struct tt_bootstrap *bootstrap, char *sentence, size_t sentence_bytes);
bool tt_bootstrap_someone_exited(const struct tt_bootstrap *bootstrap); /* one load */
/* The flag that tt_bootstrap_someone_exited() reads. Valid until leave. */
const _Atomic bool *tt_bootstrap_exit_flag(const struct tt_bootstrap *bootstrap);
bool tt_bootstrap_rank_exited(struct tt_bootstrap *bootstrap, int rank);
/* The same for ranks that exited, ranks that left in order and were waited for since, and ranks
 * that left in order and whose process has ended. */
bool tt_bootstrap_ended(struct tt_bootstrap *bootstrap, char *sentence, size_t sentence_bytes);
bool tt_bootstrap_someone_ended(const struct tt_bootstrap *bootstrap); /* one load */
bool tt_bootstrap_rank_ended(struct tt_bootstrap *bootstrap, int rank);
/* Of the ranks that exited, the smallest number of collectives begun, modulo 2^32. */
uint32_t tt_bootstrap_exit_begun(struct tt_bootstrap *bootstrap);

/* Connect a membership with its owner. Both are borrowed until this is called with NULL and -1.
 * begun     count of collectives that this rank has begun; the exit of the process reports it
 * event_fd  an eventfd (-1: none): posted when another rank's exit becomes known, and when a
 *           message for the owner comes (tags from TT_TAG_OWNER to TT_TAG_OWN - 1) */
void tt_bootstrap_attach(struct tt_bootstrap *bootstrap, const _Atomic uint64_t *begun,
                         int event_fd);
#define TT_TAG_OWNER 0xfffe0000u
#define TT_TAG_OWN 0xffff0000u /* from here on tags belong to this room */

/* Host and pid of a rank, for reports. Valid until leave. */
const char *tt_bootstrap_peer(const struct tt_bootstrap *bootstrap, int rank, int *pid_out);
/* Its numeric address, "" when unknown. Any thread. */
void tt_bootstrap_address(const struct tt_bootstrap *bootstrap, int rank, char *text,
                          size_t text_bytes);

/* A key for connections of another kind (proxy, net), derived from the communicator's secret. */
void tt_bootstrap_key(const struct tt_bootstrap *bootstrap, const char *kind,
                      unsigned char key_out[32]);

/* ---- a file descriptor for the other processes of the host ---- */

/* The abstract local socket where a process hands it over, and the key that a client must have. */
struct tt_fd_name {
    char name[40];
    unsigned char key[16];
};
struct tt_fd_server; /* opaque */

/* Hand `fd` and a word over to every process of this user that has the key. The descriptor is
 * borrowed until tt_fd_unserve(), which in a child of fork only frees memory.
 * Errors: ncclInProgress (this process is not allowed local sockets; logged), ncclSystemError. */
ncclResult_t tt_fd_serve(const struct tt_fd_name *name, int fd, uint64_t word,
                         struct tt_fd_server **server_out);
void tt_fd_unserve(struct tt_fd_server *server); /* accepts NULL */

/* Fetch the descriptor that is served under that name; the caller owns it. -1: *why is the reason
 * (static text, or strerror's). Blocks 2 s at most. */
int tt_fd_fetch(const struct tt_fd_name *name, uint64_t *word_out, const char **why);
