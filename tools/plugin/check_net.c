/* Networks: which cases there are. Each opens a communicator (or two) over the plugin and ends all
 * that it began; what TUTTI_PLUGIN_CHECK saw on the way makes the answer no as well. */
#include "base/system/clock.h"
#include "net_drive.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * KIB, COMM_ID = 0x1234, REGIONS = 8, LIVES = 3, ASKS = 100 };
enum { STUCK_MSEC = 200 };

/* 0 to 1 MiB, also in two steps that are no power of two. */
static const size_t all_sizes[] = {0, 1, 3, 8, 127, 4 * KIB, 8 * KIB, 65537, 1000000, MIB};
static const size_t mixed_sizes[] = {1,    8 * KIB, 0, 100000,  17,       4096, 1,  300000,
                                     4097, 2,       0, 8 * KIB, 2 * 8192, 3,    64, 70000};
static const size_t small_sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

enum { ALL = sizeof(all_sizes) / sizeof(*all_sizes) };
enum { MIXED = sizeof(mixed_sizes) / sizeof(*mixed_sizes) };
enum { SMALL = sizeof(small_sizes) / sizeof(*small_sizes) };

struct fixture { /* one communicator and one connection of it */
    struct net_drive drive;
    struct net_end ends[2]; /* sender, receiver */
};

static bool fixture_open(struct fixture *fixture, struct check_case_state *state, const char *doing)
{
    snprintf(state->doing, sizeof(state->doing), "%s", doing);
    return net_drive_open(&fixture->drive, COMM_ID, state) &&
           net_drive_connect(&fixture->drive, &fixture->drive, 0, fixture->ends);
}

/* 0: all was well. */
static int verdict(const struct check_case_state *state, bool good)
{
    return !good || state->nbreaches > 0;
}

static int fixture_close(struct fixture *fixture, bool good)
{
    for (int e = 0; e < 2 && good; e++)
        good = net_drive_disconnect(&fixture->ends[e]);
    struct check_case_state *state = fixture->drive.state;
    if (good) net_drive_close(&fixture->drive); /* else requests may be under way */
    return verdict(state, good);
}

/* A plan without what the plugin says that it does not take. */
static struct net_plan plan_of(const struct net_drive *drive, const size_t *sizes, int count)
{
    size_t most = net_drive_most(drive, MIB);
    struct net_plan plan = {.sizes = sizes, .count = 0, .first_tag = 7};
    while (plan.count < count && sizes[plan.count] <= most)
        plan.count++;
    return plan;
}

/* ---- cases ---- */

static int check_devices(struct check_case_state *state, const struct check_options *options)
{
    struct net_drive drive;
    (void)options;
    snprintf(state->doing, sizeof(state->doing), "init, properties of all devices, finalize");
    bool good = net_drive_open(&drive, COMM_ID, state);
    net_drive_close(&drive);
    return verdict(state, good);
}

static int check_connections(struct check_case_state *state, const struct check_options *options)
{
    struct net_drive drive;
    (void)options;
    snprintf(state->doing, sizeof(state->doing), "a connection on every device, twice");
    bool good = net_drive_open(&drive, COMM_ID, state);
    for (int k = 0; good && k < 2 * drive.net->ndevs; k++) {
        struct net_end ends[2];
        good = net_drive_connect(&drive, &drive, k / 2, ends) &&
               net_drive_disconnect(&ends[k % 2]) && net_drive_disconnect(&ends[1 - k % 2]);
    }
    if (good) net_drive_close(&drive);
    return verdict(state, good);
}

