/* Inside of the socket network: the handle, a connection and its requests. Private to the room. */
#pragma once

#include "base/socket.h"
#include "net/net.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { SOCKET_REQUESTS = NCCL_NET_MAX_REQUESTS, SOCKET_PROOF_BYTES = 32, SOCKET_MAX_DEVS = 16 };

struct socket_context {
    ncclDebugLogger_t log;
    unsigned char key[TT_NET_KEY_BYTES];
};

/* The 128 bytes that travel to the sender; its end is the connector's own state between calls. */
struct socket_handle {
    union tt_addr addr;
    unsigned char cookie[16]; /* random; together with the key it makes the proof */
    uint32_t state;           /* enum connect_state; 0 as received */
    int32_t fd;
    uint32_t proved_bytes;
};
_Static_assert(sizeof(struct socket_handle) <= NCCL_NET_HANDLE_MAXSIZE, "a handle holds it");

struct socket_request {
    struct socket_link *link; /* borrowed; NULL: free */
    char *bytes;
    uint64_t size;   /* send: to send; receive: room, then what came */
    uint64_t moved;  /* of header and payload together */
    uint64_t header; /* payload size on the wire, host order */
    bool done;
};

struct socket_link { /* one connection, one direction */
    int fd;
    bool sending;
    ncclResult_t error;        /* first failure; sticky */
    uint32_t posted, finished; /* requests in order: [finished, posted) are under way */
    struct socket_request requests[SOCKET_REQUESTS];
    char peer[64];
};

struct socket_listener {
    int fd;
    int candidate; /* accepted, not yet proved; -1 */
    uint32_t proved_bytes;
    uint64_t candidate_nsec;
    unsigned char expected[SOCKET_PROOF_BYTES];
    unsigned char got[SOCKET_PROOF_BYTES];
};

/* Move what can be moved for the requests under way. */
ncclResult_t tt_socket_link_progress(struct socket_link *link);
struct socket_link *tt_socket_link_create(int fd, bool sending);
void tt_socket_link_destroy(struct socket_link *link);

void tt_socket_proof(const struct socket_context *context, const unsigned char cookie[16],
                     unsigned char proof[SOCKET_PROOF_BYTES]);
