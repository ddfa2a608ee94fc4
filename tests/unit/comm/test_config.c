/* ncclConfig_t of every release ever, good and bad values, what the environment overrides. */
#include "../check.h"

#include "base/error.h"
#include "base/param.h"
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Released layouts: size, version code, fields after the header in order. */
static const struct {
    size_t size;
    uint32_t version;
    const char *last;
} releases[] = {
    {24, 21403, "blocking"},     {40, 21701, "netName"},       {48, 21801, "splitShare"},
    {48, 22602, "trafficClass"}, {72, 22703, "nvlsCTAs"},      {80, 22803, "nvlinkCentricSched"},
    {88, 22902, "numRmaCtx"},    {96, 23003, "maxP2pPeers"},   {96, 23007, "graphStreamOrdering"},
    {112, 23102, "hostCftMode"}, {120, 23203, "nvlsHostMode"},
};

static ncclConfig_t initial(size_t size, uint32_t version)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.size = size;
    config.version = version;
    return config;
}

/* Bytes beyond the caller's struct are garbage that must not be looked at. */
static void every_release(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
        ncclConfig_t effective, config = initial(releases[i].size, releases[i].version);
        memset((char *)&config + releases[i].size, 0x5a, sizeof(config) - releases[i].size);
        config.blocking = 0;
        print_message("case: up to %s\n", releases[i].last);
        assert_int_equal(tt_config_parse(&config, NULL, &effective), ncclSuccess);
        assert_int_equal(effective.size, sizeof(ncclConfig_t));
        assert_int_equal(effective.blocking, 0);
        assert_int_equal(effective.maxCTAs, 64);
        assert_int_equal(effective.minCTAs, 1);
        assert_int_equal(effective.cgaClusterSize, 4);
        assert_int_equal(effective.splitShare, 0);
        assert_int_equal(effective.shrinkShare, 0);
        assert_int_equal(effective.graphUsageMode, 2);
        assert_int_equal(effective.numRmaCtx, 1);
        assert_int_equal(effective.graphStreamOrdering, 1);
        assert_int_equal(effective.launchOrderImplicit, 0);
        assert_int_equal(effective.numRmaSig, 1);
        assert_int_equal(effective.rmaEagerInit, 0);
        assert_int_equal(effective.nvlsHostMode, 0);
        assert_null(effective.netName);
        assert_null(effective.commName);
    }
}

static void newer_and_larger(void **state)
{
    struct {
        ncclConfig_t config;
        char more[64];
    } future;
    ncclConfig_t effective;
    (void)state;
    memset(&future, 0x5a, sizeof(future));
    future.config = initial(sizeof(future), 29999);
    future.config.maxCTAs = 3;
    assert_int_equal(tt_config_parse(&future.config, NULL, &effective), ncclSuccess);
    assert_int_equal(effective.maxCTAs, 3);
}

/* Fields younger than the caller's version count as unset although the size covers them. */
static void version_gates(void **state)
{
    ncclConfig_t effective, config = initial(sizeof(config), 21701);
    (void)state;
    config.collnetEnable = 77;
    config.graphStreamOrdering = 99;
    config.splitShare = 1; /* no gate */
    assert_int_equal(tt_config_parse(&config, NULL, &effective), ncclSuccess);
    assert_int_equal(effective.collnetEnable, 0);
    assert_int_equal(effective.graphStreamOrdering, 1);
    assert_int_equal(effective.splitShare, 1);
}

static void bad_heads(void **state)
{
    ncclConfig_t effective, config = initial(sizeof(config), NCCL_VERSION_CODE);
    (void)state;
    config.magic = 1;
    assert_int_equal(tt_config_parse(&config, NULL, &effective), ncclInvalidArgument);
    config = initial(8, NCCL_VERSION_CODE);
    assert_int_equal(tt_config_parse(&config, NULL, &effective), ncclInvalidArgument);
    config = initial(0, 0);
    assert_int_equal(tt_config_parse(&config, NULL, &effective), ncclInvalidArgument);
    assert_int_equal(tt_config_parse(NULL, NULL, &effective), ncclSuccess);
    assert_int_equal(effective.blocking, 1);
}

