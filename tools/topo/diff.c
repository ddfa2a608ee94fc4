/* `tutti topo diff`: what two machines do not have in common, and what their channels make of it: a
 * verdict in words, then a line for each difference. Exit as of diff: 0 nothing; 1 something; 2
 * trouble. */
#include "machine.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 12 }; /* of one kind, as text */

struct diff {
    json_t *list;         /* owned; rows {what, a, b} */
    struct text channels; /* owned; how fast rings are, for the verdict */
    bool other_channels;
};

static char *as_text(const json_t *value)
{
    if (!value) return strdup("none");
    if (json_is_string(value)) return strdup(json_string_value(value));
    return json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(7));
}

static void add(struct diff *diff, const char *what, const json_t *a, const json_t *b)
{
    char *left = as_text(a);
    char *right = as_text(b);
    json_array_append_new(diff->list,
                          json_pack("{s:s, s:s?, s:s?}", "what", what, "a", left, "b", right));
    free(left);
    free(right);
}

/* ---- lists of rows ---- */

static void compare_row(struct diff *diff, const char *where, json_t *a, json_t *b)
{
    const char *key;
    json_t *value;
    json_object_foreach(a, key, value)
    {
        char what[128];
        json_t *other = json_object_get(b, key);
        if (json_equal(value, other)) continue;
        (void)snprintf(what, sizeof(what), "%s %s", where, key);
        add(diff, what, value, other);
    }
}

static void compare_list(struct diff *diff, const char *list, json_t *a, json_t *b)
{
    json_t *left = json_object_get(json_object_get(a, "system"), list);
    json_t *right = json_object_get(json_object_get(b, "system"), list);
    size_t count = json_array_size(left);
    char where[64];
    if (count != json_array_size(right)) {
        json_t *counts[] = {json_integer((json_int_t)count),
                            json_integer((json_int_t)json_array_size(right))};
        (void)snprintf(where, sizeof(where), "number of %s", list);
        add(diff, where, counts[0], counts[1]);
        json_decref(counts[0]);
        json_decref(counts[1]);
        if (json_array_size(right) < count) count = json_array_size(right);
    }
    for (size_t k = 0; k < count; k++) {
        (void)snprintf(where, sizeof(where), "%s %zu", list, k);
        compare_row(diff, where, json_array_get(left, k), json_array_get(right, k));
    }
}

/* ---- links and paths ---- */

static bool holds(json_t *links, json_t *link)
{
    size_t k;
    json_t *other;
    json_array_foreach(links, k, other)
    {
        if (json_equal(link, other)) return true;
    }
    return false;
}

/* Between a GPU and its own device, which every GPU has: no cable. */
static bool is_local(const json_t *link)
{
    const char *type = json_string_value(json_array_get(link, 2));
    return type && !strcmp(type, "LOC");
}

static void compare_links(struct diff *diff, json_t *a, json_t *b)
{
    json_t *left = json_object_get(json_object_get(a, "system"), "links");
    json_t *right = json_object_get(json_object_get(b, "system"), "links");
    size_t k;
    json_t *link;
    json_array_foreach(left, k, link)
    {
        if (!is_local(link) && !holds(right, link)) add(diff, "link", link, NULL);
    }
    json_array_foreach(right, k, link)
    {
        if (!is_local(link) && !holds(left, link)) add(diff, "link", NULL, link);
    }
}

static json_t *cell(json_t *machine, const char *matrix, const char *what, size_t from, size_t to)
{
    json_t *table = json_object_get(json_object_get(machine, "paths"), matrix);
    return json_array_get(json_array_get(json_object_get(table, what), from), to);
}

static json_t *path_text(json_t *machine, const char *matrix, size_t from, size_t to)
{
    const char *type = json_string_value(cell(machine, matrix, "type", from, to));
    char text[64];
    if (!type) return NULL;
    (void)snprintf(text, sizeof(text), "%s %.4g GB/s", type,
                   json_number_value(cell(machine, matrix, "bw", from, to)));
    return json_string(text);
}

