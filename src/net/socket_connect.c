/* The connecting half: lanes are made and proved side by side, failed ones again later.
 * The caller keeps the handle in one place between calls; that place names the connector. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "net/socket.h"
#include "net/socket_setup.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RIVAL_AFTER_NSEC 1250000000ull /* the first packet was lost twice */
#define RIVAL_IF_SILENT_NSEC 15000000000ull
#define AGAIN_NSEC 6000000000ull /* for the peer's host to answer when a lane is made anew */
#define NEXT_NSEC 2500000000ull  /* the same where there is one more way */
enum { AGAIN_RETRIES = 3 };

enum joint_state {
    JOINT_NEW,
    JOINT_CONNECTING,
    JOINT_HELLO,
    JOINT_ANSWER,
    JOINT_PROOF,
    JOINT_DONE
};

struct joint { /* one lane being connected */
    int fd;
    enum joint_state state;
    int tries;
    uint64_t not_before_nsec;
    struct socket_transfer at;
    struct socket_shake shake;
};

struct socket_connector {
    struct socket_connector *next;
    const void *opaque; /* where the caller keeps the handle: names this connector */
    struct socket_handle handle;
    uint64_t connection;
    uint32_t lane;  /* of the first joint */
    bool resumes;   /* a lane of a connection that is there */
    bool holds;     /* does not prove itself yet */
    bool has_spare; /* handle.spare has not been taken, or the lane works: failing is silent */
    struct socket_connector *rival; /* owned: the same to handle.spare; NULL: none */
    int dev, way;                   /* handle.addr is that of this way */
    uint64_t since_nsec;
    int retries;
    uint64_t retry_nsec;
    struct joint joints[];
};

void tt_socket_connector_free(struct socket_connector *connector)
{
    if (!connector) return;
    tt_socket_connector_free(connector->rival);
    for (uint32_t i = 0; i < connector->handle.nlanes; i++) {
        if (connector->joints[i].fd >= 0) close(connector->joints[i].fd);
    }
    free(connector);
}

void tt_socket_connectors_free(struct socket_context *context)
{
    while (context->connectors) {
        struct socket_connector *connector = context->connectors;
        context->connectors = connector->next;
        tt_socket_connector_free(connector);
    }
}

static ncclResult_t connector_create(int dev, const void *opaque,
                                     const struct socket_handle *handle,
                                     struct socket_connector **connector_out)
{
    int family = handle->addr.sa.sa_family;
    if ((family != AF_INET && family != AF_INET6) || handle->nlanes < 1 ||
        handle->nlanes > SOCKET_LANES) {
        return tt_fail(ncclInvalidArgument,
                       "NET/Socket: the handle is damaged: address family %d, %u lanes", family,
                       handle->nlanes);
    }
    struct socket_connector *connector =
        tt_calloc(1, sizeof(*connector) + handle->nlanes * sizeof(struct joint));
    if (!connector) return tt_fail(ncclSystemError, "NET/Socket: out of memory for a connection");
    connector->opaque = opaque;
    connector->handle = *handle;
    connector->dev = dev;
    connector->since_nsec = tt_now_nsec();
    connector->has_spare = handle->spare.sa.sa_family == family;
    connector->retries = (int)tt_param_int("NCCL_SOCKET_RETRY_CNT");
    connector->retry_nsec = (uint64_t)tt_param_int("NCCL_SOCKET_RETRY_SLEEP_MSEC") * 1000000u;
    randombytes_buf(&connector->connection, sizeof(connector->connection));
    for (uint32_t i = 0; i < handle->nlanes; i++)
        connector->joints[i].fd = -1;
    *connector_out = connector;
    return ncclSuccess;
}

/* The connector that this handle belongs to, taken out of the list. The buffer's address alone does
 * not tell: it may have held another handle before. */
static struct socket_connector *connector_take(struct socket_context *context, const void *opaque,
                                               const struct socket_handle *handle)
{
    struct socket_connector *found = NULL;
    pthread_mutex_lock(&context->lock);
    for (struct socket_connector **at = &context->connectors; *at; at = &(*at)->next) {
        if ((*at)->opaque != opaque) continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&context->lock);
    if (!found || !memcmp(found->handle.id, handle->id, sizeof(handle->id))) return found;
    tt_socket_connector_free(found);
    return NULL;
}

static void connector_keep(struct socket_context *context, struct socket_connector *connector)
{
    pthread_mutex_lock(&context->lock);
    connector->next = context->connectors;
    context->connectors = connector;
    pthread_mutex_unlock(&context->lock);
}

