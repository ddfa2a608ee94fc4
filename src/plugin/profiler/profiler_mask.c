/* Events and masks: what a mask asks for, what a version knows, and how both are written. */
#include "base/mem.h"
#include "plugin/profiler/profiler.h"
#include "plugin/profiler/profiler_abi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CE_BITS = ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch,
    STEP_BITS = ncclProfileProxyStep | ncclProfileNetPlugin,
    OP_BITS = STEP_BITS | ncclProfileProxyOp,
    WORK_BITS = OP_BITS | ncclProfileKernelCh,
    COLL_BITS = WORK_BITS | ncclProfileColl,
    P2P_BITS = WORK_BITS | ncclProfileP2p,
    GROUP_BITS = COLL_BITS | P2P_BITS | ncclProfileGroup,
    ALL_BUT_CTRL = GROUP_BITS | CE_BITS | ncclProfileGroupApi | ncclProfileCollApi |
                   ncclProfileP2pApi | ncclProfileKernelLaunch,
};

struct event_row { /* an event and the bits that cause it: its own and its descendants' */
    uint32_t type, bits;
    const char *name;
};
static const struct event_row events[] = {
    {ncclProfileGroup, GROUP_BITS, "Group"},
    {ncclProfileColl, COLL_BITS, "Coll"},
    {ncclProfileP2p, P2P_BITS, "P2p"},
    {ncclProfileProxyOp, OP_BITS, "ProxyOp"},
    {ncclProfileProxyStep, STEP_BITS, "ProxyStep"},
    {ncclProfileProxyCtrl, ncclProfileProxyCtrl, "ProxyCtrl"},
    {ncclProfileKernelCh, ncclProfileKernelCh, "KernelCh"},
    {ncclProfileNetPlugin, ncclProfileNetPlugin, "NetPlugin"},
    {ncclProfileGroupApi, ALL_BUT_CTRL, "GroupApi"},
    {ncclProfileCollApi, COLL_BITS | CE_BITS | ncclProfileCollApi, "CollApi"},
    {ncclProfileP2pApi, P2P_BITS | ncclProfileP2pApi, "P2pApi"},
    {ncclProfileKernelLaunch, ncclProfileKernelLaunch, "KernelLaunch"},
    {ncclProfileCeColl, CE_BITS, "CeColl"},
    {ncclProfileCeSync, ncclProfileCeSync, "CeSync"},
    {ncclProfileCeBatch, ncclProfileCeBatch, "CeBatch"},
    {ncclProfileKernelPhase, ncclProfileKernelPhase, "KernelPhase"},
};

/* `events` lies in the order of the bits. */
bool tt_prof_wants(uint32_t mask, uint64_t type)
{
    if (!mask || !type) return false;
    size_t at = (size_t)__builtin_ctzll(type);
    return at < TT_LEN(events) && (mask & events[at].bits) != 0;
}

const char *tt_profiler_event_name(uint64_t type)
{
    size_t at = (size_t)__builtin_ctzll(type);
    return at < TT_LEN(events) ? events[at].name : "unknown";
}

/* Events of the versions, from 1 on; of others nothing is emitted, parents neither. */
static const uint32_t known_bits[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};

uint32_t tt_profiler_known(void)
{
    return known_bits[tt_plugins.profiler.slot.found.version];
}

void tt_profiler_mask_names(uint32_t mask, char *names, size_t names_bytes)
{
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < TT_LEN(events) && used < names_bytes; i++) {
        if (!(mask & events[i].type)) continue;
        used += (size_t)snprintf(names + used, names_bytes - used, "%s%s", used ? " " : "",
                                 events[i].name);
    }
}

static bool event_bit(const char *name, size_t len, uint32_t *mask)
{
    for (size_t i = 0; i < TT_LEN(events); i++) {
        if (strlen(events[i].name) != len || strncasecmp(events[i].name, name, len) != 0) continue;
        *mask |= events[i].type;
        return true;
    }
    return false;
}

bool tt_profiler_read_mask(const char *text, uint32_t *mask_out)
{
    char *end;
    uint32_t mask = 0;
    if (!strcasecmp(text, "none") || !strcasecmp(text, "all")) {
        *mask_out = tolower((unsigned char)*text) == 'a' ? UINT32_MAX : 0;
        return true;
    }
    if (isdigit((unsigned char)*text)) {
        unsigned long long number = strtoull(text, &end, 0);
        *mask_out = (uint32_t)number;
        return !*end && number <= UINT32_MAX;
    }
    for (const char *name = text;; name++) {
        size_t len = strcspn(name, ",");
        if (!event_bit(name, len, &mask)) return false;
        name += len;
        if (!*name) break;
    }
    *mask_out = mask;
    return true;
}
