/* Kernels that report nothing, from their launch until they are over. Launches of one executable
 * run one after another, so its kernels are what they are in the oldest launch that is not over. */
#include "device/host/check/shadow/inside.h"

#include <stdlib.h>
#include <string.h>

void tt_check_launch_kernel(struct tt_host_check *check, struct tt_check_op *op,
                            const struct tt_item *item, size_t node)
{
    if (check->nopaque == check->opaque_room) {
        size_t room = check->opaque_room ? 2 * check->opaque_room : 16;
        struct tt_check_launched *wider = realloc(check->opaque, room * sizeof(*wider));
        if (!wider) return;
        check->opaque = wider;
        check->opaque_room = room;
    }
    op->refs++;
    check->opaque[check->nopaque++] = (struct tt_check_launched){
        check->launching, item, op, tt_check_inside_hold(check->launching_inside), node};
}

static void drop(struct tt_host_check *check, size_t index)
{
    struct tt_check_op *op = check->opaque[index].op;
    tt_check_inside_drop(check->opaque[index].inside);
    check->nopaque--;
    memmove(&check->opaque[index], &check->opaque[index + 1],
            (check->nopaque - index) * sizeof(check->opaque[0]));
    tt_check_op_drop(op);
}

void tt_check_launch_end(struct tt_host_check *check, const struct tt_check_op *op)
{
    size_t i = 0;
    while (i < check->nopaque && check->opaque[i].op != op)
        i++;
    if (i < check->nopaque) drop(check, i);
}

static size_t find(const struct tt_host_check *check, const struct tt_item *item)
{
    size_t i = 0;
    while (i < check->nopaque && (check->opaque[i].item != item ||
                                  check->opaque[i].launches != tt_host_thread.check.launches))
        i++;
    return i;
}

struct tt_check_op *tt_host_check_launched(const struct tt_item *item)
{
    struct tt_host_check *check = tt_host_thread.check.launches ? tt_host_check_lock() : NULL;
    size_t i = check ? find(check, item) : 0;
    struct tt_check_op *op = check && i < check->nopaque ? check->opaque[i].op : NULL;
    tt_host_check_unlock(check);
    return op;
}

void tt_host_check_landed(const struct tt_item *item)
{
    struct tt_host_check *check = tt_host_thread.check.launches ? tt_host_check_lock() : NULL;
    size_t i = check ? find(check, item) : 0;
    if (check && i < check->nopaque) drop(check, i);
    tt_host_check_unlock(check);
}

void tt_host_check_unlaunched(const void *launches)
{
    struct tt_host_check *check = tt_host_check_lock();
    while (check && check->nopaque && check->opaque[check->nopaque - 1].launches == launches)
        drop(check, check->nopaque - 1);
    tt_host_check_unlock(check);
}
