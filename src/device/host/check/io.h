/* System calls of the program on closed pages. Inside of the checker. */
#pragma once

/* The function that judges the buffer of the one of that name, or NULL: there is none. */
void *tt_check_io_instead(const char *name);
