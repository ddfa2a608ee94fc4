/* What the library exports: one table for each version of NCCL's tuner interface. Each instance is
 * the same; the versions differ in what they pass. */
#include "nccl/tuner_v1.h"
#include "nccl/tuner_v2.h"
#include "nccl/tuner_v3.h"
#include "nccl/tuner_v4.h"
#include "nccl/tuner_v5.h"
#include "tuner.h"

#include <pthread.h>
#include <stdlib.h>

static const char name[] = "Tutti";

static ncclResult_t open_instance(struct tuner_size size, unsigned long long comm_id,
                                  ncclDebugLogger_t log, void **ctx)
{
    *ctx = tuner_create(&size, comm_id, log);
    return *ctx ? ncclSuccess : ncclSystemError;
}

static ncclResult_t close_instance(void *ctx)
{
    tuner_destroy(ctx);
    return ncclSuccess;
}

static bool tuned(ncclFunc_t func)
{
    return (int)func >= 0 && (int)func < TUNER_FUNCS;
}

/* ---- versions 3 to 6: a table is edited ---- */

/* Hosts may know fewer algorithms; what they do not have is impossible. */
static ncclResult_t edit(struct tuner *tuner, const struct tuner_question *question, float **opaque,
                         int nalgos, int *nchannels)
{
    float(*theirs)[TUNER_PROTOS] = (float(*)[TUNER_PROTOS])(void *)opaque;
    float table[TUNER_ALGOS][TUNER_PROTOS];
    if (!theirs || !nchannels || nalgos < 1) return ncclInvalidArgument;
    int common = nalgos < TUNER_ALGOS ? nalgos : TUNER_ALGOS;
    for (int a = 0; a < TUNER_ALGOS; a++) {
        for (int p = 0; p < TUNER_PROTOS; p++)
            table[a][p] = a < common ? theirs[a][p] : -1.0f;
    }
    tuner_answer(tuner, question, table, nchannels);
    for (int a = 0; a < common; a++) {
        for (int p = 0; p < TUNER_PROTOS; p++)
            theirs[a][p] = table[a][p];
    }
    return ncclSuccess;
}

static ncclResult_t ask_v4(void *ctx, ncclFunc_t func, size_t bytes, int nops, float **table,
                           int nalgos, int nprotos, int registered, int *nchannels)
{
    const struct tuner_question question = {(int)func, bytes, nops, registered != 0};
    if (!ctx || !tuned(func)) return ncclSuccess; /* no opinion */
    if (nprotos != TUNER_PROTOS) return ncclInvalidArgument;
    return edit(ctx, &question, table, nalgos, nchannels);
}

static ncclResult_t ask_v3(void *ctx, ncclFunc_t func, size_t bytes, int nops, float **table,
                           int nalgos, int nprotos, int *nchannels)
{
    return ask_v4(ctx, func, bytes, nops, table, nalgos, nprotos, 0, nchannels);
}

static ncclResult_t init_v5(void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes,
                            ncclDebugLogger_t log, ncclNvlDomainInfo_v5_t *domains,
                            ncclTunerConstants_v5_t *constants)
{
    (void)domains, (void)constants;
    return open_instance((struct tuner_size){nranks, nnodes}, comm_id, log, ctx);
}

static ncclResult_t init_v2(size_t nranks, size_t nnodes, ncclDebugLogger_t log, void **ctx)
{
    return open_instance((struct tuner_size){nranks, nnodes}, 0, log, ctx);
}

/* ---- versions 1 and 2: three numbers are answered ---- */

static void fill_possible(float table[TUNER_ALGOS][TUNER_PROTOS], int collnet, int nvls)
{
    for (int a = 0; a < TUNER_ALGOS; a++) {
        bool on = a == NCCL_ALGO_TREE || a == NCCL_ALGO_RING;
        if (a == NCCL_ALGO_COLLNET_DIRECT || a == NCCL_ALGO_COLLNET_CHAIN) on = collnet != 0;
        if (a == NCCL_ALGO_NVLS || a == NCCL_ALGO_NVLS_TREE) on = nvls != 0;
        bool simple_only = a > NCCL_ALGO_RING;
        for (int p = 0; p < TUNER_PROTOS; p++)
            table[a][p] = on && (!simple_only || p == NCCL_PROTO_SIMPLE) ? 1e30f : -1.0f;
    }
}

static ncclResult_t ask_v2(void *ctx, ncclFunc_t func, size_t bytes, int collnet, int nvls,
                           int nops, int *algo, int *proto, int *nchannels)
{
    const struct tuner_question question = {(int)func, bytes, nops, 0};
    float table[TUNER_ALGOS][TUNER_PROTOS];
    float least = 1e30f;
    if (!ctx || !tuned(func)) return ncclSuccess;
    if (!algo || !proto || !nchannels) return ncclInvalidArgument;
    fill_possible(table, collnet, nvls);
    tuner_answer(ctx, &question, table, nchannels);
    for (int a = 0; a < TUNER_ALGOS; a++) {
        for (int p = 0; p < TUNER_PROTOS; p++) {
            if (!(table[a][p] >= 0 && table[a][p] < least)) continue;
            least = table[a][p];
            *algo = a;
            *proto = p;
        }
    }
    return ncclSuccess;
}

/* Version 1 has no context: one instance, of the communicator that was started last. */
static struct {
    pthread_mutex_t lock;
    struct tuner *tuner;
} only = {.lock = PTHREAD_MUTEX_INITIALIZER};

static ncclResult_t init_v1(size_t nranks, size_t nnodes, ncclDebugLogger_t log)
{
    const struct tuner_size size = {nranks, nnodes};
    struct tuner *fresh = tuner_create(&size, 0, log);
    pthread_mutex_lock(&only.lock);
    struct tuner *old = only.tuner;
    only.tuner = fresh;
    pthread_mutex_unlock(&only.lock);
    tuner_destroy(old);
    return fresh ? ncclSuccess : ncclSystemError;
}

static ncclResult_t ask_v1(ncclFunc_t func, size_t bytes, int collnet, int nvls, int nops,
                           int *algo, int *proto, int *nchannels)
{
    pthread_mutex_lock(&only.lock);
    ncclResult_t rc = ask_v2(only.tuner, func, bytes, collnet, nvls, nops, algo, proto, nchannels);
    pthread_mutex_unlock(&only.lock);
    return rc;
}

static ncclResult_t destroy_v1(void)
{
    pthread_mutex_lock(&only.lock);
    struct tuner *old = only.tuner;
    only.tuner = NULL;
    pthread_mutex_unlock(&only.lock);
    return close_instance(old);
}

/* ---- exports ---- */

#define EXPORTED __attribute__((visibility("default")))
EXPORTED const ncclTuner_v1_t ncclTunerPlugin_v1 = {name, init_v1, ask_v1, destroy_v1};
EXPORTED const ncclTuner_v2_t ncclTunerPlugin_v2 = {name, init_v2, ask_v2, close_instance};
EXPORTED const ncclTuner_v3_t ncclTunerPlugin_v3 = {name, init_v2, ask_v3, close_instance};
EXPORTED const ncclTuner_v4_t ncclTunerPlugin_v4 = {name, init_v2, ask_v4, close_instance};
EXPORTED const ncclTuner_v5_t ncclTunerPlugin_v5 = {name, init_v5, ask_v4, close_instance};
EXPORTED const ncclTuner_v6_t ncclTunerPlugin_v6 = {name, init_v5, ask_v4, close_instance, NULL};
#undef EXPORTED
