/* Which network a communicator uses: external candidates in the order of NCCL_NET_PLUGIN, then what
 * is built in. Candidates are the process's; a context is the communicator's. One lock orders all
 * of it, so a plugin's init and finalize never run twice at the same time. */
#include "plugin/net/net.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "base/secret/encryption.h"
#include "net/net.h"
#include "plugin/net/net_abi.h"
#include "plugin/plugin.h"
#include "plugin/process.h"
#include "plugin/profiler/profiler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_BUILTIN = 2,
    MAX_EXTERNAL = NCCL_NET_MAX_PLUGINS - MAX_BUILTIN,
};
static const uint32_t net_sub = TT_LOG_INIT | TT_LOG_NET;

static const struct tt_plugin_abi abis[] = {
    {12, "ncclNetPlugin_v12"}, {11, "ncclNetPlugin_v11"}, {10, "ncclNetPlugin_v10"},
    {9, "ncclNetPlugin_v9"},   {8, "ncclNetPlugin_v8"},   {7, "ncclNetPlugin_v7"},
    {6, "ncclNetPlugin_v6"},   {5, "ncclNetPlugin_v5"},   {4, "ncclNetPlugin_v4"},
    {3, "ncclNetPlugin_v3"},   {2, "ncclNetPlugin_v2"},
};
/* Known by name only, to say what a library has that cannot be used. */
static const struct tt_plugin_abi strange_abis[] = {
    {1, "ncclNetPlugin_v1"},   {13, "ncclNetPlugin_v13"}, {14, "ncclNetPlugin_v14"},
    {15, "ncclNetPlugin_v15"}, {16, "ncclNetPlugin_v16"},
};

/* ---- the list ---- */

static void list_external(const char *name, size_t len)
{
    if (tt_plugins.nets.count >= MAX_EXTERNAL || len >= TT_NET_NAME_BYTES) {
        tt_warn_setting("NCCL_NET_PLUGIN: %.*s is ignored: %s", (int)tt_min_size(len, 60), name,
                        len >= TT_NET_NAME_BYTES ? "the name is too long"
                                                 : "there are too many candidates");
        return;
    }
    struct tt_net_candidate *candidate = &tt_plugins.nets.list[tt_plugins.nets.count++];
    snprintf(candidate->name, sizeof(candidate->name), "%.*s", (int)len, name);
}

static void list_candidates(void)
{
    const char *names = tt_param_str("NCCL_NET_PLUGIN");
    tt_plugins.nets.listed = true;
    if (!names) {
        list_external("", 0);
    } else if (strcasecmp(names, "none") != 0) {
        for (const char *at = names; *at; at += strcspn(at, ",")) {
            at += strspn(at, ",");
            size_t len = strcspn(at, ",");
            if (len) list_external(at, len);
        }
    }
    struct tt_net_plugin *builtin = &tt_plugins.nets.list[tt_plugins.nets.count].plugin;
    if (tt_net_adopt_verbs(builtin))
        builtin = &tt_plugins.nets.list[++tt_plugins.nets.count].plugin;
    tt_net_adopt_socket(builtin);
    tt_plugins.nets.count++;
}

/* ---- one candidate ---- */

/* The name that the network has by now: some change it in each init. Under the lock. */
static const char *name_of(const struct tt_net_candidate *candidate)
{
    const char *name = *(const char *const *)candidate->plugin.object;
    return name ? name : "without a name";
}

/* A library without a version that is hosted; it was asked for by name, or lay there. */
static void report_unsupported(const struct tt_net_candidate *candidate)
{
    const struct tt_library *library = &candidate->library;
    struct tt_plugin_found strange;
    if (!tt_library_find(library, strange_abis, TT_LEN(strange_abis), &strange)) {
        tt_plugin_unsupported("network", library, abis, TT_LEN(abis), candidate->name[0] != 0);
        return;
    }
    tt_warn_setting(
        "External network plugin %s is unsupported: it has version %d of the interface, "
        "this library takes versions %d to %d",
        library->path, strange.version, TT_NET_OLDEST, TT_NET_NEWEST);
}

