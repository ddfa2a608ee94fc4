/* A caller's ncclConfig_t of any release, made whole: fields that the caller's release did not know
 * or left undefined get their default, then the environment has its say.
 * The rules of every field stand in one table. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "comm/comm.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UNDEF NCCL_CONFIG_UNDEF_INT
#define MAX_CTAS TT_MAX_CHANNELS

struct field {
    const char *name;
    size_t offset;
    uint32_t since; /* version code from which callers set it; 0: the size decides alone */
    int fallback;
    int least, most; /* what a caller may ask for */
    bool cap;        /* above `most`: cut down, not refused */
    const char *env; /* variable that overrides; NULL: none */
};

#define AT(member) offsetof(ncclConfig_t, member)
static const struct field fields[] = {
    {"blocking", AT(blocking), NCCL_VERSION(2, 14, 0), 1, 0, 1, false, "NCCL_COMM_BLOCKING"},
    {"cgaClusterSize", AT(cgaClusterSize), NCCL_VERSION(2, 17, 0), 4, 0, INT_MAX, false,
     "NCCL_CGA_CLUSTER_SIZE"},
    {"minCTAs", AT(minCTAs), NCCL_VERSION(2, 17, 0), 1, 1, MAX_CTAS, true, "NCCL_MIN_CTAS"},
    {"maxCTAs", AT(maxCTAs), NCCL_VERSION(2, 17, 0), MAX_CTAS, 1, MAX_CTAS, true, "NCCL_MAX_CTAS"},
    {"splitShare", AT(splitShare), 0, 0, 0, 1, false, "NCCL_COMM_SPLIT_SHARE_RESOURCES"},
    {"trafficClass", AT(trafficClass), NCCL_VERSION(2, 25, 0), UNDEF, INT_MIN, INT_MAX, false,
     NULL},
    {"collnetEnable", AT(collnetEnable), NCCL_VERSION(2, 27, 0), 0, 0, 1, false,
     "NCCL_COLLNET_ENABLE"},
    {"CTAPolicy", AT(CTAPolicy), NCCL_VERSION(2, 27, 0), NCCL_CTA_POLICY_DEFAULT, 0, 3, false,
     "NCCL_CTA_POLICY"},
    {"shrinkShare", AT(shrinkShare), NCCL_VERSION(2, 27, 0), 0, 0, 1, false,
     "NCCL_COMM_SHRINK_SHARE_RESOURCES"},
    {"nvlsCTAs", AT(nvlsCTAs), NCCL_VERSION(2, 27, 0), UNDEF, 1, INT_MAX, false,
     "NCCL_NVLS_NCHANNELS"},
    {"nChannelsPerNetPeer", AT(nChannelsPerNetPeer), NCCL_VERSION(2, 28, 0), UNDEF, 1, MAX_CTAS,
     false, "NCCL_NCHANNELS_PER_NET_PEER"},
    {"nvlinkCentricSched", AT(nvlinkCentricSched), NCCL_VERSION(2, 28, 0), 0, 0, 1, false,
     "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE"},
    {"graphUsageMode", AT(graphUsageMode), NCCL_VERSION(2, 29, 0), 2, 0, 2, false,
     "NCCL_GRAPH_MIXING_SUPPORT"},
    {"numRmaCtx", AT(numRmaCtx), NCCL_VERSION(2, 29, 0), 1, 0, INT_MAX, false, "NCCL_NUM_RMA_CTX"},
    {"maxP2pPeers", AT(maxP2pPeers), NCCL_VERSION(2, 30, 0), UNDEF, 1, INT_MAX, false,
     "NCCL_P2P_MAX_PEERS"},
    {"graphStreamOrdering", AT(graphStreamOrdering), NCCL_VERSION(2, 30, 5), 1, 0, 1, false,
     "NCCL_GRAPH_STREAM_ORDERING"},
    {"launchOrderImplicit", AT(launchOrderImplicit), NCCL_VERSION(2, 31, 0), 0, 0, 1, false,
     "NCCL_LAUNCH_ORDER_IMPLICIT"},
    {"numRmaSig", AT(numRmaSig), NCCL_VERSION(2, 31, 0), 1, 0, INT_MAX, false, NULL},
    {"rmaEagerInit", AT(rmaEagerInit), NCCL_VERSION(2, 31, 0), 0, 0, 1, false,
     "NCCL_RMA_EAGER_INIT"},
    {"hostCftMode", AT(hostCftMode), NCCL_VERSION(2, 31, 0), UNDEF, ncclHostCftEnable,
     ncclHostCftFallback, false, NULL},
    {"nvlsHostMode", AT(nvlsHostMode), NCCL_VERSION(2, 32, 0), ncclNvlsHostModeEnable, 0, INT_MAX,
     false, NULL},
};
#undef AT

