/* NCCL's variables that decide about paths. */
#include "env.h"

#include "system.h"

#include "base/error.h"
#include "base/param.h"
#include "topo/file/merge.h"

#include <stdlib.h>
#include <string.h>

/* A path type as word ("PXB", "PATH_PXB") or digit. */
static ncclResult_t read_level(const char *variable, int *level_out)
{
    static const enum tt_path_type digits[] = {TT_PATH_LOC, TT_PATH_PIX, TT_PATH_PXB, TT_PATH_PHB,
                                               TT_PATH_SYS};
    const char *text = tt_param_str(variable);
    *level_out = -1;
    if (!text || !text[0]) return ncclSuccess;
    const char *word = strncmp(text, "PATH_", 5) == 0 ? text + 5 : text;
    for (int type = TT_PATH_LOC; type <= TT_PATH_SYS; type++) {
        if (strcmp(word, tt_path_type_name((enum tt_path_type)type)) != 0) continue;
        *level_out = type;
        return ncclSuccess;
    }
    char *end;
    long digit = strtol(text, &end, 10);
    if (end == text || *end || digit < 0) {
        return tt_fail(ncclInvalidUsage,
                       "%s: unknown level '%s' (accepted: LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, "
                       "PHB, SYS, or 0 to 4)",
                       variable, text);
    }
    *level_out = (int)digits[digit > 4 ? 4 : digit];
    return ncclSuccess;
}

static int netdevs_policy(const char *text)
{
    if (!text || strcmp(text, "AUTO") == 0) return 0;
    if (strcmp(text, "ALL") == 0) return -1;
    if (strncmp(text, "MAX:", 4) == 0) {
        long most = strtol(text + 4, NULL, 10);
        return most > 0 && most < TT_TOPO_NODES ? (int)most : 0;
    }
    return 0;
}

void tt_topo_env_check(void)
{
    struct tt_topo_env env;
    enum tt_path_type level;
    if (tt_topo_env_read(&env)) tt_warn_setting("%s", tt_last_error());
    if (tt_topo_merge_level(&level)) tt_warn_setting("%s", tt_last_error());
    if (env.cross_nic < 0 || env.cross_nic > 2) {
        tt_warn_setting("NCCL_CROSS_NIC: value %d is out of bounds (accepted: 0, 1, 2)",
                        env.cross_nic);
    }
}

ncclResult_t tt_topo_env_read(struct tt_topo_env *env)
{
    *env = (struct tt_topo_env){
        .net_gdr_read = (int)tt_param_int("NCCL_NET_GDR_READ"),
        .nvb_disable = tt_param_bool("NCCL_NVB_DISABLE"),
        .pxn_disable = tt_param_bool("NCCL_PXN_DISABLE"),
        .pxn_c2c = tt_param_bool("NCCL_PXN_C2C"),
        .net_gdr_c2c = tt_param_bool("NCCL_NET_GDR_C2C"),
        .net_disable_intra = tt_param_bool("NCCL_NET_DISABLE_INTRA"),
        .shm_disable = tt_param_bool("NCCL_SHM_DISABLE"),
        .cross_nic = (int)tt_param_int("NCCL_CROSS_NIC"),
        .split_parts = tt_param_bool("NCCL_TOPO_SPLIT_MLOPART"),
        .gdr_parts = tt_param_bool("NCCL_NET_GDR_MLOPART"),
        .scatter_nets = tt_param_bool("NCCL_MNNVL_SCATTER_NETS_ENABLE"),
        .rail_per_host = tt_param_bool("NCCL_MNNVL_RAIL_PER_HOST"),
        .netdevs_policy = netdevs_policy(tt_param_str("NCCL_NETDEVS_POLICY")),
    };
    ncclResult_t rc = read_level("NCCL_P2P_LEVEL", &env->p2p_level);
    if (rc) return rc;
    if (tt_param_bool("NCCL_P2P_DISABLE")) env->p2p_level = TT_PATH_LOC;
    return read_level("NCCL_NET_GDR_LEVEL", &env->net_gdr_level);
}
