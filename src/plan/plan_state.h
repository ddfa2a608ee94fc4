/* Shared by the files of the room: a communicator's plan, the calls of a group. One thread at a
 * time uses a plan; `inside` detects callers that break that rule. */
#pragma once

#include "comm/comm.h"
#include "exec/exec.h"
#include "plan/bind/events.h"
#include "plan/plan.h"
#include "program/program.h"
#include "transport/transport.h"
#include "tune/tune.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tt_bound;
struct tt_edge;
struct tt_background;
struct tt_global_check;
struct tt_group;

struct tt_group_call { /* one call that waits for GroupEnd */
    struct tt_task task;
    struct tt_call_options options; /* task.options points here when it has any */
    struct tt_reduction reduction;  /* the operator as it was: it may be destroyed before the end */
    struct tt_group_call *next; /* next call on the same communicator; borrowed from the group */
    struct tt_group_call
        *next_same_kind;              /* next call that is made of sends and receives, or is not */
    struct tt_group_call *next_owned; /* next one from the heap; tt_group.overflow */
    bool logged;                      /* log lines of operations are on */
    bool known;                       /* it was in the launch cache when it came */
    bool ready;                       /* its buffers were checked, and `choice` is made */
    /* the profiler's; zero without one */
    void *group_api, *api_event, *op_event; /* GroupApi; CollApi or P2pApi; Coll or P2p */
    uint32_t mask;                          /* activation when the call came */
    int first_message;        /* of an exchange of messages: in plan->messages, plus 1; 0: none */
    int first_frame, nframes; /* of a batch of messages */
    char *staged;             /* copy of the input of a call in place; NULL: not needed */
    uint64_t number; /* earlier operations of the same function; captured: each run takes its own */
    size_t bundle_bytes; /* of the calls it is chosen with (choice.c); 0: alone */
    int nops;            /* pipelined operations of the group */
    struct tt_tune_choice choice;
};

/* What the choice of algorithm depends on: everything but the buffers. */
struct tt_cache_key {
    size_t count;
    int32_t func, type, op, root;
    size_t bundle_bytes; /* of the calls it was chosen with; 0: alone */
    int64_t nops;
    uint64_t request; /* of the call alone (struct tt_tune_request); 0: none */
};

/* When the buffers of calls of one kind were checked last. Such calls may use several buffers in
 * turn, so after memory was freed several calls are checked before checking stops. */
struct tt_looked {
    uint64_t frees;  /* tuttiHostFrees(): nothing is checked until it changes */
    uint64_t latest; /* its value when the last call was checked, */
    int times;       /* and how many calls were checked since */
};

/* A call's choice, bound: everything but the buffers. */
struct tt_bound {
    struct tt_cache_key key;
    bool valid, plain; /* plain: of a call alone, without requests */
    struct tt_looked looked;
    struct tt_tune_choice choice;
    struct tt_frame *frames; /* owned; capacity entries */
    int nframes, capacity;
    struct tt_work_spec spec; /* frames points to `frames` */
    struct tt_work *work;     /* owned: kept, bound again at each hit; NULL: made for each call */
    struct tt_work *watched;  /* owned: likewise, for calls that a profiler sees; NULL: none yet */
};

#define TT_CACHE_BITS 6
#define TT_CACHE_ENTRIES (1 << TT_CACHE_BITS) /* direct-mapped */

struct tt_program_node {
    struct tt_program_node *next; /* owned */
    int root;                     /* as asked for */
    int variant;                  /* ring or tree number; 0 where the shape does not matter */
    const struct tt_program
        *turned;                /* borrowed: the file's, which this is turned from; NULL: made */
    struct tt_program *program; /* owned */
    uint8_t *refs;              /* owned: which slots may refer to user memory at this rank */
};

#define TT_PROGRAM_BUCKETS 64
#define TT_BATCHES 8 /* direct-mapped */

/* Edges of one connection index, [channel][peer]: the edges of a program of several channels lie
 * side by side. Filled when programs need them. */
struct tt_edge_table {
    struct tt_edge **send; /* owned; edges are the transport's */
    struct tt_edge **recv; /* behind it */
};