#define FIELD(name) #name, offsetof(ncclConfig_t, name)

struct value_case {
    const char *name;
    size_t offset;
    int value;
    ncclResult_t rc;
    int effective;
};
static const struct value_case value_cases[] = {
    {FIELD(blocking), 2, ncclInvalidArgument, 0},
    {FIELD(blocking), -1, ncclInvalidArgument, 0},
    {FIELD(blocking), 0, ncclSuccess, 0},
    {FIELD(cgaClusterSize), -1, ncclInvalidArgument, 0},
    {FIELD(cgaClusterSize), 8, ncclSuccess, 8},
    {FIELD(minCTAs), 0, ncclInvalidArgument, 0},
    {FIELD(minCTAs), 8, ncclSuccess, 8}, /* alone: compared with the default maximum */
    {FIELD(minCTAs), 100, ncclSuccess, 64},
    {FIELD(maxCTAs), 0, ncclInvalidArgument, 0},
    {FIELD(maxCTAs), 4, ncclSuccess, 4},
    {FIELD(maxCTAs), 1000, ncclSuccess, 64},
    {FIELD(splitShare), 2, ncclInvalidArgument, 0},
    {FIELD(trafficClass), -5, ncclSuccess, -5},
    {FIELD(collnetEnable), 3, ncclInvalidArgument, 0},
    {FIELD(CTAPolicy), 4, ncclInvalidArgument, 0},
    {FIELD(CTAPolicy), 3, ncclSuccess, NCCL_CTA_POLICY_ZERO},
    {FIELD(shrinkShare), -1, ncclInvalidArgument, 0},
    {FIELD(nvlsCTAs), 0, ncclInvalidArgument, 0},
    {FIELD(nvlsCTAs), 9, ncclSuccess, 9},
    {FIELD(nChannelsPerNetPeer), 65, ncclInvalidArgument, 0},
    {FIELD(nChannelsPerNetPeer), 64, ncclSuccess, 64},
    {FIELD(nvlinkCentricSched), 2, ncclInvalidArgument, 0},
    {FIELD(graphUsageMode), 3, ncclInvalidArgument, 0},
    {FIELD(graphUsageMode), 1, ncclSuccess, 1},
    {FIELD(numRmaCtx), -1, ncclInvalidArgument, 0},
    {FIELD(numRmaCtx), 0, ncclSuccess, 0},
    {FIELD(maxP2pPeers), 0, ncclInvalidArgument, 0},
    {FIELD(maxP2pPeers), 3, ncclSuccess, 3},
    {FIELD(graphStreamOrdering), 2, ncclInvalidArgument, 0},
    {FIELD(launchOrderImplicit), 2, ncclInvalidArgument, 0},
    {FIELD(launchOrderImplicit), 1, ncclSuccess, 1},
    {FIELD(numRmaSig), -1, ncclInvalidArgument, 0},
    {FIELD(rmaEagerInit), 1, ncclSuccess, 1},
    {FIELD(hostCftMode), 0, ncclInvalidArgument, 0},
    {FIELD(hostCftMode), ncclHostCftFallback, ncclSuccess, 3},
    {FIELD(nvlsHostMode), -1, ncclInvalidArgument, 0},
    {FIELD(nvlsHostMode), ncclNvlsHostModeDisable, ncclSuccess, INT_MAX},
    {FIELD(graphStreamOrdering), 0, ncclSuccess, 1}, /* graphUsageMode is 2 */
};