static ncclResult_t give_up(const struct socket_connector *connector, ncclResult_t rc,
                            const char *why)
{
    char addr[64];
    if (connector->has_spare) return rc;
    return tt_fail(rc, "NET/Socket: connection to rank %d at %s: %s%s", connector->handle.rank,
                   tt_addr_text(&connector->handle.addr, addr, sizeof(addr)), why,
                   tt_addr_reach_text(&connector->handle.addr));
}

/* What another device is refused goes to the first one's address at once. The first one's second
 * address is for cuts alone: it may be one that leads nowhere. */
static bool leaves_early(const struct socket_connector *connector)
{
    return connector->has_spare && (connector->dev || connector->resumes);
}

/* The listener may not be there yet, or may have dropped us as unauthenticated: try again, later
 * each time. */
static ncclResult_t retry(struct socket_connector *connector, struct joint *joint, int err,
                          const char *why)
{
    if (joint->fd >= 0) close(joint->fd);
    joint->fd = -1;
    joint->state = JOINT_NEW;
    if (leaves_early(connector)) return ncclRemoteError;
    bool passing = err == 0 || err == ECONNREFUSED || err == ETIMEDOUT || err == EHOSTUNREACH ||
                   err == EAGAIN || err == ECONNRESET;
    if (!passing || joint->tries >= connector->retries) {
        return give_up(connector, passing ? ncclRemoteError : ncclSystemError,
                       err ? strerror(err) : why);
    }
    joint->tries++;
    joint->not_before_nsec = tt_now_nsec() + (uint64_t)joint->tries * connector->retry_nsec;
    return ncclInProgress;
}

/* connect(2) again returns the result of the first one. */
static ncclResult_t start_tcp(struct socket_connector *connector, struct joint *joint)
{
    const union tt_addr *addr = &connector->handle.addr;
    if (joint->state == JOINT_NEW) {
        if (tt_now_nsec() < joint->not_before_nsec) return ncclInProgress;
        joint->fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (joint->fd < 0 && errno == EMFILE) {
            return tt_socket_more_descriptors() ? ncclInProgress
                                                : tt_socket_exhausted("NET/Socket: connect");
        }
        if (joint->fd < 0) return give_up(connector, ncclSystemError, strerror(errno));
        tt_socket_tune(joint->fd);
        joint->state = JOINT_CONNECTING;
    }
    if (connect(joint->fd, &addr->sa, tt_addr_len(addr)) == 0 || errno == EISCONN)
        return ncclSuccess;
    if (errno == EINPROGRESS || errno == EALREADY || errno == EINTR) return ncclInProgress;
    return retry(connector, joint, errno, "");
}

static void say_hello(const struct socket_context *context,
                      const struct socket_connector *connector, struct joint *joint)
{
    struct socket_hello hello = {.connection = connector->connection,
                                 .lane = connector->lane + (uint32_t)(joint - connector->joints),
                                 .own_rank = context->trust.rank,
                                 .wanted_rank = connector->handle.rank,
                                 .sealed = context->sealed,
                                 .resumes = connector->resumes};
    memcpy(hello.listener, connector->handle.id, sizeof(hello.listener));
    tt_shake_hello(&joint->shake, &hello);
}

/* Steps of one lane until it is proved (ncclSuccess) or must wait (ncclInProgress). */
static ncclResult_t join_lane(const struct socket_context *context,
                              struct socket_connector *connector, struct joint *joint)
{
    struct socket_shake *shake = &joint->shake;
    ncclResult_t rc = ncclSuccess;
    if (joint->state <= JOINT_CONNECTING) {
        rc = start_tcp(connector, joint);
        if (rc) return rc;
        say_hello(context, connector, joint);
        joint->state = JOINT_HELLO;
        joint->at = (struct socket_transfer){.sending = true};
    }
    if (joint->state == JOINT_HELLO) {
        rc = tt_socket_transfer(joint->fd, &joint->at, shake->hello, SHAKE_HELLO_BYTES);
        if (!rc) joint->state = JOINT_ANSWER;
        joint->at.sending = rc != ncclSuccess;
    }
    if (!rc && joint->state == JOINT_ANSWER) {
        rc = tt_socket_transfer(joint->fd, &joint->at, shake->answer, SHAKE_ANSWER_BYTES);
        if (!rc && !tt_shake_prove(shake, &context->trust))
            return give_up(connector, ncclRemoteError, "the other end is not of this communicator");
        if (!rc) joint->state = JOINT_PROOF;
        joint->at.sending = rc == ncclSuccess;
    }
    if (!rc && joint->state == JOINT_PROOF && connector->holds) return ncclInProgress;
    if (!rc && joint->state == JOINT_PROOF) {
        rc = tt_socket_transfer(joint->fd, &joint->at, shake->proof, SHAKE_PROOF_BYTES);
        if (!rc) joint->state = JOINT_DONE;
    }
    if (rc == ncclRemoteError)
        return retry(connector, joint, 0, "it closes connections before they are proved");
    return rc;
}

