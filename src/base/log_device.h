/* The calling thread's device number in log lines; one for all copies of this room in a process.
 * Private to base/. */
#pragma once

extern __attribute__((visibility("default"))) _Thread_local int tuttiLogDevice;
