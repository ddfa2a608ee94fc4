/* Connections whose data lanes are moved by threads as well: any number of them at either end, the
 * bytes are the same; memory that was taken back is not touched; an end is an end. The links are
 * made of sockets directly. */
#include "../check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/network/networks.h"
#include "net/socket.h"
#include "net/socket_threads.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LANES = 1 + 8, MESSAGES = 10, FLIGHT = 4, MOST_BYTES = 1000000, LONG_BYTES = 64 << 20 };

struct wires {
    struct socket_link *from, *to;
};

static void connect_lane(int *from, int *to)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    *from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(*from, (struct sockaddr *)&addr, len), 0);
    *to = accept(listener, NULL, NULL);
    assert_true(*to >= 0);
    close(listener);
}

static struct wires wires_open(int sending, int receiving, bool sealed)
{
    struct socket_ends from = {.nlanes = LANES, .rank = 1, .sending = true, .sealed = sealed};
    struct socket_ends to = {.nlanes = LANES, .rank = 0, .sealed = sealed};
    from.split.threads = sending;
    to.split.threads = receiving;
    for (int i = 0; i < LANES; i++) {
        connect_lane(&from.fds[i], &to.fds[i]);
        memset(from.keys[i], 'k' + i, sizeof(from.keys[i]));
        memset(to.keys[i], 'k' + i, sizeof(to.keys[i]));
    }
    struct wires wires = {tt_socket_link_create(&from, NULL), tt_socket_link_create(&to, NULL)};
    assert_non_null(wires.from);
    assert_non_null(wires.to);
    return wires;
}

static void wires_close(struct wires *wires)
{
    tt_socket_link_destroy(wires->from);
    tt_socket_link_destroy(wires->to);
}

static void *post(struct socket_link *link, void *data, size_t bytes)
{
    const struct tt_net_message message = {.data = data, .bytes = bytes};
    void *request = NULL;
    assert_int_equal(tt_net_socket_post(link, &message, &request), ncclSuccess);
    assert_non_null(request);
    return request;
}

static bool is_done(void *request)
{
    int done = 0, size = 0;
    assert_int_equal(tt_socket_test(request, &done, &size), ncclSuccess);
    return done;
}

static size_t size_of(int k)
{
    return k % 3 == 2 ? MOST_BYTES - (size_t)k * 1001 : (size_t)k * 79190 % 300000;
}

static void fill(unsigned char *bytes, size_t size, int k)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((unsigned int)k * 131u + i * 7 + i / 251);
}

/* Messages of all sizes, four under way, memory used again as soon as it may. */
static void carry(struct wires *wires)
{
    unsigned char *sent[FLIGHT], *got[FLIGHT], *expected = malloc(MOST_BYTES);
    void *out[FLIGHT], *in[FLIGHT];
    int nout = 0, nin = 0, out_done = 0, in_done = 0;
    for (int i = 0; i < FLIGHT; i++) {
        sent[i] = malloc(MOST_BYTES);
        got[i] = malloc(MOST_BYTES);
    }
    while (in_done < MESSAGES || out_done < MESSAGES) {
        for (; nout < MESSAGES && nout - out_done < FLIGHT; nout++) {
            fill(sent[nout % FLIGHT], size_of(nout), nout);
            out[nout % FLIGHT] = post(wires->from, sent[nout % FLIGHT], size_of(nout));
        }
        for (; nin < MESSAGES && nin - in_done < FLIGHT; nin++)
            in[nin % FLIGHT] = post(wires->to, got[nin % FLIGHT], MOST_BYTES);
        if (out_done < nout) out_done += is_done(out[out_done % FLIGHT]);
        if (in_done == nin || !is_done(in[in_done % FLIGHT])) continue;
        fill(expected, size_of(in_done), in_done);
        assert_memory_equal(got[in_done % FLIGHT], expected, size_of(in_done));
        in_done++;
    }
    for (int i = 0; i < FLIGHT; i++) {
        free(sent[i]);
        free(got[i]);
    }
    free(expected);
}

/* ---- how many there are ---- */

/* Threads of connections in this process, or those of them that do not sleep. */
static int count_threads(bool awake)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[300] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
        FILE *file = fopen(path, "re");
        if (!file) continue;
        bool read = fgets(line, sizeof(line), file) != NULL;
        fclose(file);
        if (read && strstr(line, "(tutti-socket)")) count += !awake || !strstr(line, ") S");
    }
    closedir(tasks);
    return count;
}

