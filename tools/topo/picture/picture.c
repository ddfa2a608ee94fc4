/* Where the parts of a machine stand in a picture, and text. Devices stand in one row, each in a
 * column of its own; switches and CPUs above the middle of what hangs below them. */
#include "picture.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { NARROWEST = 880 }; /* px: room for the lines of text */

static bool is_device(const struct box_node *node)
{
    return node->kind == BOX_GPU || node->kind == BOX_NET;
}

/* Place node k and what is below, from the next free column on. */
static void set_position(struct picture *picture, int k)
{
    const struct box *box = picture->box;
    double first = -1;
    double last = -1;
    for (int child = k + 1; child < box->count; child++) {
        if (box->node[child].parent != k) continue;
        set_position(picture, child);
        if (first < 0) first = picture->x[child];
        last = picture->x[child];
    }
    if (first < 0) {
        if (is_device(&box->node[k])) picture->column[k] = picture->columns;
        first = last = PICTURE_COLUMN * (picture->columns++ + 0.5);
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

static void deepen(const struct picture *picture, int a, int b, double bw, void *context)
{
    double *room = context;
    double depth = PICTURE_DEVICE + 32 + picture_arc_depth(picture, a, b);
    (void)bw;
    if (depth > *room) *room = depth;
}

/* For the NVSwitch, or for arcs of NVLinks. */
static double room_below(const struct picture *picture)
{
    double room = PICTURE_DEVICE + 27;
    for (int k = 0; k < picture->box->count; k++) {
        const struct box_node *node = &picture->box->node[k];
        if (node->kind == BOX_GPU && node->switched) room = PICTURE_DEVICE + 117;
    }
    picture_arcs(picture, deepen, &room);
    return room;
}

/* Devices side by side from px `left` on, in the middle when the picture is wider than they. */
static void spread(struct picture *picture, double left)
{
    double wide = PICTURE_COLUMN * (double)picture->columns;
    picture->width = left + wide + PICTURE_MARGIN;
    double spare = NARROWEST - picture->width;
    if (spare > 0) {
        picture->width = NARROWEST;
        left += spare / 2;
    }
    for (int k = 0; k < picture->box->count; k++)
        picture->x[k] += left;
}

bool picture_init(struct picture *picture, const struct box *box, FILE *out, double left)
{
    *picture = (struct picture){.out = out, .box = box};
    picture->x = calloc((size_t)box->count + 1, sizeof(double));
    picture->column = calloc((size_t)box->count + 1, sizeof(int));
    if (!picture->x || !picture->column) return false;
    for (int k = 0; k < box->count; k++)
        picture->column[k] = -1;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].parent < 0) set_position(picture, k);
    }
    spread(picture, left);
    picture->y_cpu = 150;
    picture->y_device = picture->y_cpu + PICTURE_ROW * (double)(levels(box) + 1);
    picture->y_below = picture->y_device + room_below(picture);
    return true;
}

void picture_fini(struct picture *picture)
{
    free(picture->x);
    free(picture->column);
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

/* How wide a text is at most, in hundredths of a digit's width: by the widest letter of each class
 * of DejaVu Sans, plain and bold. */
static size_t width_of(const char *text)
{
    static const struct {
        const char *letters;
        size_t width;
    } classes[] = {{"W@m%", 160},        {"Mw~^<>=+#", 145}, {"&QOGDHNU", 126},
                   {"ARCKXVBZPYT", 113}, {"()[]!-frt", 72},  {"ijlI.,:;|/\\' ", 57}};
    size_t width = 0;
    for (; *text; text++) {
        const unsigned char letter = (unsigned char)*text;
        size_t wide = 100;
        for (size_t k = 0; k < sizeof(classes) / sizeof(classes[0]); k++) {
            if (strchr(classes[k].letters, letter)) wide = classes[k].width;
        }
        if (letter >= 0xc0) wide = 160; /* begins a letter outside of ASCII */
        width += (letter & 0xc0) == 0x80 ? 0 : wide;
    }
    return width;
}

void picture_print(const struct picture *picture, const struct picture_text *where,
                   const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t width = width_of(text);
    int size = where->size;
    if (where->most && width > 100 * where->most) size = size * 100 * (int)where->most / (int)width;
    (void)fprintf(
        picture->out,
        "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\" "
        "fill=\"%s\"%s%s>",
        where->x, where->y, size > 1 ? size : 1, where->anchor ? where->anchor : "middle",
        where->colour ? where->colour : "#1f2937", where->bold ? " font-weight=\"bold\"" : "",
        where->halo ? " stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\"" : "");
    put_escaped(picture->out, text);
    (void)fputs("</text>\n", picture->out);
}

static const char *const colours[] = {"#dc2626", "#2563eb", "#16a34a", "#d97706",
                                      "#9333ea", "#0891b2", "#be185d", "#4d7c0f",
                                      "#7c3aed", "#0f766e", "#b91c1c", "#1d4ed8"};
enum { COLOURS = sizeof(colours) / sizeof(colours[0]) };

const char *picture_colour(int c, int *tip_out)
{
    *tip_out = c % COLOURS;
    return colours[*tip_out];
}

/* One head of an arrow for each colour: not every viewer lets a head take its line's. */
static void put_tips(FILE *out)
{
    (void)fputs("<defs>\n", out);
    for (int c = 0; c < COLOURS; c++) {
        (void)fprintf(out,
                      "<marker id=\"tip%d\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                      "markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" "
                      "orient=\"auto\"><path d=\"M0 0.5L8 4L0 7.5z\" fill=\"%s\" "
                      "stroke-width=\"0\"/></marker>\n",
                      c, colours[c]);
    }
    (void)fputs("</defs>\n", out);
}

void picture_begin(const struct picture *picture, const char *file, const char *line, double height)
{
    char facts[256];
    const char *slash = strrchr(file, '/');
    const char *name = slash && slash[1] ? slash + 1 : file;
    struct picture_text where = {
        .x = PICTURE_MARGIN, .y = 38, .size = 20, .anchor = "start", .bold = true};
    (void)fprintf(picture->out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans, Helvetica, Arial, "
                  "sans-serif\">\n",
                  picture->width, height, picture->width, height);
    put_tips(picture->out);
    (void)fputs("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", picture->out);
    int most = (int)((picture->width - 2 * PICTURE_MARGIN) / 15); /* of the widest letters */
    picture_print(picture, &where, "%.*s", most, name);
    picture_facts(picture->box, facts, sizeof(facts));
    where = (struct picture_text){.x = PICTURE_MARGIN, .y = 60, .size = 13, .anchor = "start"};
    picture_print(picture, &where, "%s", facts);
    where.y = 80;
    if (line) picture_print(picture, &where, "%s", line);
}

void picture_end(const struct picture *picture)
{
    (void)fputs("</svg>\n", picture->out);
}
