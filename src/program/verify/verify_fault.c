/* The first fault of a set, with the rank and instruction where it came up. */
#include "verify_state.h"

#include <stdarg.h>
#include <stdio.h>

bool tt_verify_fail(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                    const char *fmt, ...)
{
    if (verify->failed) return false;
    verify->failed = true;
    int at = 0;
    if (cursor) {
        at =
            snprintf(verify->fault, verify->fault_bytes, "rank %d insn %d, pass %u: ", cursor->rank,
                     cursor->stepper.pc, (unsigned int)cursor->stepper.pass);
    }
    if (at < 0 || (size_t)at >= verify->fault_bytes) return false;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(verify->fault + at, verify->fault_bytes - (size_t)at, fmt, args);
    va_end(args);
    return false;
}
