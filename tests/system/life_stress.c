/* Random lives of communicators: init, split, shrink, grow, revoke, finalize, destroy and abort, on
 * blocking and non-blocking ones, between operations, open groups, captures and host functions that
 * hold streams back, while a watchdog polls the states and, in every second life, aborts a rank
 * wherever it is. Lives without an abort must succeed to the last value, the others must end.
 * usage: life_stress [SECONDS [SEED [LIVES]]]     a life that fails prints what repeats it */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, CHILDREN = 4, STEPS = 6, COUNT = 40000, STUCK_SEC = 100 };

struct life;

struct seat { /* one rank, one thread */
    struct life *life;
    int rank;             /* of a newcomer: the number of ranks before it */
    uint64_t common, own; /* states of random(): the same on all ranks; of this one */
    pthread_mutex_t lock; /* short calls and the watchdog's take turns */
    ncclComm_t comm;      /* NULL once somebody ends it */
    ncclComm_t children[CHILDREN];
    int nchildren, step;
    cudaStream_t stream;
    cudaGraph_t graph; /* kept beyond the communicator */
    cudaGraphExec_t exec;
    int *in, *out;
    bool started;
    _Atomic bool gate;
    const char *_Atomic doing;
};

struct life {
    uint64_t seed;
    int nranks;
    bool nonblocking, shares, chaos, grows;
    ncclUniqueId id, grow_id;
    _Atomic int grow_id_made; /* 1: there it is, 2: it never comes */
    _Atomic bool broken;      /* an abort was made: errors are right from now on */
    _Atomic int over;         /* seats that are done */
    _Atomic int arrived[2 * STEPS + 4];
    struct seat seats[RANKS + 1];
};

static struct life life;

static uint64_t random_next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static int pick(uint64_t *state, int n)
{
    return (int)(random_next(state) % (uint64_t)n);
}

static _Noreturn void wrong(const struct seat *seat, const char *what, int code)
{
    fprintf(stderr, "life_stress: rank %d: %s: code %d: %s\nrepeat: life_stress 0 %llu 1\n",
            seat->rank, what, code, ncclGetLastError(NULL), (unsigned long long)life.seed);
    _exit(1);
}

/* An error ends the life of this rank, and is right only when somebody was aborted. */
static bool good(struct seat *seat, ncclResult_t rc, const char *what)
{
    if (rc == ncclSuccess || rc == ncclInProgress) return true;
    if (!life.broken) wrong(seat, what, (int)rc);
    return false;
}

static void cuda(const struct seat *seat, cudaError_t err, const char *what)
{
    if (err) wrong(seat, what, (int)err);
}

/* ---- taking turns with the watchdog ---- */

/* The communicator for a short call; false, and not locked, when it was aborted. */
static bool enter(struct seat *seat, const char *doing)
{
    seat->doing = doing;
    pthread_mutex_lock(&seat->lock);
    if (seat->comm) return true;
    pthread_mutex_unlock(&seat->lock);
    return false;
}

static bool leave(struct seat *seat, ncclResult_t rc)
{
    pthread_mutex_unlock(&seat->lock);
    return good(seat, rc, seat->doing);
}

/* For a long call, in which the watchdog may strike; NULL: it did. */
static ncclComm_t borrow(struct seat *seat, const char *doing)
{
    if (!enter(seat, doing)) return NULL;
    ncclComm_t comm = seat->comm;
    pthread_mutex_unlock(&seat->lock);
    return comm;
}

static ncclComm_t take(struct seat *seat, const char *doing)
{
    seat->doing = doing;
    pthread_mutex_lock(&seat->lock);
    ncclComm_t comm = seat->comm;
    seat->comm = NULL;
    pthread_mutex_unlock(&seat->lock);
    return comm;
}

static void dawdle(struct seat *seat)
{
    for (int k = pick(&seat->own, 8) * pick(&seat->own, 8); k > 0; k--)
        sched_yield();
}

/* Until n ranks are here, as an abort is told to those that still work. */
static void barrier(int point, int n)
{
    life.arrived[point]++;
    while (life.arrived[point] < n && !life.broken)
        sched_yield();
}

/* Until a call on the seat's communicator is done. */
static bool wait_ready(struct seat *seat)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        if (!enter(seat, seat->doing)) return false;
        if (!leave(seat, ncclCommGetAsyncError(seat->comm, &state))) return false;
        sched_yield();
    }
    return good(seat, state, seat->doing);
}

