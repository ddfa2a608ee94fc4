/* `tutti topo search --svg`: the machine, and below it every channel as a line from device to
 * device, each in the column where it stands above. Equal channels are drawn once, and so are the
 * hosts of an NVLink domain that channels pass through alike (route.h). */
#include "../machine.h"
#include "picture.h"
#include "route.h"

#include <stdlib.h>
#include <string.h>

enum { LANE = 52, HEADING = 58, NOTE = 14 };

struct lanes { /* where the next one goes */
    const struct picture *picture;
    const json_t *graph;
    double y; /* of the current lane's middle */
    const char *colour;
    int tip;           /* its arrows' heads */
    bool only_measure; /* nothing is drawn */
    struct route_merge merge;
    struct route *routes; /* owned; of the graph's channels */
    size_t nroutes;
    char whose[64]; /* words before a graph's facts; empty where there is one node */
};

static double column_x(const struct picture *picture, int column_node)
{
    return column_node < 0 ? 0 : picture->x[column_node];
}

/* ---- lines ---- */

/* To the same device of the next host: a loop above it. */
static void put_loop(const struct lanes *lanes, double x)
{
    (void)fprintf(lanes->picture->out,
                  "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" "
                  "stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"5 3\" "
                  "marker-end=\"url(#tip%d)\"/>\n",
                  x - 3, lanes->y - 4, x - 32, lanes->y - 28, x + 32, lanes->y - 28, x + 5,
                  lanes->y - 5, lanes->colour, lanes->tip);
}

/* From column to column: above the lane's middle to the right, below it to the left, and farther
 * from it the longer the way. */
