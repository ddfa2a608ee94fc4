/* Whole lines of many ranks on one terminal: a buffer per pipe, a prefix per line. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct launch_output {
    int fd; /* read end; -1 when closed */
    int rank;
    FILE *to; /* borrowed: stdout or stderr */
    bool prefix;
    char line[8192]; /* an unfinished line */
    size_t used;
};

/* Read what is there and print finished lines; closes at end of file. */
void launch_output_read(struct launch_output *output);
