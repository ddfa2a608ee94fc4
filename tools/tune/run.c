/* Starts `tutti perf` with one algorithm and reads its JSON. */
#include "tune.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MOST = 32 };

/* Only what is measured is forced: the program has collectives of its own. */
static void force(const char *variable, const char *operation, const char *word)
{
    char text[64];
    snprintf(text, sizeof(text), "%s:%s", operation, word);
    setenv(variable, text, 1);
}

static void set_environment(const struct tune_run *run)
{
    static const char *const off[] = {"NCCL_DEBUG",    "NCCL_TOPO_FILE",   "NCCL_ALGO",
                                      "NCCL_PROTO",    "NCCL_MIN_CTAS",    "NCCL_MAX_CTAS",
                                      "NCCL_BUFFSIZE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"};
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        unsetenv(off[i]);
    bool one = run->algo && !run->operations[1], several = run->algo && !one;
    if (one) force("NCCL_ALGO", run->operations[0], run->algo);
    if (one && run->proto) force("NCCL_PROTO", run->operations[0], run->proto);
    if (several) setenv("NCCL_ALGO", run->algo, 1);
    if (several && run->proto) setenv("NCCL_PROTO", run->proto, 1);
    setenv("NCCL_TUNER_PLUGIN", "none", 1);
    setenv("TUTTI_TUNE_FILE", run->figures ? run->figures : "none", 1);
    setenv("TUTTI_PROGRAM_DIR", "", 1);
    if (run->over_network) setenv("NCCL_P2P_DISABLE", "1", 1);
    if (run->over_network) setenv("NCCL_SHM_DISABLE", "1", 1);
}

/* As on a smaller machine: what ranks that share cores do to each other does not need many. */
static void pin(int cores)
{
    cpu_set_t all, few;
    CPU_ZERO(&few);
    if (cores <= 0 || sched_getaffinity(0, sizeof(all), &all)) return;
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&few) < cores; cpu++) {
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &few);
    }
    sched_setaffinity(0, sizeof(few), &few); /* fails: the cores are left as they are */
}

/* The child: never returns. Ends when its parent does. */
static void start_perf(const struct tune_run *run, pid_t parent, int to, int talk)
{
    char ranks[16], repeats[16], timeout[16];
    char *args[ARGS_MOST];
    const char *const fixed[] = {"tutti", "perf", "--json",   "-c",      "0",      "-f",
                                 "8",     "-n",   "10",       "-w",      "3",      "-a",
                                 "2",     "-T",   timeout,    "--ranks", ranks,    "-N",
                                 repeats, "-b",   run->least, "-e",      run->most};
    size_t n = 0;
    snprintf(ranks, sizeof(ranks), "%d", run->nranks);
    snprintf(repeats, sizeof(repeats), "%d", run->repeats);
    snprintf(timeout, sizeof(timeout), "%.1f", run->timeout_sec);
    set_environment(run);
    pin(run->cores);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        args[n++] = strdup(fixed[i]);
    for (size_t i = 0; run->operations[i]; i++)
        args[n++] = strdup(run->operations[i]);
    if (run->program) args[n++] = strdup("--program");
    if (run->program) args[n++] = strdup(run->program);
    args[n] = NULL;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    dup2(to, STDOUT_FILENO);
    if (talk >= 0) dup2(talk, STDERR_FILENO);
    execv("/proc/self/exe", args);
    _exit(127);
}

static bool is_repeat(const json_t *row, const json_t *of)
{
    const char *name = json_string_value(json_object_get(row, "operation"));
    const char *wanted = json_string_value(json_object_get(of, "operation"));
    return name && wanted && strcmp(name, wanted) == 0 &&
           json_integer_value(json_object_get(row, "bytes")) ==
               json_integer_value(json_object_get(of, "bytes"));
}

