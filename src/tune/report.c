/* What the log says of the model at init, in the lines that NCCL has: switches, times and
 * bandwidths of every combination, thresholds. Parsers know their shape: it is a contract. */
#include "base/log.h"
#include "base/mem.h"
#include "tune/cost.h"
#include "tune/gpu_model.h"
#include "tune/lists.h"
#include "tune/tune.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 3, LINE_BYTES = 512, FUNCS = TT_GPU_FUNCS };

struct line {
    char text[LINE_BYTES];
    size_t used;
};

static void add(struct line *line, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct line *line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    int n = vsnprintf(line->text + line->used, sizeof(line->text) - line->used, fmt, args);
    va_end(args);
    if (n > 0) line->used = tt_min_size(line->used + (size_t)n, sizeof(line->text) - 1);
}

/* ---- switches ---- */

static int proto_switch(const struct tt_tune_lists *lists, int func, int proto)
{
    bool undecided = proto == TT_PROTO_LL128 && !lists->proto_named[func];
    return undecided ? 2 : lists->proto[func][proto]; /* 2: where the links suit it */
}

static void report_switches(const struct tt_tune_lists *lists)
{
    struct line line = {.used = 0};
    add(&line, "     Function | ");
    for (int p = 0; p < TT_PROTO_COUNT_; p++)
        add(&line, "%8s  ", tt_tune_proto_word(p));
    add(&line, " | ");
    for (int a = 0; a < TT_ALGO_NCCL_COUNT_; a++)
        add(&line, "%13s  ", tt_tune_algo_word(a));
    tt_info(TT_LOG_ENV, "Enabled NCCL Func/Proto/Algo Matrix:");
    tt_info(TT_LOG_ENV, "%s", line.text);
    for (int f = 0; f < FUNCS; f++) {
        line.used = 0;
        add(&line, "%13s | ", tt_func_name((enum tt_func)f));
        for (int p = 0; p < TT_PROTO_COUNT_; p++)
            add(&line, "%8d  ", proto_switch(lists, f, p));
        add(&line, " | ");
        for (int a = 0; a < TT_ALGO_NCCL_COUNT_; a++)
            add(&line, "%13d  ", lists->algo[f][a]);
        tt_info(TT_LOG_ENV, "%s", line.text);
    }
}

/* ---- the table ---- */

struct cell {
    double latency_usec, bw_gbps;
};

/* This host's programs: their time for next to nothing, and what a byte more takes. */
static struct cell host_cell(const struct tt_tune_env *env, const struct tt_tune_lists *lists,
                             const struct tt_tune_entry *entry)
{
    static const size_t large = (size_t)1 << 30;
    struct tt_tune_query query = {
        .func = entry->func, .type = ncclFloat32, .op = ncclSum, .bytes = 1, .nops = 1};
    double least = tt_tune_cost(env, &query, lists, entry);
    query.bytes = large;
    double most = tt_tune_cost(env, &query, lists, entry);
    if (least < 0 || most <= least) return (struct cell){0, 0};
    return (struct cell){least, (double)large / (most - least) * 1e-3};
}

static struct cell cell_of(const struct tt_tune_env *env, const struct tt_tune_lists *lists,
                           const struct tt_tune_entry *entry)
{
    if (!env->gpu) return host_cell(env, lists, entry);
    return (struct cell){(double)env->gpu->latency_usec[entry->func][entry->algo][entry->proto],
                         (double)env->gpu->bw_gbps[entry->func][entry->algo][entry->proto]};
}

/* A host runs a channel by one thread. */
static int threads_of(const struct tt_tune_env *env, int algo, int proto)
{
    if (env->gpu) return env->gpu->max_threads[algo][proto];
    return tt_program_exists(TT_FUNC_ALLREDUCE, (enum tt_algo)algo, (enum tt_proto)proto);
}

static void report_heads(const struct tt_tune_env *env, int first, int end)
{
    struct line names = {.used = 0}, protos = {.used = 0}, threads = {.used = 0};
    add(&names, "  Algorithm   |");
    add(&protos, "  Protocol    |");
    add(&threads, " Max NThreads |");
    for (int a = first; a < end; a++) {
        add(&names, " %14s   %14s   %14s |", "", tt_tune_algo_word(a), "");
        for (int p = 0; p < TT_PROTO_COUNT_; p++) {
            add(&protos, " %14s |", tt_tune_proto_word(p));
            add(&threads, " %14d |", threads_of(env, a, p));
        }
    }
    tt_info(TT_LOG_TUNING, "%s", names.text);
    tt_info(TT_LOG_TUNING, "%s", protos.text);
    tt_info(TT_LOG_TUNING, "%s", threads.text);
}

static void report_function(const struct tt_tune_env *env, const struct tt_tune_lists *lists,
                            enum tt_func func, int first, int end)
{
    struct line line = {.used = 0};
    add(&line, "%13s |", tt_func_name(func));
    for (int i = first * TT_PROTO_COUNT_; i < end * TT_PROTO_COUNT_; i++) {
        const struct tt_tune_entry entry = {func, (enum tt_algo)(i / TT_PROTO_COUNT_),
                                            (enum tt_proto)(i % TT_PROTO_COUNT_)};
        const struct cell cell = cell_of(env, lists, &entry);
        add(&line, "%8.1f/%6.1f |", cell.latency_usec, cell.bw_gbps);
    }
    tt_info(TT_LOG_TUNING, "%s", line.text);
}

/* NCCL's seven algorithms in blocks of three; behind them, over flat hosts, our own. */
static void report_table(const struct tt_tune_env *env, const struct tt_tune_lists *lists)
{
    int all = env->gpu ? TT_ALGO_NCCL_COUNT_ : TT_ALGO_P2P;
    for (int first = 0; first < all; first += BLOCK) {
        int end = first + BLOCK < all ? first + BLOCK : all;
        report_heads(env, first, end);
        for (int f = 0; f < FUNCS; f++)
            report_function(env, lists, (enum tt_func)f, first, end);
    }
}

void tt_tune_report(const struct tt_tune_env *env, int rank)
{
    struct tt_tune_lists lists;
    if (env->nranks == 1 || tt_tune_lists_read(&lists)) return;
    bool listed = lists.algo_text || lists.proto_text;
    if (rank == 0 && listed && tt_log_on(TT_LOG_INFO, TT_LOG_ENV)) report_switches(&lists);
    if (rank == 0 && tt_log_on(TT_LOG_INFO, TT_LOG_TUNING)) report_table(env, &lists);
    int bytes[TT_GPU_ALGOS][TT_PROTO_COUNT_];
    tt_gpu_thresholds(env->nranks, bytes);
    const int *tree = bytes[TT_ALGO_TREE], *ring = bytes[TT_ALGO_RING];
    tt_info(TT_LOG_INIT, "threadThresholds %d/%d/%d | %d/%d/%d | %d | %d", tree[TT_PROTO_LL],
            tree[TT_PROTO_LL128], tree[TT_PROTO_SIMPLE], ring[TT_PROTO_LL], ring[TT_PROTO_LL128],
            ring[TT_PROTO_SIMPLE], bytes[TT_ALGO_COLLNET_DIRECT][TT_PROTO_SIMPLE],
            bytes[TT_ALGO_COLLNET_CHAIN][TT_PROTO_SIMPLE]);
}
