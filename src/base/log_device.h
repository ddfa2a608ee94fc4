/* What all copies of this room in a process share: the calling thread's device number in log lines,
 * and whether somebody has complained about the log's variables. Private to base/. */
#pragma once

#include <stdatomic.h>

extern __attribute__((visibility("default"))) _Thread_local int tuttiLogDevice;
extern __attribute__((visibility("default"))) atomic_flag tuttiLogTold;
