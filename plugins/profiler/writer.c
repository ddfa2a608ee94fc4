/* The file: one per process, opened with its first communicator. A thread empties the rings into
 * it; the end of a communicator and of the process do so too. A thread that empties holds the lock.
 */
#include "aside.h"
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLEEP_NSEC = 20000000, LEAST_SLEEP_NSEC = 1000000 };
enum { LEAST_RECORDS = 16, MOST_RECORDS = 1 << 20, USUAL_RECORDS = 1 << 16 };
enum { CONTROL_NSEC = 200000000 };
enum { WORDS_OF_RECORD = 4 }; /* by which rings are measured */

/* ---- the file ---- */

static void write_buffer(void)
{
    struct trace_process *all = &trace_process;
    size_t done = 0;
    while (!all->failed && done < all->used) {
        ssize_t n = write(all->fd, all->buffer + done, all->used - done);
        if (n > 0) done += (size_t)n;
        if (n > 0 || (n < 0 && errno == EINTR)) continue;
        all->failed = true;
        trace_complain("trace: the file cannot be written any more", "", n < 0 ? errno : ENOSPC);
    }
    all->used = 0;
}

/* A disk that is full, a limit of file sizes and a pipe without a reader end the trace, never the
 * job; it is said once. */
static void flush(void)
{
    struct trace_guard guard;
    if (trace_process.failed || !trace_process.records_wanted) trace_process.used = 0;
    if (trace_process.used == 0) return;
    trace_guard_begin(&guard);
    write_buffer();
    trace_guard_end(&guard, trace_process.failed);
}

void trace_put(const char *bytes, size_t count)
{
    struct trace_process *all = &trace_process;
    if (all->used + count > sizeof(all->buffer)) flush();
    memcpy(all->buffer + all->used, bytes, count);
    all->used += count;
}

void trace_say(const char *fmt, ...)
{
    char line[TRACE_LINE_BYTES];
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    int bytes = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    trace_put(line, (size_t)bytes);
}

/* A line that every file begins with. */
static void introduce(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void introduce(const char *fmt, ...)
{
    char line[TRACE_LINE_BYTES];
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    int bytes = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (trace_process.kept.room) {
        trace_keep_line(line, (size_t)bytes);
    } else {
        trace_put(line, (size_t)bytes);
    }
}

static void file_name(char *name, size_t bytes)
{
    const char *from = getenv("TUTTI_TRACE_FILE"), *folder = getenv("TUTTI_PROFILE_DIR");
    const char *ending = trace_process.block.wanted ? "records" : "jsonl";
    char usual[PATH_MAX];
    if (!folder || !*folder) folder = ".";
    snprintf(usual, sizeof(usual), "%s/tutti-trace.%%h.%%p.%s", folder, ending);
    trace_name(from && *from ? from : usual, name, bytes);
}

static const int known_bits[] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};

static int mask_of(int version)
{
    const char *wanted = getenv("NCCL_PROFILE_EVENT_MASK");
    return known_bits[version] & (wanted && *wanted ? (int)strtol(wanted, NULL, 0) : 0xffff);
}

static void put_head(int version)
{
    char host[64], exe[256];
    uint64_t now_nsec = trace_clock_nsec();
    trace_host(host, sizeof(host));
    trace_clean(exe, sizeof(exe), program_invocation_name);
    trace_say("{\"t\":\"head\",\"v\":1,\"host\":\"%s\",\"pid\":%d,\"exe\":\"%s\","
              "\"start_wall_ns\":%llu,\"start_mono_ns\":%llu,"
              "\"clock\":\"monotonic\",\"api\":%d,\"mask\":%d,\"sample\":%u}\n",
              host, (int)getpid(), exe, (unsigned long long)trace_wall_nsec(),
              (unsigned long long)now_nsec, version, mask_of(version),
              atomic_load_explicit(&trace_process.sample, memory_order_relaxed));
    if (trace_process.block.wanted) trace_block_begin_file(now_nsec);
}

static void put_clocks(void)
{
    trace_say("{\"t\":\"clk\",\"mono_ns\":%llu,\"wall_ns\":%llu}\n",
              (unsigned long long)trace_clock_nsec(), (unsigned long long)trace_wall_nsec());
}

/* ---- from rings to the file ---- */

static void write_record(const struct trace_record *record, int tid)
{
    struct trace_process *all = &trace_process;
    if (!all->records_wanted) return;
    if (all->used + TRACE_LINE_BYTES > sizeof(all->buffer)) flush();
    all->used += trace_line(record, tid, all->buffer + all->used);
    all->written[record->kind]++;
}

