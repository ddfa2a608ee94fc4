/* Lines of this file's own functions, as its debug information has them; damaged copies of it are
 * read without harm. */
#include "../check.h"

#include "device/host/check/task/source.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int take_base(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    *(uint64_t *)arg = info->dlpi_addr; /* the program is the first */
    return 1;
}

/* The address in the file of the call that returns to `site`. */
static uint64_t in_file(const void *site)
{
    uint64_t base = 0;
    dl_iterate_phdr(take_base, &base);
    return (uint64_t)(uintptr_t)site - base - 1;
}

__attribute__((noinline)) static const void *call_site(void)
{
    __asm__ volatile(""); /* each call counts */
    return __builtin_return_address(0);
}

static void a_call_has_its_line(void **state)
{
    char text[200], wanted[100];
    (void)state;
    const void *sites[3];
    const int line = __LINE__;
    sites[0] = call_site();
    sites[1] = call_site();

    sites[2] = call_site();
    for (int i = 0; i < 3; i++) {
        snprintf(wanted, sizeof(wanted), "test_source.c:%d", line + 1 + i + (i == 2));
        assert_true(tt_check_source_find("/proc/self/exe", in_file(sites[i]), text, sizeof(text)));
        assert_string_equal(text, wanted);
    }
}

static void others_have_none(void **state)
{
    char text[200];
    (void)state;
    assert_false(tt_check_source_find("/proc/self/exe", 0, text, sizeof(text)));
    assert_false(tt_check_source_find("/proc/self/exe", UINT64_MAX, text, sizeof(text)));
    assert_false(tt_check_source_find("/proc/self/maps", 1, text, sizeof(text)));
    assert_false(tt_check_source_find("/", 1, text, sizeof(text)));
    assert_false(tt_check_source_find("/no/such/file", 1, text, sizeof(text)));
}

/* Bytes turned into others, all over the tables: whatever it says, it ends and stays inside. */
static void damage_does_no_harm(void **state)
{
    char text[200], path[32];
    unsigned char *bytes;
    struct stat status;
    uint32_t number = 1;
    (void)state;
    const uint64_t address = in_file(call_site());
    const int from = open("/proc/self/exe", O_RDONLY), to = memfd_create("damaged", 0);
    assert_true(from >= 0 && to >= 0 && !fstat(from, &status));
    const size_t size = (size_t)status.st_size;
    bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(read(from, bytes, size), size);
    close(from);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
    assert_int_equal(pwrite(to, bytes, size, 0), size);
    for (int round = 0; round < 400; round++) {
        number = number * 1664525 + 1013904223;
        const size_t tail = size < 40000 ? size : 40000; /* where tables of lines and names are */
        const off_t at = (off_t)(size - 1 - number % tail);
        const unsigned char other = (unsigned char)(number >> 24);
        assert_int_equal(pwrite(to, &other, 1, at), 1);
        tt_check_source_find(path, address, text, sizeof(text));
        if (round % 8) continue; /* damage adds up for a while */
        assert_int_equal(pwrite(to, bytes, size, 0), size);
    }
    for (size_t left = size; left > 64; left = left * 7 / 8) {
        assert_int_equal(ftruncate(to, (off_t)left), 0);
        tt_check_source_find(path, address, text, sizeof(text));
    }
    close(to);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_has_its_line),
        cmocka_unit_test(others_have_none),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
