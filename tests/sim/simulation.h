/* A network, clocks and threads that exist in memory alone. The processes of a job are real ones
 * (forked, so that one may be killed) and run the library's own code; what they ask the system for
 * (calls.c) comes from here. One thread of all processes runs at a time: it hands the baton on
 * where it would wait, to one that chance, which comes from a seed, chooses among those that can go
 * on. When none can, the clock jumps to the next thing that happens. So a seed plays the same
 * job again, and seconds of waiting cost nothing.
 * All fields lie in memory that the processes share, and belong to the thread with the baton. */
#pragma once

#include "nccl.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SIM_PROCS = 6,
    SIM_RANKS = 12,
    SIM_THREADS = 96,
    SIM_SOCKETS = 384,
    SIM_FAULTS = 4,
    SIM_IDS = 3,
    SIM_PATHS = 2
};
enum { SIM_BUFFER_BYTES = 1 << 16, SIM_SEGMENTS = 64, SIM_FD = 5000, SIM_WATCHED = 64 };
#define SIM_NEVER UINT64_MAX
#define SIM_SEC 1000000000ull

/* ---- threads ---- */

enum sim_wait {
    SIM_FREE, /* no thread */
    SIM_RUNS,
    SIM_SLEEPS, /* until `until` */
    SIM_COND,   /* ... or until `woken` */
    SIM_EPOLL,  /* ... or something happens at a descriptor of the set `on` */
    SIM_JOIN,   /* until the thread `on` ends */
    SIM_ID,     /* until the ids are there, or a rank that makes one is not */
    SIM_ENDED,
};

struct sim_thread {
    _Atomic uint32_t baton;
    enum sim_wait wait;
    int proc, on;
    const void *cond; /* its address in its process; of a lock likewise */
    bool woken;
    uint64_t until;
    uint64_t seen;       /* what had happened in its process when it waited last */
    uint32_t fruitless;  /* waits since that ended by the clock alone */
    uint64_t held_until; /* on a busy host: it gets no processor before */
};

struct sim_proc {
    pid_t pid;
    bool gone;
    uint64_t stopped_until;
    uint64_t busy_until;
    uint64_t poor_until;
    uint64_t full_until; /* until then it has at most so many descriptors: */
    int most;
    uint64_t random;   /* of what is random in the process: keys, nonces */
    uint64_t happened; /* bytes that came or went, threads that were woken */
    int at_locks;      /* threads that wait for one */
    uint64_t calls;    /* on sockets, so far */
};

/* ---- the network ---- */

enum sim_kind { SIM_NOTHING, SIM_FRESH, SIM_LISTENER, SIM_STREAM, SIM_EVENT, SIM_SET };

struct sim_segment {
    uint64_t end, at; /* bytes up to here come then */
};

struct sim_watch { /* of a set */
    int socket;
    uint32_t events;
    uint64_t word;
};

struct sim_socket {
    enum sim_kind kind;
    int proc;
    bool open; /* has a descriptor */
    int way;   /* interface at both ends; -1: any */
    uint16_t port, peer_port;
    int peer_proc;
    int peer;       /* the other end, -1: none any more */
    int listener;   /* an end that is not accepted yet; -1 */
    int nwaiting;   /* such ends of a listener */
    uint64_t up_at; /* connected, or ready to be accepted */
    uint64_t fin_at, error_at;
    int error;
    uint64_t count;      /* of an event */
    uint64_t head, tail; /* bytes read and written so far */
    uint64_t last_at;    /* the last segment's */
    uint32_t nsegments, first;
    struct sim_segment segments[SIM_SEGMENTS];
    uint64_t sent, answered; /* bytes to the other end, and those known to have come */
    uint32_t nanswers, first_answer;
    struct sim_segment answers[SIM_SEGMENTS]; /* when more of them are */
    uint32_t nwatched;
    struct sim_watch watched[SIM_WATCHED];
};

/* ---- what goes wrong ---- */

enum sim_fault {
    SIM_FAULT_NONE,
    SIM_FAULT_KILL,  /* the process ends, its kernel closes its sockets */
    SIM_FAULT_POWER, /* its host is gone without a word */
    SIM_FAULT_STOP,  /* it stands still for a while */
    SIM_FAULT_PART,  /* no packet passes between it and the others for a while */
    SIM_FAULT_CUT,   /* ... and one of the others */
    SIM_FAULT_FLIP,  /* one bit of what it sends or gets */
    SIM_FAULT_RESET, /* one of its connections breaks */
    SIM_FAULT_FULL,  /* for a while it may have no more descriptors than it has */
    SIM_FAULT_POOR,  /* for a while one in four of its allocations fails */
    SIM_FAULT_BUSY,  /* for a while each of its threads waits long for a processor, again and again
                      */
    SIM_FAULT_RAIL,  /* one of its interfaces is cut for a while */
    SIM_FAULT_COUNT_
};

