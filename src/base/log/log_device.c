/* What a thread's log lines need, and the mark of the library that complains first.
 * They have an archive of their own because a process must have them once: libtutti-host defines
 * and exports them, libnccl takes them from there, and what links the rooms directly gets them
 * from the archive. What they keep is in that copy's tt_base; of a thread it fits a pointer, so
 * nothing is allocated. */
#include "base/log/log_device.h"

#include "base/process.h"

#include <stdatomic.h>
#include <string.h>

_Static_assert(sizeof(struct tt_log_thread) <= sizeof(void *), "the value of a key holds it");

/* Functions that end other keys of the thread still log. */
static void keep(void *value)
{
    pthread_setspecific(tt_base.log.threads, value);
}

static void make_key(void)
{
    tt_base.log.threads_keyed = pthread_key_create(&tt_base.log.threads, keep) == 0;
}

struct tt_log_thread tuttiLogThread(void)
{
    struct tt_log_thread thread = {0};
    pthread_once(&tt_base.log.threads_once, make_key);
    void *value = tt_base.log.threads_keyed ? pthread_getspecific(tt_base.log.threads) : NULL;
    memcpy(&thread, &value, sizeof(thread));
    return thread;
}

void tuttiLogThreadSet(struct tt_log_thread thread)
{
    void *value = NULL;
    memcpy(&value, &thread, sizeof(thread));
    pthread_once(&tt_base.log.threads_once, make_key);
    if (tt_base.log.threads_keyed) pthread_setspecific(tt_base.log.threads, value);
}

bool tuttiLogReport(void)
{
    return !atomic_exchange(&tt_base.log.reported, true);
}

void tuttiLogForget(void)
{
    atomic_store(&tt_base.log.reported, false);
}
