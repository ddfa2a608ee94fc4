/* Random differential test: groups of collectives and messages on several communicators and
 * streams, with all kinds of memory, in and out of place, captured or not, against a serial
 * reference. usage: random MODE RANKS TURNS [SEED]     a failing turn prints the seed to run it
 * alone */
#include "../harness/values.h"
#include "../harness/world.h"
#include "script.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STREAMS = 3, KINDS = 6, GUARD = 64, STUCK_SEC = 100 };

static const size_t pool_bytes = (size_t)8 << 20;

struct spot { /* buffers of one call or message */
    char *in, *out;
    char *guarded; /* start of the memory that holds the output */
    size_t guarded_bytes, out_at, out_bytes;
};

struct player { /* one rank */
    struct world_rank *world;
    ncclComm_t comms[SCRIPT_COMMS];
    cudaStream_t streams[STREAMS];
    cudaEvent_t forked, joined[STREAMS];
    char *pools[KINDS];
    size_t used[KINDS];
    struct spot spots[SCRIPT_CALLS][SCRIPT_MESSAGES_MOST];
    char *scalars; /* device memory, 8 bytes a call */
    ncclRedOp_t ops[SCRIPT_CALLS];
};

struct play { /* what one thread does */
    struct world_team *team;
    struct player players[SCRIPT_RANKS];
    struct script_comm comms[SCRIPT_COMMS];
    struct script script;
    char what[1024]; /* the call looked at last */
    bool reported;   /* enough was said */
};

static struct play plays[SCRIPT_RANKS]; /* by the team's first rank */
static const struct world_mode *mode;
static uint64_t first_seed;
static int nturns, nworld;
static _Atomic uint64_t current_seed;

static void stuck(int number)
{
    char text[160];
    (void)number;
    int n = snprintf(text, sizeof(text), "stuck for %d s: random %s %d 1 %llu\n", STUCK_SEC,
                     mode->name, nworld, (unsigned long long)atomic_load(&current_seed));
    ssize_t written = write(STDERR_FILENO, text, (size_t)n);
    (void)written;
    abort();
}

/* ---- memory ---- */

