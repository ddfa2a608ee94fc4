/* Pictures of a machine as SVG: where its parts stand, and the primitives. All text is in one of
 * two sizes and is kept apart by the width of columns, so that nothing overlaps. */
#pragma once

#include "../box.h"

#include <stdbool.h>
#include <stdio.h>

enum {
    PICTURE_COLUMN = 76, /* px between devices */
    PICTURE_MARGIN = 24, /* px around */
    PICTURE_LEFT = 170,  /* px left of the first device, where lanes have names */
    PICTURE_DEVICE = 64, /* px a device is high: its name and two lines */
    PICTURE_ROW = 72,    /* px between levels of the tree */
    PICTURE_LEGEND = 44, /* px for two lines below */
};

struct picture {
    FILE *out;             /* borrowed */
    const struct box *box; /* borrowed */
    double *x;             /* owned; centre of every node of the box */
    int *column;           /* owned; of GPUs and ports; -1 for others */
    int columns;
    double y_cpu, y_device, y_below; /* rows: CPUs, devices, what follows below */
    double width;
    int others; /* hosts that each host but the first stands for; 0: they are themselves */
};

/* left: px that stay free left of the machine, for names. False when memory is short. */
bool picture_init(struct picture *picture, const struct box *box, FILE *out, double left);
void picture_fini(struct picture *picture);

/* Begin a picture of this height, with the machine's file and facts and a line of the caller's
 * (NULL: none) as its heading; the machine itself; what its colours mean, in two lines from y on
 * (PICTURE_LEGEND px in all); the end. */
void picture_begin(const struct picture *picture, const char *file, const char *line,
                   double height);
void picture_machine(const struct picture *picture);
void picture_legend(const struct picture *picture, double y);
void picture_end(const struct picture *picture);

/* GB/s between two devices side by side: `bw` of NVLinks from GPU node a to b, a left of b. */
typedef void (*picture_arc)(const struct picture *picture, int a, int b, double bw, void *context);
void picture_arcs(const struct picture *picture, picture_arc each, void *context);
/* True when all are equally fast, or there are none: the legend says how fast. */
bool picture_arcs_equal(const struct picture *picture);
/* px that such an arc hangs below the devices. */
double picture_arc_depth(const struct picture *picture, int a, int b);
/* What a machine consists of, in a line: GPUs, NVLink, ports, CPUs. */
void picture_facts(const struct box *box, char *text, size_t bytes);
/* Of a type of path, enum tt_path_type: each its own, from green to red. */
const char *picture_path_fill(int type);
/* Colour of channel c; its arrow's head is the marker "tip" with that number. */
const char *picture_colour(int c, int *tip_out);

/* Text with special characters escaped. anchor: start, middle, end. */
struct picture_text {
    double x, y;
    int size;
    const char *anchor, *colour;
    bool bold, halo; /* halo: white around the letters, over lines */
    size_t most;     /* digits that fit; wider texts are set smaller; 0: any */
};
void picture_print(const struct picture *picture, const struct picture_text *where,
                   const char *format, ...) __attribute__((format(printf, 3, 4)));
