/* The picture of an NVLink domain whose hosts are alike, as `tutti topo show --svg` draws it: a
 * rack with a tray for each host and the NVSwitch between them, and beside it one host in full. */
#include "paths_svg.h"
#include "picture.h"

#include <stdlib.h>
#include <string.h>

enum {
    TOP = 106,         /* px: the first tray */
    TRAY = 24,         /* px it is high */
    STEP = 30,         /* px from tray to tray */
    SWITCH = 52,       /* px the NVSwitch is high */
    CABLE = 4,         /* px between cables */
    CABLES = 12,       /* that lie side by side; more share a place */
    TRAY_X = 84,       /* px left of the trays */
    TRAY_WIDTH = 300,  /* px */
    CHIP = 12,         /* px: a device in a tray, and less where there are many */
    CHIPS_WIDTH = 122, /* px: all of them */
    FRAME_X = 414,     /* px left of the host that is drawn in full */
    DETAIL_LEFT = 500, /* px left of its devices */
};

struct rack {
    const struct picture *picture; /* borrowed; of the host in full */
    const struct box *all;         /* borrowed */
    int hosts, above;              /* trays over the NVSwitch */
};

static double tray_y(const struct rack *rack, int host)
{
    double y = TOP + (double)STEP * host;
    return host < rack->above ? y : y + SWITCH + STEP - TRAY;
}

static double switch_y(const struct rack *rack)
{
    return TOP + (double)STEP * rack->above;
}

static double bottom(const struct rack *rack)
{
    return tray_y(rack, rack->hosts - 1) + TRAY;
}

static void put_rect(const struct rack *rack, double x, double y, double width, double height,
                     const char *style)
{
    (void)fprintf(rack->picture->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x, y, width,
                  height, style);
}

/* From the tray to the NVSwitch, each in a lane of its own; the farthest tray's lane is outermost.
 */
static void put_cable(const struct rack *rack, int host)
{
    bool over = host < rack->above;
    int distance = over ? rack->above - 1 - host : host - rack->above;
    double x = TRAY_X - 10 - CABLE * (distance % CABLES);
    double y = tray_y(rack, host) + TRAY / 2.0;
    double end = over ? switch_y(rack) : switch_y(rack) + SWITCH;
    (void)fprintf(rack->picture->out,
                  "<path d=\"M%.1f %.1fH%.1fV%.1f\" fill=\"none\" stroke=\"#22c55e\" "
                  "stroke-width=\"2.0\"/>\n",
                  (double)TRAY_X, y, x, end);
}

static int devices_of(const struct box *box)
{
    int count = 0;
    for (int k = 0; k < box->count; k++)
        count += box->node[k].kind == BOX_GPU || box->node[k].kind == BOX_NET;
    return count;
}

/* A host: its name, its devices in their order as chips, its ranks. */
static void put_tray(const struct rack *rack, int host)
{
    const struct picture *picture = rack->picture;
    struct box box = {0};
    double y = tray_y(rack, host);
    double x = TRAY_X + 68;
    int first = -1;
    int last = -1;
    put_rect(rack, TRAY_X, y, TRAY_WIDTH, TRAY,
             host ? "rx=\"4\" fill=\"#f8fafc\" stroke=\"#64748b\""
                  : "rx=\"4\" fill=\"#eef2ff\" stroke=\"#4f46e5\" stroke-width=\"2\"");
    struct picture_text text = {
        .x = TRAY_X + 8, .y = y + 16, .size = 11, .anchor = "start", .bold = host == 0, .most = 8};
    picture_print(picture, &text, "host %d", host);
    if (!box_init_host(&box, rack->all->machine, host)) return;
    int devices = devices_of(&box);
    double step = CHIP + 4;
    if (devices * step > CHIPS_WIDTH) step = CHIPS_WIDTH / (double)devices;
    double width = step > CHIP ? CHIP : step * 3 / 4;
    for (int k = 0; k < box.count; k++) {
        const struct box_node *node = &box.node[k];
        if (node->kind == BOX_GPU) {
            int rank = box_int(&box, "gpus", node->gpu, "rank");
            put_rect(rack, x, y + 6, width, CHIP, "rx=\"2\" fill=\"#86efac\" stroke=\"#15803d\"");
            if (first < 0 || rank < first) first = rank;
            if (rank + node->ranks - 1 > last) last = rank + node->ranks - 1;
        } else if (node->kind == BOX_NET) {
            put_rect(rack, x, y + 6, width, CHIP, "rx=\"2\" fill=\"#fde68a\" stroke=\"#b45309\"");
        } else {
            continue;
        }
        x += step;
    }
    box_fini(&box);
    text = (struct picture_text){.x = TRAY_X + TRAY_WIDTH - 8,
                                 .y = y + 16,
                                 .size = 11,
                                 .anchor = "end",
                                 .colour = "#475569",
                                 .most = 14};
    if (first >= 0 && last > first) picture_print(picture, &text, "ranks %d to %d", first, last);
    if (first >= 0 && last == first) picture_print(picture, &text, "rank %d", first);
}

