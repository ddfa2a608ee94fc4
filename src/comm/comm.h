/* A communicator's life: init, split, shrink, end. The only place that knows all rooms below. */
#pragma once

#include "base/member.h"
#include "exec/exec.h"
#include "nccl.h"
#include "topo/topo.h"
#include "tune/host.h"
#include "tune/tune.h"

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

enum tt_comm_phase { /* in the order of a life; GetAsyncError and the checks go by it */
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
    _Atomic uint64_t magic; /* TT_COMM_MAGIC while alive; any thread looks */
    struct tt_comm
        *sharers_next; /* head: the others that share its resources, linked through this */
    /* from here on only while alive */
    const char *func; /* static: public function that made it, for logs */
    pid_t process;    /* that made it: a child of fork may only free it */
    struct tt_member member;
    ncclConfig_t config;          /* effective */
    char *name;                   /* owned copy of config.commName */
    char *net_name;               /* owned copy of config.netName */
    _Atomic int state;            /* ncclResult_t seen by GetAsyncError */
    _Atomic int phase;            /* enum tt_comm_phase */
    _Atomic bool aborted;         /* by this process: member.abort may be somebody else's revoke */
    struct tt_plan *plan;         /* owned; storage for plan/ (set by api right after alloc, freed
                                     by api before tt_comm_free) */
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
    uint64_t child_count;         /* splits and grows called so far, on all ranks alike */
    bool grow_id_made;            /* by tt_comm_grow_id(), for the next child */
    ncclUniqueId grow_id;
    struct tt_shrinks *shrinks; /* owned list: shrinks so far by their survivors, who alone count */
    int color, key;             /* as given to split */
    _Atomic bool grouped;       /* a group of some thread holds calls on it, for reports */
    _Atomic uint32_t graph_refs;   /* captured works alive */
    _Atomic uint64_t func_seq[16]; /* operations per function, for profiler and reports */
};

struct tt_comm_request { /* one init */
    const char *func;    /* public function, for logs */
    int nranks, rank, device;
    const ncclUniqueId *ids;
    int nids;
    int thread;                   /* of the process, that called */
    const ncclConfig_t *config;   /* NULL: defaults */
    const ncclConfig_t *inherit;  /* parent's effective config for children without one */
    const struct tt_comm *parent; /* of an old rank in a grow, kept meanwhile: its failure ends the
                                     init; else NULL */
};

/* Check a caller's config of any size and version, fill defaults, apply the environment; log lines
 * of ENV. Errors: ncclInvalidArgument naming field and value. */
ncclResult_t tt_config_parse(const ncclConfig_t *config, const ncclConfig_t *inherit,
                             ncclConfig_t *effective_out);

/* Allocate in phase INIT; no communication. *comm_out is the caller's: tt_comm_free(), after what
 * api keeps on it. Errors: those of tt_config_parse(), ncclSystemError (out of memory). */
ncclResult_t tt_comm_alloc(const struct tt_comm_request *request, struct tt_comm **comm_out);
/* Meet the others and become READY. Blocking; also through a parent (split, shrink). */
ncclResult_t tt_comm_init(struct tt_comm *comm, const struct tt_comm_request *request);
struct tt_comm_color { /* what a rank says in a split */
    uint64_t number;   /* tt_comm_count_child(), when Split was called */
    int color, key;
};

/* A split or grow was called: its number, equal on all ranks of the parent. The caller's thread. */
uint64_t tt_comm_count_child(struct tt_comm *parent);

/* Split: all ranks of the parent call. Shrink: the survivors call; `exclude` lists nexclude ranks,
 * flags as of ncclCommShrink(). Blocking. The child was allocated by tt_comm_alloc() with nranks
 * and rank of the parent as placeholders (checked config, own device) and gets its own here; it
 * stays the caller's, after an error too. `child` is NULL for NCCL_SPLIT_NOCOLOR. */
ncclResult_t tt_comm_split(struct tt_comm *parent, const struct tt_comm_color *color,
                           struct tt_comm *child);
ncclResult_t tt_comm_shrink(struct tt_comm *parent, const int *exclude, int nexclude,
                            struct tt_comm *child, int flags);

