/* A program from a file or a generator. */
#include "tutti.h"

#include "base/error.h"
#include "base/mem.h"
#include "program_tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_RANKS = 4096 };

static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_ALLGATHER, TT_FUNC_REDUCESCATTER,
                                     TT_FUNC_BROADCAST, TT_FUNC_REDUCE,    TT_FUNC_ALLTOALL,
                                     TT_FUNC_ALLTOALLV, TT_FUNC_GATHER,    TT_FUNC_SCATTER};

/* ---- files ---- */

/* All of a file (-: standard input); NULL: said. */
static char *read_text(const struct program_options *options, const char *path, size_t *bytes_out)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *in = standard ? stdin : fopen(path, "rb");
    char *text = in ? malloc(MOST_BYTES + 1) : NULL;
    size_t bytes = text ? fread(text, 1, MOST_BYTES + 1, in) : 0;
    bool read = text && !ferror(in) && bytes <= MOST_BYTES;
    if (!read) {
        (void)fprintf(stderr, "tutti %s: %s: %s\n", options->command, path,
                      bytes > MOST_BYTES ? "longer than 64 MiB" : strerror(errno));
        free(text);
        text = NULL;
    }
    if (in && !standard) (void)fclose(in);
    *bytes_out = bytes;
    return text;
}

static int open_file(const struct program_options *options, const char *path,
                     struct program_source *source)
{
    char fault[256];
    size_t bytes = 0;
    char *text = read_text(options, path, &bytes);
    if (!text) return 2;
    ncclResult_t rc = tt_import_read(text, bytes, &source->import, fault, sizeof(fault));
    free(text);
    if (rc) {
        const char *number = strncmp(fault, "line ", 5) == 0 ? fault + 5 : "0: ";
        const char *colon = strchr(number, ':');
        const char *words = colon && number == fault + 5 ? colon + 2 : fault;
        (void)fprintf(stderr, "%s:%.*s: refused: %s\n", path, (int)strspn(number, "0123456789"),
                      number, words);
        return 1;
    }
    if (source->import->notes) (void)fprintf(stderr, "%s: notes:\n%s", path, source->import->notes);
    source->program = source->import->program;
    source->name = source->import->name;
    return 0;
}

/* ---- generators ---- */

/* Whether both are the same but for case, '-' and '_'. */
static bool same_word(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '-' || *a == '_')
            a++;
        while (*b == '-' || *b == '_')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

int program_find_op(const char *word)
{
    for (size_t k = 0; k < TT_LEN(funcs); k++) {
        if (same_word(word, tt_func_name(funcs[k]))) return (int)funcs[k];
    }
    return -1;
}

/* `word` NULL: any. */
static bool find_proto(enum tt_func func, enum tt_algo algo, const char *word,
                       enum tt_proto *proto_out)
{
    for (int p = TT_PROTO_COUNT_ - 1; p >= 0; p--) {
        *proto_out = (enum tt_proto)p;
        if (word && !same_word(word, tt_proto_name(*proto_out))) continue;
        if (tt_program_exists(func, algo, *proto_out)) return true;
    }
    return false;
}

static bool is_of_hosts(enum tt_algo algo)
{
    return algo == TT_ALGO_HIERARCHICAL || algo == TT_ALGO_NVLS_TREE ||
           algo == TT_ALGO_COLLNET_DIRECT || algo == TT_ALGO_COLLNET_CHAIN;
}

/* As many as are asked for, else as few as have as many ranks each. */
static int host_count(const struct program_options *options)
{
    int nhosts = options->hosts ? (int)options->hosts : 2;
    while (!options->hosts && options->ranks % nhosts != 0)
        nhosts++;
    return nhosts;
}

