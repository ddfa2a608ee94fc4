/* Processes with the same key work together; one with another key, or on one side only, is
 * told so at once, and the listener goes on listening.
 * usage: encryption MODE      MODE: keyed, plain: what rank 0 and its true peer are; alone: rank 0
 *                             waits for a rank that never comes; its time-out says who came */
#include "../harness/harness.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 20000 };

static const char right[] = "a key of at least thirty-two characters";
static const char wrong[] = "another key of thirty-two characters and more";

static ncclResult_t set_key(const char *key)
{
    ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
    config.mode = key ? NCCL_ENCRYPTION_MODE_PSK : NCCL_ENCRYPTION_MODE_NONE;
    config.psk = key;
    return ncclSetEncryption(&config);
}

static void use(ncclComm_t comm, int rank)
{
    float *values = harness_device_alloc(COUNT * sizeof(float));
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i % 100 + rank);
    NCCL(ncclAllReduce(values, values, COUNT, ncclFloat, ncclSum, comm, NULL));
    CUDA(cudaStreamSynchronize(NULL));
    for (int i = 0; i < COUNT; i++)
        CHECK(values[i] == (float)(2 * (i % 100) + 1));
    CUDA(cudaFree(values));
}

/* Rank 1 in a process of its own, as soon as it is given the id. */
static pid_t start_peer(const char *key, ncclResult_t wanted, int *pipe_out)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    *pipe_out = ends[1];
    if (child) {
        close(ends[0]);
        return child;
    }
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    CUDA(cudaSetDevice(1));
    NCCL(set_key(key));
    CHECK(read(ends[0], &id, sizeof(id)) == (ssize_t)sizeof(id));
    ncclResult_t rc = ncclCommInitRank(&comm, 2, id, 1);
    if (rc != wanted) {
        harness_fail(__FILE__, __LINE__, "rank 1: %d, not %d: %s", rc, wanted,
                     ncclGetLastError(NULL));
    }
    if (rc) {
        CHECK(strstr(ncclGetLastError(NULL), "encryption key"));
    } else {
        use(comm, 1);
        NCCL(ncclCommDestroy(comm));
    }
    exit(0);
}

static void finish(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void check_arguments(const char *own)
{
    ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
    config.mode = 2;
    CHECK(ncclSetEncryption(&config) == ncclInvalidArgument);
    config.mode = NCCL_ENCRYPTION_MODE_PSK;
    CHECK(ncclSetEncryption(&config) == ncclInvalidArgument);
    config.psk = "too short";
    CHECK(ncclSetEncryption(&config) == ncclInvalidArgument);
    config.psk = right;
    config.magic = 1;
    CHECK(ncclSetEncryption(&config) == ncclInvalidArgument);
    NCCL(set_key(wrong)); /* nothing talks yet: it may change */
    NCCL(ncclSetEncryption(NULL));
    NCCL(set_key(own));
}

static int wait_alone(void)
{
    int pipe;
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    setenv("TUTTI_INIT_TIMEOUT", "1", 1);
    pid_t peer = start_peer(wrong, ncclRemoteError, &pipe);
    NCCL(set_key(right));
    NCCL(ncclGetUniqueId(&id));
    CHECK(write(pipe, &id, sizeof(id)) == (ssize_t)sizeof(id));
    finish(peer);
    CHECK(ncclCommInitRank(&comm, 2, id, 0) == ncclTimeout);
    const char *why = ncclGetLastError(NULL);
    if (!strstr(why, "missing 1; ") || !strstr(why, "encryption key") || !strstr(why, " as rank 1"))
        harness_fail(__FILE__, __LINE__, "the time-out only says: %s", why);
    return 0;
}

int main(int argc, char **argv)
{
    bool keyed = argc > 1 && !strcmp(argv[1], "keyed");
    const char *own = keyed ? right : NULL;
    int pipes[3];
    setenv("TUTTI_DEVICES", "2", 1);
    if (argc > 1 && !strcmp(argv[1], "alone")) return wait_alone();
    pid_t peers[3] = {start_peer(wrong, ncclRemoteError, &pipes[0]),
                      start_peer(keyed ? NULL : right, ncclRemoteError, &pipes[1]),
                      start_peer(own, ncclSuccess, &pipes[2])};
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    check_arguments(own);
    NCCL(ncclGetUniqueId(&id));
    NCCL(set_key(own)); /* the same again */
    CHECK(set_key(keyed ? NULL : right) == ncclInvalidUsage);
    for (int i = 0; i < 2; i++) {
        CHECK(write(pipes[i], &id, sizeof(id)) == (ssize_t)sizeof(id));
        finish(peers[i]);
    }
    CHECK(write(pipes[2], &id, sizeof(id)) == (ssize_t)sizeof(id));
    NCCL(ncclCommInitRank(&comm, 2, id, 0));
    use(comm, 0);
    NCCL(ncclCommDestroy(comm));
    finish(peers[2]);
    return 0;
}
