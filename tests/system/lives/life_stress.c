/* Random lives of communicators: init, split, shrink, grow, revoke, finalize, destroy and abort, on
 * blocking and non-blocking ones, between operations, open groups, captures and host functions that
 * hold streams back, while a watchdog polls the states and, in every second life, aborts a rank
 * wherever it is. Lives without an abort must succeed to the last value, the others must end.
 * usage: life_stress [SECONDS [SEED [LIVES]]]     a life that fails prints what repeats it */
#include "../harness/harness.h"

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

struct rank { /* one rank, one thread */
    struct life *life;
    int rank;             /* of a newcomer: the number of ranks before it */
    uint64_t common, own; /* states of random(): the same on all ranks; of this one */
    pthread_mutex_t lock; /* short calls and the watchdog's take turns */
    ncclComm_t comm;      /* NULL once a call ends it */
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
    _Atomic int over;         /* ranks that are done */
    _Atomic int arrived[2 * STEPS + 4];
    struct rank ranks[RANKS + 1];
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

static _Noreturn void wrong(const struct rank *self, const char *what, int code)
{
    fprintf(stderr, "life_stress: rank %d: %s: code %d: %s\nrepeat: life_stress 0 %llu 1\n",
            self->rank, what, code, ncclGetLastError(NULL), (unsigned long long)life.seed);
    _exit(1);
}

/* An error ends the life of this rank, and is right only when a rank was aborted. */
static bool good(struct rank *self, ncclResult_t rc, const char *what)
{
    if (rc == ncclSuccess || rc == ncclInProgress) return true;
    if (!life.broken) wrong(self, what, (int)rc);
    return false;
}

static void cuda(const struct rank *self, cudaError_t err, const char *what)
{
    if (err) wrong(self, what, (int)err);
}

/* ---- taking turns with the watchdog ---- */

/* The communicator for a short call; false, and not locked, when it was aborted. */
static bool enter(struct rank *self, const char *doing)
{
    self->doing = doing;
    pthread_mutex_lock(&self->lock);
    if (self->comm) return true;
    pthread_mutex_unlock(&self->lock);
    return false;
}

static bool leave(struct rank *self, ncclResult_t rc)
{
    pthread_mutex_unlock(&self->lock);
    return good(self, rc, self->doing);
}

/* For a long call, in which the watchdog may strike; NULL: it did. */
static ncclComm_t borrow(struct rank *self, const char *doing)
{
    if (!enter(self, doing)) return NULL;
    ncclComm_t comm = self->comm;
    pthread_mutex_unlock(&self->lock);
    return comm;
}

static ncclComm_t take(struct rank *self, const char *doing)
{
    self->doing = doing;
    pthread_mutex_lock(&self->lock);
    ncclComm_t comm = self->comm;
    self->comm = NULL;
    pthread_mutex_unlock(&self->lock);
    return comm;
}

static void dawdle(struct rank *self)
{
    for (int k = pick(&self->own, 8) * pick(&self->own, 8); k > 0; k--)
        sched_yield();
}

/* Until n ranks are here, as an abort is told to those that still work. */
static void barrier(int point, int n)
{
    life.arrived[point]++;
    while (life.arrived[point] < n && !life.broken)
        sched_yield();
}

/* Until a call on this rank's communicator is done. */
static bool wait_ready(struct rank *self)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        if (!enter(self, self->doing)) return false;
        if (!leave(self, ncclCommGetAsyncError(self->comm, &state))) return false;
        sched_yield();
    }
    return good(self, state, self->doing);
}

static bool wait_child(struct rank *self, ncclComm_t child)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        if (!good(self, ncclCommGetAsyncError(child, &state), "state of a child")) return false;
        sched_yield();
    }
    return good(self, state, "state of a child");
}

/* ---- operations ---- */

static ncclResult_t sum(struct rank *self, ncclComm_t comm, size_t count)
{
    return ncclAllReduce(self->in, self->out, count, ncclInt, ncclSum, comm, self->stream);
}

static size_t some_count(struct rank *self)
{
    static const size_t counts[] = {1, 300, 5000, COUNT};
    return counts[pick(&self->common, 4)];
}

static void synchronize(struct rank *self)
{
    self->doing = "synchronize";
    cuda(self, cudaStreamSynchronize(self->stream), "cudaStreamSynchronize");
}

/* Every rank's input is rank + 1. */
static bool right(struct rank *self, size_t count, int expected)
{
    synchronize(self);
    if (life.broken) return false;
    for (size_t i = 0; i < count; i++)
        if (self->out[i] != expected && !life.broken) wrong(self, "a sum", self->out[i]);
    return true;
}

static int whole_sum(void)
{
    return life.nranks * (life.nranks + 1) / 2;
}

