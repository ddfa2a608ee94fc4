/* RAS's monitor: what becomes of the processes that this one has communicators with. Private to the
 * room; the watchdog's thread alone. */
#pragma once

#include "watch/inquiry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TT_MONITOR_LIFECYCLE = 1, TT_MONITOR_TRACE = 2 }; /* groups of events */

enum tt_peer_state { TT_PEER_RUNS, TT_PEER_STOPPED, TT_PEER_DEAD };

struct tt_monitor_peer {
    int pid;
    char host[TT_STATUS_HOST_BYTES], addr[TT_STATUS_ADDR_BYTES];
    uint64_t devices; /* numbers of those that its ranks use, a bit each */
    enum tt_peer_state state;
    bool here; /* its pid is one of this host and namespace */
    bool seen; /* in this look: some communicator still has it */
};

struct tt_monitor_event {
    const char *name, *details;
    int group;
    const struct tt_monitor_peer *peer;
};

struct tt_monitor {
    struct tt_monitor_peer *peers; /* owned */
    size_t count, room;
    uint64_t looked_nsec;
};

/* Look at all peers, a few times a second whatever the number of calls. What changed since the last
 * look is said by `tell`; the first look says nothing. */
void tt_monitor_look(struct tt_monitor *monitor, const struct tt_watch *watches, uint64_t now,
                     void (*tell)(void *to, const struct tt_monitor_event *event), void *to);
/* Nobody listens any more. */
void tt_monitor_reset(struct tt_monitor *monitor);

/* An event as a client reads it, with its end of line: owned by the caller, NULL: out of memory. */
char *tt_monitor_text(const struct tt_monitor_event *event, bool json);