/* Ring in rank order, binary tree by rank, hosts one after the other. */
static ncclResult_t make(enum tt_func func, enum tt_algo algo, enum tt_proto proto,
                         const struct program_options *options, const int *counts,
                         struct program_source *source)
{
    size_t n = (size_t)options->ranks;
    int *ring = tt_calloc(n, sizeof(*ring));
    struct tt_tree_links *tree = tt_calloc(n, sizeof(*tree));
    struct tt_shape shape = {.nranks = (int)n,
                             .ring_rank = ring,
                             .tree = tree,
                             .by_host = ring,
                             .nhosts = host_count(options),
                             .host_first = source->host_first,
                             .counts = counts};
    for (int r = 0; ring && tree && r < (int)n; r++) {
        ring[r] = r;
        tree[r] = (struct tt_tree_links){.parent = r ? (r - 1) / 2 : -1, .child = {-1, -1, -1}};
        for (int k = 0; k < 2; k++) {
            if (2 * r + 1 + k < (int)n) tree[r].child[k] = 2 * r + 1 + k;
        }
    }
    ncclResult_t rc = ncclSystemError;
    if (ring && tree)
        rc = tt_program_make(func, algo, proto, (int)options->root, &shape, &source->program);
    free(ring);
    free(tree);
    return rc;
}

/* Exit status: 0, or 2 after the words that there are were named. */
static int find_names(const struct program_options *options, int *func, int *algo)
{
    struct tutti_words words = {""};
    *func = program_find_op(options->op);
    *algo = -1;
    for (int k = 0; k < TT_ALGO_COUNT_; k++) {
        if (same_word(options->algo, tt_algo_name((enum tt_algo)k))) *algo = k;
    }
    for (int k = 0; *func < 0 && k < TT_FUNC_COUNT_; k++)
        tutti_words_add(&words, tt_func_name((enum tt_func)k));
    if (*func < 0) return tutti_unknown(options->command, "collective", options->op, &words);
    for (int k = 0; *algo < 0 && k < TT_ALGO_COUNT_; k++)
        tutti_words_add(&words, tt_algo_name((enum tt_algo)k));
    if (*algo < 0) return tutti_unknown(options->command, "algorithm", options->algo, &words);
    return 0;
}

static int open_generated(const struct program_options *options, struct program_source *source)
{
    int func, algo;
    enum tt_proto proto;
    const int unknown = find_names(options, &func, &algo);
    if (unknown) return unknown;
    if (!find_proto((enum tt_func)func, (enum tt_algo)algo, options->proto, &proto)) {
        return tutti_usage_error(
            options->command, "there is no %s by %s%s%s; see: tutti program list",
            tt_func_name((enum tt_func)func), tt_algo_name((enum tt_algo)algo),
            options->proto ? " with " : "", options->proto ? options->proto : "");
    }
    if (options->root >= options->ranks) {
        return tutti_usage_error(options->command, "--root: %ld is not one of %ld ranks",
                                 options->root, options->ranks);
    }
    int *counts = NULL;
    if (func == TT_FUNC_ALLTOALLV || options->counts) {
        if (func != TT_FUNC_ALLTOALLV)
            return tutti_usage_error(options->command, "--counts: only an alltoallv has them");
        int wrong = program_read_counts(options, options->counts, (int)options->ranks, &counts);
        if (wrong) return wrong;
    }
    source->name = "";
    if (is_of_hosts((enum tt_algo)algo)) source->nhosts = host_count(options);
    ncclResult_t rc = make((enum tt_func)func, (enum tt_algo)algo, proto, options, counts, source);
    free(counts);
    if (!rc) return 0;
    (void)fprintf(stderr, "tutti %s: %s\n", options->command, tt_last_error());
    return 1;
}

/* Where hosts were named by their ranks; of equal ones nothing is kept. 2: memory is short. */
static int read_sizes(const struct program_options *options, struct program_source *source)
{
    bool even = true;
    int *first = tt_calloc((size_t)options->hosts + 1, sizeof(*first));
    const char *at = options->host_sizes;
    if (!first) {
        (void)fprintf(stderr, "tutti %s: out of memory for hosts\n", options->command);
        return 2;
    }
    for (int host = 0; host < options->hosts; host++, at++) {
        char *end;
        first[host + 1] = first[host] + (int)strtol(at, &end, 10);
        at = end;
        even = even && first[host + 1] - first[host] == first[1];
    }
    source->host_first = even ? NULL : first;
    if (even) free(first);
    return 0;
}

