/* The number of the device that log lines print in brackets. It has an archive of its own because a
 * process must have it once: libtutti-host defines and exports it, libnccl takes it from there, and
 * whatever links the rooms directly gets it from the archive. */
#include "base/log_device.h"

_Thread_local int tuttiLogDevice;
