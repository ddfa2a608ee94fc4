/* Can a circle over several communicators still end? An operation such as AllReduce ends at no rank
 * before all have begun it. So where a rank stands in one of communicator A, and a process has its
 * own call of it on a stream behind one of communicator B that has begun, A waits for B. Where this
 * leads from A back to A, nothing ends. A verdict has been right at one moment when two inquiries,
 * one after the other, found the same: the counters only grow. */
#include "watch/inquiry/circle.h"

#include "transport/transport.h"

#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

/* It ends at no rank before all have begun it. */
static bool needs_all(const struct tt_call *call)
{
    const bool is_one = call->func == TT_FUNC_ALLREDUCE || call->func == TT_FUNC_ALLGATHER ||
                        call->func == TT_FUNC_REDUCESCATTER || call->func == TT_FUNC_ALLTOALL;
    return call->known && call->count && is_one;
}

const struct tt_status *tt_circle_in_comm(const struct tt_inquiry *inquiry,
                                          const struct tt_status *rank, uint64_t comm_id)
{
    for (size_t i = 0; i < inquiry->nfound; i++) {
        const struct tt_status *other = &inquiry->found[i];
        if (other->comm_id == comm_id && other->process.key == rank->process.key &&
            other->device == rank->device)
            return other;
    }
    return NULL;
}

/* What `standing` is in cannot end before what `next`, in another communicator, is in. */
static bool must_await(const struct tt_inquiry *inquiry, const struct tt_standing *standing,
                       const struct tt_standing *next)
{
    const struct tt_status *late =
        tt_circle_in_comm(inquiry, next->status, standing->status->comm_id);
    if (!late || !standing->status->nwaits || !needs_all(&standing->wait.call)) return false;
    const bool called = late->issued != late->served && !late->nwaits;
    const bool behind = late->head_stream && late->head_stream == next->status->head_stream;
    return called && behind && next->status->nwaits && late->begun < standing->wait.number;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * FNV_PRIME;
}

/* Of a process, all that changes when it goes on in one of the circle's communicators. */
static uint64_t mix_process(const struct tt_inquiry *inquiry, const struct tt_status *rank,
                            const struct tt_verdict *verdict, uint64_t hash)
{
    for (int c = 0; c < verdict->ncomms; c++) {
        const struct tt_status *status = tt_circle_in_comm(inquiry, rank, verdict->comms[c]);
        if (!status) continue;
        hash = mix(mix(hash, verdict->comms[c]), (uint64_t)status->rank);
        hash = mix(mix(hash, status->served), status->begun);
        hash = mix(mix(hash, status->head_stream), status->nwaits > 0);
    }
    return hash;
}

static void list_comms(const struct tt_standing *ranks, int count, struct tt_verdict *verdict)
{
    for (int i = 0; i < count; i++) {
        int c = 0;
        while (c < verdict->ncomms && verdict->comms[c] != ranks[i].status->comm_id)
            c++;
        if (c < verdict->ncomms || c == TT_VERDICT_COMMS) continue;
        verdict->comms[verdict->ncomms++] = ranks[i].status->comm_id;
    }
}

void tt_circle_describe(const struct tt_inquiry *inquiry, const struct tt_standing *ranks,
                        int count, struct tt_verdict *verdict)
{
    int enters = 0; /* the rank with which the way came into the communicator it is in */
    uint64_t hash = FNV_OFFSET;
    while (ranks[enters].status->comm_id == ranks[(enters + count - 1) % count].status->comm_id)
        enters++;
    const int start = enters;
    list_comms(ranks, count, verdict);
    verdict->certain = true;
    for (int i = 1; i <= count; i++) {
        const int at = (start + i) % count;
        hash = mix_process(inquiry, ranks[at].status, verdict, hash);
        if (ranks[at].status->comm_id == ranks[enters].status->comm_id) continue;
        verdict->certain &= must_await(inquiry, &ranks[enters], &ranks[at]);
        enters = at;
    }
    verdict->circle = hash | 1;
}

void tt_circle_exchange(const struct tt_standing *from, const struct tt_status *standing,
                        struct tt_verdict *verdict)
{
    uint64_t hash = mix(FNV_OFFSET, from->status->comm_id);
    hash = mix(mix(hash, (uint64_t)from->status->rank), (uint64_t)standing->rank);
    hash = mix(mix(hash, from->status->served), from->status->begun);
    hash = mix(mix(hash, standing->served), standing->begun);
    verdict->circle = hash | 1;
    verdict->comms[verdict->ncomms++] = standing->comm_id; /* its ranks are to hear it there */
}