static char *pool_make(const struct world_rank *own, int kind)
{
    void *ptr = NULL;
    int device = kind == 1 ? (own->device + 1) % nworld : own->device;
    world_check_cuda(cudaSetDevice(device), "cudaSetDevice");
    switch (kind) {
    case 0:
    case 1: world_check_cuda(cudaMalloc(&ptr, pool_bytes), "cudaMalloc"); break;
    case 2: ptr = malloc(pool_bytes); break;
    case 3:
        ptr = mmap(NULL, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        break;
    case 4: world_check_cuda(cudaMallocHost(&ptr, pool_bytes), "cudaMallocHost"); break;
    default:
        world_check_cuda(cudaMallocManaged(&ptr, pool_bytes, cudaMemAttachGlobal), "managed");
        break;
    }
    world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
    if (!ptr || ptr == MAP_FAILED) exit(3);
    return ptr;
}

static void pool_free(char *pool, int kind)
{
    if (kind == 2) free(pool);
    if (kind == 3) munmap(pool, pool_bytes);
    if (kind == 4) world_check_cuda(cudaFreeHost(pool), "cudaFreeHost");
    if (kind < 2 || kind == 5) world_check_cuda(cudaFree(pool), "cudaFree");
}

/* Mostly the rank's own device; any element alignment. */
static char *take(struct player *p, uint64_t choice, size_t bytes, size_t elem)
{
    int kind = choice % 3 ? 0 : (int)(choice / 3 % KINDS);
    size_t shift = choice % 2 ? choice / 64 % 17 * elem : 0;
    char *at = p->pools[kind] + p->used[kind] + shift;
    p->used[kind] = (p->used[kind] + shift + bytes + 64) / 64 * 64;
    if (p->used[kind] <= pool_bytes) return at;
    fprintf(stderr, "the test's pools are too small\n");
    exit(3);
}

static void set_buffers(struct player *p, struct spot *spot, uint64_t choice, size_t elem,
                        const size_t sizes[4])
{
    bool shared = sizes[2] != SIZE_MAX; /* in, out; in place: their places in one buffer */
    size_t out_room = shared && sizes[0] + sizes[2] > sizes[1] + sizes[3] ? sizes[0] + sizes[2]
                      : shared                                            ? sizes[1] + sizes[3]
                                                                          : sizes[1];
    spot->guarded_bytes = out_room + 2 * GUARD;
    spot->guarded = take(p, script_mix(choice, 1), spot->guarded_bytes, elem);
    spot->out_at = GUARD + (shared ? sizes[3] : 0);
    spot->out_bytes = sizes[1];
    spot->out = spot->guarded + spot->out_at;
    spot->in =
        shared ? spot->guarded + GUARD + sizes[2] : take(p, script_mix(choice, 2), sizes[0], elem);
}

static void place_call(struct player *p, const struct script_call *call, int k, int rank, int n)
{
    size_t elem = value_bytes(call->type), block = call->count * elem;
    uint64_t choice = script_mix(call->seed, 40 + (uint64_t)p->world->rank);
    size_t in_block, out_block;
    bool shared = script_in_place(call, rank, &in_block, &out_block);
    const size_t sizes[4] = {script_in_blocks(call, rank, n) * block,
                             script_out_blocks(call, rank, n) * block,
                             shared ? in_block * block : SIZE_MAX, out_block * block};
    set_buffers(p, &p->spots[k][0], choice, elem, sizes);
}

static void place_messages(struct player *p, const struct script_call *call, int k, int rank)
{
    for (int m = 0; m < call->nmessages; m++) {
        const struct script_message *message = &call->messages[m];
        size_t elem = value_bytes(message->type), bytes = message->count * elem;
        uint64_t choice = script_mix(call->seed, 4000 + (uint64_t)(p->world->rank * 64 + m));
        const size_t sizes[4] = {message->src == rank ? bytes : 0, message->dst == rank ? bytes : 0,
                                 SIZE_MAX, 0};
        if (message->src == rank || message->dst == rank)
            set_buffers(p, &p->spots[k][m], choice, elem, sizes);
    }
}

static void place_all(struct play *play, struct player *p)
{
    memset(p->used, 0, sizeof(p->used));
    for (int k = 0; k < play->script.ncalls; k++) {
        const struct script_call *call = &play->script.calls[k];
        const struct script_comm *comm = &play->comms[call->comm];
        int rank = comm->member[p->world->rank];
        if (rank < 0) continue;
        if (call->func == SCRIPT_MESSAGES) place_messages(p, call, k, rank);
        if (call->func != SCRIPT_MESSAGES) place_call(p, call, k, rank, comm->n);
    }
}

/* ---- contents ---- */

static void fill_messages(struct player *p, const struct script_call *call, int k, int rank,
                          int launch)
{
    for (int m = 0; m < call->nmessages; m++) {
        const struct script_message *message = &call->messages[m];
        struct spot *spot = &p->spots[k][m];
        if (message->dst == rank) memset(spot->guarded, 0x5a, spot->guarded_bytes);
        for (size_t i = 0; message->src == rank && i < message->count; i++) {
            value_put(spot->in, i, message->type, script_message_input(call, m, launch, i));
        }
    }
}

static void fill_call(struct play *play, struct player *p, int k, int launch)
{
    const struct script_call *call = &play->script.calls[k];
    const struct script_comm *comm = &play->comms[call->comm];
    struct spot *spot = &p->spots[k][0];
    int rank = comm->member[p->world->rank];
    if (rank < 0) return;
    if (call->func == SCRIPT_MESSAGES) {
        fill_messages(p, call, k, rank, launch);
        return;
    }
    memset(spot->guarded, 0x5a, spot->guarded_bytes);
    for (size_t i = 0; i < script_in_blocks(call, rank, comm->n) * call->count; i++) {
        value_put(spot->in, i, call->type, script_input(call, launch, rank, i));
    }
    value_put(p->scalars + 8 * k, 0, call->type, script_scalar(call, rank));
}

static int complain(struct play *play, const struct script_call *call, int rank, const char *text)
{
    if (play->reported) return 1;
    script_describe(call, play->what, sizeof(play->what));
    printf("wrong: random %s %d 1 %llu: rank %d of %s%s: %s\n", mode->name, nworld,
           (unsigned long long)play->script.seed, rank, play->what,
           play->script.captured ? " (captured)" : "", text);
    return 1;
}

static bool guards_hold(const struct spot *spot)
{
    for (size_t i = 0; i < GUARD; i++) {
        if (spot->guarded[i] != 0x5a || spot->guarded[spot->guarded_bytes - 1 - i] != 0x5a)
            return false;
    }
    return true;
}

static int check_messages(struct play *play, const struct player *p, int k, int rank, int launch)
{
    const struct script_call *call = &play->script.calls[k];
    char text[128];
    for (int m = 0; m < call->nmessages; m++) {
        const struct script_message *message = &call->messages[m];
        const struct spot *spot = &p->spots[k][m];
        if (message->dst != rank) continue;
        if (!guards_hold(spot)) return complain(play, call, rank, "bytes around a message changed");
        for (size_t i = 0; i < message->count; i++) {
            double got = value_get(spot->out, i, message->type);
            double want = script_message_input(call, m, launch, i);
            if (got == want) continue;
            snprintf(text, sizeof(text), "message %d element %zu is %g, not %g", m, i, got, want);
            return complain(play, call, rank, text);
        }
    }
    return 0;
}

static int check_call(struct play *play, const struct player *p, int k, int launch)
{
    const struct script_call *call = &play->script.calls[k];
    const struct script_comm *comm = &play->comms[call->comm];
    const struct spot *spot = &p->spots[k][0];
    int rank = comm->member[p->world->rank];
    char text[128];
    if (rank < 0) return 0;
    if (call->func == SCRIPT_MESSAGES) return check_messages(play, p, k, rank, launch);
    if (!guards_hold(spot)) return complain(play, call, rank, "bytes around the result changed");
    for (size_t i = 0; i < script_out_blocks(call, rank, comm->n) * call->count; i++) {
        double got = value_get(spot->out, i, call->type);
        double want = script_expected(call, launch, rank, comm->n, i);
        if (fabs(got - want) <= script_slack(call)) continue;
        snprintf(text, sizeof(text), "element %zu is %g, not %g", i, got, want);
        return complain(play, call, rank, text);
    }
    return 0;
}

/* ---- calls ---- */

static cudaStream_t stream_of(const struct player *p, const struct script_call *call, int m)
{
    uint64_t choice = script_mix(call->seed, 7000 + (uint64_t)(p->world->rank * 64 + m));
    return p->streams[choice % 4 < STREAMS ? choice % 4 : 0];
}

/* Messages in an order of this rank's own; those of one pair keep theirs. */
static void send_messages(const struct player *p, const struct script_call *call, int k, int rank,
                          int n)
{
    int start = (int)(script_mix(call->seed, 8000 + (uint64_t)rank) % (uint64_t)(2 * n));
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int turn = 0; turn < 2 * n; turn++) {
        int which = (start + turn * (1 + 2 * (rank % 2) * (n - 1))) % (2 * n), peer = which / 2;
        for (int m = 0; m < call->nmessages; m++) {
            const struct script_message *message = &call->messages[m];
            const struct spot *spot = &p->spots[k][m];
            cudaStream_t stream = stream_of(p, call, m);
            bool sends = which % 2 == 0 && message->src == rank && message->dst == peer;
            bool gets = which % 2 == 1 && message->dst == rank && message->src == peer;
            if (sends)
                world_check(ncclSend(spot->in, message->count, message->type, peer,
                                     p->comms[call->comm], stream),
                            "ncclSend");
            if (gets)
                world_check(ncclRecv(spot->out, message->count, message->type, peer,
                                     p->comms[call->comm], stream),
                            "ncclRecv");
        }
    }
    world_check(ncclGroupEnd(), "ncclGroupEnd of messages");
}

