/* Communicators: init, split, shrink, grow, revoke, end. The only room that uses all rooms below.
 */
#pragma once

#include "base/member.h"
#include "exec/exec.h"
#include "nccl.h"
#include "topo/topo.h"
#include "tune/host.h"
#include "tune/tune.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tt_bootstrap;
struct tt_transport;
struct tt_net;
struct tt_collnet;
struct tt_transport_group;
struct tt_proxy;
struct tt_profiler;
struct tt_plan;
struct tt_gpu_model;
struct tt_imports;
struct tt_registry;
struct tt_peer_reach;
struct tt_transport_nics;
struct tt_watch;
struct tt_shrinks;

/* In this order; GetAsyncError and the checks of calls depend on it. */
enum tt_comm_phase {
    TT_COMM_INIT,
    TT_COMM_READY,
    TT_COMM_FINALIZING,
    TT_COMM_FINALIZED,
    TT_COMM_REVOKED,
    TT_COMM_DESTROYED,
};

#define TT_COMM_MAGIC 0x7475747469636f6dull /* "tutticom" */

/* What each rank sends to all others at init; fits TT_RECORD_BYTES. Host byte order (same
 * architecture). */
struct tt_comm_record;

struct tt_comm {
    _Atomic uint64_t magic; /* TT_COMM_MAGIC while alive. Any thread may read it; without a pin, or
                               being inside the plan, it may change at any time */
    struct tt_comm
        *sharers_next;    /* head: the others that share its resources, linked through this */
    struct tt_plan *plan; /* owned; storage for plan/ (set by api right after alloc, freed by api
                             before tt_comm_free; its storage rests until 64 others have ended) */
    _Atomic int phase;    /* enum tt_comm_phase */
    /* from here on valid only while alive */
    const char *func; /* static: public function that made it, for logs */
    pid_t process;    /* that made it: a child of fork may only free it */
    struct tt_member member;
    ncclConfig_t config;  /* effective */
    char *name;           /* owned copy of config.commName */
    char *net_name;       /* owned copy of config.netName */
    _Atomic int state;    /* ncclResult_t seen by GetAsyncError */
    _Atomic bool aborted; /* by this process; member.abort may also be another rank's revoke */
    struct tt_registry *registry; /* owned; storage for api/ (buffers and windows); may be NULL */
    struct tt_issue_queue queue;  /* operations in issue order */
    struct tt_issue_queue *queue_used; /* own, or the parent's when resources are shared */
    struct tt_tune_env tune;
    struct tt_tune_host host;       /* figures of the hosts, when tune.host points here */
    struct tt_imports *imports;     /* owned; programs from files; NULL: none */
    struct tt_topo_plan topo;       /* owned */
    struct tt_gpu_model *gpu;       /* owned; of the machine that the devices emulate; or NULL */
    struct tt_tuner *tuner;         /* owned; NULL without plugin */
    struct tt_profiler *profiler;   /* owned; NULL without plugin */
    int edge_channels;              /* of the transport's edges: those of the rings and trees,
                                       or more for imported programs; equal on all ranks */
    bool no_match, no_global;       /* of some rank: TUTTI_CHECK_MATCH=0; no DEBUG_GLOBAL */
    bool all_memory;                /* each two ranks share memory; equal on all ranks */
    struct tt_transport *transport; /* owned */
    struct tt_bootstrap *bootstrap; /* owned */
    const _Atomic bool *someone_exited;       /* the bootstrap's */
    struct tt_net *net;                       /* owned */
    struct tt_collnet *collnet;               /* owned; NULL: no network that reduces is used, */
    void *coll_comm;                          /* owned: this rank's group of it */
    struct tt_transport_group *network_group; /* owned; the same for the transport; or NULL */
    int collnet_dev;
    uint8_t network_sums[ncclNumTypes];   /* what tune.network_sums points to */
    struct tt_transport_nics *nics;       /* owned; NULL: no machine says which device is whose */
    struct tt_proxy *proxy;               /* owned; NULL when no peer needs the network */
    struct tt_peer_reach *peers;          /* owned; nranks */
    const struct tt_comm_record *records; /* borrowed from bootstrap */
    void *inbox;                          /* owned control memory */
    size_t inbox_bytes;
    struct tt_comm *sharers_head; /* owner of queue_used when shared; NULL: this one */
    bool serves_range;            /* counted in tt_segment_publish() */
    struct tt_watch *watch;       /* owned */
    struct tt_comm *parent;       /* for logs only: may be gone; NULL unless split or shrunk */
    uint64_t child_count;         /* calls of Split and Grow so far; equal on all ranks */
    bool grow_id_made;            /* by tt_comm_grow_id(), for the next child */
    ncclUniqueId grow_id;
    struct tt_shrinks *shrinks;  /* owned list: how many shrinks each set of survivors has made */
    int color, key;              /* as given to split */
    _Atomic uint32_t graph_refs; /* captured works alive */
    _Atomic uint64_t
        graphs_nsec; /* since when its end waits for them, for reports; 0: it does not */
    _Atomic uint64_t func_seq[16]; /* operations per function, for profiler and reports */
};