static int *field_at(ncclConfig_t *config, const struct field *field)
{
    return (int *)(void *)((char *)config + field->offset);
}

/* Only the bytes that the caller's struct has are read. */
static ncclResult_t copy_known(const ncclConfig_t *config, ncclConfig_t *out)
{
    size_t size = config->size;
    const size_t head = offsetof(ncclConfig_t, blocking);
    if (size < head || config->magic != NCCL_API_MAGIC) {
        return tt_fail(ncclInvalidArgument,
                       "ncclConfig_t: size %zu, magic %#x: not started from "
                       "NCCL_CONFIG_INITIALIZER (magic %#x)",
                       size, size < head ? 0 : config->magic, NCCL_API_MAGIC);
    }
    memcpy(out, config, tt_min_size(size, sizeof(*out)));
    for (size_t i = 0; i < TT_LEN(fields); i++) {
        const struct field *field = &fields[i];
        bool partly = size < field->offset + sizeof(int);
        if (partly || out->version < field->since) *field_at(out, field) = UNDEF;
    }
    bool old_name = out->version < (unsigned)NCCL_VERSION(2, 17, 0);
    if (old_name || size < offsetof(ncclConfig_t, netName) + sizeof(char *)) out->netName = NULL;
    if (size < offsetof(ncclConfig_t, commName) + sizeof(char *)) out->commName = NULL;
    return ncclSuccess;
}

static ncclResult_t check_field(const struct field *field, int *value)
{
    if (*value == UNDEF) return ncclSuccess;
    if (field->cap && *value > field->most) {
        tt_info(TT_LOG_ENV, "Comm config %s %d is above %d, which is used", field->name, *value,
                field->most);
        *value = field->most;
    }
    if (*value < field->least || *value > field->most) {
        return tt_fail(ncclInvalidArgument, "ncclConfig_t: %s is %d, accepted are %d..%d",
                       field->name, *value, field->least, field->most);
    }
    tt_info(TT_LOG_ENV, "Comm config %s set to %d", field->name, *value);
    return ncclSuccess;
}

static ncclResult_t check_caller(ncclConfig_t *config)
{
    ncclResult_t rc = ncclSuccess;
    const int said_least = config->minCTAs == UNDEF ? 1 : config->minCTAs; /* before they are cut */
    const int said_most = config->maxCTAs == UNDEF ? MAX_CTAS : config->maxCTAs;
    for (size_t i = 0; i < TT_LEN(fields) && !rc; i++) {
        rc = check_field(&fields[i], field_at(config, &fields[i]));
    }
    if (rc) return rc;
    if (config->netName) tt_info(TT_LOG_ENV, "Comm config netName set to %s", config->netName);
    if (config->commName) tt_info(TT_LOG_ENV, "Comm config commName set to %s", config->commName);
    int least = config->minCTAs == UNDEF ? 1 : config->minCTAs;
    int most = config->maxCTAs == UNDEF ? MAX_CTAS : config->maxCTAs;
    if (least > most) {
        return tt_fail(ncclInvalidArgument, "ncclConfig_t: minCTAs %d is above maxCTAs %d",
                       said_least, said_most);
    }
    return ncclSuccess;
}

