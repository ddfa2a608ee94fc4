/* A memory fence for all threads of the process, so that frequent operations need none. */
#pragma once

/* Order memory in all threads at once: each of them is made to execute a full fence between two of
 * its instructions, as this one does. So where one side stores A and then reads B often, with
 * nothing but the compiler told to keep the order, and the other side stores B, calls this and
 * then reads A, at least one of the two sees the other's store. Costs some microseconds; the first
 * call of a process may take milliseconds. */
void tt_fence_threads(void);