static bool load(struct tt_net_candidate *candidate)
{
    struct tt_library *library = &candidate->library;
    struct tt_plugin_found found;
    if (candidate->plugin.object) return true;
    if (!tt_library_open("NET", net_sub, "libnccl-net", candidate->name[0] ? candidate->name : NULL,
                         library)) {
        if (candidate->name[0]) tt_plugin_missing("NCCL_NET_PLUGIN", candidate->name, library);
        return false;
    }
    if (!tt_library_find(library, abis, TT_LEN(abis), &found)) {
        report_unsupported(candidate);
        tt_library_close(library);
        return false;
    }
    ncclResult_t rc = tt_net_adopt(&candidate->plugin, found.version, found.object);
    if (!rc && tt_param_bool("TUTTI_PLUGIN_CHECK")) rc = tt_net_check_begin(&candidate->plugin);
    if (rc) {
        tt_net_abandon(&candidate->plugin);
        tt_library_close(library);
        return false;
    }
    tt_info(net_sub, "NET/Plugin: Loaded net plugin %s (v%d)", name_of(candidate), found.version);
    tt_collnet_find(library, &candidate->collnet);
    tt_info(net_sub, "Successfully loaded external network plugin %s", library->path);
    if (tt_param_is_set("NCCL_NET_PLUGIN_REF_COUNT"))
        candidate->users = (int)tt_param_int("NCCL_NET_PLUGIN_REF_COUNT");
    return true;
}

static void unload(struct tt_net_candidate *candidate)
{
    struct tt_net_plugin *plugin = &candidate->plugin;
    if (plugin->builtin || candidate->users > 0) return;
    if (!tt_collnet_abandon(&candidate->collnet)) return;
    if (plugin->object && !tt_net_abandon(plugin)) return;
    tt_library_close(&candidate->library);
}

static bool has_devices(struct tt_net_plugin *plugin, int *ndevs, struct tt_plugin_refusal *refusal)
{
    const size_t bytes = sizeof(refusal->text);
    ncclNetProperties_v12_t props;
    memset(&props, 0, sizeof(props));
    *ndevs = 0;
    ncclResult_t rc = plugin->ops.devices(plugin, ndevs);
    if (rc || *ndevs < 1) {
        snprintf(refusal->text, bytes, "devices returned %d (%s) and %d devices", (int)rc,
                 tt_result_name(rc), *ndevs);
        return false;
    }
    rc = plugin->ops.properties(plugin, 0, &props);
    if (rc) {
        snprintf(refusal->text, bytes, "getProperties of device 0 returned %d (%s)", (int)rc,
                 tt_result_name(rc));
        return false;
    }
    *ndevs = tt_net_virtual_below(plugin, *ndevs); /* the others are for callers that ask */
    if (props.netDeviceType == NCCL_NET_DEVICE_HOST) return true;
    /* no code for others runs on hosts */
    snprintf(refusal->text, bytes, "device 0 has netDeviceType %d, which is not the host's (%d)",
             (int)props.netDeviceType, (int)NCCL_NET_DEVICE_HOST);
    return false;
}

/* After init, which may have filled the table. */
static bool is_complete(const struct tt_net_candidate *candidate, struct tt_plugin_refusal *refusal)
{
    const char *missing = tt_net_missing(&candidate->plugin);
    if (missing) {
        snprintf(refusal->text, sizeof(refusal->text), "%s (v%d) has no %s", name_of(candidate),
                 candidate->plugin.ops.version, missing);
        tt_info(net_sub, "NET/Plugin: %s", refusal->text);
    }
    return !missing;
}

