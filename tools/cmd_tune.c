/* `tutti tune`: measures this machine and writes the figures that the library chooses by. */
#include "tutti.h"

#include "tune/tune.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REPEATS = 5, CROWD_CORES_MOST = 16, BUDGET_SEC = 40 };

struct tune_options {
    const char *output; /* NULL: the usual place */
    bool quick, force, show, help;
};

static const char help_text[] =
    "usage: tutti tune [--output FILE] [--quick] [--force]\n"
    "       tutti tune --show\n\n"
    "Measures in under a minute what the collectives of this machine are made of: a line\n"
    "handed to the other core, a switch between ranks that share one, bytes through user\n"
    "buffers, slots and sockets. Writes them to a file that every communicator then\n"
    "chooses by, in place of built-in figures. The file names the machine (processor and\n"
    "cores); elsewhere it is refused. Ranks that read different files use the built-in\n"
    "figures. Behind them stand measured times of rings and trees, which the tuner plugin\n"
    "`tutti` uses with TUTTI_TUNER_MODEL=measured.\n\n"
    "  -o, --output FILE  where to write (TUTTI_TUNE_FILE, else ~/.config/tutti/machine.tune);\n"
    "                     - is standard output\n"
    "      --quick        figures only, no times of rings and trees (a few seconds)\n"
    "      --force        measure although others keep the cores busy\n"
    "      --show         print the figures in use and where they are from\n"
    "  -h, --help         this text\n\n"
    "Exit status: 0 done, 1 not measured (busy machine, nowhere to write), 2 usage.\n\n"
    "examples:\n"
    "  tutti tune\n"
    "  tutti tune --quick -o -\n"
    "  TUTTI_TUNE_FILE=none tutti perf --ranks 4 allreduce     # with the built-in figures\n";

/* -1: go on. */
static int parse(int argc, char **argv, struct tune_options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (!strcmp(a, "--quick")) {
            options->quick = true;
        } else if (!strcmp(a, "--force")) {
            options->force = true;
        } else if (!strcmp(a, "--show")) {
            options->show = true;
        } else if (!strcmp(a, "-h") || !strcmp(a, "--help")) {
            fputs(help_text, stdout);
            return 0;
        } else if ((!strcmp(a, "-o") || !strcmp(a, "--output")) && i + 1 < argc) {
            options->output = argv[++i];
        } else if (!strncmp(a, "--output=", 9)) {
            options->output = a + 9;
        } else {
            return tutti_usage_error("tune", "'%s' is no option, or lacks its value; see --help",
                                     a);
        }
    }
    return -1;
}

static int show(void)
{
    char machine[TT_TUNE_MACHINE_BYTES], path[PATH_MAX];
    struct tt_tune_host host;
    uint64_t hash = 0;
    tt_tune_machine_name(machine);
    tt_tune_host_load(&host, &hash);
    bool placed = tt_tune_host_path(path, sizeof(path));
    printf("# %s\n", hash && placed ? path : "built-in figures");
    tt_tune_host_print(stdout, machine, &host);
    return 0;
}

/* ---- measuring ---- */

static bool others_are_busy(void)
{
    double load = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&load, 1) != 1 || load < 0.7 * (double)cores) return false;
    fprintf(stderr,
            "tutti tune: others use this machine (load %.1f on %ld cores); times would be "
            "theirs\n",
            load, cores);
    return true;
}

static double oneshot(int nranks, const char *bytes)
{
    const struct tune_run run = {.algo = "OneShot",
                                 .nranks = nranks,
                                 .least = bytes,
                                 .most = bytes,
                                 .operations = {"allreduce"},
                                 .repeats = REPEATS};
    return tune_time(&run);
}

static double between_two(const char *algo, const char *bytes, bool over_network)
{
    const struct tune_run run = {.algo = algo,
                                 .nranks = 2,
                                 .least = bytes,
                                 .most = bytes,
                                 .operations = {"allreduce"},
                                 .repeats = REPEATS,
                                 .over_network = over_network};
    return tune_time(&run);
}

