/* State that only the faces need. Settings of devices are kept to be asked for and change nothing;
 * launch configurations of threads are kept from <<<>>> to the launch. */
#include "reset.h"

#include "device/host/host_face.h"
#include "device/host/process/state.h"

enum {
    KNOWN_FLAGS = 0xff,
    TT_HOST_PEER_ENABLED = 704,
    TT_HOST_PEER_NOT_ENABLED = 705,
};

/* ---- settings ---- */

static int check(int device)
{
    if (tt_host_device_count() == 0) return TT_HOST_NO_DEVICE;
    return device >= 0 && device < tt_host_device_count() ? TT_HOST_OK : TT_HOST_INVALID_DEVICE;
}

int tuttiHostFlagsSet(int device, unsigned flags)
{
    int rc = check(device);
    unsigned schedule = flags & 7;
    if (rc) return rc;
    if ((flags & ~(unsigned)KNOWN_FLAGS) || (schedule & (schedule - 1)))
        return TT_HOST_INVALID_VALUE;
    atomic_store(&tt_host.settings[device].flags, flags);
    return TT_HOST_OK;
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
    if (limit < 0 || limit >= TT_LIMIT_COUNT_) return TT_HOST_INVALID_VALUE;
    atomic_store(&tt_host.settings[device].limits[limit], value);
    atomic_store(&tt_host.settings[device].was_set[limit], true);
    return TT_HOST_OK;
}

int tuttiHostLimitGet(int device, int limit, size_t *value)
{
    /* Stack, printf buffer, heap, sync depth, pending launches, L2 fetch, L2 set-aside, cache. */
    static const size_t usual[TT_LIMIT_COUNT_] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0};
    int rc = check(device);
    if (rc) return rc;
    if (limit < 0 || limit >= TT_LIMIT_COUNT_) return TT_HOST_INVALID_VALUE;
    *value = atomic_load(&tt_host.settings[device].was_set[limit])
                 ? atomic_load(&tt_host.settings[device].limits[limit])
                 : usual[limit];
    return TT_HOST_OK;
}

static int set_peer(int device, int peer, bool allowed)
{
    int rc = check(device);
    if (!rc) rc = check(peer);
    if (!rc && device == peer) rc = TT_HOST_INVALID_DEVICE;
    if (rc) return rc;
    uint64_t bit = (uint64_t)1 << (peer % 64);
    _Atomic uint64_t *word = &tt_host.settings[device].peers[peer / 64];
    uint64_t before = allowed ? atomic_fetch_or(word, bit) : atomic_fetch_and(word, ~bit);
    if (((before & bit) != 0) != allowed) return TT_HOST_OK;
    return allowed ? TT_HOST_PEER_ENABLED : TT_HOST_PEER_NOT_ENABLED;
}

void tt_host_settings_reset(int device)
{
    struct tt_host_settings *own = &tt_host.settings[device];
    for (int limit = 0; limit < TT_LIMIT_COUNT_; limit++) {
        atomic_store(&own->was_set[limit], false);
    }
    for (int other = 0; other < tt_host_device_count(); other++) {
        atomic_fetch_and(&tt_host.settings[other].peers[device / 64],
                         ~((uint64_t)1 << device % 64));
    }
    for (int word = 0; word < TT_HOST_MAX_DEVICES / 64; word++) {
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

/* ---- launch configurations ---- */

bool tuttiHostConfigurationPush(const struct tt_configuration *configuration)
{
    if (tt_host_thread.nconfigurations == TT_CONFIGURATIONS_MOST) return false;
    tt_host_thread.configurations[tt_host_thread.nconfigurations++] = *configuration;
    return true;
}

bool tuttiHostConfigurationPop(struct tt_configuration *configuration_out)
{
    if (tt_host_thread.nconfigurations == 0) return false;
    *configuration_out = tt_host_thread.configurations[--tt_host_thread.nconfigurations];
    return true;
}
