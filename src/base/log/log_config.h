/* What the NCCL_DEBUG* variables ask for, parsed. Immutable once published; private to base/. */
#pragma once

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

enum { TT_LOG_COMPLAINTS_MAX = 4, TT_LOG_COMPLAINT_BYTES = 256, TT_LOG_FORMAT_BYTES = 128 };

/* Levels that a word of NCCL_DEBUG brings: itself and the quieter ones. */
enum {
    TT_LOG_UP_TO_VERSION = 1 << TT_LOG_VERSION,
    TT_LOG_UP_TO_WARN = TT_LOG_UP_TO_VERSION | 1 << TT_LOG_WARN,
    TT_LOG_UP_TO_ATTN = TT_LOG_UP_TO_WARN | 1 << TT_LOG_ATTN,
    TT_LOG_UP_TO_INFO = TT_LOG_UP_TO_ATTN | 1 << TT_LOG_INFO,
    TT_LOG_UP_TO_ABORT = TT_LOG_UP_TO_INFO | 1 << TT_LOG_ABORT,
    TT_LOG_UP_TO_TRACE = TT_LOG_UP_TO_ABORT | 1 << TT_LOG_TRACE,
};

struct tt_log_config {
    uint32_t levels;       /* bit 1 << level: its lines are printed */
    uint32_t mask;         /* of tt_log_sub */
    uint32_t stamp_levels; /* bit 1 << level: its lines carry a time stamp */
    char stamp_format[TT_LOG_FORMAT_BYTES];
    char host[64];
    uint64_t start_nsec;
    bool raise_on_warn;
    bool warn_only;                 /* by TUTTI_WARN, not by NCCL_DEBUG: no line with the version */
    int fd;                         /* borrowed: 1, 2, or the log file's */
    struct tt_log_config *previous; /* owned; kept, as a thread may still write with it */
    int complaint_count;
    char complaints[TT_LOG_COMPLAINTS_MAX][TT_LOG_COMPLAINT_BYTES]; /* WARNs to print first */
};

/* Read the variables. `file_fd` is the descriptor of the log file of an earlier configuration, -1
 * when there was none; a new file takes its place under the same number, so that a thread that
 * still uses the old configuration writes somewhere sane. Caller owns the result; NULL when out of
 * memory. */
struct tt_log_config *tt_log_config_read(int file_fd);
