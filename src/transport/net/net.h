/* Network edges: a ring of slots that the network moves. Private to the room. net.c is the
 * executor's side, net_step.c the side of the thread that moves the network, net_join.c the
 * proxy's. net_edges.c decides which thread moves which edge, net_pin.c knows the memory that the
 * user registered. The sides share only atomic counters.
 *
 * A slot is 8 B unused | 56 B header | payload, so that the payload lies on a cache line and
 * header and payload travel as one message. A network that gathers sends the payload from the
 * user's memory and receives it there, where the executor has named memory (`memory`). Other
 * networks do so only with registered memory: the slot then carries only the header, and the
 * payload is a message of its own over a second connection, the direct line, made when it is first
 * useful. So a receive into the user's memory is posted only after its header was found to be the
 * expected one, and closing the direct line ends all such receives. */
#pragma once

#include "net/net.h"
#include "plugin/net/net.h"
#include "plugin/profiler/profiler.h"
#include "transport/net/mac.h"
#include "transport/transport_state.h"

#include <pthread.h>
#include <stdatomic.h>

enum net_phase {
    NET_UNUSED,
    NET_LISTENING,
    NET_WAITING_HANDLE,
    NET_CONNECTING,
    NET_ACCEPTING,
    NET_CONFIRMING, /* the direct line's sender: until the receiver has it as well */
    NET_REVERSING,  /* sender: until the edge of the other direction is READY */
    NET_READY,
    NET_BROKEN
};

/* "The mover" below is the thread that moves the network now and holds the lock of tt_net_edges. */
struct net_line { /* a connection; of the mover */
    enum net_phase phase;
    void *listen_comm, *comm;
    void *mhandle;                     /* of the slots that the edge has now; it may be NULL */
    void *kept_mhandle;                /* of its slots, or of the pool */
    void *spare_mhandle;               /* of net_edge.spare */
    bool registered, spare_registered; /* these two are there */
    _Alignas(16) char handle[NCCL_NET_HANDLE_MAXSIZE]; /* networks keep structs in it */
    uint64_t mail;       /* of the bootstrap, when the handle was last not found */
    uint64_t since_nsec; /* when the proxy first saw it; 0: not yet */
    bool said_alone;     /* sender: the receiver knows that no other direction is used here */
};

struct net_slot { /* header on the wire, in front of the payload */
    uint64_t match;
    uint32_t bytes;
    uint32_t flags;       /* enum net_flag */
    struct tt_call call;  /* of a collective: the sender's */
    uint64_t payload_mac; /* with NET_FLAG_MAC; or the payload, of up to 8 bytes */
    uint64_t head_mac;    /* with NET_FLAG_MAC: of all fields before it */
};
_Static_assert(sizeof(struct net_slot) == 56, "fixed by the wire");
enum net_flag {
    NET_FLAG_APART = 1, /* the payload comes over the direct line */
    NET_FLAG_ASKS = 2,  /* the sender requests a direct line */
    NET_FLAG_MAC = 4,   /* payload_mac and head_mac are set */
    NET_FLAG_MOST = NET_FLAG_APART | NET_FLAG_ASKS | NET_FLAG_MAC,
};

/* One operation over one edge, for the profiler. Freed with its last use. */
struct net_op {
    struct tt_profiler *profiler; /* borrowed */
    uint32_t mask;
    void *event; /* ProxyOp */
    _Atomic bool begun;
    _Atomic int uses;    /* the executor's, and one per step under way */
    _Atomic int nsteps;  /* numbered so far, */
    int most;            /* of so many; 0: not known */
    struct net_op *next; /* begun as well, whose steps come behind those of this one */
};

struct net_step {      /* of one slot */
    struct net_op *op; /* one use; NULL: no profiler */
    struct tt_prof_step seen;
    void *request; /* of the slot */
    void *payload; /* the same on the direct line; NULL: nothing went over it */
    bool landed;   /* receiving: the payload is where the executor named memory */
    uint8_t group; /* receiving: messages in `request` from this one on; 0: in the one before */
};

