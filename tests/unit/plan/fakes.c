/* See fakes.h. Single-threaded but for jobs, which touch only `device`. */
#include "fakes.h"

#include "base/error.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "plan/plan.h"
#include "topo/topo.h"
#include "transport/transport.h"
#include "watch/watch.h"

#include <stdlib.h>
#include <string.h>

struct fake_world fake;

void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
}

struct CUstream_st *fake_stream(int number)
{
    static char streams[8][64];
    return (struct CUstream_st *)(void *)streams[number];
}

struct tt_comm *fake_comm(int nranks, int rank, bool all_direct)
{
    struct tt_comm *comm = tt_calloc(1, sizeof(*comm));
    struct tt_topo_rank *ranks = tt_calloc((size_t)nranks, sizeof(*ranks));
    comm->magic = TT_COMM_MAGIC;
    comm->member.rank = rank;
    comm->member.nranks = nranks;
    comm->member.name = "";
    comm->config.blocking = 1;
    static const _Atomic bool none_exited = false;
    static struct tt_peer_reach peers[16]; /* all in this process */
    comm->peers = peers;
    comm->phase = TT_COMM_READY;
    comm->someone_exited = &none_exited;
    comm->queue_used = &comm->queue;
    comm->edge_channels = 2;
    comm->tune = (struct tt_tune_env){.nranks = nranks,
                                      .nnodes = 1,
                                      .ppn = nranks,
                                      .nchannels = 2,
                                      .all_direct = all_direct,
                                      .slice_bytes = 65536,
                                      .inline_bytes = 32};
    if (nranks > 1) tt_topo_plan_make(ranks, nranks, 2, &comm->topo);
    free(ranks);
    tt_plan_create(comm, &comm->plan);
    return comm;
}

struct tt_plans *tt_comm_plans(void)
{
    static struct tt_plans plans = {.retired.lock = PTHREAD_MUTEX_INITIALIZER,
                                    .group_end.once = PTHREAD_ONCE_INIT};
    return &plans;
}

void tt_comm_show(struct tt_comm *comm, ncclResult_t rc, const char *why)
{
    (void)why;
    atomic_store(&comm->state, rc);
}

void fake_comm_free(struct tt_comm *comm)
{
    tt_plan_destroy(comm->plan);
    tt_topo_plan_free(&comm->topo);
    free(comm);
}

ncclResult_t tt_comm_ended(const struct tt_comm *comm, const char *func)
{
    (void)comm;
    return tt_fail(ncclInvalidArgument, "%s: ended", func);
}

ncclResult_t tt_comm_check(struct tt_comm *comm, const char *func)
{
    if (!comm || comm->magic != TT_COMM_MAGIC)
        return tt_fail(ncclInvalidArgument, "%s: comm", func);
    return fake.state;
}

void tt_comm_free(struct tt_comm *comm)
{
    fake.freed++;
    free(comm);
}

void tt_comm_hide(struct tt_comm *comm)
{
    (void)comm;
}

/* ---- exec ---- */

struct tt_work {
    struct fake_work fake;
};

bool tt_work_idle(const struct tt_work *work)
{
    (void)work;
    return true;
}

void tt_work_set_events(struct tt_work *work, const struct tt_work_events *events)
{
    work->fake.spec.events = *events;
}

void tt_work_set_event(struct tt_work *work, int frame, void *event)
{
    if (frame < FAKE_FRAMES) work->fake.frames[frame].event = event;
}

bool tt_work_rebind(struct tt_work *work, const void *in, void *out)
{
    for (int k = 0; k < work->fake.spec.nframes && k < FAKE_FRAMES; k++) {
        work->fake.frames[k].in = in;
        work->fake.frames[k].out = out;
    }
    return true;
}

void tt_work_rebind_each(struct tt_work *work, const struct tt_buffers *buffers)
{
    for (int k = 0; k < work->fake.spec.nframes && k < FAKE_FRAMES; k++) {
        work->fake.frames[k].in = buffers[k].in;
        work->fake.frames[k].out = buffers[k].out;
    }
}

