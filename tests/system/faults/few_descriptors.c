/* Two processes that may open few files: their init ends, and where it fails a rank names
 * descriptors as the cause, in its log or its error. */
#include "../harness/harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_SEC = 120, LEAST = 6, MOST = 14 };

/* Everything it says goes to `log`; the result is the status. */
static void try_it(int rank, int port, rlim_t most, const char *log)
{
    const struct rlimit limit = {most, most};
    char address[64];
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    alarm(TIMEOUT_SEC);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) _exit(100);
    closefrom(3);
    if (setrlimit(RLIMIT_NOFILE, &limit)) _exit(101);
    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    setenv("NCCL_COMM_ID", address, 1);
    setenv("TUTTI_SECRET", "0123456789abcdef", 1);
    setenv("TUTTI_INIT_TIMEOUT", "3", 1);
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    setenv("NCCL_DEBUG", "WARN", 1);
    ncclResult_t rc = ncclGetUniqueId(&id);
    if (!rc) rc = ncclCommInitRank(&comm, 2, id, rank);
    if (rc) fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(NULL));
    if (!rc) ncclCommDestroy(comm);
    _exit((int)rc);
}

static bool is_named(const char *log)
{
    char text[16384];
    FILE *file = fopen(log, "r");
    const size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[length] = '\0';
    if (file) fclose(file);
    return strstr(text, "no descriptor is left") != NULL;
}

/* False: a rank hung or died, or no rank knew why it failed. */
static bool run(rlim_t most, const char *log)
{
    const int port = 20000 + (int)((getpid() * 16 + (int)most) % 12000);
    pid_t pids[2];
    int failed = 0;
    bool ended = true;
    for (int rank = 0; rank < 2; rank++) {
        pids[rank] = fork();
        CHECK(pids[rank] >= 0);
        if (pids[rank] == 0) try_it(rank, port, most, log);
    }
    for (int rank = 0; rank < 2; rank++) {
        int status = 1;
        CHECK(waitpid(pids[rank], &status, 0) == pids[rank]);
        ended = ended && WIFEXITED(status) && WEXITSTATUS(status) < 100;
        failed += status != 0;
    }
    const bool named = is_named(log);
    printf("%d descriptors: %d failed%s%s\n", (int)most, failed, ended ? "" : ", not all ended",
           named ? ", named" : "");
    CHECK(!remove(log));
    return ended && (failed == 0 || named);
}

int main(void)
{
    char folder[] = "/tmp/tutti-few-XXXXXX";
    char log[64];
    int wrong = 0;
    CHECK(mkdtemp(folder));
    snprintf(log, sizeof(log), "%s/log", folder);
    for (rlim_t most = LEAST; most <= MOST; most++)
        wrong += !run(most, log);
    CHECK(!rmdir(folder));
    return wrong;
}