static bool operate(struct rank *self)
{
    size_t count = some_count(self);
    bool look = pick(&self->common, 2) == 0;
    if (!enter(self, "operation") || !leave(self, sum(self, self->comm, count))) return false;
    return look ? right(self, count, whole_sum()) : true;
}

/* Sums and a ring of messages; the watchdog may come between any two calls. */
static bool operate_in_group(struct rank *self)
{
    size_t count = some_count(self);
    int n = life.nranks, peer = (self->rank + 1) % n, from = (self->rank + n - 1) % n;
    bool made = true;
    if (ncclGroupStart()) wrong(self, "GroupStart", 0);
    for (int k = 0; k < 2 && made; k++) {
        made = enter(self, "in a group") && leave(self, sum(self, self->comm, count));
        dawdle(self);
    }
    if (made && enter(self, "messages")) {
        ncclResult_t rc = ncclSend(self->in, count, ncclInt, peer, self->comm, self->stream);
        if (!rc) rc = ncclRecv(self->out + COUNT, count, ncclInt, from, self->comm, self->stream);
        made = leave(self, rc);
    }
    dawdle(self);
    pthread_mutex_lock(&self->lock);
    made &= leave(self, ncclGroupEnd());
    if (!made) return false;
    if (!wait_ready(self) || !right(self, count, whole_sum())) return false;
    if (self->out[COUNT] != from + 1 && !life.broken) wrong(self, "a message", self->out[COUNT]);
    return true;
}

static void open_gate(void *arg)
{
    while (!*(_Atomic bool *)arg)
        sched_yield();
}

/* Operations queue up behind a host function; whatever comes next finds them there. */
static bool operate_behind_gate(struct rank *self)
{
    bool made = true;
    self->gate = false;
    cuda(self, cudaLaunchHostFunc(self->stream, open_gate, &self->gate), "cudaLaunchHostFunc");
    for (int k = 0; k < 3 && made; k++)
        made = enter(self, "behind a gate") && leave(self, sum(self, self->comm, 5000));
    dawdle(self);
    self->gate = true;
    return made && (pick(&self->common, 2) || right(self, 5000, whole_sum()));
}

static void drop_graph(struct rank *self)
{
    if (self->exec) cuda(self, cudaGraphExecDestroy(self->exec), "cudaGraphExecDestroy");
    if (self->graph) cuda(self, cudaGraphDestroy(self->graph), "cudaGraphDestroy");
    self->exec = NULL;
    self->graph = NULL;
}

static bool capture(struct rank *self)
{
    int launches = pick(&self->common, 3), keep = pick(&self->common, 2);
    drop_graph(self);
    cuda(self, cudaStreamBeginCapture(self->stream, cudaStreamCaptureModeThreadLocal), "capture");
    bool made = enter(self, "capture") && leave(self, sum(self, self->comm, 300));
    cudaError_t err = cudaStreamEndCapture(self->stream, &self->graph);
    if (err && made) wrong(self, "cudaStreamEndCapture", (int)err);
    if (err || !made) return made;
    cuda(self, cudaGraphInstantiate(&self->exec, self->graph, 0), "cudaGraphInstantiate");
    for (int k = 0; k < launches; k++)
        cuda(self, cudaGraphLaunch(self->exec, self->stream), "cudaGraphLaunch");
    if (launches && !right(self, 300, whole_sum())) return false;
    if (!keep || !life.chaos) drop_graph(self);
    return true;
}

/* ---- children ---- */

static void end_child(struct rank *self, ncclComm_t child, int ending)
{
    self->doing = "end of a child";
    if (ending == 0) {
        good(self, ncclCommFinalize(child), "Finalize of a child");
        if (!wait_child(self, child)) ending = 2;
    }
    ncclResult_t rc = ending == 2 ? ncclCommAbort(child) : ncclCommDestroy(child);
    if (rc == ncclInvalidArgument) rc = ncclCommAbort(child); /* it was in progress */
    good(self, rc, "end of a child");
}

struct child_sum { /* members of a child */
    int sum, count, color;
};

/* Use it, then end it or keep it for the end of the life. False when it came to nothing. */
static bool use_child(struct rank *self, ncclComm_t child, struct child_sum members)
{
    int ending =
        pick(&self->common, life.shares ? 2 : 4); /* an abort would end all that share resources */
    bool made = wait_child(self, child);
    if (made && pick(&self->common, 2)) {
        self->doing = "operation of a child";
        made = good(self, sum(self, child, 300), self->doing) && right(self, 300, members.sum);
    }
    if (made && ending == 3 && self->nchildren < CHILDREN) {
        self->children[self->nchildren++] = child;
        return true;
    }
    if (made && ending == 2) {
        synchronize(self);
        barrier(2 * self->step + members.color, members.count);
    }
    end_child(self, child, made ? ending : 2);
    return made;
}