ncclResult_t tt_work_create(const struct tt_work_spec *spec, struct tt_work **work_out)
{
    struct tt_work *work = calloc(1, sizeof(*work));
    fake.created++;
    work->fake.spec = *spec;
    for (int k = 0; k < spec->nframes && k < FAKE_FRAMES; k++) {
        work->fake.frames[k] = spec->frames[k];
    }
    *work_out = work;
    return ncclSuccess;
}

bool tt_work_is_flat(const struct tt_work *work)
{
    return work->fake.spec.nframes == 1 || !fake.not_flat;
}

void tt_work_destroy(struct tt_work *work)
{
    free(work);
}

static void take(struct tt_work *work, struct CUstream_st *stream, bool allow_inline)
{
    if (fake.on_submit) fake.on_submit();
    work->fake.stream = stream;
    work->fake.allow_inline = allow_inline;
    if (fake.nworks < FAKE_WORKS) fake.works[fake.nworks++] = work->fake;
    if (!work->fake.spec.kept) free(work);
}

enum tt_claim tt_exec_launch(struct tt_work *work, struct CUstream_st *stream, ncclResult_t *rc_out)
{
    struct CUstream_st *claimed;
    enum tt_claim claim = tuttiHostClaim(stream, &claimed);
    if (claim <= TT_CLAIM_BUSY) take(work, stream, claim == TT_CLAIM_TAKEN);
    *rc_out = ncclSuccess;
    return claim;
}

ncclResult_t tt_exec_submit(struct tt_work *work, struct CUstream_st *stream)
{
    take(work, stream, false);
    return ncclSuccess;
}

ncclResult_t tt_exec_drain(const struct tt_member *member, struct tt_issue_queue *queue)
{
    (void)member, (void)queue;
    return ncclSuccess;
}

/* ---- transport ---- */

ncclResult_t tt_transport_edge(struct tt_transport *transport, const struct tt_edge_key *key,
                               struct tt_edge **edge_out)
{
    static char edges[4096];
    (void)transport;
    size_t number = (size_t)key->peer * 16 + (size_t)key->conn * 4 + (size_t)key->channel % 2 * 2 +
                    key->sending;
    *edge_out = (struct tt_edge *)(void *)&edges[number % sizeof(edges)];
    return ncclSuccess;
}

bool tt_transport_over_net(const struct tt_transport *transport, int peer)
{
    (void)transport, (void)peer;
    return false;
}

bool tt_transport_expects(const struct tt_transport *transport)
{
    (void)transport;
    return fake.expects;
}

/* ---- device ---- */

int tuttiHostDeviceCount(void)
{
    return 8;
}

int tuttiHostMalloc(int device, size_t bytes, void **ptr)
{
    (void)device;
    *ptr = bytes < (1ull << 40) ? malloc(bytes) : NULL;
    return *ptr ? 0 : 2;
}

int tuttiHostFree(void *ptr)
{
    free(ptr);
    return 0;
}

int tuttiHostFreeUsed(void *ptr)
{
    return tuttiHostFree(ptr);
}

int tuttiHostGetDevice(void)
{
    return fake.device;
}

int tuttiHostSetDevice(int device)
{
    (void)device; /* jobs set it from several threads */
    return 0;
}

void tuttiHostMemberOver(const void *member)
{
    (void)member;
}

bool tuttiHostHelp(void)
{
    return false;
}

int tuttiHostStreamInfo(struct CUstream_st *stream, struct tt_stream_info *info)
{
    *info = (struct tt_stream_info){0};
    for (int k = 0; k < 8; k++) {
        if (stream != fake_stream(k)) continue;
        info->capture_id = fake.capture[k];
        info->capturing = fake.capture[k] != 0;
    }
    return 0;
}

enum tt_claim tuttiHostClaim(struct CUstream_st *handle, struct CUstream_st **stream_out)
{
    struct tt_stream_info info;
    tuttiHostStreamInfo(handle, &info);
    if (info.capturing) return TT_CLAIM_CAPTURING;
    *stream_out = handle;
    return TT_CLAIM_TAKEN;
}