static bool one_core(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return sched_getaffinity(0, sizeof(cores), &cores) || CPU_COUNT(&cores) < 2;
}

static char *map_long(void)
{
    char *at = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

/* Bytes that have come over the data lanes. */
static uint64_t count_moved(struct socket_link *link)
{
    uint64_t moved = 0;
    for (int i = 1; i < LANES; i++) {
        struct socket_lane *lane = &link->lanes[i];
        while (atomic_exchange(&lane->taken, true))
            sched_yield();
        moved += lane->moved;
        atomic_store(&lane->taken, false);
    }
    return moved;
}

/* ---- tests ---- */

static void any_number_moves_the_same_bytes(void **state)
{
    static const int counts[] = {0, 1, 2, 4};
    (void)state;
    for (size_t i = 0; i < 2 * TT_LEN(counts) * TT_LEN(counts); i++) {
        const int sending = counts[i / 2 % TT_LEN(counts)];
        const int receiving = counts[i / 2 / TT_LEN(counts)];
        print_message("%d threads to %d, %s\n", sending, receiving, i % 2 ? "sealed" : "plain");
        struct wires wires = wires_open(sending, receiving, i % 2);
        carry(&wires);
        wires_close(&wires);
        assert_int_equal(count_threads(false), 0);
    }
}

/* They come with the first message that is cut, sleep when all is done, and end with the
 * connection. */
static void they_come_late_and_sleep(void **state)
{
    static unsigned char sent[MOST_BYTES], got[MOST_BYTES];
    (void)state;
    if (one_core()) skip();
    struct wires wires = wires_open(4, 2, false);
    for (int round = 0; round < 3; round++) {
        const size_t bytes = round == 0 ? 60000 : MOST_BYTES;
        void *out = post(wires.from, sent, bytes), *in = post(wires.to, got, bytes);
        bool out_done = false, in_done = false;
        while (!out_done || !in_done) {
            out_done = out_done || is_done(out);
            in_done = in_done || is_done(in);
        }
        while (count_threads(false) < (round ? 4 + 2 : 0))
            usleep(1000); /* a thread has its name when it runs */
        assert_int_equal(count_threads(false), round ? 4 + 2 : 0);
        while (count_threads(true))
            usleep(1000);
    }
    wires_close(&wires);
    assert_int_equal(count_threads(false), 0);
}

/* Both requests once, as long as they are under way. */
static void test_both(struct socket_request *out, struct socket_request *in)
{
    if (out->link) is_done(out);
    if (in->link) is_done(in);
}

/* Its pieces are known, and some are left. */
static bool is_flowing(const struct socket_request *request)
{
    return request->link->headed && atomic_load(&request->parts) > 1;
}

/* Bytes come while the user of the connection is away. */
static void they_move_bytes_alone(void **state)
{
    char *sent = map_long(), *got = map_long();
    bool alone = false;
    (void)state;
    if (one_core()) skip();
    struct wires wires = wires_open(4, 4, false);
    while (!alone) {
        struct socket_request *out = post(wires.from, sent, LONG_BYTES);
        struct socket_request *in = post(wires.to, got, LONG_BYTES);
        while (out->link || in->link) {
            test_both(out, in);
            const uint64_t before = count_moved(wires.to);
            usleep(1000);
            alone = alone || count_moved(wires.to) > before;
        }
    }
    wires_close(&wires);
    munmap(sent, LONG_BYTES);
    munmap(got, LONG_BYTES);
}

/* Sealed: who reads or writes it after that has a SIGSEGV. */
static void stopped_connections_touch_no_memory(void **state)
{
    (void)state;
    for (int round = 0; round < 12; round++) {
        struct wires wires = wires_open(4, 4, true);
        char *sent = map_long(), *got = map_long();
        struct socket_request *out = post(wires.from, sent, LONG_BYTES);
        struct socket_request *in = post(wires.to, got, LONG_BYTES);
        while (!is_flowing(in))
            test_both(out, in);
        usleep((useconds_t)round * 100);
        tt_net_socket_stop(wires.from);
        munmap(sent, LONG_BYTES);
        tt_net_socket_stop(wires.to);
        munmap(got, LONG_BYTES);
        usleep(500);
        int done = 0, size = 0;
        assert_int_equal(tt_socket_test(out, &done, &size), ncclRemoteError);
        assert_int_equal(tt_socket_test(in, &done, &size), ncclRemoteError);
        wires_close(&wires);
    }
}

/* What a thread met is reported by who tests. */
static void failures_are_reported(void **state)
{
    static const struct {
        const char *name, *reported;
        bool sealed;
    } cases[] = {
        {"the sender leaves", "peer closed the connection", false},
        {"a lane is spoiled", "bad MAC", true},
    };
    char *sent = map_long(), *got = map_long();
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        int done = 0, size = 0;
        ncclResult_t rc = ncclSuccess;
        struct wires wires = wires_open(0, 4, cases[i].sealed);
        print_message("%s\n", cases[i].name);
        if (cases[i].sealed) assert_int_equal(send(wires.from->lanes[3].fd, "a record?", 8, 0), 8);
        struct socket_request *out = post(wires.from, sent, LONG_BYTES);
        struct socket_request *in = post(wires.to, got, LONG_BYTES);
        for (int k = 0; k < 100 && !cases[i].sealed && !is_flowing(in); k++)
            test_both(out, in);
        for (int lane = 0; lane < LANES && !cases[i].sealed; lane++)
            shutdown(wires.from->lanes[lane].fd, SHUT_WR);
        while (!rc && !done) {
            if (cases[i].sealed) is_done(out);
            rc = tt_socket_test(in, &done, &size);
        }
        assert_int_equal(rc, ncclRemoteError);
        assert_non_null(strstr(tt_last_error(), cases[i].reported));
        assert_non_null(strstr(tt_last_error(), "rank 0"));
        wires_close(&wires);
    }
    munmap(sent, LONG_BYTES);
    munmap(got, LONG_BYTES);
}

