/* Collective networks: a group of two in this process, as two hosts' ranks would be one. Every type
 * and operator that the plugin says it takes is summed and compared, eight at a time, by iallreduce
 * and, where there is one, ireducescatter; blocks are gathered by iallgather. What was given, and
 * what lies around the results, must stay as it was. */
#include "base/error.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/thread_time.h"
#include "net_drive.h"
#include "plugin/net/collnet.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 2, AHEAD = 8, MOST_MSEC = 100, GUARD = 64, FILL = 0xa5, COMM_ID = 0x4321 };
enum {
    CALL_NONE,
    CALL_OPEN,
    CALL_LISTEN,
    CALL_CONNECT,
    CALL_ASK,
    CALL_REG,
    CALL_SUM,
    CALL_TEST,
    CALL_KINDS
};
static const char *const call_names[] = {
    [CALL_NONE] = "closing",      [CALL_OPEN] = "init, devices or getProperties",
    [CALL_LISTEN] = "listen",     [CALL_CONNECT] = "connect",
    [CALL_ASK] = "reduceSupport", [CALL_REG] = "regMr or deregMr",
    [CALL_SUM] = "iallreduce",    [CALL_TEST] = "test",
};
static const char *const function_names[] = {[TT_COLLNET_SUM] = "iallreduce",
                                             [TT_COLLNET_GATHER] = "iallgather",
                                             [TT_COLLNET_SCATTER] = "ireducescatter"};

struct group {
    struct check_case_state *state;
    struct net_drive drives[MEMBERS];
    struct tt_collnet *nets[MEMBERS];
    void *comms[MEMBERS];
    void *listens[MEMBERS];
    _Alignas(16) char handles[MEMBERS * NCCL_NET_HANDLE_MAXSIZE];
    struct tt_threads_ready ready; /* until the last call that took long */
};

static void where(const struct check_case_state *state, char *text, size_t text_bytes)
{
    int number = state->call;
    const char *call =
        number < CALL_KINDS ? call_names[number] : function_names[number - CALL_KINDS];
    snprintf(text, text_bytes, "%s (%s)", call, state->doing);
}

static struct tt_collnet_ops *begin(struct group *group, int call)
{
    group->state->call = call;
    group->state->calls++;
    return &group->nets[0]->plugin->ops;
}

static bool good(struct group *group, const char *function, ncclResult_t rc)
{
    if (rc) check_result(group->state, function, (int)rc);
    return rc == ncclSuccess;
}

static void look_at_time(struct group *group, const char *function,
                         const struct tt_thread_time *since)
{
    const struct tt_thread_spent spent = tt_thread_time_spent(since);
    if (tt_thread_spent_more(&spent, MOST_MSEC * 1000000ull, &group->ready))
        check_breach(group->state, "%s: it took more than %d ms", function, MOST_MSEC);
}

/* ---- life ---- */

static bool group_open(struct group *group, struct check_case_state *state, const char *doing)
{
    *group = (struct group){.state = state};
    tt_threads_ready_added(&group->ready, 0);
    snprintf(state->doing, sizeof(state->doing), "%s", doing);
    for (int m = 0; m < MEMBERS; m++) {
        if (!net_drive_open(&group->drives[m], COMM_ID, state)) return false;
        state->call = CALL_OPEN;
        state->version = 0;
        ncclResult_t rc = tt_collnet_open(group->drives[m].net, COMM_ID, &group->nets[m]);
        if (rc || !group->nets[m]) {
            snprintf(state->note, sizeof(state->note),
                     "not taken: init, devices or getProperties failed, a function is missing or "
                     "it takes no memory of the host");
            return false;
        }
    }
    state->version = group->nets[0]->plugin->ops.version;
    state->mask = (uint32_t)group->nets[0]->ndevs;
    snprintf(state->name, sizeof(state->name), "%s", group->nets[0]->name);
    return true;
}

