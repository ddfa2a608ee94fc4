/* Blocks of 8 KiB are hashed to 16 bytes each by a sum of products: each pair of words of 64 bits,
 * keyed by exclusive or, is multiplied as polynomials over GF(2) (NH of UMAC without carries;
 * Lemire and Kaser, "Faster 64-bit universal hashing using carry-less multiplications"), so that
 * two messages of one length collide with a probability of 2^-64 over the key. That keeps up with
 * memory. SipHash-2-4 makes a tag of these sums, the place and the length. Of long messages it
 * first compresses 64 sums at a time to one word, under a key of its own, so that what it reads
 * stays on the stack. Words are little-endian, as the wire's are on all machines that we run on. */
#include "transport/net/mac.h"

#include "base/mem.h"

#include <sodium.h>
#include <string.h>

_Static_assert(crypto_shorthash_KEYBYTES == 16 && crypto_shorthash_BYTES == 8, "SipHash-2-4");
_Static_assert(crypto_stream_chacha20_KEYBYTES == TT_MAC_SEED_BYTES, "the seed is its key");

enum { BLOCK_BYTES = TT_MAC_BLOCK_BYTES, HEAD_WORDS = TT_MAC_CONTEXT_WORDS + 1, PAIRS = 64 };
enum { WHOLE_BYTES = 64 }; /* up to here SipHash reads the message itself */

struct text { /* what the tag is made of */
    uint64_t words[HEAD_WORDS + 2 * PAIRS];
    size_t nwords;
};
_Static_assert(2 * PAIRS * 8 >= WHOLE_BYTES, "a short message fits");

void tt_mac_key_init(struct tt_mac_key *key, const unsigned char seed[TT_MAC_SEED_BYTES])
{
    static const unsigned char nonce[crypto_stream_chacha20_NONCEBYTES] = "tuttiMA";
    crypto_stream_chacha20((unsigned char *)&key->secret, sizeof(key->secret), nonce, seed);
    key->sum = tt_mac_sums()[0];
}

static uint64_t siphash(const unsigned char *key, const void *bytes, size_t len_bytes)
{
    unsigned char tag[8];
    uint64_t word;
    crypto_shorthash(tag, bytes, len_bytes, key);
    memcpy(&word, tag, sizeof(word));
    return word;
}

static void add_block(const struct tt_mac_key *key, struct text *text, const unsigned char *at,
                      size_t len_bytes)
{
    if (text->nwords == TT_LEN(text->words)) {
        uint64_t *pairs = text->words + HEAD_WORDS;
        pairs[0] = siphash(key->secret.compress, pairs, sizeof(*pairs) * 2 * PAIRS);
        pairs[1] = 0;
        text->nwords = HEAD_WORDS + 2;
    }
    key->sum(key->secret.words, at, len_bytes, &text->words[text->nwords]);
    text->nwords += 2;
}

/* The end of a message is filled up with zeros to a step: the length is part of the tag. */
static void add_rest(const struct tt_mac_key *key, struct text *text, const unsigned char *at,
                     size_t len_bytes)
{
    unsigned char block[BLOCK_BYTES];
    size_t padded = tt_round_up(len_bytes, TT_MAC_STEP_BYTES);
    memcpy(block, at, len_bytes);
    memset(block + len_bytes, 0, padded - len_bytes);
    add_block(key, text, block, padded);
}

uint64_t tt_mac(const struct tt_mac_key *key, const uint64_t context[TT_MAC_CONTEXT_WORDS],
                const void *bytes, size_t len_bytes)
{
    const unsigned char *at = bytes;
    struct text text; /* a short message fills little of it */
    text.nwords = HEAD_WORDS;
    memcpy(text.words, context, sizeof(*context) * TT_MAC_CONTEXT_WORDS);
    text.words[TT_MAC_CONTEXT_WORDS] = len_bytes;
    if (len_bytes <= WHOLE_BYTES) {
        if (len_bytes) memcpy(text.words + HEAD_WORDS, at, len_bytes);
        return siphash(key->secret.last, text.words, sizeof(*text.words) * HEAD_WORDS + len_bytes);
    }
    size_t rest = len_bytes;
    for (; rest >= BLOCK_BYTES; at += BLOCK_BYTES, rest -= BLOCK_BYTES)
        add_block(key, &text, at, BLOCK_BYTES);
    if (rest) add_rest(key, &text, at, rest);
    return siphash(key->secret.last, text.words, sizeof(*text.words) * text.nwords);
}
