/* The state that all sockets of the room share. */
#include "bootstrap/wire/service.h"

#include "base/log.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"

#include <fcntl.h>
#include <unistd.h>

#define LOG_EVERY_NSEC 10000000000ull
#define EXHAUSTED_NSEC 2500000000ull /* unauthenticated peers are gone after 2 s */
#define CALLS_NSEC 500000000ull      /* waiting callers are looked at far more often */

/* The process has one: descriptors and the thread are process-wide by nature. */
static struct tt_service the_service = {
    .netif_lock = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .ended = PTHREAD_COND_INITIALIZER,
    .epoll_fd = -1,
    .event_fd = -1,
    .reserve_fd = -1,
    .next_token = TT_TOKEN_WAKE + 1,
};

struct tt_service *tt_service(void)
{
    return &the_service;
}

void tt_service_lock(void)
{
    pthread_mutex_lock(&the_service.lock);
}

void tt_service_unlock(void)
{
    pthread_mutex_unlock(&the_service.lock);
}

void tt_service_wake(void)
{
    uint64_t one = 1;
    if (the_service.event_fd < 0) return;
    ssize_t done = write(the_service.event_fd, &one, sizeof(one));
    (void)done; /* full means: already awake */
}

void tt_service_keep_reserve(void)
{
    if (the_service.reserve_fd < 0 && the_service.event_fd >= 0)
        the_service.reserve_fd = fcntl(the_service.event_fd, F_DUPFD_CLOEXEC, 0);
}

void tt_service_spend_reserve(void)
{
    if (the_service.reserve_fd >= 0) close(the_service.reserve_fd);
    the_service.reserve_fd = -1;
}

void tt_service_accepted_none(uint64_t now_nsec)
{
    struct tt_service *service = &the_service;
    if (now_nsec > service->exhausted_last_nsec + CALLS_NSEC) service->exhausted_nsec = 0;
    if (!service->exhausted_nsec) service->exhausted_nsec = now_nsec;
    service->exhausted_last_nsec = now_nsec;
}

bool tt_service_cannot_accept(uint64_t now_nsec)
{
    const uint64_t since = the_service.exhausted_nsec;
    return since && now_nsec >= since + EXHAUSTED_NSEC &&
           now_nsec < the_service.exhausted_last_nsec + CALLS_NSEC;
}

void tt_service_refused(const char *why)
{
    uint64_t now = tt_now_nsec();
    the_service.refused++;
    if (the_service.refused_logged_nsec && now - the_service.refused_logged_nsec < LOG_EVERY_NSEC)
        return;
    tt_attn("bootstrap: %u connection(s) without proof of the secret were closed, the last one: %s",
            the_service.refused, why);
    the_service.refused_logged_nsec = now;
    the_service.refused = 0;
}

bool tt_bootstrap_talks(void)
{
    tt_service_lock();
    bool talks = the_service.users > 0;
    tt_service_unlock();
    return talks;
}
