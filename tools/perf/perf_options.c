/* Options of the measuring program: nccl-tests' letters and meanings, and a few of our own. */
#include "perf.h"

#include "base/text/spelling.h"

#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                         "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
static const size_t type_sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static const char *const op_names[] = {"sum", "prod", "max", "min", "avg", "mulsum"};

const char *perf_type_name(int type)
{
    return type_names[type];
}
size_t perf_type_bytes(int type)
{
    return type_sizes[type];
}
const char *perf_op_name(int op)
{
    return op_names[op];
}

static int usage(FILE *out)
{
    fprintf(
        out,
        "usage: tutti perf [--ranks N] [OPTIONS] [OPERATION...]\n\n"
        "Measures and checks collectives between N processes (default 4) of this machine, or as\n"
        "a rank of mpirun, srun or tutti run (NCCL_COMM_ID=host:port). OPERATION: allreduce\n"
        "allgather reducescatter broadcast reduce alltoall gather scatter sendrecv; none or "
        "`all`:\n"
        "every one. And hypercube, for 2, 4, 8, ... ranks. Options are those of nccl-tests:\n\n"
        "      --ranks N           processes (one rank each unless -t or -g say more)\n"
        "  -t, --nthreads N        threads per process (1)\n"
        "  -g, --ngpus N           devices per thread (1)\n"
        "  -b, --minbytes SIZE     smallest size (8); K, M, G allowed\n"
        "  -e, --maxbytes SIZE     largest size (4M)\n"
        "  -i, --stepbytes SIZE    add SIZE from line to line\n"
        "  -f, --stepfactor F      multiply by F from line to line (8; nccl-tests adds 1M)\n"
        "  -n, --iters N           timed calls per line (20)\n"
        "  -w, --warmup_iters N    calls before them (5)\n"
        "  -m, --agg_iters N       calls per group (1)\n"
        "  -N, --run_cycles N      repeat the whole table N times, 0: for ever (1)\n"
        "  -a, --average N         time shown: 0 rank 0, 1 average, 2 minimum, 3 maximum (1)\n"
        "  -p, --parallel_init N   1: threads make their communicators side by side (0)\n"
        "  -c, --check N           check the results of N calls a line, 0: of none (1)\n"
        "  -z, --blocking N        1: wait after every call (0)\n"
        "  -y, --stream_null N     1: use the default stream (0)\n"
        "  -T, --timeout SEC       give up when the ranks have not met so long after the start, "
        "and\n"
        "                          when calls take longer (0: never)\n"
        "  -G, --cudagraph N       capture the calls and launch the graph N times (0)\n"
        "  -C, --report_cputime N  1: show the time the calls take on the CPU (0)\n"
        "  -R, --local_register N  1 register buffers, 2 register symmetric windows (0)\n"
        "  -S, --report_timestamps N  1: a time stamp on every line (0)\n"
        "  -J, --output_file FILE  write results as JSON, beside the table\n"
        "  -o, --op OP             sum prod max min avg mulsum all (sum)\n"
        "  -d, --datatype TYPE     int8 uint8 int32 uint32 int64 uint64 half float double "
        "bfloat16\n"
        "                          f8e4m3 f8e5m2 all (float)\n"
        "  -r, --root R            root rank, or all (0)\n"
        "  -x, --cta_policy N      passed in the communicator's config, 0 to 3 (0)\n"
        "  -D, --device_implementation N  0: calls of the host are all there is (0)\n"
        "  -V, --device_cta_count N       thread blocks for -D (16)\n"
        "  -M, --memory_report N   1: memory used by the process at the end (0)\n"
        "  -u, --unalign N         shift buffers by N elements (0)\n"
        "      --program FILE      run the program of this file (XML of MSCCL, plan of MSCCL++)\n"
        "      --pairs             latency and bandwidth between all pairs of ranks (of -e bytes)\n"
        "      --json              results as JSON on standard output, instead of the table\n"
        "      --dry-run           check the options, measure nothing\n"
        "  -h, --help              this text\n\n"
        "Exit status: 0 all values right, 1 a wrong value or an error, 2 usage.\n\n"
        "examples:\n"
        "  tutti perf --ranks 8 -b 8 -e 64M -f 2 allreduce\n"
        "  tutti perf --ranks 2 -d all -o all reducescatter\n"
        "  tutti perf --ranks 2 -t 2 -g 2 -G 10 -R 2 -e 1M allgather\n"
        "  tutti perf --ranks 8 --program allpairs.xml -e 1M\n"
        "  tutti perf --ranks 4 --pairs\n"
        "  tutti perf --ranks 4 --json alltoall >alltoall.json\n"
        "  NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 tutti perf --ranks 2 sendrecv\n");
    return out == stdout ? 0 : 2;
}

