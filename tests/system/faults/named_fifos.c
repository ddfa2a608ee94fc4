/* Variables that name files, set to a FIFO that no process opens: no call waits for that.
 * Each goes on without the file and says so, or fails with a sentence that names it. */
#include "../harness/harness.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_SEC = 60 };

static const struct {
    const char *variable, *words; /* words: in a line of the log that has the path, too */
} cases[] = {
    {"NCCL_CONF_FILE", "is not a regular file and is not read"},
    {"NCCL_TOPO_FILE", "is not a regular file and is not read"},
    {"NCCL_GRAPH_FILE", "is not a regular file and is not read"},
    {"NCCL_TUNER_CONFIG_FILE", "is not a regular file and is not read"},
    {"NCCL_TOPO_DUMP_FILE", "cannot be written: No such device or address"},
    {"TUTTI_TUNE_FILE", "not a regular file"},
};

/* Variables are read once, so each case has a process. A status other than 0 is told by main. */
static void try_it(const char *fifo, const char *log, size_t which)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    alarm(TIMEOUT_SEC);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
    setenv("NCCL_DEBUG_FILE", log, 1);
    setenv(cases[which].variable, fifo, 1);
    if (ncclGetUniqueId(&id)) exit(1);
    if (ncclCommInitRank(&comm, 1, id, 0)) exit(2);
    exit(ncclCommDestroy(comm) ? 3 : 0); /* not _exit(): the bootstrap's thread is joined at exit */
}

/* A line with the path and the words. */
static bool is_reported(const char *log, const char *fifo, const char *words)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen(log, "r");
    while (file && !found && fgets(line, sizeof(line), file))
        found = strstr(line, fifo) && strstr(line, words);
    if (file) fclose(file);
    return found;
}

static int run(const char *folder, size_t which)
{
    char fifo[64], log[64];
    int status = 1;
    snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
    snprintf(log, sizeof(log), "%s/log", folder);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) try_it(fifo, log, which);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    bool reported = is_reported(log, fifo, cases[which].words);
    printf("%s: status %d, %s\n", cases[which].variable, status, reported ? "told" : "not told");
    CHECK(!remove(log));
    return status != 0 || !reported;
}

int main(void)
{
    char folder[] = "/tmp/tutti-fifos-XXXXXX";
    char fifo[64];
    int failed = 0;
    CHECK(mkdtemp(folder));
    snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
    CHECK(!mkfifo(fifo, 0600));
    for (size_t which = 0; which < sizeof(cases) / sizeof(cases[0]); which++)
        failed += run(folder, which);
    CHECK(!remove(fifo));
    CHECK(!rmdir(folder));
    return failed;
}
