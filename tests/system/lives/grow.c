/* A communicator of the first ranks grows by the others: by the id of any old rank, twice, in the
 * background, and out of a lone rank; wrong ids and ranks are refused. The world's communicator
 * only carries the id. usage: grow threads|processes */
#include "../harness/world.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 1000 };

static const struct world_rank *own_rank(const struct world_team *team)
{
    return &team->ranks[0];
}

static int expect(int found, int wanted, const char *what)
{
    if (found == wanted) return 0;
    printf("wrong: %s is %d, not %d (%s)\n", what, found, wanted, ncclGetLastError(NULL));
    return 1;
}

/* Sum over all ranks of the communicator, on the world's stream. */
static int use(const struct world_rank *own, ncclComm_t comm, int nranks)
{
    int *in, *out, wrong = 0, rank, count;
    world_check(ncclCommCount(comm, &count), "ncclCommCount");
    world_check(ncclCommUserRank(comm, &rank), "ncclCommUserRank");
    world_check_cuda(cudaMalloc((void **)&in, COUNT * sizeof(int)), "cudaMalloc");
    world_check_cuda(cudaMalloc((void **)&out, COUNT * sizeof(int)), "cudaMalloc");
    for (int i = 0; i < COUNT; i++)
        in[i] = rank + i;
    world_check(ncclAllReduce(in, out, COUNT, ncclInt32, ncclSum, comm, own->stream),
                "ncclAllReduce");
    world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    for (int i = 0; i < COUNT; i++)
        wrong |= out[i] != nranks * i + nranks * (nranks - 1) / 2;
    world_check_cuda(cudaFree(in), "cudaFree");
    world_check_cuda(cudaFree(out), "cudaFree");
    return expect(count, nranks, "size") + expect(rank, own->rank, "rank") +
           expect(wrong, 0, "count of wrong sums");
}

/* All ranks get the id of `maker`. */
static void pass_id(const struct world_rank *own, int maker, ncclUniqueId *id)
{
    void *carrier;
    world_check_cuda(cudaMalloc(&carrier, sizeof(*id)), "cudaMalloc");
    if (own->rank == maker) memcpy(carrier, id, sizeof(*id));
    world_check(ncclBcast(carrier, sizeof(*id), ncclInt8, maker, own->comm, own->stream),
                "ncclBcast");
    world_check_cuda(cudaStreamSynchronize(own->stream), "cudaStreamSynchronize");
    memcpy(id, carrier, sizeof(*id));
    world_check_cuda(cudaFree(carrier), "cudaFree");
}

/* The first `count` ranks, each under its own number; NULL elsewhere. */
static ncclComm_t first_ranks(const struct world_rank *own, int count)
{
    ncclComm_t comm;
    int color = own->rank < count ? 0 : NCCL_SPLIT_NOCOLOR;
    world_check(ncclCommSplit(own->comm, color, own->rank, &comm, NULL), "ncclCommSplit");
    return comm;
}

static ncclResult_t await(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
        world_check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    return state;
}

struct grow_case {
    const char *name;
    int before, maker;
    bool all_pass_id; /* every old rank gives the id, not only its maker */
    bool background;
};

static int grow_once(const struct world_rank *own, const struct grow_case *c)
{
    ncclComm_t parent = first_ranks(own, c->before), grown;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    if (c->background) config.blocking = 0;
    if (own->rank == c->maker) world_check(ncclCommGetUniqueId(parent, &id), "GetUniqueId");
    pass_id(own, c->maker, &id);
    bool gives = !parent || c->all_pass_id;
    world_check(ncclCommGrow(parent, RANKS, gives ? &id : NULL, parent ? -1 : own->rank, &grown,
                             c->background ? &config : NULL),
                "ncclCommGrow");
    if (c->background) world_check(await(grown), "a grow in the background");
    int failures = use(own, grown, RANKS);
    if (parent) failures += use(own, parent, c->before); /* the parent lives on */
    if (parent) world_check(ncclCommDestroy(parent), "ncclCommDestroy of the parent");
    failures += use(own, grown, RANKS);
    world_check(ncclCommDestroy(grown), "ncclCommDestroy");
    if (failures) printf("  in case %s\n", c->name);
    return failures;
}

