/* The machine itself in a picture: CPUs, switches, GPUs, ports, and links as thick as they are
 * fast, with their GB/s. */
#include "picture.h"

#include <stdlib.h>
#include <string.h>

enum { SWITCH_WIDTH = 44, SWITCH_HEIGHT = 22, BAR_Y = PICTURE_DEVICE + 64 };
enum { MOST_NUMBERS = 128, NUMBER_WIDTH = 28, NUMBER_HEIGHT = 11 }; /* of arcs; px */

struct look {
    const char *fill, *edge;
};

static const struct look looks[BOX_KIND_COUNT_] = {
    [BOX_CPU] = {"#e0e7ff", "#4f46e5"}, [BOX_PCI] = {"#f3f4f6", "#6b7280"},
    [BOX_GPU] = {"#dcfce7", "#15803d"}, [BOX_NIC] = {"#f3f4f6", "#6b7280"},
    [BOX_NET] = {"#fef3c7", "#b45309"},
};

struct frame {
    double x, y, width, height; /* x, y: centre of the upper edge */
};

static bool is_device(const struct box_node *node)
{
    return node->kind == BOX_GPU || node->kind == BOX_NET;
}

/* Over all that hangs below a CPU. */
static struct frame over(const struct picture *picture, int k)
{
    double low = picture->x[k];
    double high = low;
    bool empty = true;
    for (int other = k + 1; other < picture->box->count; other++) {
        int top = other;
        while (top > k) {
            top = picture->box->node[top].parent;
        }
        if (top != k) continue;
        if (empty || picture->x[other] < low) low = picture->x[other];
        if (empty || picture->x[other] > high) high = picture->x[other];
        empty = false;
    }
    return (struct frame){(low + high) / 2, picture->y_cpu - 20, high - low + PICTURE_COLUMN - 12,
                          42};
}

static struct frame frame_of(const struct picture *picture, int k)
{
    const struct box_node *node = &picture->box->node[k];
    double x = picture->x[k];
    double level = picture->y_cpu + PICTURE_ROW * (double)node->depth;
    if (is_device(node)) {
        return (struct frame){x, picture->y_device, PICTURE_COLUMN - 12, PICTURE_DEVICE};
    }
    if (node->kind == BOX_CPU) {
        return over(picture, k);
    }
    return (struct frame){x, level, SWITCH_WIDTH, SWITCH_HEIGHT};
}

/* ---- links ---- */

static double thickness(double bw)
{
    double width = 1 + bw / 40;
    return width > 7 ? 7 : width;
}

/* Down from the parent, along, and down to the child; the number beside the end. */
static void put_link(const struct picture *picture, int k)
{
    const struct box_node *node = &picture->box->node[k];
    struct frame below = frame_of(picture, k);
    struct frame above = frame_of(picture, node->parent);
    double from = above.y + above.height;
    double bend = picture->box->node[node->parent].kind == BOX_CPU
                      ? from + 12
                      : from + (PICTURE_ROW - SWITCH_HEIGHT) / 3.0;
    double start = picture->box->node[node->parent].kind == BOX_CPU ? below.x : above.x;
    (void)fprintf(picture->out,
                  "<path d=\"M%.1f %.1fV%.1fH%.1fV%.1f\" fill=\"none\" stroke=\"#6b7280\" "
                  "stroke-width=\"%.1f\"/>\n",
                  start, from, bend, below.x, below.y,
                  thickness(node->up_bw < BOX_NO_LINK ? node->up_bw : 0));
    const struct picture_text number = {.x = below.x + 5,
                                        .y = below.y - 6,
                                        .size = 11,
                                        .anchor = "start",
                                        .colour = "#6b7280",
                                        .most = 5};
    if (node->up_bw < BOX_NO_LINK) picture_print(picture, &number, "%.4g", node->up_bw);
}

static double sys_bw(const struct box *box)
{
    json_t *links = json_object_get(json_object_get(box->machine, "system"), "links");
    size_t k;
    json_t *link;
    json_array_foreach(links, k, link)
    {
        const char *type = json_string_value(json_array_get(link, 2));
        if (type && !strcmp(type, "SYS")) return json_number_value(json_array_get(link, 3));
    }
    return 0;
}

static bool is_cpu_of(const struct box *box, int k, int host)
{
    return box->node[k].kind == BOX_CPU && box_int(box, "cpus", box->node[k].index, "host") == host;
}

