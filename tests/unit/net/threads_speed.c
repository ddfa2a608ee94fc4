/* What threads bring to a sender whose own processor is what it lacks: messages of 4 MiB over four
 * lanes to a process that throws the bytes away, plain and encrypted, with 0, 2 and 4 threads in
 * turn. No test: it prints the median of the rounds.
 *
 *     threads-speed [ROUNDS] */
#include "base/mem.h"
#include "net/socket.h"

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LANES = 1 + 4, BYTES = 4 << 20, FLIGHT = 4, MOST_ROUNDS = 100 };
#define ROUND_SEC 0.3

static const int counts[] = {0, 2, 4};

struct figures {
    double gbps, cpu_sec_per_gb;
};

static void must(bool good, const char *what)
{
    if (good) return;
    perror(what);
    exit(1);
}

static double now_sec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_sec(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void connect_lane(int *from, int *to)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(!bind(listener, (struct sockaddr *)&addr, len) && !listen(listener, 1), "listen");
    getsockname(listener, (struct sockaddr *)&addr, &len);
    *from = socket(AF_INET, SOCK_STREAM, 0);
    must(!connect(*from, (struct sockaddr *)&addr, len), "connect");
    *to = accept(listener, NULL, NULL);
    close(listener);
}

/* Until a lane is closed. MSG_TRUNC: without a copy. */
static void discard(const int fds[LANES])
{
    struct pollfd looks[LANES];
    for (int i = 0; i < LANES; i++)
        looks[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    while (poll(looks, LANES, -1) > 0) {
        for (int i = 0; i < LANES; i++) {
            if (looks[i].revents && !recv(fds[i], NULL, BYTES, MSG_TRUNC | MSG_DONTWAIT)) _exit(0);
        }
    }
}

static uint64_t send_for(struct socket_link *link, char *memory, double sec)
{
    void *requests[FLIGHT];
    unsigned int posted = 0, done = 0;
    for (double end = now_sec() + sec; now_sec() < end;) {
        int ended = 0;
        for (; posted - done < FLIGHT; posted++) {
            const struct tt_net_message message = {.data = memory, .bytes = BYTES};
            must(!tt_net_socket_post(link, &message, &requests[posted % FLIGHT]), "post");
        }
        must(!tt_socket_test(requests[done % FLIGHT], &ended, NULL), "test");
        done += (unsigned int)ended;
        if (!ended) sched_yield();
    }
    return (uint64_t)done * BYTES;
}

static struct figures measure(int threads, bool sealed)
{
    struct socket_ends ends = {.nlanes = LANES, .rank = 1, .sending = true, .sealed = sealed};
    int fds[LANES];
    ends.split.threads = threads;
    for (int i = 0; i < LANES; i++)
        connect_lane(&ends.fds[i], &fds[i]);
    pid_t child = fork();
    must(child >= 0, "fork");
    for (int i = 0; i < LANES; i++)
        close(child ? fds[i] : ends.fds[i]);
    if (!child) discard(fds);
    struct socket_link *link = tt_socket_link_create(&ends, NULL);
    char *memory = calloc(1, BYTES);
    must(link && memory, "memory");
    memset(memory, 1, BYTES);
    send_for(link, memory, ROUND_SEC / 3); /* both are warm */
    double began = now_sec(), cpu = cpu_sec();
    double gb = (double)send_for(link, memory, ROUND_SEC) * 1e-9;
    struct figures figures = {gb / (now_sec() - began), (cpu_sec() - cpu) / gb};
    tt_socket_link_destroy(link);
    waitpid(child, NULL, 0);
    free(memory);
    return figures;
}

static int by_speed(const void *a, const void *b)
{
    double x = ((const struct figures *)a)->gbps, y = ((const struct figures *)b)->gbps;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static struct figures all[2][TT_LEN(counts)][MOST_ROUNDS];
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
    if (rounds < 1 || rounds > MOST_ROUNDS) return 2;
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < 2 * (int)TT_LEN(counts); k++)
            all[k % 2][k / 2][round] = measure(counts[k / 2], k % 2);
    }
    for (int k = 0; k < 2 * (int)TT_LEN(counts); k++) {
        struct figures *of = all[k / (int)TT_LEN(counts)][k % (int)TT_LEN(counts)];
        qsort(of, (size_t)rounds, sizeof(*of), by_speed);
        printf("%-9s %d threads  %6.2f GB/s (%.2f to %.2f)  %.3f s of processor time per GB\n",
               k < (int)TT_LEN(counts) ? "plain" : "encrypted", counts[k % (int)TT_LEN(counts)],
               of[rounds / 2].gbps, of[0].gbps, of[rounds - 1].gbps, of[rounds / 2].cpu_sec_per_gb);
    }
    return 0;
}
