/* Threads that move the data lanes of a connection beside the thread that uses it. Private to the
 * room.
 *
 * The user of a connection moves all lanes, as without threads; a thread takes those of its lanes
 * that the user is not at, while bytes flow. So nothing depends on a thread: it is started when a
 * message is first cut in pieces, sleeps when its lanes have brought nothing for a moment, and is
 * woken when there are pieces again. Who moves a lane has taken it for that moment. No system call
 * on a lane waits, so who wants all threads to leave memory alone has only to take each lane once.
 */
#pragma once

#include "net/socket.h"

#include <stdbool.h>

/* Let threads share the data lanes, before the first message: `wanted`, or fewer where there are
 * fewer lanes; none for a single one, or where the process has one processor. False: out of memory.
 */
bool tt_socket_threads_create(struct socket_link *link, int wanted);
/* End the threads. Accepts a link without. */
void tt_socket_threads_destroy(struct socket_link *link);
/* Post a part on a lane that threads share. `wakes`: its thread is needed. */
void tt_socket_threads_add(struct socket_link *link, int lane, struct socket_part part, bool wakes);

/* Move what can be moved now on the data lanes, with threads or without. */
ncclResult_t tt_socket_lanes_move(struct socket_link *link);