static bool wait_child(struct seat *seat, ncclComm_t child)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        if (!good(seat, ncclCommGetAsyncError(child, &state), "state of a child")) return false;
        sched_yield();
    }
    return good(seat, state, "state of a child");
}

/* ---- operations ---- */

static ncclResult_t sum(struct seat *seat, ncclComm_t comm, size_t count)
{
    return ncclAllReduce(seat->in, seat->out, count, ncclInt, ncclSum, comm, seat->stream);
}

static size_t some_count(struct seat *seat)
{
    static const size_t counts[] = {1, 300, 5000, COUNT};
    return counts[pick(&seat->common, 4)];
}

static void synchronize(struct seat *seat)
{
    seat->doing = "synchronize";
    cuda(seat, cudaStreamSynchronize(seat->stream), "cudaStreamSynchronize");
}

/* Every rank's input is rank + 1. */
static bool right(struct seat *seat, size_t count, int expected)
{
    synchronize(seat);
    if (life.broken) return false;
    for (size_t i = 0; i < count; i++)
        if (seat->out[i] != expected && !life.broken) wrong(seat, "a sum", seat->out[i]);
    return true;
}

static int whole_sum(void)
{
    return life.nranks * (life.nranks + 1) / 2;
}

static bool operate(struct seat *seat)
{
    size_t count = some_count(seat);
    bool look = pick(&seat->common, 2) == 0;
    if (!enter(seat, "operation") || !leave(seat, sum(seat, seat->comm, count))) return false;
    return look ? right(seat, count, whole_sum()) : true;
}

/* Sums and a ring of messages; the watchdog may come between any two calls. */
static bool operate_in_group(struct seat *seat)
{
    size_t count = some_count(seat);
    int n = life.nranks, peer = (seat->rank + 1) % n, from = (seat->rank + n - 1) % n;
    bool made = true;
    if (ncclGroupStart()) wrong(seat, "GroupStart", 0);
    for (int k = 0; k < 2 && made; k++) {
        made = enter(seat, "in a group") && leave(seat, sum(seat, seat->comm, count));
        dawdle(seat);
    }
    if (made && enter(seat, "messages")) {
        ncclResult_t rc = ncclSend(seat->in, count, ncclInt, peer, seat->comm, seat->stream);
        if (!rc) rc = ncclRecv(seat->out + COUNT, count, ncclInt, from, seat->comm, seat->stream);
        made = leave(seat, rc);
    }
    dawdle(seat);
    pthread_mutex_lock(&seat->lock);
    made &= leave(seat, ncclGroupEnd());
    if (!made) return false;
    if (!wait_ready(seat) || !right(seat, count, whole_sum())) return false;
    if (seat->out[COUNT] != from + 1 && !life.broken) wrong(seat, "a message", seat->out[COUNT]);
    return true;
}

static void open_gate(void *arg)
{
    while (!*(_Atomic bool *)arg)
        sched_yield();
}

/* Operations queue up behind a host function; whatever comes next finds them there. */
static bool operate_behind_gate(struct seat *seat)
{
    bool made = true;
    seat->gate = false;
    cuda(seat, cudaLaunchHostFunc(seat->stream, open_gate, &seat->gate), "cudaLaunchHostFunc");
    for (int k = 0; k < 3 && made; k++)
        made = enter(seat, "behind a gate") && leave(seat, sum(seat, seat->comm, 5000));
    dawdle(seat);
    seat->gate = true;
    return made && (pick(&seat->common, 2) || right(seat, 5000, whole_sum()));
}

static void drop_graph(struct seat *seat)
{
    if (seat->exec) cuda(seat, cudaGraphExecDestroy(seat->exec), "cudaGraphExecDestroy");
    if (seat->graph) cuda(seat, cudaGraphDestroy(seat->graph), "cudaGraphDestroy");
    seat->exec = NULL;
    seat->graph = NULL;
}

