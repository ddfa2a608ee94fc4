/* Which rank made an id for a grow. Where its communicator ends or fails before it calls the grow,
 * the root of the id, in its process, says so to the new ranks that came. */
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join/root_state.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/wire/service.h"

#include <sodium.h>
#include <string.h>
#include <unistd.h>

uint64_t tt_root_maker(const struct tt_bootstrap *parent)
{
    unsigned char key[32];
    uint64_t maker;
    tt_bootstrap_key(parent, "grow maker", key);
    memcpy(&maker, key, sizeof(maker));
    sodium_memzero(key, sizeof(key));
    return maker + (uint64_t)parent->rank;
}

/* The rank that made the id will not call the grow any more. Lock held. */
static bool is_over(const struct tt_root *root)
{
    const struct root_grow *grow = &root->grow;
    if (!grow->maker || grow->taken || root->state != ROOT_OPEN) return false;
    for (const struct tt_bootstrap *b = tt_service()->members; b; b = b->next) {
        if (b->contacts && tt_root_maker(b) == grow->maker)
            return b->leaving || b->given_up || atomic_load(&b->error);
    }
    return true;
}

void tt_root_end_grow(struct tt_root *root)
{
    char host[TT_HOST_BYTES] = "";
    if (!is_over(root)) return;
    gethostname(host, sizeof(host) - 1);
    tt_root_fail(root, ncclRemoteError,
                 "the communicator that was to grow by this id ended or failed before the process "
                 "that made the id (on host %s, pid %d) called ncclCommGrow",
                 host, (int)getpid());
}
