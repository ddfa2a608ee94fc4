/* Who reaches whom how, as rows below the picture of a machine. */
#pragma once

#include "../explain/explain.h"
#include "picture.h"

/* px that the rows and the meanings of their types take; 0: there are none. */
double paths_svg_height(const struct picture *picture);
/* left: px where rows have their names; devices have the picture's columns. */
void paths_svg_put(const struct picture *picture, double left, double y);
