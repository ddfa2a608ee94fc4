/* A buffer in front of a stream: numbers and constants take no detour through printf. */
#include "out.h"

#include "base/file.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static void flush(struct out *out)
{
    (void)fwrite(out->buffer, 1, out->used, out->file);
    out->used = 0;
}

static void put(struct out *out, const char *text, size_t bytes)
{
    if (out->used + bytes > OUT_BYTES) flush(out);
    memcpy(out->buffer + out->used, text, bytes);
    out->used += bytes;
}

bool out_open(struct out *out, const char *path)
{
    out->used = 0;
    out->file = path && strcmp(path, "-") != 0 ? tt_file_create(path) : stdout;
    if (!out->file) (void)fprintf(stderr, "tutti trace: %s: %s\n", path, strerror(errno));
    return out->file != NULL;
}

bool out_close(struct out *out, const char *path)
{
    flush(out);
    bool good = fflush(out->file) == 0 && !ferror(out->file);
    int error = errno;
    if (out->file == stdout) return good; /* main() reports what is wrong with it */
    good = fclose(out->file) == 0 && good;
    if (!good) (void)fprintf(stderr, "tutti trace: %s: %s\n", path, strerror(error));
    return good;
}

void out_bytes(struct out *out, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0;) {
        size_t piece = count < OUT_BYTES ? count : OUT_BYTES;
        put(out, at, piece);
        at += piece;
        count -= piece;
    }
}

void out_text(struct out *out, const char *text)
{
    put(out, text, strnlen(text, OUT_PIECE_BYTES));
}

void out_number(struct out *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number);
    put(out, digits + at, sizeof(digits) - at);
}

void out_signed(struct out *out, int64_t number)
{
    if (number < 0) put(out, "-", 1);
    out_number(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void out_usec(struct out *out, int64_t nsec)
{
    uint64_t all = nsec < 0 ? 0 - (uint64_t)nsec : (uint64_t)nsec, part = all % 1000;
    const char decimals[4] = {'.', (char)('0' + (int)(part / 100)),
                              (char)('0' + (int)(part / 10 % 10)), (char)('0' + (int)(part % 10))};
    if (nsec < 0) put(out, "-", 1);
    out_number(out, all / 1000);
    put(out, decimals, sizeof(decimals));
}

void out_print(struct out *out, const char *fmt, ...)
{
    char text[OUT_PIECE_BYTES];
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    out_text(out, text);
}
