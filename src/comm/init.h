/* Init of a communicator, shared by init, split and shrink. Private to comm/. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "comm/comm.h"
#include "comm/records/record.h"
#include "nccl/tuner.h"
#include "topo/plan/machine.h"

#include <pthread.h>
#include <sys/types.h>

struct tt_init { /* one init under way */
    struct tt_comm *comm;
    /* how the ranks find each other: through a root, or through the parent */
    const ncclUniqueId *ids;
    int nids, thread;
    struct tt_bootstrap *parent;     /* of a split, shrink or grow; NULL: none */
    struct tt_bootstrap_child child; /* salt, parent_ranks, whole_parent; the rest is filled in */
    bool joined; /* the bootstrap was begun: from then on it reports failures to the others */
    struct tt_topo_file *machine;    /* owned; NULL: the devices emulate none */
    struct tt_topo_machine emulated; /* of all hosts; its hosts are owned, the rest borrowed */
    struct tt_topo_file **others;    /* owned; files of other hosts, where they differ */
    int nothers;
    int flat_channels; /* without a machine */
    /* seconds, for the log */
    double alloc_sec, bootstrap_sec, allgathers_sec, topo_sec, connections_sec, total_sec;
};

/* Join, agree, connect; comm becomes READY. Rank, nranks and comm_id are set. Collective, blocking;
 * the thread's current device is the communicator's afterwards. On error comm stays in INIT, and
 * the ranks that it has joined get the reason. */
ncclResult_t tt_init_run(struct tt_init *init);

/* prepare.c: make inbox and record of this rank. Local.
 * Errors: ncclSystemError (memory), those of the machine file. */
ncclResult_t tt_init_prepare(struct tt_init *init, struct tt_comm_record *record);

/* machine.c: the file that NCCL_TOPO_FILE names, with a hash of it (0: none), before the bootstrap;
 * the plan that follows from it, or that of flat hosts, after it. Collective.
 * Errors: ncclInvalidUsage with file and line; ranks that found different plans. */
ncclResult_t tt_machine_read(struct tt_init *init, uint64_t *hash_out);
ncclResult_t tt_machine_plan(struct tt_init *init, const struct tt_agreement *agreed);
void tt_machine_forget(struct tt_init *init);
/* Predict by the machine's links with what a tuner plugin left of the constants (NULL: untouched).
 * Without a machine nothing happens. Errors: as tt_gpu_model_make(). */
ncclResult_t tt_machine_model(struct tt_comm *comm, const ncclTunerConstants_v6_t *constants);

/* machine_share.c: complete this host's file with the devices that take part, then fetch the files
 * of all hosts into init->emulated.hosts, where they are NULL. Collective. Errors: ncclInvalidUsage
 * with file and line; ncclSystemError. */
ncclResult_t tt_machine_share(struct tt_init *init, const struct tt_agreement *agreed,
                              struct tt_topo_host *hosts);
/* Find the device number that this rank's network has for a NIC of its host's file; -1: none. */
void tt_machine_own_nic(const struct tt_comm *comm, const struct tt_topo_file *file, int *dev);

/* dump.c: write machine and channels to files, when variables ask this rank to. */
void tt_machine_dump(const struct tt_init *init, const struct tt_agreement *agreed);

/* plugins.c: open the network (`needed`: without one the init fails), tuner and profiler. */
ncclResult_t tt_plugins_net(struct tt_comm *comm, bool needed);
ncclResult_t tt_plugins_open(struct tt_comm *comm);
/* Start the proxy thread after the transport was made; stop it before the transport is destroyed.
 */
ncclResult_t tt_plugins_start(struct tt_comm *comm, bool needs_net);
void tt_plugins_stop(struct tt_comm *comm);
void tt_plugins_close(struct tt_comm *comm);

/* networks.c: compare the ranks' networks, let edges use the devices that all ranks have, and make
 * slices smaller where their slots would take too much memory. Collective. Errors: ncclInvalidUsage
 * naming two ranks with different networks; those of the exchange. */
ncclResult_t tt_networks_agree(struct tt_comm *comm, struct tt_agreement *agreed);
/* The same: where no two ranks share memory, slices are as large as the network likes them; the
 * same on all ranks. */
