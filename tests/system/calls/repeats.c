/* Groups that come again, and groups that only begin like one that came before: the library expects
 * the group that followed the last time, and has to take that back wherever a call differs. Every
 * rank draws the same kinds of groups; buffers move each time; all results are checked. */
#include "../harness/harness.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { NRANKS = 3, TURNS = 600, SLOTS = 16, COUNT = 64, WORDS = SLOTS * COUNT };

struct world {
    struct harness_rank *rank;
    ncclComm_t comm, twin, solo;
    cudaStream_t stream, other;
    int32_t *in, *out; /* SLOTS blocks of COUNT words */
    int32_t expected[WORDS];
    uint32_t seed; /* of this rank's buffers */
    int turn;
};

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* What a rank has in a place in this turn. */
static int32_t value(int turn, int rank, int slot)
{
    return turn * 1000 + rank * 100 + slot;
}

static int next(const struct world *w)
{
    return (w->rank->rank + 1) % NRANKS;
}

static int previous(const struct world *w)
{
    return (w->rank->rank + NRANKS - 1) % NRANKS;
}

static int32_t *in_at(const struct world *w, int slot)
{
    return w->in + (size_t)slot * COUNT;
}

static int32_t *out_at(const struct world *w, int slot)
{
    return w->out + (size_t)slot * COUNT;
}

static void expect(struct world *w, int slot, int32_t what)
{
    for (int k = 0; k < COUNT; k++)
        w->expected[slot * COUNT + k] = what;
}

/* Place `at` of this rank goes to the same place of the next one. */
static void pass_on(struct world *w, int at, ncclDataType_t type, cudaStream_t stream)
{
    NCCL(ncclSend(in_at(w, at), COUNT, type, next(w), w->comm, stream));
    NCCL(ncclRecv(out_at(w, at), COUNT, type, previous(w), w->comm, w->stream));
    expect(w, at, value(w->turn, previous(w), at));
}

static void keep_own(struct world *w, int from, int to)
{
    NCCL(ncclRecv(out_at(w, to), COUNT, ncclInt32, w->rank->rank, w->comm, w->stream));
    NCCL(ncclSend(in_at(w, from), COUNT, ncclInt32, w->rank->rank, w->comm, w->stream));
    expect(w, to, value(w->turn, w->rank->rank, from));
}

static void add_up(struct world *w, int at, ncclComm_t comm)
{
    int32_t sum = 0;
    for (int r = 0; r < NRANKS; r++)
        sum += value(w->turn, r, at);
    NCCL(ncclAllReduce(in_at(w, at), out_at(w, at), COUNT, ncclInt32, ncclSum, comm, w->stream));
    expect(w, at, sum);
}

/* ---- kinds of groups ---- */

static void ring(struct world *w, int at)
{
    pass_on(w, at, ncclInt32, w->stream);
    keep_own(w, at + 1, at + 2);
}

static void ring_and_more(struct world *w, int at)
{
    ring(w, at);
    pass_on(w, at + 3, ncclInt32, w->stream);
}

static void ring_cut(struct world *w, int at)
{
    pass_on(w, at, ncclInt32, w->stream);
}

static void ring_of_floats(struct world *w, int at)
{
    pass_on(w, at, ncclFloat32, w->stream);
    keep_own(w, at + 1, at + 2);
}

static void ring_on_two_streams(struct world *w, int at)
{
    keep_own(w, at + 1, at + 2);
    pass_on(w, at, ncclInt32, w->other);
}

static void ring_in_place(struct world *w, int at)
{
    pass_on(w, at, ncclInt32, w->stream);
    NCCL(ncclRecv(in_at(w, at + 1), COUNT, ncclInt32, w->rank->rank, w->comm, w->stream));
    NCCL(ncclSend(in_at(w, at + 1), COUNT, ncclInt32, w->rank->rank, w->comm, w->stream));
}

static void sums(struct world *w, int at)
{
    for (int k = 0; k < 4; k++)
        add_up(w, at + k, w->comm);
}

