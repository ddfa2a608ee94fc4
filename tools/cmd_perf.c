/* `tutti perf`: starts the measuring program as ranks; its options are described by the program
 * itself. */
#include "launch/launch.h"
#include "tutti.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The measuring program lies in the folder of our libraries, or in the build tree beside us. */
static bool find_program(char *path, size_t path_bytes)
{
    char home[PATH_MAX / 2];
    char folder[PATH_MAX / 2];
    bool installed = tutti_home(home, sizeof(home));
    if (!installed && !tutti_folder(folder, sizeof(folder))) return false;
    snprintf(path, path_bytes, "%s%s/tutti-perf", installed ? home : folder,
             installed ? "/bin" : "");
    if (!access(path, X_OK)) return true;
    fprintf(stderr, "tutti perf: there is no %s; was it installed as a whole?\n", path);
    return false;
}

/* The last value of an option in any of its spellings: "-T 5", "-T5", "--timeout 5", "--timeout=5".
 * `letter` 0: it has none. NULL: not given. */
static const char *value_of(int argc, char **argv, char letter, const char *name)
{
    const char *value = NULL;
    size_t len = strlen(name);
    for (int i = 1; i < argc && argv[i]; i++) {
        const char *a = argv[i];
        bool is_long = !strncmp(a, "--", 2) && !strncmp(a + 2, name, len);
        bool is_short = letter && a[0] == '-' && a[1] == letter;
        if ((is_long && !a[2 + len]) || (is_short && !a[2])) value = argv[i + 1];
        if (is_long && a[2 + len] == '=') value = a + 3 + len;
        if (is_short && a[2]) value = a + 2;
    }
    return value;
}

/* A whole number from 1 to `most`; `otherwise` when the option is not given, 0 for no number. */
static int number_of(const char *text, int otherwise, int most)
{
    long number = otherwise;
    if (text && !tutti_parse_int(text, 1, most, &number)) return 0;
    return (int)number;
}

/* Far more ranks than cores: said before minutes pass in silence. */
static void report_oversubscribed(int nranks)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus)) return;
    int ncores = CPU_COUNT(&cpus);
    if (nranks <= 32 * ncores) return;
    fprintf(stderr,
            "tutti perf: %d ranks share %d core(s): starting them alone takes long; -T SECONDS "
            "bounds it, fewer ranks measure more\n",
            nranks, ncores);
}

/* One clock for all ranks: -T counts from here until they have met, however late each one starts.
 And whether
 * progress is shown, as rank 0's error is a pipe. */
static void write_since(char *word, size_t word_bytes)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(word, word_bytes, "--since=%lld.%09ld%s", (long long)now.tv_sec, now.tv_nsec,
             isatty(STDERR_FILENO) ? ",terminal" : "");
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return true;
    }
    return false;
}

/* Let the measuring program itself check the options, once and before any rank starts: 0 when they
 * are good, else its exit status. args has room for one more word. */
static int check_options(char **args, int argc)
{
    char dry_run[] = "--dry-run";
    int status = 0;
    pid_t pid = fork();
    if (pid < 0) return 0; /* the ranks will report it */
    if (pid == 0) {
        memmove(args + 2, args + 1, (size_t)argc * sizeof(*args));
        args[1] = dry_run;
        execv(args[0], args);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

/* --program: checked here; its operation is measured when none is named. */
static int take_program(int argc, char **argv, int nranks, char **args, int *nargs)
{
    const char *path = value_of(argc, argv, 0, "program"), *operation = NULL;
    if (!path || asks_help(argc, argv)) return 0;
    int status = perf_program_use(path, nranks, argc, argv, &operation);
    for (int i = 1; i < argc && operation; i++) {
        if (!strcmp(argv[i], operation)) operation = NULL;
    }
    if (!status && operation) args[(*nargs)++] = (char *)(uintptr_t)operation;
    return status;
}

/* A launcher made this process one of several ranks (mpirun, srun, tutti run): it is a rank and
 * starts none, unless --ranks says so. A batch script of Slurm is no rank. */
static bool is_rank(int argc, char **argv)
{
    static const char *const names[][2] = {{"RANK", "WORLD_SIZE"},
                                           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    if (value_of(argc, argv, 0, "ranks") || value_of(argc, argv, 0, "program")) return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *size = getenv(names[i][1]);
        if (getenv(names[i][0]) && size && strtol(size, NULL, 10) > 1) return true;
    }
    return false;
}

int cmd_perf(int argc, char **argv)
{
    char program[PATH_MAX];
    struct launch_options *options = calloc(1, sizeof(*options));
    char **args = calloc((size_t)argc + 4, sizeof(*args));
    char since[64];
    int status = 2;
    if (!options || !args || !find_program(program, sizeof(program))) goto out;
    if (!asks_help(argc, argv) && is_rank(argc, argv)) {
        argv[0] = program;
        execv(program, argv);
        fprintf(stderr, "tutti perf: %s: %m\n", program);
        goto out;
    }
    options->nranks =
        asks_help(argc, argv) ? 1 : number_of(value_of(argc, argv, 0, "ranks"), 4, 4096);
    if (options->nranks == 0) {
        status = tutti_usage_error("perf", "--ranks takes a number from 1 to 4096");
        goto out;
    }
    write_since(since, sizeof(since));
    args[0] = program;
    args[1] = since;
    for (int i = 1; i < argc; i++) {
        args[i + 1] = argv[i];
    }
    int nargs = argc + 1;
    int threads = number_of(value_of(argc, argv, 't', "nthreads"), 1, 512);
    int devices = options->nranks * threads * number_of(value_of(argc, argv, 'g', "ngpus"), 1, 512);
    if (devices > 8 && !getenv("TUTTI_DEVICES") && !getenv("NCCL_TOPO_FILE")) {
        char text[16];
        snprintf(text, sizeof(text), "%d", devices);
        setenv("TUTTI_DEVICES", text, 1);
    }
    status = take_program(argc, argv, devices, args, &nargs);
    if (status) goto out;
    options->program = args;
    options->direct_rank0 = true;
    options->prefix = true;
    options->name = "perf";
    status = check_options(args, nargs);
    if (status || asks_help(argc, argv)) goto out;
    report_oversubscribed(options->nranks);
    status = launch_run(options);
out:
    free(args);
    free(options);
    return status;
}
