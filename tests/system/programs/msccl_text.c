/* See msccl_text.h. A block (tb) speaks with one peer on one channel; pairs spread over the
 * channels by the distance between the ranks. */
#include "msccl_text.h"

#include <stdio.h>

struct writer {
    FILE *out;
    const struct msccl_shape *shape;
    int rank, block, step;
};

static void begin_file(struct writer *w, const char *name, const char *coll, int nchunks,
                       bool in_place)
{
    const struct msccl_shape *shape = w->shape;
    fprintf(w->out,
            "<algo name=\"%s\" proto=\"Simple\" nchannels=\"%d\" nchunksperloop=\"%d\" "
            "ngpus=\"%d\" coll=\"%s\" inplace=\"%d\" outofplace=\"1\" minBytes=\"%lu\" "
            "maxBytes=\"%lu\">\n",
            name, shape->nchannels, nchunks, shape->nranks, coll, in_place, shape->min_bytes,
            shape->max_bytes);
}

static void begin_rank(struct writer *w, int rank, int in, int out, int scratch)
{
    w->rank = rank;
    w->block = 0;
    fprintf(w->out, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"%d\">\n", rank, in,
            out, scratch);
}

static void begin_block(struct writer *w, int send, int recv, int channel)
{
    w->step = 0;
    fprintf(w->out, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", w->block++, send,
            recv, channel);
}

struct at { /* a chunk */
    char buffer;
    int chunk;
};

struct wait { /* for a step of another block; -1: none */
    int block, step;
};

static const struct wait no_wait = {-1, -1};

static void step(struct writer *w, const char *type, struct at src, struct at dst, int count,
                 struct wait wait)
{
    fprintf(w->out,
            "      <step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%d\" dstbuf=\"%c\" "
            "dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
            w->step++, type, src.buffer, src.chunk, dst.buffer, dst.chunk, count, wait.block,
            wait.step, type[0] == 'r' && (type[1] == 0 || type[1] == 'e'));
}

static void end_block(struct writer *w)
{
    fprintf(w->out, "    </tb>\n");
}

static void end_rank(struct writer *w)
{
    fprintf(w->out, "  </gpu>\n");
}

static int channel_of(const struct msccl_shape *shape, int a, int b)
{
    return ((b - a + shape->nranks) % shape->nranks) % shape->nchannels;
}

/* ---- a ring per channel ---- */

static void ring_block(struct writer *w, int channel)
{
    int n = w->shape->nranks, parts = w->shape->nparts;
    begin_block(w, (w->rank + 1) % n, (w->rank + n - 1) % n, channel);
    for (int k = 0; k < 2 * n - 1; k++) {
        int chunk = (channel * n + (w->rank + 2 * n - k) % n) * parts;
        struct at in = {'i', chunk}, out = {'o', chunk};
        const char *type = k == 0          ? "s"
                           : k < n - 1     ? "rrs"
                           : k == n - 1    ? "rrcs"
                           : k < 2 * n - 2 ? "rcs"
                                           : "r";
        step(w, type, in, out, parts, no_wait);
    }
    end_block(w);
}

static void ring_allreduce(struct writer *w)
{
    const struct msccl_shape *shape = w->shape;
    int nchunks = shape->nchannels * shape->nranks * shape->nparts;
    begin_file(w, "ring", "allreduce", nchunks, true);
    for (int r = 0; r < shape->nranks; r++) {
        begin_rank(w, r, nchunks, nchunks, 0);
        for (int c = 0; c < shape->nchannels; c++)
            ring_block(w, c);
        end_rank(w);
    }
}

/* ---- all pairs ---- */

/* Block k - 1 speaks with the k-th next rank: sends to it and receives from it. */
static int peer_of(const struct writer *w, int k)
{
    return (w->rank + k) % w->shape->nranks;
}

static void pair_block(struct writer *w, int k)
{
    int peer = peer_of(w, k);
    /* both directions on the channel of the smaller rank's distance, so that each end finds it */
    int low = w->rank < peer ? w->rank : peer, high = w->rank < peer ? peer : w->rank;
    begin_block(w, peer, peer, channel_of(w->shape, low, high));
}

static void allgather(struct writer *w)
{
    int n = w->shape->nranks, parts = w->shape->nparts;
    begin_file(w, "allgather", "allgather", n * parts, true);
    for (int r = 0; r < n; r++) {
        begin_rank(w, r, parts, n * parts, 0);
        for (int k = 1; k < n; k++) {
            pair_block(w, k);
            step(w, "s", (struct at){'i', 0}, (struct at){'o', r * parts}, parts, no_wait);
            int from = peer_of(w, k) * parts;
            step(w, "r", (struct at){'i', 0}, (struct at){'o', from}, parts, no_wait);
            end_block(w);
        }
        begin_block(w, -1, -1, 0);
        step(w, "cpy", (struct at){'i', 0}, (struct at){'o', r * parts}, parts, no_wait);
        end_block(w);
        end_rank(w);
    }
}

