/* Memory that belongs to graphs. It is allocated when its node is added and stays with the graphs
 * that have the node, so that each launch finds it at the same address; when the last one is gone
 * it is given back, or is the program's if that has not freed it since the last launch. */
#include "graph.h"

#include "device/host/check/check.h"
#include "device/host/host.h"
#include "device/host/memory/memory.h"

#include <stdlib.h>

struct tt_host_memory_item {
    struct tt_item item;
    struct tt_host_memory_item *next;
    void *ptr; /* owned; NULL for a free node, which has nothing to do */
    size_t bytes;
    int device;
    struct tt_host_memory_item
        *freed;         /* the memory that a free node names; borrowed while listed */
    bool has_free;      /* a free node names it */
    bool gone;          /* with its device: no longer in the list */
    bool claimed;       /* launched and, in the order of calls, not freed since */
    unsigned frees_due; /* on streams */
};

/* Lock held. */
static struct tt_host_memory_item **find(const void *ptr)
{
    struct tt_host_memory_item **link = &tt_host.graph_memory.items;
    while (*link && (*link)->ptr != ptr) {
        link = &(*link)->next;
    }
    return link;
}

/* Lock held. The memory behind a free node, if it is still there. */
static struct tt_host_memory_item *named_by(const struct tt_host_memory_item *freeing)
{
    struct tt_host_memory_item *item = tt_host.graph_memory.items;
    while (item && item != freeing->freed) {
        item = item->next;
    }
    return item;
}

static void leave(struct tt_host_memory_item *item)
{
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    if (item->ptr && !item->gone) {
        struct tt_host_memory_item **link = find(item->ptr);
        if (*link) *link = item->next;
        atomic_fetch_sub(&tt_host.graph_memory.count, 1);
        tt_host.graph_memory.used[item->device] -= item->bytes;
    } else if (!item->ptr) {
        struct tt_host_memory_item *named = named_by(item);
        if (named) named->has_free = false;
    }
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
}

/* What no node has to free any more goes back; the rest is the program's from now on. */
static void end_memory(const struct tt_host_memory_item *own)
{
    if (own->ptr && !own->gone && !own->claimed && !own->frees_due) tt_host_memory_free(own->ptr);
}

/* What the node begins or ends. */
static void report_memory(const struct tt_host_memory_item *own)
{
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    const struct tt_host_memory_item *named = own->ptr ? own : named_by(own);
    void *ptr = named && !named->gone ? named->ptr : NULL;
    size_t bytes = ptr ? named->bytes : 0;
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    if (ptr) tt_host_check_memory_node(ptr, bytes, !own->ptr);
}

static enum tt_step memory_step(struct tt_item *item, enum tt_item_call call)
{
    struct tt_host_memory_item *own = (struct tt_host_memory_item *)item;
    if (call == TT_ITEM_TOUCH) report_memory(own);
    if (call == TT_ITEM_RELEASE) {
        leave(own);
        end_memory(own);
        free(own);
    }
    return TT_STEP_DONE;
}

static struct tt_host_memory_item *memory_of(struct tt_item *item)
{
    return item->step == memory_step ? (struct tt_host_memory_item *)item : NULL;
}

bool tt_host_memory_claimed(struct tt_item *item)
{
    const struct tt_host_memory_item *own = memory_of(item);
    if (!own) return false;
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    bool claimed = own->claimed;
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    return claimed;
}

void tt_host_memory_claim(struct tt_item *item)
{
    struct tt_host_memory_item *own = memory_of(item);
    if (!own) return;
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    struct tt_host_memory_item *named = own->ptr ? NULL : named_by(own);
    bool claims = own->ptr && !own->gone;
    if (claims) own->claimed = true;
    if (named) named->claimed = false;
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    /* not before: the checks' lock comes first in report_memory() */
    if (claims && tt_host_checks()) tt_host_check_revive(own->ptr, own->bytes);
}

