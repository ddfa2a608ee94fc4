/* Which cache lines instructions of x86-64 touch, decoded one by one from what stands before them:
 * code, and data at the first byte of each operand. */
#pragma once

#include <stdint.h>
#include <sys/user.h>

enum { TOUCHED_LINES = 4096 };

struct touched {
    uint64_t code[TOUCHED_LINES], data[TOUCHED_LINES]; /* line numbers, each once */
    int ncode, ndata;
};

/* The instruction that `regs` stand before. */
void touched_note(struct touched *touched, const uint8_t code[16],
                  const struct user_regs_struct *regs);
