/* Options of the measuring program: nccl-tests' letters and meanings, and a few of our own. */
#include "perf.h"

#include <getopt.h>
#include <math.h>
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
        "Measures and checks collectives between N processes (default 4) of this machine.\n"
        "OPERATION: allreduce allgather reducescatter broadcast reduce alltoall gather scatter\n"
        "sendrecv; none or `all`: every one. Options are those of nccl-tests:\n\n"
        "      --ranks N           processes (one rank each unless -t or -g say more)\n"
        "  -t, --nthreads N        threads per process (1)\n"
        "  -g, --ngpus N           devices per thread (1)\n"
        "  -b, --minbytes SIZE     smallest size (8); K, M, G allowed\n"
        "  -e, --maxbytes SIZE     largest size (4M)\n"
        "  -i, --stepbytes SIZE    add SIZE from line to line\n"
        "  -f, --stepfactor F      multiply by F from line to line (8)\n"
        "  -n, --iters N           timed calls per line (20)\n"
        "  -w, --warmup_iters N    calls before them (5)\n"
        "  -m, --agg_iters N       calls per group (1)\n"
        "  -N, --run_cycles N      repeat the whole table N times, 0: for ever (1)\n"
        "  -a, --average N         time shown: 0 rank 0, 1 average, 2 minimum, 3 maximum (1)\n"
        "  -p, --parallel_init N   threads make their communicators side by side (0)\n"
        "  -c, --check N           check results, 0: do not (1)\n"
        "  -z, --blocking N        wait after every call (0)\n"
        "  -y, --stream_null N     use the default stream (0)\n"
        "  -T, --timeout SEC       give up after so long (0: never)\n"
        "  -G, --cudagraph N       capture the calls and launch the graph N times (0)\n"
        "  -C, --report_cputime N  show the time the calls take on the CPU (0)\n"
        "  -R, --local_register N  1 register buffers, 2 register symmetric windows (0)\n"
        "  -S, --report_timestamps N  a time stamp on every line (0)\n"
        "  -J, --output_file FILE  write results as JSON\n"
        "  -o, --op OP             sum prod max min avg mulsum all (sum)\n"
        "  -d, --datatype TYPE     int8 uint8 int32 uint32 int64 uint64 half float double "
        "bfloat16\n"
        "                          f8e4m3 f8e5m2 all (float)\n"
        "  -r, --root R            root rank, or all (0)\n"
        "  -x, --cta_policy N      passed in the communicator's config\n"
        "  -M, --memory_report N   memory used by the process at the end (0)\n"
        "  -u, --unalign N         shift buffers by N elements (0)\n"
        "      --pairs             latency and bandwidth between all pairs of ranks\n"
        "      --json              results as JSON on standard output\n"
        "  -h, --help              this text\n\n"
        "examples:\n"
        "  tutti perf --ranks 8 -b 8 -e 64M -f 2 allreduce\n"
        "  tutti perf --ranks 2 -d all -o all -c 1 reducescatter\n"
        "  tutti perf --ranks 4 --pairs\n"
        "  NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 tutti perf --ranks 2 sendrecv\n");
    return out == stdout ? 0 : 2;
}

static int complain(const char *option, const char *value, const char *wanted)
{
    fprintf(stderr, "tutti perf: %s %s: %s; `tutti perf --help` shows the usage\n", option, value,
            wanted);
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

enum { OPT_RANKS = 1000, OPT_PAIRS, OPT_JSON };

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
    {"memory_report", 1, 0, 'M'},
    {"unalign", 1, 0, 'u'},
    {"pairs", 0, 0, OPT_PAIRS},
    {"json", 0, 0, OPT_JSON},
    {"help", 0, 0, 'h'},
    {0, 0, 0, 0},
};

