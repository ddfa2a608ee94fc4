/* Listings of all programs for four ranks equal the golden files; TUTTI_GOLDEN_WRITE=1 rewrites
 * them. The first argument is the folder. */
#include "unit/check.h"

#include "program_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

/* Listings of all ranks, one after the other. */
static void listing(const struct program_case *what, int per_host, char *text, size_t text_bytes)
{
    bool pair = what->func == TT_FUNC_SEND;
    int nranks = pair ? 2 : 4;
    size_t at = 0;
    struct program_set set =
        program_set_make(what, what->rooted ? 2 : 0, nranks, pair ? 2 : per_host, 0);
    for (int k = 0; k <= (int)pair; k++) {
        int length = tt_program_print(set.blocks[k], text + at, text_bytes - at);
        assert_true(length > 0 && at + (size_t)length < text_bytes);
        at += (size_t)length;
    }
    program_set_free(&set);
}

static void compare(const char *path, const char *text)
{
    static char golden[32768];
    if (getenv("TUTTI_GOLDEN_WRITE")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s cannot be opened", path);
    size_t length = fread(golden, 1, sizeof(golden) - 1, file);
    golden[length] = '\0';
    (void)fclose(file);
    print_message("listing: %s\n", path);
    assert_string_equal(golden, text);
}

static void check_case(const struct program_case *what)
{
    static char text[32768];
    char path[512];
    bool hosts = what->algo == TT_ALGO_TREE || program_needs_hosts(what->algo);
    int per_host = hosts ? 2 : 4;
    bool at_once = what->algo == TT_ALGO_HIERARCHICAL && what->proto == TT_PROTO_LL;
    listing(what, per_host, text, sizeof(text));
    int length = snprintf(path, sizeof(path), "%s/%s-%s%s.txt", folder, tt_func_name(what->func),
                          tt_algo_name(what->algo), at_once ? "-LL" : "");
    assert_true(length > 0 && (size_t)length < sizeof(path));
    compare(path, text);
}

static void listings_are_golden(void **state)
{
    (void)state;
    static const struct program_case pair = {TT_FUNC_SEND, TT_ALGO_P2P, TT_PROTO_SIMPLE, true};
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++)
        check_case(&cases[k]);
    check_case(&pair);
}

static void short_buffers_are_respected(void **state)
{
    (void)state;
    static const struct program_case ring = {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE,
                                             false};
    struct program_set set = program_set_make(&ring, 0, 4, 4, 0);
    char whole[4096];
    int length = tt_program_print(set.blocks[0], whole, sizeof(whole));
    for (size_t room = 0; room < 64; room++) {
        char text[65];
        memset(text, 'x', sizeof(text));
        assert_int_equal(tt_program_print(set.blocks[0], text, room), length);
        assert_int_equal(text[room], 'x');
        if (room) assert_int_equal(strncmp(text, whole, room - 1), 0);
    }
    program_set_free(&set);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(listings_are_golden),
        cmocka_unit_test(short_buffers_are_respected),
    };
    folder = argc > 1 ? argv[1] : "tests/golden/programs";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
