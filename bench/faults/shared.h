/* What the processes of a scenario share: the driver, the ranks, and the hooks that are loaded into
 * the victim. A scenario is one job that something happens to at one moment. */
#pragma once

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAULT_RANKS = 16, FAULT_SENTENCE = 1024 };

enum fault_kind {
    FAULT_NONE, /* a calm job: how long it takes, and how often it calls what */
    FAULT_KILLED,
    FAULT_PAUSED,
    FAULT_STOPPED,
    FAULT_CLOSED,
    FAULT_FLIPPED,
    FAULT_CUT,
    FAULT_PARTED,
    FAULT_LOSS,
    FAULT_DISK,
    FAULT_DESCRIPTORS,
    FAULT_MEMFD,
    FAULT_MMAP,
    FAULT_MALLOC,
    FAULT_CLOCK,
    FAULT_KINDS
};

enum fault_medium { MEDIUM_MEMORY, MEDIUM_HOSTS, MEDIUM_SOCKETS, FAULT_MEDIA };

struct fault_scenario {
    enum fault_kind kind;
    enum fault_medium medium;
    int nranks, victim;
    uint64_t seed;   /* of the calls */
    uint64_t moment; /* microseconds from the barrier on, or the count of the calls that it is
                        about; of descriptors, how many more there may be */
};

enum fault_end { END_NONE, END_WELL, END_ERROR, END_WRONG };

struct fault_report { /* of a rank */
    _Atomic int end;
    int code;
    int pid;
    char step[32], sentence[FAULT_SENTENCE];
    int64_t end_usec;
    _Atomic uint64_t counts[FAULT_KINDS]; /* calls that faults of this kind are about */
};

struct fault_shared {
    struct fault_scenario scenario;
    ncclUniqueId id;
    _Atomic bool has_id;
    _Atomic int ready;          /* ranks that are about to begin */
    _Atomic int64_t begin_usec; /* 0: not all are ready */
    int64_t ended_usec;
    _Atomic int64_t injected_usec; /* 0: not yet */
    bool all_called;               /* then all ranks were in their calls, if it came from outside */
    _Atomic uint32_t peer;         /* address at the other end of the socket that was struck */
    struct fault_report reports[FAULT_RANKS];
};

int64_t fault_now_usec(void);
/* One rank's life; `fd` is the shared memory's. */
int fault_rank(int fd, int rank);