/* "DEFAULT|ZERO", "1": policy bits, or -1. */
static int policy_of(const char *text)
{
    static const char *const words[] = {"DEFAULT", "EFFICIENCY", "ZERO"};
    int bits = 0;
    char *end;
    int64_t number = strtoll(text, &end, 0);
    if (*text && !*end) return number >= 0 && number <= 3 ? (int)number : -1;
    while (*text) {
        size_t len = strcspn(text, "|");
        int found = -1;
        for (int w = 0; w < 3; w++) {
            if (strlen(words[w]) == len && !strncasecmp(words[w], text, len)) found = w;
        }
        if (found < 0) return -1;
        bits |= found;
        text += len + (text[len] == '|');
    }
    return bits;
}

/* Value of the variable in the field's terms; UNDEF when it is not set or makes no sense. */
static int env_value(const struct field *field)
{
    int64_t value;
    if (!field->env || !tt_param_is_set(field->env)) return UNDEF;
    if (field->offset == offsetof(ncclConfig_t, CTAPolicy)) {
        value = policy_of(tt_param_str(field->env));
    } else {
        value = tt_param_int(field->env);
    }
    if (field->offset == offsetof(ncclConfig_t, graphUsageMode)) value = value ? 2 : 0;
    if (field->offset == offsetof(ncclConfig_t, cgaClusterSize) && value > 8) value = 8;
    if (value < field->least || value > field->most) {
        tt_info(TT_LOG_ENV, "%s %lld is ignored: accepted are %d..%d", field->env, (long long)value,
                field->least, field->most);
        return UNDEF;
    }
    return (int)value;
}

static void apply_environment(ncclConfig_t *config)
{
    for (size_t i = 0; i < TT_LEN(fields); i++) {
        int value = env_value(&fields[i]);
        if (value == UNDEF) continue;
        tt_info(TT_LOG_ENV, "Comm config %s reset to %s=%d", fields[i].name, fields[i].env, value);
        *field_at(config, &fields[i]) = value;
    }
    const char *net = tt_param_is_set("NCCL_NET") ? tt_param_str("NCCL_NET") : NULL;
    if (net && *net) {
        tt_info(TT_LOG_ENV, "Comm config netName reset to NCCL_NET=%s", net);
        config->netName = net;
    }
}

/* Combinations that cannot hold together after all have spoken. */
static void fix_conflicts(ncclConfig_t *config)
{
    if (config->minCTAs > config->maxCTAs) {
        tt_info(TT_LOG_ENV, "Comm config minCTAs %d is above maxCTAs %d, which is used",
                config->minCTAs, config->maxCTAs);
        config->minCTAs = config->maxCTAs;
    }
    if (config->CTAPolicy == (NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO)) {
        tt_warn("Comm config CTAPolicy: ZERO and EFFICIENCY exclude each other, ZERO is used");
        config->CTAPolicy = NCCL_CTA_POLICY_ZERO;
    }
    if (config->graphStreamOrdering == 0 && config->graphUsageMode == 2) {
        tt_warn("Comm config graphStreamOrdering 0 needs graphUsageMode below 2; it is set to 1");
        config->graphStreamOrdering = 1;
    }
}

ncclResult_t tt_config_parse(const ncclConfig_t *config, const ncclConfig_t *inherit,
                             ncclConfig_t *effective_out)
{
    ncclConfig_t effective = NCCL_CONFIG_INITIALIZER; /* all undefined */
    ncclResult_t rc = ncclSuccess;
    if (config) {
        rc = copy_known(config, &effective);
        if (!rc) rc = check_caller(&effective);
    } else if (inherit) {
        effective = *inherit;
    }
    if (rc) return rc;
    for (size_t i = 0; i < TT_LEN(fields); i++) {
        int *value = field_at(&effective, &fields[i]);
        if (*value == UNDEF) *value = fields[i].fallback;
    }
    apply_environment(&effective);
    fix_conflicts(&effective);
    effective.size = sizeof(effective);
    effective.magic = NCCL_API_MAGIC;
    effective.version = NCCL_VERSION_CODE;
    *effective_out = effective;
    return ncclSuccess;
}
