/* `tutti topo show --svg`: the picture of a machine, and below it who reaches whom how: a row for
 * each GPU, a cell below each device, coloured from good to bad. */
#include "explain.h"
#include "picture.h"

#include <string.h>

enum { ROW = 24, CELL_HEIGHT = 20, CELL_WIDTH = PICTURE_COLUMN - 12, ROWS_LEFT = 110 };
enum { MOST_ROWS = 16 }; /* of larger machines the first GPU's alone */

static const char *const fills[TT_WAY_COUNT_] = {"#86efac", "#86efac", "#bbf7d0", "#d9f99d",
                                                 "#ecfccb", "#fef9c3", "#fef08a", "#fde68a",
                                                 "#fed7aa", "#fdba74", "#fca5a5", "#e5e7eb"};

struct matrix {
    const struct picture *picture; /* borrowed */
    int rows;
    bool seen[TT_WAY_COUNT_]; /* types of paths in it */
};

static void put_cell(const struct matrix *matrix, double x, double y, int way, double bw)
{
    const struct picture_text text = {.x = x, .y = y + 14, .size = 11, .most = 9};
    (void)fprintf(matrix->picture->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"%s\"/>\n",
                  x - CELL_WIDTH / 2.0, y, (int)CELL_WIDTH, (int)CELL_HEIGHT, fills[way]);
    if (bw > 0) {
        picture_print(matrix->picture, &text, "%s %.3g", tt_topo_way_name((enum tt_topo_way)way),
                      bw);
    } else {
        picture_print(matrix->picture, &text, "%s", tt_topo_way_name((enum tt_topo_way)way));
    }
}

/* The way from a GPU to a device of the box; -1: to itself. */
static int way_to(const struct box *box, int gpu, const struct box_node *node, double *bw_out)
{
    bool net = node->kind == BOX_NET;
    int to = net ? node->index : node->gpu;
    const char *matrix = net ? "gpu_net" : "gpu_gpu";
    *bw_out = box_way_bw(box, matrix, gpu, to);
    return !net && to == gpu ? -1 : tale_way(box_way(box, matrix, gpu, to));
}

static void put_row(struct matrix *matrix, int gpu, double y)
{
    const struct picture *picture = matrix->picture;
    const struct picture_text name = {
        .x = PICTURE_MARGIN, .y = y + 14, .size = 11, .anchor = "start"};
    picture_print(picture, &name, "from GPU %d", gpu);
    for (int k = 0; k < picture->box->count; k++) {
        double bw;
        if (picture->column[k] < 0) continue;
        int way = way_to(picture->box, gpu, &picture->box->node[k], &bw);
        if (way < 0) continue;
        put_cell(matrix, picture->x[k], y, way, bw);
    }
}

/* Which types there are, before anything is drawn. */
static void look(struct matrix *matrix)
{
    const struct picture *picture = matrix->picture;
    int gpus = tale_count(picture->box, "gpus");
    matrix->rows = gpus > MOST_ROWS ? 1 : gpus;
    for (int g = 0; g < matrix->rows; g++) {
        for (int k = 0; k < picture->box->count; k++) {
            double bw;
            if (picture->column[k] < 0) continue;
            int way = way_to(picture->box, g, &picture->box->node[k], &bw);
            if (way >= 0) matrix->seen[way] = true;
        }
    }
}

static double put_meanings(const struct matrix *matrix, double y)
{
    struct picture_text text = {.x = PICTURE_MARGIN + 75, .size = 11, .anchor = "start"};
    const struct picture_text order = {
        .x = PICTURE_MARGIN, .y = y + 8, .size = 11, .anchor = "start", .colour = "#6b7280"};
    picture_print(matrix->picture, &order,
                  "Ways and GB/s. Better ones first; a better way wins over a faster one:");
    y += ROW - 6;
    for (int way = 0; way < TT_WAY_COUNT_; way++) {
        if (!matrix->seen[way]) continue;
        put_cell(matrix, PICTURE_MARGIN + CELL_WIDTH / 2.0, y, way, 0);
        text.y = y + 14;
        picture_print(matrix->picture, &text, "%s", tale_meaning(way));
        y += ROW;
    }
    return y;
}

static double height_of(const struct matrix *matrix)
{
    int ways = 0;
    for (int way = 0; way < TT_WAY_COUNT_; way++)
        ways += matrix->seen[way];
    if (matrix->rows == 0 || ways == 0) return 0;
    return 12 + (double)ROW * (matrix->rows + ways) + ROW + 10;
}

static void put_matrix(struct matrix *matrix, double y)
{
    for (int g = 0; g < matrix->rows; g++)
        put_row(matrix, g, y + (double)ROW * g);
    (void)put_meanings(matrix, y + (double)ROW * matrix->rows + 12);
}

bool topo_show_svg(const struct box *box, const char *title)
{
    struct picture picture;
    bool ready = picture_init(&picture, box, stdout, ROWS_LEFT);
    if (ready) {
        struct matrix matrix = {.picture = &picture};
        look(&matrix);
        double more = height_of(&matrix);
        picture_begin(&picture, title, NULL, picture.y_below + more + PICTURE_LEGEND);
        picture_machine(&picture);
        if (more > 0) put_matrix(&matrix, picture.y_below);
        picture_legend(&picture, picture.y_below + more);
        picture_end(&picture);
    } else {
        (void)fprintf(stderr, "tutti topo: out of memory for a picture\n");
    }
    picture_fini(&picture);
    return ready;
}