static void alltoall(struct writer *w)
{
    int n = w->shape->nranks, parts = w->shape->nparts;
    begin_file(w, "alltoall", "alltoall", n * parts, false);
    for (int r = 0; r < n; r++) {
        begin_rank(w, r, n * parts, n * parts, 0);
        for (int k = 1; k < n; k++) {
            int peer = peer_of(w, k);
            pair_block(w, k);
            step(w, "s", (struct at){'i', peer * parts}, (struct at){'o', r * parts}, parts,
                 no_wait);
            int from = w->shape->wrong && r == n - 1 && k == n - 1 ? r : peer;
            step(w, "r", (struct at){'i', r * parts}, (struct at){'o', from * parts}, parts,
                 no_wait);
            end_block(w);
        }
        begin_block(w, -1, -1, 0);
        step(w, "cpy", (struct at){'i', r * parts}, (struct at){'o', r * parts}, parts, no_wait);
        end_block(w);
        end_rank(w);
    }
}

/* Others' contributions to the own part come to scratch; a last block reduces them into `out`, and
 * waits for each before. Returns how many steps it has. */
static int reduce_block(struct writer *w, int own_in, int own_out)
{
    int n = w->shape->nranks, parts = w->shape->nparts;
    begin_block(w, -1, -1, 0);
    step(w, "cpy", (struct at){'i', own_in}, (struct at){'o', own_out}, parts, no_wait);
    for (int k = 1; k < n; k++) {
        const struct wait come = {k - 1, 1};
        step(w, "re", (struct at){'s', (k - 1) * parts}, (struct at){'o', own_out}, parts, come);
    }
    return w->step;
}

static void scatter_block(struct writer *w, int k)
{
    int parts = w->shape->nparts;
    pair_block(w, k);
    step(w, "s", (struct at){'i', peer_of(w, k) * parts}, (struct at){'s', 0}, parts, no_wait);
    step(w, "r", (struct at){'i', 0}, (struct at){'s', (k - 1) * parts}, parts, no_wait);
}

static void reduce_scatter(struct writer *w)
{
    int n = w->shape->nranks, parts = w->shape->nparts;
    begin_file(w, "reducescatter", "reducescatter", n * parts, true);
    for (int r = 0; r < n; r++) {
        begin_rank(w, r, n * parts, parts, (n - 1) * parts);
        for (int k = 1; k < n; k++) {
            scatter_block(w, k);
            end_block(w);
        }
        reduce_block(w, r * parts, 0);
        end_block(w);
        end_rank(w);
    }
}

static void pairs_allreduce(struct writer *w)
{
    int n = w->shape->nranks, parts = w->shape->nparts;
    begin_file(w, "pairs", "allreduce", n * parts, true);
    for (int r = 0; r < n; r++) {
        begin_rank(w, r, n * parts, n * parts, (n - 1) * parts);
        for (int k = 1; k < n; k++) {
            scatter_block(w, k);
            const struct wait reduced = {n - 1, n - 1};
            step(w, "s", (struct at){'o', r * parts}, (struct at){'o', r * parts}, parts, reduced);
            int from = peer_of(w, k) * parts;
            step(w, "r", (struct at){'o', 0}, (struct at){'o', from}, parts, no_wait);
            end_block(w);
        }
        reduce_block(w, r * parts, r * parts);
        end_block(w);
        end_rank(w);
    }
}

bool msccl_text_write(const char *path, enum msccl_text text, const struct msccl_shape *shape)
{
    static void (*const writers[MSCCL_TEXTS_])(struct writer *) = {
        [MSCCL_RING_ALLREDUCE] = ring_allreduce, [MSCCL_PAIRS_ALLREDUCE] = pairs_allreduce,
        [MSCCL_PAIRS_ALLGATHER] = allgather,     [MSCCL_PAIRS_REDUCESCATTER] = reduce_scatter,
        [MSCCL_PAIRS_ALLTOALL] = alltoall,
    };
    struct writer w = {.out = fopen(path, "we"), .shape = shape};
    if (!w.out) return false;
    writers[text](&w);
    fprintf(w.out, "</algo>\n");
    return fclose(w.out) == 0;
}
