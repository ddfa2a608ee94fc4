/* Memory of the host device: allocation, lookup, what bad pointers get, and that nothing overlaps.
 */
#include "../check.h"

#include "device/host/host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void allocates_and_finds(void **state)
{
    void *ptr = NULL;
    struct tt_pointer found;
    (void)state;
    assert_int_equal(tuttiHostMalloc(1, 1000, &ptr), 0);
    assert_int_equal((uintptr_t)ptr % 256, 0);
    assert_int_equal(tuttiHostPointer((char *)ptr + 999, &found), 0);
    assert_int_equal(found.kind, TT_MEMORY_DEVICE);
    assert_int_equal(found.device, 1);
    assert_ptr_equal(found.base, ptr);
    assert_int_equal(found.bytes, 1000);
    assert_int_equal(tuttiHostFree((char *)ptr + 512), 1);
    assert_int_equal(tuttiHostFree(ptr), 0);
    assert_int_equal(tuttiHostFree(ptr), 1);
    tuttiHostPointer(ptr, &found);
    assert_null(found.base);
}

static void odd_requests(void **state)
{
    void *ptr = &ptr;
    int local = 0;
    struct tt_pointer found;
    (void)state;
    assert_int_equal(tuttiHostMalloc(0, 0, &ptr), 0);
    assert_null(ptr);
    assert_int_equal(tuttiHostMalloc(0, SIZE_MAX / 2, &ptr), 2);
    assert_int_equal(tuttiHostMalloc(1000, 1, &ptr), 101);
    assert_int_equal(tuttiHostFree(NULL), 0);
    assert_int_equal(tuttiHostFree(&local), 1);
    tuttiHostPointer(&local, &found);
    assert_int_equal(found.kind, TT_MEMORY_FOREIGN);
}

static void fills_the_device(void **state)
{
    size_t free_bytes = 0;
    size_t total = 0;
    void *most = NULL;
    void *more = NULL;
    (void)state;
    assert_int_equal(tuttiHostMemInfo(2, &free_bytes, &total), 0);
    assert_int_equal(free_bytes, total);
    assert_int_equal(tuttiHostMalloc(2, total, &most), 0);
    assert_int_equal(tuttiHostMalloc(2, 1, &more), 2);
    assert_int_equal(tuttiHostFree(most), 0);
    assert_int_equal(tuttiHostMalloc(2, 1, &more), 0);
    assert_int_equal(tuttiHostFree(more), 0);
}

static void random_blocks_stay_apart(void **state)
{
    enum { SLOTS = 64, TURNS = 5000 };
    unsigned char *blocks[SLOTS] = {NULL};
    size_t sizes[SLOTS] = {0};
    unsigned seed = 7;
    (void)state;
    for (int turn = 0; turn < TURNS; turn++) {
        int i = rand_r(&seed) % SLOTS;
        if (blocks[i]) {
            for (size_t b = 0; b < sizes[i]; b += 97) {
                assert_int_equal(blocks[i][b], i);
            }
            assert_int_equal(tuttiHostFree(blocks[i]), 0);
            blocks[i] = NULL;
            continue;
        }
        sizes[i] = (size_t)(rand_r(&seed) % 20000) + 1;
        assert_int_equal(tuttiHostMalloc(3, sizes[i], (void **)&blocks[i]), 0);
        memset(blocks[i], i, sizes[i]);
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(tuttiHostFree(blocks[i]), 0);
    }
}

struct own { /* what one thread has */
    char *base;
    size_t bytes;
};

static void check_own(const struct own *own, unsigned *seed)
{
    struct tt_pointer found;
    size_t at = (size_t)rand_r(seed) % own->bytes;
    tuttiHostPointer(own->base + at, &found);
    assert_ptr_equal(found.base, own->base);
    assert_int_equal(found.bytes, own->bytes);
    assert_int_equal(found.kind, TT_MEMORY_DEVICE);
    assert_int_equal(found.device, 1);
}

