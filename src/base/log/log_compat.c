/* The layout of log lines: time stamp, host:pid:tid, [device], place, level. It is a contract with
 * the tools that parse NCCL's logs; tests/unit/base/test_log.c holds it. */
#include "base/log/log_compat.h"

#include "base/mem.h"
#include "base/system/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STAMP_BYTES = 256 };

struct writer {
    char *text;
    size_t size;
    size_t len;
};

static void add(struct writer *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct writer *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int more = vsnprintf(out->text + out->len, out->size - out->len, fmt, args);
    va_end(args);
    if (more > 0) out->len = tt_min_size(out->len + (size_t)more, out->size - 1);
}

const char *tt_log_source(const char *file)
{
    if (!file) return "(null)";
    const char *in_src = strstr(file, "src/");
    if (in_src) return in_src + 4;
    while (!strncmp(file, "../", 3)) {
        file += 3;
    }
    return file;
}

/* Replace the first %Nf (N digits of the second's fraction) of a strftime pattern. */
static void fill_fraction(const char *pattern, long nsec, char *filled, size_t size)
{
    snprintf(filled, size, "%s", pattern);
    for (const char *at = strchr(pattern, '%'); at; at = strchr(at, '%')) {
        if (at[1] >= '1' && at[1] <= '9' && at[2] == 'f') {
            char digits[16];
            snprintf(digits, sizeof(digits), "%09ld", nsec);
            snprintf(filled, size, "%.*s%.*s%s", (int)(at - pattern), pattern, at[1] - '0', digits,
                     at + 3);
            return;
        }
        at += at[1] ? 2 : 1; /* an escaped percent sign starts nothing */
    }
}

static void add_stamp(struct writer *out, const struct tt_log_config *config)
{
    struct timespec now;
    struct tm local;
    char pattern[TT_LOG_FORMAT_BYTES + 16];
    char stamp[STAMP_BYTES];
    if (!config->stamp_format[0]) return;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!localtime_r(&now.tv_sec, &local)) return;
    fill_fraction(config->stamp_format, now.tv_nsec, pattern, sizeof(pattern));
    if (strftime(stamp, sizeof(stamp), pattern, &local) == 0 &&
        strftime(stamp, sizeof(stamp), "[%F %T] ", &local) == 0)
        return;
    add(out, "%s", stamp);
}

size_t tt_log_prefix(const struct tt_log_config *config, const struct tt_log_origin *origin,
                     char *prefix, size_t size)
{
    struct writer out = {.text = prefix, .size = size};
    const bool is_call = origin->level == TT_LOG_TRACE && origin->sub == TT_LOG_CALL;
    const bool warns = origin->level == TT_LOG_WARN || origin->level == TT_LOG_ATTN;
    const char *word = origin->level == TT_LOG_WARN ? "WARN" : "ATTN";
    prefix[0] = '\0';
    if (warns) add(&out, "\n"); /* NCCL sets warnings off by an empty line */
    if (config->stamp_levels & (1U << origin->level)) add_stamp(&out, config);
    if (origin->level == TT_LOG_VERSION) return out.len;

    add(&out, "%s:%d:%d ", config->host, (int)getpid(), (int)gettid());
    if (origin->level == TT_LOG_ABORT) return out.len;
    if (!is_call) add(&out, "[%d] ", origin->device);
    if (is_call) {
        add(&out, "NCCL CALL ");
    } else if (origin->level == TT_LOG_INFO) {
        add(&out, "NCCL INFO ");
    } else if (warns && origin->location.func) {
        add(&out, "%.200s:%d (%.100s) NCCL %s ", tt_log_source(origin->location.file),
            origin->location.line, origin->location.func, word);
    } else if (warns) {
        add(&out, "%.200s:%d NCCL %s ", origin->location.file, origin->location.line, word);
    } else {
        const double msec = (double)(tt_now_nsec() - config->start_nsec) / 1e6;
        add(&out, "%f %.100s:%d NCCL TRACE ", msec,
            origin->location.func ? origin->location.func : origin->location.file,
            origin->location.line);
    }
    return out.len;
}