void tuttiHostClaimEnd(struct CUstream_st *stream)
{
    (void)stream;
}

int tuttiHostEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
    (void)event, (void)stream;
    return 0;
}

int tuttiHostEventPlain(const struct CUevent_st *event)
{
    (void)event;
    return 0;
}

int tuttiHostStreamJoin(struct CUstream_st *after, struct CUstream_st *before)
{
    if (fake.njoins < FAKE_JOINS) {
        fake.joins[fake.njoins].after = after;
        fake.joins[fake.njoins++].before = before;
    }
    return 0;
}

int tuttiHostPointer(const void *ptr, struct tt_pointer *pointer_out)
{
    *pointer_out = (struct tt_pointer){.kind = TT_MEMORY_FOREIGN};
    if (!fake.short_buffer || ptr != fake.short_buffer) return 0;
    *pointer_out =
        (struct tt_pointer){.kind = TT_MEMORY_DEVICE, .base = fake.short_buffer, .bytes = 1};
    return 0;
}

int tuttiHostLocate(const void *ptr, struct tt_pointer *pointer_out)
{
    return tuttiHostPointer(ptr, pointer_out);
}

const _Atomic uint64_t *tuttiHostFrees(void)
{
    static const _Atomic uint64_t none = 0;
    return &none;
}

/* ---- the race checker, which is off ---- */

bool tuttiHostChecks(void)
{
    return false;
}

void tuttiHostCheckParts(struct CUstream_st *stream, struct tt_item *item)
{
    (void)stream, (void)item;
}

void tuttiHostTouchNever(const void *base)
{
    (void)base;
}

void tuttiHostTouchPart(int part)
{
    (void)part;
}

void tuttiHostTouchCall(const char *name, int number)
{
    (void)name;
    (void)number;
}

void tuttiHostTouchName(const char *name)
{
    (void)name;
}

void tt_touch_buffers(const struct tt_touched *touched)
{
    (void)touched;
}

uint64_t tt_watch_abort_nsec(void)
{
    return 0;
}

/* ---- other ranks' calls, which are not compared here; weak: tests of api have their own ---- */

__attribute__((weak)) ncclResult_t tt_comm_check_state(struct tt_comm *comm, const char *func)
{
    (void)comm, (void)func;
    return ncclSuccess;
}

ncclResult_t tt_transport_mismatch(struct tt_transport *transport, const char *fmt, ...)
{
    (void)transport, (void)fmt;
    return ncclInvalidUsage;
}

const _Atomic uint64_t *tt_transport_begun(const struct tt_transport *transport)
{
    (void)transport;
    return tuttiHostFrees();
}

ncclResult_t tt_bootstrap_send(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               const void *message, size_t bytes)
{
    (void)bootstrap, (void)peer, (void)tag, (void)message, (void)bytes;
    return ncclSuccess;
}

ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               void *message, size_t max_bytes, size_t *bytes_out)
{
    (void)bootstrap, (void)peer, (void)tag, (void)message, (void)max_bytes, (void)bytes_out;
    return ncclInProgress;
}

__attribute__((weak)) void tt_bootstrap_fail_all(struct tt_bootstrap *bootstrap, ncclResult_t rc,
                                                 const char *sentence)
{
    (void)bootstrap, (void)rc, (void)sentence;
}

bool tt_bootstrap_rank_ended(struct tt_bootstrap *bootstrap, int rank)
{
    (void)bootstrap, (void)rank;
    return false;
}

const char *tt_bootstrap_peer(const struct tt_bootstrap *bootstrap, int rank, int *pid_out)
{
    (void)bootstrap, (void)rank;
    *pid_out = 0;
    return "here";
}

void tuttiHostHold(const struct tt_hold *hold)
{
    (void)hold;
}

void tuttiHostLet(const void *owner)
{
    (void)owner;
}

void tuttiHostFail(const char *why)
{
    (void)why;
}

bool tuttiHostForbidsCalls(void)
{
    return false;
}
