/* A plugin's file before the loader maps it. Private to plugin/. */
#pragma once

/* Why the loader should not be given this file: it is a FIFO or the like, which would hang the
 * loader, or is cut short, which would end the process (SIGBUS) at the first touch of a page that
 * is not there. NULL: nothing is wrong with it, or the loader says so itself. Static text. */
const char *tt_image_fault(const char *path);