static int check_no_sender(struct check_case_state *state, const struct check_options *options)
{
    struct net_drive drive;
    struct net_listener listener;
    struct net_end end = {.drive = &drive};
    (void)options;
    snprintf(state->doing, sizeof(state->doing), "a listener without a sender");
    bool good = net_drive_open(&drive, COMM_ID, state) && net_drive_listen(&drive, 0, &listener);
    for (int k = 0; good && k < ASKS; k++)
        good = net_drive_accept(&end, listener.comm);
    if (good && end.comm) {
        snprintf(state->note, sizeof(state->note), "accept: a connection, and nobody connected");
        good = false;
    }
    int version = good ? drive.net->plugin->ops.version : 0;
    bool apart = version == 5 || version == 6; /* accept is in a thread of its own, and may wait */
    if (apart) tt_sleep_usec((uint64_t)STUCK_MSEC * 1000);
    if (good) good = net_drive_close_listen(&drive, &listener);
    if (good) net_drive_close(&drive);
    return verdict(state, good);
}

static int check_sizes(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    (void)options;
    bool good = fixture_open(&fixture, state, "messages of 0 bytes to 1 MiB, one at a time");
    for (int k = 0; good && k < ALL; k++) {
        struct net_plan plan = plan_of(&fixture.drive, &all_sizes[k], 1);
        good = net_transfer(fixture.ends, &plan);
    }
    return fixture_close(&fixture, good);
}

static int check_in_flight(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    (void)options;
    bool good = fixture_open(&fixture, state, "eight messages under way");
    for (int turn = 0; good && turn < 3; turn++) {
        struct net_plan plan = plan_of(&fixture.drive, mixed_sizes, MIXED);
        good = net_transfer(fixture.ends, &plan);
    }
    return fixture_close(&fixture, good);
}

/* Sends that no receive waits for yet. */
static int check_early(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    struct net_batch batch = {.nsides = 0};
    (void)options;
    bool good = fixture_open(&fixture, state, "sends before their receives");
    if (good) {
        struct net_plan plan = plan_of(&fixture.drive, mixed_sizes, MIXED);
        good = net_batch_add(&batch, &fixture.ends[0], &plan, 1) &&
               net_batch_add(&batch, &fixture.ends[1], &plan, 1) &&
               net_batch_run(&fixture.drive, &batch);
    }
    return fixture_close(&fixture, good);
}

static int check_room(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    (void)options;
    bool good = fixture_open(&fixture, state, "receives with more room than comes");
    if (good) {
        struct net_plan plan = plan_of(&fixture.drive, mixed_sizes, MIXED);
        size_t largest = net_drive_most(&fixture.drive, MIB);
        plan.spare = largest < 100000 + 4096 ? 0 : 4096;
        good = net_transfer(fixture.ends, &plan);
    }
    return fixture_close(&fixture, good);
}

static int check_tags(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    (void)options;
    bool good = fixture_open(&fixture, state, "a tag for each message");
    if (good) {
        struct net_plan plan = plan_of(&fixture.drive, small_sizes, SMALL);
        plan.tag_step = 1;
        good = net_transfer(fixture.ends, &plan);
    }
    return fixture_close(&fixture, good);
}

/* As many receives in one request as the device's maxRecvs allows, in either order of their tags.
 */
static int check_groups(struct check_case_state *state, const struct check_options *options)
{
    struct fixture fixture;
    ncclNetProperties_v12_t props = {0};
    (void)options;
    bool good = fixture_open(&fixture, state, "several receives in one request");
    if (good) {
        struct tt_net_plugin *net = fixture.drive.net->plugin;
        good = net_drive_good(&fixture.drive, "getProperties", net->ops.properties(net, 0, &props));
        if (!net->ops.irecv_group) props.maxRecvs = 1;
    }
    int most = good && props.maxRecvs < TT_NET_GROUP ? props.maxRecvs : TT_NET_GROUP;
    for (int count = 2; good && count <= most; count++) {
        good = net_transfer_grouped(fixture.ends, count, false) &&
               net_transfer_grouped(fixture.ends, count, true);
    }
    return fixture_close(&fixture, good);
}

/* All messages of two connections are under way together; `back`: they run in opposite directions.
 */
