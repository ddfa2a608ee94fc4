/* `tutti tune`: measures this machine and writes the figures that the library chooses by. */
#include "tutti.h"

#include "plugin/plugin.h"
#include "tune/tune.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    REPEATS = 15,
    SIZES_MOST = 16,
    OVERSUBSCRIBED_CORES_MOST = 4,
    BUDGET_SEC = 50,
    BUSY_PERCENT = 25
};

struct tune_options {
    const char *output; /* NULL: the usual place */
    bool quick, force, show, json;
    long seconds; /* for everything */
    long ranks[SIZES_MOST];
    int nranks; /* entries of it */
};

static const char help_text[] =
    "usage: tutti tune [--output FILE] [--quick] [--force] [--seconds N] [--json]\n"
    "       tutti tune --show [--json]\n\n"
    "Measures in under a minute what the collectives of this machine are made of: a line\n"
    "handed to the other core, a switch between ranks that share one, bytes through user\n"
    "buffers, slots and sockets. Writes them to a file that every communicator then\n"
    "chooses by, in place of built-in figures. The file names the machine (processor and\n"
    "cores); elsewhere it is refused. Ranks that read different files use the built-in\n"
    "figures. The network's two figures are those of sockets inside this host. Behind them\n"
    "stand measured times of rings and trees, which the tuner plugin `tutti` uses with\n"
    "TUTTI_TUNER_MODEL=measured. Where TUTTI_PROGRAM_DIR names a folder, its program files are\n"
    "measured beside what the library chooses; communicators of one host then run them where\n"
    "they were faster, and nowhere else.\n\n"
    "Prints each figure beside the built-in one. When others used the cores meanwhile, or a\n"
    "figure is more than 20 times off the built-in one, it is in doubt: the file stays what\n"
    "it was, unless --force.\n\n"
    "  -o, --output FILE  where to write (TUTTI_TUNE_FILE, else ~/.config/tutti/machine.tune);\n"
    "                     - is standard output\n"
    "      --quick        figures only, no times of rings and trees (a few seconds)\n"
    "      --ranks N,N,...  of which sizes rings and trees are timed (2,4,8)\n"
    "      --force        measure although others keep the cores busy, and write what is in doubt\n"
    "      --seconds N    give up what is not measured after so long (50; at most 600)\n"
    "      --show         print the figures in use and where they are from\n"
    "      --json         print the figures as JSON (docs/json.md)\n"
    "  -h, --help         this text\n\n"
    "Exit status: 0 done, 1 not measured (busy machine, doubt, nowhere to write) or, for --show, "
    "a\n"
    "file that is refused, 2 usage.\n\n"
    "examples:\n"
    "  tutti tune\n"
    "  tutti tune --quick -o -\n"
    "  tutti tune --show --json\n"
    "  TUTTI_TUNE_FILE=none tutti perf --ranks 4 allreduce     # with the built-in figures\n";

/* "2,4,8" */
static bool read_ranks(char *list, struct tune_options *options)
{
    char *save = NULL;
    options->nranks = 0;
    for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        if (options->nranks == SIZES_MOST) return false;
        if (!tutti_parse_int(word, 2, 256, &options->ranks[options->nranks++])) return false;
    }
    return options->nranks > 0;
}

static bool is_flag(const char *text, struct tune_options *options)
{
    if (!strcmp(text, "--quick")) return options->quick = true;
    if (!strcmp(text, "--force")) return options->force = true;
    if (!strcmp(text, "--show")) return options->show = true;
    if (!strcmp(text, "--json")) return options->json = true;
    return false;
}

static bool is_output(const char *text)
{
    return !strcmp(text, "-o") || !strcmp(text, "--output");
}

static bool is_help(const char *text)
{
    return !strcmp(text, "-h") || !strcmp(text, "--help");
}

/* A word that is no option, or one whose value is missing. Returns the exit status. */
static int refuse(const char *word)
{
    const struct tutti_words known = {"--quick,--force,--show,--ranks,--seconds,--output,--help"};
    if (!strcmp(word, "--ranks") || !strcmp(word, "--seconds") || is_output(word))
        return tutti_usage_error("tune", "'%s' wants a value after it", word);
    return tutti_unknown("tune", "option", word, &known);
}

