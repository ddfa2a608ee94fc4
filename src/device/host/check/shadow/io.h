/* System calls of the program on protected pages. Private to check/. */
#pragma once

/* The replacement of a function of the C library that checks its buffers first; NULL: none. */
void *tt_check_io_instead(const char *name);