struct net_pin { /* memory that the network has registered for a direct line */
    struct net_pin *next;
    const void *key; /* of the region */
    const char *base;
    size_t bytes;
    void *mhandle;
    bool refused; /* the network could not register it */
};

struct net_region { /* memory that the user registered */
    struct net_region *next;
    const void *key;
    char *base;
    size_t bytes;
    uint32_t uses;
};

struct net_edge {
    struct tt_edge edge;
    struct net_edge *next, *prev;
    struct tt_transport *transport; /* borrowed */
    char *fifo;                     /* owned mapping, or of the pool: slots of `stride` bytes */
    uint32_t slot_mask; /* how many, a power of two, less one. Receiving from a network that gathers
                           there is one: the next message is asked for when the last one is done */
    size_t stride, fifo_bytes;
    bool pooled;                            /* net_pool.c: `fifo` is NULL while it has no slots */
    bool filling;                           /* pooled: a slot was acquired and not posted yet */
    char *spare;                            /* pooled: owned mapping; NULL: not needed so far */
    bool gathers;                           /* the network does */
    bool proves;                            /* messages must carry MACs */
    struct tt_net_landing memory[TT_SLOTS]; /* by slot; of the executor until the slot is posted.
                                               Sending: what the slot refers to; at NULL: its own
                                               payload. Receiving: where the payload may be put */
    /* Sending: filled by the executor, emptied by the network. Receiving: the other way round. */
    _Atomic uint64_t filled, emptied;
    /* Receiving: number of messages for which the executor has named memory; number of messages
     * that the program will receive */
    _Atomic uint64_t wanted, expected;
    _Atomic uint64_t transfer_first, transfer_end; /* of the memory that was named last: messages */
    _Atomic int direct_state;                      /* sending: enum net_direct, for the executor */
    _Atomic int error;                             /* ncclResult_t; set once */
    _Atomic(struct net_op *) op;                   /* of the slots to come */
    /* of the mover */
    int dev;        /* of the network */
    int group_most; /* receives in one request */
    int first_tag;  /* of slot 0, by sender: receives of one request need different tags */
    struct net_line slots, direct;
    struct net_pin *pins; /* owned; of the direct line */
    /* Numbers of steps so far, each at most the one before it: slot posted; header received
     * (sending: sent); payload posted where it goes apart; all complete; the network knows that we
     * have consumed it. */
    uint64_t issued, headed, posted, tested, consumed;
    struct net_step steps[TT_SLOTS];
};

enum net_direct { NET_DIRECT_NONE, NET_DIRECT_ASKED, NET_DIRECT_READY };

/* All network edges of a transport, and what wakes its proxy. */
struct tt_net_edges {
    struct tt_mac_key mac_key; /* of the communicator */
    pthread_mutex_t lock;      /* of the mover: trylock only, but for adding and removing edges */
    struct net_edge *first;
    struct tt_collnet_lane *lane; /* owned; NULL: no network that reduces was used */
    uint32_t count, turn;         /* edges; drives, under the lock */
    _Atomic int error;            /* of the first edge that broke; reported */
    _Atomic uint64_t missed;      /* posts that found the lock taken */
    _Atomic uint64_t drives;      /* runs by threads other than the proxy */
    uint64_t waits_nsec;          /* since when threads have waited; under the lock */
    _Atomic uint64_t look_nsec;   /* who waits does not ask before; 0: at once */
    pthread_mutex_t wake_lock;
    pthread_cond_t wake_up;
    _Atomic bool joining;  /* some edge is being connected: the proxy must get the lock */
    _Atomic bool wanted;   /* the proxy waits for the lock: others do not take it */
    _Atomic bool asleep;   /* the proxy sleeps until it is woken */
    bool woken;            /* under wake_lock */
    bool tends;            /* receivers are looked after when they are idle; the proxy's */
    uint64_t tend_nsec;    /* not before: the next time */
    bool hinted;           /* the network knows how many connections may come; under the lock */
    _Atomic uint64_t uses; /* struct tt_net_uses of the latest operations, packed; 0: none */
    uint64_t announced;    /* `uses` as announced to the network last; under the lock */
    bool inherited;        /* by fork: connections are the parent's, and stay open */
    pid_t process;         /* whose threads use the locks; a child of fork does not have them */
    pthread_mutex_t region_lock; /* innermost */
    struct net_region *regions;  /* owned */
    _Atomic uint32_t nregions;
    struct net_pool *pool; /* owned; NULL: not needed so far. Made on the launch path */
    size_t own_bytes;      /* slots of messages' edges that are not pooled */
};