/* -1: go on. */
static int parse(int argc, char **argv, struct tune_options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (is_flag(a, options)) continue;
        if (is_help(a)) {
            fputs(help_text, stdout);
            return 0;
        }
        if (!strcmp(a, "--ranks") && i + 1 < argc) {
            if (!read_ranks(argv[++i], options))
                return tutti_usage_error("tune", "--ranks takes up to 16 numbers from 2 to 256");
        } else if (!strcmp(a, "--seconds") && i + 1 < argc) {
            if (!tutti_parse_int(argv[++i], 1, 600, &options->seconds))
                return tutti_usage_error("tune", "--seconds takes a number from 1 to 600");
        } else if (is_output(a) && i + 1 < argc) {
            options->output = argv[++i];
        } else if (!strncmp(a, "--output=", 9)) {
            options->output = a + 9;
        } else {
            return refuse(a);
        }
    }
    return -1;
}

static void print_json(json_t *report)
{
    json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(report);
}

static int show(bool json)
{
    char machine[TT_TUNE_MACHINE_BYTES];
    struct tt_tune_host host;
    struct tt_tune_found found;
    tt_tune_machine_name(machine);
    tt_tune_host_find(&host, &found);
    if (json) {
        print_json(json_pack(
            "{s:s, s:s?, s:s?, s:s, s:o}", "source", found.hash ? "file" : "built-in", "path",
            found.path[0] ? found.path : NULL, "reason", found.reason[0] ? found.reason : NULL,
            "machine", machine, "figures", tune_figures_json(&host)));
        return found.reason[0] ? 1 : 0;
    }
    if (found.hash) {
        printf("# %s\n", found.path);
    } else if (found.reason[0]) {
        printf("# built-in figures: %s is refused: %s\n", found.path, found.reason);
    } else if (found.path[0]) {
        printf("# built-in figures: there is no %s\n", found.path);
    } else {
        printf("# built-in figures\n");
    }
    tt_tune_host_print(stdout, machine, &host);
    return found.reason[0] ? 1 : 0;
}

/* ---- measuring ---- */

struct jiffies {
    unsigned long long busy, all;
};

static bool read_jiffies(struct jiffies *jiffies_out)
{
    unsigned long long n[8] = {0};
    FILE *file = fopen("/proc/stat", "re");
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's numbers */
    int got = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &n[0], &n[1],
                            &n[2], &n[3], &n[4], &n[5], &n[6], &n[7])
                   : 0;
    if (file) fclose(file);
    if (got < 8) return false;
    unsigned long long idle = n[3] + n[4];
    jiffies_out->all = n[0] + n[1] + n[2] + n[5] + n[6] + n[7] + idle;
    jiffies_out->busy = jiffies_out->all - idle;
    return true;
}

/* Looked at for half a second: a load average remembers what ended a minute ago. */
static bool others_are_busy(void)
{
    const struct timespec pause = {0, 500000000};
    struct jiffies before, after;
    if (!read_jiffies(&before)) return false;
    nanosleep(&pause, NULL);
    if (!read_jiffies(&after) || after.all <= before.all) return false;
    unsigned long long percent = 100 * (after.busy - before.busy) / (after.all - before.all);
    if (percent < BUSY_PERCENT) return false;
    fprintf(stderr,
            "tutti tune: others use %llu %% of this machine's cores; times would be theirs\n",
            percent);
    return true;
}

/* Cores that this process may use. */
static int usable_cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

/* AllReduce of one size. */
static double one_size(const char *algo, const char *bytes, struct tune_run run)
{
    run.algo = algo;
    run.least = run.most = bytes;
    run.operations[0] = "allreduce";
    run.repeats = REPEATS;
    return tune_time(&run);
}

static double oneshot(int nranks, const char *bytes, int cores, double end_sec)
{
    const struct tune_run run = {
        .nranks = nranks, .cores = cores, .timeout_sec = end_sec - tune_now_sec()};
    return one_size("OneShot", bytes, run);
}

static double by_sockets(const char *bytes, double end_sec)
{
    const struct tune_run run = {
        .nranks = 2, .over_network = true, .timeout_sec = end_sec - tune_now_sec()};
    return one_size("Ring", bytes, run);
}

