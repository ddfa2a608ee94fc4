/* A plain connect without a word, closed again: the other side sees a stranger who says nothing. */
#include "bootstrap/tree/knock.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define KNOCK_NSEC 250000000ull
enum { REFUSALS = 4 };

void tt_knock_end(struct tt_knock *knock)
{
    if (knock->fd >= 0) close(knock->fd);
    knock->fd = -1;
}

static void count(struct tt_knock *knock, int error)
{
    knock->refusals = error == ECONNREFUSED ? knock->refusals + 1 : 0;
}

/* An answer from another host comes between two knocks. */
static void take_answer(struct tt_knock *knock)
{
    struct pollfd writable = {.fd = knock->fd, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof(error);
    if (knock->fd < 0 || poll(&writable, 1, 0) != 1) return;
    getsockopt(knock->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    count(knock, error);
}

static void knock_at(struct tt_knock *knock, const union tt_addr *addr)
{
    take_answer(knock);
    tt_knock_end(knock);
    knock->fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (knock->fd < 0) return; /* then nobody is blamed */
    if (connect(knock->fd, &addr->sa, tt_addr_len(addr)) == 0) {
        count(knock, 0);
    } else if (errno != EINPROGRESS) {
        count(knock, errno);
    } else {
        return;
    }
    tt_knock_end(knock);
}

int tt_knock(struct tt_bootstrap *b)
{
    const struct tt_contact *contacts = b->parent_tree->contacts;
    const uint64_t now = tt_now_nsec();
    for (int i = 0; i < b->nbranches && b->parent_ranks && contacts; i++) {
        struct tt_branch *branch = &b->branches[i];
        struct tt_knock *knock = &branch->knock;
        if (branch->came) tt_knock_end(knock);
        if (branch->came || now < knock->next_nsec) continue;
        knock->next_nsec = now + KNOCK_NSEC;
        knock_at(knock, &contacts[b->parent_ranks[branch->rank]].addr);
        if (knock->refusals >= REFUSALS) return branch->rank;
    }
    return -1;
}