/* Whole-number options: letter, place, range. */
static bool number_option(int letter, const char *text, struct perf_options *o, bool *known)
{
    int flag = 0;
    bool ok = false;
    *known = true;
    switch (letter) {
    case OPT_RANKS: return parse_int(text, 1, 4096, &o->nprocs);
    case 't': return parse_int(text, 1, PERF_MAX_LOCAL, &o->nthreads);
    case 'g': return parse_int(text, 1, PERF_MAX_LOCAL, &o->ngpus);
    case 'n': return parse_int(text, 1, 1000000000, &o->iters);
    case 'w': return parse_int(text, 0, 1000000000, &o->warmup_iters);
    case 'm': return parse_int(text, 1, 100000, &o->agg_iters);
    case 'N': return parse_int(text, 0, 1000000000, &o->run_cycles);
    case 'a': return parse_int(text, 0, 3, &o->average);
    case 'c': return parse_int(text, 0, 1000000000, &o->check);
    case 'G': return parse_int(text, 0, 1000000, &o->graph_launches);
    case 'R': return parse_int(text, 0, 2, &o->local_register);
    case 'x': return parse_int(text, 0, 3, &o->cta_policy);
    case 'u': return parse_int(text, 0, 4096, &o->unalign);
    case 'p':
        ok = parse_int(text, 0, 1, &flag);
        o->parallel_init = flag;
        return ok;
    case 'z':
        ok = parse_int(text, 0, 1, &flag);
        o->blocking = flag;
        return ok;
    case 'y':
        ok = parse_int(text, 0, 1, &flag);
        o->stream_null = flag;
        return ok;
    case 'C':
        ok = parse_int(text, 0, 1, &flag);
        o->cpu_time = flag;
        return ok;
    case 'S':
        ok = parse_int(text, 0, 1, &flag);
        o->timestamps = flag;
        return ok;
    case 'M':
        ok = parse_int(text, 0, 1, &flag);
        o->memory_report = flag;
        return ok;
    default: *known = false; return false;
    }
}

static bool other_option(int letter, const char *text, struct perf_options *o)
{
    char *end = NULL;
    switch (letter) {
    case 'b': return parse_size(text, &o->min_bytes);
    case 'e': return parse_size(text, &o->max_bytes);
    case 'i': o->step_factor = 0; return parse_size(text, &o->step_bytes) && o->step_bytes > 0;
    case 'f':
        o->step_factor = strtod(text, &end);
        return end != text && !*end && o->step_factor > 1;
    case 'T':
        o->timeout_sec = strtod(text, &end);
        return end != text && !*end && o->timeout_sec >= 0;
    case 'J': o->output_file = text; return true;
    case 'o': return parse_ops(text, o);
    case 'd': return parse_types(text, o);
    case 'r': o->root = -1; return !strcmp(text, "all") || parse_int(text, 0, 1 << 20, &o->root);
    case OPT_PAIRS: o->pairs = true; return true;
    case OPT_JSON: o->json = true; return true;
    default: return false;
    }
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
}

static int take_operations(int argc, char **argv, struct perf_options *o)
{
    for (int i = optind; i < argc; i++) {
        if (!strcmp(argv[i], "all")) continue;
        if (!perf_operation_find(argv[i])) return complain("operation", argv[i], "unknown");
        if (o->noperations == 16) return complain("operation", argv[i], "too many");
        o->operations[o->noperations++] = argv[i];
    }
    for (int i = 0; !o->noperations && perf_operation_at(i); i++) {
        o->operations[i] = perf_operation_at(i)->name;
        if (!perf_operation_at(i + 1)) {
            o->noperations = i + 1;
        }
    }
    if (o->max_bytes < o->min_bytes) o->max_bytes = o->min_bytes;
    if (o->root >= o->nprocs * o->nthreads * o->ngpus)
        return complain("--root", "", "no such rank");
    return -1;
}

int perf_options_parse(int argc, char **argv, struct perf_options *options)
{
    int letter;
    defaults(options);
    optind = 0;
    while (
        (letter = getopt_long(argc, argv, "t:g:b:e:i:f:n:w:m:N:a:p:c:z:y:T:G:C:R:S:J:o:d:r:x:M:u:h",
                              long_options, NULL)) != -1) {
        bool known = false;
        if (letter == 'h') return usage(stdout);
        if (letter == '?') return usage(stderr);
        if (number_option(letter, optarg, options, &known)) continue;
        if (known || !other_option(letter, optarg, options)) {
            char name[16];
            snprintf(name, sizeof(name), letter < 256 ? "-%c" : "option", letter);
            return complain(name, optarg ? optarg : "", "not a value that it takes");
        }
    }
    return take_operations(argc, argv, options);
}
