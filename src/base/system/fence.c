/* Fences for all threads: the kernel's where it has them (membarrier(2), since Linux 4.14). */
#include "base/system/fence.h"

#include "base/system/clock.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DRAIN_USEC 1000 /* a store leaves its processor in far less */

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void tt_fence_threads(void)
{
    const int error = errno;
    long failed = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    if (failed && errno == EPERM) { /* the process has to register once */
        failed = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        if (!failed) failed = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
    if (failed) tt_sleep_usec(DRAIN_USEC);
    errno = error;
}
