/* The text of the last failure, and the sentences of the result codes. The text is process-wide;
 * readers get a copy of their own, so that it cannot change under them. */
#include "base/error.h"

#include "base/log.h"
#include "base/log_compat.h"
#include "base/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_text(const char *text)
{
    pthread_mutex_lock(&tt_base.error.lock);
    snprintf(tt_base.error.text, sizeof(tt_base.error.text), "%s", text);
    pthread_mutex_unlock(&tt_base.error.lock);
}

/* The thread's place for its copy; lock held. NULL when memory is short. */
static char *own_copy(void)
{
    if (!tt_base.error.keyed)
        tt_base.error.keyed = pthread_key_create(&tt_base.error.copies, free) == 0;
    char *copy = tt_base.error.keyed ? pthread_getspecific(tt_base.error.copies) : NULL;
    if (copy || !tt_base.error.keyed) return copy;
    copy = malloc(TT_ERROR_BYTES);
    if (copy && pthread_setspecific(tt_base.error.copies, copy)) {
        free(copy);
        copy = NULL;
    }
    return copy;
}

const char *tt_last_error(void)
{
    pthread_mutex_lock(&tt_base.error.lock);
    char *copy = own_copy();
    if (copy) memcpy(copy, tt_base.error.text, TT_ERROR_BYTES);
    pthread_mutex_unlock(&tt_base.error.lock);
    return copy ? copy : "out of memory";
}

void tt_fail_at(ncclResult_t rc, const char *file, int line, const char *func, const char *fmt, ...)
{
    const int saved_errno = errno;
    char text[TT_ERROR_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args); /* errno is still the caller's, for %m */
    va_end(args);

    if (!tt_log_expected()) keep_text(text);
    tt_log_line(TT_LOG_WARN, TT_LOG_ALL, file, line, func, "%s", text);
    errno = saved_errno;
    tt_trail_at(rc, file, line, func);
}

void tt_error_keep(const char *fmt, ...)
{
    char text[TT_ERROR_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    keep_text(text);
}

ncclResult_t tt_trail_at(ncclResult_t rc, const char *file, int line, const char *func)
{
    if (rc == ncclSuccess || rc == ncclInProgress) return rc;
    if (!tt_log_on(TT_LOG_INFO, TT_LOG_ALL)) return rc;
    tt_log_line(TT_LOG_INFO, TT_LOG_ALL, file, line, func, "%s:%d (%s) -> %d", tt_log_source(file),
                line, func, (int)rc);
    return rc;
}

const char *tt_result_text(ncclResult_t rc)
{
    switch (rc) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (NCCL_DEBUG=INFO tells which)";
    case ncclSystemError: return "unhandled system error (NCCL_DEBUG=INFO tells which)";
    case ncclInternalError: return "internal error: please report it with the NCCL_DEBUG=INFO log";
    case ncclInvalidArgument: return "invalid argument (NCCL_DEBUG=WARN tells which)";
    case ncclInvalidUsage: return "invalid usage (NCCL_DEBUG=WARN tells how)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclTimeout: return "operation timed out";
    default: return "unknown result code";
    }
}