static uint64_t ticks_of(const struct trace_place *place)
{
    return trace_process.first_ticks + (trace_word_of(place, 0) >> TRACE_TIME_SHIFT);
}

/* Returns the words of the record. */
static size_t take_record(struct trace_ring *ring, const struct trace_place *place, uint64_t ticks)
{
    struct trace_process *all = &trace_process;
    struct trace_record record;
    uint64_t nsec = all->ticks_are_nsec ? ticks : trace_clock_at(&all->clock, ticks);
    if (all->block.wanted) {
        size_t words = trace_block_add(ring, place, nsec);
        bool begins = (trace_word_of(place, 0) & (TRACE_VALUED - 1)) == TRACE_START;
        if (!all->outputs && begins) ring->reported_id++;
        if (!all->outputs) return words;
    }
    size_t words = trace_decode(place->words, place->at, place->mask, &record);
    record.ts_nsec = nsec;
    if (record.kind == TRACE_START) record.id = ++ring->reported_id;
    if (all->outputs) trace_outputs_take(&record, ring->tid);
    if (all->kept.room) {
        trace_keep(&record, ring->tid);
    } else if (!all->block.wanted) {
        write_record(&record, ring->tid);
    }
    return words;
}

/* Records up to `until`, from when on the clock is not known yet. */
static void empty_ring(struct trace_ring *ring, uint64_t until)
{
    enum { RELIEF = 256 }; /* records between two looks at how full the rings are */
    uint64_t head = ring->known_head;
    uint32_t turn = 0;
    if (head != ring->done && !ring->reported) {
        introduce("{\"t\":\"thread\",\"tid\":%d,\"name\":\"%s\"}\n", ring->tid, ring->name);
        ring->reported = true;
    }
    while (ring->done != head) {
        if (++turn % RELIEF == 0) trace_relieve_rings();
        struct trace_place place = trace_place_of(ring, ring->done);
        uint64_t ticks = ticks_of(&place);
        if (ticks > until) break;
        ring->done += take_record(ring, &place, ticks);
        /* one by one, so that the thread has room as soon as there is some; pairs with push */
        if (ring->done > atomic_load_explicit(&ring->tail, memory_order_relaxed))
            atomic_store_explicit(&ring->tail, ring->done, memory_order_release);
    }
    trace_block_end(ring);
    if (!ring->has_left || ring->done != head) return;
    ring->has_left = false; /* from here on it may have a new owner */
    atomic_store_explicit(&ring->state, TRACE_RING_FREE, memory_order_release);
}

/* Let the kernel bring a new ring's memory now, so that its thread meets no page fault. Where that
 * is not known (before Linux 5.14), it meets some. */
static void bring_memory(struct trace_ring *ring)
{
    uint64_t page = 4096, first = (uint64_t)(uintptr_t)ring->words / page * page;
    size_t bytes = trace_process.ring_words * sizeof(ring->words[0]) / page * page;
    if (!ring->brought && bytes > 0)
        (void)madvise((void *)(uintptr_t)first, bytes, MADV_POPULATE_WRITE); /* NOLINT: a page */
    ring->brought = true;
}

/* The time of a ring's oldest record; UINT64_MAX: it has none. */
static uint64_t oldest_of(const struct trace_ring *ring)
{
    struct trace_place place = trace_place_of(ring, ring->done);
    return ring->known_head == ring->done ? UINT64_MAX : ticks_of(&place);
}

/* The ring that has the oldest record; *second becomes the time of the oldest one of the others if
 * that is earlier. */
static struct trace_ring *oldest_ring(uint64_t *first, uint64_t *second)
{
    struct trace_ring *oldest = NULL;
    *first = UINT64_MAX;
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring =
            atomic_load_explicit(&trace_process.rings[i], memory_order_acquire);
        uint64_t at = ring ? oldest_of(ring) : UINT64_MAX;
        uint64_t later = at < *first ? *first : at;
        if (later < *second) *second = later;
        if (at < *first) {
            *first = at;
            oldest = ring;
        }
    }
    return oldest;
}

/* In the order of time over all rings, as operations are made of what several threads record. */
static void empty_in_order(uint64_t until)
{
    for (;;) {
        uint64_t first, second = until;
        struct trace_ring *ring = oldest_ring(&first, &second);
        if (!ring || first > until) return;
        empty_ring(ring, second);
    }
}

