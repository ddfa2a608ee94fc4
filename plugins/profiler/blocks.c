/* TUTTI_TRACE_OUTPUTS=records: what the rings have, as it is, instead of lines; `tutti trace` reads
 * it. A block is a line `records` and as many words of 8 bytes as it says, the lowest byte first:
 * whole records as record.h describes them, but for the time in their first word, which is
 * nanoseconds since the line's `base`. A text is defined by a line `word` before the block that has
 * its number; the states' names stand at the beginning, with numbers from TRACE_STATE_WORDS on. */
#include "aside.h"
#include "trace.h"

#include <endian.h>

void trace_block_begin_file(uint64_t base_nsec)
{
    struct trace_block *block = &trace_process.block;
    block->base_nsec = base_nsec;
    block->used = block->words_known = 0;
    for (uint32_t state = 0; state < TRACE_STATES_MOST; state++) {
        const char *name = trace_state_name(state);
        if (!name) continue;
        trace_say("{\"t\":\"word\",\"n\":%u,\"name\":\"%s\"}\n", TRACE_STATE_WORDS + state, name);
    }
}

void trace_block_end(const struct trace_ring *ring)
{
    struct trace_process *all = &trace_process;
    struct trace_block *block = &all->block;
    if (block->used == 0) return;
    /* pairs with the release store of who made a word: it came before the record that has it */
    uint32_t words = atomic_load_explicit(&all->word_count, memory_order_acquire);
    for (; block->words_known < words; block->words_known++) {
        trace_say("{\"t\":\"word\",\"n\":%u,\"name\":\"%s\"}\n", block->words_known + 1,
                  all->words[block->words_known]);
    }
    trace_say("{\"t\":\"records\",\"tid\":%d,\"id\":%llu,\"base\":%llu,\"words\":%zu}\n", ring->tid,
              (unsigned long long)block->first_id, (unsigned long long)block->base_nsec,
              block->used);
    trace_put((const char *)block->words, block->used * sizeof(block->words[0]));
    block->used = 0;
}

size_t trace_block_add(const struct trace_ring *ring, const struct trace_place *place,
                       uint64_t nsec)
{
    struct trace_process *all = &trace_process;
    struct trace_block *block = &all->block;
    uint64_t first = trace_word_of(place, 0), count = first & TRACE_VALUED ? 3 : 2;
    uint64_t kind = first & (TRACE_VALUED - 1);
    if (block->used + TRACE_RECORD_WORDS > TRACE_BLOCK_WORDS) trace_block_end(ring);
    if (block->used == 0) block->first_id = ring->reported_id;
    if (kind == TRACE_START)
        count = 3 + (uint64_t)__builtin_popcountll(trace_word_of(place, 2) >> TRACE_FIELD_SHIFT);
    uint64_t since = nsec > block->base_nsec ? nsec - block->base_nsec : 0;
    uint64_t *to = &block->words[block->used];
    to[0] = htole64(since << TRACE_TIME_SHIFT | (first & (((uint64_t)1 << TRACE_TIME_SHIFT) - 1)));
    for (uint64_t k = 1; k < count; k++)
        to[k] = htole64(trace_word_of(place, k));
    block->used += count;
    all->written[kind]++;
    return count;
}