static void put_step(const struct lanes *lanes, const struct route_step *step)
{
    const int from = step->from;
    const int to = step->to;
    double a = column_x(lanes->picture, from);
    double b = column_x(lanes->picture, to);
    double distance = (b > a ? b - a : a - b) / PICTURE_COLUMN;
    double reach = 14 + 4 * distance;
    if (reach > 30) reach = 30;
    double sign = b > a ? -1 : 1;
    double side = b > a ? 1 : -1;
    double bend = side * (distance > 1.5 ? 34 : 20);
    if (from < 0 || to < 0) return;
    if (from == to && step->next_host) put_loop(lanes, a);
    if (from == to) return;
    (void)fprintf(lanes->picture->out,
                  "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" "
                  "stroke=\"%s\" stroke-width=\"1.8\"%s marker-end=\"url(#tip%d)\"/>\n",
                  a + side * 3, lanes->y + sign * 4, a + bend, lanes->y + sign * reach, b - bend,
                  lanes->y + sign * reach, b - side * 5, lanes->y + sign * 5, lanes->colour,
                  step->next_host ? " stroke-dasharray=\"5 3\"" : "", lanes->tip);
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

static bool is_multicast(const json_t *graph)
{
    const char *pattern = json_string_value(json_object_get(graph, "pattern"));
    return pattern && !strcmp(pattern, "nvls");
}

/* The NVSwitch: a dashed line along all GPUs of the node. */
static void put_multicast(const struct lanes *lanes)
{
    const struct picture *picture = lanes->picture;
    double low = picture->width;
    double high = 0;
    for (int k = 0; k < picture->box->count; k++) {
        if (picture->box->node[k].kind != BOX_GPU || !picture->box->node[k].switched) continue;
        if (picture->x[k] < low) low = picture->x[k];
        if (picture->x[k] > high) high = picture->x[k];
    }
    if (low > high) return;
    (void)fprintf(picture->out,
                  "<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\" stroke-width=\"1.8\" "
                  "stroke-dasharray=\"3 5\"/>\n",
                  low, lanes->y, high, lanes->colour);
    for (int k = 0; k < picture->box->count; k++) {
        if (picture->box->node[k].switched) put_stop(lanes, k, false);
    }
}

static void put_channel(const struct lanes *lanes, size_t channel)
{
    const struct route *route = &lanes->routes[channel];
    if (is_multicast(lanes->graph)) put_multicast(lanes);
    for (int k = 0; k < route->count; k++)
        put_step(lanes, &route->step[k]);
    put_stop(lanes, route->ports[0], false);
    put_stop(lanes, route->ports[1], false);
    for (int k = 0; k < route->ngpus; k++)
        put_stop(lanes, route->gpu[k], k == 0);
}

/* ---- lanes ---- */

static bool same_channel(const struct lanes *lanes, size_t a, size_t b)
{
    const json_t *intra = json_object_get(lanes->graph, "intra");
    const json_t *inter = json_object_get(lanes->graph, "inter");
    if (lanes->merge.others) return route_same(&lanes->routes[a], &lanes->routes[b]);
    return json_equal(json_array_get(intra, a), json_array_get(intra, b)) &&
           (!inter || json_equal(json_array_get(inter, a), json_array_get(inter, b)));
}

/* How many channels are as this one; 0 when an earlier one was. */
static int count_same(const struct lanes *lanes, size_t channel)
{
    int found = 0;
    for (size_t c = 0; c < lanes->nroutes; c++) {
        if (!same_channel(lanes, c, channel)) continue;
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

/* What runs along the lines. */
static const char *story(const json_t *graph, const char *name)
{
    bool inter = json_object_get(graph, "inter") != NULL;
    if (route_is_ring(graph) && inter) {
        return "In by the first GPU's NIC, through every GPU, out by the last one's NIC to the "
               "next node.";
    }
    if (route_is_ring(graph)) return "Round through every GPU, back to the first.";
    if (is_multicast(graph) && inter) {
        return "The NVSwitch (dashed) sums the filled GPU's part; its NIC exchanges it with other "
               "nodes.";
    }
    if (is_multicast(graph)) {
        return "The NVSwitch (dashed) sums the filled GPU's part and spreads the result to all.";
    }
    if (!strncmp(name, "collnet", 7)) {
        return "Sums climb against the arrows to the network, which sums over nodes.";
    }
    return inter ? "Sums climb against the arrows to the NIC and other nodes; results come back "
                   "along them."
                 : "Sums climb against the arrows; results come back along them.";
}

static void put_heading(const struct lanes *lanes, const char *name)
{
    const json_t *graph = lanes->graph;
    const char *intra = json_string_value(json_object_get(graph, "type_intra"));
    const char *inter = json_string_value(json_object_get(graph, "type_inter"));
    double inside = json_number_value(json_object_get(graph, "bw_intra"));
    double outside = json_number_value(json_object_get(graph, "bw_inter"));
    int channels = (int)json_integer_value(json_object_get(graph, "channels"));
    const char *noun = channels == 1 ? "channel" : "channels";
    const struct picture_text big = {
        .x = PICTURE_MARGIN, .y = lanes->y + 26, .size = 15, .anchor = "start", .bold = true};
    struct picture_text small = {
        .x = PICTURE_LEFT, .y = lanes->y + 26, .size = 11, .anchor = "start", .colour = "#1f2937"};
    picture_print(lanes->picture, &big, "%s", name);
    if (json_object_get(graph, "inter")) {
        picture_print(lanes->picture, &small,
                      "%s%d %s of %.4g GB/s between GPUs (%s), %.4g GB/s by NIC (%s).",
                      lanes->whose, channels, noun, inside, intra, outside, inter);
    } else {
        picture_print(lanes->picture, &small, "%s%d %s of %.4g GB/s (%s).", lanes->whose, channels,
                      noun, inside, intra);
    }
    small.y += 15;
    small.colour = "#6b7280";
    picture_print(lanes->picture, &small, "%s", story(graph, name));
}

/* "channels 0 to 3, all alike", "channels 0, 4, .. 28", "channels 0, 3, 4"; what does not fit is
 * counted. */
static void say_numbers(const struct lanes *lanes, size_t channel, char *text, size_t bytes)
{
    enum { MOST = 5 };
    size_t numbers[MOST] = {0}, count = 0, last = channel;
    bool even = true;
    for (size_t c = channel; c < lanes->nroutes; c++) {
        if (!same_channel(lanes, c, channel)) continue;
        if (count < MOST) numbers[count] = c;
        if (count > 1) even = even && c - last == numbers[1] - numbers[0];
        count++;
        last = c;
    }
    if (count == 1) {
        (void)snprintf(text, bytes, "channel %zu", channel);
    } else if (last - channel + 1 == count) {
        (void)snprintf(text, bytes, "channels %zu to %zu, all alike", channel, last);
    } else if (count > MOST && even) {
        (void)snprintf(text, bytes, "channels %zu, %zu, .. %zu", channel, numbers[1], last);
    } else if (count > MOST) {
        (void)snprintf(text, bytes, "channel %zu, %zu like it", channel, count - 1);
    } else {
        int used = snprintf(text, bytes, "channels %zu", channel);
        for (size_t k = 1; k < count; k++)
            used += snprintf(text + used, bytes - (size_t)used, ", %zu", numbers[k]);
    }
}

/* Where channels that look the same begin, as the picture shows one host for all of them. */
static void say_hosts(const struct lanes *lanes, size_t channel, char *text, size_t bytes)
{
    const int first = lanes->routes[channel].host;
    int last = first, places = 1;
    bool row = true;
    for (size_t c = channel + 1; c < lanes->nroutes; c++) {
        const int host = lanes->routes[c].host;
        if (!same_channel(lanes, c, channel) || host == last) continue;
        row = row && host == last + 1;
        places++;
        last = host;
    }
    if (places == 1) {
        (void)snprintf(text, bytes, "from host %d", first);
    } else if (row) {
        (void)snprintf(text, bytes, "from hosts %d to %d", first, last);
    } else {
        (void)snprintf(text, bytes, "from %d hosts, %d first", places, first);
    }
}

static void put_name(const struct lanes *lanes, size_t channel)
{
    char words[96];
    struct picture_text name = {.x = PICTURE_MARGIN,
                                .y = lanes->y + (lanes->merge.others ? -2 : 4),
                                .size = 11,
                                .anchor = "start",
                                .colour = lanes->colour,
                                .bold = true,
                                .most = 22};
    say_numbers(lanes, channel, words, sizeof(words));
    picture_print(lanes->picture, &name, "%s", words);
    if (!lanes->merge.others) return;
    name.y += 14;
    name.bold = false;
    say_hosts(lanes, channel, words, sizeof(words));
    picture_print(lanes->picture, &name, "%s", words);
}

static bool take_graph(struct lanes *lanes, const json_t *graph)
{
    size_t count = json_array_size(json_object_get(graph, "intra"));
    lanes->graph = graph;
    lanes->routes = calloc(count + 1, sizeof(*lanes->routes));
    for (lanes->nroutes = 0; lanes->routes && lanes->nroutes < count; lanes->nroutes++) {
        struct route *route = &lanes->routes[lanes->nroutes];
        if (!route_init(route, lanes->picture->box, &lanes->merge, graph, lanes->nroutes)) {
            lanes->nroutes++; /* it may be half made */
            return false;
        }
    }
    return lanes->routes != NULL;
}

static void leave_graph(struct lanes *lanes)
{
    for (size_t c = 0; c < lanes->nroutes; c++)
        route_fini(&lanes->routes[c]);
    free(lanes->routes);
    lanes->routes = NULL;
    lanes->nroutes = 0;
}

/* A graph's lanes; moves on to what follows. */
static void put_graph(struct lanes *lanes, const char *name)
{
    size_t distinct = 0;
    for (size_t c = 0; c < lanes->nroutes; c++)
        distinct += count_same(lanes, c) > 0;
    if (lanes->nroutes == 0) return;
    if (!lanes->only_measure) {
        double top = lanes->y + HEADING - 10;
        put_heading(lanes, name);
        put_guides(lanes, top, top + LANE * (double)distinct);
    }
    lanes->y += HEADING - 10 + LANE / 2.0;
    for (size_t c = 0; c < lanes->nroutes; c++) {
        int same = count_same(lanes, c);
        if (same == 0) continue;
        lanes->colour = picture_colour((int)c, &lanes->tip);
        if (!lanes->only_measure) {
            put_name(lanes, c);
            put_channel(lanes, c);
        }
        lanes->y += LANE;
    }
    lanes->y += 10 - LANE / 2.0;
}

/* "GPU 3: ", "GPUs 0 to 3: " for one of several nodes of a machine. */
static void name_domain(struct lanes *lanes, const json_t *domain, size_t domains)
{
    const json_t *ranks = json_object_get(domain, "ranks");
    size_t count = json_array_size(ranks);
    int first = (int)json_integer_value(json_array_get(ranks, 0));
    int last = (int)json_integer_value(json_array_get(ranks, count ? count - 1 : 0));
    lanes->whose[0] = '\0';
    if (domains < 2 || count == 0) return;
    if (count == 1) {
        (void)snprintf(lanes->whose, sizeof(lanes->whose), "Rank %d: ", first);
    } else {
        (void)snprintf(lanes->whose, sizeof(lanes->whose), "%zu ranks, %d to %d: ", count, first,
                       last);
    }
}

static bool put_all(struct lanes *lanes, const json_t *scenario)
{
    size_t d;
    json_t *domain;
    bool good = true;
    json_t *domains = json_object_get(scenario, "domains");
    json_array_foreach(domains, d, domain)
    {
        const char *name;
        json_t *graph;
        name_domain(lanes, domain, json_array_size(domains));
        json_object_foreach(json_object_get(domain, "graphs"), name, graph)
        {
            good = good && take_graph(lanes, graph);
            if (good) put_graph(lanes, name);
            leave_graph(lanes);
        }
    }
    return good;
}

/* "Channels of the machine alone", "... of each of 4 equal machines (32 ranks)". */
static void describe(const json_t *scenario, const struct tt_topo_options *look, char *line,
                     size_t bytes)
{
    int nodes = (int)json_integer_value(json_object_get(scenario, "nodes"));
    int ranks = (int)json_integer_value(json_object_get(scenario, "ranks"));
    const char *what = look->hosts > 1 ? "NVLink domain" : "machine";
    if (nodes == 1) {
        (void)snprintf(line, bytes, "Channels of the %s alone (%d %s).", what, ranks,
                       ranks == 1 ? "rank" : "ranks");
    } else {
        (void)snprintf(line, bytes,
                       "Channels of each of %d equal %ss in one communicator (%d ranks).", nodes,
                       what, ranks);
    }
}

static int ranks_of_host(const struct box *box)
{
    int ranks = 0;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind == BOX_GPU && box_host_of(box, k) == 0) ranks += box->node[k].ranks;
    }
    return ranks;
}

/* What stands where, below the lanes. */
static void put_notes(const struct lanes *lanes, double y)
{
    struct picture_text note = {
        .x = PICTURE_MARGIN, .y = y, .size = 11, .anchor = "start", .colour = "#6b7280"};
    picture_print(lanes->picture, &note,
                  "Columns are the devices above: circles GPUs, squares NICs; arrows lead on from "
                  "the first GPU (filled).");
    if (!lanes->merge.others) return;
    note.y += NOTE;
    picture_print(lanes->picture, &note,
                  "Left: the host where a channel begins. Right: each of the other %d, which it "
                  "passes through alike; broken arrows lead to the next of them.",
                  lanes->merge.others);
    note.y += NOTE;
    if (!lanes->merge.ports) {
        picture_print(lanes->picture, &note, "Its ports are left out: no channel uses them there.");
        note.y += NOTE;
    }
    picture_print(lanes->picture, &note,
                  "Ranks go up with hosts and GPUs: those of host h begin with %d x h.",
                  ranks_of_host(lanes->picture->box));
}

static bool put_picture(struct picture *picture, const char *title, const char *line,
                        const json_t *graphs, const struct route_merge *merge)
{
    struct lanes lanes = {
        .picture = picture, .y = picture->y_below, .only_measure = true, .merge = *merge};
    if (!put_all(&lanes, graphs)) return false;
    double notes = merge->others ? (merge->ports ? 3 : 4) * NOTE : NOTE;
    double y = lanes.y;
    picture_begin(picture, title, line, y + 18 + notes + PICTURE_LEGEND);
    picture_machine(picture);
    lanes.y = picture->y_below;
    lanes.only_measure = false;
    bool good = put_all(&lanes, graphs);
    put_notes(&lanes, y + 22);
    picture_legend(picture, y + 14 + notes);
    picture_end(picture);
    return good;
}

bool topo_channels_svg(json_t *machine, const char *title, const struct tt_topo_options *look,
                       const struct topo_scenario *scenario, FILE *out)
{
    char line[128];
    struct box box = {0};
    struct picture picture = {0};
    json_t *graphs = topo_scenario_json(scenario);
    struct route_merge merge = route_merge_of(machine, graphs);
    bool done = graphs && box_init_first(&box, machine, merge.shown);
    if (done && merge.others && !merge.ports) box_drop_nets(&box, 1);
    done = done && picture_init(&picture, &box, out, PICTURE_LEFT);
    if (done) {
        picture.others = merge.others;
        describe(graphs, look, line, sizeof(line));
        done = put_picture(&picture, title, line, graphs, &merge);
    }
    picture_fini(&picture);
    box_fini(&box);
    json_decref(graphs);
    return done;
}

int topo_search_svg(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct topo_scenario scenario = {0};
    bool done =
        machine && topo_scenario_make(file, &options->look, options->nodes[0], &scenario) &&
        topo_channels_svg(machine, topo_name(options->paths[0]), &options->look, &scenario, stdout);
    topo_scenario_free(&scenario);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
