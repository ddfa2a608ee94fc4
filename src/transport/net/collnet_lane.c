/* The lane to a network that reduces, mover's side: what was posted is given to the network, sums
 * that are there are reported to the executor. The thread that holds the lock of all network edges
 * moves it. An empty message is no sum: nothing is asked of the network. */
#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "bootstrap/bootstrap.h"
#include "plugin/net/collnet.h"
#include "transport/net/collnet.h"
#include "transport/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static ncclResult_t broke(struct tt_collnet_lane *lane, ncclResult_t rc, const char *what)
{
    const struct tt_transport_config *config = lane->config;
    char sentence[256];
    if (!tt_member_aborted(config->member)) {
        snprintf(sentence, sizeof(sentence),
                 "rank %d: %s over COLLNET/%.64s failed: result %d (%s)", config->member->rank,
                 what, config->group->collnet->name, (int)rc, tt_result_name(rc));
        tt_fail(rc, "%s", sentence);
        tt_bootstrap_fail(config->bootstrap, rc, sentence);
        atomic_store_explicit(&config->transport->net_edges->error, (int)rc, memory_order_relaxed);
    }
    atomic_store_explicit(&lane->error, (int)rc, memory_order_release);
    return rc;
}

static ncclResult_t register_rings(struct tt_collnet_lane *lane)
{
    struct tt_collnet_plugin *net = lane->config->group->collnet->plugin;
    void *comm = lane->config->group->comm;
    size_t bytes = TT_SLOTS * lane->payload_bytes;
    if (lane->sums_registered) return ncclSuccess;
    ncclResult_t rc = net->ops.reg_mr(net, comm, lane->given, bytes, &lane->given_mhandle);
    if (rc) return rc;
    lane->given_registered = true;
    rc = net->ops.reg_mr(net, comm, lane->sums, bytes, &lane->sums_mhandle);
    if (rc) return rc;
    lane->sums_registered = true;
    return ncclSuccess;
}

static ncclResult_t ask(struct tt_collnet_lane *lane, uint64_t number, struct lane_slot *slot)
{
    const struct tt_transport_group *group = lane->config->group;
    struct tt_collnet_plugin *net = group->collnet->plugin;
    const struct tt_collnet_sum sum = {.send = tt_lane_payload(lane, lane->given, number),
                                       .recv = tt_lane_payload(lane, lane->sums, number),
                                       .sent_blocks = slot->type.gives,
                                       .received_blocks = slot->type.takes,
                                       .block_bytes = slot->bytes,
                                       .count = slot->bytes / slot->type.elem_bytes,
                                       .type = slot->type.type,
                                       .op = slot->type.op,
                                       .send_mhandle = lane->given_mhandle,
                                       .recv_mhandle = lane->sums_mhandle};
    return net->ops.reduce(net, group->comm, &sum, &slot->request);
}

/* Give the network what was posted, as far as it takes it. */
static ncclResult_t issue(struct tt_collnet_lane *lane, bool *moved)
{
    /* pairs with the release store in lane_post() */
    uint64_t posted = atomic_load_explicit(&lane->posted, memory_order_acquire);
    ncclResult_t rc = lane->issued < posted ? register_rings(lane) : ncclSuccess;
    for (; !rc && lane->issued < posted; lane->issued++) {
        struct lane_slot *slot = tt_lane_slot(lane, lane->issued);
        slot->request = NULL;
        if (slot->bytes) rc = ask(lane, lane->issued, slot);
        if (rc || (slot->bytes && !slot->request)) return rc;
        *moved = true;
    }
    return rc;
}

static ncclResult_t collect(struct tt_collnet_lane *lane, bool *moved)
{
    struct tt_collnet_plugin *net = lane->config->group->collnet->plugin;
    uint64_t summed = atomic_load_explicit(&lane->summed, memory_order_relaxed);
    for (; summed < lane->issued; summed++) {
        struct lane_slot *slot = tt_lane_slot(lane, summed);
        int done = 0;
        ncclResult_t rc = slot->request ? net->ops.test(net, slot->request, &done) : ncclSuccess;
        if (rc || (slot->request && !done)) return rc;
        slot->request = NULL;
        /* pairs with the acquire load in is_summed() */
        atomic_store_explicit(&lane->summed, summed + 1, memory_order_release);
        *moved = true;
    }
    return ncclSuccess;
}

bool tt_collnet_step(struct tt_collnet_lane *lane)
{
    bool moved = false;
    if (atomic_load_explicit(&lane->error, memory_order_relaxed)) return false;
    ncclResult_t rc = issue(lane, &moved);
    if (!rc) rc = collect(lane, &moved);
    if (rc) broke(lane, rc, "a sum");
    return moved || rc;
}

bool tt_collnet_pending(const struct tt_collnet_lane *lane)
{
    return !atomic_load_explicit(&lane->error, memory_order_relaxed) &&
           atomic_load_explicit(&lane->summed, memory_order_relaxed) !=
               atomic_load_explicit(&lane->posted, memory_order_acquire);
}

/* ---- life ---- */

ncclResult_t tt_collnet_lane_create(const struct tt_transport_config *config,
                                    struct tt_collnet_lane **lane_out)
{
    struct tt_collnet_lane *lane = tt_calloc(1, sizeof(*lane));
    if (!lane) return tt_fail(ncclSystemError, "collnet: out of memory");
    lane->config = config;
    lane->payload_bytes = tt_round_up(config->slice_bytes, TT_LINE_BYTES);
    lane->map_bytes = 2 * TT_SLOTS * lane->payload_bytes;
    char *map =
        mmap(NULL, lane->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        ncclResult_t rc =
            tt_fail(ncclSystemError, "collnet: slots of %zu bytes: %m", lane->map_bytes);
        free(lane);
        return rc;
    }
    lane->given = map;
    lane->sums = map + TT_SLOTS * lane->payload_bytes;
    *lane_out = lane;
    return ncclSuccess;
}

void tt_collnet_lane_destroy(struct tt_collnet_lane *lane, bool inherited)
{
    if (!lane) return;
    struct tt_collnet_plugin *net = lane->config->group->collnet->plugin;
    void *comm = lane->config->group->comm;
    if (lane->given_registered && !inherited) net->ops.dereg_mr(net, comm, lane->given_mhandle);
    if (lane->sums_registered && !inherited) net->ops.dereg_mr(net, comm, lane->sums_mhandle);
    munmap(lane->given, lane->map_bytes);
    free(lane);
}
