/* What a thread's log lines need, and the mark of who complains first.
 * They have an archive of their own because a process must have them once: libtutti-host defines
 * and exports them, libnccl takes them from there, and what links the rooms directly gets them
 * from the archive. The mark is in that copy's tt_base. */
#include "base/log/log_device.h"

#include "base/process.h"

#include <stdatomic.h>

_Thread_local struct tt_log_thread tuttiLogThread;

bool tuttiLogReport(void)
{
    return !atomic_exchange(&tt_base.log.reported, true);
}

void tuttiLogForget(void)
{
    atomic_store(&tt_base.log.reported, false);
}