static int complain(const char *option, const char *value, const char *wanted)
{
    bool asks = strchr(wanted, '?') != NULL;
    fprintf(stderr, "tutti perf: %s %s: %s%s `tutti perf --help` shows the usage\n", option, value,
            wanted, asks ? "" : ";");
    return 2;
}

/* "64M", "8", "1.5G": bytes; false when it is no size. */
static bool parse_size(const char *text, size_t *bytes)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || value < 0 || !isfinite(value)) return false;
    const char *letter = *end ? strchr("kKmMgG", *end) : NULL;
    if (letter) {
        value *= *end == 'k' || *end == 'K'   ? 1024.0
                 : *end == 'm' || *end == 'M' ? 1048576.0
                                              : 1073741824.0;
        end++;
        if (*end == 'B' || *end == 'b') end++;
    }
    if (*end || value > 1e15) return false;
    *bytes = (size_t)value;
    return true;
}

static bool parse_int(const char *text, long low, long high, int *value)
{
    char *end = NULL;
    long got = strtol(text, &end, 10);
    if (end == text || *end || got < low || got > high) return false;
    *value = (int)got;
    return true;
}

static int find_name(const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (!strcmp(text, names[i])) return i;
    }
    return -1;
}

static bool parse_types(const char *text, struct perf_options *o)
{
    static const char *const other[] = {"char",    "u8",   "int",      "u32",
                                        "i64",     "u64",  "float16",  "float32",
                                        "float64", "bf16", "fp8_e4m3", "fp8_e5m2"};
    o->ntypes = 0;
    if (!strcmp(text, "all")) {
        for (o->ntypes = 0; o->ntypes < 12; o->ntypes++) {
            o->types[o->ntypes] = o->ntypes;
        }
        return true;
    }
    int type = find_name(text, type_names, 12);
    if (type < 0) type = find_name(text, other, 12);
    o->types[o->ntypes++] = type;
    return type >= 0;
}

static bool parse_ops(const char *text, struct perf_options *o)
{
    o->nops = 0;
    if (!strcmp(text, "all")) {
        for (o->nops = 0; o->nops < PERF_MAX_OPS; o->nops++) {
            o->ops[o->nops] = o->nops;
        }
        return true;
    }
    int op = find_name(text, op_names, PERF_MAX_OPS);
    o->ops[o->nops++] = op;
    return op >= 0;
}

enum { OPT_RANKS = 1000, OPT_PAIRS, OPT_JSON, OPT_DRY_RUN, OPT_SINCE, OPT_PROGRAM };

