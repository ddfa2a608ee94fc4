/* The debug log: levels, subsystems and line layout of NCCL. One write(2) per line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NCCL's numbers. */
enum tt_log_level {
    TT_LOG_NONE = 0,
    TT_LOG_VERSION = 1,
    TT_LOG_WARN = 2,
    TT_LOG_INFO = 3,
    TT_LOG_ABORT = 4,
    TT_LOG_TRACE = 5,
    TT_LOG_ATTN = 6, /* between WARN and INFO */
};

/* NCCL's bits. */
enum tt_log_sub {
    TT_LOG_INIT = 0x1,
    TT_LOG_COLL = 0x2,
    TT_LOG_P2P = 0x4,
    TT_LOG_SHM = 0x8,
    TT_LOG_NET = 0x10,
    TT_LOG_GRAPH = 0x20,
    TT_LOG_TUNING = 0x40,
    TT_LOG_ENV = 0x80,
    TT_LOG_ALLOC = 0x100,
    TT_LOG_CALL = 0x200,
    TT_LOG_PROXY = 0x400,
    TT_LOG_NVLS = 0x800,
    TT_LOG_BOOTSTRAP = 0x1000,
    TT_LOG_REG = 0x2000,
    TT_LOG_PROFILE = 0x4000,
    TT_LOG_RAS = 0x8000,
    TT_LOG_DESTROY = 0x10000,
    TT_LOG_ALLOC_HOST = 0x20000,
    TT_LOG_ALL = ~0,
};

/* True when a line of that level and subsystem would be printed. One load and a test once the
 * configuration was read; safe on the hot path. */
bool tt_log_on(enum tt_log_level level, uint32_t sub);

struct tt_log_location { /* where a line comes from: static text */
    const char *file;
    int line;
    const char *func;
};

/* Print one line. Data never becomes a format. */
#define tt_warn(...) tt_log_line(TT_LOG_WARN, TT_LOG_ALL, __FILE__, __LINE__, __func__, __VA_ARGS__)
/* A warning where nothing failed: it sets no text for ncclGetLastError(). */
#define tt_attn(...) tt_log_line(TT_LOG_ATTN, TT_LOG_ALL, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define tt_info(sub, ...) tt_log_line(TT_LOG_INFO, (sub), __FILE__, __LINE__, __func__, __VA_ARGS__)
#define tt_trace(sub, ...)                                                                         \
    tt_log_line(TT_LOG_TRACE, (sub), __FILE__, __LINE__, __func__, __VA_ARGS__)
#define tt_log_line(level, sub, file, line, func, ...)                                             \
    tt_log_at((level), (sub), &(const struct tt_log_location){(file), (line), (func)}, __VA_ARGS__)
void tt_log_at(enum tt_log_level level, uint32_t sub, const struct tt_log_location *location,
               const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The logger handed to plugins (ncclDebugLogger_t): same layout, third argument as the plugin gave
 * it. */
void tt_log_plugin(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* What a plugin warned of last; "": nothing. Any thread. */
void tt_log_plugin_warning(char *text, size_t text_bytes);

/* For the calling thread: failures are expected here, so WARN lines become INFO lines of subsystem
 * `sub` and tt_fail() keeps no text; 0 ends it. Returns the previous value, to be put back. */
uint32_t tt_log_expect(uint32_t sub);
uint32_t tt_log_expected(void);

/* The device number printed in brackets; set by the room that changes it (device/), 0 at start. Per
 * thread, and one for all copies of this room in the process. */
void tt_log_set_device(int device);

/* Read the NCCL_DEBUG* variables again at the next line and reopen the file. */
void tt_log_reset(void);