static bool two_at_once(struct net_end *a, struct net_end *b, struct net_drive *drive)
{
    struct net_batch batch = {.nsides = 0};
    struct net_plan plan = plan_of(drive, mixed_sizes, MIXED);
    return net_batch_add(&batch, &a[1], &plan, 1) && net_batch_add(&batch, &b[1], &plan, 2) &&
           net_batch_add(&batch, &b[0], &plan, 2) && net_batch_add(&batch, &a[0], &plan, 1) &&
           net_batch_run(drive, &batch);
}

static int check_two_connections(struct check_case_state *state,
                                 const struct check_options *options)
{
    struct fixture fixture;
    struct net_end other[2] = {{.comm = NULL}, {.comm = NULL}};
    (void)options;
    bool good =
        fixture_open(&fixture, state, "two connections at once") &&
        net_drive_connect(&fixture.drive, &fixture.drive, fixture.drive.net->ndevs - 1, other) &&
        two_at_once(fixture.ends, other, &fixture.drive);
    good = good && net_drive_disconnect(&other[0]) && net_drive_disconnect(&other[1]);
    return fixture_close(&fixture, good);
}

static int check_two_communicators(struct check_case_state *state,
                                   const struct check_options *options)
{
    struct fixture fixture;
    struct net_drive second;
    struct net_end between[2] = {{.comm = NULL}, {.comm = NULL}};
    struct net_plan plan;
    (void)options;
    bool good = fixture_open(&fixture, state, "two communicators of one process") &&
                net_drive_open(&second, COMM_ID, state) &&
                net_drive_connect(&second, &fixture.drive, 0, between) &&
                two_at_once(fixture.ends, between, &fixture.drive) &&
                net_drive_disconnect(&between[0]) && net_drive_disconnect(&between[1]);
    if (good) {
        net_drive_close(&second); /* the first one lives on */
        plan = plan_of(&fixture.drive, small_sizes, SMALL);
        good = net_transfer(fixture.ends, &plan);
    }
    return fixture_close(&fixture, good);
}

/* Regions that lie in each other, one of them twice, ended in another order. */
static int check_memory(struct check_case_state *state, const struct check_options *options)
{
    char memory[REGIONS * 8 * KIB] = "";
    struct fixture fixture;
    struct net_plan plan;
    void *mhandles[2][REGIONS];
    (void)options;
    bool good = fixture_open(&fixture, state, "registrations in each other");
    for (int k = 0; good && k < 2 * REGIONS; k++) {
        size_t at = (size_t)(k / 4) * 1001;
        good = net_drive_register(&fixture.ends[k % 2], memory + at, sizeof(memory) - 2 * at,
                                  &mhandles[k % 2][k / 2]);
    }
    for (int k = 0; good && k < 2 * REGIONS; k++) {
        plan = plan_of(&fixture.drive, small_sizes, SMALL);
        good = net_drive_deregister(&fixture.ends[k % 2], mhandles[k % 2][(k / 2 * 3) % REGIONS]) &&
               net_transfer(fixture.ends, &plan);
    }
    return fixture_close(&fixture, good);
}

/* As an aborted communicator leaves it: a receive that nothing comes for. */
static int check_abort(struct check_case_state *state, const struct check_options *options)
{
    char memory[4 * KIB] = "";
    struct fixture fixture;
    (void)options;
    bool good = fixture_open(&fixture, state, "closing with a receive under way");
    struct net_message message = {.end = &fixture.ends[1],
                                  .part = {.data = memory, .bytes = sizeof(memory)}};
    good =
        good && net_drive_register(&fixture.ends[1], memory, sizeof(memory), &message.part.mhandle);
    while (good && !message.posted)
        good = net_drive_post(&message) && net_drive_goes_on(&fixture.drive);
    good = good && net_drive_deregister(&fixture.ends[1], message.part.mhandle);
    if (good) (void)net_drive_disconnect(&fixture.ends[1]);
    if (good) state->note[0] = '\0'; /* it may fail here, but must come back */
    return fixture_close(&fixture, good);
}

