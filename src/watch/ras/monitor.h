/* RAS's command MONITOR: changes in the state of the processes that share a communicator with this
 * one. Private to the room; called by the watchdog's thread only. */
#pragma once

#include "watch/inquiry/inquiry.h"

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

/* Look at all peers, at most a few times a second, however often it is called. `report` is called
 * for each change since the last look; the first look reports nothing. */
void tt_monitor_look(struct tt_monitor *monitor, const struct tt_watch *watches, uint64_t now,
                     void (*report)(void *to, const struct tt_monitor_event *event), void *to);
/* Forget all peers, when no client monitors any more. */
void tt_monitor_reset(struct tt_monitor *monitor);

/* An event as a line of text or JSON for clients; owned by the caller. NULL: out of memory. */
char *tt_monitor_text(const struct tt_monitor_event *event, bool json);