static void values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(value_cases) / sizeof(value_cases[0]); i++) {
        ncclConfig_t effective, config = NCCL_CONFIG_INITIALIZER;
        memcpy((char *)&config + value_cases[i].offset, &value_cases[i].value, sizeof(int));
        print_message("case: %s %d\n", value_cases[i].name, value_cases[i].value);
        assert_int_equal(tt_config_parse(&config, NULL, &effective), value_cases[i].rc);
        if (value_cases[i].rc) {
            assert_non_null(strstr(tt_last_error(), value_cases[i].name));
            continue;
        }
        int seen;
        memcpy(&seen, (char *)&effective + value_cases[i].offset, sizeof(seen));
        assert_int_equal(seen, value_cases[i].effective);
    }
    ncclConfig_t effective, config = NCCL_CONFIG_INITIALIZER;
    config.minCTAs = 99;
    config.maxCTAs = 4;
    assert_int_equal(tt_config_parse(&config, NULL, &effective), ncclInvalidArgument);
    assert_non_null(strstr(tt_last_error(), "minCTAs 99 is above maxCTAs 4"));
}

static void environment_wins(void **state)
{
    static const struct {
        const char *name, *value;
        size_t offset;
        int effective;
    } cases[] = {
        {"NCCL_COMM_BLOCKING", "0", offsetof(ncclConfig_t, blocking), 0},
        {"NCCL_CGA_CLUSTER_SIZE", "12", offsetof(ncclConfig_t, cgaClusterSize), 8},
        {"NCCL_MIN_CTAS", "7", offsetof(ncclConfig_t, minCTAs), 7},
        {"NCCL_MAX_CTAS", "9", offsetof(ncclConfig_t, maxCTAs), 9},
        {"NCCL_MAX_CTAS", "900", offsetof(ncclConfig_t, maxCTAs), 64},
        {"NCCL_COMM_SPLIT_SHARE_RESOURCES", "1", offsetof(ncclConfig_t, splitShare), 1},
        {"NCCL_CTA_POLICY", "DEFAULT|EFFICIENCY", offsetof(ncclConfig_t, CTAPolicy), 1},
        {"NCCL_CTA_POLICY", "2", offsetof(ncclConfig_t, CTAPolicy), 2},
        {"NCCL_GRAPH_MIXING_SUPPORT", "0", offsetof(ncclConfig_t, graphUsageMode), 0},
        {"NCCL_NUM_RMA_CTX", "4", offsetof(ncclConfig_t, numRmaCtx), 4},
        {"NCCL_P2P_MAX_PEERS", "2", offsetof(ncclConfig_t, maxP2pPeers), 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ncclConfig_t effective, config = NCCL_CONFIG_INITIALIZER;
        int seen;
        print_message("case: %s=%s\n", cases[i].name, cases[i].value);
        setenv(cases[i].name, cases[i].value, 1);
        tt_param_forget();
        assert_int_equal(tt_config_parse(&config, NULL, &effective), ncclSuccess);
        memcpy(&seen, (char *)&effective + cases[i].offset, sizeof(seen));
        assert_int_equal(seen, cases[i].effective);
        unsetenv(cases[i].name);
        tt_param_forget();
    }
}

/* Without a config of its own a child takes the parent's effective one; with one, nothing. */
static void inheritance(void **state)
{
    ncclConfig_t parent, child, config = NCCL_CONFIG_INITIALIZER;
    (void)state;
    config.maxCTAs = 6;
    config.commName = "mother";
    assert_int_equal(tt_config_parse(&config, NULL, &parent), ncclSuccess);
    assert_int_equal(tt_config_parse(NULL, &parent, &child), ncclSuccess);
    assert_int_equal(child.maxCTAs, 6);
    assert_string_equal(child.commName, "mother");
    ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
    assert_int_equal(tt_config_parse(&fresh, &parent, &child), ncclSuccess);
    assert_int_equal(child.maxCTAs, 64);
    assert_null(child.commName);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_release), cmocka_unit_test(newer_and_larger),
        cmocka_unit_test(version_gates), cmocka_unit_test(bad_heads),
        cmocka_unit_test(values),        cmocka_unit_test(environment_wins),
        cmocka_unit_test(inheritance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