static struct tune_samples measure(double end_sec)
{
    int usable = usable_cores();
    int oversubscribed = usable < OVERSUBSCRIBED_CORES_MOST ? usable : OVERSUBSCRIBED_CORES_MOST;
    struct tune_samples s = {
        .cores = oversubscribed, .oneshot_8 = -1, .oneshot_64k = -1, .direct_1m = -1};
    if (usable > 1) {
        s.oneshot_8 = oneshot(2, "8", 0, end_sec);
        s.oneshot_64k = oneshot(2, "64K", 0, end_sec);
        const struct tune_run pair = {.nranks = 2, .timeout_sec = end_sec - tune_now_sec()};
        s.direct_1m = one_size("Direct", "1M", pair);
    }
    s.shared2_8 = oneshot(2 * oversubscribed, "8", oversubscribed, end_sec);
    s.shared4_8 = oneshot(4 * oversubscribed, "8", oversubscribed, end_sec);
    s.shared2_64k = oneshot(2 * oversubscribed, "64K", oversubscribed, end_sec);
    s.net_8 = by_sockets("8", end_sec);
    s.net_1m = by_sockets("1M", end_sec);
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

static void write_times(FILE *out, const struct tune_options *options, double end_sec)
{
    static const char *const protos[] = {"ll", "ll128", "simple"};
    const size_t tables = 6 * (size_t)options->nranks;
    for (size_t k = 0; k < tables; k++) {
        if (end_sec - tune_now_sec() < 1) {
            fprintf(stderr,
                    "tutti tune: no time left for %zu of %zu tables of rings and trees; --seconds "
                    "gives more\n",
                    tables - k, tables);
            return;
        }
        bool tree = k % 2 != 0;
        struct row_context row = {out, tree ? "tree" : "ring", protos[k / 2 % 3],
                                  (int)options->ranks[k / 6]};
        struct tune_run run = {.algo = row.algo,
                               .proto = row.proto,
                               .nranks = row.nranks,
                               .least = "1K",
                               .most = "4M",
                               .operations = {"allreduce"},
                               .repeats = 1,
                               .timeout_sec = end_sec - tune_now_sec()};
        static const char *const rest[] = {"broadcast", "reduce", "allgather", "reducescatter"};
        for (size_t i = 0; !tree && i < 4; i++)
            run.operations[i + 1] = rest[i];
        tune_run(&run, write_row, &row);
    }
}

/* ---- the file ---- */

static void report_kept(unsigned kept, double end_sec)
{
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        if (!(kept & (1U << f))) continue;
        fprintf(stderr, "tutti tune: %s could not be told from the times; built-in value%s\n",
                tt_tune_host_name(f),
                tune_now_sec() > end_sec - 1 ? " (--seconds gives more time)" : "");
    }
}

/* Percent of all cores that others used since `before`, when `own_sec` of processor time were ours;
 * 0 where the system does not say. */
static int others_percent(const struct jiffies *before, double own_sec)
{
    struct jiffies after;
    double per_sec = (double)sysconf(_SC_CLK_TCK);
    if (!before->all || !read_jiffies(&after) || after.all <= before->all) return 0;
    double busy = (double)(after.busy - before->busy) - own_sec * per_sec;
    int percent = (int)(100 * busy / (double)(after.all - before->all));
    return percent > 0 ? percent : 0;
}

/* Processor time of what this process has started and seen end. */
static double children_sec(void)
{
    struct rusage use;
    if (getrusage(RUSAGE_CHILDREN, &use)) return 0;
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

/* May the figures be written? Says what speaks against it. */
static bool believe(const struct tune_options *options, bool sane, int percent)
{
    if (percent >= BUSY_PERCENT)
        fprintf(stderr, "tutti tune: others used %d %% of the cores meanwhile\n", percent);
    if (options->force || (sane && percent < BUSY_PERCENT)) return true;
    fprintf(stderr, "tutti tune: in doubt, so nothing is written and what was there stays; try "
                    "again later, or --force\n");
    return false;
}

/* `report` gets what --json prints. */
static int write_all(FILE *out, const struct tune_options *options, json_t *report)
{
    struct jiffies before = {0};
    char machine[TT_TUNE_MACHINE_BYTES];
    struct tt_tune_host host;
    unsigned kept = 0;
    double end_sec = tune_now_sec() + (double)options->seconds;
    fprintf(stderr, "tutti tune: measuring for at most %ld s\n", options->seconds);
    (void)read_jiffies(&before);
    double own_sec = children_sec();
    const struct tune_samples samples = measure(end_sec);
    int percent = others_percent(&before, children_sec() - own_sec);
    tune_fit(&samples, &host, &kept);
    if (kept == (1U << TT_TUNE_FIGURES) - 1) {
        fprintf(stderr, "tutti tune: nothing could be measured\n");
        return 1;
    }
    json_object_set_new(report, "others_percent", json_integer(percent));
    const bool sane = tune_figures_compare(&host, kept, json_object_get(report, "figures"));
    if (!believe(options, sane, percent)) return 1;
    tt_tune_machine_name(machine);
    double half_sec = (end_sec - tune_now_sec()) / 2; /* the other one for rings and trees */
    tune_programs(machine, end_sec - (options->quick ? 0 : half_sec), &host);
    tt_tune_host_print(out, machine, &host);
    fputs("# net_phase_usec and net_bytes_usec are of sockets inside this host\n", out);
    report_kept(kept, end_sec);
    if (!options->quick) write_times(out, options, end_sec);
    return ferror(out) ? 1 : 0;
}

/* Cut a path to the folder that it is in; "." or "/" in the end. */
static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash) {
        strcpy(path, "."); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): not empty */
    } else {
        slash[slash == path] = '\0';
    }
}