static bool capture(struct seat *seat)
{
    int launches = pick(&seat->common, 3), keep = pick(&seat->common, 2);
    drop_graph(seat);
    cuda(seat, cudaStreamBeginCapture(seat->stream, cudaStreamCaptureModeThreadLocal), "capture");
    bool made = enter(seat, "capture") && leave(seat, sum(seat, seat->comm, 300));
    cudaError_t err = cudaStreamEndCapture(seat->stream, &seat->graph);
    if (err && made) wrong(seat, "cudaStreamEndCapture", (int)err);
    if (err || !made) return made;
    cuda(seat, cudaGraphInstantiate(&seat->exec, seat->graph, 0), "cudaGraphInstantiate");
    for (int k = 0; k < launches; k++)
        cuda(seat, cudaGraphLaunch(seat->exec, seat->stream), "cudaGraphLaunch");
    if (launches && !right(seat, 300, whole_sum())) return false;
    if (!keep || !life.chaos) drop_graph(seat);
    return true;
}

/* ---- children ---- */

static void end_child(struct seat *seat, ncclComm_t child, int ending)
{
    seat->doing = "end of a child";
    if (ending == 0) {
        good(seat, ncclCommFinalize(child), "Finalize of a child");
        if (!wait_child(seat, child)) ending = 2;
    }
    ncclResult_t rc = ending == 2 ? ncclCommAbort(child) : ncclCommDestroy(child);
    if (rc == ncclInvalidArgument) rc = ncclCommAbort(child); /* it was in progress */
    good(seat, rc, "end of a child");
}

struct child_sum { /* members of a child */
    int sum, count, color;
};

/* Use it, then end it or keep it for the end of the life. False when it came to nothing. */
static bool use_child(struct seat *seat, ncclComm_t child, struct child_sum members)
{
    int ending =
        pick(&seat->common, life.shares ? 2 : 4); /* an abort would end all that share resources */
    bool made = wait_child(seat, child);
    if (made && pick(&seat->common, 2)) {
        seat->doing = "operation of a child";
        made = good(seat, sum(seat, child, 300), seat->doing) && right(seat, 300, members.sum);
    }
    if (made && ending == 3 && seat->nchildren < CHILDREN) {
        seat->children[seat->nchildren++] = child;
        return true;
    }
    if (made && ending == 2) {
        synchronize(seat);
        barrier(2 * seat->step + members.color, members.count);
    }
    end_child(seat, child, made ? ending : 2);
    return made;
}

static bool split(struct seat *seat)
{
    int colors = 1 + pick(&seat->common, 2), none = pick(&seat->common, 4) == 0;
    int color = seat->rank % colors;
    struct child_sum members = {.color = color};
    ncclComm_t child = NULL, comm = borrow(seat, "split");
    for (int r = color; r < life.nranks; r += colors) {
        members.sum += r + 1;
        members.count++;
    }
    if (none && color == 1) color = NCCL_SPLIT_NOCOLOR;
    if (!comm) return false;
    ncclResult_t rc = ncclCommSplit(comm, color, 0, &child, NULL);
    bool made = good(seat, rc, "split") && wait_ready(seat);
    if (!child) return made;
    if (made) return use_child(seat, child, members);
    ncclCommAbort(child);
    return false;
}

static bool shrink(struct seat *seat)
{
    /* with an abort the others' failures are what the caller leaves behind: it waits for them */
    int out = pick(&seat->common, life.nranks), harsh = !life.chaos && pick(&seat->common, 2);
    ncclComm_t child = NULL, comm;
    if (life.nranks < 2) return true;
    if (harsh) { /* what runs would be given up, also at the rank that stays out */
        if (!operate(seat)) return false;
        synchronize(seat);
    }
    if (seat->rank == out) return true;
    comm = borrow(seat, "shrink");
    if (!comm) return false;
    ncclResult_t rc = ncclCommShrink(comm, &out, 1, &child, NULL,
                                     harsh ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT);
    bool made = good(seat, rc, "shrink") && wait_ready(seat);
    if (!child) return made;
    if (made)
        return use_child(seat, child,
                         (struct child_sum){whole_sum() - out - 1, life.nranks - 1, 0});
    ncclCommAbort(child);
    return false;
}