static ncclResult_t collective(const struct player *p, const struct script_call *call, int k,
                               ncclRedOp_t op)
{
    const struct spot *spot = &p->spots[k][0];
    char *in = spot->in, *out = spot->out;
    ncclComm_t comm = p->comms[call->comm];
    cudaStream_t s = stream_of(p, call, 0);
    size_t count = call->count;
    switch (call->func) {
    case SCRIPT_ALL_REDUCE: return ncclAllReduce(in, out, count, call->type, op, comm, s);
    case SCRIPT_REDUCE: return ncclReduce(in, out, count, call->type, op, call->root, comm, s);
    case SCRIPT_REDUCE_SCATTER: return ncclReduceScatter(in, out, count, call->type, op, comm, s);
    case SCRIPT_BROADCAST: return ncclBroadcast(in, out, count, call->type, call->root, comm, s);
    case SCRIPT_BCAST: return ncclBcast(out, count, call->type, call->root, comm, s);
    case SCRIPT_ALL_GATHER: return ncclAllGather(in, out, count, call->type, comm, s);
    case SCRIPT_ALL_TO_ALL: return ncclAlltoAll(in, out, count, call->type, comm, s);
    case SCRIPT_GATHER: return ncclGather(in, out, count, call->type, call->root, comm, s);
    default: return ncclScatter(in, out, count, call->type, call->root, comm, s);
    }
}

