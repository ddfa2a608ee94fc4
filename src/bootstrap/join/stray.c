/* A new rank that was to come to a grow with an id of ncclGetUniqueId: it is refused at once, and
 * the root where the others wait does not know of it. The one process that it can inform is the
 * one that made its id; when a grow waits there that lacks just this rank, and no other grow does,
 * that one ends with the new rank's sentence. A caller that is quick to call again, by the right
 * id, has lost nothing. */
#include "bootstrap/join/root_state.h"
#include "bootstrap/wire/service.h"

/* Do the ranks that wait there lack this one? */
static bool lacks(const struct tt_root *root, const struct root_stray *stray)
{
    if (!root->grow.number || root->grow.passed || root->state != ROOT_OPEN || !root->slots ||
        root->first.nranks != stray->nranks || stray->rank < root->grow.existing)
        return false;
    int slot = tt_blocks_slot(&root->blocks, (int)root->first.index, stray->rank);
    return slot >= 0 && !root->slots[slot];
}

/* The only grow that waits for it; NULL: there is none, or more than one. */
static struct tt_root *waiting_for(const struct root_stray *stray)
{
    struct tt_root *found = NULL;
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (!lacks(root, stray)) continue;
        if (found) return NULL;
        found = root;
    }
    return found;
}

bool tt_root_stray_waits(struct tt_root *root, uint64_t now_nsec)
{
    struct root_stray *stray = &root->stray;
    if (!stray->until_nsec) return false;
    struct tt_root *grow = now_nsec >= stray->counts_nsec ? waiting_for(stray) : NULL;
    if (grow && now_nsec >= grow->first_nsec + TT_STRAY_AGAIN_NSEC) {
        tt_root_fail(grow, stray->decline.rc, "%s", stray->decline.sentence);
        stray->until_nsec = 0;
    }
    if (now_nsec >= stray->until_nsec && !grow) stray->until_nsec = 0;
    return stray->until_nsec != 0;
}
