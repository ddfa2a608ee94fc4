/* See checked.h. */
#include "checked.h"

#include <stdint.h>
#include <stdio.h>

static int32_t number(int rank, size_t index)
{
    return (int32_t)((size_t)rank * 1000003u + index * 7u);
}

static void fill(const struct world_team *team, void *const *in, size_t count)
{
    for (int k = 0; k < team->count; k++) {
        int32_t *own = in[k];
        for (size_t i = 0; i < count; i++) {
            own[i] = number(team->ranks[k].rank, i);
        }
    }
}

static void finish(const struct world_team *team)
{
    world_check(ncclGroupEnd(), "ncclGroupEnd");
    for (int k = 0; k < team->count; k++) {
        world_check_cuda(cudaStreamSynchronize(team->ranks[k].stream), "cudaStreamSynchronize");
    }
}

static int wrong(const char *what, int rank, size_t index)
{
    printf("wrong: %s, rank %d, element %zu\n", what, rank, index);
    return 1;
}

static float term(int rank, size_t index)
{
    return (float)((index + (size_t)rank) % 64);
}

static float sum_at(size_t index, int nranks)
{
    float sum = 0;
    for (int r = 0; r < nranks; r++) {
        sum += term(r, index);
    }
    return sum;
}

static int check_sums(const struct world_team *team, void *const *out, size_t count)
{
    int failures = 0;
    for (int k = 0; k < team->count; k++) {
        const float *own = out[k];
        for (size_t i = 0; i < count; i++) {
            if (own[i] == sum_at(i, team->nranks)) continue;
            failures += wrong("AllReduce", team->ranks[k].rank, i);
            break;
        }
    }
    return failures;
}

int checked_allreduce(struct world_team *team, void *const *in, void *const *out, size_t count)
{
    for (int k = 0; k < team->count; k++) {
        float *own = in[k];
        for (size_t i = 0; i < count; i++) {
            own[i] = term(team->ranks[k].rank, i);
        }
    }
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < team->count; k++) {
        const struct world_rank *own = &team->ranks[k];
        world_check(
            ncclAllReduce(in[k], out[k], count, ncclFloat32, ncclSum, own->comm, own->stream),
            "ncclAllReduce");
    }
    finish(team);
    return check_sums(team, out, count);
}

int checked_alltoall(struct world_team *team, void *const *in, void *const *out, size_t count)
{
    int failures = 0;
    size_t total = count * (size_t)team->nranks;
    fill(team, in, total);
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < team->count; k++) {
        const struct world_rank *own = &team->ranks[k];
        world_check(ncclAlltoAll(in[k], out[k], count, ncclInt32, own->comm, own->stream),
                    "ncclAlltoAll");
    }
    finish(team);
    for (int k = 0; k < team->count; k++) {
        const int32_t *own = out[k];
        size_t mine = (size_t)team->ranks[k].rank * count;
        for (size_t i = 0; i < total; i++) {
            if (own[i] == number((int)(i / count), mine + i % count)) continue;
            failures += wrong("AlltoAll", team->ranks[k].rank, i);
            break;
        }
    }
    return failures;
}

static int check_from(const struct world_team *team, void *const *out, size_t count, int source,
                      const char *what)
{
    int failures = 0, n = team->nranks;
    for (int k = 0; k < team->count; k++) {
        const int32_t *own = out[k];
        int from = source >= 0 ? source : (team->ranks[k].rank + n - 1) % n;
        for (size_t i = 0; i < count; i++) {
            if (own[i] == number(from, i)) continue;
            failures += wrong(what, team->ranks[k].rank, i);
            break;
        }
    }
    return failures;
}

int checked_broadcast(struct world_team *team, void *const *in, void *const *out, size_t count,
                      int root)
{
    fill(team, in, count);
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < team->count; k++) {
        const struct world_rank *own = &team->ranks[k];
        world_check(ncclBroadcast(in[k], out[k], count, ncclInt32, root, own->comm, own->stream),
                    "ncclBroadcast");
    }
    finish(team);
    return check_from(team, out, count, root, "Broadcast");
}

int checked_ring(struct world_team *team, void *const *in, void *const *out, size_t count)
{
    int n = team->nranks;
    fill(team, in, count);
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < team->count; k++) {
        const struct world_rank *own = &team->ranks[k];
        world_check(ncclSend(in[k], count, ncclInt32, (own->rank + 1) % n, own->comm, own->stream),
                    "ncclSend");
        world_check(
            ncclRecv(out[k], count, ncclInt32, (own->rank + n - 1) % n, own->comm, own->stream),
            "ncclRecv");
    }
    finish(team);
    return check_from(team, out, count, -1, "Send and Recv");
}
