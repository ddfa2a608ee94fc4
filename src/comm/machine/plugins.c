/* Networks, tuner and profiler of one communicator: opened after the bootstrap, closed before the
 * end. Networks first: a net plugin's init may set NCCL_TUNER_PLUGIN, and its library may hold the
 * others. The profiler before the proxy, which emits events. */
#include "base/log.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "plugin/plugin.h"
#include "plugin/profiler/profiler.h"
#include "plugin/tuner/tuner.h"
#include "proxy/proxy.h"
#include "tune/tune.h"

#include <string.h>
#include <unistd.h>

ncclResult_t tt_plugins_net(struct tt_comm *comm, bool needed)
{
    struct tt_net_request request = {.member = &comm->member, .traffic_class = -1};
    const char *name = tt_param_str("NCCL_NET");
    request.name = name && *name ? name : comm->config.netName;
    if (comm->config.trafficClass != NCCL_CONFIG_UNDEF_INT)
        request.traffic_class = comm->config.trafficClass;
    tt_bootstrap_key(comm->bootstrap, "net", request.key);
    ncclResult_t rc = tt_net_open(&request, &comm->net);
    memset(request.key, 0, sizeof(request.key));
    if (!rc && needed) rc = tt_net_check_sizes(comm->net, comm->member.rank);
    if (!rc || needed || request.name) return rc;
    tt_info(TT_LOG_INIT | TT_LOG_NET, "rank %d: going on without a network, no rank needs one",
            comm->member.rank);
    return ncclSuccess;
}

/* The tuner may edit the figures of the model, which then predicts with what it left. */
static ncclResult_t open_tuner(struct tt_comm *comm)
{
    ncclTunerConstants_v6_t constants;
    tt_tune_constants(&comm->tune, &constants);
    const struct tt_tuner_config config = {.comm_id = comm->member.comm_id,
                                           .nranks = comm->member.nranks,
                                           .nnodes = comm->tune.nnodes,
                                           .least_local = comm->tune.least_local,
                                           .most_local = comm->tune.ppn,
                                           .constants = &constants,
                                           .net_library = tt_net_library(comm->net)};
    tt_tuner_open(&config, &comm->tuner);
    comm->tune.constants = tt_tuner_constants(comm->tuner);
    return comm->tune.constants ? tt_machine_model(comm, comm->tune.constants) : ncclSuccess;
}

ncclResult_t tt_plugins_open(struct tt_comm *comm)
{
    ncclResult_t rc = open_tuner(comm);
    const struct tt_profiler_config watched = {.member = &comm->member,
                                               .nnodes = comm->tune.nnodes,
                                               .net_library = tt_net_library(comm->net)};
    tt_profiler_open(&watched, &comm->profiler);
    return rc;
}

ncclResult_t tt_plugins_start(struct tt_comm *comm, bool needs_net)
{
    if (!needs_net) return ncclSuccess;
    return tt_proxy_create(&comm->member, comm->transport, comm->profiler, &comm->proxy);
}

void tt_plugins_stop(struct tt_comm *comm)
{
    tt_proxy_destroy(comm->proxy);
    comm->proxy = NULL;
}

void tt_plugins_close(struct tt_comm *comm)
{
    if (comm->process == getpid()) { /* a child of fork has not made what would end here */
        tt_profiler_close(comm->profiler);
        tt_tuner_close(comm->tuner);
        tt_collnets_close(comm);
        tt_net_close(comm->net);
    }
    comm->profiler = NULL;
    comm->tuner = NULL;
    comm->net = NULL;
    comm->collnet = NULL;
}