/* Once a turn: each look takes the line from its thread, whose next record waits for it. */
static void look_at_heads(void)
{
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring =
            atomic_load_explicit(&trace_process.rings[i], memory_order_acquire);
        if (!ring) continue;
        /* In this order: a thread that has left records nothing more. Pairs with its end. */
        ring->has_left =
            atomic_load_explicit(&ring->state, memory_order_acquire) == TRACE_RING_LEFT;
        /* pairs with push */
        ring->known_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    }
}

/* `all_of_it`: also what other threads recorded just now. */
static void empty_rings(bool all_of_it)
{
    struct trace_process *all = &trace_process;
    uint64_t now = trace_clock_pair(&all->clock), until = now;
    if (all->ticks_are_nsec) until = now = trace_clock_nsec();
    if (all->outputs) until = all->emptied_ticks;
    all->emptied_ticks = now; /* by the next turn all has come that was recorded before */
    if (all_of_it) until = UINT64_MAX - 1;
    look_at_heads();
    if (all->outputs) empty_in_order(until);
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
        if (!ring) continue;
        bring_memory(ring);
        empty_ring(ring, until);
    }
}

/* Before a turn: threads that fill their rings fast need the writer before they are so full that
 * they must wake it, which would cost them a call of the system. */
static void choose_sleep(void)
{
    struct trace_process *all = &trace_process;
    bool hurried = false;
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
        if (!ring) continue;
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
        if (head - ring->done > all->ring_words / 8) hurried = true;
    }
    all->sleep_nsec = hurried ? all->sleep_nsec / 2 : all->sleep_nsec * 2;
    if (!hurried) trace_reclaim_aside();
    if (all->sleep_nsec < LEAST_SLEEP_NSEC) all->sleep_nsec = LEAST_SLEEP_NSEC;
    if (all->sleep_nsec > SLEEP_NSEC) all->sleep_nsec = SLEEP_NSEC;
}

/* 0 and what is no number change nothing. */
static void set_sample(const char *text)
{
    char *end = NULL;
    long every = text ? strtol(text, &end, 0) : 0;
    if (every > 0 && every <= INT_MAX && end != text)
        atomic_store_explicit(&trace_process.sample, (uint32_t)every, memory_order_relaxed);
}

/* The mask is what the control file says, if it is there and begins with a number; a second number
 * is the sample. */
static void look_at_control(uint64_t now_nsec)
{
    struct trace_process *all = &trace_process;
    char text[32] = "", *end = NULL;
    if (!*all->control || !all->mask || now_nsec - all->control_nsec < CONTROL_NSEC) return;
    all->control_nsec = now_nsec;
    int fd = open(all->control, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return;
    ssize_t bytes = read(fd, text, sizeof(text) - 1);
    close(fd);
    long wanted = bytes > 0 ? strtol(text, &end, 0) : 0;
    /* The host reads it at any time, as do its other threads. */
    if (bytes > 0 && end != text)
        __atomic_store_n(all->mask, (int)wanted & all->known, __ATOMIC_RELAXED);
    if (bytes > 0 && end != text) set_sample(end);
}

static uint64_t lost_of(int kind)
{
    struct trace_process *all = &trace_process;
    uint64_t lost = atomic_load_explicit(&all->lost[kind], memory_order_relaxed);
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
        if (ring) lost += atomic_load_explicit(&ring->lost[kind], memory_order_relaxed);
    }
    return lost;
}

uint64_t trace_lost(void)
{
    uint64_t lost = 0;
    for (int kind = 0; kind < TRACE_KIND_COUNT_; kind++)
        lost += lost_of(kind);
    return lost;
}

static void put_end(void)
{
    struct trace_process *all = &trace_process;
    unsigned long long lost[TRACE_KIND_COUNT_], done[TRACE_KIND_COUNT_], passed = 0;
    for (int kind = 0; kind < TRACE_KIND_COUNT_; kind++) {
        done[kind] = all->written[kind];
        lost[kind] = lost_of(kind);
    }
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
        if (ring) passed += atomic_load_explicit(&ring->passed, memory_order_relaxed);
    }
    long long open = (long long)(done[TRACE_START] - done[TRACE_STOP] - lost[TRACE_STOP]);
    if (all->kept.room && open < 0) open = 0; /* the lost ones may be older than what is kept */
    if (!all->records_wanted) return;
    put_clocks();
    trace_say(
        "{\"t\":\"end\",\"starts\":%llu,\"states\":%llu,\"stops\":%llu,"
        "\"lost_starts\":%llu,\"lost_states\":%llu,\"lost_stops\":%llu,\"open\":%lld,\"passed\":%"
        "llu,\"rolled\":%llu,\"aside\":%llu}\n",
        done[TRACE_START], done[TRACE_STATE], done[TRACE_STOP], lost[TRACE_START],
        lost[TRACE_STATE], lost[TRACE_STOP], open, passed, (unsigned long long)all->kept.rolled,
        (unsigned long long)all->asides);
    flush();
}