static int open_source(const struct program_options *options, const char *path,
                       struct program_source *source)
{
    int wrong = options->host_sizes ? read_sizes(options, source) : 0;
    if (!wrong && path) wrong = open_file(options, path, source);
    if (!wrong && path && options->host_sizes && options->ranks != source->program->nranks) {
        return tutti_usage_error(options->command, "--hosts: %s are %ld ranks, not %d",
                                 options->host_sizes, options->ranks, source->program->nranks);
    }
    if (wrong || path) return wrong;
    if (!options->algo || !options->op || options->ranks < 2) {
        return tutti_usage_error(
            options->command, "needs FILE, or --algo, --op and --ranks (2 to %d)", (int)MOST_RANKS);
    }
    return open_generated(options, source);
}

int program_open(const struct program_options *options, const char *path,
                 struct program_source *source)
{
    *source = (struct program_source){.nhosts = 1};
    if (options->hosts) source->nhosts = (int)options->hosts;
    int wrong = open_source(options, path, source);
    if (wrong) program_close(source);
    return wrong;
}

void program_close(struct program_source *source)
{
    if (!source->import) free(source->program);
    tt_import_destroy(source->import);
    free(source->host_first);
    *source = (struct program_source){.program = NULL};
}

void program_title(const struct program_source *source, char *text, size_t bytes)
{
    const struct tt_program *program = source->program;
    char root[32] = "";
    if (program->root >= 0) (void)snprintf(root, sizeof(root), ", root %d", (int)program->root);
    (void)snprintf(
        text, bytes, "%s %s %s of %d ranks%s%s%s", tt_func_name((enum tt_func)program->func),
        tt_algo_name((enum tt_algo)program->algo), tt_proto_name((enum tt_proto)program->proto),
        (int)program->nranks, root, *source->name ? ": " : "", source->name);
}

/* The layouts of slots that the collective has with that algorithm; also as words. */
static json_t *protocols(enum tt_func func, enum tt_algo algo, char *words, size_t words_bytes)
{
    json_t *list = json_array();
    words[0] = '\0';
    for (int p = 0; p < TT_PROTO_COUNT_; p++) {
        if (!tt_program_exists(func, algo, (enum tt_proto)p)) continue;
        const char *name = tt_proto_name((enum tt_proto)p);
        size_t at = strlen(words);
        (void)snprintf(words + at, words_bytes - at, "%s%s", at ? " " : "", name);
        json_array_append_new(list, json_string(name));
    }
    return list;
}

static void list_collective(enum tt_func func, json_t *rows)
{
    for (int a = 0; a < TT_ALGO_COUNT_; a++) {
        char words[64];
        const char *op = tt_func_name(func), *algo = tt_algo_name((enum tt_algo)a);
        json_t *list = protocols(func, (enum tt_algo)a, words, sizeof(words));
        if (!words[0]) {
            json_decref(list);
            continue;
        }
        if (!rows) printf("%-14s%-16s%s\n", op, algo, words);
        json_t *row = json_pack("{s:s, s:s, s:o}", "op", op, "algo", algo, "protocols", list);
        if (rows) {
            json_array_append_new(rows, row);
        } else {
            json_decref(row);
        }
    }
}

int program_list(const struct program_options *options)
{
    json_t *rows = options->json ? json_array() : NULL;
    if (!rows) printf("%-14s%-16s%s\n", "--op", "--algo", "layouts of slots");
    for (size_t f = 0; f < TT_LEN(funcs); f++)
        list_collective(funcs[f], rows);
    if (rows) program_print_json(rows);
    return 0;
}
