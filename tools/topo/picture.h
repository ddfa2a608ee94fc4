/* Pictures of a machine as SVG: where its parts stand, and the primitives. All text is in one of
 * two sizes and is kept apart by the width of columns, so that nothing overlaps. */
#pragma once

#include "box.h"

#include <stdbool.h>
#include <stdio.h>

enum {
    PICTURE_COLUMN = 76, /* px between devices */
    PICTURE_LEFT = 170,  /* px left of the first device, for names */
    PICTURE_ROW = 72,    /* px between levels of the tree */
};

struct picture {
    FILE *out;             /* borrowed */
    const struct box *box; /* borrowed */
    double *x;             /* owned; centre of every node of the box */
    int *column;           /* owned; of GPUs and ports; -1 for others */
    int columns;
    double y_cpu, y_device, y_below; /* rows: CPUs, devices, what follows below */
    double width;
};

bool picture_init(struct picture *picture, const struct box *box, FILE *out);
void picture_fini(struct picture *picture);

/* Begin a picture of this height, with a heading; the machine itself; the end. */
void picture_begin(const struct picture *picture, const char *title, double height);
void picture_machine(const struct picture *picture);
void picture_end(const struct picture *picture);

/* Text with special characters escaped. anchor: start, middle, end. */
struct picture_text {
    double x, y;
    int size;
    const char *anchor, *colour;
    bool bold;
};
void picture_print(const struct picture *picture, const struct picture_text *where,
                   const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Nodes of a GPU (number in the report) and of a port; -1: none. */
int picture_gpu(const struct picture *picture, int gpu);
int picture_net(const struct picture *picture, int net);