/* Id for new ranks of `comm`, also handed to the ranks that exist (n - 1 small messages). Local.
 * Errors as tt_id_create_grow(). */
ncclResult_t tt_comm_grow_id(struct tt_comm *comm, ncclUniqueId *id_out);
/* True, once, when this rank made the id for its next child: *id_out is it. Of Grow, which was
 * given an id, or NULL; the caller's thread. */
bool tt_comm_grow_made(struct tt_comm *parent, const ncclUniqueId *given, ncclUniqueId *id_out);
/* Existing ranks: the id by which `child` (allocated with the new size and the old rank) is joined
 * with tt_comm_init(): the given one, or (`given` NULL) the one that another rank handed out; waits
 * for it within TUTTI_INIT_TIMEOUT. Rank 0's is compared with each other rank's (n - 1 small
 * messages each way at rank 0, one at the others; 1 s is waited for rank 0 at most). Wrong or
 * different ones are ncclInvalidArgument here, and at all ranks, old and new, that wait by them;
 * those hear of the parent's failure or the child's abort meanwhile, too.
 * number   tt_comm_count_child(), when Grow was called
 * request  of the call, for its ranks */
ncclResult_t tt_comm_grow_take(struct tt_comm *parent, struct tt_comm *child, uint64_t number,
                               const ncclUniqueId *given, const struct tt_comm_request *request,
                               ncclUniqueId *id_out);

/* Phases: alloc INIT, init READY (state ncclSuccess in both cases unless the request is
 * non-blocking: then the background group sets the state); api sets FINALIZING, finalize sets
 * FINALIZED, revoke REVOKED, free DESTROYED. */

/* Work was drained. Waits for no rank: one thread may end all ranks of a process. */
ncclResult_t tt_comm_finalize(struct tt_comm *comm);
/* Stop all operations (abort flag up, wait until quiet, flag down) and stay in REVOKED: only
 * queries, split, shrink, abort and destroy remain. Local. */
ncclResult_t tt_comm_revoke(struct tt_comm *comm);
/* The program is done with it, though works and graphs may still refer to it: no call, watchdog or
 * other that shares its resources finds it any more. */
void tt_comm_hide(struct tt_comm *comm);
/* Close and free everything but what api keeps on it. Local. Accepts NULL and half-built ones. */
void tt_comm_free(struct tt_comm *comm);
/* Make every wait in it and in those that share its resources return `rc`, and tell the other
 * ranks. Any thread; waits for nothing. */
void tt_comm_abort(struct tt_comm *comm, ncclResult_t rc);

/* State for the API: ncclSuccess, ncclInProgress, or the error. Looks at abort, bootstrap, proxy.
 */
ncclResult_t tt_comm_state(struct tt_comm *comm);
/* Let the state be `rc`; of an error, its sentence is kept, unless one was kept before. Any thread.
 */
void tt_comm_show(struct tt_comm *comm, ncclResult_t rc, const char *why);
/* tt_comm_state(), said: an error with the first failure's sentence, ncclInProgress as
 * ncclInvalidArgument. */
ncclResult_t tt_comm_check_state(struct tt_comm *comm, const char *func);
/* Report to the caller that the communicator has failed with `rc`: the text of the last error is
 * why, and not what followed from it. */
void tt_comm_recall(struct tt_comm *comm, ncclResult_t rc);
/* What every call checks first: NULL, dead, revoked, not ready, broken. `func` is named in the
 * message. hot */
ncclResult_t tt_comm_check(struct tt_comm *comm, const char *func);
/* Nothing that tt_comm_check() would refuse or look at more closely. hot */
static inline bool tt_comm_is_usual(const struct tt_comm *comm)
{
    return comm && comm->magic == TT_COMM_MAGIC &&
           atomic_load_explicit(&comm->phase, memory_order_acquire) == TT_COMM_READY &&
           !atomic_load_explicit(&comm->member.abort, memory_order_relaxed) &&
           atomic_load_explicit(&comm->state, memory_order_relaxed) == ncclSuccess &&
           !atomic_load_explicit(comm->someone_exited, memory_order_relaxed);
}
