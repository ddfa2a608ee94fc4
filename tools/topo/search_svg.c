/* `tutti topo search --svg`: the machine, and below it every channel as a line from device to
 * device, each in the column where it stands above. Equal channels are drawn once. */
#include "machine.h"
#include "picture.h"

#include <stdlib.h>
#include <string.h>

enum { LANE = 52, HEADING = 46 };

static const char *const colours[] = {"#dc2626", "#2563eb", "#16a34a", "#d97706",
                                      "#9333ea", "#0891b2", "#be185d", "#4d7c0f",
                                      "#7c3aed", "#0f766e", "#b91c1c", "#1d4ed8"};

struct lanes { /* where the next one goes */
    const struct picture *picture;
    const json_t *graph;
    double y; /* of the current lane's middle */
    const char *colour;
    bool only_measure; /* nothing is drawn */
};

static double column_x(const struct picture *picture, int column_node)
{
    return column_node < 0 ? 0 : picture->x[column_node];
}

/* ---- from ranks and NIC names to parts of the box ---- */

static int node_of_rank(const struct picture *picture, int rank)
{
    json_t *gpus = json_object_get(json_object_get(picture->box->machine, "system"), "gpus");
    for (size_t g = 0; g < json_array_size(gpus); g++) {
        json_t *row = json_array_get(gpus, g);
        if (json_integer_value(json_object_get(row, "rank")) != rank) continue;
        return picture_gpu(picture, (int)g);
    }
    return -1;
}

/* NICs are named host x 1000 + dev. */
static int node_of_net(const struct picture *picture, int name)
{
    json_t *nets = json_object_get(json_object_get(picture->box->machine, "system"), "nets");
    for (size_t n = 0; n < json_array_size(nets); n++) {
        json_t *row = json_array_get(nets, n);
        bool same = json_integer_value(json_object_get(row, "host")) == name / 1000 &&
                    json_integer_value(json_object_get(row, "dev")) == name % 1000;
        if (same) return picture_net(picture, (int)n);
    }
    return -1;
}

/* ---- lines ---- */

/* From column to column: above the lane's middle to the right, below it to the left, and farther
 * from it the longer the way. */
static void put_step(const struct lanes *lanes, int from, int to)
{
    double a = column_x(lanes->picture, from);
    double b = column_x(lanes->picture, to);
    double distance = (b > a ? b - a : a - b) / PICTURE_COLUMN;
    double reach = 14 + 4 * distance;
    if (reach > 30) reach = 30;
    double sign = b > a ? -1 : 1;
    double side = b > a ? 1 : -1;
    if (from < 0 || to < 0 || from == to) return;
    (void)fprintf(lanes->picture->out,
                  "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" "
                  "stroke=\"%s\" stroke-width=\"1.8\" marker-end=\"url(#tip)\"/>\n",
                  a + side * 3, lanes->y + sign * 4, a + side * 12, lanes->y + sign * reach,
                  b - side * 12, lanes->y + sign * reach, b - side * 4, lanes->y + sign * 6,
                  lanes->colour);
}

static void put_stop(const struct lanes *lanes, int node, bool first)
{
    double x = column_x(lanes->picture, node);
    if (node < 0) return;
    if (lanes->picture->box->node[node].kind == BOX_NET) {
        (void)fprintf(lanes->picture->out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"#fef3c7\" "
                      "stroke=\"%s\" stroke-width=\"1.8\"/>\n",
                      x - 5, lanes->y - 5, lanes->colour);
        return;
    }
    (void)fprintf(lanes->picture->out,
                  "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\" stroke=\"%s\" "
                  "stroke-width=\"1.8\"/>\n",
                  x, lanes->y, first ? 6 : 4, first ? lanes->colour : "#ffffff", lanes->colour);
}

/* ---- channels ---- */

static int rank_at(const json_t *graph, size_t channel, size_t position)
{
    const json_t *row = json_array_get(json_object_get(graph, "intra"), channel);
    return (int)json_integer_value(json_array_get(row, position));
}

static int net_at(const json_t *graph, size_t channel, size_t end)
{
    const json_t *row = json_array_get(json_object_get(graph, "inter"), channel);
    const json_t *net = json_array_get(row, end);
    return net ? (int)json_integer_value(net) : -1;
}

static bool is_ring(const json_t *graph)
{
    const char *pattern = json_string_value(json_object_get(graph, "pattern"));
    return pattern && !strcmp(pattern, "ring");
}

static void put_channel(const struct lanes *lanes, size_t channel)
{
    const json_t *graph = lanes->graph;
    const struct picture *picture = lanes->picture;
    size_t count = json_array_size(json_array_get(json_object_get(graph, "intra"), channel));
    bool inter = json_object_get(graph, "inter") != NULL;
    int first = node_of_rank(picture, rank_at(graph, channel, 0));
    int from = inter ? node_of_net(picture, net_at(graph, channel, 0)) : -1;
    int end = inter ? node_of_net(picture, net_at(graph, channel, 1)) : -1;
    int last = first;
    if (inter) put_step(lanes, from, first);
    for (size_t p = 1; p < count; p++) {
        int next = node_of_rank(picture, rank_at(graph, channel, p));
        put_step(lanes, last, next);
        last = next;
    }
    /* a tree's first GPU speaks with the NIC both ways; a ring ends elsewhere than it began */
    if (inter && is_ring(graph)) put_step(lanes, last, end);
    if (!inter && is_ring(graph)) put_step(lanes, last, first);
    put_stop(lanes, from, false);
    put_stop(lanes, end, false);
    for (size_t p = 0; p < count; p++)
        put_stop(lanes, node_of_rank(picture, rank_at(graph, channel, p)), p == 0);
}

