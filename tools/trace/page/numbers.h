/* Whole numbers as text: 7 bits a byte, the lowest first, in base64. data.js reads them. */
#pragma once

#include "../write/out.h"

struct numbers {
    struct out *out; /* borrowed */
    uint32_t bits;
    int bytes; /* that wait in bits */
    size_t used;
    char text[1024];
};

void numbers_put(struct numbers *to, uint64_t number);
/* Small numbers of either sign stay small. */
void numbers_put_signed(struct numbers *to, int64_t number);
/* Write what waits; more may follow as a text of its own. */
void numbers_end(struct numbers *to);