static void compare_paths(struct diff *diff, json_t *a, json_t *b, const char *matrix)
{
    json_t *rows = json_object_get(json_object_get(json_object_get(a, "paths"), matrix), "type");
    for (size_t from = 0; from < json_array_size(rows); from++) {
        for (size_t to = 0; to < json_array_size(json_array_get(rows, from)); to++) {
            char what[96];
            json_t *left = path_text(a, matrix, from, to);
            json_t *right = path_text(b, matrix, from, to);
            (void)snprintf(what, sizeof(what), "path GPU %zu to %s %zu", from,
                           strcmp(matrix, "gpu_net") ? "GPU" : "NIC port", to);
            if (right && !json_equal(left, right)) add(diff, what, left, right);
            json_decref(left);
            json_decref(right);
        }
    }
}

/* ---- channels ---- */

static json_t *graph_text(const struct topo_scenario *scenario, int kind)
{
    const struct tt_topo_domain *domain = &scenario->domains[0];
    const struct tt_topo_graph *graph = &domain->graph[kind];
    char text[96];
    if (!graph->pattern || graph->nchannels == 0) return json_string("none");
    (void)snprintf(text, sizeof(text), "%d channels x %.4g GB/s (%s)", graph->nchannels,
                   (double)(domain->inter ? graph->bw_inter : graph->bw_intra),
                   tt_path_type_name(graph->type_intra));
    return json_string(text);
}

/* GB/s of all channels of a kind together, of all nodes of a machine; 0: no links are used. */
static double graph_bw(const struct topo_scenario *scenario, int kind)
{
    double bw = 0;
    for (int d = 0; d < scenario->ndomains; d++) {
        const struct tt_topo_domain *domain = &scenario->domains[d];
        const struct tt_topo_graph *graph = &domain->graph[kind];
        if (graph->ngpus < 2 && !domain->inter) continue;
        bw += graph->nchannels * (double)(domain->inter ? graph->bw_inter : graph->bw_intra);
    }
    return bw;
}

static void compare_graphs(struct diff *diff, const struct topo_scenario *scenarios)
{
    double before = graph_bw(&scenarios[0], TT_GRAPH_RING);
    double after = graph_bw(&scenarios[1], TT_GRAPH_RING);
    if (before > 0 && after > 0 && before != after) {
        text_add(&diff->channels, "%srings over %d node%s give %.4g instead of %.4g GB/s",
                 diff->channels.bytes ? "; " : "", scenarios[0].nodes,
                 scenarios[0].nodes == 1 ? "" : "s", after, before);
    }
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        char what[64];
        json_t *left = graph_text(&scenarios[0], kind);
        json_t *right = graph_text(&scenarios[1], kind);
        (void)snprintf(what, sizeof(what), "%s over %d node%s",
                       tt_graph_kind_name((enum tt_graph_kind)kind), scenarios[0].nodes,
                       scenarios[0].nodes == 1 ? "" : "s");
        if (!json_equal(left, right)) {
            add(diff, what, left, right);
            diff->other_channels = true;
        }
        json_decref(left);
        json_decref(right);
    }
}

/* ---- the command ---- */

struct side {
    struct tt_topo_file *file; /* owned */
    json_t *machine;           /* owned */
};

static bool open_side(const struct topo_options *options, int which, struct side *side)
{
    side->file = topo_open(options, options->paths[which]);
    if (side->file) side->machine = topo_system(side->file, &options->look);
    return side->machine != NULL;
}

static bool compare_channels(struct diff *diff, const struct topo_options *options,
                             const struct side *sides)
{
    bool done = true;
    for (int k = 0; k < options->ncounts && done; k++) {
        struct topo_scenario scenarios[2] = {{0}, {0}};
        for (int s = 0; s < 2 && done; s++) {
            done =
                topo_scenario_make(sides[s].file, &options->look, options->nodes[k], &scenarios[s]);
        }
        if (done) compare_graphs(diff, scenarios);
        topo_scenario_free(&scenarios[0]);
        topo_scenario_free(&scenarios[1]);
    }
    return done;
}

/* A node of the graph in a person's words: "DEV/0" is GPU 0. */
static void node_words(const char *node, char *words, size_t bytes)
{
    static const char *const kinds[][2] = {{"DEV/", "GPU "},        {"NET/", "NIC port "},
                                           {"NIC/", "NIC "},        {"CPU/", "CPU "},
                                           {"PCI/", "PCI switch "}, {"NVS/", "NVSwitch "}};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (strncmp(node, kinds[k][0], 4) != 0) continue;
        (void)snprintf(words, bytes, "%s%s", kinds[k][1], node + 4);
        return;
    }
    (void)snprintf(words, bytes, "%s", node);
}