static int check_reload(struct check_case_state *state, const struct check_options *options)
{
    (void)options;
    for (int k = 0; k < LIVES; k++) {
        struct fixture fixture;
        bool good = fixture_open(&fixture, state, "loaded again and again");
        if (good) {
            struct net_plan plan = plan_of(&fixture.drive, small_sizes, SMALL);
            good = net_transfer(fixture.ends, &plan);
        }
        if (fixture_close(&fixture, good)) return 1;
    }
    return 0;
}

/* Jobs run for days and make communicators all the time: a connection that has ended, and a message
 * that has come, leave nothing. */
static int check_again(struct check_case_state *state, const struct check_options *options)
{
    enum { CONNECTIONS = 16, TRANSFERS = 16, KEPT_BYTES = 4096, MESSAGE_BYTES = 32 };
    struct fixture fixture;
    struct check_held held[CHECK_WINDOWS];
    (void)options;
    bool good = fixture_open(&fixture, state, "messages again and again");
    for (int k = 0; good && k < CHECK_WINDOWS * TRANSFERS; k++) {
        struct net_plan plan = plan_of(&fixture.drive, small_sizes, SMALL);
        good = net_transfer(fixture.ends, &plan);
        if ((k + 1) % TRANSFERS == 0) held[k / TRANSFERS] = check_held_now();
    }
    if (good) check_held_judge(state, held, TRANSFERS * SMALL, "each message", MESSAGE_BYTES);
    snprintf(state->doing, sizeof(state->doing), "connections again and again");
    for (int k = 0; good && k < CHECK_WINDOWS * CONNECTIONS; k++) {
        struct net_end ends[2];
        struct net_plan plan = plan_of(&fixture.drive, small_sizes, 1);
        good = net_drive_connect(&fixture.drive, &fixture.drive, 0, ends) &&
               net_transfer(ends, &plan) && net_drive_disconnect(&ends[k % 2]) &&
               net_drive_disconnect(&ends[1 - k % 2]);
        if ((k + 1) % CONNECTIONS == 0) held[k / CONNECTIONS] = check_held_now();
    }
    if (good) check_held_judge(state, held, CONNECTIONS, "each connection", KEPT_BYTES);
    return fixture_close(&fixture, good);
}

/* ---- two processes ---- */

/* The sending process: its handle comes through the pipe. */
static int live_as_sender(struct check_case_state *state, int pipe_fd)
{
    struct net_drive drive;
    struct net_listener listener = {.comm = NULL};
    struct net_end end = {.drive = &drive, .sending = true};
    struct net_batch batch = {.nsides = 0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || !net_drive_open(&drive, COMM_ID, state)) return 1;
    if (read(pipe_fd, listener.handle, sizeof(listener.handle)) != sizeof(listener.handle))
        return 1;
    struct net_plan plan = plan_of(&drive, mixed_sizes, MIXED);
    bool good = net_drive_join(&listener, 0, &end, NULL);
    for (int turn = 0; good && turn < 3; turn++)
        good = net_batch_add(&batch, &end, &plan, turn) && net_batch_run(&drive, &batch);
    good = good && net_drive_disconnect(&end);
    if (good) net_drive_close(&drive);
    return verdict(state, good);
}

static bool live_as_receiver(struct net_drive *drive, int pipe_fd)
{
    struct net_listener listener;
    struct net_end end = {.drive = drive};
    struct net_batch batch = {.nsides = 0};
    if (!net_drive_listen(drive, 0, &listener)) return false;
    if (write(pipe_fd, listener.handle, sizeof(listener.handle)) != sizeof(listener.handle))
        return false;
    struct net_plan plan = plan_of(drive, mixed_sizes, MIXED);
    bool good =
        net_drive_join(&listener, 0, NULL, &end) && net_drive_close_listen(drive, &listener);
    for (int turn = 0; good && turn < 3; turn++)
        good = net_batch_add(&batch, &end, &plan, turn) && net_batch_run(drive, &batch);
    return good && net_drive_disconnect(&end);
}