struct tt_comm_request { /* one init */
    const char *func;    /* public function, for logs */
    int nranks, rank, device;
    const ncclUniqueId *ids;
    int nids;
    int thread;                   /* id of the calling thread */
    const ncclConfig_t *config;   /* NULL: defaults */
    const ncclConfig_t *inherit;  /* parent's effective config for children without one */
    const struct tt_comm *parent; /* of an existing rank in a grow, kept alive meanwhile: its
                                     failure ends the init; else NULL */
};

/* Check a caller's config of any size and version, fill defaults, apply the environment; log lines
 * of ENV. Errors: ncclInvalidArgument naming field and value. */
ncclResult_t tt_config_parse(const ncclConfig_t *config, const ncclConfig_t *inherit,
                             ncclConfig_t *effective_out);

/* Allocate a communicator in phase INIT, without communication.
 * *comm_out  owned by the caller, who frees its plan and registry and then calls tt_comm_free()
 * Errors: those of tt_config_parse(), ncclSystemError (out of memory). */
ncclResult_t tt_comm_alloc(const struct tt_comm_request *request, struct tt_comm **comm_out);
/* Join the other ranks and become READY. Blocks. Errors: those of tt_bootstrap_join() and of what
 * each room needs. */
ncclResult_t tt_comm_init(struct tt_comm *comm, const struct tt_comm_request *request);
struct tt_comm_color { /* arguments of one rank in a split */
    uint64_t number;   /* tt_comm_count_child(), when Split was called */
    int color, key;
};

/* Count a call of Split or Grow; returns its number, equal on all ranks of the parent. Call it in
 * the thread of that call. */
uint64_t tt_comm_count_child(struct tt_comm *parent);

/* Make a child of the parent. Split: all ranks of the parent call. Shrink: the survivors call.
 * Blocks; the errors are those of tt_comm_init().
 * child    allocated by tt_comm_alloc() with the parent's nranks and rank, which are replaced here;
 *          owned by the caller, also after an error; NULL for NCCL_SPLIT_NOCOLOR
 * exclude  `nexclude` ranks of the parent that are left out
 * flags    of ncclCommShrink() */
ncclResult_t tt_comm_split(struct tt_comm *parent, const struct tt_comm_color *color,
                           struct tt_comm *child);
ncclResult_t tt_comm_shrink(struct tt_comm *parent, const int *exclude, int nexclude,
                            struct tt_comm *child, int flags);

/* Make the id for new ranks of `comm` and send it to the existing ranks (n - 1 small messages).
 * Waits for no rank. Errors as tt_id_create_grow(). */
ncclResult_t tt_comm_grow_id(struct tt_comm *comm, ncclUniqueId *id_out);
/* Called by Grow, with the id it was given or NULL. True when this rank has made an id since its
 * last child: *id_out is that id. Call it in the thread of that call. */
bool tt_comm_grow_made(struct tt_comm *parent, const ncclUniqueId *given, ncclUniqueId *id_out);
/* Find the id with which an existing rank joins `child` (allocated with the new size and the old
 * rank) in tt_comm_init(). Blocks until another rank has handed the id out, TUTTI_INIT_TIMEOUT at
 * most. The ids of all ranks are compared with rank 0's (rank 0 sends and receives n - 1 small
 * messages, the others one; they wait for rank 0 for 1 s at most).
 * number   tt_comm_count_child(), when Grow was called
 * given    the id that Grow was given; NULL: the one that another rank handed out
 * request  of the call
 * Errors: ncclInvalidArgument (wrong or different ids, at all old and new ranks that use them), the
 * parent's failure, the child's abort. */
