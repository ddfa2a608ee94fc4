/* Text that is written piece by piece, fast: a full disk is noticed at the end, by out_close(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OUT_BYTES = 1 << 16, OUT_PIECE_BYTES = 4096, OUT_ID_BYTES = 17 };
struct out {
    FILE *file;
    size_t used;
    char buffer[OUT_BYTES];
};

/* NULL or "-" is standard output. False: it cannot be opened, and said. */
bool out_open(struct out *out, const char *path);
/* False: not all of it was written, and said. */
bool out_close(struct out *out, const char *path);

/* What the buffer has no room for: out_bytes() calls it. */
void out_more(struct out *out, const void *bytes, size_t count);

/* Inline, so that the length of a constant is known where it is written. */
static inline void out_bytes(struct out *out, const void *bytes, size_t count)
{
    if (count > OUT_BYTES - out->used) {
        out_more(out, bytes, count);
        return;
    }
    memcpy(out->buffer + out->used, bytes, count);
    out->used += count;
}
static inline void out_text(struct out *out, const char *text)
{
    out_bytes(out, text, strlen(text));
}
void out_number(struct out *out, uint64_t number);
void out_signed(struct out *out, int64_t number);
/* Nanoseconds as microseconds with three decimals. */
void out_usec(struct out *out, int64_t nsec);
/* The 16 hex digits that name a communicator, and a NUL. */
void out_id_text(char text[static OUT_ID_BYTES], uint64_t id);
/* printf of less than OUT_PIECE_BYTES. */
void out_print(struct out *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
