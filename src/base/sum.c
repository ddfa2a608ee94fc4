/* Lanes of words are added up, and so are these sums, as in Fletcher's, so that words that changed
 * places are found as well; additions alone keep up with memory. The lanes are folded by odd
 * multipliers, each of which loses nothing. */
#include "base/sum.h"

#include <string.h>

enum { LANES = 16, BLOCK_BYTES = LANES * 4 };

struct lanes {
    uint32_t words[LANES], sums[LANES];
};

static uint64_t fold(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

static void add_block(struct lanes *restrict lanes, const unsigned char *restrict at)
{
    uint32_t block[LANES];
    memcpy(block, at, sizeof(block));
    for (int i = 0; i < LANES; i++) {
        lanes->words[i] += block[i];
    }
    for (int i = 0; i < LANES; i++) {
        lanes->sums[i] += lanes->words[i];
    }
}

/* hot */
uint32_t tt_sum(const void *bytes, size_t len_bytes)
{
    const unsigned char *at = bytes;
    struct lanes lanes = {{0}, {0}};
    uint64_t hash = fold(0, len_bytes), last = 0;
    size_t rest = len_bytes;
    for (; rest >= BLOCK_BYTES; at += BLOCK_BYTES, rest -= BLOCK_BYTES) {
        add_block(&lanes, at);
    }
    for (int i = 0; i < LANES && len_bytes >= BLOCK_BYTES; i++) {
        hash = fold(hash, (uint64_t)lanes.sums[i] << 32 | lanes.words[i]);
    }
    for (; rest >= sizeof(last); at += sizeof(last), rest -= sizeof(last)) {
        memcpy(&last, at, sizeof(last));
        hash = fold(hash, last);
    }
    last = 0;
    memcpy(&last, at, rest);
    return (uint32_t)(fold(hash, last) >> 16);
}
