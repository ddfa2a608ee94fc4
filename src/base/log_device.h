/* What all copies of this room in a process share: how the calling thread's log lines are written,
 * and whether somebody has complained about the log's variables. Private to base/. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct tt_log_thread {
    int device;        /* number in brackets */
    uint32_t expected; /* failures are, as lines of this subsystem; 0: they are not */
};
extern __attribute__((visibility("default"))) _Thread_local struct tt_log_thread tuttiLogThread;
extern __attribute__((visibility("default"))) atomic_flag tuttiLogReported;
