/* A thread's times come from three counters that are read one after another. Between two reads it
 * may be put off the processor for long, so the clock is read innermost: what happens outside of
 * the call then shortens the sleep that is found, and cannot lengthen it. A call without a
 * voluntary switch did not sleep, whatever the clock says. */
#include "base/system/thread_time.h"

#include "base/system/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool read_task(pid_t thread, const char *file, char *text, size_t text_bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)thread, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, text_bytes - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* 0 where the kernel does not count it. */
static uint64_t ready_nsec(pid_t thread)
{
    char text[96];
    char *end = NULL;
    if (!read_task(thread, "schedstat", text, sizeof(text))) return 0;
    (void)strtoull(text, &end, 10); /* on a processor */
    return strtoull(end, NULL, 10);
}

static uint64_t cpu_nsec(clockid_t clock)
{
    struct timespec now = {0};
    if (clock_gettime(clock, &now)) return 0;
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t sleeps_of(pid_t thread)
{
    static const char key[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    const char *at = read_task(thread, "status", text, sizeof(text)) ? strstr(text, key) : NULL;
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void count_switches(struct tt_thread_time *time)
{
    struct rusage usage = {.ru_nvcsw = 0};
    if (time->thread != gettid()) {
        time->sleeps = sleeps_of(time->thread);
    } else if (!getrusage(RUSAGE_THREAD, &usage)) {
        time->sleeps = (uint64_t)usage.ru_nvcsw;
        time->page_reads = (uint64_t)usage.ru_majflt;
    }
}

void tt_thread_time_begin(struct tt_thread_time *time)
{
    *time = (struct tt_thread_time){.thread = gettid()};
    if (pthread_getcpuclockid(pthread_self(), &time->cpu_clock))
        time->cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    time->ready_nsec = ready_nsec(time->thread);
    count_switches(time);
    time->cpu_nsec = cpu_nsec(time->cpu_clock);
    time->start_nsec = tt_now_nsec();
}

struct tt_thread_spent tt_thread_time_spent(const struct tt_thread_time *time)
{
    struct tt_thread_time now = *time;
    now.start_nsec = tt_now_nsec();
    now.cpu_nsec = cpu_nsec(time->cpu_clock);
    count_switches(&now);
    now.ready_nsec = ready_nsec(time->thread);

    struct tt_thread_spent spent = {time->thread, now.cpu_nsec - time->cpu_nsec, 0};
    const uint64_t accounted = spent.computed_nsec + now.ready_nsec - time->ready_nsec;
    const uint64_t passed = now.start_nsec - time->start_nsec;
    const bool slept = now.sleeps != time->sleeps && now.page_reads == time->page_reads;
    if (slept && passed > accounted) spent.slept_nsec = passed - accounted;
    return spent;
}

/* What this thread has waited since it was seen last. */
static uint64_t added_by(struct tt_threads_ready *ready, pid_t thread)
{
    const uint64_t nsec = ready_nsec(thread);
    int k = 0;
    while (k < ready->count && ready->seen[k].thread != thread)
        k++;
    if (k == TT_THREADS_SEEN) return 0;
    const uint64_t before = k < ready->count ? ready->seen[k].nsec : 0;
    if (k == ready->count) ready->seen[ready->count++].thread = thread;
    ready->seen[k].nsec = nsec;
    return nsec > before ? nsec - before : 0;
}

uint64_t tt_threads_ready_added(struct tt_threads_ready *ready, pid_t thread)
{
    uint64_t added = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return 0;
    for (const struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
        const pid_t other = (pid_t)strtol(task->d_name, NULL, 10);
        if (other <= 0) continue; /* the folder and its parent */
        const uint64_t more = added_by(ready, other);
        if (other != thread) added += more;
    }
    closedir(tasks);
    return added;
}

bool tt_thread_spent_more(const struct tt_thread_spent *spent, uint64_t most_nsec,
                          struct tt_threads_ready *ready)
{
    if (spent->computed_nsec + spent->slept_nsec <= most_nsec) return false;
    if (spent->computed_nsec > most_nsec) return true;
    const uint64_t others_nsec = tt_threads_ready_added(ready, spent->thread);
    const uint64_t slept_nsec =
        spent->slept_nsec > others_nsec ? spent->slept_nsec - others_nsec : 0;
    return spent->computed_nsec + slept_nsec > most_nsec;
}