static int group_close(struct group *group, bool well)
{
    group->state->call = CALL_NONE;
    for (int m = 0; m < MEMBERS && well; m++) {
        struct tt_collnet_plugin *plugin = group->nets[m]->plugin;
        if (group->comms[m])
            well = good(group, "closeColl", plugin->ops.close_coll(plugin, group->comms[m]));
        tt_collnet_close(group->nets[m]);
        net_drive_close(&group->drives[m]);
    }
    return !well || group->state->nbreaches > 0;
}

static bool group_listen(struct group *group, int dev)
{
    for (int m = 0; m < MEMBERS; m++) {
        struct tt_collnet *net = group->nets[m];
        struct tt_thread_time since;
        char *handle = group->handles + (size_t)m * NCCL_NET_HANDLE_MAXSIZE;
        tt_thread_time_begin(&since);
        ncclResult_t rc = begin(group, CALL_LISTEN)
                              ->listen(net->plugin, net->ctx, dev, handle, &group->listens[m]);
        look_at_time(group, "listen", &since);
        if (!good(group, "listen", rc)) return false;
        if (!group->listens[m]) check_breach(group->state, "listen: listenComm: it is NULL");
        if (!group->listens[m]) return false;
    }
    return true;
}

/* Both wait for each other, so each has a thread. */
static bool group_connect(struct group *group)
{
    struct tt_collnet_call *calls[MEMBERS] = {NULL};
    ncclResult_t rc = group_listen(group, 0) ? ncclSuccess : ncclInternalError;
    if (rc) return false;
    begin(group, CALL_CONNECT);
    for (int m = 0; m < MEMBERS && !rc; m++) {
        rc = tt_collnet_connect(group->nets[m], group->handles, MEMBERS, m, group->listens[m],
                                &calls[m]);
    }
    for (int m = 0; m < MEMBERS && !rc; m++) {
        while ((rc = tt_collnet_connected(calls[m], &group->comms[m])) == ncclInProgress)
            tt_sleep_usec(1000);
    }
    for (int m = 0; m < MEMBERS; m++)
        tt_collnet_call_end(calls[m]);
    return good(group, "connect", rc);
}

/* ---- one round of sums ---- */

struct round {
    enum tt_collnet_kind kind;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t count, bytes; /* of a block */
    size_t vector;       /* bytes of the longer one of what is given and what comes */
    size_t region;       /* of AHEAD of them and what lies around */
    char *given[MEMBERS], *sums[MEMBERS];
    void *given_mhandle[MEMBERS], *sums_mhandle[MEMBERS];
    void *requests[MEMBERS][AHEAD];
    int asked[MEMBERS], done[MEMBERS];
};

/* Small numbers, which every type holds, and so does what becomes of two of them. */
static int number_of(size_t k, int member)
{
    return (int)(k % 5) + member + 1;
}

static int reduced(size_t k, ncclRedOp_t op)
{
    int a = number_of(k, 0), b = number_of(k, 1);
    if (op == ncclSum) return a + b;
    if (op == ncclProd) return a * b;
    return (op == ncclMax) == (a > b) ? a : b;
}

/* False: the type has no numbers here; its sums are only made. */
static bool store(void *at, ncclDataType_t type, size_t k, int number)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8: ((uint8_t *)at)[k] = (uint8_t)number; return true;
    case ncclInt32:
    case ncclUint32: ((uint32_t *)at)[k] = (uint32_t)number; return true;
    case ncclInt64:
    case ncclUint64: ((uint64_t *)at)[k] = (uint64_t)number; return true;
    case ncclFloat32: ((float *)at)[k] = (float)number; return true;
    case ncclFloat64: ((double *)at)[k] = (double)number; return true;
    default: return false;
    }
}

static char *sum_at(const struct round *round, char *region, int number)
{
    return region + GUARD + (size_t)number * (round->vector + GUARD);
}

static void fill_block(const struct round *round, char *at, size_t from, int member)
{
    memset(at, 0, round->bytes);
    for (size_t k = 0; k < round->count; k++) {
        int number = member < 0 ? reduced(k + from, round->op) : number_of(k + from, member);
        if (!store(at, round->type, k, number)) break;
    }
}

