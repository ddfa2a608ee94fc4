/* The sums of mac.c as any processor makes them. */
#include "transport/mac.h"

#include <string.h>

void tt_mac_sum(const uint32_t *key, const unsigned char *bytes, size_t len_bytes,
                uint64_t sums_out[2])
{
    uint64_t first = 0, second = 0;
    for (size_t i = 0; i < len_bytes / 4; i += 2) {
        uint32_t word[2];
        memcpy(word, bytes + 4 * i, sizeof(word));
        const uint32_t *shifted = key + i + TT_MAC_SHIFT_WORDS;
        first += (uint64_t)(uint32_t)(word[0] + key[i]) * (uint32_t)(word[1] + key[i + 1]);
        second += (uint64_t)(uint32_t)(word[0] + shifted[0]) * (uint32_t)(word[1] + shifted[1]);
    }
    sums_out[0] = first;
    sums_out[1] = second;
}