/* One bus over all CPUs of a host, with an end at each. */
static void put_sys(const struct picture *picture, int host)
{
    const struct box *box = picture->box;
    double low = picture->width;
    double high = 0;
    for (int k = 0; k < box->count; k++) {
        if (!is_cpu_of(box, k, host)) continue;
        double x = frame_of(picture, k).x;
        if (x < low) low = x;
        if (x > high) high = x;
    }
    double y = picture->y_cpu - 34;
    if (high <= low || sys_bw(box) <= 0) return;
    (void)fprintf(picture->out, "<path d=\"M%.1f %.1fV%.1fH%.1fV%.1f", low, picture->y_cpu - 20, y,
                  high, picture->y_cpu - 20);
    for (int k = 0; k < box->count; k++) {
        if (!is_cpu_of(box, k, host)) continue;
        double x = frame_of(picture, k).x;
        if (x > low && x < high)
            (void)fprintf(picture->out, "M%.1f %.1fV%.1f", x, y, picture->y_cpu - 20);
    }
    (void)fprintf(picture->out, "\" fill=\"none\" stroke=\"#4f46e5\" stroke-width=\"%.1f\"/>\n",
                  thickness(sys_bw(box)));
    const struct picture_text text = {
        .x = (low + high) / 2, .y = y - 5, .size = 11, .colour = "#4f46e5"};
    picture_print(picture, &text, "%s%.4g GB/s", high - low > 160 ? "between CPUs " : "",
                  sys_bw(box));
}

/* ---- NVLink ---- */

static void put_switch(const struct picture *picture)
{
    const struct box *box = picture->box;
    double low = picture->width;
    double high = 0;
    double y = picture->y_device + BAR_Y;
    bool any = false;
    for (int k = 0; k < box->count; k++) {
        const struct box_node *node = &box->node[k];
        double x = picture->x[k];
        if (is_device(node) && x < low) low = x;
        if (is_device(node) && x > high) high = x;
        if (node->kind != BOX_GPU || !node->switched) continue;
        any = true;
        const struct picture_text number = {.x = x + 7,
                                            .y = picture->y_device + PICTURE_DEVICE + 36,
                                            .size = 11,
                                            .anchor = "start",
                                            .colour = "#15803d",
                                            .most = 6};
        (void)fprintf(picture->out,
                      "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#22c55e\" stroke-width=\"%.1f\"/>\n", x,
                      picture->y_device + PICTURE_DEVICE, y, thickness(node->nvlink));
        picture_print(picture, &number, "%.4g", node->nvlink);
    }
    if (!any) return;
    double width = high - low + PICTURE_COLUMN - 12;
    (void)fprintf(picture->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"28\" rx=\"6\" "
                  "fill=\"#bbf7d0\" stroke=\"#15803d\"/>\n",
                  (low + high - width) / 2, y, width);
    const struct picture_text name = {.x = (low + high) / 2, .y = y + 19, .size = 13, .bold = true};
    picture_print(picture, &name, width < 120 ? "NVS" : "NVSwitch");
}

/* Between devices directly: an arc below them, deeper the farther they are. */
static void put_arc(const struct picture *picture, int from, int to, double bw, void *context)
{
    double a = picture->x[from];
    double b = picture->x[to];
    double y = picture->y_device + PICTURE_DEVICE;
    double low = y + picture_arc_depth(picture, from, to) * 4 / 3; /* a curve reaches 3/4 of it */
    (void)context;
    (void)fprintf(picture->out,
                  "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" "
                  "stroke=\"#22c55e\" stroke-opacity=\"0.75\" stroke-width=\"%.1f\">"
                  "<title>NVLink %.4g GB/s</title></path>\n",
                  a, y, a, low, b, low, b, y, thickness(bw), bw);
}

/* Where numbers of arcs stand, so that the next ones find another place. */
struct places {
    int count;
    double x[MOST_NUMBERS], y[MOST_NUMBERS];
};

static bool is_free(const struct places *places, double x, double y)
{
    for (int k = 0; k < places->count; k++) {
        const double dx = x - places->x[k], dy = y - places->y[k];
        if (dx > -NUMBER_WIDTH && dx < NUMBER_WIDTH && dy > -NUMBER_HEIGHT && dy < NUMBER_HEIGHT)
            return false;
    }
    return true;
}