ncclResult_t tt_comm_grow_take(struct tt_comm *parent, struct tt_comm *child, uint64_t number,
                               const ncclUniqueId *given, const struct tt_comm_request *request,
                               ncclUniqueId *id_out);

/* Which function sets the phase: alloc INIT, init READY, api FINALIZING, finalize FINALIZED, revoke
 * REVOKED, free DESTROYED. After alloc and init the state is ncclSuccess, unless the request is
 * non-blocking: then the background group sets it. */

/* End the communicator in order, after its work was drained. Does not wait for other ranks, since
 * one thread may end all ranks of a process. */
ncclResult_t tt_comm_finalize(struct tt_comm *comm);
/* Stop all operations (abort flag up, wait until quiet, flag down) and stay in REVOKED: only
 * queries, split, shrink, abort and destroy remain. Local. */
ncclResult_t tt_comm_revoke(struct tt_comm *comm);
/* Take the communicator out of all lists: no call, watchdog or communicator that shares its
 * resources finds it any more. Works and graphs may still refer to it. */
void tt_comm_hide(struct tt_comm *comm);
/* Close and free everything but the plan and the registry. Local. Accepts NULL and half-built ones.
 */
void tt_comm_free(struct tt_comm *comm);
/* Note that the program destroys a communicator that has failed, without ever having aborted it:
 * its exit status tells so under TUTTI_STRICT. Any thread. */
void tt_comm_note_broken(void);
/* Make every wait in this communicator, and in those that share its resources, return `rc`, and
 * tell the other ranks. Any thread; does not block. */
void tt_comm_abort(struct tt_comm *comm, ncclResult_t rc);

/* State for ncclCommGetAsyncError: ncclSuccess, ncclInProgress, or the first error known to the
 * communicator, its bootstrap or its proxy. */
ncclResult_t tt_comm_state(struct tt_comm *comm);
/* Set the state to `rc`. `why` is kept if it is the first error. Any thread. */
void tt_comm_show(struct tt_comm *comm, ncclResult_t rc, const char *why);
/* tt_comm_state() as the result of the public function `func`, reported with the sentence of the
 * first failure. ncclInProgress becomes ncclInvalidArgument. */
ncclResult_t tt_comm_check_state(struct tt_comm *comm, const char *func);
/* Report to the caller that the communicator has failed with `rc`: the text of ncclGetLastError
 * becomes the first cause, not what followed from it. */
void tt_comm_recall(struct tt_comm *comm, ncclResult_t rc);
/* Check a caller's communicator: not NULL, alive, ready, not revoked, without an error. `func` is
 * named in the message. hot */
ncclResult_t tt_comm_check(struct tt_comm *comm, const char *func);
/* Report that `func` was called on a communicator that has ended, or is being ended by another
 * thread. Reads nothing of it. Returns ncclInvalidArgument. */
ncclResult_t tt_comm_ended(const struct tt_comm *comm, const char *func);
/* State for ncclCommGetAsyncError, with its sentence; ncclInProgress when the communicator is
 * `busy`. Not `pinned`: another thread is destroying it, and a lock keeps it during this call, so
 * that a failure of the destroy is seen. Errors: tt_comm_ended(). */
ncclResult_t tt_comm_async_error(struct tt_comm *comm, bool busy, bool pinned, const char *func,
                                 ncclResult_t *rc_out);
/* True when tt_comm_check() would certainly accept it; false: call that. hot */
static inline bool tt_comm_is_usual(const struct tt_comm *comm)
{
    return comm && comm->magic == TT_COMM_MAGIC &&
           atomic_load_explicit(&comm->phase, memory_order_acquire) == TT_COMM_READY &&
           !atomic_load_explicit(&comm->member.abort, memory_order_relaxed) &&
           atomic_load_explicit(&comm->state, memory_order_relaxed) == ncclSuccess &&
           !atomic_load_explicit(comm->someone_exited, memory_order_relaxed);
}

/* ---- process.c ---- */

/* What plan/ keeps for the process, beside the communicators that the plans are of. */
struct tt_plans {
    struct { /* uses.c and plan.c: plans whose communicators have ended; any thread may look */
        pthread_mutex_t lock;
        struct tt_plan *oldest, *newest; /* by next_ended */
        int count;
        struct tt_plan *kept; /* by next_ended */
    } retired;
    struct { /* group.c: frees the group of a thread that ends */
        pthread_once_t once;
        pthread_key_t key;
    } group_end;
};
struct tt_plans *tt_comm_plans(void);