/* GPUs that have NVLinks to the NVSwitch. */
static int switched_gpus(const struct box *box, double *each_out)
{
    int gpus = 0;
    for (int k = 0; k < box->count; k++) {
        if (!box->node[k].switched) continue;
        gpus++;
        *each_out = box->node[k].nvlink;
    }
    return gpus;
}

static void put_switch(const struct rack *rack)
{
    double each = 0;
    int gpus = switched_gpus(rack->all, &each);
    double x = TRAY_X - 10 - CABLE * (CABLES - 1) - 6;
    double y = switch_y(rack);
    double width = TRAY_X + TRAY_WIDTH - x;
    put_rect(rack, x, y, width, SWITCH, "rx=\"6\" fill=\"#bbf7d0\" stroke=\"#15803d\"");
    struct picture_text text = {.x = x + width / 2, .y = y + 22, .size = 14, .bold = true};
    picture_print(rack->picture, &text, "NVSwitch, %d GPUs", gpus);
    text = (struct picture_text){.x = x + width / 2, .y = y + 40, .size = 11};
    picture_print(rack->picture, &text, "each line is a host: %d x %.4g GB/s", gpus / rack->hosts,
                  each);
}

/* The host in full is what the first tray holds. */
static void put_zoom(const struct rack *rack, double top, double low)
{
    double from = TRAY_X + TRAY_WIDTH;
    double y[2] = {tray_y(rack, 0), tray_y(rack, 0) + TRAY};
    double to[2] = {top, low};
    put_rect(rack, FRAME_X, top, rack->picture->width - FRAME_X - 10, low - top,
             "rx=\"8\" fill=\"#fafaff\" stroke=\"#4f46e5\"");
    for (int k = 0; k < 2; k++) {
        (void)fprintf(rack->picture->out,
                      "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" "
                      "stroke=\"#4f46e5\" stroke-width=\"1.0\"/>\n",
                      from, y[k], from + 12, y[k], FRAME_X - 12.0, to[k], (double)FRAME_X, to[k]);
    }
}

/* How GPU 0 reaches the GPUs of other hosts, where that is the same for all. */
static void put_far(const struct rack *rack, double y)
{
    const struct box *box = rack->all;
    int own = box_count(box, "gpus") / rack->hosts; /* hosts are alike, and host 0 comes first */
    const struct picture_text where = {.x = FRAME_X + 12.0, .y = y, .size = 12, .anchor = "start"};
    const char *type = box_path_type(box, "gpu_gpu", 0, own);
    for (int to = own; to < box_count(box, "gpus"); to++) {
        if (strcmp(box_path_type(box, "gpu_gpu", 0, to), type) != 0) return;
    }
    const double bw = box_path_bw(box, "gpu_gpu", 0, own);
    char speed[32] = "";
    if (bw > 0) (void)snprintf(speed, sizeof(speed), " %.4g GB/s", bw);
    picture_print(rack->picture, &where, "To GPUs of other hosts: %s%s (%s).", type, speed,
                  path_type_meaning(path_type_of(type)));
}

bool topo_rack_svg(const struct box *box, const char *title, FILE *out)
{
    struct box one = {0};
    struct picture picture = {0};
    struct rack rack = {.picture = &picture, .all = box, .hosts = box_hosts(box)};
    bool ready =
        box_init_host(&one, box->machine, 0) && picture_init(&picture, &one, out, DETAIL_LEFT);
    if (ready) {
        char line[128];
        double paths = paths_svg_height(&picture);
        double low = picture.y_below + paths + 28;
        double each = 0;
        bool joined = switched_gpus(box, &each) > 0;
        rack.above = joined ? (rack.hosts + 1) / 2 : rack.hosts;
        double end = low > bottom(&rack) ? low : bottom(&rack);
        (void)snprintf(line, sizeof(line),
                       "%d hosts%s, all alike (green: GPUs, yellow: ports); host 0 in full.",
                       rack.hosts, joined ? " in one NVLink domain" : " that no NVSwitch joins");
        picture_begin(&picture, title, line, end + 16 + PICTURE_LEGEND);
        for (int host = 0; host < rack.hosts && joined; host++)
            put_cable(&rack, host);
        if (joined) put_switch(&rack);
        for (int host = 0; host < rack.hosts; host++)
            put_tray(&rack, host);
        put_zoom(&rack, TOP - 14, low);
        picture_machine(&picture);
        paths_svg_put(&picture, FRAME_X + 12, picture.y_below);
        put_far(&rack, low - 16);
        picture_legend(&picture, end + 16);
        picture_end(&picture);
    } else {
        (void)fprintf(stderr, "tutti topo: out of memory for a picture\n");
    }
    picture_fini(&picture);
    box_fini(&one);
    return ready;
}
