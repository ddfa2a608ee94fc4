/* What all copies of this room in a process share: how log lines of the calling thread are written,
 * and whether a warning about the log's variables was printed. Private to base/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_log_thread {
    int device;        /* number in brackets */
    uint32_t expected; /* not 0: failures are expected; they are INFO lines of this subsystem */
};

/* How the calling thread logs; zeros before the first set. */
__attribute__((visibility("default"))) struct tt_log_thread tuttiLogThread(void);
/* Without a key for it in the process nothing is set. */
__attribute__((visibility("default"))) void tuttiLogThreadSet(struct tt_log_thread thread);

/* True for the first caller in the process, or the first since tuttiLogForget(): it prints the
 * warnings about the log's variables. */
__attribute__((visibility("default"))) bool tuttiLogReport(void);
__attribute__((visibility("default"))) void tuttiLogForget(void);
