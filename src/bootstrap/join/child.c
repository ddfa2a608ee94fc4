/* A rank that fails by itself before a child's members meet reports it over the parent, where they
 * look while they wait (tree/failure.c). */
#include "bootstrap/bootstrap.h"
#include "bootstrap/tree/exchange.h"
#include "bootstrap/tree/failure.h"
#include "bootstrap/wire/service.h"

#include <stdio.h>

void tt_bootstrap_child_fail(struct tt_bootstrap *parent, const struct tt_bootstrap_child *child,
                             int nranks, const char *sentence)
{
    unsigned char bytes[TT_CHILD_FAIL_BYTES];
    char text[TT_SENTENCE_BYTES];
    tt_service_lock();
    snprintf(text, sizeof(text), "rank %d cannot take part in making a communicator: %.500s",
             parent->rank, sentence);
    tt_failure_child_pack(child->salt, text, bytes);
    for (int r = 0; r < nranks && parent->epoch == tt_service()->epoch; r++) {
        int peer = child->parent_ranks[r];
        if (peer != parent->rank)
            tt_exchange_post(parent, peer, tt_failure_child_tag(child->salt), bytes, sizeof(bytes));
    }
    tt_service_unlock();
}