/* Least times over repeated rows; rows of one table come in the same order every time. */
static void report_rows(const json_t *rows, tune_seen seen, void *context)
{
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row)
    {
        const char *operation = json_string_value(json_object_get(row, "operation"));
        json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));
        double best = -1;
        bool first = true;
        size_t other;
        const json_t *twin;
        json_array_foreach(rows, other, twin)
        {
            if (!is_repeat(twin, row)) continue;
            if (other < index) first = false;
            const json_t *timed = json_object_get(twin, "out_of_place");
            double usec = json_number_value(json_object_get(timed, "usec"));
            if (usec > 0 && (best < 0 || usec < best)) best = usec;
        }
        if (first && operation && bytes > 0 && best > 0)
            seen(context, operation, (size_t)bytes, best);
    }
}

double tune_now_sec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool finish(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void describe(const struct tune_run *run, char text[96])
{
    const char *what = run->program ? run->program : run->algo ? run->algo : run->operations[0];
    snprintf(text, 96, "%.60s%s%s over %d ranks%s", what, run->proto ? " " : "",
             run->proto ? run->proto : "", run->nranks, run->over_network ? " by sockets" : "");
}

/* What is under way, on a terminal; NULL: nothing any more. */
static void progress(const struct tune_run *run)
{
    char text[96];
    if (!isatty(STDERR_FILENO)) return;
    if (run) describe(run, text);
    if (run)
        fprintf(stderr, "\r\033[Ktutti tune: %s, at most %.0f s left ...", text, run->timeout_sec);
    if (!run) fputs("\r\033[K", stderr);
}

/* With the first line that the measuring program said. */
static void report_failure(const struct tune_run *run, int talk)
{
    char text[96];
    char said[400] = "";
    describe(run, text);
    ssize_t got = talk >= 0 ? pread(talk, said, sizeof(said) - 1, 0) : 0;
    said[got > 0 ? got : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    fprintf(stderr, "tutti tune: %s could not be measured%s%s\n", text, *said ? ": " : "", said);
}

/* Room for a byte and the end, at least; NULL: there is no memory, and the text is gone. */
static char *with_room(char *text, size_t used, size_t *capacity)
{
    if (*capacity - used >= 2) return text;
    char *grown = realloc(text, 2 * *capacity);
    if (!grown) free(text);
    *capacity *= 2;
    return grown;
}

/* All that the child writes until it ends; owned. Past its time it is asked to end. */
static char *listen_to(pid_t pid, int from, double end_sec)
{
    size_t used = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    for (bool asked = false; text;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        double left = end_sec - tune_now_sec();
        if (left <= 0 && !asked) asked = kill(pid, SIGTERM) == 0;
        if (poll(&ready, 1, asked ? -1 : left > 0 ? (int)(left * 1e3) + 1 : 0) <= 0) continue;
        ssize_t got = read(from, text + used, capacity - used - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
        text = with_room(text, used, &capacity);
    }
    if (text) text[used] = '\0';
    return text;
}

bool tune_run(const struct tune_run *run, tune_seen seen, void *context)
{
    int pipe_fds[2];
    pid_t parent = getpid();
    double end_sec = tune_now_sec() + run->timeout_sec;
    if (run->timeout_sec <= 0 || pipe2(pipe_fds, O_CLOEXEC)) return false;
    int talk = memfd_create("tutti-tune-talk", MFD_CLOEXEC);
    progress(run);
    pid_t pid = fork();
    if (pid == 0) start_perf(run, parent, pipe_fds[1], talk);
    close(pipe_fds[1]);
    char *text = pid > 0 ? listen_to(pid, pipe_fds[0], end_sec) : NULL;
    close(pipe_fds[0]);
    json_t *all = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    bool good = pid > 0 && finish(pid) && all;
    progress(NULL);
    if (good) {
        report_rows(json_object_get(all, "results"), seen, context);
    } else {
        report_failure(run, talk);
    }
    if (talk >= 0) close(talk);
    json_decref(all);
    return good;
}

static void keep_one(void *context, const char *operation, size_t bytes, double usec)
{
    (void)operation, (void)bytes;
    *(double *)context = usec;
}

double tune_time(const struct tune_run *run)
{
    double usec = -1;
    return tune_run(run, keep_one, &usec) ? usec : -1;
}