/* ---- lanes ---- */

static bool same_channel(const json_t *graph, size_t a, size_t b)
{
    const json_t *intra = json_object_get(graph, "intra");
    const json_t *inter = json_object_get(graph, "inter");
    return json_equal(json_array_get(intra, a), json_array_get(intra, b)) &&
           (!inter || json_equal(json_array_get(inter, a), json_array_get(inter, b)));
}

/* How many channels are as this one; 0 when an earlier one was. */
static int alike(const json_t *graph, size_t channel)
{
    size_t count = json_array_size(json_object_get(graph, "intra"));
    int found = 0;
    for (size_t c = 0; c < count; c++) {
        if (!same_channel(graph, c, channel)) continue;
        if (c < channel) return 0;
        found++;
    }
    return found;
}

static void put_guides(const struct lanes *lanes, double top, double bottom)
{
    const struct picture *picture = lanes->picture;
    for (int k = 0; k < picture->box->count; k++) {
        if (picture->column[k] < 0) continue;
        bool net = picture->box->node[k].kind == BOX_NET;
        (void)fprintf(picture->out,
                      "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\" stroke-width=\"1\"/>\n",
                      picture->x[k], top, bottom, net ? "#fde68a" : "#d1d5db");
    }
}

static void put_heading(const struct lanes *lanes, const char *name)
{
    const json_t *graph = lanes->graph;
    const char *intra = json_string_value(json_object_get(graph, "type_intra"));
    const char *inter = json_string_value(json_object_get(graph, "type_inter"));
    int channels = (int)json_integer_value(json_object_get(graph, "channels"));
    const struct picture_text big = {
        .x = 24, .y = lanes->y + 26, .size = 15, .anchor = "start", .bold = true};
    const struct picture_text small = {
        .x = PICTURE_LEFT, .y = lanes->y + 26, .size = 11, .anchor = "start", .colour = "#4b5563"};
    picture_print(lanes->picture, &big, "%s", name);
    if (json_object_get(graph, "inter")) {
        picture_print(lanes->picture, &small, "%d x %.4g GB/s inside (%s), %.4g GB/s by NIC (%s)",
                      channels, json_number_value(json_object_get(graph, "bw_intra")), intra,
                      json_number_value(json_object_get(graph, "bw_inter")), inter);
    } else {
        picture_print(lanes->picture, &small, "%d x %.4g GB/s (%s)", channels,
                      json_number_value(json_object_get(graph, "bw_intra")), intra);
    }
}

static void put_name(const struct lanes *lanes, size_t channel, int count)
{
    const struct picture_text name = {.x = 24,
                                      .y = lanes->y + 4,
                                      .size = 11,
                                      .anchor = "start",
                                      .colour = lanes->colour,
                                      .bold = true};
    if (count > 1) {
        picture_print(lanes->picture, &name, "channel %d (%d alike)", (int)channel, count);
    } else {
        picture_print(lanes->picture, &name, "channel %d", (int)channel);
    }
}

/* A graph's lanes; moves on to what follows. */
static void put_graph(struct lanes *lanes, const char *name, const json_t *graph)
{
    size_t count = json_array_size(json_object_get(graph, "intra"));
    size_t distinct = 0;
    lanes->graph = graph;
    for (size_t c = 0; c < count; c++)
        distinct += alike(graph, c) > 0;
    if (count == 0) return;
    if (!lanes->only_measure) {
        double top = lanes->y + HEADING - 10;
        put_heading(lanes, name);
        put_guides(lanes, top, top + LANE * (double)distinct);
    }
    lanes->y += HEADING - 10 + LANE / 2.0;
    for (size_t c = 0; c < count; c++) {
        int same = alike(graph, c);
        if (same == 0) continue;
        lanes->colour = colours[c % (sizeof(colours) / sizeof(colours[0]))];
        if (!lanes->only_measure) {
            put_name(lanes, c, same);
            put_channel(lanes, c);
        }
        lanes->y += LANE;
    }
    lanes->y += 10 - LANE / 2.0;
}

static void put_all(struct lanes *lanes, const json_t *scenario)
{
    size_t d;
    json_t *domain;
    json_array_foreach(json_object_get(scenario, "domains"), d, domain)
    {
        const char *name;
        json_t *graph;
        json_object_foreach(json_object_get(domain, "graphs"), name, graph)
        {
            put_graph(lanes, name, graph);
        }
    }
}

static void draw(const struct picture *picture, const char *title, const json_t *scenario)
{
    struct lanes lanes = {.picture = picture, .y = picture->y_below, .only_measure = true};
    put_all(&lanes, scenario);
    const struct picture_text note = {
        .x = 24, .y = lanes.y + 22, .size = 11, .anchor = "start", .colour = "#6b7280"};
    picture_begin(picture, title, lanes.y + 40);
    picture_machine(picture);
    lanes.y = picture->y_below;
    lanes.only_measure = false;
    put_all(&lanes, scenario);
    picture_print(
        picture, &note,
        "A channel runs along the arrows, from its first GPU (filled) on; squares are NICs.");
    picture_end(picture);
}

int topo_search_svg(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct topo_scenario scenario = {0};
    struct box box = {0};
    struct picture picture = {0};
    bool done = machine && box_init(&box, machine) && picture_init(&picture, &box, stdout) &&
                topo_scenario_make(file, &options->look, options->nodes[0], &scenario);
    if (done) {
        json_t *graphs = topo_scenario_json(&scenario);
        draw(&picture, topo_name(options->paths[0]), graphs);
        json_decref(graphs);
    }
    topo_scenario_free(&scenario);
    picture_fini(&picture);
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
