/* A port in use: its protection domain, and memory that it knows. Registrations are kept by page
 * and shared: buffers of one page, or parts of one buffer, are one. */
#include "base/error.h"
#include "base/mem.h"
#include "net/ib/device.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ncclResult_t tt_ib_port_acquire(struct ib_port *port)
{
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&port->lock);
    if (!port->users) {
        port->pd = tt_ib()->verbs.alloc_pd(port->context);
        if (!port->pd) {
            rc = tt_fail(ncclSystemError, "NET/IB: no protection domain of %s: %m", port->name);
        }
        if (!rc) rc = tt_ib_watch_start(port);
        if (rc && port->pd) tt_ib()->verbs.dealloc_pd(port->pd);
        if (rc) port->pd = NULL;
    }
    port->users += !rc;
    pthread_mutex_unlock(&port->lock);
    return rc;
}

void tt_ib_port_release(struct ib_port *port)
{
    pthread_mutex_lock(&port->lock);
    if (!--port->users) {
        tt_ib_watch_stop(port);
        for (size_t i = 0; i < port->nregions; i++)
            tt_ib()->verbs.dereg_mr(port->regions[i].mr); /* their connections are gone */
        free(port->regions);
        port->regions = NULL;
        port->nregions = port->capacity = 0;
        tt_ib()->verbs.dealloc_pd(port->pd);
        port->pd = NULL;
    }
    pthread_mutex_unlock(&port->lock);
}

static struct ibv_mr *make_region(struct ib_port *port, uintptr_t first, size_t bytes)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    void *at = (void *)first; /* NOLINT(performance-no-int-to-ptr): the page of a pointer */
    if (!tt_ib_relaxed_ordering()) return tt_ib()->verbs.reg_mr(port->pd, at, bytes, access);
    return tt_ib()->verbs.reg_mr_iova2(port->pd, at, bytes, first,
                                       (unsigned int)access | IBV_ACCESS_RELAXED_ORDERING);
}

static ncclResult_t make_room(struct ib_port *port)
{
    if (port->nregions < port->capacity) return ncclSuccess;
    size_t capacity = port->capacity ? 2 * port->capacity : 32;
    struct ib_region *more = tt_calloc(capacity, sizeof(*more));
    if (!more) return tt_fail(ncclSystemError, "NET/IB: out of memory for registrations");
    if (port->nregions) memcpy(more, port->regions, port->nregions * sizeof(*more));
    free(port->regions);
    port->regions = more;
    port->capacity = capacity;
    return ncclSuccess;
}

static ncclResult_t add_region(struct ib_port *port, size_t index, uintptr_t first, uintptr_t end)
{
    ncclResult_t rc = make_room(port);
    if (rc) return rc;
    struct ibv_mr *mr = make_region(port, first, end - first);
    if (!mr) {
        return tt_fail(ncclSystemError,
                       "NET/IB: %s cannot register %zu bytes of memory: %m; is the limit of locked "
                       "memory (ulimit -l) too low?",
                       port->name, (size_t)(end - first));
    }
    struct ib_region *region = &port->regions[index];
    memmove(region + 1, region, (port->nregions - index) * sizeof(*region));
    *region = (struct ib_region){first, end, 0, mr};
    port->nregions++;
    return ncclSuccess;
}

ncclResult_t tt_ib_region_acquire(struct ib_port *port, void *data, size_t bytes,
                                  struct ibv_mr **mr_out)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)data & ~(page - 1);
    uintptr_t end = ((uintptr_t)data + tt_max_size(bytes, 1) + page - 1) & ~(page - 1);
    ncclResult_t rc = ncclSuccess;
    size_t index = 0;
    pthread_mutex_lock(&port->lock);
    while (index < port->nregions && port->regions[index].first <= first &&
           port->regions[index].end < end)
        index++;
    bool known = index < port->nregions && port->regions[index].first <= first;
    if (!known) rc = add_region(port, index, first, end);
    if (!rc) {
        port->regions[index].users++;
        *mr_out = port->regions[index].mr;
    }
    pthread_mutex_unlock(&port->lock);
    return rc;
}

void tt_ib_region_release(struct ib_port *port, struct ibv_mr *mr)
{
    pthread_mutex_lock(&port->lock);
    for (size_t i = 0; i < port->nregions; i++) {
        struct ib_region *region = &port->regions[i];
        if (region->mr != mr || --region->users) continue;
        tt_ib()->verbs.dereg_mr(mr);
        memmove(region, region + 1, (--port->nregions - i) * sizeof(*region));
        break;
    }
    pthread_mutex_unlock(&port->lock);
}
