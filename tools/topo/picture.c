/* Where the parts of a machine stand in a picture, and text. Devices stand in one row, each in a
 * column of its own; switches and CPUs above the middle of what hangs below them. */
#include "picture.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool is_device(const struct box_node *node)
{
    return node->kind == BOX_GPU || node->kind == BOX_NET;
}

/* Place node k and what is below, from the next free column on. */
static void place(struct picture *picture, int k)
{
    const struct box *box = picture->box;
    double first = -1;
    double last = -1;
    for (int child = k + 1; child < box->count; child++) {
        if (box->node[child].parent != k) continue;
        place(picture, child);
        if (first < 0) first = picture->x[child];
        last = picture->x[child];
    }
    if (first < 0) {
        if (is_device(&box->node[k])) picture->column[k] = picture->columns;
        first = last = PICTURE_LEFT + PICTURE_COLUMN * (picture->columns++ + 0.5);
    }
    picture->x[k] = (first + last) / 2;
}

/* Levels between CPUs and devices. */
static int levels(const struct box *box)
{
    int most = 0;
    for (int k = 0; k < box->count; k++) {
        const struct box_node *node = &box->node[k];
        bool between = node->kind == BOX_PCI || node->kind == BOX_NIC;
        if (between && node->depth > most) most = node->depth;
    }
    return most;
}

/* For the NVSwitch, or for arcs of NVLinks. */
static double room_below(const struct box *box)
{
    double room = 70;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind != BOX_GPU) continue;
        if (box->node[k].nvlink > 0 && !box->node[k].switched) return 190;
        if (box->node[k].switched) room = 165;
    }
    return room;
}

bool picture_init(struct picture *picture, const struct box *box, FILE *out)
{
    *picture = (struct picture){.out = out, .box = box};
    picture->x = calloc((size_t)box->count + 1, sizeof(double));
    picture->column = calloc((size_t)box->count + 1, sizeof(int));
    if (!picture->x || !picture->column) return false;
    for (int k = 0; k < box->count; k++)
        picture->column[k] = -1;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].parent < 0) place(picture, k);
    }
    picture->width = PICTURE_LEFT + PICTURE_COLUMN * (double)picture->columns + 30;
    if (picture->width < 780) picture->width = 780;
    picture->y_cpu = 110;
    picture->y_device = picture->y_cpu + PICTURE_ROW * (double)(levels(box) + 1);
    picture->y_below = picture->y_device + room_below(box);
    return true;
}

void picture_fini(struct picture *picture)
{
    free(picture->x);
    free(picture->column);
}

int picture_gpu(const struct picture *picture, int gpu)
{
    for (int k = 0; k < picture->box->count; k++) {
        const struct box_node *node = &picture->box->node[k];
        if (node->kind == BOX_GPU && node->gpu <= gpu && gpu < node->gpu + node->ranks) return k;
    }
    return -1;
}

int picture_net(const struct picture *picture, int net)
{
    return box_find(picture->box, BOX_NET, net);
}

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': (void)fputs("&amp;", out); break;
        case '<': (void)fputs("&lt;", out); break;
        case '>': (void)fputs("&gt;", out); break;
        default: (void)fputc(*text, out); break;
        }
    }
}

void picture_print(const struct picture *picture, const struct picture_text *where,
                   const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)fprintf(picture->out,
                  "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" "
                  "fill=\"%s\"%s>",
                  where->x, where->y, where->size, where->anchor ? where->anchor : "middle",
                  where->colour ? where->colour : "#1f2937",
                  where->bold ? " font-weight=\"bold\"" : "");
    put_escaped(picture->out, text);
    (void)fputs("</text>\n", picture->out);
}

void picture_begin(const struct picture *picture, const char *title, double height)
{
    const char *slash = strrchr(title, '/');
    const struct picture_text where = {
        .x = 24, .y = 38, .size = 20, .anchor = "start", .bold = true};
    (void)fprintf(picture->out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans, Helvetica, Arial, "
                  "sans-serif\">\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" "
                  "refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" "
                  "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"context-stroke\"/></marker>"
                  "</defs>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                  picture->width, height, picture->width, height);
    picture_print(picture, &where, "%s", slash ? slash + 1 : title);
}

void picture_end(const struct picture *picture)
{
    (void)fputs("</svg>\n", picture->out);
}