/* Blocks of all sizes come and go; every address inside of a live one finds it meanwhile. */
static void *churn(void *arg)
{
    enum { SLOTS = 32, TURNS = 4000 };
    struct own owns[SLOTS] = {{NULL, 0}};
    unsigned seed = *(unsigned *)arg;
    for (int turn = 0; turn < TURNS; turn++) {
        struct own *own = &owns[rand_r(&seed) % SLOTS];
        if (own->base) {
            check_own(own, &seed);
            assert_int_equal(tuttiHostFree(own->base), 0);
            own->base = NULL;
            continue;
        }
        own->bytes = ((size_t)1 << rand_r(&seed) % 21) + (size_t)(rand_r(&seed) % 1000);
        assert_int_equal(tuttiHostMalloc(1, own->bytes, (void **)&own->base), 0);
        own->base[0] = own->base[own->bytes - 1] = 1;
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(tuttiHostFree(owns[i].base), 0);
    }
    return NULL;
}

static void many_threads_find_their_blocks(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    size_t free_bytes = 0;
    size_t total = 0;
    void *whole = NULL;
    (void)state;
    for (unsigned t = 0; t < THREADS; t++) {
        seeds[t] = t + 1;
        assert_int_equal(pthread_create(&threads[t], NULL, churn, &seeds[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    tuttiHostMemInfo(1, &free_bytes, &total);
    assert_int_equal(free_bytes, total);
    assert_int_equal(tuttiHostMalloc(1, total, &whole), 0); /* all gaps were joined again */
    assert_int_equal(tuttiHostFree(whole), 0);
}

static size_t held_bytes(void)
{
    struct stat status;
    assert_int_equal(fstat(tuttiHostRange()->memfd, &status), 0);
    return (size_t)status.st_blocks * 512;
}

/* Freed pages above 64 MiB of a device go back, also when they were freed bit by bit. */
static void freed_pages_go_back(void **state)
{
    enum { PIECES = 1024, PIECE_BYTES = 128 << 10, SLACK_BYTES = 4 << 20 };
    const size_t pool = (size_t)64 << 20;
    static void *pieces[PIECES];
    void *large = NULL;
    size_t before = held_bytes();
    (void)state;
    assert_int_equal(tuttiHostMalloc(0, (size_t)128 << 20, &large), 0);
    memset(large, 1, (size_t)128 << 20);
    assert_true(held_bytes() >= before + ((size_t)128 << 20) - pool);
    assert_int_equal(tuttiHostFree(large), 0);
    assert_true(held_bytes() <= before + pool + SLACK_BYTES);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(tuttiHostMalloc(0, PIECE_BYTES, &pieces[i]), 0);
        memset(pieces[i], 1, PIECE_BYTES);
    }
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(tuttiHostFree(pieces[i * 7 % PIECES]), 0);
    }
    assert_true(held_bytes() <= before + pool + SLACK_BYTES);
}

/* ---- while another thread gives memory back ---- */

enum { LARGE_BYTES = 96 << 20, LARGE_TURNS = 6, SMALL_BYTES = 1 << 20 };

struct freer {
    bool pinned;
    _Atomic int done;
};

static int take(bool pinned, size_t bytes, void **ptr_out)
{
    return pinned ? tuttiHostMallocHost(bytes, 0, false, ptr_out)
                  : tuttiHostMalloc(0, bytes, ptr_out);
}

static int give(bool pinned, void *ptr)
{
    return pinned ? tuttiHostFreeHost(ptr) : tuttiHostFree(ptr);
}

static void *free_large(void *arg)
{
    struct freer *freer = arg;
    for (int i = 0; i < LARGE_TURNS; i++) {
        void *ptr = NULL;
        assert_int_equal(take(freer->pinned, LARGE_BYTES, &ptr), 0);
        memset(ptr, 1, LARGE_BYTES);
        assert_int_equal(give(freer->pinned, ptr), 0);
    }
    atomic_store(&freer->done, 1);
    return NULL;
}

/* There is always room for what is asked. */
static void frees_hide_no_memory(void **state)
{
    (void)state;
    for (int pinned = 0; pinned < 2; pinned++) {
        struct freer freer = {.pinned = pinned};
        pthread_t thread;
        void *ptr = NULL;
        assert_int_equal(pthread_create(&thread, NULL, free_large, &freer), 0);
        while (!atomic_load(&freer.done)) {
            assert_int_equal(take(pinned, SMALL_BYTES, &ptr), 0);
            assert_int_equal(give(pinned, ptr), 0);
        }
        pthread_join(thread, NULL);
    }
}

static void *use_a_block(void *arg)
{
    void **ptr = arg;
    *ptr = tuttiHostFree(*ptr) == 0 ? *ptr : NULL;
    return NULL;
}

/* Of several threads that free the same block one is right. */
static void double_free_by_threads(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    void *ptrs[THREADS];
    int right = 0;
    (void)state;
    assert_int_equal(tuttiHostMalloc(0, 1000, &ptrs[0]), 0);
    for (int t = 0; t < THREADS; t++) {
        ptrs[t] = ptrs[0];
    }
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_create(&threads[t], NULL, use_a_block, &ptrs[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        right += ptrs[t] != NULL;
    }
    assert_int_equal(right, 1);
}

static void pinned_and_managed(void **state)
{
    void *pinned = NULL;
    void *managed = NULL;
    unsigned flags = 0;
    struct tt_pointer found;
    (void)state;
    assert_int_equal(tuttiHostMallocHost(10, 3, false, &pinned), 0);
    assert_int_equal((uintptr_t)pinned % 4096, 0);
    assert_int_equal(tuttiHostHostFlags(pinned, &flags), 0);
    assert_int_equal(flags, 3);
    assert_int_equal(tuttiHostMallocHost(10, 1, true, &managed), 0);
    tuttiHostPointer(managed, &found);
    assert_int_equal(found.kind, TT_MEMORY_MANAGED);
    assert_int_equal(tuttiHostFreeHost(managed), 1);
    assert_int_equal(tuttiHostFree(managed), 0);
    assert_int_equal(tuttiHostFree(pinned), 1);
    assert_int_equal(tuttiHostFreeHost(pinned), 0);
}

static void control_is_zero_again(void **state)
{
    void *ptr = NULL;
    (void)state;
    assert_int_equal(tuttiHostControlAlloc(100000, &ptr), 0);
    memset(ptr, 1, 100000);
    tuttiHostControlFree(ptr, 100000);
    assert_int_equal(tuttiHostControlAlloc(100000, &ptr), 0);
    assert_int_equal(((char *)ptr)[99999], 0);
    tuttiHostControlFree(ptr, 100000);
}

static void devices_have_infos(void **state)
{
    struct tt_device_info info;
    struct tt_device_info other;
    (void)state;
    assert_int_equal(tuttiHostDeviceCount(), 4);
    assert_int_equal(tuttiHostDeviceInfo(0, &info), 0);
    assert_int_equal(tuttiHostDeviceInfo(3, &other), 0);
    assert_string_not_equal(info.bus_id, other.bus_id);
    assert_memory_not_equal(info.uuid, other.uuid, 16);
    assert_int_equal(tuttiHostDeviceInfo(4, &info), 101);
    assert_int_equal(tuttiHostSetDevice(4), 101);
}

int main(void)
{
    setenv("TUTTI_DEVICES", "4", 1);
    setenv("TUTTI_DEVICE_MEMORY", "256M", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_infos),
        cmocka_unit_test(allocates_and_finds),
        cmocka_unit_test(odd_requests),
        cmocka_unit_test(fills_the_device),
        cmocka_unit_test(random_blocks_stay_apart),
        cmocka_unit_test(many_threads_find_their_blocks),
        cmocka_unit_test(freed_pages_go_back),
        cmocka_unit_test(frees_hide_no_memory),
        cmocka_unit_test(double_free_by_threads),
        cmocka_unit_test(pinned_and_managed),
        cmocka_unit_test(control_is_zero_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
