/* The text of the last failure, and the sentences of the result codes. Each thread that failed has
 * a text of its own, beside the process's. Readers get a copy, so that it cannot change under them.
 */
#include "base/error.h"

#include "base/log.h"
#include "base/log/log_compat.h"
#include "base/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAID_MOST = 16 }; /* times in a row; then each time that their number has doubled */

struct own_texts {               /* a thread's */
    char copy[TT_ERROR_BYTES];   /* for its reader */
    char latest[TT_ERROR_BYTES]; /* what it said itself; "": nothing */
    bool taken;                  /* nothing since then */
    unsigned repeats;            /* of it in a row */
};

/* The thread's texts; lock held. NULL when memory is short. */
static struct own_texts *own_texts(void)
{
    if (!tt_base.error.keyed)
        tt_base.error.keyed = pthread_key_create(&tt_base.error.copies, free) == 0;
    struct own_texts *own = tt_base.error.keyed ? pthread_getspecific(tt_base.error.copies) : NULL;
    if (own || !tt_base.error.keyed) return own;
    own = calloc(1, sizeof(*own));
    if (own && pthread_setspecific(tt_base.error.copies, own)) {
        free(own);
        own = NULL;
    }
    return own;
}

/* How often the thread has said it in a row, now included. */
static unsigned keep_text(const char *text)
{
    unsigned times = 1;
    pthread_mutex_lock(&tt_base.error.lock);
    struct own_texts *own = own_texts();
    snprintf(tt_base.error.text, sizeof(tt_base.error.text), "%s", text);
    if (own) {
        own->repeats = strcmp(own->latest, text) != 0 ? 1 : own->repeats + 1;
        times = own->repeats;
        snprintf(own->latest, sizeof(own->latest), "%s", text);
        own->taken = false;
    }
    pthread_mutex_unlock(&tt_base.error.lock);
    return times;
}

const char *tt_last_error(void)
{
    pthread_mutex_lock(&tt_base.error.lock);
    struct own_texts *own = own_texts();
    if (own) memcpy(own->copy, own->latest[0] ? own->latest : tt_base.error.text, TT_ERROR_BYTES);
    pthread_mutex_unlock(&tt_base.error.lock);
    return own ? own->copy : "out of memory";
}

void tt_error_take(char *text_out, size_t text_bytes)
{
    pthread_mutex_lock(&tt_base.error.lock);
    struct own_texts *own = own_texts();
    if (own && (own->taken || !own->latest[0])) {
        memcpy(own->latest, tt_base.error.text, TT_ERROR_BYTES); /* another thread said why */
    }
    snprintf(text_out, text_bytes, "%s", own ? own->latest : tt_base.error.text);
    if (own) own->taken = true;
    pthread_mutex_unlock(&tt_base.error.lock);
}

void tt_fail_at(ncclResult_t rc, const char *file, int line, const char *func, const char *fmt, ...)
{
    const int saved_errno = errno;
    char text[TT_ERROR_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args); /* errno is still the caller's, for %m */
    va_end(args);

    const unsigned times = tt_log_expected() ? 1 : keep_text(text);
    if (times <= SAID_MOST) {
        tt_log_line(TT_LOG_WARN, TT_LOG_ALL, file, line, func, "%s", text);
    } else if ((times & (times - 1)) == 0) { /* a loop that polls would fill a disk */
        tt_log_line(TT_LOG_WARN, TT_LOG_ALL, file, line, func, "%s (%u times in a row by now)",
                    text, times);
    }
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
    (void)keep_text(text);
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
    /* where to look, unless that is there already */
    const bool warned = tt_log_on(TT_LOG_WARN, TT_LOG_ALL);
    switch (rc) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (NCCL_DEBUG=INFO tells which)";
    case ncclSystemError: return "unhandled system error (NCCL_DEBUG=INFO tells which)";
    case ncclInternalError:
        return "internal error, or an argument that NCCL answers so: ncclGetLastError says "
               "which (please report the former with the NCCL_DEBUG=INFO log)";
    case ncclInvalidArgument:
        return warned ? "invalid argument" : "invalid argument (NCCL_DEBUG=WARN tells which)";
    case ncclInvalidUsage:
        return warned ? "invalid usage" : "invalid usage (NCCL_DEBUG=WARN tells how)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclTimeout: return "operation timed out";
    default: return "unknown result code";
    }
}

const char *tt_result_name(ncclResult_t rc)
{
    static const char *const names[] = {
        [ncclSuccess] = "ncclSuccess",
        [ncclUnhandledCudaError] = "ncclUnhandledCudaError",
        [ncclSystemError] = "ncclSystemError",
        [ncclInternalError] = "ncclInternalError",
        [ncclInvalidArgument] = "ncclInvalidArgument",
        [ncclInvalidUsage] = "ncclInvalidUsage",
        [ncclRemoteError] = "ncclRemoteError",
        [ncclInProgress] = "ncclInProgress",
        [ncclTimeout] = "ncclTimeout",
    };
    const bool known = (int)rc >= 0 && (size_t)rc < sizeof(names) / sizeof(names[0]);
    return known ? names[rc] : "none of ncclResult_t";
}
