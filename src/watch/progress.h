/* Whether a communicator makes progress. The watchdog's thread alone, under its lock. Private to
 * the room. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_watch;

/* Look at one communicator: note the operations that ended, report when none does, and abort it
 * when its waits cannot succeed or have lasted too long. `now` is of tt_now_nsec(). */
void tt_progress_look(struct tt_watch *watch, uint64_t now);
/* A rank for which it waits never comes: abort it with ncclRemoteError, at all ranks in reach.
 * gone  which rank, and that it has ended */
void tt_progress_give_up(struct tt_watch *watch, const char *gone);
/* True when some communicator has work while one of its ranks is gone. */
bool tt_progress_exit_pending(void);
