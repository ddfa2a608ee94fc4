/* What the sockets of the room share in a process: one lock, one epoll set, the lists of their
 * owners. The lock is held while callbacks run; they may send. */
#pragma once

#include "base/network/socket.h"
#include "nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_conn;
struct tt_acceptor;
struct tt_listener;
struct tt_root;
struct tt_bootstrap;

#define TT_TOKEN_WAKE 1ull /* epoll's data word of the wake-up event; sockets have higher ones */

/* Callbacks of a part of the room. Lock held; NULL: nothing to do. */
struct tt_service_client {
    bool (*tick)(uint64_t now_nsec); /* act on deadlines; true: look again in 20 ms */
    void (*fork_child)(void);        /* forget what the child inherited */
    bool (*needed)(void);            /* true: peers reach each other through this process alone */
    void (*goodbye)(int code);       /* the process exits: report it to the peers */
    bool (*busy)(void);              /* true: some peer has not got that report yet */
    void (*last_word)(void);         /* no time is left for these peers: log it */
};
#define TT_SERVICE_CLIENTS 2

enum tt_service_state { TT_SERVICE_STOPPED, TT_SERVICE_RUNNING, TT_SERVICE_ENDED };

struct tt_service {
    pthread_mutex_t netif_lock;
    union tt_addr netif;       /* interface of the process, chosen once; AF_UNSPEC before */
    union tt_addr spare_netif; /* another one, chosen with it; AF_UNSPEC: none */
    bool netif_cut;            /* what lay on the first one went on over the other; under `lock` */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t thread;
    enum tt_service_state state;
    int users;
    bool quit;                /* process exit: end even with users */
    bool hooked, fork_hooked; /* handlers of exit and of fork are set */
    int epoll_fd, event_fd;
    int reserve_fd; /* see tt_service_keep_reserve(); -1: none */
    uint64_t next_token;
    uint64_t epoch; /* counts forks; what was made before one is dead in the child */
    struct tt_conn *conns;
    struct tt_conn *closed; /* freed at the end of a turn */
    struct tt_listener *listeners;
    struct tt_listener *main_listener;  /* of this process, made at first need */
    struct tt_listener *spare_listener; /* the same at its second interface */
    struct tt_acceptor *acceptors;
    struct tt_root *roots;
    uint32_t busiest_root; /* connections that one root has served at most */
    struct tt_bootstrap *members;
    uint32_t expected; /* connections that roots wait for */
    uint32_t refused;  /* peers without proof since the last log line */
    uint64_t refused_logged_nsec;
    bool robbed;                  /* the process has closed a descriptor of a connection */
    bool exhausted;               /* no descriptor was left for a connection: reported once */
    uint64_t exhausted_nsec;      /* first accept that failed since one succeeded; 0: none */
    uint64_t exhausted_last_nsec; /* the last accept that failed; long ago: no peer connects */
    const struct tt_service_client *clients[TT_SERVICE_CLIENTS]; /* registered; then NULL */
};

struct tt_service *tt_service(void);
void tt_service_lock(void);
void tt_service_unlock(void);

/* Make the thread look at its deadlines again. Lock held. */
void tt_service_wake(void);

/* Keep one descriptor in reserve, so that a process without free descriptors can still report its
 * exit; spend it for that. Lock held. */
void tt_service_keep_reserve(void);
void tt_service_spend_reserve(void);
/* Note that no descriptor was left to accept a connection, which the kernel keeps. Lock held. */
void tt_service_accepted_none(uint64_t now_nsec);
/* True when peers have waited for long because this process has no descriptor to accept them. */
bool tt_service_cannot_accept(uint64_t now_nsec);

/* Count a connection that was closed without proof; logs one line per 10 s. Lock held. */
void tt_service_refused(const char *why);
