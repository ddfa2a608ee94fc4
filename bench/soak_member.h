/* A world of the soak, what its processes share, and one process in it. */
#pragma once

#include "soak_call.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MOST = 6, STEPS = 12, BURST = 4, BOUND_SEC = 30 };

enum fault { KILL, ABORT, REVOKE, FAULTS };

struct incident { /* a fault, as its survivors found it */
    _Atomic int fault, nranks;
    _Atomic int64_t injected_usec,
        reported_usec; /* when it came, 0: not yet; until the last knew */
    _Atomic int reported, remote,
        named; /* survivors; with ncclRemoteError; with the culprit's rank */
};

struct shared { /* shared by the processes of a world */
    ncclUniqueId ids[STEPS + 1];
    _Atomic bool has_id[STEPS + 1];  /* [0]: of the start, then of the steps that make one */
    int members[STEPS + 1][MOST];    /* slots in the order of ranks, after a grow */
    int nmembers[STEPS + 1];         /* of these */
    _Atomic int joining;             /* step at which a newcomer is wanted, plus 1 */
    _Atomic bool doomed[MOST];       /* by a signal of its own */
    const char *_Atomic doing[MOST]; /* the text lies at one address in all processes */
    _Atomic int at_step[MOST];       /* where each is */
    int pids[MOST];                  /* by slot */
    struct incident incidents[STEPS];
};

struct world {
    uint64_t seed;
    int nslots, medium;
    bool nonblocking;
    struct shared *shared;
};

struct member { /* of the whole world, as one process sees it */
    const struct world *world;
    int slot, rank, nranks, slots[MOST];
    int step;
    uint64_t common; /* state of random numbers, the same in all members */
    ncclComm_t comm;
    cudaStream_t stream;
    unsigned char *in[BURST], *out[BURST];
};

struct group { /* a communicator, and who this process is in it */
    ncclComm_t comm;
    int rank, n;
};

struct burst { /* a few calls, all under way before the first is waited for */
    struct soak_call calls[BURST];
    int ncalls;
};

int64_t soak_now_usec(void);
/* Say what went wrong, where, and end the process. */
_Noreturn void soak_wrong(const struct member *m, const char *what, int code);
void soak_must(const struct member *m, ncclResult_t rc, const char *what);
void soak_cuda(const struct member *m, cudaError_t err, const char *what);
/* What a call on the communicator came to, once it is done. */
ncclResult_t soak_result(ncclComm_t comm, ncclResult_t rc);
/* The same of a call that makes one communicator out of another (NULL: of none). */
ncclResult_t soak_made(ncclComm_t from, ncclComm_t *comm, ncclResult_t rc);

/* The communicator of all members. */
struct group soak_whole(const struct member *m);
/* Launch a few random calls. */
ncclResult_t soak_begin(struct member *m, const struct group *g, uint64_t *state,
                        struct burst *burst);
/* Launch them, wait, and compare every result. */
ncclResult_t soak_operate(struct member *m, const struct group *g, uint64_t *state);
/* Use a communicator that was made, and end it. */
ncclResult_t soak_use_and_end(struct member *m, struct group g, uint64_t *state);

/* ---- soak_step.c ---- */

struct step {
    const char *name;
    ncclResult_t (*take)(struct member *m, uint64_t *state);
    int alone; /* step that a rank that is alone takes instead */
};
enum { SOAK_STEPS = 10 };
extern const struct step soak_steps[SOAK_STEPS];

/* Make the communicator of all members with the id of that number. */
void soak_init(struct member *m, int number);
