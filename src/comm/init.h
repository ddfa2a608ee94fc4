/* Init of a communicator, shared by init, split and shrink. Private to comm/. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "comm/comm.h"
#include "comm/record.h"
#include "nccl/tuner.h"
#include "topo/plan/machine.h"

#include <pthread.h>
#include <sys/types.h>

struct tt_init { /* one init under way */
    struct tt_comm *comm;
    /* how the ranks meet: through a root, or through the parent */
    const ncclUniqueId *ids;
    int nids, thread;
    struct tt_bootstrap *parent;     /* of a split, shrink or grow; NULL: none */
    struct tt_bootstrap_child child; /* salt, parent_ranks, whole_parent; the rest is filled in */
    bool joined; /* bootstrap was begun: from then on bootstrap reports failures to the others */
    struct tt_topo_file *machine;    /* owned; NULL: the devices emulate none */
    struct tt_topo_machine emulated; /* of all hosts; its hosts are owned, the rest borrowed */
    struct tt_topo_file **others;    /* owned; files of other hosts, where they differ */
    int nothers;
    int flat_channels; /* without a machine */
    /* seconds, for the log */
    double alloc_sec, bootstrap_sec, allgathers_sec, topo_sec, connections_sec, total_sec;
};

/* Meet, agree, connect; comm becomes READY. Rank, nranks and comm_id are set. Collective, blocking;
 * the thread's device is the communicator's afterwards. On error comm stays in INIT and
 * the ranks that it has joined know why. */
ncclResult_t tt_init_run(struct tt_init *init);

/* prepare.c: inbox and record of this rank; nobody is met.
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

/* machine_share.c: the file completed with what takes part on this host, then everybody's files in
 * init->emulated.hosts, where they are NULL. Collective.
 * Errors: ncclInvalidUsage with file and line; ncclSystemError. */
ncclResult_t tt_machine_share(struct tt_init *init, const struct tt_agreement *agreed,
                              struct tt_topo_host *hosts);
/* The number that this rank's network has for a NIC of its host's file; -1: it has none. */
void tt_machine_own_nic(const struct tt_comm *comm, const struct tt_topo_file *file, int *dev);

/* dump.c: machine and channels as files, when variables ask this rank for them. */
void tt_machine_dump(const struct tt_init *init, const struct tt_agreement *agreed);

/* plugins.c: network, without which it goes on when no peer needs one; tuner and profiler. */
ncclResult_t tt_plugins_net(struct tt_comm *comm, bool needed);
ncclResult_t tt_plugins_open(struct tt_comm *comm);
/* After the transport was made and before it goes: the thread that moves the network. */
ncclResult_t tt_plugins_start(struct tt_comm *comm, bool needs_net);
void tt_plugins_stop(struct tt_comm *comm);
void tt_plugins_close(struct tt_comm *comm);

/* networks.c: compare what the ranks meet over, and let edges take the devices that all of them
 * have. Collective. Errors: ncclInvalidUsage naming two ranks with different networks; those of the
 * exchange. */
ncclResult_t tt_networks_agree(struct tt_comm *comm);

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

/* affinity.c: run init on the cores that belong to the device; NULL: nothing was changed. Put back
 * in the same thread, which frees. */
struct tt_affinity;
struct tt_affinity *tt_affinity_enter(int device);
void tt_affinity_leave(struct tt_affinity *before);

/* Free what tt_comm_shrink() counts on a parent. */
void tt_shrinks_free(struct tt_comm *comm);

/* How long the making of a communicator may take; 0: for ever. */
int64_t tt_init_timeout_sec(void);

/* sharers.c: zeroed storage, NULL when memory is short; a child that shares its parent's resources.
 * hide: abort leaves it alone from now on; free: its storage, now or with the last child. */
struct tt_comm *tt_sharers_alloc(void);
void tt_sharers_count(int nranks); /* a communicator of so many came about */
ncclResult_t tt_sharers_join(struct tt_comm *parent, struct tt_comm *child);
/* In the child's init: some rank of it shares nothing, so this one does not either. */
void tt_sharers_part(struct tt_comm *child);
void tt_sharers_abort(struct tt_comm *comm, ncclResult_t rc);
/* The abort flag is up: wait until started work has seen it and ended, running streams' work
 * meanwhile. What a stream that stands still keeps after half a second ends when its turn comes;
 * tt_member_resume() sees to that. */
void tt_sharers_drain(struct tt_comm *comm);
void tt_sharers_hide(struct tt_comm *comm);
/* Keep a communicator that another thread may end from being freed, until tt_sharers_release(): for
 * a look at it, nothing that waits. False: it has ended. */
bool tt_sharers_keep(const struct tt_comm *comm);
void tt_sharers_release(void);
void tt_sharers_free(struct tt_comm *comm);

/* report.c: lines of the log that users and tools know; nothing is written unless it is on. */
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
        int largest; /* ranks of the largest that came about */
        pid_t owner; /* process that made them: a child inherits the number, not the duty */
    } storage;
    struct { /* imports.c: a program from a file is proved once */
        pthread_mutex_t lock;
        struct tt_admitted *admitted; /* owned */
    } proofs;
    pthread_once_t version_once; /* report.c: one version line */
};

extern struct tt_comms tt_comms;
