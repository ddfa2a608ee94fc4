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

/* Keep a text for ncclGetLastError as tt_fail() does, without a line in the log: where a flag that
 * others see goes up before the failure is reported. */
void tt_error_keep(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Leave this caller's line of the trail that log parsers follow down to the first failure
 * ("file:line (function) -> code", INFO), return `rc`. Success and ncclInProgress leave none. */
#define tt_trail(rc) tt_trail_at((rc), __FILE__, __LINE__, __func__)
ncclResult_t tt_trail_at(ncclResult_t rc, const char *file, int line, const char *func);

/* Text of the thread's own last tt_fail(); of the process's last one where the thread has none; ""
 * before the first. So a rank that is a thread reads why its own call failed, whatever other ranks
 * say meanwhile. Valid until the thread's next call. */
const char *tt_last_error(void);

/* Text of the thread's own last tt_fail(), once; of the process's when it said nothing since the
 * last time, which then counts as the thread's own. Other threads may fail meanwhile: this is the
 * one that belongs to the code which the caller just got. */
void tt_error_take(char *text_out, size_t text_bytes);

/* Fixed sentence per code; never NULL. */
const char *tt_result_text(ncclResult_t rc);
