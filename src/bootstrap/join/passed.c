/* Ids for a grow that their maker passed over: it made two, or made one before a Split, and a new
 * rank may have been given the wrong one. That rank comes to the root of that id, in the maker's
 * process, and to no other; so it is the maker's join by the right id that looks there, and ends
 * for all. An id counts as passed over only when its maker has called a grow of that number or a
 * later one, in its own order of calls, by another id. */
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join/id.h"
#include "bootstrap/join/root_state.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/wire/service.h"

#include <sodium.h>
#include <string.h>

static bool has_key(const struct tt_root *root, const struct tt_key *key)
{
    return memcmp(root->acceptor.key.name, key->name, sizeof(key->name)) == 0;
}

void tt_root_for_grow(const unsigned char secret[TT_SECRET_BYTES],
                      const struct tt_bootstrap *parent, uint64_t number)
{
    struct tt_key key;
    tt_key_derive(secret, TT_KEY_ROOT, &key);
    tt_service_lock();
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (has_key(root, &key)) {
            root->grow = (struct root_grow){
                .maker = tt_root_maker(parent), .number = number, .existing = parent->nranks};
        }
    }
    tt_service_unlock();
    sodium_memzero(&key, sizeof(key));
}

static bool key_of(const ncclUniqueId *id, struct tt_key *key_out)
{
    struct tt_id_parts parts;
    if (!id || !tt_id_valid(id) || tt_id_read(id, &parts)) return false;
    tt_key_derive(parts.secret, TT_KEY_ROOT, key_out);
    sodium_memzero(&parts, sizeof(parts));
    return true;
}

void tt_id_grow_by(const struct tt_bootstrap *parent, const ncclUniqueId *id)
{
    const uint64_t maker = tt_root_maker(parent);
    struct tt_key key;
    if (!key_of(id, &key)) return;
    tt_service_lock();
    for (struct tt_root *root = tt_service()->roots; root; root = root->next)
        root->grow.taken |= root->grow.maker == maker && has_key(root, &key);
    tt_service_unlock();
    sodium_memzero(&key, sizeof(key));
}

static void refuse(struct tt_root *root)
{
    tt_root_fail(root, ncclInvalidArgument,
                 "this id was made for child %llu of the communicator, and the rank that made it "
                 "grew by another one: all ranks take one id, made after the last Split or Grow",
                 (unsigned long long)root->grow.number);
}

void tt_id_pass_over(const struct tt_bootstrap *parent, uint64_t number, const ncclUniqueId *id)
{
    const uint64_t maker = tt_root_maker(parent);
    struct tt_key key;
    const bool right = key_of(id, &key);
    tt_service_lock();
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        const struct root_grow *grow = &root->grow;
        if (grow->maker != maker || grow->number > number || grow->taken) continue;
        if (right && has_key(root, &key)) continue;
        root->grow.passed = right;
        if (right) memcpy(root->grow.by, key.name, sizeof(key.name));
        if (!right) refuse(root);
    }
    tt_service_unlock();
    sodium_memzero(&key, sizeof(key));
}

/* Lock held. */
static bool passed_for(const struct tt_root *root, const struct tt_key *key)
{
    return root->grow.passed && root->state == ROOT_OPEN &&
           memcmp(root->grow.by, key->name, sizeof(key->name)) == 0;
}

ncclResult_t tt_root_passed_over(const struct tt_key *key)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (!root->slots || !passed_for(root, key)) continue;
        const struct tt_join *first = &root->first;
        refuse(root);
        return tt_fail(ncclInvalidArgument,
                       "ncclCommGrow: rank %u on host %s (pid %d) was given another id, made for "
                       "child %llu of the communicator: all ranks take one id, made after the last "
                       "Split or Grow",
                       first->rank, first->host, first->pid, (unsigned long long)root->grow.number);
    }
    return ncclSuccess;
}

void tt_root_passed_end(const struct tt_key *key)
{
    for (struct tt_root *root = tt_service()->roots; root; root = root->next) {
        if (passed_for(root, key)) refuse(root);
    }
}
