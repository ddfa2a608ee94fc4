/* What all copies of this room in a process share: how the calling thread's log lines are written,
 * and whether somebody has complained about the log's variables. Private to base/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_log_thread {
    int device;        /* number in brackets */
    uint32_t expected; /* failures are, as lines of this subsystem; 0: they are not */
};
extern __attribute__((visibility("default"))) _Thread_local struct tt_log_thread tuttiLogThread;

/* Somebody complains about the log's variables: true for the first in the process, or the first
 * since they were forgotten. */
__attribute__((visibility("default"))) bool tuttiLogReport(void);
__attribute__((visibility("default"))) void tuttiLogForget(void);
