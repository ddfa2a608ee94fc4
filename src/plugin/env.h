/* How each version of the environment plugin is called. Private to the room, and to those that
 * check plugins. */
#pragma once

#include "nccl/env.h"
#include "plugin/plugin.h"

enum { TT_ENV_VERSIONS = 2 };
/* The symbols of all versions, newest first. */
extern const struct tt_plugin_abi tt_env_symbols[TT_ENV_VERSIONS];

/* But for its init, the table of either version is read as the newest one. */
ncclResult_t tt_env_init(const struct tt_plugin_found *found);