struct sim_trouble {
    enum sim_fault fault;
    int victim;    /* process */
    int other;     /* that it is apart from; -1: all */
    int way;       /* interface that is cut; -1: all */
    uint64_t turn; /* at this turn; 0: */
    uint64_t call; /* before the victim's call of this number on a socket */
    uint64_t nsec; /* that long */
};

struct sim_report { /* of a rank */
    bool ended;
    ncclResult_t rc;
    int step;  /* how far it came */
    int wrong; /* bytes that are not what they should be */
    uint64_t at;
    char sentence[700];
};

struct sim_plan { /* all that follows from the seed before the job begins */
    uint64_t seed;
    int nprocs, nranks, proc_of[SIM_RANKS];
    uint64_t latency_nsec;    /* most of a packet's */
    int nways;                /* interfaces of each process, which is a host of its own then */
    int nids, maker[SIM_IDS]; /* the ranks that make the ids */
    bool sealed;              /* all connections are encrypted */
    int short_one_in;         /* reads and writes that are cut short */
    int switch_one_in;        /* locks at which another thread goes on */
    struct sim_trouble troubles[SIM_FAULTS];
};

struct sim_world {
    struct sim_plan plan;
    uint64_t random, now, turns, hash;
    _Atomic uint32_t over;
    const char *stuck; /* why no thread goes on; NULL */
    bool injected[SIM_FAULTS], flip_due[SIM_FAULTS];
    uint64_t injected_at; /* the last of them */
    bool injected_early;  /* before all ranks were at their data, ... */
    bool injected_soon;   /* ... or so soon after it that connections of the bootstrap may be new */
    uint64_t complete_at; /* the last one was */
    uint64_t part_until[SIM_FAULTS]; /* the victim is apart from the others */
    bool id_made[SIM_IDS];
    ncclUniqueId ids[SIM_IDS];
    uint16_t next_port;
    struct sim_proc procs[SIM_PROCS];
    struct sim_thread threads[SIM_THREADS];
    struct sim_report reports[SIM_RANKS];
    struct sim_socket sockets[SIM_SOCKETS];
    unsigned char bytes[SIM_SOCKETS][SIM_BUFFER_BYTES]; /* on their way to each */
};

extern struct sim_world *sim; /* shared */

/* ---- schedule.c ---- */

/* A number below `n`, which is not 0. */
uint64_t sim_chance(uint64_t n);
/* The caller asks the system for something on a socket: the last moment for some faults. */
void sim_call(void);
/* Give the baton away and wait for it; the caller has said what it waits for. */
void sim_turn(void);
/* A new thread of a process, without the baton; -1: too many. */
int sim_thread_new(int proc);
/* This thread is that one. With the baton. */
void sim_thread_begin(int thread);
/* It has ended: the baton goes on, and does not come back. */
void sim_thread_end(void);
/* The caller, NULL outside the simulation. */
struct sim_thread *sim_self(void);
/* The calling process has ended. As sim_thread_end(). */
void sim_process_end(void);
/* All ids are there. */
bool sim_has_ids(void);
/* Let the job begin, and wait until it is over. False: it takes more than five minutes of real
 * time. */
bool sim_run(void);

/* ---- network.c ---- */

/* The earliest moment at which something of `events` happens there; then, what. */
uint64_t sim_ready_at(const struct sim_socket *at, uint32_t events, uint32_t *now_out);
uint64_t sim_set_ready_at(const struct sim_socket *set);
int sim_socket_new(int proc, enum sim_kind kind);
/* The process has at most as many descriptors as now, for so long; has it all of them? */
void sim_network_fill(int proc, uint64_t nsec);
bool sim_network_is_full(int proc);
void sim_socket_close(struct sim_socket *at);
/* As the system calls, on sockets; errors as negative errno. */
int sim_connect(struct sim_socket *at, uint16_t port, int way);
int sim_accept(struct sim_socket *at);
ssize_t sim_send(struct sim_socket *at, const void *bytes, size_t len);
ssize_t sim_recv(struct sim_socket *at, void *bytes, size_t len);
void sim_shutdown(struct sim_socket *at);
/* Bytes that it sent and the other host has not answered; whether its kernel sends them, or asks
 * for room, again and again. */
uint64_t sim_missing(const struct sim_socket *at);
bool sim_repeats(const struct sim_socket *at);
/* All sockets of a process: closed by its kernel, or silent for ever. */
void sim_network_drop(int proc, bool silent);
/* One connection of the process breaks. False: it has none. */
bool sim_network_reset(int proc);
/* Trouble `t` of the plan: from now on for so long nothing passes between its victim and the
 * others. */
void sim_network_part(int t);

/* ---- job.c ---- */

/* What a process of the job does. */
void sim_job(int proc);