static void call_collective(struct player *p, const struct script_call *call, int k, int rank)
{
    ncclRedOp_t op = (ncclRedOp_t)call->op;
    ncclComm_t comm = p->comms[call->comm];
    bool own = script_reduces(call->func) && call->op >= SCRIPT_PRE_MUL_HOST;
    if (own) {
        char scalar[8];
        bool host = call->op == SCRIPT_PRE_MUL_HOST;
        value_put(scalar, 0, call->type, script_scalar(call, rank));
        world_check(ncclRedOpCreatePreMulSum(&op, host ? scalar : p->scalars + 8 * k, call->type,
                                             host ? ncclScalarHostImmediate : ncclScalarDevice,
                                             comm),
                    "ncclRedOpCreatePreMulSum");
    }
    world_check(collective(p, call, k, op), "a collective");
    if (own) world_check(ncclRedOpDestroy(op, comm), "ncclRedOpDestroy");
}

static void call_one(struct play *play, int k)
{
    const struct script_call *call = &play->script.calls[k];
    const struct script_comm *comm = &play->comms[call->comm];
    bool grouped = !play->script.one_group && (play->team->count > 1 || play->script.nested);
    if (grouped || play->script.nested) world_check(ncclGroupStart(), "ncclGroupStart");
    for (int t = 0; t < play->team->count; t++) {
        struct player *p = &play->players[t];
        int rank = comm->member[p->world->rank];
        if (rank < 0) continue;
        world_check_cuda(cudaSetDevice(p->world->device), "cudaSetDevice");
        if (call->func == SCRIPT_MESSAGES) {
            send_messages(p, call, k, rank, comm->n);
        } else {
            call_collective(p, call, k, rank);
        }
    }
    if (grouped || play->script.nested) world_check(ncclGroupEnd(), "ncclGroupEnd of a call");
}

static void call_all(struct play *play)
{
    if (play->script.one_group) world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < play->script.ncalls; k++) {
        call_one(play, k);
    }
    if (play->script.one_group) world_check(ncclGroupEnd(), "ncclGroupEnd of all");
}

/* ---- turns ---- */

static void wait_for(struct play *play)
{
    for (int t = 0; t < play->team->count; t++) {
        struct player *p = &play->players[t];
        uint64_t choice = script_mix(play->script.seed, 60 + (uint64_t)p->world->rank);
        for (int s = 0; s < STREAMS; s++) {
            cudaStream_t stream = p->streams[(s + (int)(choice % STREAMS)) % STREAMS];
            while (choice % 5 == 0 && cudaStreamQuery(stream) == cudaErrorNotReady) {
            }
            world_check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        }
        for (int c = 0; c < SCRIPT_COMMS; c++) {
            ncclResult_t state = ncclSuccess;
            if (!p->comms[c]) continue;
            world_check(ncclCommGetAsyncError(p->comms[c], &state), "ncclCommGetAsyncError");
            world_check(state, "the communicator's state");
        }
    }
}

static int fill_run_check(struct play *play, cudaGraphExec_t *execs)
{
    int wrong = 0;
    const struct script *script = &play->script;
    for (int launch = 0; launch < script->launches; launch++) {
        for (int t = 0; t < play->team->count; t++) {
            for (int k = 0; k < script->ncalls; k++) {
                fill_call(play, &play->players[t], k, launch);
            }
        }
        if (!execs) call_all(play);
        for (int t = 0; execs && t < play->team->count; t++) {
            world_check_cuda(cudaGraphLaunch(execs[t], play->players[t].streams[launch % STREAMS]),
                             "cudaGraphLaunch");
        }
        wait_for(play);
        for (int t = 0; t < play->team->count; t++) {
            for (int k = 0; k < script->ncalls; k++) {
                wrong += check_call(play, &play->players[t], k, launch);
            }
        }
    }
    return wrong;
}

static void fork_streams(struct player *p)
{
    world_check_cuda(cudaSetDevice(p->world->device), "cudaSetDevice");
    world_check_cuda(cudaStreamBeginCapture(p->streams[0], cudaStreamCaptureModeThreadLocal),
                     "cudaStreamBeginCapture");
    world_check_cuda(cudaEventRecord(p->forked, p->streams[0]), "cudaEventRecord");
    for (int s = 1; s < STREAMS; s++) {
        world_check_cuda(cudaStreamWaitEvent(p->streams[s], p->forked, 0), "cudaStreamWaitEvent");
    }
}

static cudaGraphExec_t join_streams(struct player *p)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    for (int s = 1; s < STREAMS; s++) {
        world_check_cuda(cudaEventRecord(p->joined[s], p->streams[s]), "cudaEventRecord");
        world_check_cuda(cudaStreamWaitEvent(p->streams[0], p->joined[s], 0), "join");
    }
    world_check_cuda(cudaStreamEndCapture(p->streams[0], &graph), "cudaStreamEndCapture");
    world_check_cuda(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    world_check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return exec;
}

