/* What TUTTI_SECRET_FILE may name: a regular file of this user that no other user reads, long
 * enough. Everything else is refused at once; a FIFO without a writer once hung. */
#include "../harness/harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_SEC = 60, OTHER_USER = 65534 };

enum kind { REGULAR, FIFO, FOLDER, FOREIGN };

static const struct {
    const char *name, *text, *words; /* words: of the refusal; NULL: it is taken */
    enum kind kind;
    mode_t mode;
} cases[] = {
    {"a good file", "0123456789abcdef", NULL, REGULAR, 0600},
    {"readable by others", "0123456789abcdef", "others may read it", REGULAR, 0640},
    {"too short", "0123456789", "16 are needed", REGULAR, 0600},
    {"a FIFO", "", "not a regular file", FIFO, 0600},
    {"a folder", "", "not a regular file", FOLDER, 0700},
    {"another user's", "0123456789abcdef", "belongs to user 65534", FOREIGN, 0600},
};

static bool write_file(const char *path, size_t which)
{
    const char *text = cases[which].text;
    int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
    bool made = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (cases[which].kind == FOREIGN) made = made && fchown(fd, OTHER_USER, OTHER_USER) == 0;
    return made && fchmod(fd, cases[which].mode) == 0 && close(fd) == 0;
}

static bool make(const char *path, size_t which)
{
    switch (cases[which].kind) {
    case FIFO: return mkfifo(path, 0600) == 0;
    case FOLDER: return mkdir(path, 0700) == 0;
    default: return write_file(path, which);
    }
}

/* Variables are read once, so each case has a process. */
static void try_it(const char *path, size_t which)
{
    ncclUniqueId id;
    alarm(TIMEOUT_SEC);
    setenv("NCCL_COMM_ID", "127.0.0.1:9", 1);
    setenv("TUTTI_SECRET_FILE", path, 1);
    ncclResult_t rc = ncclGetUniqueId(&id);
    const char *words = cases[which].words;
    bool right = words ? rc == ncclInvalidUsage && strstr(ncclGetLastError(NULL), words) != NULL
                       : rc == ncclSuccess;
    if (!right) {
        harness_fail(__FILE__, __LINE__, "%s: code %d: %s", cases[which].name, (int)rc,
                     ncclGetLastError(NULL));
    }
    _exit(0);
}

static int run(const char *folder, size_t which)
{
    char path[64];
    int status = 1;
    snprintf(path, sizeof(path), "%s/secret-%zu", folder, which);
    if (cases[which].kind == FOREIGN && geteuid() != 0) return 0; /* needs chown */
    CHECK(make(path, which));
    pid_t pid = fork();
    if (pid == 0) try_it(path, which);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    printf("%s: %s\n", cases[which].name, status ? "wrong" : "ok");
    CHECK(!remove(path));
    return status != 0;
}

int main(void)
{
    char folder[] = "/tmp/tutti-secret-XXXXXX";
    int failed = 0;
    CHECK(mkdtemp(folder));
    for (size_t which = 0; which < sizeof(cases) / sizeof(cases[0]); which++)
        failed += run(folder, which);
    CHECK(!rmdir(folder));
    return failed;
}
