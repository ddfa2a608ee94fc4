/* Do the hosts reach each other? On each a listener waits at the interface that ranks would take,
 * at a port of the system's choice as theirs are; then each connects to all others, and sends and
 * gets 256 KiB, which a path that loses large packets does not pass. */
#include "doctor/preflight.h"

#include "base/mem.h"
#include "base/network/socket.h"
#include "base/system/clock.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PASS_BYTES = 256 << 10,
    TIMEOUT_MS = 4000,
    SHELL_MS = 20000,
    LIFE_SEC = 300,
    MAX_HOSTS = 1024
};
enum { ADDRESS_BYTES = 128, ORDER_BYTES = 65536 };

static int64_t now_ms(void)
{
    return (int64_t)(tt_now_nsec() / 1000000);
}

/* All bytes one way; what they are is of no interest. */
static bool pass(int fd, bool sending, int64_t until_ms)
{
    char bytes[16384] = {0};
    for (size_t done = 0; done < PASS_BYTES;) {
        size_t step = 0, left = PASS_BYTES - done;
        if (left > sizeof(bytes)) left = sizeof(bytes);
        if (sending ? tt_socket_send(fd, bytes, left, &step)
                    : tt_socket_recv(fd, bytes, left, &step))
            return false;
        done += step;
        int64_t rest = until_ms - now_ms();
        struct pollfd wait = {.fd = fd, .events = sending ? POLLOUT : POLLIN};
        if (rest <= 0 || (step == 0 && poll(&wait, 1, (int)rest) <= 0)) return false;
    }
    return true;
}

/* ---- there ---- */

