/* The sums of mac.c as any processor makes them, at some 1 GB/s. */
#include "transport/net/mac.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* Every fifth bit: of 13 ones at most, so that what adds up at one of them never reaches the next
 * one. */
enum { STRIDE = 5 };

static uint64_t comb(int first)
{
    return (uint64_t)0x1084210842108421u << first;
}

static wide wide_comb(int first)
{
    return ((wide)0x2108421084210842u << 64 | 0x1084210842108421u) << first;
}

/* Polynomials over GF(2) times each other, by products of numbers: what these carry stays in the
 * gaps between the bits. */
static wide product(uint64_t a, uint64_t b)
{
    wide sum = 0;
    for (int to = 0; to < STRIDE; to++) {
        wide part = 0;
        for (int i = 0; i < STRIDE; i++)
            part ^= (wide)(a & comb(i)) * (b & comb((to + STRIDE - i) % STRIDE));
        sum |= part & wide_comb(to);
    }
    return sum;
}

void tt_mac_sum(const uint64_t *key, const unsigned char *bytes, size_t len_bytes,
                uint64_t sum_out[2])
{
    wide sum = 0;
    for (size_t i = 0; i < len_bytes / 8; i += 2) {
        uint64_t word[2];
        memcpy(word, bytes + 8 * i, sizeof(word));
        sum ^= product(word[0] ^ key[i], word[1] ^ key[i + 1]);
    }
    sum_out[0] = (uint64_t)sum;
    sum_out[1] = (uint64_t)(sum >> 64);
}
