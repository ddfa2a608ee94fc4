/* The layout of log lines as NCCL's users and tools parse it. Private to base/. */
#pragma once

#include "base/log/log_config.h"

#include <stddef.h>

struct tt_log_origin {
    enum tt_log_level level;
    uint32_t sub;
    struct tt_log_location
        location; /* func NULL: a plugin's line, with its third argument as file */
    int device;
};

/* Write what stands before the text of a line; returns its length, below `size`. */
size_t tt_log_prefix(const struct tt_log_config *config, const struct tt_log_origin *origin,
                     char *prefix, size_t size);

/* Path of a source file without what lies above the rooms: "net/socket.c". */
const char *tt_log_source(const char *file);
