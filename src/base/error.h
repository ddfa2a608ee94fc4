/* One error type, reported once: the function that detects a failure calls tt_fail(); callers
 * return the code. */
#pragma once

#include "nccl.h"

#include <stddef.h>

/* Record and log a failure, return `rc` (evaluated twice).
 * Logs one WARN "fmt..." (%m gives errno's text), keeps the text for ncclGetLastError
 * (process-wide, and for the thread), whatever the log level. Thread-safe, async-signal-unsafe. */
#define tt_fail(rc, ...)                                                                           \
    (tt_fail_at((rc), __FILE__, __LINE__, __func__, __VA_ARGS__), tt_fail_code(rc))
static inline ncclResult_t tt_fail_code(ncclResult_t rc) /* inline: analysers see it come back */
{
    return rc;
}
void tt_fail_at(ncclResult_t rc, const char *file, int line, const char *func, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Keep a text for ncclGetLastError as tt_fail() does, without a line in the log. For failures whose
 * flag other threads may see before the failure is reported. */
void tt_error_keep(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Log the line "file:line (function) -> code" (INFO) by which log parsers follow an error down to
 * its origin, and return `rc`. ncclSuccess and ncclInProgress log nothing. */
#define tt_trail(rc) tt_trail_at((rc), __FILE__, __LINE__, __func__)
ncclResult_t tt_trail_at(ncclResult_t rc, const char *file, int line, const char *func);

/* Text of the last tt_fail() of this thread, else of the process; "" before the first. So a rank
 * that is a thread reads why its own call failed, not another rank's. Valid until the thread's next
 * call. */
const char *tt_last_error(void);

/* Copy the text that belongs to the error code which the caller has just got: that of the thread's
 * last tt_fail(). When the thread had none since its last take, the process's last text is copied
 * and becomes the thread's own. */
void tt_error_take(char *text_out, size_t text_bytes);

/* Fixed sentence per code; never NULL. */
const char *tt_result_text(ncclResult_t rc);
/* "ncclInternalError": of results that are not ours, about which our sentences would be wrong. */
const char *tt_result_name(ncclResult_t rc);
