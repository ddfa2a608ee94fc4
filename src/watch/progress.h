/* Whether a communicator makes progress. The watchdog's thread alone, under its lock. Private to
 * the room. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_watch;

/* Look at one communicator: note what was finished, report that nothing is, and abort what cannot
 * succeed or has lasted too long. `now`: of tt_now_nsec(). */
void tt_progress_look(struct tt_watch *watch, uint64_t now);
/* Some communicator has work while one of its ranks is gone. */
bool tt_progress_exit_pending(void);
