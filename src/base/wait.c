/* Registry of waits: a fixed table of cells, each claimed by one waiting thread.
 * A cell's sequence is odd while its fields change and even while they hold, so a reader copies and
 * checks instead of locking (a seqlock with one writer per cell). */
#include "base/wait.h"

#include "base/arch/arch.h"
#include "base/process.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { POLLS = 64, PAUSES = 512, YIELDS = 1536 };

/* Where a thread looks for a free cell first: spreads threads over the table. */
static uint32_t first_cell(void)
{
    return (uint32_t)((uint64_t)pthread_self() * 0x9e3779b97f4a7c15u >> 54) % TT_WAIT_CELLS;
}

static void write_cell(struct base_wait *cell, const struct tt_wait *wait)
{
    const uint32_t seq = atomic_load_explicit(&cell->seq, memory_order_relaxed);
    atomic_store_explicit(&cell->seq, seq + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with the fence in read_cell() */
    atomic_store_explicit(&cell->owner, wait->owner, memory_order_relaxed);
    atomic_store_explicit(&cell->what, wait->what, memory_order_relaxed);
    atomic_store_explicit(&cell->peer, wait->peer, memory_order_relaxed);
    atomic_store_explicit(&cell->op_seq, wait->op_seq, memory_order_relaxed);
    for (int k = 0; k < 3; k++)
        atomic_store_explicit(&cell->call[k], wait->call[k], memory_order_relaxed);
    atomic_store_explicit(&cell->since_nsec, wait->since_nsec, memory_order_relaxed);
    atomic_store_explicit(&cell->seq, seq + 2, memory_order_release);
}

/* Copy a cell; false when no thread waits there or it changed meanwhile. */
static bool read_cell(struct base_wait *cell, struct tt_wait *wait)
{
    const uint32_t seq = atomic_load_explicit(&cell->seq, memory_order_acquire);
    wait->owner = atomic_load_explicit(&cell->owner, memory_order_relaxed);
    wait->what = atomic_load_explicit(&cell->what, memory_order_relaxed);
    wait->peer = atomic_load_explicit(&cell->peer, memory_order_relaxed);
    wait->op_seq = atomic_load_explicit(&cell->op_seq, memory_order_relaxed);
    for (int k = 0; k < 3; k++)
        wait->call[k] = atomic_load_explicit(&cell->call[k], memory_order_relaxed);
    wait->since_nsec = atomic_load_explicit(&cell->since_nsec, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return !(seq & 1) && wait->what &&
           atomic_load_explicit(&cell->seq, memory_order_relaxed) == seq;
}

int tt_wait_enter(const struct tt_wait *wait)
{
    const uint32_t first = first_cell();
    for (uint32_t i = 0; i < TT_WAIT_CELLS; i++) {
        const uint32_t at = (first + i) % TT_WAIT_CELLS;
        struct base_wait *cell = &tt_base.waits[at];
        if (atomic_load_explicit(&cell->taken, memory_order_relaxed)) continue;
        if (atomic_exchange_explicit(&cell->taken, true, memory_order_acquire)) continue;
        write_cell(cell, wait);
        return (int)at;
    }
    return -1;
}

void tt_wait_leave(int slot)
{
    static const struct tt_wait none = {0};
    if (slot < 0 || slot >= TT_WAIT_CELLS) return;
    write_cell(&tt_base.waits[slot], &none);
    atomic_store_explicit(&tt_base.waits[slot].taken, false, memory_order_release);
}

int tt_wait_list(const struct tt_member *owner, struct tt_wait *waits, int max)
{
    int count = 0;
    for (int i = 0; i < TT_WAIT_CELLS && count < max; i++) {
        if (!read_cell(&tt_base.waits[i], &waits[count])) continue;
        if (!owner || waits[count].owner == owner) count++;
    }
    return count;
}

void tt_wait_relax(uint32_t *spins, bool oversubscribed)
{
    const uint32_t spin = *spins;
    if (spin < UINT32_MAX) *spins = spin + 1;
    if (spin >= YIELDS) {
        const struct timespec interval = {.tv_nsec = tt_wait_backoff_nsec(spin - YIELDS)};
        nanosleep(&interval, NULL);
    } else if (oversubscribed || spin >= PAUSES) {
        sched_yield();
    } else if (spin >= POLLS) {
        tt_cpu_pause();
    }
}
