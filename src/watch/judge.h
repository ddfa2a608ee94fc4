/* Inquiries about a communicator without progress, and what is reported of them. Called by the
 * watchdog's thread under its lock; `now` is of tt_now_nsec(). Private to the room. */
#pragma once

#include <stdint.h>

struct tt_watch;

/* Ask all ranks when it is time. The first inquiry is early and reports only processes that are
 * stopped or gone; the second, when the report is due, reports any cause. */
void tt_judge_ask(struct tt_watch *watch, uint64_t now);
/* Take verdicts that other ranks have sent: they explain why this rank waits, too. */
void tt_judge_receive(struct tt_watch *watch, uint64_t now);
/* An inquiry is over: report its result to those that wanted it, and to the other ranks. */
void tt_judge_end(struct tt_watch *watch, uint64_t now);