/* The file anew, with what is kept. */
static void write_kept(void)
{
    struct trace_process *all = &trace_process;
    struct trace_record record;
    int tid;
    if (ftruncate(all->fd, 0) == 0) lseek(all->fd, 0, SEEK_SET); /* else a pipe: one more */
    all->used = 0;
    memset(all->written, 0, sizeof(all->written));
    put_head(all->version);
    put_clocks();
    for (size_t at = 0, bytes; at < all->kept.lines_bytes; at += bytes) {
        bytes = all->kept.lines_bytes - at;
        if (bytes > sizeof(all->buffer)) bytes = sizeof(all->buffer);
        trace_put(all->kept.lines + at, bytes);
    }
    for (size_t k = 0; k < all->kept.count; k++) {
        if (trace_keep_at(k, &record, &tid)) write_record(&record, tid);
    }
    put_end();
}

/* Once all communicators have ended, and when the process ends before they do. */
static void put_all(void)
{
    trace_outputs_write(trace_clock_nsec(), true);
    if (trace_process.kept.room) {
        write_kept();
    } else {
        put_end();
    }
}

static void answer_signals(void)
{
    struct trace_kept *kept = &trace_process.kept;
    uint32_t asked = atomic_load(&kept->asked);
    if (asked == atomic_load(&kept->answered)) return;
    empty_rings(true);
    write_kept();
    atomic_store(&kept->answered, asked);
}

static void *writer(void *unused)
{
    struct trace_process *all = &trace_process;
    (void)unused;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        uint64_t until = trace_clock_nsec() + all->sleep_nsec;
        struct timespec end = {.tv_sec = (time_t)(until / 1000000000u),
                               .tv_nsec = (long)(until % 1000000000u)};
        if (all->communicators == 0) {
            pthread_cond_wait(&all->wake, &all->lock);
            continue;
        }
        pthread_cond_clockwait(&all->wake, &all->lock, CLOCK_MONOTONIC, &end);
        choose_sleep();
        trace_relieve_rings();
        empty_rings(false);
        flush();
        trace_outputs_write(until, false);
        answer_signals();
        look_at_control(until);
    }
    return NULL;
}

/* ---- the process ---- */

static void thread_ended(void *opaque)
{
    struct trace_ring *ring = opaque;
    atomic_store_explicit(&ring->state, TRACE_RING_LEFT, memory_order_release);
    trace_leave_ring();
}

static void before_fork(void)
{
    pthread_mutex_lock(&trace_process.lock);
    pthread_mutex_lock(&trace_process.word_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&trace_process.word_lock);
    pthread_mutex_unlock(&trace_process.lock);
}

static void make_wake(void)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&trace_process.wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* The child has none of its parent's communicators, and a file of its own once it makes one. */
static void after_fork_in_child(void)
{
    struct trace_process *all = &trace_process;
    atomic_store(&all->on, false);
    trace_forget_rings();
    if (all->fd >= 0) close(all->fd);
    all->fd = -1;
    all->used = 0;
    all->communicators = 0;
    all->mask = NULL;
    all->has_thread = all->failed = false;
    memset(all->written, 0, sizeof(all->written));
    all->asides = 0;
    all->block.used = 0;
    trace_keep_forget();
    trace_outputs_forget();
    make_wake(); /* the parent's writer waits at the old one */
    after_fork();
}

static void prepare(void)
{
    struct trace_process *all = &trace_process;
    const char *wanted = getenv("TUTTI_TRACE_RING");
    long records = wanted ? strtol(wanted, NULL, 10) : 0;
    if (all->prepared) return;
    all->ring_words = (size_t)LEAST_RECORDS * WORDS_OF_RECORD;
    if (records <= 0) records = USUAL_RECORDS;
    while (all->ring_words < (size_t)records * WORDS_OF_RECORD &&
           all->ring_words < (size_t)MOST_RECORDS * WORDS_OF_RECORD)
        all->ring_words *= 2;
    all->ticks_are_nsec = !trace_ticks_steady();
    if (!all->ticks_are_nsec) all->first_ticks = trace_ticks();
    trace_clock_pair(&all->clock);
    make_wake();
    pthread_key_create(&all->thread_key, thread_ended);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    set_sample(getenv("TUTTI_TRACE_SAMPLE"));
    all->prepared = true;
}