/* A user operator. */
struct tt_redop {
    bool live;
    bool on_device;
    ncclDataType_t type;
    const void *scalar_ptr; /* caller's, when on the device */
    uint64_t scalar_bits;
};

struct tt_group_launch { /* the launch of one group of one communicator */
    struct CUstream_st *stream;
    uint64_t capture_id; /* 0: not captured */
    bool captured, several_streams, allow_inline;
    bool single;                                  /* one call, which is checked when it is bound */
    struct tt_group_call *messages, *collectives; /* by next_same_kind */
    bool registers;                               /* captured, and captures register buffers */
    int ncollectives;
    struct CUevent_st *event; /* to be recorded first; NULL: none */
};

/* Parts of tt_plan.uses. */
#define TT_PLAN_HOLD ((uint64_t)1)      /* open groups with calls on it, jobs, the communicator */
#define TT_PLAN_PIN ((uint64_t)1 << 32) /* jobs that run, groups that are launched */
#define TT_PLAN_PINS ((uint64_t)0x7fffffff << 32)
#define TT_PLAN_CLOSED ((uint64_t)1 << 63) /* the communicator ends: no new pins */

/* Choice for the latest AlltoAll, Gather or Scatter: sends and receives, or a program. */
struct tt_exchange_choice {
    size_t count; /* 0: none yet */
    ncclDataType_t type;
    int root;
    bool of_messages;
};

struct tt_plan {
    struct tt_comm *comm;          /* borrowed: owns the plan; valid while pinned */
    _Atomic uint64_t uses;         /* the storage lives until no hold is left */
    _Atomic int closed_rc;         /* ncclResult_t for calls that come too late */
    _Atomic uint32_t inside;       /* 1 while a thread launches or appends */
    bool looks_every_time;         /* no launch without checks: tuner, NCCL_CHECK_POINTERS, NVTX,
                                      in_place.c */
    bool checks_pointers;          /* NCCL_CHECK_POINTERS, NCCL_CHECK_MODE */
    bool checks_ranks;             /* NCCL_CHECK_MODE=DEBUG_GLOBAL: global_check.c */
    const _Atomic uint64_t *frees; /* of memory in this process: the device's counter */
    bool shares_numbers;           /* captured works count their runs too: events.c */

    struct tt_plan *next_ended; /* in a list of plan.c, after the end */
    uint64_t last_seq; /* all sequence numbers of this communicator are smaller; set at the end */

    /* of the group that this communicator is in now */
    const struct tt_group *group; /* NULL: none */
    uint64_t group_order;         /* its comm_id */
    void *group_api; /* of a group that began with it: its GroupApi; NULL: none is open */
    struct tt_plan *next_in_group;
    struct tt_group_call *first, *last;
    struct tt_group_launch launch; /* while it ends */

    struct tt_bound cache[TT_CACHE_ENTRIES];
    struct tt_bound overflow; /* for a call whose entry is in use by a running work */
    struct tt_exchange_choice exchanges[TT_FUNC_GATHER - TT_FUNC_ALLTOALL + 1]; /* by function */
    uint64_t issued;                                      /* operations accepted, from 0 */
    uint64_t misses;                                      /* calls that took the full path */
    struct tt_program_node *programs[TT_PROGRAM_BUCKETS]; /* owned lists */
    struct tt_program *local;                             /* owned: in to out within this rank */
    struct tt_edge_table edges[TT_CONN_COUNT_];
    uint8_t *links; /* owned scratch, [channel][peer]: what a program does */

    int *chain; /* owned; last frame of a group to and from each peer by each device, plus 1 */
    struct tt_scratch *scratch; /* owned list, newest first: inputs of AlltoAlls in place */
    struct tt_bound batch;      /* frames of the messages of a group */
    struct tt_batch *batches;   /* owned; TT_BATCHES groups of messages that are kept: batch.c */
    struct tt_batch *used;      /* of them: by the launch that is under way; NULL: none, as are */
    struct tt_batch *latest;    /* the last one launched */
    struct tt_batch *repeat;    /* the one that the open group is expected to be */
    struct tt_redop *redops;    /* owned */
    struct tt_message_events *messages; /* owned; of the group's exchanges: events.c */
    int nredops;
    struct tt_global_check *global_check; /* owned; NULL: nothing was compared yet */

