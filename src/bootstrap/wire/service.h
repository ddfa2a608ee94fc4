/* The one service thread of a process: an epoll loop over all bootstrap sockets.
 * Everything in here is guarded by one lock, held while callbacks run; callers may send under it
 * too. The thread runs while the service has users and ends by itself with the last of them. */
#pragma once

#include "base/socket.h"
#include "bootstrap/wire/handshake.h"
#include "nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_conn;
struct tt_root;
struct tt_bootstrap;

/* Who answers hellos of one key: a root, a member of a communicator, the local descriptor server.
 */
struct tt_door {
    struct tt_door *next;
    struct tt_key key;
    enum tt_key_kind kind;
    void *owner;  /* borrowed; closes the door before it goes */
    int32_t rank; /* TREE: own rank; LOCAL: 0; ROOT: not used, any negative wanted rank */
    bool (*admits)(struct tt_door *door, const struct tt_hello *hello);
    void (*opened)(struct tt_door *door,
                   struct tt_conn *conn); /* proof done: take the connection */
};

struct tt_listener {
    struct tt_listener *next;
    uint64_t token;
    int fd;
    bool local; /* abstract local socket; only LOCAL doors */
    union tt_addr addr;
};

enum tt_service_state { TT_SERVICE_STOPPED, TT_SERVICE_RUNNING, TT_SERVICE_ENDED };

struct tt_service {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pthread_t thread;
    enum tt_service_state state;
    int users;
    bool quit;   /* process exit: end whatever the users say */
    bool hooked; /* fork and exit handlers are set */
    int epoll_fd, event_fd;
    uint64_t next_token;
    uint64_t epoch; /* counts forks; what was made before one is dead in the child */
    struct tt_conn *conns;
    struct tt_conn *corpses; /* closed, freed at the end of a turn */
    struct tt_listener *listeners;
    struct tt_listener *main_listener; /* of this process, made at first need */
    struct tt_door *doors;
    struct tt_root *roots;
    uint32_t busiest_root; /* connections that one root has served at most */
    struct tt_bootstrap *members;
    uint32_t strangers; /* refused since the last log line */
    uint64_t strangers_told_nsec;
};

struct tt_service *tt_service(void);
void tt_service_lock(void);
void tt_service_unlock(void);

/* Count a user; starts the thread with the first. Lock held. */
ncclResult_t tt_service_acquire(void);
/* Lock held. The thread ends by itself when the last user is gone. */
void tt_service_release(void);
/* Wait until the thread has ended if there are no users (at most 1 s). Lock not held. */
void tt_service_settle(void);
/* Make the thread look at its deadlines again. Lock held. */
void tt_service_wake(void);

/* Lock held, service acquired. */
ncclResult_t tt_service_main_listener(union tt_addr *addr_out);
ncclResult_t tt_service_listen(int fd, bool local, struct tt_listener **listener_out);
void tt_service_unlisten(struct tt_listener *listener);
void tt_door_open(struct tt_door *door); /* parked connections that meant it go on */
void tt_door_close(struct tt_door *door);
struct tt_door *tt_door_find(const struct tt_hello *hello, bool local);

/* gate.c: a listener is readable; strangers' limits. */
void tt_gate_accept(struct tt_listener *listener);
void tt_gate_stranger(const char *why);