static bool start(struct tt_net_candidate *candidate, const struct tt_net_request *request,
                  struct tt_net *net)
{
    struct tt_net_plugin *plugin = &candidate->plugin;
    const ncclNet_v12_t *table = plugin->object; /* all versions begin with name and init */
    const struct tt_net_start start = {request->member->comm_id, request->traffic_class,
                                       tt_plugin_log, tt_prof_net_event};
    struct tt_plugin_refusal refusal;
    ncclResult_t rc = table->init ? plugin->ops.init(plugin, &start, &net->ctx) : ncclInvalidUsage;
    bool begun = rc == ncclSuccess;
    snprintf(refusal.text, sizeof(refusal.text), "%s %d (%s)",
             table->init ? "init returned" : "there is no init:", (int)rc, tt_result_name(rc));
    if (begun && !plugin->begun) plugin->ops.adapt(plugin);
    plugin->begun |= begun;
    if (begun && is_complete(candidate, &refusal) && has_devices(plugin, &net->ndevs, &refusal)) {
        net->nopen = net->ndevs;
        snprintf(net->name, sizeof(net->name), "%s", name_of(candidate));
        tt_info(net_sub, "Initialized NET plugin %s", net->name);
        return true;
    }
    if (begun) plugin->ops.finalize(plugin, net->ctx);
    net->ctx = NULL;
    tt_info(net_sub, "Failed to initialize NET plugin %s", name_of(candidate));
    if (plugin->builtin) return false;
    candidate->refusal = refusal;
    if (request->refusal) *request->refusal = refusal;
    return false;
}

static bool try_candidate(struct tt_net_candidate *candidate, const struct tt_net_request *request,
                          struct tt_net *net)
{
    if (candidate->disabled) return false;
    if (!load(candidate)) {
        candidate->disabled = true;
        return false;
    }
    bool named = !request->name || !strcasecmp(request->name, name_of(candidate));
    if (named && start(candidate, request, net)) {
        candidate->users++;
        return true;
    }
    candidate->disabled |= named && !candidate->plugin.builtin;
    unload(candidate);
    return false;
}

/* Once an external network is taken, the other external ones are out for the process. */
static void disable_others(const struct tt_net_candidate *taken)
{
    if (taken->plugin.builtin) return;
    for (int i = 0; i < tt_plugins.nets.count; i++) {
        struct tt_net_candidate *other = &tt_plugins.nets.list[i];
        if (!other->plugin.builtin && other != taken) other->disabled = true;
    }
}

/* Of a list of plugins the first that works is wanted. When none does, each says why, once. */
static void report_refused(const struct tt_net_candidate *taken)
{
    if (taken && !taken->plugin.builtin) return;
    for (int i = 0; i < tt_plugins.nets.count; i++) {
        struct tt_net_candidate *candidate = &tt_plugins.nets.list[i];
        if (!candidate->name[0] || !candidate->refusal.text[0]) continue;
        tt_warn_setting("NCCL_NET_PLUGIN: the plugin %s is not used: %s", candidate->name,
                        candidate->refusal.text);
        candidate->refusal.text[0] = 0;
    }
}

static struct tt_net_candidate *choose(const struct tt_net_request *request, struct tt_net *net)
{
    if (!tt_plugins.nets.listed) list_candidates();
    for (int i = 0; i < tt_plugins.nets.count; i++) {
        if (!try_candidate(&tt_plugins.nets.list[i], request, net)) continue;
        disable_others(&tt_plugins.nets.list[i]);
        return &tt_plugins.nets.list[i];
    }
    return NULL;
}

/* ---- for communicators ---- */

bool tt_net_broke_contract(void)
{
    return tt_plugins.nets.broke_contract;
}

static ncclResult_t none_fits(const struct tt_net_request *request)
{
    if (!request->name) {
        return tt_fail(ncclSystemError,
                       "rank %d: no network works, neither a plugin nor the "
                       "built-in IB and Socket",
                       request->member->rank);
    }
    return tt_fail(ncclInvalidUsage,
                   "rank %d: no network is called %s (NCCL_NET, or netName of the config): there "
                   "are Socket, IB where an adapter works, and those of plugins that load",
                   request->member->rank, request->name);
}