static bool start_writer(void)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all_signals, before;
    sigfillset(&all_signals);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all_signals, &before); /* the user's signals are not for it */
    int error = pthread_create(&thread, &detached, writer, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    if (error) trace_complain("trace: no thread can be started", "", error);
    return !error;
}

static bool open_file(int version)
{
    struct trace_process *all = &trace_process;
    char name[4096];
    if (all->fd >= 0) return true;
    bool kept = trace_keep_begin();
    if (all->kept.room) all->block.wanted = false;
    file_name(name, sizeof(name));
    trace_make_folder(name);
    all->fd = trace_create_file(name);
    if (all->fd < 0) {
        const int error = errno;
        trace_complain("trace: the file cannot be opened: ", name, error);
        errno = error;
        return false;
    }
    put_head(version);
    put_clocks();
    if (!kept) {
        trace_complain("trace: all is written, as what TUTTI_TRACE_KEEP wants cannot be done: ",
                       getenv("TUTTI_TRACE_KEEP"), EINVAL);
    }
    return true;
}

ncclResult_t trace_open(void **context, int *mask, const struct trace_communicator *communicator,
                        ncclDebugLogger_t log)
{
    struct trace_process *all = &trace_process;
    char name[128];
    ncclResult_t rc = ncclSystemError;
    pthread_mutex_lock(&all->lock);
    all->log = log;
    prepare();
    all->pid = (int)getpid();
    all->version = communicator->version;
    if (!trace_outputs_begin()) {
        trace_complain("trace: not all of it can be done: TUTTI_TRACE_OUTPUTS ",
                       getenv("TUTTI_TRACE_OUTPUTS"), EINVAL);
    }
    if (all->records_wanted && !open_file(communicator->version)) {
        if (errno == EWOULDBLOCK) rc = ncclInvalidUsage; /* the setting is wrong */
        goto out;
    }
    if (!all->has_thread && !(all->has_thread = start_writer())) goto out;
    trace_keep_signals();
    trace_clean(name, sizeof(name), communicator->name);
    uint32_t number = ++all->last_context & 0xffffff;
    introduce("{\"t\":\"comm\",\"c\":%u,\"comm\":\"%016llx\",\"name\":\"%s\","
              "\"rank\":%d,\"nranks\":%d,\"nnodes\":%d}\n",
              number, (unsigned long long)communicator->comm, name, communicator->rank,
              communicator->nranks, communicator->nnodes);
    trace_outputs_join(number, communicator);
    all->communicators++;
    pthread_cond_signal(&all->wake);
    atomic_store_explicit(&all->on, true, memory_order_release); /* pairs with trace_start() */
    *mask = mask_of(communicator->version);
    all->mask = mask;
    all->known = known_bits[communicator->version];
    const char *control = getenv("TUTTI_TRACE_CONTROL");
    snprintf(all->control, sizeof(all->control), "%s", control ? control : "");
    uintptr_t handle = (uintptr_t)all->pid << 24 | number;
    *context = (void *)handle; /* NOLINT(performance-no-int-to-ptr): no address */
    rc = ncclSuccess;
out:
    pthread_mutex_unlock(&all->lock);
    return rc;
}

void trace_close(void)
{
    struct trace_process *all = &trace_process;
    pthread_mutex_lock(&all->lock);
    empty_rings(true);
    if (all->communicators > 0 && --all->communicators == 0) {
        all->mask = NULL;
        put_all();
    }
    flush();
    if (all->communicators == 0) atomic_store(&all->on, false);
    pthread_mutex_unlock(&all->lock);
}

/* A process that ends before its communicators leaves a whole file, too. */
__attribute__((destructor)) static void at_exit(void)
{
    struct trace_process *all = &trace_process;
    pthread_mutex_lock(&all->lock);
    if (all->communicators > 0) {
        atomic_store(&all->on, false);
        all->log = NULL; /* the host's log may be gone */
        all->mask = NULL;
        empty_rings(true);
        put_all();
        all->communicators = 0; /* the writer has nothing more to write */
    }
    pthread_mutex_unlock(&all->lock);
}
