/* Versions of the environment plugin. Private to the room and to `tutti plugin check`. */
#pragma once

#include "nccl/env.h"
#include "plugin/plugin.h"

enum { TT_ENV_VERSIONS = 2 };
/* The symbols of all versions, newest first. */
extern const struct tt_plugin_abi tt_env_symbols[TT_ENV_VERSIONS];

/* Call the plugin's init, whatever its version. Otherwise both tables are the same. */
ncclResult_t tt_env_init(const struct tt_plugin_found *found);