/* The second way, or the third where the second is known to be cut. */
static int spare_way(struct socket_context *context, const struct socket_connector *connector)
{
    uint32_t cut = atomic_load_explicit(&context->cut_devices, memory_order_relaxed);
    bool third = connector->handle.third.sa.sa_family == connector->handle.addr.sa.sa_family;
    return third && cut >> tt_socket_way_device(connector->dev, 1) & 1 ? 2 : 1;
}

/* Let it lead to the spare address. */
static void turn(struct socket_context *context, struct socket_connector *connector)
{
    struct socket_handle *handle = &connector->handle;
    connector->way = spare_way(context, connector);
    handle->addr = connector->way > 1 ? handle->third : handle->spare;
}

/* The other connections of this device will be made to the spare address as well: it may be that
 * its peers have no way to each other there. */
static void report_cut(struct socket_context *context, const struct socket_connector *connector)
{
    char addr[64], spare[64];
    const struct socket_handle *handle = &connector->handle;
    uint32_t bit = (uint32_t)1 << connector->dev;
    uint32_t before = atomic_fetch_or_explicit(&context->cut_devices, bit, memory_order_relaxed);
    if (!(before & bit)) {
        tt_warn("NET/Socket: rank %d does not reach rank %d at %s; it and what else would go that "
                "way goes to %s",
                context->trust.rank, handle->rank, tt_addr_text(&handle->addr, addr, sizeof(addr)),
                tt_addr_text(spare_way(context, connector) > 1 ? &handle->third : &handle->spare,
                             spare, sizeof(spare)));
    }
}

/* All lanes anew, by the spare address. */
static void take_spare(struct socket_context *context, struct socket_connector *connector)
{
    report_cut(context, connector);
    tt_socket_connector_free(connector->rival);
    connector->rival = NULL;
    for (uint32_t i = 0; i < connector->handle.nlanes; i++) {
        if (connector->joints[i].fd >= 0) close(connector->joints[i].fd);
        connector->joints[i] = (struct joint){.fd = -1};
    }
    connector->has_spare = false;
    turn(context, connector);
    randombytes_buf(&connector->connection, sizeof(connector->connection));
}

/* Packets without an answer: for a slow listener the kernel answers. Or another process that took
 * the connection and says nothing, such as another program at this host's own address. */
static bool is_unanswered(const struct socket_connector *connector)
{
    uint64_t waited_nsec = tt_now_nsec() - connector->since_nsec;
    bool unanswered = false;
    for (uint32_t i = 0; i < connector->handle.nlanes; i++) {
        enum joint_state state = connector->joints[i].state;
        uint64_t limit_nsec = state > JOINT_CONNECTING ? RIVAL_IF_SILENT_NSEC : RIVAL_AFTER_NSEC;
        unanswered |= state < JOINT_PROOF && waited_nsec > limit_nsec;
    }
    return unanswered;
}

static bool is_answered(const struct socket_connector *connector)
{
    bool answered = true;
    for (uint32_t i = 0; i < connector->handle.nlanes; i++)
        answered &= connector->joints[i].state >= JOINT_PROOF;
    return answered;
}

/* Where the address gives no answer, the spare one is tried beside it, as it may lead nowhere
 * either. Of the two the first to answer is the connection: the rival does not prove itself before.
 */
static ncclResult_t compete(struct socket_context *context, struct socket_connector **at)
{
    struct socket_connector *connector = *at, *rival = connector->rival;
    if (!connector->has_spare || !is_unanswered(connector)) return ncclSuccess;
    if (!rival) {
        ncclResult_t rc =
            connector_create(connector->dev, connector->opaque, &connector->handle, &rival);
        if (rc) return rc;
        turn(context, rival);
        rival->holds = true;
        connector->rival = rival;
    }
    for (uint32_t i = 0; i < rival->handle.nlanes; i++) {
        ncclResult_t rc = join_lane(context, rival, &rival->joints[i]);
        if (!rc || rc == ncclInProgress) continue;
        tt_socket_connector_free(rival); /* another one later */
        connector->rival = NULL;
        connector->since_nsec = tt_now_nsec();
        return ncclSuccess;
    }
    if (!is_answered(rival)) return ncclSuccess;
    report_cut(context, connector);
    connector->rival = NULL;
    tt_socket_connector_free(connector);
    rival->holds = rival->has_spare = false;
    *at = rival;
    return ncclSuccess;
}

