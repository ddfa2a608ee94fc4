/* Who reaches whom how, below the picture of a machine: a row for each GPU, a cell below each
 * device, coloured from good to bad. */
#include "paths_svg.h"

#include <string.h>

enum { ROW = 24, CELL_HEIGHT = 20, CELL_WIDTH = PICTURE_COLUMN - 12 };
enum { MOST_ROWS = 16 }; /* of larger machines the first GPU's alone */

struct matrix {
    const struct picture *picture; /* borrowed */
    double left;                   /* px: where rows have their names */
    int rows;
    bool seen[TT_PATH_COUNT_]; /* types of paths in it */
};

static void put_cell(const struct matrix *matrix, double x, double y, int type, double bw)
{
    const struct picture_text text = {.x = x, .y = y + 14, .size = 11, .most = 9};
    (void)fprintf(matrix->picture->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"%s\"/>\n",
                  x - CELL_WIDTH / 2.0, y, (int)CELL_WIDTH, (int)CELL_HEIGHT,
                  picture_path_fill(type));
    if (bw > 0) {
        picture_print(matrix->picture, &text, "%s %.3g", tt_path_type_name((enum tt_path_type)type),
                      bw);
    } else {
        picture_print(matrix->picture, &text, "%s", tt_path_type_name((enum tt_path_type)type));
    }
}

/* The type of the path from a GPU to a device of the box; -1: to itself. */
static int path_type_to(const struct box *box, int gpu, const struct box_node *node, double *bw_out)
{
    bool net = node->kind == BOX_NET;
    int to = net ? node->index : node->gpu;
    const char *matrix = net ? "gpu_net" : "gpu_gpu";
    *bw_out = box_path_bw(box, matrix, gpu, to);
    return !net && to == gpu ? -1 : path_type_of(box_path_type(box, matrix, gpu, to));
}

/* Beside the cells, where these begin far from the edge, as those of small machines do. */
static double names_left(const struct matrix *matrix)
{
    enum { NAME_WIDTH = 80, NEAR = 60 };
    const struct picture *picture = matrix->picture;
    double first = picture->width;
    for (int k = 0; k < picture->box->count; k++) {
        if (picture->column[k] >= 0 && picture->x[k] < first) first = picture->x[k];
    }
    const double beside = first - CELL_WIDTH / 2.0 - NAME_WIDTH;
    return beside > matrix->left + NEAR ? beside : matrix->left;
}

static void put_row(struct matrix *matrix, int gpu, double y)
{
    const struct picture *picture = matrix->picture;
    const struct picture_text name = {
        .x = names_left(matrix), .y = y + 14, .size = 11, .anchor = "start"};
    picture_print(picture, &name, "from GPU %d", gpu);
    for (int k = 0; k < picture->box->count; k++) {
        double bw;
        if (picture->column[k] < 0) continue;
        int type = path_type_to(picture->box, gpu, &picture->box->node[k], &bw);
        if (type < 0) continue;
        put_cell(matrix, picture->x[k], y, type, bw);
    }
}

/* Which types there are, before anything is drawn. */
static void look(struct matrix *matrix)
{
    const struct picture *picture = matrix->picture;
    int gpus = 0;
    for (int k = 0; k < picture->box->count; k++) {
        if (picture->box->node[k].kind == BOX_GPU) gpus += picture->box->node[k].ranks;
    }
    matrix->rows = gpus > MOST_ROWS ? 1 : gpus;
    for (int g = 0; g < matrix->rows; g++) {
        for (int k = 0; k < picture->box->count; k++) {
            double bw;
            if (picture->column[k] < 0) continue;
            int type = path_type_to(picture->box, g, &picture->box->node[k], &bw);
            if (type >= 0) matrix->seen[type] = true;
        }
    }
}

static double put_meanings(const struct matrix *matrix, double y)
{
    struct picture_text text = {.x = matrix->left + 75, .size = 11, .anchor = "start"};
    const struct picture_text order = {
        .x = matrix->left, .y = y + 8, .size = 11, .anchor = "start", .colour = "#6b7280"};
    picture_print(matrix->picture, &order,
                  "Path types and GB/s. Better ones first; a better type wins over more GB/s:");
    y += ROW - 6;
    for (int type = 0; type < TT_PATH_COUNT_; type++) {
        if (!matrix->seen[type]) continue;
        put_cell(matrix, matrix->left + CELL_WIDTH / 2.0, y, type, 0);
        text.y = y + 14;
        picture_print(matrix->picture, &text, "%s", path_type_meaning(type));
        y += ROW;
    }
    return y;
}

static double height_of(const struct matrix *matrix)
{
    int types = 0;
    for (int type = 0; type < TT_PATH_COUNT_; type++)
        types += matrix->seen[type];
    if (matrix->rows == 0 || types == 0) return 0;
    return 12 + (double)ROW * (1 + matrix->rows + types) + ROW + 10;
}

double paths_svg_height(const struct picture *picture)
{
    struct matrix matrix = {.picture = picture};
    look(&matrix);
    return height_of(&matrix);
}

void paths_svg_put(const struct picture *picture, double left, double y)
{
    struct matrix matrix = {.picture = picture, .left = left};
    look(&matrix);
    if (height_of(&matrix) <= 0) return;
    const struct picture_text title = {
        .x = left, .y = y + 14, .size = 11, .anchor = "start", .colour = "#6b7280"};
    picture_print(picture, &title, "Paths from the GPU of a row to the device above each column");
    y += ROW;
    for (int g = 0; g < matrix.rows; g++)
        put_row(&matrix, g, y + (double)ROW * g);
    (void)put_meanings(&matrix, y + (double)ROW * matrix.rows + 12);
}
