/* Three bytes are four letters. */
#include "numbers.h"

static void put_text(struct numbers *to, int letters)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int k = 0; k < letters; k++)
        to->text[to->used++] = digits[to->bits >> (18 - 6 * k) & 63];
    if (to->used < sizeof(to->text) - 8 && letters == 4) return;
    to->text[to->used] = 0;
    out_text(to->out, to->text);
    to->used = 0;
}

void numbers_put(struct numbers *to, uint64_t number)
{
    do {
        uint32_t byte = (uint32_t)(number & 127) | (number > 127 ? 128u : 0u);
        to->bits |= byte << (16 - 8 * to->bytes);
        if (++to->bytes == 3) {
            put_text(to, 4);
            to->bits = 0;
            to->bytes = 0;
        }
        number >>= 7;
    } while (number);
}

void numbers_put_signed(struct numbers *to, int64_t number)
{
    numbers_put(to, number < 0 ? ((0 - (uint64_t)number) << 1) - 1 : (uint64_t)number << 1);
}

void numbers_end(struct numbers *to)
{
    put_text(to, to->bytes ? to->bytes + 1 : 0);
    to->bits = 0;
    to->bytes = 0;
}