void tt_networks_slices(const struct tt_comm *comm, struct tt_agreement *agreed);

/* collnet.c: within the init's time-out, where all ranks want a network that reduces and have it,
 * connect this rank's group of it; else go on without. Collective. Errors: those of the exchange;
 * ncclSystemError. */
ncclResult_t tt_collnets_agree(struct tt_comm *comm, const struct tt_agreement *agreed,
                               int64_t timeout_sec);
void tt_collnets_close(struct tt_comm *comm); /* before the network */

/* imports.c: of the programs that this rank read from files (comm->imports, may be NULL), keep what
 * all ranks have and what is proved, each by one of the ranks; the rest is reported.
 * Collective when any record says that its rank has files. Errors: those of the exchange;
 * ncclSystemError. */
ncclResult_t tt_imports_agree(struct tt_comm *comm, const struct tt_agreement *agreed);
void tt_imports_destroy(struct tt_imports *imports); /* accepts NULL */

/* affinity.c: bind the thread to the cores of the device during the init; NULL: nothing was
 * changed. leave restores and frees, in the same thread. */
struct tt_affinity;
struct tt_affinity *tt_affinity_enter(int device);
void tt_affinity_leave(struct tt_affinity *before);

/* Free what tt_comm_shrink() counts on a parent. */
void tt_shrinks_free(struct tt_comm *comm);

/* Time-out of an init; 0: none. */
int64_t tt_init_timeout_sec(void);

/* ---- sharers.c: storage of communicators, and children that share their parent's resources ----
 */

/* Zeroed storage of a communicator; NULL when memory is short. */
struct tt_comm *tt_sharers_alloc(void);
void tt_sharers_count(int nranks); /* note that a communicator of `nranks` became ready */
/* Let the child share its parent's resources. Errors: ncclInvalidUsage (different networks). */
ncclResult_t tt_sharers_join(struct tt_comm *parent, struct tt_comm *child);
/* Undo tt_sharers_join() during the child's init, because some rank of it does not share. */
void tt_sharers_part(struct tt_comm *child);
/* Abort all that share resources with `comm`. Any thread; does not block. */
void tt_sharers_abort(struct tt_comm *comm, ncclResult_t rc);
/* After an abort: wait until started work has ended, running streams' work meanwhile. Work on a
 * stream that is stalled for half a second ends later, at its turn; see tt_member_resume(). */
void tt_sharers_drain(struct tt_comm *comm);
/* Take it out of what tt_sharers_abort() finds. */
void tt_sharers_hide(struct tt_comm *comm);
/* Keep a communicator that another thread may end, until tt_sharers_release(); do not block in
 * between. False: it has ended. */
bool tt_sharers_keep(const struct tt_comm *comm);
void tt_sharers_release(void);
/* Free the storage, or leave that to the last child that shares. */
void tt_sharers_free(struct tt_comm *comm);

/* report.c: log lines that users and tools know from NCCL; written only when they are on. */
void tt_report_version(const struct tt_comm *comm);
void tt_report_start(const struct tt_comm *comm);
void tt_report_plan(const struct tt_comm *comm, const struct tt_agreement *agreed);
void tt_report_complete(const struct tt_init *init);
void tt_report_end(const struct tt_comm *comm, const char *what);

/* process.c: what this room keeps for the process, a part per file. */
struct tt_comms {
    struct { /* sharers.c: communicators that share resources, and storage of those that ended */
        pthread_mutex_t lock;             /* guards all sharers_* fields, too */
        struct tt_comm *retired, *newest; /* destroyed, oldest first, by sharers_next */
        int nresting;
        int alive;   /* made and not ended */
        int broken;  /* destroyed after they had failed, not aborted */
        int largest; /* ranks of the largest that came about */
        pid_t owner; /* process that made them; in a forked child `alive` does not count */
    } storage;
    struct { /* imports.c: a program from a file is proved once */
        pthread_mutex_t lock;
        struct tt_admitted *admitted; /* owned */
    } proofs;
    pthread_once_t version_once; /* report.c: one version line */
    struct tt_plans plans;       /* plan/: tt_comm_plans() */
};

extern struct tt_comms tt_comms;