static const struct option long_options[] = {
    {"ranks", 1, 0, OPT_RANKS},
    {"nthreads", 1, 0, 't'},
    {"ngpus", 1, 0, 'g'},
    {"minbytes", 1, 0, 'b'},
    {"maxbytes", 1, 0, 'e'},
    {"stepbytes", 1, 0, 'i'},
    {"stepfactor", 1, 0, 'f'},
    {"iters", 1, 0, 'n'},
    {"warmup_iters", 1, 0, 'w'},
    {"agg_iters", 1, 0, 'm'},
    {"run_cycles", 1, 0, 'N'},
    {"average", 1, 0, 'a'},
    {"parallel_init", 1, 0, 'p'},
    {"check", 1, 0, 'c'},
    {"blocking", 1, 0, 'z'},
    {"stream_null", 1, 0, 'y'},
    {"timeout", 1, 0, 'T'},
    {"cudagraph", 1, 0, 'G'},
    {"report_cputime", 1, 0, 'C'},
    {"local_register", 1, 0, 'R'},
    {"report_timestamps", 1, 0, 'S'},
    {"output_file", 1, 0, 'J'},
    {"op", 1, 0, 'o'},
    {"datatype", 1, 0, 'd'},
    {"root", 1, 0, 'r'},
    {"cta_policy", 1, 0, 'x'},
    {"device_implementation", 1, 0, 'D'},
    {"device_cta_count", 1, 0, 'V'},
    {"memory_report", 1, 0, 'M'},
    {"unalign", 1, 0, 'u'},
    {"program", 1, 0, OPT_PROGRAM},
    {"pairs", 0, 0, OPT_PAIRS},
    {"json", 0, 0, OPT_JSON},
    {"dry-run", 0, 0, OPT_DRY_RUN},
    {"since", 1, 0, OPT_SINCE},
    {"help", 0, 0, 'h'},
    {0, 0, 0, 0},
};

/* An option that takes a whole number: what is allowed and where it goes. */
struct number_row {
    int letter;
    long low, high;
    size_t at;
};

static const struct number_row numbers[] = {
    {OPT_RANKS, 1, 4096, offsetof(struct perf_options, nprocs)},
    {'t', 1, PERF_MAX_LOCAL, offsetof(struct perf_options, nthreads)},
    {'g', 1, PERF_MAX_LOCAL, offsetof(struct perf_options, ngpus)},
    {'n', 1, 1000000000, offsetof(struct perf_options, iters)},
    {'w', 0, 1000000000, offsetof(struct perf_options, warmup_iters)},
    {'m', 1, 100000, offsetof(struct perf_options, agg_iters)},
    {'N', 0, 1000000000, offsetof(struct perf_options, run_cycles)},
    {'a', 0, 3, offsetof(struct perf_options, average)},
    {'c', 0, 1000000000, offsetof(struct perf_options, check)},
    {'G', 0, 1000000, offsetof(struct perf_options, graph_launches)},
    {'R', 0, 2, offsetof(struct perf_options, local_register)},
    {'x', 0, 3, offsetof(struct perf_options, cta_policy)},
    {'u', 0, 4096, offsetof(struct perf_options, unalign)},
    {'p', 0, 1, offsetof(struct perf_options, parallel_init)},
    {'z', 0, 1, offsetof(struct perf_options, blocking)},
    {'y', 0, 1, offsetof(struct perf_options, stream_null)},
    {'C', 0, 1, offsetof(struct perf_options, cpu_time)},
    {'S', 0, 1, offsetof(struct perf_options, timestamps)},
    {'M', 0, 1, offsetof(struct perf_options, memory_report)},
    {'D', 0, 0, offsetof(struct perf_options, device_implementation)},
    {'V', 1, 1024, offsetof(struct perf_options, device_ctas)},
};

static const struct number_row *number_row(int letter)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].letter == letter) return &numbers[i];
    }
    return NULL;
}

/* The whole text is a number from `least` on that is not infinite. */
static bool parse_real(const char *text, double least, double *value_out)
{
    char *end = NULL;
    *value_out = strtod(text, &end);
    return end != text && !*end && *value_out >= least && isfinite(*value_out);
}

/* A factor of 1 adds step_bytes instead, as nccl-tests does. */
static bool parse_factor(const char *text, double *factor_out)
{
    if (!parse_real(text, 1, factor_out)) return false;
    if (*factor_out == 1) *factor_out = 0;
    return true;
}