/* Where a block of a vector that is reduced to blocks has its numbers from. */
static size_t block_from(const struct round *round, int number, int block)
{
    return (size_t)number + (size_t)block * round->count;
}

/* What a member gives: its block, or a block for each member. */
static void fill_given(const struct round *round, char *region, int member)
{
    int blocks = round->kind == TT_COLLNET_SCATTER ? MEMBERS : 1;
    memset(region, FILL, round->region);
    for (int n = 0; n < AHEAD; n++) {
        for (int b = 0; b < blocks; b++) {
            char *at = sum_at(round, region, n) + (size_t)b * round->bytes;
            fill_block(round, at, block_from(round, n, b), member);
        }
    }
}

/* What a member gets: what becomes of a block of all members, or the blocks of all. */
static void fill_wanted(const struct round *round, char *region, int member)
{
    memset(region, FILL, round->region);
    for (int n = 0; n < AHEAD; n++) {
        char *at = sum_at(round, region, n);
        int own = round->kind == TT_COLLNET_SCATTER ? member : 0;
        if (round->kind != TT_COLLNET_GATHER) fill_block(round, at, block_from(round, n, own), -1);
        for (int b = 0; b < MEMBERS && round->kind == TT_COLLNET_GATHER; b++)
            fill_block(round, at + (size_t)b * round->bytes, (size_t)n, b);
    }
}

static bool round_begin(struct group *group, struct round *round)
{
    round->bytes = round->count * tt_type_bytes(round->type);
    round->vector = round->kind == TT_COLLNET_SUM ? round->bytes : MEMBERS * round->bytes;
    round->region = GUARD + AHEAD * (round->vector + GUARD);
    for (int m = 0; m < MEMBERS; m++) {
        struct tt_collnet_plugin *plugin = group->nets[m]->plugin;
        round->given[m] = malloc(round->region);
        round->sums[m] = malloc(round->region);
        if (!round->given[m] || !round->sums[m]) return false;
        fill_given(round, round->given[m], m);
        memset(round->sums[m], FILL, round->region);
        ncclResult_t rc = begin(group, CALL_REG)
                              ->reg_mr(plugin, group->comms[m], round->given[m], round->region,
                                       &round->given_mhandle[m]);
        if (!rc) {
            rc = plugin->ops.reg_mr(plugin, group->comms[m], round->sums[m], round->region,
                                    &round->sums_mhandle[m]);
        }
        if (!good(group, "regMr", rc)) return false;
    }
    return true;
}

static bool ask(struct group *group, struct round *round, int m)
{
    int n = round->asked[m];
    const struct tt_collnet_sum sum = {
        .send = sum_at(round, round->given[m], n),
        .recv = sum_at(round, round->sums[m], n),
        .sent_blocks = round->kind == TT_COLLNET_SCATTER ? MEMBERS : 1,
        .received_blocks = round->kind == TT_COLLNET_GATHER ? MEMBERS : 1,
        .block_bytes = round->bytes,
        .count = round->count,
        .type = round->type,
        .op = round->op,
        .send_mhandle = round->given_mhandle[m],
        .recv_mhandle = round->sums_mhandle[m]};
    struct tt_thread_time since;
    tt_thread_time_begin(&since);
    ncclResult_t rc =
        begin(group, round->kind == TT_COLLNET_SUM ? CALL_SUM : CALL_KINDS + (int)round->kind)
            ->reduce(group->nets[m]->plugin, group->comms[m], &sum, &round->requests[m][n]);
    look_at_time(group, function_names[round->kind], &since);
    round->asked[m] += round->requests[m][n] != NULL;
    return good(group, function_names[round->kind], rc);
}

static bool test(struct group *group, struct round *round, int m)
{
    int done = 0;
    struct tt_thread_time since;
    tt_thread_time_begin(&since);
    ncclResult_t rc = begin(group, CALL_TEST)
                          ->test(group->nets[m]->plugin, round->requests[m][round->done[m]], &done);
    look_at_time(group, "test", &since);
    round->done[m] += done != 0;
    return good(group, "test", rc);
}

