/* Settings and notices of the process. Everything here is kept for whoever
 * asks; none of it changes how work runs. */
#include "reset.h"

#include "base/log.h"
#include "base/mem.h"
#include "device/host/host_face.h"
#include "device/host/memory/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KNOWN_FLAGS = 0xff,
    HOST_PEER_ENABLED = 704,
    HOST_PEER_NOT_ENABLED = 705,
};

/* ---- notices ---- */

void tuttiHostTell(const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof(line) - 1, fmt, args);
    va_end(args);
    if (tt_log_on(TT_LOG_WARN, TT_LOG_ALL)) {
        tt_warn("%s", line);
        return;
    }
    if (len > (int)sizeof(line) - 2) len = (int)sizeof(line) - 2;
    line[len] = '\n';
    if (write(STDERR_FILENO, line, (size_t)len + 1) < 0) return; /* nobody listens */
}

static bool is_news(const char *name)
{
    bool news = true;
    pthread_mutex_lock(&tt_host.notices.lock);
    for (int i = 0; news && i < tt_host.notices.count; i++) {
        news = strcmp(tt_host.notices.names[i], name) != 0;
    }
    if (news && tt_host.notices.count < HOST_MAX_NOTICES)
        tt_host.notices.names[tt_host.notices.count++] = name;
    pthread_mutex_unlock(&tt_host.notices.lock);
    return news;
}

int tuttiHostUnsupported(const char *name)
{
    if (!is_news(name)) return HOST_NOT_SUPPORTED;
    tuttiHostTell("tutti: %s is not supported on the host device (error 801; "
                  "docs/hostcuda.md lists what is)",
                  name);
    return HOST_NOT_SUPPORTED;
}

/* ---- settings ---- */

static int check(int device)
{
    if (host_device_count() == 0) return HOST_NO_DEVICE;
    return device >= 0 && device < host_device_count() ? HOST_OK : HOST_INVALID_DEVICE;
}

int tuttiHostFlagsSet(int device, unsigned flags)
{
    int rc = check(device);
    unsigned schedule = flags & 7;
    if (rc) return rc;
    if ((flags & ~(unsigned)KNOWN_FLAGS) || (schedule & (schedule - 1))) return HOST_INVALID_VALUE;
    atomic_store(&tt_host.settings[device].flags, flags);
    return HOST_OK;
}

int tuttiHostFlagsGet(int device, unsigned *flags)
{
    int rc = check(device);
    if (!rc) *flags = atomic_load(&tt_host.settings[device].flags);
    return rc;
}

int tuttiHostLimitSet(int device, int limit, size_t value)
{
    int rc = check(device);
    if (rc) return rc;
    if (limit < 0 || limit >= TT_LIMIT_COUNT_) return HOST_INVALID_VALUE;
    atomic_store(&tt_host.settings[device].limits[limit], value);
    atomic_store(&tt_host.settings[device].was_set[limit], true);
    return HOST_OK;
}

int tuttiHostLimitGet(int device, int limit, size_t *value)
{
    /* Stack, printf buffer, heap, sync depth, pending launches, L2 fetch, L2 set-aside, cache. */
    static const size_t usual[TT_LIMIT_COUNT_] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0};
    int rc = check(device);
    if (rc) return rc;
    if (limit < 0 || limit >= TT_LIMIT_COUNT_) return HOST_INVALID_VALUE;
    *value = atomic_load(&tt_host.settings[device].was_set[limit])
                 ? atomic_load(&tt_host.settings[device].limits[limit])
                 : usual[limit];
    return HOST_OK;
}

static int set_peer(int device, int peer, bool allowed)
{
    int rc = check(device);
    if (!rc) rc = check(peer);
    if (!rc && device == peer) rc = HOST_INVALID_DEVICE;
    if (rc) return rc;
    uint64_t bit = (uint64_t)1 << (peer % 64);
    _Atomic uint64_t *word = &tt_host.settings[device].peers[peer / 64];
    uint64_t before = allowed ? atomic_fetch_or(word, bit) : atomic_fetch_and(word, ~bit);
    if (((before & bit) != 0) != allowed) return HOST_OK;
    return allowed ? HOST_PEER_ENABLED : HOST_PEER_NOT_ENABLED;
}

void host_settings_reset(int device)
{
    struct host_settings *own = &tt_host.settings[device];
    for (int limit = 0; limit < TT_LIMIT_COUNT_; limit++) {
        atomic_store(&own->was_set[limit], false);
    }
    for (int other = 0; other < host_device_count(); other++) {
        atomic_fetch_and(&tt_host.settings[other].peers[device / 64],
                         ~((uint64_t)1 << device % 64));
    }
    for (int word = 0; word < HOST_MAX_DEVICES / 64; word++) {
        atomic_store(&own->peers[word], 0);
    }
}

int tuttiHostPeerEnable(int device, int peer)
{
    return set_peer(device, peer, true);
}

int tuttiHostPeerDisable(int device, int peer)
{
    return set_peer(device, peer, false);
}
