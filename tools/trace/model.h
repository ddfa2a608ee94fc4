/* One run as it was traced: processes, communicators, events and operations of all ranks, merged.
 * Times are nanoseconds since the first event of the run, on one clock: that of the first host,
 * to which those of the others were brought (timeline_clock). Events refer to each other by index.
 *
 *   timeline_open() → timeline_read() for each file → timeline_finish() → look → timeline_close()
 *
 * All text in it is printable ASCII without quotes and backslashes: what a file had else there
 * became '_', so that it can stand in JSON, in a terminal and in XML but for '<', '>' and '&'. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_NONE UINT32_MAX /* no such event, communicator, operation */
#define TIMELINE_OPEN INT64_MIN  /* the time of an end that the files do not have */
enum { TIMELINE_NAME_BYTES = 64, TIMELINE_EXE_BYTES = 128, TIMELINE_WHY_BYTES = 512 };

/* Types by the number of their bit in nccl/profiler_events.h. */
enum timeline_type {
    TIMELINE_GROUP,
    TIMELINE_COLL,
    TIMELINE_P2P,
    TIMELINE_PROXY_OP,
    TIMELINE_PROXY_STEP,
    TIMELINE_PROXY_CTRL,
    TIMELINE_KERNEL_CH,
    TIMELINE_NET_PLUGIN,
    TIMELINE_GROUP_API,
    TIMELINE_COLL_API,
    TIMELINE_P2P_API,
    TIMELINE_KERNEL_LAUNCH,
    TIMELINE_CE_COLL,
    TIMELINE_CE_SYNC,
    TIMELINE_CE_BATCH,
    TIMELINE_KERNEL_PHASE,
    TIMELINE_TYPE_COUNT_
};
const char *timeline_type_name(enum timeline_type type);

struct timeline_event {
    int64_t start_nsec, stop_nsec; /* stop_nsec: TIMELINE_OPEN where it did not end */
    uint64_t seq;                  /* Coll: sequence number; KernelCh: timer; NetPlugin: its id */
    uint64_t count;                /* elements; CeBatch: bytes */
    uint32_t parent;               /* event or TIMELINE_NONE */
    uint32_t member;               /* communicator at a rank, or TIMELINE_NONE */
    uint32_t thread;
    uint32_t states;     /* the first of its states, or TIMELINE_NONE */
    int32_t peer;        /* or root; -1: none */
    int32_t steps;       /* ProxyOp: how many; ProxyStep: which; GroupApi: depth; Coll of a flight
                            recorder: the operator */
    int32_t chunk_bytes; /* ProxyOp */
    uint16_t func, datatype, algo, proto; /* words; 0: none. KernelPhase: func is the phase */
    uint16_t channel;                     /* KernelCh, ProxyOp; of Coll and P2p: how many */
    uint8_t warps;
    uint8_t type : 7; /* enum timeline_type */
    bool flag : 1;    /* Api: captured in a graph; ProxyOp: is a send; CeSync: complete */
};
_Static_assert(sizeof(struct timeline_event) == 72, "as docs/tracing.md says");

struct timeline_state {
    int64_t at_nsec;
    uint64_t value; /* bytes, operations, or the GPU's timer */
    uint32_t next;  /* of the same event, in order of time; TIMELINE_NONE: the last */
    uint16_t name;  /* a word */
};

struct timeline_process {
    char host[TIMELINE_NAME_BYTES], exe[TIMELINE_EXE_BYTES];
    int pid, api, mask;
    uint32_t clock;
    uint32_t file;                    /* of timeline.paths */
    uint64_t wall_nsec, mono_nsec;    /* both clocks at one time, at the beginning */
    bool ended;                       /* the file has a line `end` */
    bool runs;                        /* it was still written when it was read */
    uint64_t lost;                    /* records that the recorder had no room for */
    uint64_t open, starts;            /* events without an end; events */
    int64_t first_nsec;               /* where there are events: the first begin, as in the file */
    uint32_t first_member, nmembers;  /* side by side in timeline.members */
    uint32_t first_thread, nthreads;  /* likewise */
    uint32_t first_event, last_event; /* likewise; last_event is the one behind */
    char flight[TIMELINE_WHY_BYTES];  /* why the flight recorder wrote it; "": a profiler did */
};

/* Processes of one host have one clock. */
struct timeline_clock {
    char host[TIMELINE_NAME_BYTES];
    int64_t offset_nsec; /* what was added to its times */
    double drift;        /* and per nanosecond since the beginning of the run */
    int64_t error_nsec;  /* how far off that may be; -1: nothing in the trace says it */
    bool by_operations;  /* from ends of collectives; false: from the wall clock */
};

struct timeline_thread {
    uint32_t process;
    int tid;
    char name[24];
};

/* A communicator at one rank. */
struct timeline_member {
    uint32_t process, comm;
    uint32_t number; /* in its process */
    int rank;        /* -1: versions 1 to 3 of the interface do not say it */
    uint32_t flight; /* of timeline.flights; TIMELINE_NONE: a profiler's file */
    bool is_twin;    /* another process has this rank as well: its operations are not matched */
};

