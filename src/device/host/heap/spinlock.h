/* A spinlock of one word; 0: free. For short critical sections. Private to the room. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct tt_host_spinlock {
    _Atomic uint32_t taken;
};

void tt_host_spinlock_wait(const struct tt_host_spinlock *spinlock); /* until it looks free */

static inline void tt_host_spinlock_lock(struct tt_host_spinlock *spinlock)
{
    while (atomic_exchange_explicit(&spinlock->taken, 1, memory_order_acquire)) {
        tt_host_spinlock_wait(spinlock);
    }
}

static inline void tt_host_spinlock_unlock(struct tt_host_spinlock *spinlock)
{
    atomic_store_explicit(&spinlock->taken, 0, memory_order_release);
}
