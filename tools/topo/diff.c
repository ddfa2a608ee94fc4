/* `tutti topo diff`: what two machines do not have in common, and what their channels make of it: a
 * verdict in words, then a line for each difference. Exit as of diff: 0 nothing; 1 something; 2
 * trouble. */
#include "machine.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 12 }; /* of one kind, as text; those that say the same count once */

struct diff {
    json_t *list;         /* owned; rows {what, a, b} */
    json_t *change;       /* owned; for each row a text that rows of the same change share */
    struct text channels; /* owned; how fast rings are, for the verdict */
    bool other_channels;
};

static char *as_text(const json_t *value)
{
    if (!value || json_is_null(value)) return strdup("none");
    if (json_is_string(value)) return strdup(json_string_value(value));
    return json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(7));
}

/* of: what changed, without the number of the part */
static void add(struct diff *diff, const char *what, const char *of, const json_t *a,
                const json_t *b)
{
    char *left = as_text(a);
    char *right = as_text(b);
    struct text change = {0};
    text_add(&change, "%s: %s | %s", of, left ? left : "", right ? right : "");
    json_array_append_new(diff->list,
                          json_pack("{s:s, s:s?, s:s?}", "what", what, "a", left, "b", right));
    json_array_append_new(diff->change, json_string(text_get(&change)));
    text_free(&change);
    free(left);
    free(right);
}

/* ---- lists of rows ---- */

