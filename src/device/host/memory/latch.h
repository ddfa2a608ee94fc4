/* A lock of one word for what is held for moments: one locked instruction takes it, a store gives
 * it back, zero is open. Private to the room. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct host_latch {
    _Atomic uint32_t taken;
};

void host_latch_wait(const struct host_latch *latch); /* until it looks open */

static inline void host_latch_lock(struct host_latch *latch)
{
    while (atomic_exchange_explicit(&latch->taken, 1, memory_order_acquire)) {
        host_latch_wait(latch);
    }
}

static inline void host_latch_unlock(struct host_latch *latch)
{
    atomic_store_explicit(&latch->taken, 0, memory_order_release);
}
