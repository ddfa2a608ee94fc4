/* A lock of one word for what is held for moments: one locked instruction takes it, a store gives
 * it back, zero is open. Whoever finds it taken gives the core to its holder. Private to the room.
 */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

struct host_latch {
    _Atomic uint32_t taken;
};

static inline void host_latch_lock(struct host_latch *latch)
{
    while (atomic_exchange_explicit(&latch->taken, 1, memory_order_acquire)) {
        while (atomic_load_explicit(&latch->taken, memory_order_relaxed)) {
            sched_yield();
        }
    }
}

static inline void host_latch_unlock(struct host_latch *latch)
{
    atomic_store_explicit(&latch->taken, 0, memory_order_release);
}