/* The sender's breaches and words become those of the case. */
static void take_over(struct check_case_state *state, const struct check_case_state *sender,
                      int status)
{
    char where[128];
    for (int k = 0; k < sender->nbreaches && state->nbreaches < CHECK_BREACHES; k++) {
        memcpy(state->breaches[state->nbreaches++], sender->breaches[k],
               sizeof(sender->breaches[k]));
    }
    net_drive_where(sender, where, sizeof(where));
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (*sender->note) {
        snprintf(state->note, sizeof(state->note), "the sender: %.240s", sender->note);
    } else if (sig && sig != SIGKILL) {
        snprintf(state->note, sizeof(state->note), "the sender: signal %d (%s) in %s", sig,
                 strsignal(sig), where);
    } else if (!sig && !sender->returned) {
        snprintf(state->note, sizeof(state->note),
                 "the plugin ended the sending process with status %d in %s", WEXITSTATUS(status),
                 where);
    }
}

/* Make the sending process; the receiver writes its handle to *pipe_fd. */
static pid_t start_sender(struct check_case_state *sender, int *pipe_fd)
{
    int fds[2];
    if (pipe(fds)) return -1;
    snprintf(sender->doing, sizeof(sender->doing), "the sending process");
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[1]);
        const int no = live_as_sender(sender, fds[0]);
        sender->returned = true;
        _exit(no);
    }
    /* the reading end stays open here, too: a sender that ends early is no SIGPIPE */
    *pipe_fd = fds[1];
    return pid;
}

static int check_processes(struct check_case_state *state, const struct check_options *options)
{
    struct net_drive drive;
    struct check_case_state *sender = check_state_map();
    int fd = -1;
    (void)options;
    snprintf(state->doing, sizeof(state->doing), "two processes");
    pid_t pid = sender ? start_sender(sender, &fd) : -1;
    if (pid < 0) {
        snprintf(state->note, sizeof(state->note), "no second process: %s", strerror(errno));
        return 1;
    }
    bool good = net_drive_open(&drive, COMM_ID, state);
    drive.partner = pid;
    good = good && live_as_receiver(&drive, fd);
    close(fd);
    if (!good && drive.partner) kill(pid, SIGKILL); /* its own end, if it came first, stands */
    if (drive.partner) waitpid(pid, &drive.partner_status, 0);
    take_over(state, sender, drive.partner_status);
    good = good && drive.partner_status == 0 && sender->returned;
    if (good) net_drive_close(&drive);
    return verdict(state, good);
}

static const struct check_case cases[] = {
    {"devices", check_devices},
    {"connections", check_connections},
    {"no sender", check_no_sender},
    {"sizes", check_sizes},
    {"in flight", check_in_flight},
    {"early sends", check_early},
    {"larger receives", check_room},
    {"tags", check_tags},
    {"grouped receives", check_groups},
    {"two connections", check_two_connections},
    {"two communicators", check_two_communicators},
    {"registrations", check_memory},
    {"abort", check_abort},
    {"again and again", check_again},
    {"unload and load", check_reload},
    {"two processes", check_processes},
};

static void describe(const struct check_case_state *state, bool in_words, json_t *report)
{
    json_object_set_new(report, "devices", json_integer((json_int_t)state->mask));
    if (in_words && state->version) {
        printf("plugin     \"%s\", version %d, %u device%s\n", state->name, state->version,
               state->mask, state->mask == 1 ? "" : "s");
    }
}

const struct check_kind check_net = {
    .name = "net",
    .variable = "NCCL_NET_PLUGIN",
    .prefix = "libnccl-net",
    .table = "ncclNetPlugin",
    .oldest = 2,
    .newest = 12,
    .cases = cases,
    .ncases = sizeof(cases) / sizeof(cases[0]),
    .say_where = net_drive_where,
    .describe = describe,
};
