/* Registrations and windows of a communicator: counted, rounded to pages, found by handle alone. */
#include "../check.h"

#include "base/mem.h"
#include "base/member.h"
#include "mem/mem.h"

#include <stdlib.h>

#define PAGE ((size_t)4096)

static struct tt_registry *create(void)
{
    static const struct tt_member member = {.rank = 1, .nranks = 2};
    struct tt_registry *registry = NULL;
    assert_int_equal(tt_registry_create(&member, &registry), ncclSuccess);
    return registry;
}

static void covered_registrations_are_counted(void **state)
{
    struct tt_registry *registry = create();
    char *memory = aligned_alloc(PAGE, 4 * PAGE);
    void *whole, *part, *other;
    (void)state;
    assert_int_equal(tt_registry_add(registry, memory + 100, 2 * PAGE, &whole), ncclSuccess);
    assert_int_equal(tt_registry_add(registry, memory + PAGE, PAGE, &part), ncclSuccess);
    assert_ptr_equal(part, whole);
    assert_int_equal(tt_registry_add(registry, memory + 3 * PAGE, 1, &other), ncclSuccess);
    assert_ptr_not_equal(other, whole);

    assert_true(tt_registry_covers(registry, memory, 3 * PAGE));  /* rounded out to pages */
    assert_false(tt_registry_covers(registry, memory, 4 * PAGE)); /* by two, not by one */
    assert_true(tt_registry_covers(registry, memory + 5 * PAGE, 0));

    assert_int_equal(tt_registry_remove(registry, whole), ncclSuccess);
    assert_true(tt_registry_covers(registry, memory, 1));
    assert_int_equal(tt_registry_remove(registry, whole), ncclSuccess);
    assert_false(tt_registry_covers(registry, memory, 1));
    assert_int_equal(tt_registry_remove(registry, whole), ncclInvalidUsage);
    tt_registry_destroy(registry); /* frees the other */
    free(memory);
}

static void windows_belong_to_a_registry(void **state)
{
    struct tt_registry *mine = create(), *theirs = create();
    static char buff[256];
    (void)state;
    struct tt_window *window = tt_calloc(1, sizeof(*window));
    assert_non_null(window);
    window->buff = buff;
    window->bytes = sizeof(buff);
    ncclWindow_t handle = (ncclWindow_t)(void *)window;
    assert_null(tt_window_find(handle));
    tt_registry_window_add(mine, window);
    assert_ptr_equal(tt_registry_window(mine, handle), window);
    assert_null(tt_registry_window(theirs, handle));
    assert_ptr_equal(tt_window_find(handle), window);
    assert_true(tt_registry_covers(mine, buff + 1, sizeof(buff) - 1));
    assert_false(tt_registry_covers(theirs, buff, 1));
    tt_registry_window_remove(mine, window);
    assert_null(tt_window_find(handle));
    tt_registry_destroy(mine);
    tt_registry_destroy(theirs);
    tt_registry_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covered_registrations_are_counted),
        cmocka_unit_test(windows_belong_to_a_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