/* The third reads what the second writes. */
static void chain_of_sums(struct world *w, int at)
{
    add_up(w, at, w->comm);
    add_up(w, at + 1, w->comm);
    NCCL(ncclAllReduce(out_at(w, at + 1), out_at(w, at + 2), COUNT, ncclInt32, ncclSum, w->comm,
                       w->stream));
    expect(w, at + 2, NRANKS * w->expected[(at + 1) * COUNT]);
    add_up(w, at + 3, w->comm);
}

static void sums_of_two(struct world *w, int at)
{
    add_up(w, at, w->comm);
    add_up(w, at + 1, w->twin);
    add_up(w, at + 2, w->comm);
}

static void sums_and_ring(struct world *w, int at)
{
    add_up(w, at, w->comm);
    add_up(w, at + 1, w->comm);
    pass_on(w, at + 2, ncclInt32, w->stream);
}

static const struct kind {
    const char *name;
    void (*calls)(struct world *w, int at);
} kinds[] = {
    {"ring", ring},
    {"ring and more", ring_and_more},
    {"ring cut", ring_cut},
    {"ring of floats", ring_of_floats},
    {"ring on two streams", ring_on_two_streams},
    {"ring in place", ring_in_place},
    {"sums", sums},
    {"chain of sums", chain_of_sums},
    {"sums of two communicators", sums_of_two},
    {"sums and ring", sums_and_ring},
};
enum { NKINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- ways to end one ---- */

static void ended(struct world *w, const struct kind *kind, int at)
{
    NCCL(ncclGroupStart());
    kind->calls(w, at);
    NCCL(ncclGroupEnd());
}

static void nested(struct world *w, const struct kind *kind, int at)
{
    NCCL(ncclGroupStart());
    ended(w, kind, at);
    NCCL(ncclGroupEnd());
}

static void with_split(struct world *w, const struct kind *kind, int at)
{
    ncclComm_t part = NULL;
    NCCL(ncclGroupStart());
    kind->calls(w, at);
    NCCL(ncclCommSplit(w->comm, 0, w->rank->rank, &part, NULL));
    NCCL(ncclGroupEnd());
    NCCL(ncclCommDestroy(part));
}

/* Nothing of a group with a refused call runs, and the next one does. */
static void with_refused(struct world *w, const struct kind *kind, int at)
{
    NCCL(ncclGroupStart());
    kind->calls(w, at);
    CHECK(ncclRecv(w->out, COUNT, ncclInt32, NRANKS, w->comm, w->stream) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    CUDA(cudaStreamSynchronize(w->stream));
    for (int k = 0; k < WORDS; k++)
        CHECK(w->out[k] == -1);
    ended(w, kind, at);
}

static void simulated(struct world *w, const struct kind *kind, int at)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    NCCL(ncclGroupStart());
    kind->calls(w, at);
    NCCL(ncclGroupSimulateEnd(&info));
    CUDA(cudaStreamSynchronize(w->stream));
    for (int k = 0; k < WORDS; k++)
        CHECK(w->out[k] == -1);
    ended(w, kind, at);
}

static void captured(struct world *w, const struct kind *kind, int at)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    bool both = kind->calls == ring_on_two_streams; /* streams of a group are captured alike */
    if (both) {
        ended(w, kind, at);
        return;
    }
    CUDA(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    ended(w, kind, at);
    CUDA(cudaStreamEndCapture(w->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, w->stream));
    CUDA(cudaStreamSynchronize(w->stream));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

static void (*const patterns[])(struct world *, const struct kind *, int) = {
    ended, ended, ended, ended, ended, nested, with_refused, simulated, captured, with_split,
};
enum { NPATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

/* ---- a turn ---- */

static void begin_turn(struct world *w, int turn)
{
    w->turn = turn;
    for (int k = 0; k < WORDS; k++) {
        w->in[k] = value(turn, w->rank->rank, k / COUNT);
        w->out[k] = w->expected[k] = -1;
    }
}

static void end_turn(const struct world *w, const char *what)
{
    CUDA(cudaStreamSynchronize(w->stream));
    CUDA(cudaStreamSynchronize(w->other));
    for (int k = 0; k < WORDS; k++) {
        if (w->out[k] == w->expected[k]) continue;
        harness_fail(__FILE__, __LINE__, "rank %d turn %d, %s: word %d is %d, not %d",
                     w->rank->rank, w->turn, what, k, w->out[k], w->expected[k]);
    }
}

/* The next few turns are the same kind, as in a program's loop, or take turns. */
static void many_groups(struct world *w)
{
    uint32_t common = 7;
    for (int turn = 0; turn < TURNS;) {
        int first = (int)(draw(&common) % NKINDS), second = (int)(draw(&common) % NKINDS);
        int length = (int)(draw(&common) % 8) + 1;
        for (int k = 0; k < length; k++, turn++) {
            int pattern = (int)(draw(&common) % NPATTERNS);
            const struct kind *kind = &kinds[k % 2 ? second : first];
            begin_turn(w, turn);
            patterns[k < length - 1 ? 0 : pattern](w, kind, (int)(draw(&common) % (SLOTS - 3)));
            end_turn(w, kind->name);
        }
    }
}

/* ---- groups that do not end well ---- */

static void *leave_open(void *arg)
{
    struct world *w = arg;
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(in_at(w, 0), out_at(w, 0), COUNT, ncclInt32, ncclSum, w->comm, w->stream));
    return NULL;
}

static void *abort_it(void *arg)
{
    struct world *w = arg;
    NCCL(ncclCommAbort(w->solo));
    return NULL;
}

static void in_a_thread(void *(*main)(void *), struct world *w)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, main, w));
    CHECK(!pthread_join(thread, NULL));
}