static bool split(struct rank *self)
{
    int colors = 1 + pick(&self->common, 2), none = pick(&self->common, 4) == 0;
    int color = self->rank % colors;
    struct child_sum members = {.color = color};
    ncclComm_t child = NULL, comm = borrow(self, "split");
    for (int r = color; r < life.nranks; r += colors) {
        members.sum += r + 1;
        members.count++;
    }
    if (none && color == 1) color = NCCL_SPLIT_NOCOLOR;
    if (!comm) return false;
    ncclResult_t rc = ncclCommSplit(comm, color, 0, &child, NULL);
    bool made = good(self, rc, "split") && wait_ready(self);
    if (!child) return made;
    if (made) return use_child(self, child, members);
    ncclCommAbort(child);
    return false;
}

static bool shrink(struct rank *self)
{
    /* with an abort the others' failures are what the caller leaves behind: it waits for them */
    int out = pick(&self->common, life.nranks), harsh = !life.chaos && pick(&self->common, 2);
    ncclComm_t child = NULL, comm;
    if (life.nranks < 2) return true;
    if (harsh) { /* what runs would be given up, also at the rank that stays out */
        if (!operate(self)) return false;
        synchronize(self);
    }
    if (self->rank == out) return true;
    comm = borrow(self, "shrink");
    if (!comm) return false;
    ncclResult_t rc = ncclCommShrink(comm, &out, 1, &child, NULL,
                                     harsh ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT);
    bool made = good(self, rc, "shrink") && wait_ready(self);
    if (!child) return made;
    if (made)
        return use_child(self, child,
                         (struct child_sum){whole_sum() - out - 1, life.nranks - 1, 0});
    ncclCommAbort(child);
    return false;
}

static bool grow(struct rank *self)
{
    bool newcomer = self->rank == life.nranks, gave_up = false;
    ncclComm_t grown = NULL, comm = NULL;
    ncclResult_t rc = ncclSuccess;
    self->common = life.seed * 7 + 3; /* the newcomer took no step so far */
    if (!newcomer) {
        comm = borrow(self, "grow");
        if (comm && self->rank == 0) rc = ncclCommGetUniqueId(comm, &life.grow_id);
        gave_up = !comm || !good(self, rc, "id for a grow");
        if (self->rank == 0) life.grow_id_made = gave_up ? 2 : 1;
    }
    while (newcomer && !life.grow_id_made)
        sched_yield();
    if (gave_up || life.grow_id_made == 2) return false;
    bool has_id = newcomer || self->rank == 0;
    rc = ncclCommGrow(comm, life.nranks + 1, has_id ? &life.grow_id : NULL,
                      newcomer ? self->rank : -1, &grown, NULL);
    if (!good(self, rc, "grow")) {
        if (grown) ncclCommAbort(grown);
        return false;
    }
    self->step = STEPS;
    return use_child(self, grown,
                     (struct child_sum){whole_sum() + life.nranks + 1, life.nranks + 1, 0});
}

/* ---- a life ---- */

static bool be_born(struct rank *self)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = life.nonblocking ? 0 : 1;
    config.splitShare = config.shrinkShare = life.shares;
    ncclComm_t comm = NULL;
    self->doing = "init";
    pthread_mutex_lock(&self->lock);
    if (life.nonblocking) {
        ncclResult_t rc =
            ncclCommInitRankConfig(&self->comm, life.nranks, life.id, self->rank, &config);
        return leave(self, rc) && wait_ready(self);
    }
    pthread_mutex_unlock(&self->lock);
    ncclResult_t rc = ncclCommInitRankConfig(&comm, life.nranks, life.id, self->rank, &config);
    if (!good(self, rc, "init")) {
        if (comm) ncclCommAbort(comm);
        return false;
    }
    pthread_mutex_lock(&self->lock);
    self->comm = comm;
    pthread_mutex_unlock(&self->lock);
    return true;
}

static bool live(struct rank *self)
{
    static bool (*const steps[])(struct rank * self) = {
        operate, operate_in_group, operate_behind_gate, capture, split, shrink, operate, split};
    int nsteps = pick(&self->common, STEPS);
    if (self->rank == life.nranks) return grow(self);
    if (!be_born(self)) return false;
    for (int k = 0; k < nsteps; k++) {
        self->step = k;
        self->common = life.seed * 7 + 100 + (uint64_t)k; /* some ranks sat out the last one */
        if (!steps[pick(&self->common, (int)(sizeof(steps) / sizeof(steps[0])))](self))
            return false;
        dawdle(self);
    }
    return life.grows ? grow(self) : true;
}

