/* What the process has once: devices, the host's log, and the context of hosts that know no
 * communicators. */
#include "ofi.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

struct ofi_process ofi_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void report(ncclDebugLogLevel level, const char *fmt, va_list args)
{
    char text[512];
    (void)vsnprintf(text, sizeof(text), fmt, args);
    ncclDebugLogger_t log = atomic_load_explicit(&ofi_process.log, memory_order_relaxed);
    if (log) log(level, NCCL_INIT | NCCL_NET, "plugins/net", 0, "NET/Libfabric: %s", text);
}

ncclResult_t ofi_fail(ncclResult_t rc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(NCCL_LOG_WARN, fmt, args);
    va_end(args);
    return rc;
}

void ofi_say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(NCCL_LOG_INFO, fmt, args);
    va_end(args);
}

uint64_t ofi_now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void ofi_pending_add(struct ofi_net *net, struct ofi_pending *pending)
{
    pthread_mutex_lock(&ofi_process.lock);
    pending->net = net;
    pending->next = net->pending;
    net->pending = pending;
    pthread_mutex_unlock(&ofi_process.lock);
}

void ofi_pending_remove(struct ofi_pending *pending)
{
    if (!pending->net) return;
    pthread_mutex_lock(&ofi_process.lock);
    struct ofi_pending **at = &pending->net->pending;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    pending->net = NULL;
    pthread_mutex_unlock(&ofi_process.lock);
}

struct ofi_pending *ofi_pending_pop(struct ofi_net *net)
{
    pthread_mutex_lock(&ofi_process.lock);
    struct ofi_pending *pending = net->pending;
    if (pending) {
        net->pending = pending->next;
        pending->net = NULL;
    }
    pthread_mutex_unlock(&ofi_process.lock);
    return pending;
}