static bool run(struct group *group, struct round *round)
{
    bool well = true;
    while (well && (round->done[0] < AHEAD || round->done[1] < AHEAD)) {
        for (int m = 0; m < MEMBERS && well; m++) {
            if (round->asked[m] < AHEAD) well = ask(group, round, m);
            if (well && round->done[m] < round->asked[m]) well = test(group, round, m);
        }
        if (group->state->nbreaches > 0) well = false;
        sched_yield();
    }
    return well;
}

static void compare(struct group *group, const struct round *round)
{
    char *want = malloc(round->region);
    const char *function = function_names[round->kind];
    bool numbers = store(&(uint64_t){0}, round->type, 0, 0);
    size_t received = round->kind == TT_COLLNET_GATHER ? MEMBERS * round->bytes : round->bytes;
    for (int m = 0; want && m < MEMBERS; m++) {
        fill_given(round, want, m);
        if (memcmp(want, round->given[m], round->region) != 0)
            check_breach(group->state, "%s: sendData: it was written", function);
        fill_wanted(round, want, m);
        bool around = !memcmp(want, round->sums[m], GUARD), same = true;
        for (int n = 0; n < AHEAD; n++) {
            const char *wanted = sum_at(round, want, n), *got = sum_at(round, round->sums[m], n);
            around = around &&
                     !memcmp(wanted + received, got + received, round->vector + GUARD - received);
            same = same && (!numbers || !memcmp(wanted, got, received));
        }
        if (!around) check_breach(group->state, "%s: recvData: written around it", function);
        if (!same) {
            check_breach(group->state, "%s: recvData: wrong with type %d, operator %d", function,
                         (int)round->type, (int)round->op);
        }
    }
    free(want);
}

static bool round_end(struct group *group, struct round *round, bool well)
{
    if (well) compare(group, round);
    for (int m = 0; m < MEMBERS && well; m++) {
        struct tt_collnet_plugin *plugin = group->nets[m]->plugin;
        ncclResult_t rc =
            begin(group, CALL_REG)->dereg_mr(plugin, group->comms[m], round->given_mhandle[m]);
        if (!rc) rc = plugin->ops.dereg_mr(plugin, group->comms[m], round->sums_mhandle[m]);
        well = good(group, "deregMr", rc);
    }
    for (int m = 0; m < MEMBERS; m++) {
        free(round->given[m]);
        free(round->sums[m]);
    }
    return well;
}

/* ---- cases ---- */

static int check_devices(struct check_case_state *state, const struct check_options *options)
{
    struct group group;
    (void)options;
    if (!group_open(&group, state, "devices")) return 1;
    struct tt_collnet_plugin *plugin = group.nets[0]->plugin;
    bool well = true;
    for (int dev = 0; dev < group.nets[0]->ndevs && well; dev++) {
        struct tt_collnet_device device = {0};
        well =
            good(&group, "getProperties", begin(&group, CALL_OPEN)->device(plugin, dev, &device));
        if (well && !device.name)
            check_breach(state, "getProperties: name: device %d has none", dev);
        if (well && (!device.most_bytes || device.most_bytes > (size_t)1 << 40)) {
            check_breach(state, "getProperties: maxCollBytes: %zu of device %d", device.most_bytes,
                         dev);
        }
        well = well && group_listen(&group, dev);
        for (int m = 0; m < MEMBERS && well; m++)
            well = good(&group, "closeListen", plugin->ops.close_listen(plugin, group.listens[m]));
    }
    return group_close(&group, well);
}

static bool supports(struct group *group, int type, int op, bool *well)
{
    int supported = 0;
    struct tt_collnet_plugin *plugin = group->nets[0]->plugin;
    ncclResult_t rc =
        begin(group, CALL_ASK)
            ->reduce_support(plugin, (ncclDataType_t)type, (ncclRedOp_t)op, &supported);
    *well = good(group, "reduceSupport", rc);
    return *well && supported;
}

