/* Which way to copy is best depends on the machine, the number of bytes and what else runs. From
 * 16 KiB on it is learned from the copies themselves, per class of sizes (a factor of four): the
 * first copies go all ways with a look at the clock, and the later ones the way that was fastest.
 * Now and then a pair of them tries a way again. From 1 MiB on every copy is timed and what a way
 * costs follows what is seen, so that neither luck nor what ran at first decides for long; below, a
 * look at the clock is too dear for that, and some thousand copies later all is learned anew.
 * Smaller ones are too short for the clock; what the processor says of itself decides. All ways
 * give the same bytes. */
#include "bytes.h"

#include "base/arch/arch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    SAMPLES = 8,            /* of each way in a calibration */
    TRIAL = 256,            /* copies from trial to trial; a power of two */
    TRIAL_LARGE = 16,       /* the same of large ones, also a power of two: luck counts for more */
    SELDOM = 8,             /* of the trials that a slow way would have, it gets one */
    LARGE_BYTES = 1 << 20,  /* from here on each copy is timed */
    TRIAL_COPIES = 2,       /* the first one pays for how the other ways left the caches */
    REPEAT = 4096,          /* smaller copies from calibration to calibration; a power of two */
    LEAST_BYTES = 16 << 10, /* smaller ones are not learned */
    BETTER_PERCENT = 3,     /* than the C library by so much, or it is kept */
    DOWN = 2,               /* a faster copy takes so much of the way to it off the known cost, */
    UP = 16                 /* a slower one adds so much of it: it was interrupted, as a rule */
};

static unsigned class_of(size_t bytes)
{
    return (63U - (unsigned)__builtin_clzll(bytes)) / 2U;
}

static uint64_t cost_of(const struct tt_host_copy_calibration *calibration, uint32_t number)
{
    return atomic_load_explicit(&calibration->cost[number], memory_order_relaxed);
}

static void conclude(struct tt_host_copy_calibration *calibration)
{
    uint32_t best = 0;
    uint64_t least = cost_of(calibration, 0);
    least -= least * BETTER_PERCENT / 100;
    for (uint32_t number = 1; number < TT_HOST_COPY_METHODS; number++) {
        uint64_t cost = cost_of(calibration, number);
        if (cost >= least) continue;
        least = cost;
        best = number;
    }
    atomic_store_explicit(&calibration->best, best, memory_order_relaxed);
    atomic_store_explicit(&calibration->chosen, tt_host_copy_methods[best].copy,
                          memory_order_relaxed);
}

/* One copy more is known. In a calibration the least counts, later what most copies need. */
static void note(_Atomic uint64_t *cost, uint64_t seen, bool in_calibration)
{
    uint64_t known = atomic_load_explicit(cost, memory_order_relaxed);
    if (in_calibration || known == UINT64_MAX) {
        if (seen < known) atomic_store_explicit(cost, seen, memory_order_relaxed);
        return;
    }
    const uint64_t most = known + known / 4;
    const uint64_t next = seen < known  ? known - (known - seen) / DOWN
                          : seen < most ? known + (seen - known) / UP
                                        : known + (most - known) / UP;
    atomic_store_explicit(cost, next, memory_order_relaxed);
}

/* Copy one way with a look at the clock. It counts when the copy before went the same way: else it
 * pays for how that one left the caches. */
static void measure(struct tt_host_copy_calibration *calibration, uint32_t number,
                    const struct tt_host_bytes *job, bool in_calibration)
{
    const struct tt_host_copy_method *way = &tt_host_copy_methods[number];
    uint32_t last = atomic_exchange_explicit(&calibration->last, number, memory_order_relaxed);
    if (job->bytes < way->least_bytes || !way->is_here()) {
        memcpy(job->dst, job->src, job->bytes);
        return;
    }
    uint64_t start = tt_cpu_ticks();
    way->copy(job->dst, job->src, job->bytes);
    uint64_t ticks = ((tt_cpu_ticks() - start) << 16) / job->bytes;
    if (last == number) note(&calibration->cost[number], ticks, in_calibration);
}

/* The turn-th copy of a calibration. */
static void learn(struct tt_host_copy_calibration *calibration, uint32_t turn,
                  const struct tt_host_bytes *job)
{
    for (int way = 0; turn == 0 && way < TT_HOST_COPY_METHODS; way++) {
        atomic_store_explicit(&calibration->cost[way], UINT64_MAX, memory_order_relaxed);
    }
    measure(calibration, turn / SAMPLES, job, true);
    if (turn == SAMPLES * TT_HOST_COPY_METHODS - 1) conclude(calibration);
}

/* Which way a trial goes: those that were much slower get one seldom. */
static uint32_t candidate(const struct tt_host_copy_calibration *calibration, uint32_t trial)
{
    uint32_t number = trial % TT_HOST_COPY_METHODS;
    uint32_t best = atomic_load_explicit(&calibration->best, memory_order_relaxed);
    uint64_t least = cost_of(calibration, best);
    bool hopeless = cost_of(calibration, number) > least + least / 4;
    return hopeless && trial / TT_HOST_COPY_METHODS % SELDOM ? best : number;
}

static void copy_timed(struct tt_host_copy_calibration *calibration, uint32_t number,
                       const struct tt_host_bytes *job)
{
    measure(calibration, number, job, false);
    conclude(calibration);
}

static void copy_large(struct tt_host_copy_calibration *calibration, uint32_t count,
                       const struct tt_host_bytes *job)
{
    if (count < SAMPLES * TT_HOST_COPY_METHODS) {
        learn(calibration, count, job);
    } else if ((count & (TRIAL_LARGE - 1)) < TRIAL_COPIES) {
        copy_timed(calibration, candidate(calibration, count / TRIAL_LARGE), job);
    } else {
        copy_timed(calibration, atomic_load_explicit(&calibration->best, memory_order_relaxed),
                   job);
    }
}

/* 16 KiB and more of ranges that do not overlap. */
static void copy_learned(const struct tt_host_bytes *job, size_t whole)
{
    struct tt_host_copy_calibration *calibration = &tt_host.copies.calibrations[class_of(whole)];
    uint32_t count = atomic_load_explicit(&calibration->count, memory_order_relaxed);
    atomic_store_explicit(&calibration->count, count + 1, memory_order_relaxed);
    uint32_t turn = count & (REPEAT - 1);
    if (job->bytes >= LARGE_BYTES) {
        copy_large(calibration, count, job);
    } else if (turn < SAMPLES * TT_HOST_COPY_METHODS) {
        learn(calibration, turn, job);
    } else if ((turn & (TRIAL - 1)) < TRIAL_COPIES) {
        copy_timed(calibration, candidate(calibration, turn / TRIAL), job);
    } else {
        tt_host_copy_fn *chosen = atomic_load_explicit(&calibration->chosen, memory_order_relaxed);
        if (!chosen)
            chosen = tt_host_copy_methods[0].copy; /* the calibration goes on in another thread */
        chosen(job->dst, job->src, job->bytes);
    }
}

void tt_host_bytes_copy(void *dst, const void *src, size_t bytes, size_t whole)
{
    uintptr_t apart = (uintptr_t)dst - (uintptr_t)src;
    if (apart < bytes || 0 - apart < bytes) {
        memmove(dst, src, bytes);
    } else if (bytes >= LEAST_BYTES) {
        copy_learned(&(struct tt_host_bytes){dst, src, bytes}, whole);
    } else if (bytes) {
        tt_host_copy_short(dst, src, bytes);
    }
}