/* Before a minute is spent: can a file be made there? Folders on the way are made in the end. */
static bool may_write(const char *path)
{
    char folder[PATH_MAX];
    struct stat found;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
        fprintf(stderr, "tutti tune: %s is a folder; --output takes the name of a file\n", path);
        return false;
    }
    snprintf(folder, sizeof(folder), "%s", path);
    do {
        cut_last(folder);
    } while (stat(folder, &found) && errno == ENOENT);
    if (stat(folder, &found) == 0 && S_ISDIR(found.st_mode) && access(folder, W_OK | X_OK) == 0)
        return true;
    fprintf(stderr, "tutti tune: %s cannot be written: %s: %s\n", path, folder,
            S_ISDIR(found.st_mode) ? strerror(errno) : strerror(ENOTDIR));
    return false;
}

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

/* False, with errno, when not all of it arrived. */
static bool put_text(const char *path, const char *text, size_t bytes)
{
    FILE *out = fopen(path, "we");
    if (!out) return false;
    bool whole = fwrite(text, 1, bytes, out) == bytes;
    whole = !fflush(out) && whole;
    int why = errno;
    fclose(out);
    errno = why;
    return whole;
}

/* Written beside and renamed, so that no process reads half a file; what is no file is written to.
 */
static bool store(const char *path, const char *text, size_t bytes)
{
    char beside[PATH_MAX + 32];
    struct stat found;
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode)) return put_text(path, text, bytes);
    make_folder(path);
    snprintf(beside, sizeof(beside), "%s.%ld.new", path, (long)getpid());
    if (put_text(beside, text, bytes) && !rename(beside, path)) return true;
    int why = errno;
    unlink(beside);
    errno = why;
    return false;
}

/* Nothing is on the disk until all is measured: an interrupt leaves what was there before. */
static int write_file(const char *path, const struct tune_options *options, json_t *report)
{
    char *text = NULL;
    size_t bytes = 0;
    if (!may_write(path)) return 1;
    FILE *out = open_memstream(&text, &bytes);
    int status = out ? write_all(out, options, report) : 1;
    if (out && fclose(out)) status = 1;
    if (!status && store(path, text, bytes)) {
        fprintf(stderr, "tutti tune: wrote %s\n", path);
        json_object_set_new(report, "written", json_string(path));
    } else if (!status) {
        fprintf(stderr, "tutti tune: %s is not written: %s\n", path, strerror(errno));
        status = 1;
    }
    free(text);
    return status;
}

int cmd_tune(int argc, char **argv)
{
    struct tune_options options = {.seconds = BUDGET_SEC, .ranks = {2, 4, 8}, .nranks = 3};
    char path[PATH_MAX];
    int status = parse(argc, argv, &options);
    if (status >= 0) return status;
    tt_env_open();
    if (options.show) return show(options.json);
    if (options.output && !*options.output)
        return tutti_usage_error("tune", "the name behind --output is empty");
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
    const bool to_stdout = !strcmp(path, "-");
    if (options.json && to_stdout)
        return tutti_usage_error("tune", "--json and --output - both want standard output");
    json_t *report = json_pack("{s:n, s:n, s:[]}", "written", "others_percent", "figures");
    status = to_stdout ? write_all(stdout, &options, report) : write_file(path, &options, report);
    if (options.json) {
        print_json(report);
    } else {
        json_decref(report);
    }
    return status;
}