/* The thread ends inside the group, which is gone with it. */
static void lose_group(struct world *w)
{
    for (int k = 0; k < 4; k++) {
        begin_turn(w, TURNS + k);
        if (k == 3) in_a_thread(leave_open, w);
        ended(w, &kinds[6], 2);
        end_turn(w, "sums beside a lost group");
    }
}

/* Another thread aborts the communicator, which is this rank's alone, while the group is open. */
static void lose_communicator(struct world *w)
{
    for (int k = 0; k < 4; k++) {
        NCCL(ncclGroupStart());
        for (int i = 0; i < 3; i++) {
            NCCL(ncclSend(in_at(w, i), COUNT, ncclInt32, 0, w->solo, w->stream));
            NCCL(ncclRecv(out_at(w, i), COUNT, ncclInt32, 0, w->solo, w->stream));
        }
        if (k == 3) in_a_thread(abort_it, w);
        CHECK(ncclGroupEnd() == (k == 3 ? ncclInternalError : ncclSuccess));
        CUDA(cudaStreamSynchronize(w->stream));
    }
}

static void run(struct harness_rank *rank)
{
    struct world w = {.rank = rank, .comm = rank->comm, .stream = rank->stream};
    CUDA(cudaStreamCreateWithFlags(&w.other, cudaStreamNonBlocking));
    NCCL(ncclCommSplit(w.comm, 0, rank->rank, &w.twin, NULL));
    NCCL(ncclCommSplit(w.comm, rank->rank, 0, &w.solo, NULL));
    w.in = harness_device_alloc(WORDS * sizeof(int32_t));
    w.out = harness_device_alloc(WORDS * sizeof(int32_t));
    many_groups(&w);
    lose_group(&w);
    lose_communicator(&w);
    NCCL(ncclCommDestroy(w.twin));
    CUDA(cudaStreamDestroy(w.other));
}

int main(int argc, char **argv)
{
    bool threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    (threads ? harness_threads : harness_processes)(NRANKS, run, NULL, 0);
    printf("repeats: %d groups of %d kinds\n", TURNS, NKINDS);
    return 0;
}
