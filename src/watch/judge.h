/* The questions that a communicator without progress leads to, and their verdicts. The watchdog's
 * thread alone, under its lock; `now`: of tt_now_nsec(). Private to the room. */
#pragma once

#include <stdint.h>

struct tt_watch;

/* Ask all ranks if it is time: at first only whether a process stands still, which is worth a line
 * at once; when the report is due, whatever keeps this rank waiting. */
void tt_judge_ask(struct tt_watch *watch, uint64_t now);
/* Another rank has found out why this one waits, too. */
void tt_judge_hear(struct tt_watch *watch);
/* An inquiry is over: report its result to those that wanted it, and to the other ranks. */
void tt_judge_end(struct tt_watch *watch, uint64_t now);