/* How far a rank was when the flight recorder wrote its file. Its operations have the numbers of
 * all collectives of the communicator, whatever their function. */
struct timeline_flight {
    uint64_t begun, ended; /* collectives */
    uint64_t queued;       /* operations behind the one that runs */
    int64_t waits_nsec;    /* it has waited so long; -1: it does not wait */
    int waits_for;         /* -1: several or unknown */
    uint16_t waits;        /* a word: "data of" */
    uint32_t member;
};

/* Messages that a rank has begun, to and from another. */
struct timeline_messages {
    uint32_t member;
    int peer;
    uint64_t sent, received;
};

struct timeline_comm {
    uint64_t id;
    char name[TIMELINE_NAME_BYTES];
    int nranks, nnodes; /* 0 and -1: not known */
    uint32_t nmembers;  /* ranks that are there */
    bool flies;         /* a flight recorder wrote a rank of it */
};

/* A collective, or a Send with its Recv: what belongs together at all ranks. Its events are
 * timeline.parts[first .. first + count), in the order of ranks; of a message the Send first. */
struct timeline_operation {
    uint32_t comm;
    uint32_t first, count;
    uint64_t seq; /* of its function in the communicator; of a message: between these two ranks */
    uint16_t func;
    bool message;
    bool whole; /* all ranks whose files are here, both sides of the message, have ended it, and
                   none was cut */
    int64_t first_begin_nsec, last_begin_nsec, last_end_nsec;
};

/* A Coll or P2p at one rank. It begins with its first KernelCh and ends with the last of its
 * KernelCh and ProxyOp; where there are none, with the event itself. One that has none behind one
 * that was cut or has no end was queued behind that, and has no end either. */
struct timeline_part {
    uint32_t event;
    uint32_t operation;
    int64_t begin_nsec, end_nsec; /* end_nsec: TIMELINE_OPEN */
    bool cut;                     /* an abort ended it: a KernelCh's KernelChStop has no time */
};

struct timeline {
    struct timeline_event *events;
    struct timeline_state *states;
    struct timeline_process *processes;
    struct timeline_clock *clocks;
    struct timeline_thread *threads;
    struct timeline_member *members;
    struct timeline_comm *comms;
    struct timeline_operation *operations; /* by first_begin_nsec */
    struct timeline_part *parts;
    struct timeline_flight *flights;
    struct timeline_messages *messages;
    char (*words)[TIMELINE_NAME_BYTES]; /* words[0] is "" */
    char **paths;
    uint32_t nevents, nstates, nprocesses, nclocks, nthreads, nmembers, ncomms;
    uint32_t noperations, nparts, nwords, npaths, nflights, nmessages;
    int64_t origin_nsec; /* the first event on its host's own clock */
    uint64_t lines, bytes;
    uint64_t complaints; /* of all kinds, also those that were not printed any more */
    uint64_t left_out;   /* records that the limit of memory left out */
    uint32_t types;      /* bits of the types that are read; all others are passed over */
    size_t limit_bytes;  /* of events and states; 0: none */
    struct timeline_reader *reader; /* owned, while files are read */
};

/* All fields zero and no type left out: the caller may set `types` and `limit_bytes` now. */
bool timeline_open(struct timeline *run);
/* The name of a file that is read in a folder: "x.jsonl" or "x.records", or "x.jsonl.7", which a
 * flight recorder kept. */
bool timeline_is_trace(const char *name);
/* Read a file, a folder's traces, or standard input ("-"). What is not sound in it is said on
 * stderr with file and line, the first of each kind in full, and left out. False: it cannot be read
 * at all, or memory is short; said as well. */
bool timeline_read(struct timeline *run, const char *path);
/* After the last file: bring the clocks together and match the operations of all ranks. */
bool timeline_finish(struct timeline *run);
void timeline_close(struct timeline *run);

/* ---- looking ---- */

const char *timeline_word(const struct timeline *run, uint16_t word);
/* A datatype's word as other commands and messages have it: "float"; one not known stays. */
const char *timeline_type_text(const struct timeline *run, uint16_t datatype);
/* Bytes of one element of a datatype's word ("ncclFloat32"); 0: not known. */
size_t timeline_type_bytes(const struct timeline *run, uint16_t datatype);
/* By member: the rank that it is in the first communicator of its process; members of further
 * communicators are those whose thread they share. False: memory is short. */
bool timeline_ranks(const struct timeline *run, int *of_member);
/* Rank, host and process of an event as "rank 3 (node1, pid 4711)". */
void timeline_where(const struct timeline *run, uint32_t event, char *text, size_t bytes);
/* qsort() for what is mostly in order already. */
void timeline_sort(void *array, size_t count, size_t size,
                   int (*order)(const void *, const void *));
/* The events in order of their begin, parents before children; the caller frees it. NULL: memory
 * is short. */
uint32_t *timeline_by_start(const struct timeline *run);
