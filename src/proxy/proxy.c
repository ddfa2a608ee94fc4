/* Serves network edges in the background. While slots move it goes on at once; while something is
 * under way it sleeps, briefly at first when it is alone and longer when waiting threads move the
 * network themselves; with nothing to do it sleeps until it is woken. */
#include "proxy/proxy.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "plugin/profiler/profiler.h"
#include "transport/serve.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLEEP_LEAST_USEC 50u
#define SLEEP_MOST_USEC 1000u
#define FLUSH_NSEC 10000000000ull /* at the end, without any movement: */
#define GONE_NSEC 500000000ull    /* where those it is for have ended the communicator */

struct tt_proxy {
    struct tt_member *member;       /* borrowed */
    struct tt_transport *transport; /* borrowed */
    struct tt_profiler *profiler;   /* borrowed; NULL: none */
    pthread_t thread;
    pid_t process; /* that has the thread: a child of fork has not */
    _Atomic bool stop;
    uint64_t sleep_usec, drives;
    uint32_t fruitless; /* sleeps since something moved */
    bool active;        /* last state that the profiler got */
};

/* ---- events ---- */

static void *control_start(struct tt_proxy *proxy, ncclProfilerEventState_v7_t state)
{
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileProxyCtrl};
    void *event = tt_prof_start(proxy->profiler, tt_prof_mask(proxy->profiler), &descr);
    tt_prof_state(proxy->profiler, event, state, NULL);
    return event;
}

static void control_mark(struct tt_proxy *proxy, bool active)
{
    if (!proxy->profiler || proxy->active == active) return;
    proxy->active = active;
    tt_prof_stop(proxy->profiler, control_start(proxy, active ? ncclProfilerProxyCtrlActive
                                                              : ncclProfilerProxyCtrlIdle));
}

/* ---- the thread ---- */

static void sleep_until_woken(struct tt_proxy *proxy)
{
    control_mark(proxy, false);
    void *event = control_start(proxy, ncclProfilerProxyCtrlSleep);
    tt_transport_sleep(proxy->transport, 0);
    tt_prof_state(proxy->profiler, event, ncclProfilerProxyCtrlWakeup, NULL);
    tt_prof_stop(proxy->profiler, event);
    proxy->sleep_usec = SLEEP_LEAST_USEC;
}

static void back_off(struct tt_proxy *proxy)
{
    uint64_t drives = tt_transport_drives(proxy->transport);
    bool alone = drives == proxy->drives;
    proxy->drives = drives;
    uint64_t own_usec = tt_wait_backoff_nsec(proxy->fruitless++) / 1000;
    tt_transport_sleep(proxy->transport, alone ? own_usec : proxy->sleep_usec);
    if (proxy->sleep_usec < SLEEP_MOST_USEC) proxy->sleep_usec *= 2;
}

/* Posted slots leave before the connections close. */
static void flush(struct tt_proxy *proxy)
{
    uint64_t since = tt_now_nsec();
    uint32_t sleeps = 0;
    ncclResult_t rc = ncclSuccess;
    bool gone = false;
    while (!tt_member_aborted(proxy->member) && tt_transport_pending(proxy->transport, &gone)) {
        enum tt_net_state state = tt_transport_serve(proxy->transport, &rc);
        if (rc) return;
        if (state == TT_NET_MOVED) {
            since = tt_now_nsec();
            sleeps = 0;
            continue;
        }
        if (tt_now_nsec() - since > (gone ? GONE_NSEC : FLUSH_NSEC)) {
            tt_warn("rank %d: peers do not take what was sent to them; it is dropped",
                    proxy->member->rank);
            return;
        }
        tt_sleep_usec(tt_wait_backoff_nsec(sleeps++) / 1000);
    }
}

static void *proxy_main(void *arg)
{
    struct tt_proxy *proxy = arg;
    pthread_setname_np(pthread_self(), "tutti-proxy");
    tt_log_set_device(proxy->member->device);
    while (!atomic_load_explicit(&proxy->stop, memory_order_acquire)) {
        ncclResult_t rc = ncclSuccess;
        enum tt_net_state state = tt_transport_serve(proxy->transport, &rc);
        if (rc) tt_member_abort(proxy->member, rc); /* waits end */
        if (state == TT_NET_IDLE) {
            sleep_until_woken(proxy);
            continue;
        }
        control_mark(proxy, true);
        if (state == TT_NET_BUSY) {
            back_off(proxy);
        } else {
            proxy->fruitless = 0;
        }
    }
    flush(proxy);
    return NULL;
}

/* ---- life ---- */

/* "3" or "0-3" at *at, which moves behind it and its comma. */
static bool parse_cores(const char **at, cpu_set_t *set)
{
    char *end = NULL;
    unsigned long first = strtoul(*at, &end, 10);
    unsigned long last = first;
    if (end == *at) return false;
    if (*end == '-') {
        *at = end + 1;
        last = strtoul(*at, &end, 10);
        if (end == *at) return false;
    }
    if (last >= CPU_SETSIZE || (*end != ',' && *end != '\0')) return false;
    for (unsigned long cpu = first; cpu <= last; cpu++) {
        CPU_SET(cpu, set);
    }
    *at = *end ? end + 1 : end;
    return true;
}

/* NCCL_PROXY_CPUSET: "0-3,8". What cannot be read or set is reported and ignored. */
static void pin_thread(pthread_t thread)
{
    const char *list = tt_param_str("NCCL_PROXY_CPUSET");
    cpu_set_t set;
    bool good = true;
    if (!list || !*list) return;
    CPU_ZERO(&set);
    for (const char *at = list; *at && good;) {
        good = parse_cores(&at, &set);
    }
    if (good && !pthread_setaffinity_np(thread, sizeof(set), &set)) return;
    tt_warn_setting("NCCL_PROXY_CPUSET %s: not a list of cores that this process may use; ignored",
                    list);
}

ncclResult_t tt_proxy_create(struct tt_member *member, struct tt_transport *transport,
                             struct tt_profiler *profiler, struct tt_proxy **proxy_out)
{
    sigset_t all;
    sigset_t before;
    struct tt_proxy *proxy = tt_calloc(1, sizeof(*proxy));
    if (!proxy) return tt_fail(ncclSystemError, "proxy: out of memory");
    proxy->member = member;
    proxy->transport = transport;
    proxy->profiler = profiler;
    proxy->sleep_usec = SLEEP_LEAST_USEC;
    proxy->process = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&proxy->thread, NULL, proxy_main, proxy);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) {
        free(proxy);
        return tt_fail(ncclSystemError, "rank %d: the proxy thread does not start (error %d)",
                       member->rank, err);
    }
    pin_thread(proxy->thread);
    *proxy_out = proxy;
    return ncclSuccess;
}

void tt_proxy_destroy(struct tt_proxy *proxy)
{
    if (!proxy) return;
    if (proxy->process == getpid()) {
        atomic_store_explicit(&proxy->stop, true, memory_order_release);
        tt_transport_wake(proxy->transport);
        pthread_join(proxy->thread, NULL);
    }
    free(proxy);
}
