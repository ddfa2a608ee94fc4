/* Memory that runs short at a chosen moment: allocations of the rooms that are linked in are
 * counted, and one of them fails. For a program that is linked with `starve_args`. */
#pragma once

#include <stdbool.h>

/* Let the n-th allocation from now on fail (1: the next one), of whatever thread; 0: none. */
void starve_at(long n);

/* True when it came that far; none fails from now on. */
bool starve_end(void); /* the same answer until the next starve_at() */
