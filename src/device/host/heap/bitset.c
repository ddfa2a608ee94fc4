/* Levels of bits: bit i of level k+1 says that word i of level k is not empty. Both are
 * stored bottom up, so a reader may be led to a word that was just emptied: it then looks before
 * it, and never waits. */
#include "bitset.h"

static size_t words_of(size_t limit)
{
    return (limit + 63) / 64;
}

size_t tt_host_bitset_bytes(size_t limit)
{
    size_t total = 0;
    do {
        limit = words_of(limit);
        total += limit;
    } while (limit > 1);
    return total * sizeof(uint64_t);
}

void tt_host_bitset_init(struct tt_host_bitset *set, void *zeroed, size_t limit)
{
    _Atomic uint64_t *next = zeroed;
    set->levels = 0;
    do {
        limit = words_of(limit);
        set->words[set->levels++] = next;
        next += limit;
    } while (limit > 1);
}

void tt_host_bitset_add(struct tt_host_bitset *set, size_t n)
{
    for (int level = 0; level < set->levels; level++, n /= 64) {
        _Atomic uint64_t *word = &set->words[level][n / 64];
        uint64_t before = atomic_load_explicit(word, memory_order_relaxed);
        /* release: a thread that finds the member sees what was stored for it before */
        atomic_store_explicit(word, before | UINT64_C(1) << n % 64, memory_order_release);
        if (before) return;
    }
}

void tt_host_bitset_remove(struct tt_host_bitset *set, size_t n)
{
    for (int level = 0; level < set->levels; level++, n /= 64) {
        _Atomic uint64_t *word = &set->words[level][n / 64];
        uint64_t after =
            atomic_load_explicit(word, memory_order_relaxed) & ~(UINT64_C(1) << n % 64);
        atomic_store_explicit(word, after, memory_order_release);
        if (after) return;
    }
}

static size_t top_bit(uint64_t word)
{
    return 63 - (size_t)__builtin_clzll(word);
}

/* The largest number below member `n` of `level`; *n_out: it, or the member that was emptied. */
static bool descend(const struct tt_host_bitset *set, int level, size_t *n_out)
{
    size_t n = *n_out;
    for (size_t span = 1; level > 0; level--) {
        uint64_t word = atomic_load_explicit(&set->words[level - 1][n], memory_order_acquire);
        if (!word) {
            for (int below = level; below > 0; below--)
                span *= 64;
            *n_out = n * span; /* no number of its stays: look before it */
            return false;
        }
        n = n * 64 + top_bit(word);
    }
    *n_out = n;
    return true;
}

/* One look; false: look again from *n down. */
static bool look(const struct tt_host_bitset *set, size_t *n)
{
    size_t at = *n;
    uint64_t keep = UINT64_MAX >> (63 - at % 64); /* on the lowest level n itself counts */
    for (int level = 0; level < set->levels; level++) {
        uint64_t word =
            atomic_load_explicit(&set->words[level][at / 64], memory_order_acquire) & keep;
        if (word) {
            at = at / 64 * 64 + top_bit(word);
            bool found = descend(set, level, &at);
            *n = found ? at : at - 1; /* at 0: wraps to "none" */
            return found || at == 0;
        }
        at /= 64;
        keep = (UINT64_C(1) << at % 64) - 1; /* above, only what lies before */
    }
    *n = SIZE_MAX;
    return true;
}

size_t tt_host_bitset_floor(const struct tt_host_bitset *set, size_t n)
{
    while (!look(set, &n)) {
    }
    return n;
}
