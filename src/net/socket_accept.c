/* The listening half of a connection: the handle, strangers and candidates, the accepted lanes.
 * Polled: no call waits. Until a lane has proved that its other end holds the key, nothing but the
 * fixed-size messages of the proof is read from it. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "net/socket.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENCE_NSEC 2000000000ull /* a stranger that says nothing makes room after 2 s */
#define STALL_NSEC 60000000000ull  /* who knows the listener's id may be slow, but not for ever */
#define TELL_NSEC 10000000000ull   /* one line about strangers in that time */
enum { LEAST_CANDIDATES = 64, MAX_THREADS = 16 };

enum candidate_state { CANDIDATE_HELLO, CANDIDATE_ANSWER, CANDIDATE_PROOF };

struct candidate { /* accepted, not proved */
    int fd;
    enum candidate_state state;
    uint64_t since_nsec;
    struct socket_transfer at;
    struct socket_hello hello;
    struct socket_shake shake;
    unsigned char key[TT_SEAL_KEY_BYTES]; /* sealed, proved: of its data */
};

struct socket_listener {
    struct tt_net_trust trust;
    ncclProfilerCallback_t profiler;
    int fd;
    unsigned char id[SOCKET_ID_BYTES];
    int nlanes;
    size_t ncandidates, capacity;
    struct candidate *candidates; /* owned */
    uint64_t connection;          /* whose lanes are in `ends` */
    int nproved;
    struct socket_ends ends; /* fd -1: not there yet */
    uint64_t strangers, told_nsec;
    bool sealed;
};

static int vendor_of(const struct tt_netif *netif)
{
    char path[sizeof(netif->pci_path) + 16];
    char text[32] = "";
    if (!netif->pci_path[0]) return 0;
    snprintf(path, sizeof(path), "%s/vendor", netif->pci_path);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (!fgets(text, sizeof(text), file)) text[0] = '\0';
    fclose(file);
    return (int)strtol(text, NULL, 16);
}

/* Data lanes per connection: threads times sockets per thread, as NCCL counts them; here the
 * caller's thread serves all of them. */
static int data_lanes(const struct tt_netif *netif)
{
    int64_t threads = tt_param_int("NCCL_SOCKET_NTHREADS");
    int64_t each = tt_param_int("NCCL_NSOCKS_PERTHREAD");
    int vendor = threads < 0 || each < 0 ? vendor_of(netif) : 0;
    if (threads < 0) threads = vendor == 0x1d0f ? 2 : vendor == 0x1ae0 ? 4 : 0;
    if (each < 0) each = vendor == 0x1d0f ? 8 : 1;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads && each > SOCKET_DATA_LANES / threads) each = SOCKET_DATA_LANES / threads;
    return (int)(threads * each);
}

ncclResult_t tt_socket_net_unlisten(void *listen_comm)
{
    struct socket_listener *listener = listen_comm;
    if (!listener) return ncclSuccess;
    for (size_t i = 0; listener->candidates && i < listener->ncandidates; i++)
        close(listener->candidates[i].fd);
    for (int i = 0; i < listener->nlanes; i++) {
        if (listener->ends.fds[i] >= 0) close(listener->ends.fds[i]);
    }
    if (listener->fd >= 0) close(listener->fd);
    free(listener->candidates);
    sodium_memzero(listener, sizeof(*listener));
    free(listener);
    return ncclSuccess;
}

ncclResult_t tt_socket_net_listen(struct socket_context *context, const struct tt_netif *netif,
                                  void *opaque, void **listen_comm)
{
    struct socket_listener *listener = tt_calloc(1, sizeof(*listener));
    if (!listener) return tt_fail(ncclSystemError, "NET/Socket: out of memory for a listener");
    listener->fd = -1;
    listener->trust = context->trust;
    listener->profiler = context->profiler;
    listener->sealed = listener->ends.sealed = context->sealed;
    listener->nlanes = 1 + data_lanes(netif);
    for (int i = 0; i < listener->nlanes; i++)
        listener->ends.fds[i] = -1;
    listener->capacity = tt_max_size(LEAST_CANDIDATES, 2 * (size_t)listener->nlanes);
    listener->candidates = tt_calloc(listener->capacity, sizeof(struct candidate));
    struct socket_handle handle = {
        .addr = netif->addr, .rank = context->trust.rank, .nlanes = (uint32_t)listener->nlanes};
    ncclResult_t rc = ncclSuccess;
    if (!listener->candidates) rc = tt_fail(ncclSystemError, "NET/Socket: out of memory");
    if (!rc) rc = tt_socket_listen(&handle.addr, &listener->fd);
    if (rc) goto out;
    randombytes_buf(listener->id, sizeof(listener->id));
    memcpy(handle.id, listener->id, sizeof(handle.id));
    memset(opaque, 0, NCCL_NET_HANDLE_MAXSIZE);
    memcpy(opaque, &handle, sizeof(handle));
    *listen_comm = listener;
    listener = NULL;
out:
    tt_socket_net_unlisten(listener);
    return rc;
}

static void drop(struct socket_listener *listener, size_t i)
{
    close(listener->candidates[i].fd);
    listener->candidates[i] = listener->candidates[--listener->ncandidates];
}

/* One line now and then, whatever knocks. */
static void refuse(struct socket_listener *listener, size_t i, const char *why)
{
    uint64_t now = tt_now_nsec();
    drop(listener, i);
    listener->strangers++;
    if (listener->told_nsec && now - listener->told_nsec < TELL_NSEC) return;
    listener->told_nsec = now;
    tt_info(TT_LOG_NET, "NET/Socket: rank %d refused %llu connections; the last one %s",
            listener->trust.rank, (unsigned long long)listener->strangers, why);
}

