/* What a communicator does with a network plugin, one connection or several, in one thread. Every
 * call is noted first, so that a report can name the one that did not return; TUTTI_PLUGIN_CHECK
 * looks at the answers. */
#pragma once

#include "check.h"

#include "base/member.h"
#include "plugin/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { NET_IN_FLIGHT = 8, NET_MOST_MESSAGES = 64, NET_MOST_TRANSFERS = 4 };

struct net_drive { /* one communicator */
    struct tt_member member;
    struct tt_net *net;
    struct check_case_state *state;
    unsigned looks;     /* rounds of waiting */
    bool in_order;      /* requests of a connection are tested oldest first */
    int partner_status; /* once it has ended */
    pid_t partner;      /* the process of the other end; 0: it is this one, or has ended well */
};

/* Init; false when there is no such plugin or it declines (said in the note). */
bool net_drive_open(struct net_drive *drive, uint64_t comm_id, struct check_case_state *state);
void net_drive_close(struct net_drive *drive);
/* Note a result that is none; true when it is success. */
bool net_drive_good(struct net_drive *drive, const char *function, ncclResult_t rc);
/* Go round once more? Not long after a breach, nor when the other process is dead. */
bool net_drive_goes_on(struct net_drive *drive);

struct net_end { /* of a connection */
    struct net_drive *drive;
    void *comm; /* NULL: none */
    bool sending;
};

struct net_listener {
    void *comm;
    _Alignas(16) char handle[NCCL_NET_HANDLE_MAXSIZE];
};

bool net_drive_listen(struct net_drive *drive, int dev, struct net_listener *listener);
bool net_drive_close_listen(struct net_drive *drive, struct net_listener *listener);
/* Ask once; success without a connection is none. */
bool net_drive_accept(struct net_end *end, void *listen_comm);
/* Ask until both ends are there; an end that is NULL is in another process. */
bool net_drive_join(struct net_listener *listener, int dev, struct net_end *sender,
                    struct net_end *receiver);
/* Listen, join, close the listener. */
bool net_drive_connect(struct net_drive *from, struct net_drive *to, int dev,
                       struct net_end ends[2]);
bool net_drive_disconnect(struct net_end *end);

bool net_drive_register(struct net_end *end, void *data, size_t bytes, void **mhandle);
bool net_drive_deregister(struct net_end *end, void *mhandle);

struct net_message {
    struct net_end *end;
    struct tt_net_part part;
    size_t bytes; /* of the message; a receive has room for more */
    void *request;
    bool posted, done;
};

/* Ask once; `posted` says whether it was taken. */
bool net_drive_post(struct net_message *message);
/* Post in the order of each end, at most 8 at a time, and test until all are done. */
bool net_drive_exchange(struct net_drive *drive, struct net_message *messages, int count);

/* A receive of several messages: ask once; *request_out stays NULL where it was not taken. */
bool net_drive_post_group(struct net_end *end, const struct tt_net_part *parts, int count,
                          void **request_out);
bool net_drive_test_group(struct net_end *end, void *request, int count, int *bytes,
                          bool *done_out);
/* Post or test each message that is not done, in order, once; true when all are. */
bool net_drive_advance(struct net_message *messages, int count, bool *good_out);

/* net_group.c: `count` messages in one request, sent in the order of the receives or the other way
 * round. */
bool net_transfer_grouped(struct net_end ends[2], int count, bool backwards);

/* ---- net_transfer.c: messages with contents ---- */

struct net_plan { /* of one connection */
    const size_t *sizes;
    int count;
    int first_tag, tag_step; /* message k: first + k * step */
    size_t spare;            /* a receive has room for so many bytes more */
};

struct net_batch { /* messages of several connections that are under way together; zeroed: empty */
    struct net_message messages[NET_MOST_MESSAGES];
    int nmessages;
    struct net_side {
        struct net_end *end;
        const struct net_plan *plan;
        unsigned char *data; /* owned */
        void *mhandle;
        int seed;
    } sides[2 * NET_MOST_TRANSFERS];
    int nsides;
};

/* Add what this end sends or receives. The plan stays; `seed` is the same at both ends. */
bool net_batch_add(struct net_batch *batch, struct net_end *end, const struct net_plan *plan,
                   int seed);
/* Exchange all, compare what came, deregister; the batch is empty afterwards. After a failure
 * its memory stays: nothing but the end of the process may follow. */
bool net_batch_run(struct net_drive *drive, struct net_batch *batch);
/* One connection, both ends here. */
bool net_transfer(struct net_end ends[2], const struct net_plan *plan);

/* The largest message that the plugin takes on device 0, at most `bytes`. */
size_t net_drive_most(const struct net_drive *drive, size_t bytes);

/* The call under way, for a report. */
void net_drive_where(const struct check_case_state *state, char *text, size_t text_bytes);