int tt_host_memory_unclaim(const void *ptr, bool later)
{
    if (!atomic_load_explicit(&tt_host.graph_memory.count, memory_order_acquire))
        return TT_HOST_NOT_SUPPORTED;
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    struct tt_host_memory_item *own = *find(ptr);
    bool good = own && own->claimed;
    if (good) own->claimed = false;
    if (good && later) own->frees_due++;
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    if (!own) return TT_HOST_NOT_SUPPORTED;
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

bool tt_host_memory_freed(const void *ptr)
{
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    struct tt_host_memory_item *own = *find(ptr);
    if (own && own->frees_due) own->frees_due--;
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    return own != NULL;
}

int tt_host_memory_item(void *ptr, size_t bytes, int device, struct tt_item **item_out)
{
    struct tt_host_memory_item *item = calloc(1, sizeof(*item));
    if (!item) return TT_HOST_OUT_OF_MEMORY;
    *item = (struct tt_host_memory_item){
        .item = {.step = memory_step, .reports_touches = true}, .ptr = ptr, .bytes = bytes};
    item->device = device;
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    item->next = tt_host.graph_memory.items;
    tt_host.graph_memory.items = item;
    atomic_fetch_add(&tt_host.graph_memory.count, 1);
    tt_host.graph_memory.used[device] += bytes;
    if (tt_host.graph_memory.high[device] < tt_host.graph_memory.used[device])
        tt_host.graph_memory.high[device] = tt_host.graph_memory.used[device];
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    *item_out = &item->item;
    return TT_HOST_OK;
}

int tt_host_memory_free_item(const void *ptr, struct tt_item **item_out)
{
    struct tt_host_memory_item *item = ptr ? calloc(1, sizeof(*item)) : NULL;
    if (!item) return ptr ? TT_HOST_OUT_OF_MEMORY : TT_HOST_INVALID_VALUE;
    item->item.step = memory_step;
    item->item.reports_touches = true;
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    struct tt_host_memory_item *named = *find(ptr);
    bool good = named && !named->has_free;
    if (good) named->has_free = true;
    item->freed = named;
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    if (!good) {
        free(item);
        return TT_HOST_INVALID_VALUE;
    }
    *item_out = &item->item;
    return TT_HOST_OK;
}

/* A graph may have the memory. */
static int free_with(void *ptr, int (*give)(void *ptr))
{
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (!ptr) return TT_HOST_OK;
    int rc = tt_host_memory_unclaim(ptr, false);
    struct tt_pointer found;
    if (tt_host_checks() && !tuttiHostPointer(ptr, &found) && found.base == ptr)
        tt_host_check_free(&(struct tt_check_block){ptr, found.bytes, found.kind, found.device});
    return rc == TT_HOST_NOT_SUPPORTED ? give(ptr) : rc;
}

int tuttiHostFree(void *ptr)
{
    return free_with(ptr, tt_host_memory_free);
}

int tt_host_memory_free_used(void *ptr)
{
    return free_with(ptr, tt_host_memory_leave);
}

void tt_host_graph_memory_reset(int device)
{
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    for (struct tt_host_memory_item **link = &tt_host.graph_memory.items; *link;) {
        struct tt_host_memory_item *item = *link;
        if (item->device != device) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        item->gone = true;
        item->claimed = false;
        atomic_fetch_sub(&tt_host.graph_memory.count, 1);
    }
    tt_host.graph_memory.used[device] = tt_host.graph_memory.high[device] = 0;
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
}

/* ---- what devices say of it ---- */

int tuttiHostGraphMemory(int device, uint64_t *used_out, uint64_t *high_out)
{
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    *used_out = tt_host.graph_memory.used[device];
    *high_out = tt_host.graph_memory.high[device];
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    return TT_HOST_OK;
}

int tuttiHostGraphMemoryMark(int device)
{
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.graph_memory.lock);
    tt_host.graph_memory.high[device] = tt_host.graph_memory.used[device];
    pthread_mutex_unlock(&tt_host.graph_memory.lock);
    return TT_HOST_OK;
}
