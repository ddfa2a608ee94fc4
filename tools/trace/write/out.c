/* A buffer in front of a stream: numbers and constants take no detour through printf. */
#include "out.h"

#include "base/system/file.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const char digit_pairs[] = "0001020304050607080910111213141516171819"
                                  "2021222324252627282930313233343536373839"
                                  "4041424344454647484950515253545556575859"
                                  "6061626364656667686970717273747576777879"
                                  "8081828384858687888990919293949596979899";

static void flush(struct out *out)
{
    (void)fwrite(out->buffer, 1, out->used, out->file);
    out->used = 0;
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

void out_more(struct out *out, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0;) {
        if (out->used == OUT_BYTES) flush(out);
        size_t room = OUT_BYTES - out->used, piece = count < room ? count : room;
        memcpy(out->buffer + out->used, at, piece);
        out->used += piece;
        at += piece;
        count -= piece;
    }
}

/* Room for `bytes` more, which the caller adds to `used`. */
static char *reserve(struct out *out, size_t bytes)
{
    if (bytes > OUT_BYTES - out->used) flush(out);
    return out->buffer + out->used;
}

static size_t count_digits(uint64_t number)
{
    size_t count = 1;
    for (; number >= 10000; number /= 10000)
        count += 4;
    return count + (number >= 10) + (number >= 100) + (number >= 1000);
}

void out_number(struct out *out, uint64_t number)
{
    size_t count = count_digits(number);
    char *at = reserve(out, count) + count;
    out->used += count;
    for (; number >= 100; number /= 100) {
        at -= 2;
        memcpy(at, digit_pairs + number % 100 * 2, 2);
    }
    if (number >= 10) {
        memcpy(at - 2, digit_pairs + number * 2, 2);
    } else {
        at[-1] = (char)('0' + (int)number);
    }
}

void out_signed(struct out *out, int64_t number)
{
    if (number < 0) out_bytes(out, "-", 1);
    out_number(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void out_usec(struct out *out, int64_t nsec)
{
    enum { DECIMALS_BYTES = 4 };
    uint64_t all = nsec < 0 ? 0 - (uint64_t)nsec : (uint64_t)nsec, part = all % 1000;
    if (nsec < 0) out_bytes(out, "-", 1);
    out_number(out, all / 1000);
    char *decimals = reserve(out, DECIMALS_BYTES);
    decimals[0] = '.';
    decimals[1] = (char)('0' + (int)(part / 100));
    memcpy(decimals + 2, digit_pairs + part % 100 * 2, 2);
    out->used += DECIMALS_BYTES;
}

void out_id_text(char text[static OUT_ID_BYTES], uint64_t id)
{
    for (int k = 0; k < OUT_ID_BYTES - 1; k++)
        text[k] = "0123456789abcdef"[id >> (60 - 4 * k) & 15];
    text[OUT_ID_BYTES - 1] = '\0';
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