static ncclResult_t join_all(struct socket_context *context, struct socket_connector *connector)
{
    ncclResult_t all = ncclSuccess;
    for (uint32_t i = 0; i < connector->handle.nlanes; i++) {
        struct joint *joint = &connector->joints[i];
        ncclResult_t rc =
            joint->state == JOINT_DONE ? ncclSuccess : join_lane(context, connector, joint);
        bool fails = rc && rc != ncclInProgress;
        if (connector->has_spare && fails) {
            take_spare(context, connector);
            return ncclInProgress;
        }
        if (fails) return rc;
        if (rc) all = rc;
    }
    return all;
}

/* All lanes are proved: descriptors and keys. On failure the connector keeps the descriptors. */
static ncclResult_t take_ends(const struct socket_context *context,
                              struct socket_connector *connector, struct socket_ends *ends)
{
    ends->nlanes = (int)connector->handle.nlanes;
    ends->rank = connector->handle.rank;
    ends->sealed = context->sealed;
    for (int i = 0; i < ends->nlanes && ends->sealed; i++) {
        struct socket_shake *shake = &connector->joints[i].shake;
        if (!tt_shake_key(shake, &context->trust, false, ends->keys[i]))
            return give_up(connector, ncclRemoteError, "it sent no public key");
        sodium_memzero(shake, sizeof(*shake));
    }
    for (int i = 0; i < ends->nlanes; i++) {
        ends->fds[i] = connector->joints[i].fd;
        connector->joints[i].fd = -1;
    }
    return ncclSuccess;
}

ncclResult_t tt_socket_net_connect(struct socket_context *context, int dev, void *opaque,
                                   struct socket_ends *ends_out, struct socket_origin *origin_out)
{
    struct socket_handle handle;
    memcpy(&handle, opaque, sizeof(handle));
    struct socket_connector *connector = connector_take(context, opaque, &handle);
    uint32_t cut = atomic_load_explicit(&context->cut_devices, memory_order_relaxed);
    ncclResult_t rc = ncclSuccess;
    if (!connector) {
        rc = connector_create(dev, opaque, &handle, &connector);
        if (!rc && connector->has_spare && cut >> dev & 1) take_spare(context, connector);
    }
    if (!rc) rc = compete(context, &connector);
    if (!rc) rc = join_all(context, connector);
    if (rc == ncclInProgress) {
        connector_keep(context, connector);
        return rc;
    }
    *ends_out = (struct socket_ends){.sending = true};
    if (!rc) {
        bool has_spare = handle.spare.sa.sa_family == handle.addr.sa.sa_family;
        *origin_out = (struct socket_origin){.dev = dev,
                                             .has_spare = has_spare,
                                             .way = connector->way,
                                             .connection = connector->connection,
                                             .handle = handle};
    }
    if (!rc) rc = take_ends(context, connector, ends_out);
    tt_socket_connector_free(connector);
    return rc;
}

/* ---- a lane made anew ---- */

ncclResult_t tt_socket_connector_reopen(const struct socket_origin *origin, int lane, bool trial,
                                        struct socket_connector **connector_out)
{
    struct socket_handle one = origin->handle;
    one.nlanes = 1;
    one.spare.sa.sa_family = AF_UNSPEC;
    ncclResult_t rc = connector_create(origin->dev, NULL, &one, connector_out);
    if (rc) return rc;
    (*connector_out)->connection = origin->connection;
    (*connector_out)->lane = (uint32_t)lane;
    (*connector_out)->resumes = true;
    (*connector_out)->has_spare = (*connector_out)->holds = trial;
    (*connector_out)->retries = AGAIN_RETRIES; /* a living peer listens */
    return ncclSuccess;
}

bool tt_socket_connector_is_answered(const struct socket_connector *connector)
{
    return connector->joints[0].state >= JOINT_PROOF;
}

void tt_socket_connector_go_on(struct socket_connector *connector)
{
    connector->holds = false;
}

void tt_socket_connector_begin(struct socket_connector *connector)
{
    connector->resumes = false;
}

/* A peer that is busy elsewhere may take its time once its host has answered. */
ncclResult_t tt_socket_connector_reconnect(const struct socket_context *context,
                                           struct socket_connector *connector,
                                           struct socket_reconnect *reconnect_out)
{
    struct joint *joint = &connector->joints[0];
    ncclResult_t rc = join_lane(context, connector, joint);
    bool answered = joint->state > JOINT_CONNECTING;
    bool next = connector->has_spare && !connector->holds;
    uint64_t limit_nsec = next ? NEXT_NSEC : AGAIN_NSEC;
    if (rc == ncclInProgress && !answered && tt_now_nsec() - connector->since_nsec > limit_nsec)
        return give_up(connector, ncclRemoteError, "its host does not answer");
    if (rc) return rc;
    reconnect_out->fd = joint->fd;
    reconnect_out->shake = joint->shake;
    joint->fd = -1;
    return ncclSuccess;
}