/* On the arc, near its middle; none where there is no room. */
static void put_arc_number(const struct picture *picture, int from, int to, double bw,
                           void *context)
{
    static const double at[] = {0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75};
    struct places *places = context;
    const double a = picture->x[from], b = picture->x[to];
    const double low = picture_arc_depth(picture, from, to) * 4 / 3;
    for (size_t k = 0; k < sizeof(at) / sizeof(at[0]) && places->count < MOST_NUMBERS; k++) {
        const double t = at[k];
        const double x = a + (b - a) * t * t * (3 - 2 * t);
        const double y = picture->y_device + PICTURE_DEVICE + low * 3 * t * (1 - t) + 4;
        if (!is_free(places, x, y)) continue;
        places->x[places->count] = x;
        places->y[places->count++] = y;
        const struct picture_text number = {
            .x = x, .y = y, .size = 10, .colour = "#15803d", .most = 5, .halo = true};
        picture_print(picture, &number, "%.3g", bw);
        return;
    }
}

/* To the CPU besides PCI. */
static void put_c2c(const struct picture *picture, int k)
{
    const struct box_node *node = &picture->box->node[k];
    int cpu = k;
    while (picture->box->node[cpu].parent >= 0) {
        cpu = picture->box->node[cpu].parent;
    }
    struct frame above = frame_of(picture, cpu);
    double x = picture->x[k] - 29;
    (void)fprintf(picture->out,
                  "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#9333ea\" stroke-width=\"%.1f\" "
                  "stroke-dasharray=\"8 3\"/>\n",
                  x, above.y + above.height, picture->y_device, thickness(node->c2c));
}

/* ---- parts ---- */

static void put_frame(const struct picture *picture, const struct frame *frame,
                      const struct look *look)
{
    (void)fprintf(picture->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\" "
                  "fill=\"%s\" stroke=\"%s\"/>\n",
                  frame->x - frame->width / 2, frame->y, frame->width, frame->height, look->fill,
                  look->edge);
}

/* The number of a part; where a host stands for several, the number that it has in each of them. */
static int number_of(const struct picture *picture, int k)
{
    const struct box *box = picture->box;
    const struct box_node *node = &box->node[k];
    int number = node->kind == BOX_GPU ? node->gpu : node->index;
    if (!picture->others || box_host_of(box, k) == 0) return number;
    for (int other = 0; other < box->count; other++) {
        if (box->node[other].kind != node->kind || box_host_of(box, other) != 0) continue;
        number -= node->kind == BOX_GPU ? box->node[other].ranks : 1;
    }
    return number;
}

static void name_cpu(const struct picture *picture, const struct frame *frame, int k)
{
    int index = picture->box->node[k].index;
    const struct box *box = picture->box;
    const char *vendor = box_text(box, "cpus", index, "vendor");
    const char *model = box_text(box, "cpus", index, "model");
    struct picture_text text = {
        .x = frame->x, .y = frame->y + 18, .size = 13, .bold = true, .most = 7};
    picture_print(picture, &text, "CPU %d", number_of(picture, k));
    text = (struct picture_text){
        .x = frame->x, .y = frame->y + 34, .size = 11, .most = (size_t)(frame->width / 7.3)};
    int host = box_int(box, "cpus", index, "host");
    const char *words = *model ? model : vendor;
    if (!*words) words = box_text(box, "cpus", index, "arch");
    if (host && picture->others) {
        picture_print(picture, &text, frame->width < 130 ? "of %d" : "of each of %d hosts",
                      picture->others);
    } else if (frame->width < 130) {
        picture_print(picture, &text, host ? "h %d" : "NUMA %d",
                      host ? host : box_int(box, "cpus", index, "numa"));
    } else if (host) {
        picture_print(picture, &text, "host %d, %s", host, words);
    } else {
        picture_print(picture, &text, "NUMA %d, %s", box_int(box, "cpus", index, "numa"), words);
    }
}

static void name_gpu(const struct picture *picture, const struct frame *frame, int k)
{
    const struct box_node *node = &picture->box->node[k];
    const struct box *box = picture->box;
    struct picture_text text = {
        .x = frame->x, .y = frame->y + 20, .size = 13, .bold = true, .most = 7};
    const char *model = box_gpu_model(box, node->gpu);
    picture_print(picture, &text, "GPU %d", number_of(picture, k));
    text = (struct picture_text){.x = frame->x, .y = frame->y + 37, .size = 11, .most = 8};
    if (model) {
        picture_print(picture, &text, "%s", model);
    } else {
        picture_print(picture, &text, "sm_%d", box_int(box, "gpus", node->gpu, "cc"));
    }
    text.y += 17;
    if (node->c2c > 0) {
        picture_print(picture, &text, "C2C %.4g", node->c2c);
    } else {
        picture_print(picture, &text, "%s", box_gpu_busid(box, node->gpu));
    }
}

