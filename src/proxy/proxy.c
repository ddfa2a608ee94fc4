/* Moves network steps in the background. While steps move it goes on at once; otherwise it naps,
 * longer and longer up to 1 ms: executors that wait move the network themselves, so the nap costs
 * nobody latency. */
#include "proxy/proxy.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "transport/transport.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { NAP_LEAST_USEC = 50, NAP_MOST_USEC = 1000 };

struct tt_proxy {
    struct tt_member *member;       /* borrowed */
    struct tt_transport *transport; /* borrowed */
    pthread_t thread;
    _Atomic bool stop;
};

static void *proxy_main(void *arg)
{
    struct tt_proxy *proxy = arg;
    uint64_t nap_usec = NAP_LEAST_USEC;
    while (!atomic_load_explicit(&proxy->stop, memory_order_acquire)) {
        bool moved = false;
        ncclResult_t rc = tt_transport_progress(proxy->transport, &moved);
        uint32_t none = 0;
        if (rc) atomic_compare_exchange_strong(&proxy->member->abort, &none, (uint32_t)rc);
        if (moved) {
            nap_usec = NAP_LEAST_USEC;
            continue;
        }
        tt_sleep_usec(nap_usec);
        nap_usec = nap_usec * 2 < NAP_MOST_USEC ? nap_usec * 2 : NAP_MOST_USEC;
    }
    return NULL;
}

ncclResult_t tt_proxy_create(struct tt_member *member, struct tt_transport *transport,
                             struct tt_proxy **proxy_out)
{
    sigset_t all;
    sigset_t before;
    struct tt_proxy *proxy = tt_calloc(1, sizeof(*proxy));
    if (!proxy) return tt_fail(ncclSystemError, "proxy: out of memory");
    proxy->member = member;
    proxy->transport = transport;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&proxy->thread, NULL, proxy_main, proxy);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) {
        free(proxy);
        return tt_fail(ncclSystemError, "rank %d: the proxy thread does not start (error %d)",
                       member->rank, err);
    }
    *proxy_out = proxy;
    return ncclSuccess;
}

void tt_proxy_destroy(struct tt_proxy *proxy)
{
    if (!proxy) return;
    atomic_store_explicit(&proxy->stop, true, memory_order_release);
    pthread_join(proxy->thread, NULL);
    free(proxy);
}
