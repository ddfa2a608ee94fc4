/* Writes log lines, each by one write(2), so that ranks that share a destination never mix and a
 * dying process loses none.
 *
 * Configurations are immutable objects behind an atomic pointer; a reset publishes a new one and
 * keeps the old, because another thread may be in the middle of a line (resets are rare and the
 * objects small). Beside the pointer stands one word with level and mask for the test whether a
 * line is wanted, which is all that the hot path ever does here.
 *
 * A process holds two copies of this room, one in libnccl and one in libtutti-host. They share the
 * destination by opening it for appending, and the device number (log_device.c). */
#include "base/log.h"

#include "base/log/log_compat.h"
#include "base/log/log_config.h"
#include "base/log/log_device.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/system/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 2048, PREFIX_BYTES = 768 };

/* Word: levels in the high half, mask in the low one, WORD_READY when the variables were read. */
#define WORD_READY (UINT64_C(1) << 63)
#define WORD_LEVELS(word) ((uint32_t)((word) >> 32) & 0xFFU)

static void complain_first(const struct tt_log_config *config);

/* Read the variables unless another thread did; returns the configuration's word. */
static __attribute__((noinline)) uint64_t configure(void)
{
    const struct tt_log_config *fresh = NULL;
    pthread_mutex_lock(&tt_base.log.lock);
    if (!(atomic_load_explicit(&tt_base.log.word, memory_order_relaxed) & WORD_READY)) {
        struct tt_log_config *config =
            tt_log_config_read(tt_base.log.file_fd ? tt_base.log.file_fd : -1);
        struct tt_log_config *before =
            atomic_load_explicit(&tt_base.log.config, memory_order_relaxed);
        if (!config) config = &tt_base.log.silent;
        if (before && config != before) config->previous = before;
        if (before) config->start_nsec = before->start_nsec;
        if (config->fd > STDERR_FILENO) tt_base.log.file_fd = config->fd;
        atomic_store_explicit(&tt_base.log.config, config, memory_order_relaxed);
        /* pairs with the acquire load in tt_log_on(): a thread that sees READY sees the config */
        const uint64_t word = WORD_READY | (uint64_t)config->levels << 32 | config->mask;
        atomic_store_explicit(&tt_base.log.word, word, memory_order_release);
        fresh = config;
    }
    pthread_mutex_unlock(&tt_base.log.lock);
    if (fresh) complain_first(fresh);
    return atomic_load_explicit(&tt_base.log.word, memory_order_acquire) | WORD_READY;
}

/* Apart from its caller, which so needs no stack. */
static __attribute__((noinline)) bool configured_on(enum tt_log_level level, uint32_t sub)
{
    configure();
    return tt_log_on(level, sub);
}

bool tt_log_on(enum tt_log_level level, uint32_t sub)
{
    const uint64_t word = atomic_load_explicit(&tt_base.log.word, memory_order_acquire);
    if (!(word & WORD_READY)) return configured_on(level, sub);
    if (!(WORD_LEVELS(word) >> level & 1U)) return false;
    return level <= TT_LOG_WARN || level == TT_LOG_ATTN || ((uint32_t)word & sub) != 0;
}

/* What a write may raise in its thread: a file beyond the limit of sizes, a FIFO without its
 * reader. Neither is worth the end of the program. Signals that the caller held back, and that are
 * waiting, are for another thread. */
static void hold_signals(sigset_t *ours, sigset_t *before)
{
    static const int numbers[] = {SIGXFSZ, SIGPIPE};
    sigset_t pending;
    sigemptyset(ours);
    for (size_t i = 0; i < TT_LEN(numbers); i++)
        sigaddset(ours, numbers[i]);
    pthread_sigmask(SIG_BLOCK, ours, before);
    for (size_t i = 0; i < TT_LEN(numbers); i++) {
        if (!sigismember(before, numbers[i])) continue;
        if (!sigpending(&pending) && sigismember(&pending, numbers[i])) sigdelset(ours, numbers[i]);
    }
}

static void drop_signals(const sigset_t *ours)
{
    static const struct timespec at_once = {0};
    while (sigtimedwait(ours, NULL, &at_once) > 0) {
    }
}