static void compare_row(struct diff *diff, const char *list, size_t k, json_t *a, json_t *b)
{
    const char *key;
    json_t *value;
    json_object_foreach(a, key, value)
    {
        char what[128];
        char of[128];
        json_t *other = json_object_get(b, key);
        if (json_equal(value, other)) continue;
        (void)snprintf(what, sizeof(what), "%s %zu %s", list, k, key);
        (void)snprintf(of, sizeof(of), "%s %s", list, key);
        add(diff, what, of, value, other);
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
        add(diff, where, where, counts[0], counts[1]);
        json_decref(counts[0]);
        json_decref(counts[1]);
        if (json_array_size(right) < count) count = json_array_size(right);
    }
    for (size_t k = 0; k < count; k++)
        compare_row(diff, list, k, json_array_get(left, k), json_array_get(right, k));
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

/* Links of one machine that the other has not, or not as fast. */
static json_t *links_without(json_t *links, json_t *others)
{
    json_t *rest = json_array();
    size_t k;
    json_t *link;
    json_array_foreach(links, k, link)
    {
        if (!is_local(link) && !holds(others, link)) json_array_append(rest, link);
    }
    return rest;
}

static const char *link_field(const json_t *link, size_t field)
{
    const char *text = json_string_value(json_array_get(link, field));
    return text ? text : "";
}

/* The link of the same ends and type, taken out of the list; NULL: none. */
static json_t *take_link(json_t *links, const json_t *link)
{
    for (size_t k = 0; k < json_array_size(links); k++) {
        json_t *other = json_array_get(links, k);
        bool same = true;
        for (size_t field = 0; field < 3; field++)
            same = same && strcmp(link_field(link, field), link_field(other, field)) == 0;
        if (!same) continue;
        json_incref(other);
        json_array_remove(links, k);
        return other;
    }
    return NULL;
}

/* {from, to, type, bw}; null: there is none. */
static json_t *link_object(const json_t *link)
{
    if (!link) return json_null();
    return json_pack("{s:s, s:s, s:s, s:O}", "from", link_field(link, 0), "to", link_field(link, 1),
                     "type", link_field(link, 2), "bw", json_array_get(link, 3));
}

/* Both ways of a link say the same: the kinds of its ends ("NIC", "NET") stand in one order. */
static void add_link(struct diff *diff, const json_t *a, const json_t *b)
{
    const json_t *link = a ? a : b;
    const char *ends[2] = {link_field(link, 0), link_field(link, 1)};
    bool turned = strncmp(ends[0], ends[1], 3) > 0;
    struct text change = {0};
    text_add(&change, "link %.3s %.3s %s: %.4g | %.4g", ends[turned], ends[!turned],
             link_field(link, 2), a ? json_number_value(json_array_get(a, 3)) : -1,
             b ? json_number_value(json_array_get(b, 3)) : -1);
    json_array_append_new(diff->list, json_pack("{s:s, s:o, s:o}", "what", "link", "a",
                                                link_object(a), "b", link_object(b)));
    json_array_append_new(diff->change, json_string(text_get(&change)));
    text_free(&change);
}

static void compare_links(struct diff *diff, json_t *a, json_t *b)
{
    json_t *left = json_object_get(json_object_get(a, "system"), "links");
    json_t *right = json_object_get(json_object_get(b, "system"), "links");
    json_t *before = links_without(left, right);
    json_t *after = links_without(right, left);
    size_t k;
    json_t *link;
    json_array_foreach(before, k, link)
    {
        json_t *changed = take_link(after, link);
        add_link(diff, link, changed);
        json_decref(changed);
    }
    json_array_foreach(after, k, link)
    {
        add_link(diff, NULL, link);
    }
    json_decref(before);
    json_decref(after);
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
            if (right && !json_equal(left, right)) add(diff, what, matrix, left, right);
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
            add(diff, what, what, left, right);
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

/* One side of a row: text, or a link in words; other: the first side, which has said where a link
 * is; NULL: this is it. */
static void print_side(const json_t *side, const json_t *other)
{
    char words[2][64];
    if (!json_is_object(side)) {
        printf("%s", json_is_string(side) ? json_string_value(side) : "none");
        return;
    }
    if (!json_is_object(other)) {
        node_words(json_string_value(json_object_get(side, "from")), words[0], sizeof(words[0]));
        node_words(json_string_value(json_object_get(side, "to")), words[1], sizeof(words[1]));
        printf("%s to %s by %s, ", words[0], words[1],
               json_string_value(json_object_get(side, "type")));
    }
    printf("%.4g GB/s", json_number_value(json_object_get(side, "bw")));
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

/* Rows of one kind: the first of those that say the same, and how many more these are. */
static void print_kind(const struct diff *diff, size_t first, size_t next)
{
    json_t *counts = json_object();
    size_t shown = 0;
    json_int_t hidden = 0;
    for (size_t k = first; k < next; k++) {
        const char *change = json_string_value(json_array_get(diff->change, k));
        json_int_t count = json_integer_value(json_object_get(counts, change));
        json_object_set_new(counts, change, json_integer(count + 1));
    }
    for (size_t k = first; k < next; k++) {
        const json_t *row = json_array_get(diff->list, k);
        const char *change = json_string_value(json_array_get(diff->change, k));
        json_int_t count = json_integer_value(json_object_get(counts, change));
        json_object_del(counts, change);
        if (count == 0) continue;
        if (shown++ >= MOST_ROWS) {
            hidden += count;
            continue;
        }
        printf("%s: ", what_of(diff, k));
        print_side(json_object_get(row, "a"), NULL);
        printf(" | ");
        print_side(json_object_get(row, "b"), json_object_get(row, "a"));
        if (count > 1) printf("  (and %lld more alike)", (long long)count - 1);
        printf("\n");
    }
    if (hidden > 0) {
        printf("%.*s: %lld more (--json has all)\n", (int)strcspn(what_of(diff, first), " "),
               what_of(diff, first), (long long)hidden);
    }
    json_decref(counts);
}

/* Hundreds of lines are of no use. */
static void print_rows(const struct diff *diff)
{
    size_t count = json_array_size(diff->list);
    for (size_t first = 0, next; first < count; first = next) {
        next = first + 1;
        while (next < count && same_kind(what_of(diff, first), what_of(diff, next)))
            next++;
        print_kind(diff, first, next);
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
    if (!diff->channels.bytes) {
        text_add(&diff->channels, "%s over ",
                 diff->other_channels ? "channels differ, rings are as fast"
                                      : "channels are as many and as fast");
        for (int k = 0; k < options->ncounts; k++) {
            text_add(&diff->channels, "%s%d",
                     k == 0                      ? ""
                     : k == options->ncounts - 1 ? " and "
                                                 : ", ",
                     options->nodes[k]);
        }
        bool one = options->ncounts == 1 && options->nodes[0] == 1;
        text_add(&diff->channels, " node%s", one ? "" : "s");
    }
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
    struct diff diff = {.list = json_array(), .change = json_array()};
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
    json_decref(diff.change);
    if (!done) return 2;
    return same ? 0 : 1;
}
