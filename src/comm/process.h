/* What this room keeps for the process: one object, a part per file. Private to the room. */
#pragma once

#include <pthread.h>
#include <sys/types.h>

struct tt_comm;
struct tt_admitted;

struct tt_comms {
    struct { /* sharers.c: communicators that share resources, and storage of those that ended */
        pthread_mutex_t lock;             /* guards all sharers_* fields, too */
        struct tt_comm *resting, *newest; /* destroyed, oldest first, by sharers_next */
        int nresting;
        int alive;   /* made and not ended */
        pid_t owner; /* process that made them: a child inherits the number, not the duty */
    } storage;
    struct { /* imports.c: a program from a file is proved once */
        pthread_mutex_t lock;
        struct tt_admitted *admitted; /* owned */
    } proofs;
    pthread_once_t version_once; /* report.c: one version line */
};

extern struct tt_comms tt_comms;