static int turn(struct play *play, uint64_t seed)
{
    atomic_store(&current_seed, seed);
    alarm(STUCK_SEC);
    script_make(seed, play->comms, &play->script);
    for (int t = 0; t < play->team->count; t++) {
        place_all(play, &play->players[t]);
    }
    if (!play->script.captured) return fill_run_check(play, NULL);
    cudaGraphExec_t execs[SCRIPT_RANKS];
    for (int t = 0; t < play->team->count; t++) {
        fork_streams(&play->players[t]);
    }
    call_all(play);
    for (int t = 0; t < play->team->count; t++) {
        execs[t] = join_streams(&play->players[t]);
    }
    int wrong = fill_run_check(play, execs);
    for (int t = 0; t < play->team->count; t++) {
        world_check_cuda(cudaGraphExecDestroy(execs[t]), "cudaGraphExecDestroy");
    }
    return wrong;
}

/* ---- players ---- */

static void split(struct play *play, int which)
{
    const struct script_comm *comm = &play->comms[which], *even = &play->comms[1];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int t = 0; t < play->team->count; t++) {
        struct player *p = &play->players[t];
        int rank = p->world->rank;
        bool halves = which < 3;
        int color = halves ? (even->member[rank] < 0) : 0;
        int key = halves ? -rank : comm->member[rank];
        int set_buffers = halves && color ? 2 : halves ? 1 : 3;
        world_check(ncclCommSplit(p->comms[0], color, key, &p->comms[set_buffers], &config),
                    "ncclCommSplit");
    }
    world_check(ncclGroupEnd(), "ncclGroupEnd of split");
}

static void player_init(struct player *p, struct world_rank *world)
{
    void *scalars;
    *p = (struct player){.world = world, .comms = {world->comm}};
    world_check_cuda(cudaSetDevice(world->device), "cudaSetDevice");
    for (int s = 0; s < STREAMS; s++) {
        world_check_cuda(cudaStreamCreateWithFlags(&p->streams[s], cudaStreamNonBlocking),
                         "stream");
        world_check_cuda(cudaEventCreateWithFlags(&p->joined[s], cudaEventDisableTiming), "event");
    }
    world_check_cuda(cudaEventCreateWithFlags(&p->forked, cudaEventDisableTiming), "event");
    world_check_cuda(cudaMalloc(&scalars, (size_t)8 * SCRIPT_CALLS), "cudaMalloc");
    p->scalars = scalars;
    for (int kind = 0; kind < KINDS; kind++) {
        p->pools[kind] = pool_make(world, kind);
    }
}

static void player_fini(struct player *p)
{
    world_check_cuda(cudaSetDevice(p->world->device), "cudaSetDevice");
    for (int c = 1; c < SCRIPT_COMMS; c++) {
        if (p->comms[c]) world_check(ncclCommDestroy(p->comms[c]), "ncclCommDestroy");
    }
    for (int s = 0; s < STREAMS; s++) {
        world_check_cuda(cudaStreamDestroy(p->streams[s]), "cudaStreamDestroy");
        world_check_cuda(cudaEventDestroy(p->joined[s]), "cudaEventDestroy");
    }
    world_check_cuda(cudaEventDestroy(p->forked), "cudaEventDestroy");
    world_check_cuda(cudaFree(p->scalars), "cudaFree");
    for (int kind = 0; kind < KINDS; kind++) {
        pool_free(p->pools[kind], kind);
    }
}

static int body(struct world_team *team)
{
    struct play *play = &plays[team->ranks[0].rank];
    int wrong = 0;
    play->team = team;
    script_comms(team->nranks, play->comms);
    for (int t = 0; t < team->count; t++) {
        player_init(&play->players[t], &team->ranks[t]);
    }
    split(play, 1);
    split(play, 3);
    for (int k = 0; k < nturns; k++) { /* to the end even when wrong: the others go on */
        play->reported = wrong > 5;
        wrong += turn(play, first_seed + (uint64_t)k);
    }
    for (int t = 0; t < team->count; t++) {
        player_fini(&play->players[t]);
    }
    if (team->ranks[0].rank == 0) printf("%d turns, %d wrong\n", nturns, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? world_mode(argv[1]) : NULL;
    nworld = world_ranks(argc > 2 ? argv[2] : NULL, 4, SCRIPT_RANKS);
    nturns = argc > 3 ? atoi(argv[3]) : 100;
    first_seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
    if (!mode || nworld < 2 || nturns < 1) {
        fprintf(stderr, "usage: random one-thread|threads|processes|mixed 2..8 TURNS [SEED]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, stuck);
    return world_run(mode, nworld, body, NULL) ? 1 : 0;
}
