/* Graphs, paths, access, channels and layouts of all golden machines equal the reference, orders
 * included; bad files get the answer that their table says. The first argument is the folder. */
#include "tools/topo/machine.h"
#include "unit/check.h"

#include "base/error.h"
#include "base/param.h"
#include "topo/topo.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

static void join_path(char *path, size_t path_bytes, const char *dir, const char *name)
{
    int length = snprintf(path, path_bytes, "%s/%s", dir, name);
    assert_true(length > 0 && (size_t)length < path_bytes);
}

/* ---- comparison ---- */

static bool same_number(double a, double b)
{
    double scale = b < 0 ? -b : b;
    double off = a > b ? a - b : b - a;
    return off <= 1e-4 * (scale > 1e-9 ? scale : 1e-9);
}

/* `where` is the path of keys so far. */
static void compare(json_t *want, json_t *have, const char *where)
{
    char below[256];
    if (!have) fail_msg("%s is missing", where);
    if (json_is_number(want)) {
        if (same_number(json_number_value(have), json_number_value(want))) return;
        fail_msg("%s is %g, reference %g", where, json_number_value(have), json_number_value(want));
    }
    if (json_is_object(want)) {
        const char *key;
        json_t *value;
        json_object_foreach(want, key, value)
        {
            (void)snprintf(below, sizeof(below), "%s.%s", where, key);
            compare(value, json_object_get(have, key), below);
        }
        return;
    }
    if (json_is_array(want)) {
        assert_int_equal(json_array_size(have), json_array_size(want));
        for (size_t k = 0; k < json_array_size(want); k++) {
            (void)snprintf(below, sizeof(below), "%s[%zu]", where, k);
            compare(json_array_get(want, k), json_array_get(have, k), below);
        }
        return;
    }
    if (!json_equal(want, have)) fail_msg("%s differs from the reference", where);
}

/* ---- environment ---- */

/* "VAR=value VAR=value": set (or unset) them all. */
static void set_words(const char *words, bool set)
{
    char text[512];
    int length = snprintf(text, sizeof(text), "%s", words);
    assert_true(length >= 0 && (size_t)length < sizeof(text));
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = '\0';
        if (set) {
            setenv(word, value, 1);
        } else {
            unsetenv(word);
        }
    }
    tt_param_forget();
}

/* ---- machines ---- */

static json_t *answer(const char *topology, const struct tt_topo_options *options)
{
    char path[512];
    struct tt_topo_file *file = NULL;
    struct tt_topo_system *system = NULL;
    join_path(path, sizeof(path), folder, topology);
    assert_int_equal(tt_topo_file_read(path, &file), ncclSuccess);
    assert_string_equal(tt_topo_file_warnings(file), "");
    assert_int_equal(tt_topo_system_make(file, options, &system), ncclSuccess);
    char *members = tt_topo_system_json(system);
    assert_non_null(members);
    char *text = malloc(strlen(members) + 3);
    assert_non_null(text);
    (void)sprintf(text, "{%s}", members);
    json_error_t error;
    json_t *have = json_loads(text, 0, &error);
    if (!have) fail_msg("%s: line %d: %s", topology, error.line, error.text);
    free(text);
    free(members);
    tt_topo_system_free(system);
    tt_topo_file_free(file);
    return have;
}

/* One machine in a communicator of `nodes` of them. */
static json_t *scenario(const char *topology, const struct tt_topo_options *options, int nodes)
{
    char path[512];
    struct tt_topo_file *file = NULL;
    struct tt_topo_domain *domains = NULL;
    struct tt_topo_layout *layout = NULL;
    struct tt_topo_comm_node comm_nodes[64];
    int ndomains = 0;
    join_path(path, sizeof(path), folder, topology);
    assert_int_equal(tt_topo_file_read(path, &file), ncclSuccess);
    assert_int_equal(tt_topo_domains_make(file, options, nodes, &domains, &ndomains), ncclSuccess);
    int ncomm_nodes = nodes * ndomains;
    int ranks = 0;
    json_t *list = json_array();
    for (int d = 0; d < ndomains; d++) {
        ranks += domains[d].nranks;
        json_array_append_new(list, topo_domain_json(&domains[d]));
    }
    assert_in_range(ncomm_nodes, 1, 64);
    for (int p = 0; p < ncomm_nodes; p++) {
        comm_nodes[p] = (struct tt_topo_comm_node){.domain = &domains[p % ndomains],
                                                   .rank_offset = p / ndomains * ranks};
    }
    assert_int_equal(tt_topo_layout_make(comm_nodes, ncomm_nodes, NULL, &layout), ncclSuccess);
    json_t *have = json_pack("{s:i, s:i, s:o, s:o}", "nodes", nodes, "ranks", layout->nranks,
                             "domains", list, "layout", topo_layout_json(layout));
    tt_topo_layout_free(layout);
    tt_topo_domains_free(domains, ndomains);
    tt_topo_file_free(file);
    return have;
}

static void check_scenarios(json_t *want, const struct tt_topo_options *options)
{
    json_t *scenarios = json_object_get(want, "scenarios");
    const char *topology = json_string_value(json_object_get(want, "topology"));
    assert_true(json_array_size(scenarios) >= 3);
    for (size_t k = 0; k < json_array_size(scenarios); k++) {
        char where[64];
        json_t *one = json_array_get(scenarios, k);
        int nodes = (int)json_integer_value(json_object_get(one, "nodes"));
        (void)snprintf(where, sizeof(where), "%d nodes", nodes);
        json_t *have = scenario(topology, options, nodes);
        compare(one, have, where);
        json_decref(have);
    }
}

