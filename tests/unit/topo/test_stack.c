/* Threads of a program may have little stack: every machine is read, searched and joined on 128
 * KiB, also as the largest NVLink domain. A search that needs more crashes here. */
#include "../check.h"

#include "topo/topo.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 128 << 10 };

struct task {
    const char *path;
    int hosts;
    ncclResult_t rc;
    int ranks;
};

static void *search(void *context)
{
    struct task *task = context;
    struct tt_topo_options options = {.hosts = task->hosts, .fused = true};
    struct tt_topo_file *file = NULL;
    struct tt_topo_domain *domains = NULL;
    struct tt_topo_layout *layout = NULL;
    int ndomains = 0;
    task->rc = tt_topo_file_read(task->path, &file);
    if (!task->rc) task->rc = tt_topo_domains_make(file, &options, 1, &domains, &ndomains);
    if (!task->rc && ndomains == 1) {
        struct tt_topo_comm_node comm_node = {.domain = &domains[0]};
        task->rc = tt_topo_layout_make(&comm_node, 1, NULL, &layout);
        task->ranks = layout ? layout->nranks : 0;
    }
    tt_topo_layout_free(layout);
    tt_topo_domains_free(domains, ndomains);
    tt_topo_file_free(file);
    return NULL;
}

static void run(struct task *task)
{
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attr, search, task), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attr);
}

static void every_machine_fits(void **state)
{
    const char *folder = *state;
    DIR *names = opendir(folder);
    int machines = 0;
    assert_non_null(names);
    for (struct dirent *name = readdir(names); name; name = readdir(names)) {
        char path[PATH_MAX];
        const char *suffix = strrchr(name->d_name, '.');
        if (!suffix || strcmp(suffix, ".xml") != 0) continue;
        (void)snprintf(path, sizeof(path), "%s/%s", folder, name->d_name);
        print_message("machine: %s\n", name->d_name);
        struct task task = {.path = path, .hosts = 1, .rc = ncclInternalError};
        run(&task);
        assert_int_equal(task.rc, ncclSuccess);
        machines++;
    }
    (void)closedir(names);
    assert_true(machines >= 20);
}

/* 32 channels of 320 GPUs lie deeper than any box can get. */
static void largest_domain_fits(void **state)
{
    static const int hosts[] = {18, 80};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/c08-gb200-tray.xml", (const char *)*state);
    for (size_t k = 0; k < sizeof(hosts) / sizeof(hosts[0]); k++) {
        print_message("trays: %d\n", hosts[k]);
        struct task task = {.path = path, .hosts = hosts[k], .rc = ncclInternalError};
        run(&task);
        assert_int_equal(task.rc, ncclSuccess);
        assert_int_equal(task.ranks, 4 * hosts[k]);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_machine_fits, argv[1]),
        cmocka_unit_test_prestate(largest_domain_fits, argv[1]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
