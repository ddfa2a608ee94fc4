/* Communicators of one process with networks and traffic classes of their own (netName,
 * trafficClass); a name that nothing has. NCCL_NET_PLUGIN names the tests' plugin TestNet, and
 * memory may not be used. */
#include "../harness/harness.h"

#include <string.h>

enum { N = 2, COUNT = 1000 };

static const struct net_case {
    const char *name, *line; /* what the log must say */
    int traffic_class;
} cases[] = {
    {"Socket", "Using network Socket", NCCL_CONFIG_UNDEF_INT},
    {"TestNet", "traffic class 5", 5},
    {"testnet", "traffic class 77", 77}, /* without regard to case */
    {NULL, "Using network TestNet", NCCL_CONFIG_UNDEF_INT},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void make(struct harness_rank *r, const struct net_case *given, const ncclUniqueId *id,
                 ncclComm_t *comm)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.netName = given->name;
    config.trafficClass = given->traffic_class;
    NCCL(ncclCommInitRankConfig(comm, N, *id, r->rank, &config));
}

static void sum(const struct harness_rank *r, ncclComm_t comm)
{
    float *data = harness_device_alloc(COUNT * sizeof(*data));
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)(r->rank + i);
    NCCL(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
    for (int i = 0; i < COUNT; i++)
        CHECK((int)data[i] == 2 * i + 1);
    CUDA(cudaFree(data));
}

static void all_at_once(struct harness_rank *r)
{
    const ncclUniqueId *ids = r->arg;
    ncclComm_t comms[CASES];
    for (int k = 0; k < CASES; k++)
        make(r, &cases[k], &ids[k], &comms[k]);
    for (int k = 0; k < 2 * CASES; k++)
        sum(r, comms[k % CASES]);
    for (int k = 0; k < CASES; k++)
        NCCL(ncclCommDestroy(comms[k]));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t none = NULL;
    config.netName = "Pigeon";
    CHECK(ncclCommInitRankConfig(&none, N, ids[CASES], r->rank, &config) == ncclInvalidUsage);
    CHECK(strstr(ncclGetLastError(NULL), "Pigeon"));
    if (none) NCCL(ncclCommAbort(none));
}

int main(int argc, char **argv)
{
    static char log[1 << 20];
    static ncclUniqueId ids[CASES + 1];
    const char path[] = "/tmp/tutti-net-name.log";
    char own[64];
    (void)argc, (void)argv;
    snprintf(own, sizeof(own), "%s.%ld", path, (long)(harness_now_sec() * 1e6));
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
    setenv("NCCL_DEBUG_FILE", own, 1);
    for (int k = 0; k <= CASES; k++)
        NCCL(ncclGetUniqueId(&ids[k]));
    harness_threads(N, all_at_once, ids, HARNESS_NO_COMM);
    FILE *file = fopen(own, "r");
    CHECK(file);
    log[fread(log, 1, sizeof(log) - 1, file)] = '\0';
    fclose(file);
    remove(own);
    for (int k = 0; k < CASES; k++) {
        if (!strstr(log, cases[k].line))
            harness_fail(__FILE__, __LINE__, "not in the log: %s", cases[k].line);
    }
    CHECK(strstr(log, "via NET/Socket/0") && strstr(log, "via NET/TestNet/0"));
    return 0;
}
