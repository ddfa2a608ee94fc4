/* Memory of the host device: allocation, lookup, what bad pointers get, and that nothing overlaps.
 */
#include "device/host/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static void devices_have_cards(void **state)
{
    struct tt_device_card card;
    struct tt_device_card other;
    (void)state;
    assert_int_equal(tuttiHostDeviceCount(), 4);
    assert_int_equal(tuttiHostDeviceCard(0, &card), 0);
    assert_int_equal(tuttiHostDeviceCard(3, &other), 0);
    assert_string_not_equal(card.bus_id, other.bus_id);
    assert_memory_not_equal(card.uuid, other.uuid, 16);
    assert_int_equal(tuttiHostDeviceCard(4, &card), 101);
    assert_int_equal(tuttiHostSetDevice(4), 101);
}

int main(void)
{
    setenv("TUTTI_DEVICES", "4", 1);
    setenv("TUTTI_DEVICE_MEMORY", "256M", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_cards),
        cmocka_unit_test(allocates_and_finds),
        cmocka_unit_test(odd_requests),
        cmocka_unit_test(fills_the_device),
        cmocka_unit_test(random_blocks_stay_apart),
        cmocka_unit_test(pinned_and_managed),
        cmocka_unit_test(control_is_zero_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