/* NULL when taken, else what the option wants. */
static const char *other_option(int letter, const char *text, struct perf_options *o)
{
    bool ok = true;
    switch (letter) {
    case 'b': return parse_size(text, &o->min_bytes) ? NULL : "wants a size such as 8, 64K, 1.5G";
    case 'e':
        o->max_given = true;
        return parse_size(text, &o->max_bytes) ? NULL : "wants a size such as 8, 64K, 1.5G";
    case 'i':
        o->step_factor = 0;
        ok = parse_size(text, &o->step_bytes) && o->step_bytes > 0;
        return ok ? NULL : "wants a size above 0 such as 8, 64K";
    case 'f': return parse_factor(text, &o->step_factor) ? NULL : "wants a number from 1";
    case 'T':
        ok = parse_real(text, 0, &o->timeout_sec);
        return ok ? NULL : "wants a number of seconds, 0 for no limit";
    case 'J': o->output_file = text; return NULL;
    case 'o': return parse_ops(text, o) ? NULL : "is none of sum prod max min avg mulsum all";
    case 'd':
        return parse_types(text, o) ? NULL
                                    : "is none of int8 uint8 int32 uint32 int64 uint64 half float "
                                      "double bfloat16 f8e4m3 f8e5m2 all";
    case 'r':
        o->root = -1;
        ok = !strcmp(text, "all") || parse_int(text, 0, 1 << 20, &o->root);
        return ok ? NULL : "wants a rank or all";
    case OPT_PROGRAM: return NULL; /* tools/cmd_perf.c has seen to it */
    case OPT_PAIRS: o->pairs = true; return NULL;
    case OPT_JSON: o->json = true; return NULL;
    case OPT_SINCE: /* the launcher's */
        o->since_sec = strtod(text, NULL);
        o->on_terminal = strchr(text, ',') != NULL;
        return NULL;
    default: o->dry_run = true; return NULL;
    }
}

/* -1, or the exit status after a complaint. */
static int take_option(int letter, const char *text, struct perf_options *o)
{
    const struct number_row *row = number_row(letter);
    char name[16];
    char wanted[96];
    snprintf(name, sizeof(name), letter < 256 ? "-%c" : "--ranks", letter);
    if (row) {
        if (parse_int(text, row->low, row->high, (int *)((char *)o + row->at))) return -1;
        snprintf(wanted, sizeof(wanted), "wants a whole number from %ld to %ld", row->low,
                 row->high);
        if (letter == 'D')
            snprintf(wanted, sizeof(wanted), "only 0, there are no kernels on the host device");
        return complain(name, text, wanted);
    }
    const char *complaint = other_option(letter, text, o);
    return complaint ? complain(name, text ? text : "", complaint) : -1;
}

static void defaults(struct perf_options *o)
{
    memset(o, 0, sizeof(*o));
    o->nprocs = 4;
    o->nthreads = 1;
    o->ngpus = 1;
    o->min_bytes = 8;
    o->max_bytes = (size_t)4 << 20;
    o->step_factor = 8;
    o->step_bytes = (size_t)1 << 20;
    o->iters = 20;
    o->warmup_iters = 5;
    o->agg_iters = 1;
    o->run_cycles = 1;
    o->average = 1;
    o->check = 1;
    o->ntypes = 1;
    o->types[0] = ncclFloat32;
    o->nops = 1;
    o->ops[0] = ncclSum;
    o->device_ctas = 16;
}

