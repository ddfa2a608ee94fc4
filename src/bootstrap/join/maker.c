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

/* The rank that made the id, while its process knows it; NULL: it has left. Lock held. */
static const struct tt_bootstrap *maker_of(const struct tt_root *root)
{
    const struct tt_bootstrap *b = tt_service()->members;
    while (b && !(b->contacts && tt_root_maker(b) == root->grow.maker))
        b = b->next;
    return b;
}

/* A failure, whose words may still come. */
static bool is_unexplained(const struct tt_bootstrap *b)
{
    return b && atomic_load(&b->error) && !atomic_load(&b->has_sentence);
}

void tt_root_end_grow(struct tt_root *root)
{
    const struct root_grow *grow = &root->grow;
    char host[TT_HOST_BYTES] = "";
    if (!grow->maker || grow->taken || root->state != ROOT_OPEN) return;
    const struct tt_bootstrap *b = maker_of(root);
    if (b && !b->leaving && !b->given_up && !atomic_load(&b->error)) return;
    if (is_unexplained(b)) return;
    const bool failed = b && atomic_load(&b->error);
    gethostname(host, sizeof(host) - 1);
    tt_root_fail(root, ncclRemoteError,
                 "the communicator that was to grow by this id ended or failed before the process "
                 "that made the id (on host %s, pid %d) called ncclCommGrow%s%s",
                 host, (int)getpid(), failed ? ": " : "", failed ? b->sentence : "");
}
