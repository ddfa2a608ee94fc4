/* Random fills, copies, host functions, graphs that are edited while they run, and collectives over
 * every kind of memory, on streams of two devices, by several host threads and by another process
 * on memory that it has lent. Each operation waits
 * for those that touched its buffers before, so the order of the calls is an oracle: a model that
 * does them one after the other has the same bytes. Every thread has a world of its own, with its
 * own buffers, streams and communicators; halfway each world goes to a new thread. Worlds live for
 * one round of ROUND operations; then the next round begins with the next seed, and all memory must
 * be back. usage: oracle SECONDS [SEED [THREADS]]; 0 seconds: one round, what a failure tells to
 * repeat. */
#include "oracle.h"

#include <time.h>

enum { ROUND = 400 };

static void operate(struct world *world)
{
    static const struct {
        const char *name;
        void (*run)(struct world *world);
    } rows[] = {
        {"fill", oracle_fill},
        {"copy", oracle_copy},
        {"copy", oracle_copy},
        {"call", oracle_call},
        {"reduce", oracle_reduce},
        {"renew", oracle_renew},
        {"use by the lender", oracle_shared_use},
        {"fill by the driver", oracle_driver_fill},
        {"fill of rows by the driver", oracle_driver_fill_rows},
        {"copy of rows by the driver", oracle_driver_rows},
        {"copy between devices by the driver", oracle_driver_peer},
        {"batch of copies by the driver", oracle_driver_batch},
        {"words by the driver", oracle_driver_words},
        {"kept launch", oracle_kept_launch},
        {"kept launch", oracle_kept_launch},
        {"kept edit", oracle_kept_edit},
        {"kept update", oracle_kept_update},
        {"kept reduce", oracle_kept_reduce},
    };
    size_t what = oracle_pick(world, sizeof(rows) / sizeof(rows[0]));
    world->doing = rows[what].name;
    OK(world, cudaSetDevice((int)oracle_pick(world, DEVICES)));
    rows[what].run(world);
}

static void compare(struct world *world)
{
    uint32_t *seen = malloc(BYTES);
    world->doing = "compare";
    for (int i = 0; i < STREAMS; i++) { /* not the device: another thread may capture */
        OK(world, cudaStreamSynchronize(world->streams[i]));
    }
    for (size_t b = 0; b < BUFFERS; b++) {
        const struct buffer *buffer = &world->buffers[b];
        OK(world, cudaMemcpy(seen, buffer->at, BYTES, cudaMemcpyDefault));
        for (size_t i = 0; i < WORDS; i++) {
            if (seen[i] == buffer->model[i]) continue;
            printf("buffer %zu (%s, device %d), word %zu: %08x, the model has %08x\n", b,
                   oracle_kind_name(buffer->kind), buffer->device, i, seen[i], buffer->model[i]);
            oracle_fail(world, __LINE__, "compare", 0);
        }
        world->run->checks++;
    }
    free(seen);
}

static void *work(void *arg)
{
    struct world *world = arg;
    for (int i = 0; i < ROUND / 2; i++) {
        world->number++;
        operate(world);
        if (oracle_pick(world, 50) == 0) compare(world);
    }
    compare(world);
    return NULL;
}

static void free_bytes(struct world *world, size_t *bytes)
{
    size_t total;
    for (int d = 0; d < DEVICES; d++) {
        OK(world, cudaSetDevice(d));
        OK(world, cudaDeviceSynchronize());
        OK(world, cudaMemGetInfo(&bytes[d], &total));
    }
}

/* One round of all worlds; returns the number of operations. */
static long play(struct run *run, uint64_t seed)
{
    size_t before[DEVICES], after[DEVICES];
    pthread_t threads[MAX_THREADS];
    struct world *worlds = calloc(run->nthreads, sizeof(*worlds));
    long operations = 0;
    for (size_t i = 0; i < run->nthreads; i++) {
        worlds[i].run = run;
        worlds[i].seed = seed;
        worlds[i].index = i;
        worlds[i].doing = "set-up";
        worlds[i].state = (seed * MAX_THREADS + i) * 2 + 1;
    }
    free_bytes(&worlds[0], before);
    for (size_t i = 0; i < run->nthreads; i++) {
        oracle_open(&worlds[i]);
    }
    for (int half = 0; half < 2; half++) {
        for (size_t i = 0; i < run->nthreads; i++) {
            if (pthread_create(&threads[i], NULL, work, &worlds[i])) abort();
        }
        for (size_t i = 0; i < run->nthreads; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    for (size_t i = 0; i < run->nthreads; i++) {
        oracle_close(&worlds[i]);
        operations += worlds[i].number;
    }
    free_bytes(&worlds[0], after);
    for (int d = 0; d < DEVICES && run->rounds; d++) { /* the first round leaves what is kept */
        if (before[d] == after[d]) continue;
        printf("device %d had %zu bytes free before the round and %zu after it\n", d, before[d],
               after[d]);
        oracle_fail(&worlds[0], __LINE__, "memory of a round", 0);
    }
    free(worlds);
    return operations;
}

int main(int argc, char **argv)
{
    static struct run run;
    setenv("TUTTI_DEVICES", "2", 0);
    time_t until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) * 1000;
    run.nthreads = argc > 3 ? strtoull(argv[3], NULL, 0) : 2;
    if (run.nthreads < 1 || run.nthreads > MAX_THREADS) return 2;
    setbuf(stdout, NULL);
    printf("seed %llu, %zu threads\n", (unsigned long long)seed, run.nthreads);
    oracle_lender_start(&run);
    oracle_variables_register();
    long operations = 0;
    do {
        operations += play(&run, seed++);
        run.rounds++;
    } while (time(NULL) < until);
    oracle_lender_stop(&run);
    printf("%ld operations in %ld rounds agree with the model in %ld comparisons of a buffer\n",
           operations, run.rounds, (long)run.checks);
    return 0;
}