/* Take what waits in the backlog; the oldest candidate makes room. */
static ncclResult_t take_new(struct socket_listener *listener)
{
    for (size_t taken = 0; taken < listener->capacity; taken++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == EBADF || errno == EINVAL)) {
            return tt_fail(ncclSystemError, "NET/Socket: rank %d: accept: %m",
                           listener->trust.rank);
        }
        if (fd < 0) return ncclSuccess; /* none, or one that is gone again */
        size_t oldest = 0;
        for (size_t i = 1; i < listener->ncandidates; i++) {
            struct candidate *at = &listener->candidates[i];
            if (at->since_nsec < listener->candidates[oldest].since_nsec) oldest = i;
        }
        if (listener->ncandidates == listener->capacity)
            refuse(listener, oldest, "made room for others");
        struct candidate *candidate = &listener->candidates[listener->ncandidates++];
        *candidate = (struct candidate){.fd = fd, .since_nsec = tt_now_nsec()};
    }
    return ncclSuccess;
}

static bool hello_fits(const struct socket_listener *listener, const struct candidate *candidate)
{
    const struct socket_hello *hello = &candidate->hello;
    return !sodium_memcmp(hello->listener, listener->id, SOCKET_ID_BYTES) &&
           hello->wanted_rank == listener->trust.rank && hello->sealed == listener->sealed &&
           hello->lane < (uint32_t)listener->nlanes;
}

/* The candidate's proof as far as it goes: ncclSuccess when complete, ncclInProgress to be asked
 * again, else it is a stranger. */
static ncclResult_t examine(struct socket_listener *listener, struct candidate *candidate)
{
    struct socket_shake *shake = &candidate->shake;
    struct socket_transfer *at = &candidate->at;
    ncclResult_t rc = ncclSuccess;
    if (candidate->state == CANDIDATE_HELLO) {
        rc = tt_socket_transfer(candidate->fd, at, shake->hello, SHAKE_HELLO_BYTES);
        if (rc) return rc;
        if (!tt_shake_read(shake, &candidate->hello) || !hello_fits(listener, candidate))
            return ncclInvalidUsage;
        tt_shake_answer(shake, &listener->trust);
        candidate->state = CANDIDATE_ANSWER;
        at->sending = true;
    }
    if (candidate->state == CANDIDATE_ANSWER) {
        rc = tt_socket_transfer(candidate->fd, at, shake->answer, SHAKE_ANSWER_BYTES);
        if (rc) return rc;
        candidate->state = CANDIDATE_PROOF;
        at->sending = false;
    }
    rc = tt_socket_transfer(candidate->fd, at, shake->proof, SHAKE_PROOF_BYTES);
    if (rc) return rc;
    if (!tt_shake_check(shake, &listener->trust)) return ncclInvalidUsage;
    bool keyed = !listener->sealed || tt_shake_key(shake, &listener->trust, true, candidate->key);
    return keyed ? ncclSuccess : ncclInvalidUsage;
}

/* A proved lane finds its place. Lanes of an earlier attempt of the connector are closed. */
static void seat(struct socket_listener *listener, const struct candidate *candidate)
{
    struct socket_ends *ends = &listener->ends;
    if (listener->connection != candidate->hello.connection) {
        for (int i = 0; i < listener->nlanes; i++) {
            if (ends->fds[i] >= 0) close(ends->fds[i]);
            ends->fds[i] = -1;
        }
        listener->nproved = 0;
        listener->connection = candidate->hello.connection;
    }
    int *place = &ends->fds[candidate->hello.lane];
    if (*place >= 0) {
        close(*place);
    } else {
        listener->nproved++;
    }
    *place = candidate->fd;
    memcpy(ends->keys[candidate->hello.lane], candidate->key, sizeof(candidate->key));
    ends->rank = candidate->hello.own_rank;
    tt_socket_tune(candidate->fd);
}

/* True when the candidate left its place in the list. */
static bool examine_one(struct socket_listener *listener, size_t i)
{
    struct candidate *candidate = &listener->candidates[i];
    ncclResult_t rc = examine(listener, candidate);
    if (!rc) {
        seat(listener, candidate);
        *candidate = listener->candidates[--listener->ncandidates];
        return true;
    }
    uint64_t patience = candidate->state > CANDIDATE_HELLO ? STALL_NSEC : SILENCE_NSEC;
    bool late = tt_now_nsec() - candidate->since_nsec > patience;
    if (rc == ncclInProgress && !late) return false;
    refuse(listener, i,
           late                    ? "stayed silent"
           : rc == ncclRemoteError ? "went away"
                                   : "did not prove that it belongs to us");
    return true;
}

ncclResult_t tt_socket_net_accept(void *listen_comm, void **recv_comm)
{
    struct socket_listener *listener = listen_comm;
    *recv_comm = NULL;
    ncclResult_t rc = take_new(listener);
    for (size_t i = 0; i < listener->ncandidates;) {
        if (!examine_one(listener, i)) i++;
    }
    if (rc || listener->nproved < listener->nlanes) return rc;
    struct socket_ends ends = listener->ends;
    ends.nlanes = listener->nlanes;
    for (int i = 0; i < listener->nlanes; i++)
        listener->ends.fds[i] = -1;
    listener->nproved = 0;
    *recv_comm = tt_socket_link_create(&ends, listener->profiler);
    sodium_memzero(ends.keys, sizeof(ends.keys));
    sodium_memzero(listener->ends.keys, sizeof(listener->ends.keys));
    return *recv_comm ? ncclSuccess : ncclSystemError;
}