static bool grow(struct seat *seat)
{
    bool newcomer = seat->rank == life.nranks, gave_up = false;
    ncclComm_t grown = NULL, comm = NULL;
    ncclResult_t rc = ncclSuccess;
    seat->common = life.seed * 7 + 3; /* the newcomer took no step so far */
    if (!newcomer) {
        comm = borrow(seat, "grow");
        if (comm && seat->rank == 0) rc = ncclCommGetUniqueId(comm, &life.grow_id);
        gave_up = !comm || !good(seat, rc, "id for a grow");
        if (seat->rank == 0) life.grow_id_made = gave_up ? 2 : 1;
    }
    while (newcomer && !life.grow_id_made)
        sched_yield();
    if (gave_up || life.grow_id_made == 2) return false;
    bool has_id = newcomer || seat->rank == 0;
    rc = ncclCommGrow(comm, life.nranks + 1, has_id ? &life.grow_id : NULL,
                      newcomer ? seat->rank : -1, &grown, NULL);
    if (!good(seat, rc, "grow")) {
        if (grown) ncclCommAbort(grown);
        return false;
    }
    seat->step = STEPS;
    return use_child(seat, grown,
                     (struct child_sum){whole_sum() + life.nranks + 1, life.nranks + 1, 0});
}

/* ---- a life ---- */

static bool be_born(struct seat *seat)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = life.nonblocking ? 0 : 1;
    config.splitShare = config.shrinkShare = life.shares;
    ncclComm_t comm = NULL;
    seat->doing = "init";
    pthread_mutex_lock(&seat->lock);
    if (life.nonblocking) {
        ncclResult_t rc =
            ncclCommInitRankConfig(&seat->comm, life.nranks, life.id, seat->rank, &config);
        return leave(seat, rc) && wait_ready(seat);
    }
    pthread_mutex_unlock(&seat->lock);
    ncclResult_t rc = ncclCommInitRankConfig(&comm, life.nranks, life.id, seat->rank, &config);
    if (!good(seat, rc, "init")) {
        if (comm) ncclCommAbort(comm);
        return false;
    }
    pthread_mutex_lock(&seat->lock);
    seat->comm = comm;
    pthread_mutex_unlock(&seat->lock);
    return true;
}

static bool live(struct seat *seat)
{
    static bool (*const steps[])(struct seat * seat) = {
        operate, operate_in_group, operate_behind_gate, capture, split, shrink, operate, split};
    int nsteps = pick(&seat->common, STEPS);
    if (seat->rank == life.nranks) return grow(seat);
    if (!be_born(seat)) return false;
    for (int k = 0; k < nsteps; k++) {
        seat->step = k;
        seat->common = life.seed * 7 + 100 + (uint64_t)k; /* some ranks sat out the last one */
        if (!steps[pick(&seat->common, (int)(sizeof(steps) / sizeof(steps[0])))](seat))
            return false;
        dawdle(seat);
    }
    return life.grows ? grow(seat) : true;
}

static void end_well(struct seat *seat, int ending)
{
    if (ending == 2) {
        synchronize(seat);
        barrier(2 * STEPS + 2, life.nranks);
    }
    if (ending != 2) drop_graph(seat); /* Finalize and Destroy wait for it, Abort does not */
    ncclComm_t comm = ending == 0 ? borrow(seat, "finalize") : NULL;
    if (comm) ending = good(seat, ncclCommFinalize(comm), "finalize") && wait_ready(seat) ? 1 : 2;
    comm = take(seat, ending == 2 ? "abort" : "destroy");
    if (!comm) return;
    ncclResult_t rc = ending == 2 ? ncclCommAbort(comm) : ncclCommDestroy(comm);
    if (rc == ncclInvalidArgument) rc = ncclCommAbort(comm);
    good(seat, rc, seat->doing);
}

/* Destroy is for whoever knows that the others were told; else they would wait for this rank, also
 * in a Shrink after a revoke. */
static void end_badly(struct seat *seat)
{
    int ending = pick(&seat->own, 3);
    ncclResult_t state = ncclSuccess;
    if (ending == 0 && enter(seat, "revoke")) {
        (void)ncclCommRevoke(seat->comm, NCCL_REVOKE_DEFAULT);
        pthread_mutex_unlock(&seat->lock);
        (void)wait_ready(seat);
    }
    if (ending == 1 && enter(seat, "state")) {
        if (ncclCommGetAsyncError(seat->comm, &state)) state = ncclSuccess;
        pthread_mutex_unlock(&seat->lock);
    }
    ncclComm_t comm = take(seat, "end after an error");
    bool reported = state != ncclSuccess && state != ncclInProgress;
    if (comm && (!reported || ncclCommDestroy(comm) == ncclInvalidArgument)) ncclCommAbort(comm);
}

