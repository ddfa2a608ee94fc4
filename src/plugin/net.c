/* Which network a communicator uses: external candidates first, then what is built in. */
#include "net/net.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_CANDIDATES = 14 };

static const uint32_t net_sub = TT_LOG_INIT | TT_LOG_NET;

/* Plugins may report events through this at any time; nothing listens yet. */
static ncclResult_t ignore_event(void **handle, int type, void *parent, int64_t id, void *extra)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)extra;
    return ncclSuccess;
}

static bool usable(const ncclNet_v12_t *table)
{
    ncclNetProperties_v12_t props;
    int ndevs = 0;
    memset(&props, 0, sizeof(props));
    if (table->devices(&ndevs) || ndevs < 1 || table->getProperties(0, &props)) return false;
    return props.netDeviceType == NCCL_NET_DEVICE_HOST;
}

/* Initialise one candidate for this communicator; false: try the next. */
static bool try_table(const struct tt_net_request *request, const ncclNet_v12_t *table,
                      struct tt_net *net)
{
    ncclNetCommConfig_v12_t config = {.trafficClass = request->traffic_class};
    if (request->wish && strcasecmp(request->wish, table->name)) return false;
    if (table->init(&net->ctx, request->member->comm_id, &config, tt_plugin_log, ignore_event) ||
        !usable(table)) {
        tt_info(net_sub, "Failed to initialize NET plugin %s", table->name);
        if (table->finalize && net->ctx) table->finalize(net->ctx);
        net->ctx = NULL;
        return false;
    }
    net->table = table;
    table->devices(&net->ndevs);
    net->dev = request->member->device % net->ndevs;
    snprintf(net->name, sizeof(net->name), "%s", table->name);
    tt_info(net_sub, "Initialized NET plugin %s", net->name);
    return true;
}

static bool try_external(const struct tt_net_request *request, const char *name, struct tt_net *net)
{
    struct tt_library library;
    if (!tt_library_open("NET", net_sub, "libnccl-net", name, &library)) return false;
    const ncclNet_v12_t *table = dlsym(library.handle, "ncclNetPlugin_v12");
    if (!table) {
        tt_info(net_sub, "External network plugin %s is unsupported: it has no ncclNetPlugin_v12",
                library.path);
    } else {
        tt_info(net_sub, "NET/Plugin: Loaded net plugin %s (v12)", table->name);
        tt_info(net_sub, "Successfully loaded external network plugin %s", library.path);
    }
    if (table && try_table(request, table, net)) {
        net->library = library.handle;
        return true;
    }
    tt_library_close(&library);
    return false;
}

static bool try_all_external(const struct tt_net_request *request, struct tt_net *net)
{
    const char *list = tt_param_str("NCCL_NET_PLUGIN");
    char copy[4096];
    char *save = NULL;
    int tried = 0;
    if (!list) return try_external(request, NULL, net);
    if (!*list || !strcasecmp(list, "none")) return false;
    snprintf(copy, sizeof(copy), "%s", list);
    for (char *name = strtok_r(copy, ",", &save); name && tried < MAX_CANDIDATES;
         name = strtok_r(NULL, ",", &save)) {
        tried++;
        if (try_external(request, name, net)) return true;
    }
    return false;
}

ncclResult_t tt_net_open(const struct tt_net_request *request, struct tt_net **net_out)
{
    struct tt_net *net = tt_calloc(1, sizeof(*net));
    if (!net) return tt_fail(ncclSystemError, "net: out of memory");
    if (!try_all_external(request, net)) {
        if (!try_table(request, &tt_net_socket, net)) {
            free(net);
            return tt_fail(
                ncclInvalidUsage,
                "no network %s: neither a plugin nor the built-in Socket matches NCCL_NET "
                "or netName and has a device",
                request->wish ? request->wish : "is usable");
        }
        tt_net_socket_key(net->ctx, request->key);
    }
    tt_info(net_sub, "Assigned NET plugin %s to comm", net->name);
    tt_info(TT_LOG_INIT, "Using network %s", net->name);
    *net_out = net;
    return ncclSuccess;
}

void tt_net_close(struct tt_net *net)
{
    if (!net) return;
    if (net->table->finalize && net->ctx) net->table->finalize(net->ctx);
    if (net->library) dlclose(net->library);
    free(net);
}
