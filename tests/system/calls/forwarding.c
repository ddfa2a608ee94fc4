/* Messages in groups that wait for each other across ranks. Every scenario is one global order of
 * messages, of which each rank calls its own, in that order, cut into groups: such a program is
 * legal wherever the cuts are (the first message that is not over has both its groups under way),
 * so it must end, and every message must arrive. usage: forwarding MODE */
#include "../harness/world.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 5, MESSAGES = 24, STUCK_SEC = 60, SCENARIOS = 40 };

struct message {
    int from, to;
    size_t bytes;
    bool last_of_sender, last_of_receiver; /* ends the group of that rank */
};

struct scenario {
    const char *name;
    int nmessages;
    struct message messages[MESSAGES];
};

static void stuck(int number)
{
    static const char text[] = "forwarding: a legal program hangs\n";
    (void)number;
    (void)!write(2, text, sizeof(text) - 1);
    _exit(1);
}

static void add(struct scenario *scenario, int from, int to, size_t bytes, const char *ends)
{
    scenario->messages[scenario->nmessages++] =
        (struct message){.from = from,
                         .to = to,
                         .bytes = bytes,
                         .last_of_sender = strchr(ends, 's') != NULL,
                         .last_of_receiver = strchr(ends, 'r') != NULL};
}

/* 0 sends twice to 1 and once to 2 in one group; 1 receives both, then sends to 2; 2 receives from
 * 1, then from 0. */
static void make_relay(struct scenario *scenario)
{
    const size_t bytes = 64 << 10;
    *scenario = (struct scenario){.name = "relay"};
    add(scenario, 0, 1, bytes, "");
    add(scenario, 0, 1, bytes, "r");
    add(scenario, 1, 2, bytes, "sr");
    add(scenario, 0, 2, bytes, "sr");
}

/* 0 sends two tensors to each worker in one group; a worker takes the first, passes it to the next
 * worker, and only then takes the second. */
static void make_fan(struct scenario *scenario, int nranks)
{
    const size_t bytes = 256 << 10;
    *scenario = (struct scenario){.name = "fan"};
    for (int to = 1; to < nranks; to++)
        add(scenario, 0, to, bytes, "r");
    for (int from = 1; from + 1 < nranks; from++)
        add(scenario, from, from + 1, bytes, "sr");
    for (int to = 1; to < nranks; to++)
        add(scenario, 0, to, bytes, "r");
}

static void make_random(struct scenario *scenario, int nranks, unsigned seed)
{
    static const size_t sizes[] = {1, 96, 97, 5000, 8192, 70000, 300001};
    *scenario = (struct scenario){.name = "random"};
    int nmessages = 2 + rand_r(&seed) % (MESSAGES - 2);
    for (int k = 0; k < nmessages; k++) {
        int from = rand_r(&seed) % nranks;
        int to = (from + 1 + rand_r(&seed) % (nranks - 1)) % nranks;
        size_t bytes = sizes[rand_r(&seed) % (sizeof(sizes) / sizeof(sizes[0]))];
        static const char *const ends[] = {"", "s", "r", "sr"};
        add(scenario, from, to, bytes, ends[rand_r(&seed) % 4]);
    }
}

static unsigned char byte_of(int message, size_t at)
{
    return (unsigned char)((size_t)(message + 1) * 37 + at * 13 + at / 251);
}

/* The messages of one rank, in order, in their groups. */
static void call_messages(struct world_rank *rank, const struct scenario *scenario, char **memory)
{
    bool open = false;
    for (int k = 0; k < scenario->nmessages; k++) {
        const struct message *message = &scenario->messages[k];
        bool sends = message->from == rank->rank;
        if (!sends && message->to != rank->rank) continue;
        if (!open) world_check(ncclGroupStart(), "ncclGroupStart");
        open = true;
        if (sends) {
            world_check(ncclSend(memory[k], message->bytes, ncclInt8, message->to, rank->comm,
                                 rank->stream),
                        "ncclSend");
        } else {
            world_check(ncclRecv(memory[k], message->bytes, ncclInt8, message->from, rank->comm,
                                 rank->stream),
                        "ncclRecv");
        }
        if (sends ? !message->last_of_sender : !message->last_of_receiver) continue;
        world_check(ncclGroupEnd(), "ncclGroupEnd");
        open = false;
    }
    if (open) world_check(ncclGroupEnd(), "ncclGroupEnd");
}

static int play(struct world_rank *rank, const struct scenario *scenario, unsigned seed)
{
    char *memory[MESSAGES] = {NULL};
    int failures = 0;
    for (int k = 0; k < scenario->nmessages; k++) {
        const struct message *message = &scenario->messages[k];
        bool mine = message->from == rank->rank || message->to == rank->rank;
        if (!mine) continue;
        world_check_cuda(cudaMalloc((void **)&memory[k], message->bytes), "cudaMalloc");
        for (size_t i = 0; i < message->bytes; i++)
            memory[k][i] = message->from == rank->rank ? (char)byte_of(k, i) : 0;
    }
    call_messages(rank, scenario, memory);
    world_check_cuda(cudaStreamSynchronize(rank->stream), "cudaStreamSynchronize");
    for (int k = 0; k < scenario->nmessages; k++) {
        for (size_t i = 0; memory[k] && i < scenario->messages[k].bytes; i++) {
            if ((unsigned char)memory[k][i] == byte_of(k, i)) continue;
            printf("%s %u: rank %d, message %d of %zu bytes: byte %zu is wrong\n", scenario->name,
                   seed, rank->rank, k, scenario->messages[k].bytes, i);
            failures++;
            break;
        }
        if (memory[k]) world_check_cuda(cudaFree(memory[k]), "cudaFree");
    }
    return failures;
}

static int play_all(struct world_team *team)
{
    struct scenario scenario;
    int failures = 0;
    alarm(STUCK_SEC);
    if (team->nranks == 3) {
        make_relay(&scenario);
        failures += play(team->ranks, &scenario, 0);
    }
    make_fan(&scenario, team->nranks);
    failures += play(team->ranks, &scenario, 0);
    for (unsigned seed = 1; seed <= SCENARIOS; seed++) {
        make_random(&scenario, team->nranks, seed);
        failures += play(team->ranks, &scenario, seed);
    }
    return failures;
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = world_mode(argc > 1 ? argv[1] : "threads");
    if (!mode) return 2;
    signal(SIGALRM, stuck);
    int failures = world_run(mode, 3, play_all, NULL);
    failures += world_run(mode, RANKS, play_all, NULL);
    return failures != 0;
}