/* Vectors of several lengths; state->doing says which. */
static bool try_lengths(struct group *group, const struct round *like)
{
    static const size_t counts[] = {1, 1000, 30000};
    bool well = true;
    for (size_t c = 0; c < TT_LEN(counts) && well; c++) {
        struct round round = *like;
        round.count = counts[c];
        snprintf(group->state->doing, sizeof(group->state->doing),
                 "%zu elements of type %d, operator %d", counts[c], (int)like->type, (int)like->op);
        well = round_begin(group, &round);
        well = round_end(group, &round, well && run(group, &round));
        well = well && group->state->nbreaches == 0;
    }
    return well;
}

/* Every type and operator that the plugin takes. */
static bool try_sums(struct group *group, enum tt_collnet_kind kind, int *nsupported)
{
    bool well = true;
    for (int k = 0; well && k < ncclNumTypes * (ncclMin + 1); k++) {
        int type = k / (ncclMin + 1), op = k % (ncclMin + 1);
        if (!supports(group, type, op, &well)) continue;
        ++*nsupported;
        const struct round like = {
            .kind = kind, .type = (ncclDataType_t)type, .op = (ncclRedOp_t)op};
        well = try_lengths(group, &like);
    }
    return well;
}

static int check_sums(struct check_case_state *state, const struct check_options *options)
{
    struct group group;
    int nsupported = 0;
    (void)options;
    if (!group_open(&group, state, "sums of two")) return 1;
    bool well = group_connect(&group) && try_sums(&group, TT_COLLNET_SUM, &nsupported);
    if (well && !nsupported) check_breach(state, "reduceSupport: supported: nothing is");
    return group_close(&group, well);
}

static bool offers(struct group *group, enum tt_collnet_kind kind)
{
    struct tt_collnet_plugin *plugin = group->nets[0]->plugin;
    return plugin->ops.offers(plugin, kind);
}

/* Of versions up to 7, and where there is none, nothing is asked for. */
static int check_gather(struct check_case_state *state, const struct check_options *options)
{
    struct group group;
    const struct round like = {.kind = TT_COLLNET_GATHER, .type = ncclInt8};
    (void)options;
    if (!group_open(&group, state, "blocks of two")) return 1;
    bool well = group_connect(&group);
    if (well && offers(&group, like.kind)) well = try_lengths(&group, &like);
    return group_close(&group, well);
}

static int check_scatter(struct check_case_state *state, const struct check_options *options)
{
    struct group group;
    int nsupported = 0;
    (void)options;
    if (!group_open(&group, state, "sums of blocks of two")) return 1;
    bool well = group_connect(&group);
    if (well && offers(&group, TT_COLLNET_SCATTER))
        well = try_sums(&group, TT_COLLNET_SCATTER, &nsupported);
    return group_close(&group, well);
}

static int check_lives(struct check_case_state *state, const struct check_options *options)
{
    struct group group;
    (void)options;
    for (int life = 0; life < 3; life++) {
        if (!group_open(&group, state, "three lives")) return 1;
        if (group_close(&group, group_connect(&group))) return 1;
    }
    return 0;
}

static const struct check_case cases[] = {{"devices", check_devices},
                                          {"sums", check_sums},
                                          {"gathered blocks", check_gather},
                                          {"scattered sums", check_scatter},
                                          {"three lives", check_lives}};

static void describe(const struct check_case_state *state, bool in_words, json_t *report)
{
    json_object_set_new(report, "devices", json_integer((json_int_t)state->mask));
    if (in_words && state->version) {
        printf("plugin     \"%s\", collective network of version %d, %u device%s\n", state->name,
               state->version, state->mask, state->mask == 1 ? "" : "s");
    }
}

const struct check_kind check_collnet = {
    .name = "collnet",
    .variable = "NCCL_NET_PLUGIN",
    .prefix = "libnccl-net",
    .table = "ncclCollNetPlugin",
    .oldest = 3,
    .newest = 12,
    .cases = cases,
    .ncases = sizeof(cases) / sizeof(cases[0]),
    .say_where = where,
    .describe = describe,
};
