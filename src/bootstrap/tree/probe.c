/* A plain connect that sends nothing and is closed again: the other side sees an unauthenticated
 * peer. */
#include "bootstrap/tree/probe.h"

#include "base/system/clock.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define PROBE_NSEC 250000000ull
enum { REFUSALS = 4 };

void tt_probe_end(struct tt_probe *probe)
{
    if (probe->fd >= 0) close(probe->fd);
    probe->fd = -1;
}

static void count(struct tt_probe *probe, int error)
{
    probe->refusals = error == ECONNREFUSED ? probe->refusals + 1 : 0;
}

/* An answer from another host comes between two probes. */
static void take_answer(struct tt_probe *probe)
{
    struct pollfd writable = {.fd = probe->fd, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof(error);
    if (probe->fd < 0 || poll(&writable, 1, 0) != 1) return;
    getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    count(probe, error);
}

static void probe_addr(struct tt_probe *probe, const union tt_addr *addr)
{
    take_answer(probe);
    tt_probe_end(probe);
    probe->fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->fd < 0) return; /* then no rank is blamed */
    if (connect(probe->fd, &addr->sa, tt_addr_len(addr)) == 0) {
        count(probe, 0);
    } else if (errno != EINPROGRESS) {
        count(probe, errno);
    } else {
        return;
    }
    tt_probe_end(probe);
}

int tt_probe_run(struct tt_bootstrap *b)
{
    const struct tt_contact *contacts = b->parent_tree->contacts;
    const uint64_t now = tt_now_nsec();
    for (int i = 0; i < b->nbranches && b->parent_ranks && contacts; i++) {
        struct tt_branch *branch = &b->branches[i];
        struct tt_probe *probe = &branch->probe;
        if (branch->came) tt_probe_end(probe);
        if (branch->came || now < probe->next_nsec) continue;
        probe->next_nsec = now + PROBE_NSEC;
        probe_addr(probe, &contacts[b->parent_ranks[branch->rank]].addr);
        if (probe->refusals >= REFUSALS) return branch->rank;
    }
    return -1;
}
