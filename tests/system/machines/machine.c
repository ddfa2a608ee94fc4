/* One rank of a communicator over several hosts of one machine file: rank r is device r % GPUS of
 * host r / GPUS. Sums up once, and tells when a value is wrong; then calls of several sizes, for
 * the log. Further arguments: the config's minCTAs and maxCTAs (0: undefined), then no more calls
 * but, with a third one, a message to each rank.
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 300007, MOST_BYTES = 8 << 20 };
static const size_t sizes[] = {8, 2048, 131072, 524288, 2097152, MOST_BYTES};

/* Every collective, of so many bytes as NCCL counts them; the values are maxima already. */
static int call_all(float *values, size_t bytes, int nranks, ncclComm_t comm)
{
    size_t part = bytes / (size_t)nranks;
    char *all = (char *)values, *own = all + MOST_BYTES;
    int rc = (int)ncclAllReduce(values, values, bytes, ncclInt8, ncclMax, comm, NULL);
    rc = rc ? rc : (int)ncclBroadcast(all, all, bytes, ncclInt8, 0, comm, NULL);
    rc = rc ? rc : (int)ncclReduce(all, own, bytes, ncclInt8, ncclMax, 0, comm, NULL);
    rc = rc ? rc : (int)ncclReduceScatter(all, own, part, ncclInt8, ncclMax, comm, NULL);
    return rc ? rc : (int)ncclAllGather(all, own, part, ncclInt8, comm, NULL);
}

static int report_each(float *values, int nranks, ncclComm_t comm)
{
    int rc = (int)ncclGroupStart();
    for (int peer = 0; peer < nranks && !rc; peer++) {
        rc = (int)ncclSend(values, 1, ncclFloat, peer, comm, NULL);
        rc = rc ? rc : (int)ncclRecv(values + COUNT + peer, 1, ncclFloat, peer, comm, NULL);
    }
    int end = (int)ncclGroupEnd();
    return rc ? rc : end;
}

static int argument(int argc, char **argv, int at)
{
    return argc > at ? atoi(argv[at]) : 0;
}

static int init(ncclComm_t *comm, ncclUniqueId id, int argc, char **argv)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int rank = atoi(getenv("RANK")), nranks = atoi(getenv("WORLD_SIZE"));
    if (argument(argc, argv, 2)) config.minCTAs = argument(argc, argv, 2);
    if (argument(argc, argv, 3)) config.maxCTAs = argument(argc, argv, 3);
    return (int)ncclCommInitRankConfig(comm, nranks, id, rank, &config);
}

int main(int argc, char **argv)
{
    int gpus = argc > 1 ? atoi(argv[1]) : 1;
    int rank = atoi(getenv("RANK")), nranks = atoi(getenv("WORLD_SIZE"));
    char host[16];
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    float *values = NULL, *plain = malloc(COUNT * sizeof(float));
    int wrong = 0;
    (void)snprintf(host, sizeof(host), "host%d", rank / gpus);
    setenv("NCCL_HOSTID", host, 0);
    memset(&id, 0, sizeof(id));
    for (int i = 0; i < COUNT; i++)
        plain[i] = (float)(i % 1000 + rank);
    int rc = (int)ncclGetUniqueId(&id); /* the same for all: NCCL_COMM_ID is set */
    rc = rc ? rc : (int)cudaSetDevice(rank % gpus);
    rc = rc ? rc : init(&comm, id, argc, argv);
    rc = rc ? rc : (int)cudaMalloc((void **)&values, 2 * MOST_BYTES);
    rc = rc ? rc : (int)cudaMemcpy(values, plain, COUNT * sizeof(float), cudaMemcpyHostToDevice);
    rc = rc ? rc : (int)ncclAllReduce(values, values, COUNT, ncclFloat, ncclSum, comm, NULL);
    rc = rc ? rc : (int)cudaMemcpy(plain, values, COUNT * sizeof(float), cudaMemcpyDeviceToHost);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]) && argc < 3 && !rc; k++)
        rc = call_all(values, sizes[k], nranks, comm);
    if (argc > 4) rc = rc ? rc : report_each(values, nranks, comm);
    rc = rc ? rc : (int)cudaStreamSynchronize(NULL);
    for (int i = 0; i < COUNT && !rc; i++)
        wrong += plain[i] != (float)(nranks * (i % 1000) + nranks * (nranks - 1) / 2);
    if (rc) printf("rank %d: %d: %s\n", rank, rc, ncclGetLastError(NULL));
    int end =
        (int)(rc ? ncclCommAbort(comm) : ncclCommDestroy(comm)); /* also after a failed init */
    if (end) printf("rank %d: at its end: %d: %s\n", rank, end, ncclGetLastError(NULL));
    if (wrong) printf("rank %d: %d values are wrong\n", rank, wrong);
    free(plain);
    return rc || end || wrong;
}
