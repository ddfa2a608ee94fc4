/* Small calls of one shape share slots where a rank groups them, and each rank may group the same
 * calls in its own way: here it draws how, and draws again only now and then, so that groups come
 * again. Every result is checked. usage: system-same_calls threads | processes */
#include "../harness/harness.h"

#include <stdint.h>
#include <string.h>

enum { CALLS = 24, TURNS = 300, WORDS = 40, KEEP = 5 };

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

struct plan { /* of one turn; the same on all ranks */
    int count[CALLS];
    ncclRedOp_t op[CALLS];
    bool gathers[CALLS];
};

/* Runs of calls alike. */
static void draw_plan(uint32_t *seed, struct plan *plan)
{
    static const int counts[] = {1, 2, 3, 8, 12, 40};
    for (int k = 0; k < CALLS; k++) {
        bool same = k > 0 && draw(seed) % 4;
        plan->count[k] = same ? plan->count[k - 1] : counts[draw(seed) % 6];
        plan->op[k] = same ? plan->op[k - 1] : draw(seed) % 2 ? ncclMax : ncclSum;
        plan->gathers[k] = same ? plan->gathers[k - 1] : draw(seed) % 4 == 0;
    }
}

static int32_t value(int turn, int rank, int call)
{
    return turn * 100 + rank * 7 + call;
}

static void check(const struct harness_rank *r, const struct plan *plan, int turn,
                  const int32_t *out)
{
    for (int k = 0; k < CALLS; k++) {
        const int32_t *at = out + (size_t)k * WORDS * (size_t)r->nranks;
        int32_t sum = 0, max = value(turn, r->nranks - 1, k);
        for (int peer = 0; peer < r->nranks; peer++)
            sum += value(turn, peer, k);
        for (int i = 0; i < plan->count[k] * (plan->gathers[k] ? r->nranks : 1); i++) {
            int32_t want = plan->op[k] == ncclSum ? sum : max;
            if (plan->gathers[k]) want = value(turn, i / plan->count[k], k);
            if (at[i] != want)
                harness_fail(__FILE__, __LINE__, "turn %d call %d word %d: %d, not %d", turn, k, i,
                             at[i], want);
        }
    }
}

static void ranks(struct harness_rank *r)
{
    uint32_t common = 5, own = 77 + (uint32_t)r->rank, cuts = 0;
    size_t block = WORDS * (size_t)r->nranks;
    int32_t *in = harness_device_alloc(CALLS * WORDS * sizeof(*in));
    int32_t *out = harness_device_alloc(CALLS * block * sizeof(*out));
    struct plan plan;
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn % (3 * KEEP) == 0) draw_plan(&common, &plan);
        if (turn % KEEP == 0) cuts = draw(&own) % 3 ? draw(&own) & draw(&own) : 0;
        for (int k = 0; k < CALLS * WORDS; k++)
            in[k] = value(turn, r->rank, k / WORDS);
        memset(out, 0, CALLS * block * sizeof(*out));
        NCCL(ncclGroupStart());
        for (int k = 0; k < CALLS; k++) {
            const int32_t *from = in + (size_t)k * WORDS;
            int32_t *to = out + (size_t)k * block;
            size_t count = (size_t)plan.count[k];
            if (plan.gathers[k]) {
                NCCL(ncclAllGather(from, to, count, ncclInt32, r->comm, r->stream));
            } else {
                NCCL(ncclAllReduce(from, to, count, ncclInt32, plan.op[k], r->comm, r->stream));
            }
            if (cuts >> k & 1) {
                NCCL(ncclGroupEnd());
                NCCL(ncclGroupStart());
            }
        }
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(r->stream));
        check(r, &plan, turn, out);
    }
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

int main(int argc, char **argv)
{
    bool threads = argc > 1 && !strcmp(argv[1], "threads");
    for (int n = 2; n <= 4; n++) {
        if (threads) {
            harness_threads(n, ranks, NULL, 0);
        } else {
            harness_processes(n, ranks, NULL, 0);
        }
    }
    return 0;
}
