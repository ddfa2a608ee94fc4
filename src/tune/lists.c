/* "entry;entry;..." with entry = "[function:][^]word,word,...": a list permits the words it names
 * and forbids all others of that function, ^ the reverse. Only the first entry may come without
 * function; it then holds for the five collectives that NCCL tunes, so that NCCL_ALGO=Ring does
 * not forbid an AlltoAll, for which there is no ring. */
#include "lists.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/text/spelling.h"

#include <string.h>
#include <strings.h>

struct word {
    const char *name;
    int number;
};

static const struct word funcs[] = {
    {"Broadcast", TT_FUNC_BROADCAST}, {"Reduce", TT_FUNC_REDUCE},
    {"AllGather", TT_FUNC_ALLGATHER}, {"ReduceScatter", TT_FUNC_REDUCESCATTER},
    {"AllReduce", TT_FUNC_ALLREDUCE}, {"AlltoAll", TT_FUNC_ALLTOALL},
    {"Scatter", TT_FUNC_SCATTER},     {"Gather", TT_FUNC_GATHER},
};
enum { NTUNED = 5 }; /* the first ones of funcs[]: what NCCL's lists are about */

static const struct word algos[] = {
    {"Tree", TT_ALGO_TREE},
    {"Ring", TT_ALGO_RING},
    {"CollNetDirect", TT_ALGO_COLLNET_DIRECT},
    {"CollNetChain", TT_ALGO_COLLNET_CHAIN},
    {"NVLS", TT_ALGO_NVLS},
    {"NVLSTree", TT_ALGO_NVLS_TREE},
    {"PAT", TT_ALGO_PAT},
    {"Direct", TT_ALGO_DIRECT},
    {"OneShot", TT_ALGO_ONESHOT},
    {"Doubling", TT_ALGO_DOUBLING},
    {"Halving", TT_ALGO_HALVING},
    {"Bruck", TT_ALGO_BRUCK},
    {"Pairwise", TT_ALGO_PAIRWISE},
    {"Hierarchical", TT_ALGO_HIERARCHICAL},
};

static const struct word protos[] = {
    {"LL", TT_PROTO_LL}, {"LL128", TT_PROTO_LL128}, {"Simple", TT_PROTO_SIMPLE}};

const char *tt_tune_algo_word(int algo)
{
    return algos[algo].name; /* in the order of their numbers */
}

const char *tt_tune_proto_word(int proto)
{
    return protos[proto].name;
}

struct table { /* one variable: its words, and where its answers go */
    const char *variable;
    const struct word *words;
    int nwords;
    const char *accepted;
    int width;     /* numbers a word can have; what has no word cannot be named, only left over */
    bool *allowed; /* [TT_FUNC_COUNT_][width], row by row; borrowed */
    bool *named;   /* [TT_FUNC_COUNT_]; borrowed; may be NULL */
};

/* Number of the word text[0..len), -1 for an unknown word. */
static int lookup(const struct word *words, size_t nwords, const char *text, size_t len)
{
    for (size_t i = 0; i < nwords; i++) {
        bool same = strlen(words[i].name) == len && strncasecmp(words[i].name, text, len) == 0;
        if (same) return words[i].number;
    }
    return -1;
}

static void set_row(const struct table *table, int func, const bool *listed, bool inverted)
{
    bool *row = table->allowed + (ptrdiff_t)func * table->width;
    for (int k = 0; k < table->width; k++)
        row[k] = listed[k] != inverted;
    if (table->named) table->named[func] = true;
}

