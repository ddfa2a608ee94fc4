/* What this room keeps for the process: one object, a part per file. Private to the room. */
#pragma once

#include <pthread.h>

struct tt_plan;

struct tt_plans {
    struct { /* plan.c: plans whose communicators have ended; any thread may look at them */
        pthread_mutex_t lock;
        struct tt_plan *oldest, *newest; /* by next_ended */
        int count;
        struct tt_plan *kept; /* by next_ended */
    } retired;
    struct { /* group.c: frees the group of a thread that ends */
        pthread_once_t once;
        pthread_key_t key;
    } group_end;
};

extern struct tt_plans tt_plans;