static void end_well(struct rank *self, int ending)
{
    if (ending == 2) {
        synchronize(self);
        barrier(2 * STEPS + 2, life.nranks);
    }
    if (ending != 2) drop_graph(self); /* Finalize and Destroy wait for it, Abort does not */
    ncclComm_t comm = ending == 0 ? borrow(self, "finalize") : NULL;
    if (comm) ending = good(self, ncclCommFinalize(comm), "finalize") && wait_ready(self) ? 1 : 2;
    comm = take(self, ending == 2 ? "abort" : "destroy");
    if (!comm) return;
    ncclResult_t rc = ending == 2 ? ncclCommAbort(comm) : ncclCommDestroy(comm);
    if (rc == ncclInvalidArgument) rc = ncclCommAbort(comm);
    good(self, rc, self->doing);
}

/* Destroy is for a rank that knows that the others were told; else they would wait for this rank,
 * also in a Shrink after a revoke. */
static void end_badly(struct rank *self)
{
    int ending = pick(&self->own, 3);
    ncclResult_t state = ncclSuccess;
    if (ending == 0 && enter(self, "revoke")) {
        (void)ncclCommRevoke(self->comm, NCCL_REVOKE_DEFAULT);
        pthread_mutex_unlock(&self->lock);
        (void)wait_ready(self);
    }
    if (ending == 1 && enter(self, "state")) {
        if (ncclCommGetAsyncError(self->comm, &state)) state = ncclSuccess;
        pthread_mutex_unlock(&self->lock);
    }
    ncclComm_t comm = take(self, "end after an error");
    bool reported = state != ncclSuccess && state != ncclInProgress;
    if (comm && (!reported || ncclCommDestroy(comm) == ncclInvalidArgument)) ncclCommAbort(comm);
}

static void *live_and_end(void *arg)
{
    struct rank *self = arg;
    CUDA(cudaSetDevice(self->rank));
    bool well = live(self);
    self->common = life.seed * 7 + 4;
    int ending = pick(&self->common, 3);
    if (life.grows && self->rank == 0 && !life.grow_id_made) life.grow_id_made = 2;
    self->gate = true;
    for (int k = 0; k < self->nchildren; k++)
        end_child(self, self->children[k], well ? 1 : 2);
    if (well && self->rank < life.nranks) {
        end_well(self, ending);
    } else {
        end_badly(self);
    }
    synchronize(self);
    drop_graph(self);
    self->doing = "over";
    life.over++;
    return NULL;
}

/* Polls, and in a life with chaos aborts one rank after a while. */
static void watch(void)
{
    uint64_t state = life.seed ^ 0xabcdef;
    int nthreads = life.nranks + life.grows, turns = pick(&state, 3000), victim;
    time_t end = time(NULL) + STUCK_SEC;
    ncclResult_t seen;
    victim = pick(&state, life.nranks);
    for (int turn = 0; life.over < nthreads; turn++) {
        struct rank *self = &life.ranks[turn % life.nranks];
        pthread_mutex_lock(&self->lock);
        if (self->comm) (void)ncclCommGetAsyncError(self->comm, &seen);
        pthread_mutex_unlock(&self->lock);
        sched_yield();
        if (time(NULL) > end) {
            for (int k = 0; k < nthreads; k++)
                fprintf(stderr, "rank %d: %s\n", k, life.ranks[k].doing);
            wrong(self, "stuck", STUCK_SEC);
        }
        if (!life.chaos || life.broken || turn < turns) continue;
        self = &life.ranks[victim];
        life.broken = true;
        pthread_mutex_lock(&self->lock);
        ncclComm_t comm = self->comm;
        self->comm = NULL;
        if (comm && ncclCommAbort(comm)) wrong(self, "the watchdog's abort", 0);
        pthread_mutex_unlock(&self->lock);
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
        struct rank *self = &l->ranks[k];
        self->rank = k;
        self->common = seed * 7 + 1;
        self->own = seed * 7 + 2 + (uint64_t)k;
        self->comm = NULL;
        self->nchildren = 0;
        for (int i = 0; i < COUNT; i++)
            self->in[i] = k + 1;
        CHECK(!pthread_create(&threads[k], NULL, live_and_end, self));
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
        struct rank *self = &life.ranks[k];
        pthread_mutex_init(&self->lock, NULL);
        CUDA(cudaSetDevice(k));
        CUDA(cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
        self->in = harness_device_alloc(COUNT * sizeof(int));
        self->out = harness_device_alloc(2 * COUNT * sizeof(int));
    }
    while (lives < least || harness_now_sec() < end)
        live_once(seed + (uint64_t)lives++);
    printf("life_stress: %ld lives\n", lives);
    return 0;
}
