/* Prints what this machine is detected as; its warnings go to stderr. */
#include "base/error.h"
#include "topo/topo.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    struct tt_topo_file *file = NULL;
    if (tt_topo_detect(&file)) {
        (void)fprintf(stderr, "%s\n", tt_last_error());
        return 1;
    }
    char *text = tt_topo_file_print(file);
    (void)fputs(text ? text : "", stdout);
    (void)fputs(tt_topo_file_warnings(file), stderr);
    free(text);
    tt_topo_file_free(file);
    return 0;
}