static struct tune_samples measure(void)
{
    struct tune_samples s = {.cores = (int)sysconf(_SC_NPROCESSORS_ONLN),
                             .oneshot_8 = -1,
                             .oneshot_64k = -1,
                             .direct_1m = -1,
                             .crowd2_8 = -1,
                             .crowd4_8 = -1,
                             .crowd2_64k = -1};
    if (s.cores > 1) {
        s.oneshot_8 = oneshot(2, "8");
        s.oneshot_64k = oneshot(2, "64K");
        s.direct_1m = between_two("Direct", "1M", false);
    }
    if (s.cores <= CROWD_CORES_MOST) {
        s.crowd2_8 = oneshot(2 * s.cores, "8");
        s.crowd4_8 = oneshot(4 * s.cores, "8");
        s.crowd2_64k = oneshot(2 * s.cores, "64K");
    }
    s.net_8 = between_two("Ring", "8", true);
    s.net_1m = between_two("Ring", "1M", true);
    return s;
}

/* ---- times of rings and trees ---- */

struct row_context {
    FILE *out;
    const char *algo, *proto;
    int nranks;
};

static void write_row(void *context, const char *operation, size_t bytes, double usec)
{
    const struct row_context *row = context;
    fprintf(row->out, "time %s %s %s %d 1 %zu %.3f\n", operation, row->algo, row->proto,
            row->nranks, bytes, usec);
}

static void write_times(FILE *out)
{
    static const char *const protos[] = {"ll", "ll128", "simple"};
    static const int sizes[] = {2, 4, 8};
    time_t end = time(NULL) + BUDGET_SEC;
    for (size_t k = 0; k < 2 * 3 * 3; k++) {
        bool tree = k % 2 != 0;
        struct row_context row = {out, tree ? "tree" : "ring", protos[k / 2 % 3], sizes[k / 6]};
        struct tune_run run = {.algo = row.algo,
                               .proto = row.proto,
                               .nranks = row.nranks,
                               .least = "1K",
                               .most = "4M",
                               .operations = {"allreduce"},
                               .repeats = 1};
        static const char *const rest[] = {"broadcast", "reduce", "allgather", "reducescatter"};
        for (size_t i = 0; !tree && i < 4; i++)
            run.operations[i + 1] = rest[i];
        if (time(NULL) >= end) {
            fprintf(stderr, "tutti tune: no time left for %s %s over %d ranks\n", row.algo,
                    row.proto, row.nranks);
            continue;
        }
        tune_run(&run, write_row, &row);
    }
}

/* ---- the file ---- */

static void make_folder(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *at = folder + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(folder, 0777); /* fails where it is there; a real fault shows when the file opens */
        *at = '/';
    }
}

static int write_all(FILE *out, const struct tune_options *options)
{
    char machine[TT_TUNE_MACHINE_BYTES];
    struct tt_tune_host host;
    unsigned kept = 0;
    const struct tune_samples samples = measure();
    tune_fit(&samples, &host, &kept);
    tt_tune_machine_name(machine);
    tt_tune_host_print(out, machine, &host);
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        if (!(kept & (1U << f))) continue;
        fprintf(stderr, "tutti tune: %s could not be told from the times; built-in value\n",
                tt_tune_host_name(f));
    }
    if (!options->quick) write_times(out);
    return ferror(out) ? 1 : 0;
}

/* Written beside and renamed, so that nobody reads half a file. */
static int write_file(const char *path, const struct tune_options *options)
{
    char beside[PATH_MAX + 16];
    make_folder(path);
    snprintf(beside, sizeof(beside), "%s.new", path);
    FILE *out = fopen(beside, "we");
    if (!out) {
        fprintf(stderr, "tutti tune: %s: %s\n", beside, strerror(errno));
        return 1;
    }
    int status = write_all(out, options);
    if (fclose(out)) status = 1;
    if (!status && rename(beside, path)) status = 1;
    if (status) {
        fprintf(stderr, "tutti tune: %s: %s\n", path, strerror(errno));
        unlink(beside);
        return 1;
    }
    fprintf(stderr, "tutti tune: wrote %s\n", path);
    return 0;
}

int cmd_tune(int argc, char **argv)
{
    struct tune_options options = {0};
    char path[PATH_MAX];
    int status = parse(argc, argv, &options);
    if (status >= 0) return status;
    if (options.show) return show();
    if (options.output) {
        snprintf(path, sizeof(path), "%s", options.output);
    } else if (!tt_tune_host_path(path, sizeof(path))) {
        fprintf(stderr, "tutti tune: nowhere to write: TUTTI_TUNE_FILE is none or HOME is not "
                        "set; use --output\n");
        return 1;
    }
    if (others_are_busy() && !options.force) {
        fprintf(stderr, "tutti tune: try again later, or --force\n");
        return 1;
    }
    return strcmp(path, "-") != 0 ? write_file(path, &options) : write_all(stdout, &options);
}