    _Atomic pid_t process;            /* that made it, or a forked child that has seen so */
    pthread_mutex_t background_lock;  /* guards the pointer: any thread may ask for the state */
    struct tt_background *background; /* shared: the group that runs in the background */
};

/* Count calls of a function. Returns how many came before. Runs of captured works take numbers
 * too, from other threads, once a profiler has seen a capture. hot */
static inline uint64_t tt_count_calls(struct tt_plan *plan, enum tt_func func, uint64_t ncalls)
{
    _Atomic uint64_t *sequence = &plan->comm->func_seq[func];
    if (plan->shares_numbers)
        return atomic_fetch_add_explicit(sequence, ncalls, memory_order_relaxed);
    uint64_t number = atomic_load_explicit(sequence, memory_order_relaxed);
    atomic_store_explicit(sequence, number + ncalls, memory_order_relaxed);
    return number;
}

/* ---- program_cache.c ---- */

/* Bind the frame to the program for that channel, made at first use; lives as long as the plan. */
ncclResult_t tt_program_get(struct tt_plan *plan, const struct tt_tune_choice *choice,
                            enum tt_func func, int root, int channel, struct tt_frame *frame);
void tt_program_cache_fini(struct tt_plan *plan);
/* Make plan->local, the program of one rank alone: IN to OUT, with the pre- and post-operation. */
ncclResult_t tt_program_local_make(struct tt_plan *plan);

/* ---- bind.c ---- */

/* Bytes of an operation as tuners count them: of all ranks' blocks where a buffer has a block per
 * rank, else of the buffer. */
size_t tt_operation_bytes(const struct tt_task *task);
/* The one frame of a collective within one rank. */
ncclResult_t tt_bind_alone(struct tt_plan *plan, const struct tt_group_call *node,
                           struct tt_bound *bound);
/* Fill the frames of a collective for bound->choice, one per channel that gets elements. */
ncclResult_t tt_bind_collective(struct tt_plan *plan, const struct tt_group_call *node,
                                struct tt_bound *bound);
/* Give the frame its edges to and from the peers of the program, on the program's channels: frame
 * channel c has those from c times their number on. They connect while works run; nothing waits
 * here. */
ncclResult_t tt_bind_edges(struct tt_plan *plan, struct tt_frame *frame);
/* Hash of what both ends of an operation must agree on; 0 only without TUTTI_CHECK_MATCH. */
uint32_t tt_call_fingerprint(const struct tt_plan *plan, const uint64_t *words, int nwords);
/* The call in the form in which ranks compare it. */
struct tt_call tt_call_of(const struct tt_task *task, const struct tt_tune_choice *choice);
/* Room for n frames; those that were there are lost when it grows. */
ncclResult_t tt_bound_reserve(struct tt_bound *bound, int nframes);
/* Give all frames the call's buffers. */
void tt_bound_set_buffers(struct tt_bound *bound, const struct tt_task *task);
void tt_bound_fini(struct tt_bound *bound);

/* ---- launch.c ---- */

/* Make all checks of the calls of one communicator in one group, before any of the group is
 * launched: streams, messages to the own rank, buffers, choices. The caller has set allow_inline
 * and single of *launch; the rest is set here. */
ncclResult_t tt_launch_prepare(struct tt_plan *plan, struct tt_group_call *first,
                               struct tt_group_launch *launch);
/* Launch them as one operation. Errors: only memory and the device. */
ncclResult_t tt_launch_prepared(struct tt_plan *plan, struct tt_group_call *first,
                                const struct tt_group_launch *launch);
/* Check and launch one call outside of groups. */
ncclResult_t tt_launch_single(struct tt_plan *plan, struct tt_group_call *node);
/* A communicator of one rank: a copy or scaling on the stream, in groups at once. */
ncclResult_t tt_launch_alone(struct tt_plan *plan, struct tt_group_call *node);
/* Predicted time of all calls in microseconds; < 0 when nothing is known. */
ncclResult_t tt_launch_estimate(struct tt_plan *plan, struct tt_group_call *first,
                                double *usec_out);