/* 1 -> 3 -> 4: the second grow starts from what the first made. */
static int grow_twice(const struct world_rank *own)
{
    ncclComm_t comm = first_ranks(own, 1), grown;
    ncclUniqueId id;
    int failures = 0;
    if (own->rank == 0) world_check(ncclCommGetUniqueId(comm, &id), "GetUniqueId");
    pass_id(own, 0, &id);
    if (own->rank < 3) {
        world_check(ncclCommGrow(comm, 3, &id, comm ? -1 : own->rank, &grown, NULL), "Grow to 3");
        failures += use(own, grown, 3);
        world_check(ncclCommDestroy(comm), "ncclCommDestroy");
        comm = grown;
    }
    if (own->rank == 2) world_check(ncclCommGetUniqueId(comm, &id), "GetUniqueId");
    pass_id(own, 2, &id);
    world_check(ncclCommGrow(comm, 4, comm ? NULL : &id, comm ? -1 : own->rank, &grown, NULL),
                "Grow to 4");
    failures += use(own, grown, 4);
    world_check(ncclCommDestroy(comm), "ncclCommDestroy");
    world_check(ncclCommDestroy(grown), "ncclCommDestroy");
    return failures;
}

/* What is refused, by whom, and that the next grow works all the same. */
static int refusals(const struct world_rank *own)
{
    ncclComm_t parent = first_ranks(own, 2), grown = NULL;
    ncclUniqueId id, plain;
    int failures = 0;
    world_check(ncclGetUniqueId(&plain), "ncclGetUniqueId");
    if (own->rank == 0) world_check(ncclCommGetUniqueId(parent, &id), "GetUniqueId");
    pass_id(own, 0, &id);
    if (parent) {
        failures += expect(ncclCommGrow(parent, 2, &id, -1, &grown, NULL), ncclInvalidArgument,
                           "a size that is no growth");
        failures += expect(ncclCommGrow(parent, 4, &id, own->rank, &grown, NULL),
                           ncclInvalidArgument, "an old rank with a number");
        failures += expect(ncclCommGrow(parent, 4, &plain, -1, &grown, NULL), ncclInvalidArgument,
                           "an id of another kind at an old rank");
        world_check(ncclCommAbort(grown), "ncclCommAbort");
        /* that was child 2 of this communicator, so the id of child 1 has had its day */
        failures += expect(ncclCommGrow(parent, 4, &id, -1, &grown, NULL), ncclInvalidArgument,
                           "an id of an earlier child");
        world_check(ncclCommAbort(grown), "ncclCommAbort");
        failures += use(own, parent, 2);
        world_check(ncclCommDestroy(parent), "ncclCommDestroy");
    } else {
        failures += expect(ncclCommGrow(NULL, 4, &id, 1, &grown, NULL), ncclInvalidArgument,
                           "a new rank with a taken number");
        failures += expect(ncclCommGrow(NULL, 4, &plain, 3, &grown, NULL), ncclInvalidArgument,
                           "an id of a new communicator");
        failures +=
            expect(ncclCommGrow(NULL, 4, NULL, 3, &grown, NULL), ncclInvalidArgument, "no id");
        failures += expect(ncclCommGrow(NULL, 4, &id, 4, &grown, NULL), ncclInvalidArgument,
                           "a rank beyond the size");
        failures += expect(ncclCommInitRank(&grown, 4, id, own->rank), ncclInvalidArgument,
                           "an id of a grow in an init");
        failures += expect(grown == NULL, 1, "that nothing was made");
    }
    return failures;
}

enum { OLD = 3, TOO_LONG_SEC = 30 };

struct disagreement {
    const char *name;
    int given[RANKS]; /* which rank's id each is given, or: */
    int late;         /* that rank calls when the others wait; -1: none */
    int too_small;    /* that rank asks for no growth; -1: none */
};
/* rank 0's, made before a Split; not one; rank 0's or 1's, for a new communicator */
enum { OUTDATED = 2, DAMAGED = 3, PLAIN = 4, IDS = 5 };

/* All ranks, old and new, hear at once that they do not meet. */
static int disagree(const struct world_rank *own, const struct disagreement *c)
{
    ncclComm_t parent = first_ranks(own, OLD), grown = NULL, child;
    ncclUniqueId ids[IDS];
    struct timespec begun, ended;
    memset(&ids[DAMAGED], 0, sizeof(ids[DAMAGED]));
    if (own->rank == 0) world_check(ncclCommGetUniqueId(parent, &ids[OUTDATED]), "GetUniqueId");
    pass_id(own, 0, &ids[OUTDATED]);
    if (parent) {
        world_check(ncclCommSplit(parent, 0, own->rank, &child, NULL), "ncclCommSplit");
        world_check(ncclCommDestroy(child), "ncclCommDestroy");
    }
    if (own->rank < 2) world_check(ncclCommGetUniqueId(parent, &ids[own->rank]), "GetUniqueId");
    for (int maker = 0; maker < 2; maker++)
        pass_id(own, maker, &ids[maker]);
    if (own->rank == c->given[0]) world_check(ncclGetUniqueId(&ids[PLAIN]), "ncclGetUniqueId");
    pass_id(own, c->given[0], &ids[PLAIN]);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    if (own->rank == c->late) usleep(1500000);
    int size = own->rank == c->too_small ? OLD : RANKS;
    int failures = expect(ncclCommGrow(parent, size, &ids[c->given[own->rank]],
                                       parent ? -1 : own->rank, &grown, NULL),
                          ncclInvalidArgument, c->name);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    failures += expect(ended.tv_sec - begun.tv_sec > TOO_LONG_SEC, 0, "a long wait");
    if (grown) world_check(ncclCommAbort(grown), "ncclCommAbort");
    failures += use(own, own->comm, RANKS); /* all have heard */
    if (parent) world_check(ncclCommAbort(parent), "ncclCommAbort");
    return failures;
}