static void check_machine(const char *name)
{
    char path[512];
    json_error_t error;
    print_message("machine: %s\n", name);
    join_path(path, sizeof(path), folder, name);
    json_t *want = json_load_file(path, 0, &error);
    if (!want) fail_msg("%s: line %d: %s", name, error.line, error.text);
    const char *words = json_string_value(json_object_get(want, "environment"));
    struct tt_topo_options options = {
        .hosts = (int)json_integer_value(json_object_get(want, "hosts")),
        .fused = json_is_true(json_object_get(want, "fused")),
    };
    set_words(words, true);
    json_t *have = answer(json_string_value(json_object_get(want, "topology")), &options);
    check_scenarios(want, &options);
    set_words(words, false);
    static const char *const parts[] = {"system", "paths", "access"};
    for (int k = 0; k < 3; k++) {
        compare(json_object_get(want, parts[k]), json_object_get(have, parts[k]), parts[k]);
    }
    json_decref(have);
    json_decref(want);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    return length > strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static void machines_equal_the_reference(void **state)
{
    (void)state;
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (!ends_with(entry->d_name, ".expected.json")) continue;
        check_machine(entry->d_name);
        count++;
    }
    (void)closedir(dir);
    assert_true(count >= 25);
}

/* What we print we read as the same machine, and printing it again changes nothing. */
static void round_trips_change_nothing(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (!ends_with(entry->d_name, ".xml")) continue;
        char path[512];
        struct tt_topo_file *first = NULL;
        struct tt_topo_file *second = NULL;
        join_path(path, sizeof(path), folder, entry->d_name);
        assert_int_equal(tt_topo_file_read(path, &first), ncclSuccess);
        char *once = tt_topo_file_print(first);
        assert_int_equal(tt_topo_file_parse("again", once, strlen(once), &second), ncclSuccess);
        char *twice = tt_topo_file_print(second);
        assert_string_equal(once, twice);
        free(once);
        free(twice);
        tt_topo_file_free(first);
        tt_topo_file_free(second);
    }
    (void)closedir(dir);
}

/* ---- bad files ---- */

struct row { /* of ANSWERS.tsv */
    char *file, *answer, *text;
};

static void check_bad(const struct row *row)
{
    char path[512];
    struct tt_topo_file *file = NULL;
    print_message("bad: %s\n", row->file);
    (void)snprintf(path, sizeof(path), "%s/bad/%s", folder, row->file);
    ncclResult_t rc = tt_topo_file_read(path, &file);
    if (strcmp(row->answer, "refuse") == 0) {
        assert_int_equal(rc, ncclInvalidUsage);
        print_message("  %s\n", tt_last_error());
        assert_non_null(strstr(tt_last_error(), row->text));
        assert_non_null(strstr(tt_last_error(), row->file));
        assert_null(file);
        return;
    }
    assert_int_equal(rc, ncclSuccess);
    bool warned = tt_topo_file_warnings(file)[0] != '\0';
    assert_int_equal(warned, strcmp(row->answer, "warn") == 0);
    if (warned) assert_non_null(strstr(tt_topo_file_warnings(file), row->text));
    struct tt_topo_options options = {0};
    struct tt_topo_system *system = NULL;
    assert_int_equal(tt_topo_system_make(file, &options, &system), ncclSuccess);
    tt_topo_system_free(system);
    tt_topo_file_free(file);
}

static void bad_files_get_their_answer(void **state)
{
    (void)state;
    char path[512];
    char line[512];
    int count = 0;
    (void)snprintf(path, sizeof(path), "%s/bad/ANSWERS.tsv", folder);
    FILE *table = fopen(path, "r");
    assert_non_null(table);
    while (fgets(line, sizeof(line), table)) {
        if (line[0] == '#') continue;
        char *rest = NULL;
        struct row row = {.file = strtok_r(line, "\t", &rest)};
        row.answer = strtok_r(NULL, "\t", &rest);
        row.text = strtok_r(NULL, "\t", &rest);
        assert_non_null(row.text);
        check_bad(&row);
        count++;
    }
    (void)fclose(table);
    assert_int_equal(count, 35);
}

static void cut_files_never_crash(void **state)
{
    (void)state;
    char path[512];
    join_path(path, sizeof(path), folder, "c08-gb200-tray.xml");
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    static char text[65536];
    size_t bytes = fread(text, 1, sizeof(text), in);
    (void)fclose(in);
    for (size_t cut = 0; cut + 1 < bytes; cut += 7) {
        struct tt_topo_file *file = NULL;
        ncclResult_t rc = tt_topo_file_parse("cut", text, cut, &file);
        if (rc == ncclSuccess) fail_msg("%zu of %zu bytes are no machine", cut, bytes);
        assert_null(file);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_equal_the_reference),
        cmocka_unit_test(round_trips_change_nothing),
        cmocka_unit_test(bad_files_get_their_answer),
        cmocka_unit_test(cut_files_never_crash),
    };
    folder = argc > 1 ? argv[1] : "tests/golden/machines";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
