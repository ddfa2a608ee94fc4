/* What this room keeps for the process: one object, a part per file. Private to the room. */
#pragma once

#include "mem/mem.h"

#include <pthread.h>

struct tt_mem {
    struct { /* registry.c: all registries, for queries that name a window alone */
        pthread_mutex_t lock;
        struct tt_registry *first;
    } registries;
    struct { /* segment.c: the process has one segment, and maps each peer's once */
        pthread_mutex_t lock;                /* taken before the bootstrap's */
        bool hooked;                         /* the fork handlers are set */
        int users;                           /* publishers */
        struct tt_segment_record record;     /* process_id 0 before the first time */
        struct tt_fd_server *server;         /* owned; NULL: peers cannot map it */
        struct tt_segment_mapping *mappings; /* owned */
    } segments;
};

extern struct tt_mem tt_mem;