static bool print_address(const union tt_addr *addr)
{
    char host[ADDRESS_BYTES], port[16];
    if (getnameinfo(&addr->sa, tt_addr_len(addr), host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return false;
    bool v6 = addr->sa.sa_family == AF_INET6;
    printf("%s%s%s:%s\n", v6 ? "[" : "", host, v6 ? "]" : "", port);
    return fflush(stdout) == 0;
}

int preflight_listen(void)
{
    struct tt_netif netif;
    int count = 0, listener = -1;
    int64_t end_ms = now_ms() + LIFE_SEC * 1000;
    if (tt_netif_list(&netif, 1, &count) || count == 0) return 1;
    if (tt_socket_listen(&netif.addr, &listener) || !print_address(&netif.addr)) return 1;
    for (;;) {
        struct pollfd waits[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                  {.fd = listener, .events = POLLIN}};
        int64_t rest = end_ms - now_ms();
        if (rest <= 0 || poll(waits, 2, (int)rest) <= 0) return 0;
        if (waits[0].revents) return 0; /* who started it has left */
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) continue;
        int64_t until_ms = now_ms() + TIMEOUT_MS;
        (void)(pass(fd, false, until_ms) && pass(fd, true, until_ms));
        close(fd);
    }
}

/* NULL, or what went wrong. */
static const char *reach(const char *address, union tt_addr *addr_out)
{
    union tt_addr addr = {0};
    int fd = -1, error = 0;
    socklen_t len = sizeof(error);
    if (tt_addr_parse(address, &addr)) return "no address";
    *addr_out = addr;
    if (tt_socket_connect(&addr, &fd)) return "no way there";
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int ready = poll(&wait, 1, TIMEOUT_MS);
    if (ready > 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    const char *why = ready <= 0 ? "nothing answers" : error ? strerror(error) : NULL;
    int64_t until_ms = now_ms() + TIMEOUT_MS;
    if (!why && !(pass(fd, true, until_ms) && pass(fd, false, until_ms)))
        why = "it connects, but 256 KiB do not pass";
    close(fd);
    return why;
}

int preflight_reach(const char *addresses)
{
    json_t *answers = json_array();
    char *list = strdup(addresses), *rest = NULL;
    for (char *address = list ? strtok_r(list, ",", &rest) : NULL; address;
         address = strtok_r(NULL, ",", &rest)) {
        union tt_addr addr = {0};
        const char *why = reach(address, &addr);
        json_array_append_new(answers, why ? json_sprintf("%s%s", why, tt_addr_reach_text(&addr))
                                           : json_string(""));
    }
    free(list);
    bool good = json_dumpf(answers, stdout, 0) == 0;
    json_decref(answers);
    return good ? 0 : 1;
}

/* ---- here ---- */

struct end { /* of one host */
    const char *name;
    struct preflight_shell shell;
    char address[ADDRESS_BYTES]; /* "": no process listens there */
};

static void start(struct end *end)
{
    end->address[0] = '\0';
    if (!preflight_shell_open(&end->shell, end->name, "doctor --preflight-listen")) return;
    struct pollfd wait = {.fd = fileno(end->shell.from), .events = POLLIN};
    if (poll(&wait, 1, SHELL_MS) <= 0) return;
    if (!fgets(end->address, sizeof(end->address), end->shell.from)) end->address[0] = '\0';
    end->address[strcspn(end->address, "\n")] = '\0';
}

/* What host `from` says of the others, in their order; NULL: nothing. Owned. */
static json_t *ask(const struct end *ends, int count, int from)
{
    char order[ORDER_BYTES];
    struct preflight_shell shell;
    size_t used = (size_t)snprintf(order, sizeof(order), "doctor --preflight-reach ");
    for (int i = 0; i < count; i++) {
        if (i == from || !ends[i].address[0]) continue;
        int n = snprintf(order + used, sizeof(order) - used, "%s,", ends[i].address);
        if (n < 0 || used + (size_t)n >= sizeof(order)) break;
        used += (size_t)n;
    }
    if (!preflight_shell_open(&shell, ends[from].name, order)) return NULL;
    json_t *answers = json_loadf(shell.from, 0, NULL);
    preflight_shell_close(&shell);
    return answers;
}

static void judge(json_t *host, const struct end *ends, int count, int from)
{
    json_t *answers = ask(ends, count, from);
    size_t k = 0;
    int good = 0;
    char text[400];
    for (int i = 0; answers && i < count; i++) {
        if (i == from || !ends[i].address[0]) continue;
        const char *why = json_string_value(json_array_get(answers, k++));
        good += why && !*why;
        if (why && !*why) continue;
        snprintf(text, sizeof(text), "to %s at %s: %s", ends[i].name, ends[i].address,
                 why ? why : "not tried");
        bool partly = why && strstr(why, "pass");
        preflight_add(host, "connection", "mend", text,
                      partly ? "the same MTU on the whole way, and let ICMP pass"
                             : "let the firewalls pass TCP of all ports between the hosts of the "
                               "job, or name their common network by NCCL_SOCKET_IFNAME");
    }
    snprintf(text, sizeof(text), "works to %d other host(s), 256 KiB each way", good);
    if (good) preflight_add(host, "connections", "ok", text, "");
    if (!answers)
        preflight_add(host, "connection", "note", "not tried: nothing came back from there", "");
    json_decref(answers);
}

void preflight_connect(json_t *hosts, const char *names)
{
    struct end *ends = tt_calloc(MAX_HOSTS, sizeof(*ends));
    char *list = strdup(names), *rest = NULL;
    int count = 0;
    for (char *name = list && ends ? strtok_r(list, ",", &rest) : NULL; name && count < MAX_HOSTS;
         name = strtok_r(NULL, ",", &rest))
        ends[count++].name = name;
    for (int i = 0; i < count; i++)
        start(&ends[i]);
    for (int i = 0; i < count && count > 1; i++) {
        if (ends[i].address[0]) judge(json_array_get(hosts, (size_t)i), ends, count, i);
    }
    for (int i = 0; i < count; i++)
        preflight_shell_close(&ends[i].shell);
    free(ends);
    free(list);
}