ncclResult_t tt_net_open(const struct tt_net_request *request, struct tt_net **net_out)
{
    struct tt_net *net = tt_calloc(1, sizeof(*net));
    if (!net) return tt_fail(ncclSystemError, "net: out of memory");
    pthread_mutex_lock(&tt_plugins.nets.lock);
    struct tt_net_candidate *taken = choose(request, net);
    report_refused(taken);
    pthread_mutex_unlock(&tt_plugins.nets.lock);
    if (!taken) {
        free(net);
        return none_fits(request);
    }
    if (taken->plugin.object != &tt_net_socket && tt_encryption_wanted()) {
        tt_warn("encryption does not cover the network %s: its traffic is as %s makes it",
                net->name, taken->plugin.builtin ? "the adapter" : "the plugin");
    }
    if (taken->plugin.builtin) {
        struct tt_net_trust trust = {.rank = request->member->rank};
        memcpy(trust.key, request->key, sizeof(trust.key));
        tt_net_trust_builtin(&taken->plugin, net->ctx, &trust);
        explicit_bzero(&trust, sizeof(trust));
    }
    net->source = taken;
    net->plugin = &taken->plugin;
    tt_info(net_sub, "Assigned NET plugin %s to comm", net->name);
    tt_info(TT_LOG_INIT, "Using network %s", net->name);
    *net_out = net;
    return ncclSuccess;
}

static ncclResult_t bad_size(const struct tt_net *net, int rank, int dev, const char *name,
                             const char *what, size_t bytes)
{
    return tt_fail(ncclInternalError,
                   "rank %d: NET/%s: device %d (%s) has %s %zu, which is not 1 byte to 1 TiB", rank,
                   net->name, dev, name ? name : "without a name", what, bytes);
}

ncclResult_t tt_net_check_sizes(struct tt_net *net, int rank)
{
    ncclNetProperties_v12_t props;
    ncclResult_t rc = ncclSuccess;
    for (int dev = 0; !rc && dev < net->ndevs; dev++) {
        memset(&props, 0, sizeof(props));
        if (net->plugin->ops.properties(net->plugin, dev, &props))
            continue; /* reported where it is used */
        if (!tt_net_size_fits(props.maxP2pBytes)) {
            rc = bad_size(net, rank, dev, props.name, "maxP2pBytes", props.maxP2pBytes);
        } else if (!tt_net_size_fits(props.maxCollBytes)) {
            rc = bad_size(net, rank, dev, props.name, "maxCollBytes", props.maxCollBytes);
        }
    }
    return rc;
}

ncclResult_t tt_net_close(struct tt_net *net)
{
    if (!net) return ncclSuccess;
    struct tt_net_candidate *candidate = net->source;
    pthread_mutex_lock(&tt_plugins.nets.lock);
    const ncclResult_t rc = net->plugin->ops.finalize(net->plugin, net->ctx);
    candidate->users--;
    unload(candidate);
    pthread_mutex_unlock(&tt_plugins.nets.lock);
    free(net);
    return rc;
}

void tt_net_label(const struct tt_net *net, struct tt_net_label *label_out)
{
    memset(label_out, 0, sizeof(*label_out)); /* it travels whole */
    if (!net) return;
    snprintf(label_out->name, sizeof(label_out->name), "%s", net->name);
    label_out->version = net->plugin->ops.version;
    label_out->ndevs = net->ndevs;
    label_out->gathers = net->plugin->ops.gathers;
}

void tt_net_spread(struct tt_net *net, int ndevs)
{
    if (ndevs >= 1 && ndevs < net->ndevs) net->ndevs = ndevs;
}

const char *tt_net_library(const struct tt_net *net)
{
    const struct tt_net_candidate *candidate = net ? net->source : NULL;
    return candidate && !candidate->plugin.builtin ? candidate->library.path : NULL;
}