/* There is something to ask the network for. */
static inline void net_look_now(struct tt_net_edges *edges)
{
    atomic_store_explicit(&edges->look_nsec, 0, memory_order_relaxed);
}

static inline struct net_slot *net_slot_at(const struct net_edge *edge, uint64_t number)
{
    char *slot = edge->fifo + (number & edge->slot_mask) * edge->stride;
    return (struct net_slot *)(void *)(slot + TT_LINE_BYTES - sizeof(struct net_slot));
}

static inline struct net_step *net_step_at(struct net_edge *edge, uint64_t number)
{
    return &edge->steps[number % TT_SLOTS];
}

/* Issue and test the slots of a READY edge; lock held. True when something moved. */
bool tt_net_step(struct net_edge *edge);
/* True when slots were posted that the network has not taken yet. */
bool tt_net_step_pending(const struct net_edge *edge);
/* Advance a line of the edge towards READY; lock held, the proxy's thread. True when something
 * happened. */
bool tt_net_join(struct net_edge *edge, struct net_line *line);
/* Close the edge's connections; lock held. After tt_net_direct_close(), which may be called twice,
 * the network no longer touches memory of the user. */
void tt_net_edge_close(struct net_edge *edge);
void tt_net_direct_close(struct net_edge *edge);
/* Tell the network how many connections and what kind of operations to expect; 0: not known. Lock
 * held. */
void tt_net_give_hints(const struct net_edge *edge, uint64_t uses);
/* Note that the edge has failed. The first error of the edge, and of the transport, is reported. */
void tt_net_broke(struct net_edge *edge, ncclResult_t rc, const char *what);
void tt_net_broke_because(struct net_edge *edge, ncclResult_t rc, const char *sentence);

static inline bool net_is_joining(const struct net_line *line)
{
    return line->phase > NET_UNUSED && line->phase < NET_READY;
}

/* net_pin.c. True when the user has registered all of that memory. Any thread. */
bool tt_net_registered(struct tt_net_edges *edges, const void *at, size_t bytes);
/* The registration of that memory with the direct line, made on first use. NULL: the user has not
 * registered it, or the network refused it. Lock held. */
const struct net_pin *tt_net_pin(struct net_edge *edge, const void *at, size_t bytes);
/* Undo all registrations of the edge; lock held. */
void tt_net_unpin(struct net_edge *edge);

/* net_pool.c. Accepts NULL. */
void tt_net_pool_destroy(struct net_pool *pool);

/* net_watch.c: events for the profiler. */
struct net_op *tt_net_op_create(const struct net_edge *edge, const struct tt_edge_track *track);
void tt_net_op_release(struct net_op *op);
/* Note that the operation begins to use a slot; `state` is what it waits for. */
void tt_net_watch_start(struct net_op *op, struct net_edge *edge, uint64_t number,
                        ncclProfilerEventState_v7_t state);
/* Report a state of a step that has an operation, and its end. */
void tt_net_watch_state(const struct net_step *step, ncclProfilerEventState_v7_t state,
                        size_t bytes);
void tt_net_watch_stop(struct net_step *step);

/* Add an edge: the proxy connects it. Remove it: its connections are closed. */
void tt_net_edges_add(struct tt_net_edges *edges, struct net_edge *edge);
void tt_net_edges_remove(struct tt_net_edges *edges, struct net_edge *edge);

/* Move the network, for a thread that waits for this edge (NULL: for the lane of collnet.c). Moves
 * that edge, and the others only now and then: many waiting threads would otherwise cost the square
 * of the number of edges.
 * posted  after a post: wake the proxy when work is left and no other thread does it */
void tt_net_drive(struct tt_net_edges *edges, struct net_edge *edge, bool posted);
void tt_net_wake(struct tt_net_edges *edges);