/* Where the second of two lines begins; 0: one line is enough. */
static size_t second_line(const char *name)
{
    enum { ONE_LINE = 10, TWO_LINES = 8 }; /* characters of each */
    size_t count = 0, at = 0;
    for (size_t k = 0; name[k]; k++) {
        const bool begins = ((unsigned char)name[k] & 0xc0) != 0x80;
        if (begins && count == TWO_LINES) at = k;
        count += begins;
    }
    return count > ONE_LINE ? at : 0;
}

static void name_net(const struct picture *picture, const struct frame *frame, int index)
{
    const struct box *box = picture->box;
    struct picture_text text = {
        .x = frame->x, .y = frame->y + 20, .size = 13, .bold = true, .most = 7};
    char name[BOX_NAME_BYTES];
    box_net_name(box, index, name);
    const size_t second = second_line(name);
    if (second) {
        text = (struct picture_text){
            .x = frame->x, .y = frame->y + 14, .size = 12, .bold = true, .most = 7};
        picture_print(picture, &text, "%.*s", (int)second, name);
        text.y += 13;
    }
    picture_print(picture, &text, "%s", name + second);
    text = (struct picture_text){
        .x = frame->x, .y = frame->y + (second ? 42 : 37), .size = 11, .most = 10};
    picture_print(picture, &text, "NET %d", box_int(box, "nets", index, "dev"));
    text.y += second ? 15 : 17;
    picture_print(picture, &text, "%.4g GB/s", box_real(box, "nets", index, "bw"));
}

static void put_node(const struct picture *picture, int k)
{
    const struct box_node *node = &picture->box->node[k];
    struct frame frame = frame_of(picture, k);
    struct picture_text text = {.x = frame.x, .y = frame.y + 15, .size = 11, .most = 6};
    put_frame(picture, &frame, &looks[node->kind]);
    switch (node->kind) {
    case BOX_CPU: name_cpu(picture, &frame, k); break;
    case BOX_GPU: name_gpu(picture, &frame, k); break;
    case BOX_NET: name_net(picture, &frame, node->index); break;
    case BOX_NIC: picture_print(picture, &text, "NIC %d", number_of(picture, k)); break;
    default: picture_print(picture, &text, "PCI %d", number_of(picture, k)); break;
    }
}

/* Around the parts of a host, where the picture shows one for all the others. */
static void put_host(const struct picture *picture, int host)
{
    const struct box *box = picture->box;
    const double top = picture->y_cpu - 56, edge = (PICTURE_COLUMN - 12) / 2.0 + 4;
    double low = picture->width;
    double high = 0;
    for (int k = 0; k < box->count; k++) {
        if (!is_device(&box->node[k]) || box_host_of(box, k) != host) continue;
        if (picture->x[k] < low) low = picture->x[k];
        if (picture->x[k] > high) high = picture->x[k];
    }
    if (low > high) return;
    (void)fprintf(picture->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"8\" "
                  "fill=\"none\" stroke=\"#94a3b8\" stroke-dasharray=\"6 4\"/>\n",
                  low - edge, top, high - low + 2 * edge,
                  picture->y_device + PICTURE_DEVICE + 6 - top);
}

void picture_machine(const struct picture *picture)
{
    const struct box *box = picture->box;
    int hosts = 0;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind != BOX_CPU) continue;
        int host = box_int(box, "cpus", box->node[k].index, "host");
        if (host >= hosts) hosts = host + 1;
    }
    for (int host = 0; picture->others && host < hosts; host++)
        put_host(picture, host);
    for (int host = 0; host < hosts; host++)
        put_sys(picture, host);
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind == BOX_GPU && box->node[k].c2c > 0) put_c2c(picture, k);
    }
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].parent >= 0) put_link(picture, k);
    }
    picture_arcs(picture, put_arc, NULL);
    struct places places = {.count = 0};
    if (!picture_arcs_equal(picture)) picture_arcs(picture, put_arc_number, &places);
    put_switch(picture);
    for (int k = 0; k < box->count; k++)
        put_node(picture, k);
}