static int disagreements(const struct world_rank *own)
{
    static const struct disagreement cases[] = {
        {"a grow by two ids", {0, 1, 0, 1}, -1, -1},
        {"a grow by two ids, rank 0 late", {0, 1, 0, 0}, 0, -1},
        {"a grow by two ids, the other late", {0, 1, 0, 1}, 1, -1},
        {"a new rank by another id", {0, 0, 0, 1}, -1, -1},
        {"a grow by an outdated id", {OUTDATED, OUTDATED, OUTDATED, OUTDATED}, -1, -1},
        {"a new rank by an outdated id", {0, 0, 0, OUTDATED}, -1, -1},
        {"a new rank by an outdated id, its maker late", {1, 1, 1, OUTDATED}, 0, -1},
        {"a rank by a damaged id", {0, 0, DAMAGED, 0}, -1, -1},
        {"a grow to another size", {0, 0, 0, 0}, -1, 1},
        {"a new rank by an id of a new communicator", {0, 0, 0, PLAIN}, -1, -1},
        {"a new rank by such an id, the others late", {1, 1, 1, PLAIN}, 0, -1},
    };
    int failures = 0;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        failures += disagree(own, &cases[k]);
    return failures;
}

/* The communicator ends when its rank 0 has made an id, and a new rank waits at that: `late` before
 * that one comes. Where its other rank ends it, rank 0 hears of it and does not grow any more. */
static int ends_before(const struct world_rank *own, int ender, bool late)
{
    ncclComm_t parent = first_ranks(own, 2), grown = NULL;
    ncclUniqueId id;
    int failures = 0;
    if (own->rank == 0) world_check(ncclCommGetUniqueId(parent, &id), "GetUniqueId");
    pass_id(own, 0, &id);
    if (own->rank == ender) {
        if (!late) usleep(100000);
        (void)ncclCommAbort(parent);
    } else if (own->rank == 2) {
        if (late) usleep(100000);
        failures = expect(ncclCommGrow(NULL, 3, &id, 2, &grown, NULL), ncclRemoteError,
                          "a grow of a communicator that has ended");
        failures += expect(strstr(ncclGetLastError(NULL), "ended or failed before") != NULL, 1,
                           "that the sentence says so");
        if (grown) world_check(ncclCommAbort(grown), "ncclCommAbort");
    }
    failures += use(own, own->comm, RANKS); /* all have heard */
    if (parent && own->rank != ender) world_check(ncclCommAbort(parent), "ncclCommAbort");
    return failures;
}

static int body(struct world_team *team)
{
    static const struct grow_case cases[] = {
        {"by rank 0", 2, 0, false, false},      {"by the last rank", 3, 2, false, false},
        {"all give the id", 2, 1, true, false}, {"in the background", 2, 1, false, true},
        {"from one", 1, 0, true, false},
    };
    const struct world_rank *own = own_rank(team);
    int failures = 0;
    world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        failures += grow_once(own, &cases[k]);
    failures += grow_twice(own);
    failures += refusals(own);
    failures += ends_before(own, 0, false);
    failures += ends_before(own, 0, true);
    failures += ends_before(own, 1, false);
    return failures + disagreements(own);
}

int main(int argc, char **argv)
{
    const struct world_mode *mode = argc > 1 ? world_mode(argv[1]) : NULL;
    if (!mode || strcmp(argv[1], "one-thread") == 0 || strcmp(argv[1], "mixed") == 0) {
        fprintf(stderr, "usage: grow threads|processes\n");
        return 2;
    }
    int failures = world_run(mode, RANKS, body, NULL);
    printf("%d wrong\n", failures);
    return failures ? 1 : 0;
}