/* The rest of a line that cannot be written (a full disk, say) is lost. */
static void write_line(int fd, const char *line, size_t len)
{
    sigset_t ours, before;
    hold_signals(&ours, &before);
    while (len) {
        const ssize_t wrote = write(fd, line, len);
        if (wrote >= 0) {
            line += wrote;
            len -= (size_t)wrote;
        } else if (errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            if (poll(&ready, 1, 1000) <= 0) break; /* a reader that sleeps must not stop us */
        } else if (errno != EINTR) {
            drop_signals(&ours);
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Compose and write one line. `args` is used up; errno of the caller serves %m. */
static void emit(const struct tt_log_origin *origin, const char *fmt, va_list args)
{
    const int saved_errno = errno;
    const struct tt_log_config *config =
        atomic_load_explicit(&tt_base.log.config, memory_order_acquire);
    char fixed[LINE_BYTES];
    char *line = fixed;
    const size_t prefix = tt_log_prefix(config, origin, fixed, PREFIX_BYTES);
    va_list again;
    va_copy(again, args);
    errno = saved_errno;
    int text = vsnprintf(fixed + prefix, sizeof(fixed) - prefix - 1, fmt, args);
    if (text < 0) text = 0;
    if (prefix + (size_t)text + 1 >= sizeof(fixed)) {
        line = malloc(prefix + (size_t)text + 2);
        if (line) {
            memcpy(line, fixed, prefix);
            errno = saved_errno;
            vsnprintf(line + prefix, (size_t)text + 1, fmt, again);
        } else { /* cut, rather than lose it */
            line = fixed;
            text = (int)(sizeof(fixed) - prefix - 2);
        }
    }
    va_end(again);
    size_t len = prefix + (size_t)text;
    while (len > prefix && line[len - 1] == '\n') {
        len--;
    }
    line[len++] = '\n';
    write_line(config->fd, line, len);
    if (line != fixed) free(line);
    errno = saved_errno;
}

/* After the first printed WARN, INFO shows too (NCCL_WARN_ENABLE_DEBUG_INFO). */
static void raise_level(void)
{
    const struct tt_log_config *config =
        atomic_load_explicit(&tt_base.log.config, memory_order_acquire);
    uint64_t word = atomic_load_explicit(&tt_base.log.word, memory_order_relaxed);
    if (!config->raise_on_warn || WORD_LEVELS(word) >> TT_LOG_INFO & 1U) return;
    const uint64_t raised = word | (uint64_t)TT_LOG_UP_TO_INFO << 32;
    if (word & WORD_READY) atomic_compare_exchange_strong(&tt_base.log.word, &word, raised);
}

static void log_args(struct tt_log_origin *origin, const char *fmt, va_list args)
{
    const uint32_t expected = origin->level == TT_LOG_WARN ? tuttiLogThread().expected : 0;
    if (expected) {
        origin->level = TT_LOG_INFO;
        origin->sub = expected;
    }
    if (!tt_log_on(origin->level, origin->sub)) return;
    if (origin->level == TT_LOG_VERSION &&
        atomic_load_explicit(&tt_base.log.config, memory_order_acquire)->warn_only)
        return;
    emit(origin, fmt, args);
    if (origin->level == TT_LOG_WARN) raise_level();
}

void tt_log_at(enum tt_log_level level, uint32_t sub, const struct tt_log_location *location,
               const char *fmt, ...)
{
    struct tt_log_origin origin = {level, sub, *location, tuttiLogThread().device};
    va_list args;
    va_start(args, fmt);
    log_args(&origin, fmt, args);
    va_end(args);
}

void tt_log_plugin(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    if (level <= TT_LOG_NONE || level > TT_LOG_ATTN || !fmt) return; /* numbers of a plugin */
    struct tt_log_origin origin = {
        .level = (enum tt_log_level)level,
        .sub = (uint32_t)flags,
        .location = {.file = file ? file : "(null)", .line = line},
        .device = tuttiLogThread().device,
    };
    va_list args;
    if (level == TT_LOG_WARN) {
        va_start(args, fmt);
        pthread_mutex_lock(&tt_base.log.lock);
        /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
        vsnprintf(tt_base.log.warning, sizeof(tt_base.log.warning), fmt, args);
        pthread_mutex_unlock(&tt_base.log.lock);
        va_end(args);
    }
    va_start(args, fmt);
    log_args(&origin, fmt, args);
    va_end(args);
}

void tt_log_plugin_warning(char *text, size_t text_bytes)
{
    pthread_mutex_lock(&tt_base.log.lock);
    snprintf(text, text_bytes, "%s", tt_base.log.warning);
    pthread_mutex_unlock(&tt_base.log.lock);
}

static void emit_text(const struct tt_log_origin *origin, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void emit_text(const struct tt_log_origin *origin, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    emit(origin, fmt, args);
    va_end(args);
}

/* What was wrong with the log's own variables. Printed at any level: a user who sets them
 * wants to see something. */
static void complain_first(const struct tt_log_config *config)
{
    const struct tt_log_origin origin = {
        .level = TT_LOG_WARN,
        .sub = TT_LOG_ALL,
        .location = {__FILE__, __LINE__, __func__},
        .device = tuttiLogThread().device,
    };
    if (config->complaint_count && !tuttiLogReport()) return;
    for (int i = 0; i < config->complaint_count; i++) {
        emit_text(&origin, "%s", config->complaints[i]);
    }
}

uint32_t tt_log_expect(uint32_t sub)
{
    struct tt_log_thread thread = tuttiLogThread();
    const uint32_t before = thread.expected;
    thread.expected = sub;
    tuttiLogThreadSet(thread);
    return before;
}

uint32_t tt_log_expected(void)
{
    return tuttiLogThread().expected;
}

void tt_log_set_device(int device)
{
    struct tt_log_thread thread = tuttiLogThread();
    thread.device = device;
    tuttiLogThreadSet(thread);
}

void tt_log_reset(void)
{
    tuttiLogForget();
    atomic_store_explicit(&tt_base.log.word, 0, memory_order_release);
}
