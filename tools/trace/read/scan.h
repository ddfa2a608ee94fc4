/* Texts and numbers of lines, eight bytes at once. All of it may read SCAN_SLACK_BYTES behind what
 * it is for, and nothing here goes beyond a '\n', which stands in no number and in no text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SCAN_WORDS = 3, SCAN_SLACK_BYTES = 8 * SCAN_WORDS };

struct scan_text { /* of at most 24 bytes, as words and which of their bytes count */
    uint64_t words[SCAN_WORDS], masks[SCAN_WORDS];
    uint8_t bytes;
};

/* The first eight digits of a number, which those of the next one at its place often are, and what
 * they are worth. */
struct scan_head {
    uint64_t digits, value;
};

static inline uint64_t scan_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

static inline bool scan_begins(const char *at, const struct scan_text *text)
{
    uint64_t other = (scan_word(at) ^ text->words[0]) & text->masks[0];
    if (text->bytes > 8) {
        other |= (scan_word(at + 8) ^ text->words[1]) & text->masks[1];
        other |= (scan_word(at + 16) ^ text->words[2]) & text->masks[2];
    }
    return other == 0;
}

/* False: it is too long. */
static inline bool scan_set(struct scan_text *text, const char *from, size_t bytes)
{
    char padded[8 * SCAN_WORDS] = {0}, mask[8 * SCAN_WORDS] = {0};
    if (bytes > sizeof(padded)) return false;
    memcpy(padded, from, bytes);
    memset(mask, 0xff, bytes);
    memcpy(text->words, padded, sizeof(text->words));
    memcpy(text->masks, mask, sizeof(text->masks));
    text->bytes = (uint8_t)bytes;
    return true;
}

/* A place by the first bytes of a text up to its quote, of which those behind it do not count. */
static inline uint32_t scan_place(const char *at)
{
    uint64_t word = scan_word(at), quotes = word ^ 0x2222222222222222u;
    quotes = (quotes - 0x0101010101010101u) & ~quotes & 0x8080808080808080u;
    if (quotes) {
        word &= quotes ^ (quotes - 1);
    } else {
        word ^= scan_word(at + 8) << 7; /* texts that are longer have their ends there or later */
    }
    return (uint32_t)(word * 0x9e3779b97f4a7c15u >> 48);
}

static inline bool scan_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The high bits of the bytes that are no digits. */
static inline uint64_t scan_others(uint64_t word)
{
    uint64_t digits = word ^ 0x3030303030303030u; /* 0..9 where they are */
    return ((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u;
}

static inline uint64_t scan_eight(uint64_t word)
{
    word = (word & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (word & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

/* Up to seven digits more behind those that are worth `sum`; `others`: as of scan_others(), not 0.
 */
static inline const char *scan_last(const char *at, uint64_t word, uint64_t others, uint64_t sum,
                                    uint64_t *number)
{
    static const uint32_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    int bits = __builtin_ctzll(others) & ~7; /* of the digits, which move behind zeros */
    *number = sum * powers[bits / 8] + scan_eight(word << (56 - bits) << 8);
    return at + bits / 8;
}

/* At most 19 digits. NULL: no such number. */
static inline const char *scan_number(struct scan_head *head, const char *at, uint64_t *number)
{
    enum { DIGITS_MOST = 19, EIGHT = 100000000 };
    uint64_t word = scan_word(at), others;
    if (word != head->digits) {
        unsigned int first = (unsigned char)at[0] - '0', second = (unsigned char)at[1] - '0';
        if (first > 9) return NULL;
        if (second > 9) {
            *number = first;
            return at + 1;
        }
        others = scan_others(word);
        if (others) return scan_last(at, word, others, 0, number);
        *head = (struct scan_head){word, scan_eight(word)};
    }
    word = scan_word(at + 8);
    others = scan_others(word);
    if (others) return scan_last(at + 8, word, others, head->value, number);
    uint64_t sum = head->value * EIGHT + scan_eight(word);
    word = scan_word(at + 16);
    others = scan_others(word);
    if (!others) return NULL;
    const char *end = scan_last(at + 16, word, others, sum, number);
    return end - at <= DIGITS_MOST ? end : NULL;
}