/* "[^]word,word" of length len into the rows of one function, or of all tuned ones (func < 0). */
static ncclResult_t read_list(const struct table *table, int func, const char *text, size_t len)
{
    bool listed[TT_ALGO_COUNT_] = {false};
    bool inverted = len > 0 && text[0] == '^';
    const char *end = text + len;
    const char *at = inverted ? text + 1 : text;
    bool any = inverted; /* "^" alone forbids nothing */
    for (const char *stop; at <= end; at = stop + 1) {
        stop = memchr(at, ',', (size_t)(end - at));
        if (!stop) stop = end;
        if (stop == at) continue; /* NCCL takes no offence at "Ring," */
        any = true;
        int number = lookup(table->words, (size_t)table->nwords, at, (size_t)(stop - at));
        if (number < 0) {
            char meant[64];
            tt_param_suggest(table->accepted, at, (size_t)(stop - at), meant, sizeof(meant));
            return tt_fail(ncclInvalidUsage, "%s: unknown word '%.*s' (accepted: %s)%s",
                           table->variable, (int)(stop - at), at, table->accepted, meant);
        }
        listed[number] = true;
    }
    if (!any) {
        return tt_fail(ncclInvalidUsage, "%s: '%.*s' names nothing (accepted: %s)", table->variable,
                       (int)len, text, table->accepted);
    }
    for (size_t i = 0; i < (func < 0 ? (size_t)NTUNED : 1); i++) {
        set_row(table, func < 0 ? funcs[i].number : func, listed, inverted);
    }
    return ncclSuccess;
}

static ncclResult_t read_entry(const struct table *table, const char *text, size_t len, bool first)
{
    const char *colon = memchr(text, ':', len);
    if (!colon && first) return read_list(table, -1, text, len);
    if (!colon) {
        return tt_fail(ncclInvalidUsage,
                       "%s: '%.*s' names no function; only the first entry may do without",
                       table->variable, (int)len, text);
    }
    size_t name_len = (size_t)(colon - text);
    int func = lookup(funcs, TT_LEN(funcs), text, name_len);
    if (func < 0) {
        static const char accepted[] = "Broadcast, Reduce, AllGather, ReduceScatter, AllReduce, "
                                       "AlltoAll, Scatter, Gather";
        char meant[64];
        tt_param_suggest(accepted, text, name_len, meant, sizeof(meant));
        return tt_fail(ncclInvalidUsage, "%s: unknown function '%.*s' (accepted: %s)%s",
                       table->variable, (int)name_len, text, accepted, meant);
    }
    return read_list(table, func, colon + 1, len - name_len - 1);
}

bool tt_tune_lists_restrict(const bool *row, int n)
{
    bool all = true;
    for (int k = 0; k < n; k++)
        all &= row[k];
    return !all;
}

static ncclResult_t read_variable(const struct table *table, const char *text)
{
    if (!text || !text[0]) return ncclSuccess;
    bool first = true;
    for (const char *at = text; *at; first = false) {
        size_t len = strcspn(at, ";");
        ncclResult_t rc = len ? read_entry(table, at, len, first) : ncclSuccess;
        if (rc) return rc;
        at += len;
        if (*at == ';') at++;
    }
    return ncclSuccess;
}

ncclResult_t tt_tune_lists_read(struct tt_tune_lists *lists)
{
    lists->algo_text = tt_param_str("NCCL_ALGO");
    lists->proto_text = tt_param_str("NCCL_PROTO");
    memset(lists->algo, true, sizeof(lists->algo));
    memset(lists->proto, true, sizeof(lists->proto));
    memset(lists->proto_named, false, sizeof(lists->proto_named));
    struct table algo = {
        .variable = "NCCL_ALGO",
        .words = algos,
        .nwords = (int)TT_LEN(algos),
        .accepted = "Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, "
                    "PAT, Direct, OneShot, Doubling, Halving, Bruck, Pairwise, Hierarchical",
        .width = TT_ALGO_COUNT_,
        .allowed = &lists->algo[0][0]};
    ncclResult_t rc = read_variable(&algo, lists->algo_text);
    if (rc) return rc;
    struct table proto = {.variable = "NCCL_PROTO",
                          .words = protos,
                          .nwords = (int)TT_LEN(protos),
                          .accepted = "LL, LL128, Simple",
                          .width = TT_PROTO_COUNT_,
                          .allowed = &lists->proto[0][0],
                          .named = lists->proto_named};
    return read_variable(&proto, lists->proto_text);
}
