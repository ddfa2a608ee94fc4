/* What a thread's log lines need, and the mark of who complains first.
 * They have an archive of their own because a process must have them once: libtutti-host defines
 * and exports them, libnccl takes them from there, and whatever links the rooms directly gets them
 * from the archive. */
#include "base/log_device.h"

_Thread_local struct tt_log_thread tuttiLogThread;
atomic_flag tuttiLogReported = ATOMIC_FLAG_INIT;