/* One side of a row; a link, as ["PCI/0", "DEV/0", "PCI", 48], in words. */
static void print_side(const char *text)
{
    json_t *link = json_loads(text, 0, NULL);
    const char *ends[2] = {NULL, NULL}, *type = NULL;
    char words[2][64];
    double bw = 0;
    if (link && !json_unpack(link, "[s, s, s, F]", &ends[0], &ends[1], &type, &bw)) {
        for (int k = 0; k < 2; k++)
            node_words(ends[k], words[k], sizeof(words[k]));
        printf("%s to %s by %s, %.4g GB/s", words[0], words[1], type, bw);
    } else {
        printf("%s", text);
    }
    json_decref(link);
}

/* Both begin with the same word: "gpus", "link", "path". */
static bool same_kind(const char *a, const char *b)
{
    size_t bytes = strcspn(a, " ");
    return bytes == strcspn(b, " ") && strncmp(a, b, bytes) == 0;
}

static const char *what_of(const struct diff *diff, size_t k)
{
    return json_string_value(json_object_get(json_array_get(diff->list, k), "what"));
}

/* The first ones of each kind: hundreds of lines help nobody. */
static void print_rows(const struct diff *diff)
{
    size_t count = json_array_size(diff->list);
    for (size_t first = 0, next; first < count; first = next) {
        next = first + 1;
        while (next < count && same_kind(what_of(diff, first), what_of(diff, next)))
            next++;
        size_t shown = next - first > MOST_ROWS ? MOST_ROWS : next - first;
        for (size_t k = first; k < first + shown; k++) {
            const json_t *row = json_array_get(diff->list, k);
            printf("%s: ", what_of(diff, k));
            print_side(json_string_value(json_object_get(row, "a")));
            printf(" | ");
            print_side(json_string_value(json_object_get(row, "b")));
            printf("\n");
        }
        if (first + shown < next) {
            printf("%.*s: %zu more (--json has all)\n", (int)strcspn(what_of(diff, first), " "),
                   what_of(diff, first), next - first - shown);
        }
    }
}

static void print(const struct diff *diff, const char *verdict, const struct topo_options *options)
{
    if (options->json) {
        json_t *all = json_pack("{s:s, s:O}", "verdict", verdict, "differences", diff->list);
        topo_print(all);
        json_decref(all);
        return;
    }
    printf("%s\n", verdict);
    print_rows(diff);
}

/* False when memory is short. */
static bool conclude(struct diff *diff, const struct topo_options *options,
                     const struct side *sides)
{
    struct box boxes[2] = {{0}, {0}};
    struct text verdict = {0};
    bool done = box_init(&boxes[0], sides[0].machine) && box_init(&boxes[1], sides[1].machine);
    if (!diff->channels.bytes && diff->other_channels)
        text_add(&diff->channels, "channels differ, rings are as fast");
    if (json_array_size(diff->list) == 0) {
        text_add(&verdict, "the same machine");
    } else if (done) {
        verdict_make(&boxes[0], &boxes[1], text_get(&diff->channels), &verdict);
    }
    if (done) print(diff, text_get(&verdict), options);
    text_free(&verdict);
    box_fini(&boxes[0]);
    box_fini(&boxes[1]);
    return done;
}

int topo_diff(const struct topo_options *options)
{
    struct side sides[2] = {{0}, {0}};
    struct diff diff = {.list = json_array()};
    bool done = open_side(options, 0, &sides[0]) && open_side(options, 1, &sides[1]);
    if (done) {
        static const char *const lists[] = {"cpus", "gpus", "nets"};
        static const char *const matrices[] = {"gpu_gpu", "gpu_net"};
        for (int k = 0; k < 3; k++)
            compare_list(&diff, lists[k], sides[0].machine, sides[1].machine);
        compare_links(&diff, sides[0].machine, sides[1].machine);
        for (int k = 0; k < 2; k++)
            compare_paths(&diff, sides[0].machine, sides[1].machine, matrices[k]);
        done = compare_channels(&diff, options, sides);
    }
    if (done) done = conclude(&diff, options, sides);
    bool same = json_array_size(diff.list) == 0;
    for (int s = 0; s < 2; s++) {
        json_decref(sides[s].machine);
        tt_topo_file_free(sides[s].file);
    }
    text_free(&diff.channels);
    json_decref(diff.list);
    if (!done) return 2;
    return same ? 0 : 1;
}