/* The nearest of the names, and all of them. */
static int no_operation(const char *name)
{
    char names[256] = "", meant[TT_SPELLING_BYTES], wanted[512];
    for (int i = 0; perf_operation_at(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s ", perf_operation_at(i)->name);
    }
    tt_param_suggest(names, name, strlen(name), meant, sizeof(meant));
    snprintf(wanted, sizeof(wanted), "is none of %sall%s", names, meant);
    return complain("operation", name, wanted);
}

static int take_operations(int argc, char **argv, struct perf_options *o)
{
    for (int i = optind; i < argc; i++) {
        if (!strcmp(argv[i], "all")) continue;
        const struct perf_operation *found = perf_operation_find(argv[i]);
        if (!found) return no_operation(argv[i]);
        if (o->noperations == 16) return complain("operation", argv[i], "too many");
        o->operations[o->noperations++] = found->name;
    }
    bool all = o->noperations == 0;
    for (int i = 0; all && perf_operation_at(i); i++) {
        if (perf_operation_at(i)->stepwise) continue;
        o->operations[o->noperations++] = perf_operation_at(i)->name;
    }
    return -1;
}

/* What only all options together show. */
static int check_together(struct perf_options *o)
{
    char text[32];
    int nranks = perf_processes(o->nprocs) * o->nthreads * o->ngpus;
    if (o->max_given && o->max_bytes < o->min_bytes) {
        snprintf(text, sizeof(text), "%zu", o->max_bytes);
        return complain("-e", text, "is below the smallest size (-b)");
    }
    if (o->max_bytes < o->min_bytes) o->max_bytes = o->min_bytes;
    snprintf(text, sizeof(text), "%d", o->root);
    if (o->root >= nranks) return complain("-r", text, "there are fewer ranks");
    for (int i = 0; i < o->noperations; i++) {
        if (!perf_operation_find(o->operations[i])->stepwise) continue;
        if ((nranks & (nranks - 1)) || o->ngpus > 1 || o->agg_iters > 1) {
            return complain(
                "operation", o->operations[i],
                "takes 2, 4, 8, ... ranks, -g 1 and -m 1: its steps wait for each other");
        }
    }
    if (o->nthreads * o->ngpus > PERF_MAX_LOCAL) {
        return complain("-t and -g", "", "together more than 512 devices in a process");
    }
    if (o->output_file && o->pairs) return complain("-J", o->output_file, "--pairs has --json");
    return -1;
}

static int say_usage(const char *what, const char *word, const char *meant)
{
    fprintf(stderr, "tutti perf: %s '%s'%s `tutti perf --help` shows the usage\n", what, word,
            meant);
    return 2;
}

static int no_option(const char *word)
{
    char names[1024] = "", meant[TT_SPELLING_BYTES + 32];
    for (const struct option *one = long_options; one->name; one++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "--%s ", one->name);
    }
    tt_param_suggest(names, word, strcspn(word, "="), meant, sizeof(meant));
    return say_usage("no option", word, *meant ? meant : ";");
}

/* What getopt_long() did not take: ':' or '?', with what it left. */
static int refuse(char **argv, int letter)
{
    const char *word = argv[optind - 1];
    const char one[] = {'-', (char)optopt, 0};
    if (letter == ':') return say_usage("a value is missing behind", word, ";");
    if (!strncmp(word, "--", 2) && optopt) return say_usage("no value belongs to", word, ";");
    return no_option(optopt ? one : word);
}

static int parse(int argc, char **argv, struct perf_options *options)
{
    int letter;
    int status = -1;
    defaults(options);
    optind = opterr = 0;
    while (status < 0 &&
           (letter = getopt_long(argc, argv,
                                 ":t:g:b:e:i:f:n:w:m:N:a:p:c:z:y:T:G:C:R:S:J:o:d:r:x:D:V:M:u:h",
                                 long_options, NULL)) != -1) {
        /* behind a word that is read to its end: not of -hostfile */
        if (letter == 'h' && strcmp(argv[optind - 1], "-h") != 0 &&
            strncmp(argv[optind - 1], "--h", 3) != 0)
            return no_option(argv[optind]);
        if (letter == 'h') return usage(stdout);
        if (letter == '?' || letter == ':') return refuse(argv, letter);
        status = take_option(letter, optarg, options);
    }
    if (status < 0) status = take_operations(argc, argv, options);
    if (status < 0) status = check_together(options);
    if (status < 0 && options->dry_run) return 0;
    return status;
}

int perf_options_parse(int argc, char **argv, struct perf_options *options)
{
    char own_name[] = "tutti perf"; /* getopt's messages begin with it */
    if (argc < 1) return parse(argc, argv, options);
    char *given_name = argv[0];
    argv[0] = own_name;
    int status = parse(argc, argv, options);
    argv[0] = given_name;
    return status;
}