static void *live_and_end(void *arg)
{
    struct seat *seat = arg;
    CUDA(cudaSetDevice(seat->rank));
    bool well = live(seat);
    seat->common = life.seed * 7 + 4;
    int ending = pick(&seat->common, 3);
    if (life.grows && seat->rank == 0 && !life.grow_id_made) life.grow_id_made = 2;
    seat->gate = true;
    for (int k = 0; k < seat->nchildren; k++)
        end_child(seat, seat->children[k], well ? 1 : 2);
    if (well && seat->rank < life.nranks) {
        end_well(seat, ending);
    } else {
        end_badly(seat);
    }
    synchronize(seat);
    drop_graph(seat);
    seat->doing = "over";
    life.over++;
    return NULL;
}

/* Polls, and in a life with chaos aborts one rank after a while. */
static void watch(void)
{
    uint64_t state = life.seed ^ 0xabcdef;
    int nseats = life.nranks + life.grows, turns = pick(&state, 3000), victim;
    time_t end = time(NULL) + STUCK_SEC;
    ncclResult_t seen;
    victim = pick(&state, life.nranks);
    for (int turn = 0; life.over < nseats; turn++) {
        struct seat *seat = &life.seats[turn % life.nranks];
        pthread_mutex_lock(&seat->lock);
        if (seat->comm) (void)ncclCommGetAsyncError(seat->comm, &seen);
        pthread_mutex_unlock(&seat->lock);
        sched_yield();
        if (time(NULL) > end) {
            for (int k = 0; k < nseats; k++)
                fprintf(stderr, "rank %d: %s\n", k, life.seats[k].doing);
            wrong(seat, "stuck", STUCK_SEC);
        }
        if (!life.chaos || life.broken || turn < turns) continue;
        seat = &life.seats[victim];
        life.broken = true;
        pthread_mutex_lock(&seat->lock);
        ncclComm_t comm = seat->comm;
        seat->comm = NULL;
        if (comm && ncclCommAbort(comm)) wrong(seat, "the watchdog's abort", 0);
        pthread_mutex_unlock(&seat->lock);
    }
}

static void live_once(uint64_t seed)
{
    pthread_t threads[RANKS + 1];
    uint64_t state = seed;
    struct life *l = &life;
    l->seed = seed;
    l->nranks = 1 + pick(&state, RANKS);
    l->nonblocking = pick(&state, 2);
    l->shares = pick(&state, 2);
    l->chaos = pick(&state, 2);
    l->grows = pick(&state, 4) == 0;
    l->grow_id_made = 0;
    l->broken = false;
    l->over = 0;
    for (int k = 0; k < 2 * STEPS + 4; k++)
        l->arrived[k] = 0;
    NCCL(ncclGetUniqueId(&l->id));
    for (int k = 0; k < l->nranks + l->grows; k++) {
        struct seat *seat = &l->seats[k];
        seat->rank = k;
        seat->common = seed * 7 + 1;
        seat->own = seed * 7 + 2 + (uint64_t)k;
        seat->comm = NULL;
        seat->nchildren = 0;
        for (int i = 0; i < COUNT; i++)
            seat->in[i] = k + 1;
        CHECK(!pthread_create(&threads[k], NULL, live_and_end, seat));
    }
    watch();
    for (int k = 0; k < l->nranks + l->grows; k++)
        pthread_join(threads[k], NULL);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 20;
    long least = argc > 3 ? strtol(argv[3], NULL, 0) : 10, lives = 0;
    double end = harness_now_sec() + seconds;
    setenv("TUTTI_DEVICES", "5", 1);
    printf("life_stress: seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (int k = 0; k <= RANKS; k++) {
        struct seat *seat = &life.seats[k];
        pthread_mutex_init(&seat->lock, NULL);
        CUDA(cudaSetDevice(k));
        CUDA(cudaStreamCreateWithFlags(&seat->stream, cudaStreamNonBlocking));
        seat->in = harness_device_alloc(COUNT * sizeof(int));
        seat->out = harness_device_alloc(2 * COUNT * sizeof(int));
    }
    while (lives < least || harness_now_sec() < end)
        live_once(seed + (uint64_t)lives++);
    printf("life_stress: %ld lives\n", lives);
    return 0;
}
