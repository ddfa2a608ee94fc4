/* Which way to copy is best depends on the machine, the number of bytes and what else runs. From
 * 16 KiB on it is learned from the copies themselves: of each class of sizes (a factor of four) the
 * first copies go all ways with a look at the clock, and the later ones the way that was fastest.
 * Now and then a pair of them tries a way again, and some thousand copies later all is
 * forgotten and learned anew: what memory was cold, or who else was running then, is not so now.
 * Smaller ones are too short for the clock; what the processor says of itself decides. All ways
 * give the same bytes. */
#include "bytes.h"

#include "base/arch/arch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    SAMPLES = 8,            /* of each way in a lesson */
    TRIAL = 256,            /* copies from trial to trial; a power of two */
    TRIAL_LARGE = 16,       /* the same of large ones, also a power of two: luck counts for more */
    SELDOM = 8,             /* of the trials that a slow way would have, it gets one */
    SPREAD_BYTES = 8 << 20, /* from here on the ways of a lesson take turns */
    TRIAL_COPIES = 2,       /* the first one pays for how the other ways left the caches */
    REPEAT = 4096,          /* copies from lesson to lesson; a power of two */
    LEAST_BYTES = 16 << 10, /* smaller ones are not learned */
    BETTER_PERCENT = 3      /* than the C library by so much, or it is kept */
};

static unsigned class_of(size_t bytes)
{
    return (63U - (unsigned)__builtin_clzll(bytes)) / 2U;
}

static void conclude(struct host_copy_lesson *lesson)
{
    uint32_t best = 0;
    uint64_t least = atomic_load_explicit(&lesson->least[0], memory_order_relaxed);
    least -= least * BETTER_PERCENT / 100;
    for (uint32_t way = 1; way < HOST_COPY_WAYS; way++) {
        uint64_t ticks = atomic_load_explicit(&lesson->least[way], memory_order_relaxed);
        if (ticks >= least) continue;
        least = ticks;
        best = way;
    }
    atomic_store_explicit(&lesson->best, best, memory_order_relaxed);
}

/* Copy one way with a look at the clock. */
static void measure(struct host_copy_lesson *lesson, uint32_t number, void *dst, const void *src,
                    size_t bytes)
{
    const struct host_copy_way *way = &host_copy_ways[number];
    _Atomic uint64_t *least = &lesson->least[number];
    if (bytes < way->least_bytes || !way->is_here()) {
        memcpy(dst, src, bytes);
        return;
    }
    uint64_t start = tt_cpu_ticks();
    way->copy(dst, src, bytes);
    uint64_t ticks = ((tt_cpu_ticks() - start) << 16) / bytes;
    if (ticks < atomic_load_explicit(least, memory_order_relaxed))
        atomic_store_explicit(least, ticks, memory_order_relaxed);
}

/* The turn-th copy of a lesson. Small ones go one way several times in a row, which leaves the
 * caches as that way finds them best; large ones take turns, so that no way has all the bad luck.
 */
static void learn(struct host_copy_lesson *lesson, uint32_t turn, void *dst, const void *src,
                  size_t bytes)
{
    uint32_t number = bytes < SPREAD_BYTES ? turn / SAMPLES : turn % HOST_COPY_WAYS;
    for (int way = 0; turn == 0 && way < HOST_COPY_WAYS; way++) {
        atomic_store_explicit(&lesson->least[way], UINT64_MAX, memory_order_relaxed);
    }
    measure(lesson, number, dst, src, bytes);
    if (turn == SAMPLES * HOST_COPY_WAYS - 1) conclude(lesson);
}

/* Which way a trial goes: those that were much slower get one seldom. */
static uint32_t candidate(const struct host_copy_lesson *lesson, uint32_t trial)
{
    uint32_t number = trial % HOST_COPY_WAYS;
    uint32_t best = atomic_load_explicit(&lesson->best, memory_order_relaxed);
    uint64_t least = atomic_load_explicit(&lesson->least[best], memory_order_relaxed);
    bool hopeless =
        atomic_load_explicit(&lesson->least[number], memory_order_relaxed) > least + least / 4;
    return hopeless && trial / HOST_COPY_WAYS % SELDOM ? best : number;
}

void host_bytes_copy(void *dst, const void *src, size_t bytes, size_t whole)
{
    uintptr_t apart = (uintptr_t)dst - (uintptr_t)src;
    if (apart < bytes || 0 - apart < bytes) {
        memmove(dst, src, bytes);
        return;
    }
    if (bytes < LEAST_BYTES) {
        if (bytes) host_copy_short(dst, src, bytes);
        return;
    }
    struct host_copy_lesson *lesson = &tt_host.copies.lessons[class_of(whole)];
    uint32_t count = atomic_load_explicit(&lesson->count, memory_order_relaxed);
    atomic_store_explicit(&lesson->count, count + 1, memory_order_relaxed);
    uint32_t turn = count & (REPEAT - 1);
    if (turn < SAMPLES * HOST_COPY_WAYS) {
        learn(lesson, turn, dst, src, bytes);
        return;
    }
    uint32_t interval = bytes < SPREAD_BYTES ? TRIAL : TRIAL_LARGE;
    if ((turn & (interval - 1)) < TRIAL_COPIES) {
        measure(lesson, candidate(lesson, turn / interval), dst, src, bytes);
        conclude(lesson);
        return;
    }
    uint32_t best = atomic_load_explicit(&lesson->best, memory_order_relaxed);
    const struct host_copy_way *way = &host_copy_ways[best];
    if (bytes < way->least_bytes) way = &host_copy_ways[0];
    way->copy(dst, src, bytes);
}