/* ---- the variables ---- */

struct setting {
    const char *threads, *each, *vendor;
    struct socket_split wanted;
};

static int check_setting(const struct setting *setting, const char *folder)
{
    struct tt_netif netif;
    memset(&netif, 0, sizeof(netif));
    setenv("NCCL_SOCKET_NTHREADS", setting->threads, 1);
    setenv("NCCL_NSOCKS_PERTHREAD", setting->each, 1);
    if (setting->vendor) {
        char path[200];
        snprintf(netif.pci_path, sizeof(netif.pci_path), "%s", folder);
        snprintf(path, sizeof(path), "%s/vendor", folder);
        FILE *file = fopen(path, "we");
        fprintf(file, "%s\n", setting->vendor);
        fclose(file);
    }
    const struct socket_split split = tt_socket_split_of(&netif, true);
    return split.threads == setting->wanted.threads && split.each == setting->wanted.each &&
           split.by_vendor == setting->wanted.by_vendor;
}

/* A process each: variables are read once. */
static void counts_are_nccls(void **state)
{
    static const struct setting settings[] = {
        {"-2", "-2", NULL, {0, 1, true}},      {"-2", "-2", "0x1d0f", {2, 8, true}},
        {"-2", "-2", "0x1ae0", {4, 1, true}},  {"-2", "-2", "0x8086", {0, 1, true}},
        {"3", "-2", "0x1d0f", {3, 8, false}},  {"4", "2", NULL, {4, 2, false}},
        {"17", "1", NULL, {16, 1, false}},     {"16", "8", NULL, {16, 4, false}},
        {"0", "2", "0x1ae0", {0, 2, false}},   {"-2", "2", "0x1ae0", {4, 2, true}},
        {"four", "1", "0x1ae0", {4, 1, true}},
    };
    char folder[] = "/tmp/tutti-threads-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < TT_LEN(settings); i++) {
        int status = 0;
        print_message("%s threads, %s sockets\n", settings[i].threads, settings[i].each);
        pid_t child = fork();
        if (child == 0) _exit(!check_setting(&settings[i], folder));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    snprintf(path, sizeof(path), "%s/vendor", folder);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_nccls),
        cmocka_unit_test(any_number_moves_the_same_bytes),
        cmocka_unit_test(they_come_late_and_sleep),
        cmocka_unit_test(they_move_bytes_alone),
        cmocka_unit_test(stopped_connections_touch_no_memory),
        cmocka_unit_test(failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
