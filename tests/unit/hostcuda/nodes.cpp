/* nodes.c as C++. */
#include "nodes.c"
