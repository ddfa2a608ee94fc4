/* Copies of plain bytes: every size arrives whichever way it goes and nothing beside it changes,
 * memory ends where the caller's request ended, and while one runs workers leave it alone. */
#include "../check.h"

#include "device/host/host.h"
#include "device/host/host_stream.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KIB = 1024, GUARD = 64 };

static struct CUstream_st *new_stream(void)
{
    struct CUstream_st *stream = NULL;
    assert_int_equal(tuttiHostStreamCreate(TT_STREAM_NON_BLOCKING, 0, &stream), 0);
    return stream;
}

static unsigned char *new_memory(size_t bytes)
{
    void *ptr = NULL;
    assert_int_equal(tuttiHostMalloc(0, bytes, &ptr), 0);
    return ptr;
}

static int copy(struct CUstream_st *stream, void *dst, const void *src, size_t bytes, bool now)
{
    return now ? tuttiHostCopyBytesNow(stream, dst, src, bytes)
               : tuttiHostCopyBytes(stream, dst, src, bytes);
}

/* ---- where memory ends ---- */

static void check_end(struct CUstream_st *stream, unsigned char *ptr, size_t asked, bool now)
{
    unsigned char *other = new_memory(2 * asked + GUARD);
    for (size_t at = 0; at <= asked; at += 1 + asked / 7) {
        const size_t left = asked - at;
        assert_int_equal(copy(stream, ptr + at, other, left, now), 0);
        assert_int_equal(copy(stream, other, ptr + at, left, now), 0);
        assert_int_equal(copy(stream, ptr + at, other, left + 1, now), 1);
        assert_int_equal(copy(stream, other, ptr + at, left + 1, now), 1);
    }
    assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    tuttiHostFree(other);
}

static void memory_ends_where_it_was_asked_to(void **state)
{
    static const size_t sizes[] = {1, 7, 511, 512, 513, 4095, 4097, 70001, 2 << 20, (2 << 20) + 3};
    struct CUstream_st *stream = new_stream();
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *ptr = new_memory(sizes[i]);
        unsigned char *other = new_memory(sizes[i]);
        check_end(stream, ptr, sizes[i], false);
        check_end(stream, ptr, sizes[i], true);
        tuttiHostFree(ptr);
        assert_int_equal(copy(stream, ptr, other, 1, false), 1); /* freed */
        assert_int_equal(copy(stream, other, ptr, 1, true), 1);
        tuttiHostFree(other);
    }
    tuttiHostStreamDestroy(stream);
}

/* ---- all ways give the same bytes ---- */

struct region {
    unsigned char *from, *to;
    size_t bytes;
};

/* A pattern that differs from turn to turn. */
static void fill(unsigned char *ptr, size_t bytes, unsigned turn)
{
    for (size_t i = 0; i < bytes; i++) {
        ptr[i] = (unsigned char)(i * 7 + i / 251 + turn * 13);
    }
}

/* The copy arrived, and the guards around it are as they were. */
static bool arrived(const struct region *region, unsigned char guard)
{
    for (int i = 0; i < GUARD; i++) {
        if (region->to[-1 - i] != guard || region->to[region->bytes + (size_t)i] != guard)
            return false;
    }
    return memcmp(region->to, region->from, region->bytes) == 0;
}

/* As many copies as see a calibration, trials and, of the smaller ones, a calibration more. */
static void copy_often(struct CUstream_st *stream, const struct region *region, int turns)
{
    memset(region->to - GUARD, 0xa5, region->bytes + 2 * (size_t)GUARD);
    for (int turn = 0; turn < turns; turn++) {
        if (turn % 16 == 0) fill(region->from, region->bytes, (unsigned)turn);
        region->to[turn % (int)region->bytes] ^= 1;
        assert_int_equal(copy(stream, region->to, region->from, region->bytes, turn & 1), 0);
        assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
        assert_true(arrived(region, 0xa5));
    }
}

static void *copy_all_sizes(void *arg)
{
    static const size_t sizes[] = {1,        100,      2049,           16 * KIB - 1,
                                   16 * KIB, 63 * KIB, 300 * KIB + 17, 3 * KIB * KIB + 5};
    static const int turns[] = {40, 40, 40, 40, 4200, 600, 120, 60};
    struct CUstream_st *stream = new_stream();
    const size_t most = 4 * KIB * KIB;
    unsigned char *from = new_memory(most);
    unsigned char *to = new_memory(most);
    const size_t shift = *(const size_t *)arg;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct region region = {from + shift, to + GUARD + 3 * shift, sizes[i]};
        copy_often(stream, &region, turns[i]);
    }
    tuttiHostFree(from);
    tuttiHostFree(to);
    tuttiHostStreamDestroy(stream);
    return NULL;
}

/* Two threads learn from the same copies. */
static void every_size_arrives(void **state)
{
    size_t shifts[2] = {0, 5};
    pthread_t other;
    (void)state;
    assert_int_equal(pthread_create(&other, NULL, copy_all_sizes, &shifts[1]), 0);
    copy_all_sizes(&shifts[0]);
    pthread_join(other, NULL);
}

/* ---- workers ---- */

static long switches_of(const char *task)
{
    char path[320];
    char line[128];
    long switches = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "re");
    bool is_worker = false;
    while (file && fgets(line, sizeof(line), file)) {
        is_worker = is_worker || strcmp(line, "Name:\ttutti-worker\n") == 0;
        if (is_worker && strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
            switches = strtol(line + 24, NULL, 10);
    }
    if (file) fclose(file);
    return switches;
}

/* How often workers went to sleep up to now. */
static long worker_sleeps(void)
{
    long sleeps = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));) {
        if (entry->d_name[0] != '.') sleeps += switches_of(entry->d_name);
    }
    closedir(tasks);
    return sleeps;
}

static long now_msec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Who waits for a copy makes it, here for some milliseconds each: a worker that looks every 80 us
 * takes a third of such a core's speed. */
static void workers_leave_running_copies_alone(void **state)
{
    const size_t bytes = 64 * KIB * KIB;
    struct CUstream_st *stream = new_stream();
    unsigned char *from = new_memory(bytes);
    unsigned char *to = new_memory(bytes);
    (void)state;
    memset(from, 1, bytes);
    memset(to, 1, bytes);
    const long sleeps = worker_sleeps();
    const long start = now_msec();
    while (now_msec() - start < 400) {
        assert_int_equal(tuttiHostCopyBytes(stream, to, from, bytes), 0);
        assert_int_equal(tuttiHostStreamSynchronize(stream), 0);
    }
    const long msec = now_msec() - start;
    assert_in_range(worker_sleeps() - sleeps, 0, 50 + msec); /* were 7 a millisecond once */
    tuttiHostFree(from);
    tuttiHostFree(to);
    tuttiHostStreamDestroy(stream);
}

int main(void)
{
    setenv("TUTTI_DEVICES", "1", 1);
    setenv("TUTTI_DEVICE_MEMORY", "1G", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_ends_where_it_was_asked_to),
        cmocka_unit_test(every_size_arrives),
        cmocka_unit_test(workers_leave_running_copies_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
