/* Checks a plugin's file before the loader maps it. Private to plugin/. */
#pragma once

/* Reason not to load this file: it is a FIFO or the like, which would hang the loader, or it is
 * truncated, which would end the process (SIGBUS) at the first access to a missing page. NULL: it
 * is good, or the loader will report the fault. Static text. */
const char *tt_image_fault(const char *path);
