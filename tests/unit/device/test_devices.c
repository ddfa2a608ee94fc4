/* Which devices there are, by variables and machine files; every case in a process of its own. */
#include "../check.h"

#include "device/host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char two_gpus[] =
    "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:0F:00.0\" class=\"0x060400\">"
    "<pci busid=\"0000:1B:00.0\" class=\"0x030200\"><gpu dev=\"1\" sm=\"80\" rank=\"1\"/></pci>"
    "<pci busid=\"0000:1A:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"100\" rank=\"0\"/></pci>"
    "</pci></cpu></system>";
static const char entity[] =
    "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><system>&b;</system>";

struct machine_case {
    const char *name;
    const char *count, *visible, *file; /* NULL: unset; file: its text */
    int devices;
    const char *buses[4]; /* of the devices, as many as are known */
    int cc;               /* major of the first one */
};

static const struct machine_case cases[] = {
    {"by count", "3", NULL, NULL, 3, {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}, 9},
    {"none", "0", NULL, NULL, 0, {NULL}, 0},
    {"some visible", "4", "2,0", NULL, 2, {"0000:03:00.0", "0000:01:00.0"}, 9},
    {"empty visible", "4", "", NULL, 0, {NULL}, 0},
    {"bad entry ends the list", "4", "1,x,2", NULL, 1, {"0000:02:00.0"}, 9},
    {"too large ends the list", "4", "1,4,2", NULL, 1, {"0000:02:00.0"}, 9},
    {"negative ends the list", "4", "-1,2", NULL, 0, {NULL}, 0},
    {"unknown uuid", "4", "GPU-00000000", NULL, 0, {NULL}, 0},
    {"machine file", NULL, NULL, two_gpus, 2, {"0000:1a:00.0", "0000:1b:00.0"}, 10},
    {"file and visible", NULL, "1", two_gpus, 1, {"0000:1b:00.0"}, 8},
    {"file and more", "3", NULL, two_gpus, 3, {"0000:1a:00.0", "0000:1b:00.0", "0000:01:00.0"}, 10},
    {"file and fewer", "1", NULL, two_gpus, 1, {"0000:1a:00.0"}, 10},
    {"file without gpus", NULL, NULL, "<system></system>", 8, {"0000:01:00.0"}, 9},
    {"broken file", NULL, NULL, "<system><cpu>", 8, {"0000:01:00.0"}, 9},
    {"entities", NULL, NULL, entity, 8, {"0000:01:00.0"}, 9},
    {"empty file", NULL, NULL, "", 8, {"0000:01:00.0"}, 9},
};

static void set(const char *name, const char *value)
{
    if (value) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

static int check(const struct machine_case *one)
{
    struct tt_device_info info;
    int device = -1;
    if (tuttiHostDeviceCount() != one->devices) return 1;
    if (tuttiHostReady() != (one->devices ? 0 : 100)) return 2;
    for (int i = 0; i < one->devices && i < 4 && one->buses[i]; i++) {
        if (tuttiHostDeviceInfo(i, &info) || strcmp(info.bus_id, one->buses[i]) != 0) return 3;
        if (tuttiHostDeviceByBusId(one->buses[i], &device) || device != i) return 4;
        if (tuttiHostDeviceByBusId(one->buses[i] + 5, &device) || device != i) return 5;
        if (i == 0 && info.cc_major != one->cc) return 6;
        if (!info.name[0] || !info.memory_bytes) return 7;
    }
    return tuttiHostDeviceByBusId("zz:1", &device) == 1 ? 0 : 8;
}

static void devices_by_variables_and_files(void **state)
{
    char path[] = "/tmp/tutti-machine-XXXXXX";
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = 0;
        print_message("case: %s\n", cases[i].name);
        if (cases[i].file) {
            FILE *file = fopen(path, "w");
            fputs(cases[i].file, file);
            fclose(file);
        }
        pid_t child = fork();
        if (child == 0) {
            set("TUTTI_DEVICES", cases[i].count);
            set("CUDA_VISIBLE_DEVICES", cases[i].visible);
            set("NCCL_TOPO_FILE", cases[i].file ? path : NULL);
            _exit(check(&cases[i]));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    unlink(path);
}

/* In a process of its own: which of four devices does the variable show? -1: not exactly one. */
static int shown(const char *visible, const struct tt_device_info infos[4])
{
    int status = 0;
    if (fork() == 0) {
        struct tt_device_info only;
        setenv("TUTTI_DEVICES", "4", 1);
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
        if (tuttiHostDeviceCount() != 1 || tuttiHostDeviceInfo(0, &only)) _exit(9);
        int which = 0;
        while (which < 4 && memcmp(only.uuid, infos[which].uuid, sizeof(only.uuid)) != 0) {
            which++;
        }
        _exit(which);
    }
    wait(&status);
    return WIFEXITED(status) && WEXITSTATUS(status) < 4 ? WEXITSTATUS(status) : -1;
}

/* A UUID names its device whatever else is visible; so does a beginning that no other has. */
static void uuids_stay(void **state)
{
    struct tt_device_info infos[4];
    char text[48];
    int status = 0;
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        setenv("TUTTI_DEVICES", "4", 1);
        for (int i = 0; i < 4; i++) {
            tuttiHostDeviceInfo(i, &infos[i]);
        }
        _exit(write(ends[1], infos, sizeof(infos)) == (ssize_t)sizeof(infos) ? 0 : 1);
    }
    wait(&status);
    assert_int_equal(read(ends[0], infos, sizeof(infos)), (ssize_t)sizeof(infos));
    for (int i = 0; i < 4; i++) {
        const unsigned char *u = infos[i].uuid;
        snprintf(text, sizeof(text), "GPU-%02x%02x%02x%02x-%02x%02x", u[0], u[1], u[2], u[3], u[4],
                 u[5]);
        assert_int_equal(shown(text, infos), i);
        snprintf(text, sizeof(text), "GPU-%02x%02x%02x%02x-%02x%02x-f", u[0], u[1], u[2], u[3],
                 u[4], u[5] ^ 1);
        assert_int_equal(shown(text, infos), -1);
    }
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_by_variables_and_files),
        cmocka_unit_test(uuids_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
