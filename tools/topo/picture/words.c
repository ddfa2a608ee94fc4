/* The words of a picture: what a machine consists of, what colours mean; and the NVLinks between
 * GPUs, which both count. Only existing devices are named. */
#include "picture.h"

#include "topo/topo.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- NVLinks between GPUs ---- */

double picture_arc_depth(const struct picture *picture, int a, int b)
{
    double distance = (picture->x[b] - picture->x[a]) / PICTURE_COLUMN;
    double depth = 17 + 11 * distance;
    return depth > 112 ? 112 : depth;
}

void picture_arcs(const struct picture *picture, picture_arc each, void *context)
{
    const struct box *box = picture->box;
    json_t *links = json_object_get(json_object_get(box->machine, "system"), "links");
    size_t k;
    json_t *link;
    json_array_foreach(links, k, link)
    {
        const char *type = json_string_value(json_array_get(link, 2));
        const char *from = json_string_value(json_array_get(link, 0));
        const char *to = json_string_value(json_array_get(link, 1));
        if (!type || strcmp(type, "NVL") != 0 || !from || !to) continue;
        if (strncmp(from, "DEV/", 4) != 0 || strncmp(to, "DEV/", 4) != 0) continue;
        int a = box_find(box, BOX_GPU, (int)strtol(from + 4, NULL, 10));
        int b = box_find(box, BOX_GPU, (int)strtol(to + 4, NULL, 10));
        if (a < 0 || b < 0 || picture->x[a] >= picture->x[b]) continue;
        each(picture, a, b, json_number_value(json_array_get(link, 3)), context);
    }
}

struct speeds {
    int count;
    double least, most;
};

static void count_speed(struct speeds *speeds, double bw)
{
    if (speeds->count == 0 || bw < speeds->least) speeds->least = bw;
    if (bw > speeds->most) speeds->most = bw;
    speeds->count++;
}

static void count_arc(const struct picture *picture, int a, int b, double bw, void *context)
{
    (void)picture, (void)a, (void)b;
    count_speed(context, bw);
}

bool picture_arcs_equal(const struct picture *picture)
{
    struct speeds arcs = {0};
    picture_arcs(picture, count_arc, &arcs);
    return arcs.most <= arcs.least;
}

/* ---- lines ---- */

struct line {
    char *text; /* borrowed */
    size_t bytes, at;
};

static void append(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(line->text + line->at, line->bytes - line->at, format, arguments);
    va_end(arguments);
    if (count > 0) line->at += (size_t)count;
    if (line->at >= line->bytes) line->at = line->bytes - 1;
}

static void append_speeds(struct line *line, const struct speeds *speeds)
{
    append(line, "%.4g", speeds->least);
    if (speeds->most > speeds->least) append(line, " to %.4g", speeds->most);
    append(line, " GB/s");
}

static void append_count(struct line *line, int count, const char *what)
{
    append(line, "%d %s%s", count, what, count == 1 ? "" : "s");
}

static void append_gpus(struct line *line, const struct box *box)
{
    int count = box_count(box, "gpus");
    int least = 0;
    int most = 0;
    for (int g = 0; g < count; g++) {
        int cc = box_int(box, "gpus", g, "cc");
        if (g == 0 || cc < least) least = cc;
        if (cc > most) most = cc;
    }
    append_count(line, count, "GPU");
    if (count && least == most) append(line, " (sm_%d)", most);
    if (least < most) append(line, " (sm_%d to sm_%d)", least, most);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through the line */
void picture_facts(const struct box *box, char *text, size_t bytes)
{
    struct line line = {.text = text, .bytes = bytes};
    struct speeds ports = {0};
    bool switched = false;
    bool linked = false;
    for (int k = 0; k < box->count; k++) {
        switched = switched || box->node[k].switched;
        linked = linked || box->node[k].nvlink > 0;
    }
    for (int n = 0; n < box_count(box, "nets"); n++)
        count_speed(&ports, box_real(box, "nets", n, "bw"));
    append_gpus(&line, box);
    if (linked) append(&line, "%s", switched ? " on an NVSwitch" : " with NVLink");
    append(&line, ", ");
    append_count(&line, box_count(box, "cpus"), "CPU");
    append(&line, ", ");
    append_count(&line, ports.count, "network port");
    if (ports.count) append(&line, " of ");
    if (ports.count) append_speeds(&line, &ports);
}

/* ---- what colours mean ---- */

static const char ink[] = "#6b7280";

const char *picture_path_fill(int type)
{
    static const char *const fills[TT_PATH_COUNT_] = {
        [TT_PATH_LOC] = "#e2e8f0", [TT_PATH_NVL] = "#86efac", [TT_PATH_NVB] = "#99f6e4",
        [TT_PATH_C2C] = "#bae6fd", [TT_PATH_PIX] = "#d9f99d", [TT_PATH_PXB] = "#fef9c3",
        [TT_PATH_P2C] = "#fcd34d", [TT_PATH_PXN] = "#ddd6fe", [TT_PATH_PHB] = "#fed7aa",
        [TT_PATH_SYS] = "#fdba74", [TT_PATH_NET] = "#fca5a5", [TT_PATH_DIS] = "#e5e7eb"};
    return fills[type];
}

static bool any_c2c(const struct box *box)
{
    bool any = false;
    for (int k = 0; k < box->count; k++)
        any = any || box->node[k].c2c > 0;
    return any;
}

static bool any_nvlink(const struct box *box)
{
    bool any = false;
    for (int k = 0; k < box->count; k++)
        any = any || box->node[k].nvlink > 0;
    return any;
}

void picture_legend(const struct picture *picture, double y)
{
    char text[256];
    struct line line = {.text = text, .bytes = sizeof(text)};
    struct speeds arcs = {0};
    struct picture_text where = {
        .x = PICTURE_MARGIN, .y = y + 11, .size = 11, .anchor = "start", .colour = ink};
    picture_print(picture, &where,
                  "Numbers are GB/s in one direction; lines are thicker where links are faster.");
    picture_arcs(picture, count_arc, &arcs);
    append(&line, "Grey: PCI and network");
    if (any_nvlink(picture->box)) append(&line, "; green: NVLink");
    if (arcs.count) append(&line, ", ");
    if (arcs.count) append_speeds(&line, &arcs);
    if (any_c2c(picture->box)) append(&line, "; purple: chip to chip (C2C)");
    if (box_count(picture->box, "cpus") > 1) append(&line, "; blue: between CPUs");
    append(&line, ".");
    where.y += 17;
    picture_print(picture, &where, "%s", text);
}
