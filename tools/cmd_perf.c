/* `tutti perf`: starts the measuring program as ranks; its options are described by the program
 * itself. */
#include "launch.h"
#include "tutti.h"

#include "tune/host.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The measuring program lies in the folder of our libraries, or in the build tree beside us. */
static bool find_program(char *path, size_t path_bytes)
{
    char home[PATH_MAX];
    char folder[PATH_MAX];
    bool installed = tutti_home(home, sizeof(home));
    if (!installed && !tutti_folder(folder, sizeof(folder))) return false;
    snprintf(path, path_bytes, "%s%s/tutti-perf", installed ? home : folder,
             installed ? "/bin" : "");
    if (!access(path, X_OK)) return true;
    fprintf(stderr, "tutti perf: there is no %s; was it installed as a whole?\n", path);
    return false;
}

/* Ranks asked for: --ranks N, --ranks=N. 0: not a number. */
static int ranks_of(int argc, char **argv)
{
    long ranks = 4;
    for (int i = 1; i < argc && argv[i]; i++) {
        const char *text = NULL;
        if (!strcmp(argv[i], "--ranks") && i + 1 < argc) text = argv[i + 1];
        if (!strncmp(argv[i], "--ranks=", 8)) text = argv[i] + 8;
        if (text && !tutti_parse_int(text, 1, 4096, &ranks)) return 0;
    }
    return (int)ranks;
}

/* How many devices a process drives: -t and -g, in any of their spellings. */
static int devices_per_process(int argc, char **argv)
{
    long product = 1;
    for (int i = 1; i < argc && argv[i]; i++) {
        long value = 1;
        const char *text = NULL;
        const char *a = argv[i];
        bool apart = !strcmp(a, "-t") || !strcmp(a, "-g") || !strcmp(a, "--nthreads") ||
                     !strcmp(a, "--ngpus");
        if (apart && i + 1 < argc) text = argv[i + 1];
        if (!strncmp(a, "--nthreads=", 11)) text = a + 11;
        if (!strncmp(a, "--ngpus=", 8)) text = a + 8;
        if (!apart && (!strncmp(a, "-t", 2) || !strncmp(a, "-g", 2)) && a[2]) text = a + 2;
        if (text && tutti_parse_int(text, 1, 512, &value)) product *= value;
    }
    return (int)product;
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
    if (pid < 0) return 0; /* the ranks will tell */
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

/* A file of `tutti tune` that is refused: ranks say so in the debug log only. */
static void tell_figures(void)
{
    struct tt_tune_host host;
    struct tt_tune_found found;
    tt_tune_host_find(&host, &found);
    if (!found.reason[0]) return;
    fprintf(stderr, "tutti perf: %s is refused: %s; the built-in figures are used\n", found.path,
            found.reason);
}

int cmd_perf(int argc, char **argv)
{
    char program[PATH_MAX];
    struct launch_options *options = calloc(1, sizeof(*options));
    char **args = calloc((size_t)argc + 2, sizeof(*args));
    int status = 2;
    if (!options || !args || !find_program(program, sizeof(program))) goto out;
    options->nranks = asks_help(argc, argv) ? 1 : ranks_of(argc, argv);
    if (options->nranks == 0) {
        status = tutti_usage_error("perf", "--ranks takes a number from 1 to 4096");
        goto out;
    }
    args[0] = program;
    for (int i = 1; i < argc; i++) {
        args[i] = argv[i];
    }
    int devices = options->nranks * devices_per_process(argc, argv);
    if (devices > 8 && !getenv("TUTTI_DEVICES") && !getenv("NCCL_TOPO_FILE")) {
        char text[16];
        snprintf(text, sizeof(text), "%d", devices);
        setenv("TUTTI_DEVICES", text, 1);
    }
    options->program = args;
    options->direct_rank0 = true;
    options->prefix = true;
    options->name = "perf";
    status = check_options(args, argc);
    if (status || asks_help(argc, argv)) goto out;
    tell_figures();
    status = launch_run(options);
out:
    free(args);
    free(options);
    return status;
}
