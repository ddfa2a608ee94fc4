/* Whole lines of many ranks on one terminal: a buffer per pipe, a prefix per line. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct launch_inits;
struct launch_report;
struct launch_same;

struct launch_output {
    int fd; /* read end; -1 when closed */
    int rank;
    FILE *to; /* borrowed: stdout or stderr */
    bool prefix;
    bool at_once; /* a line that begins with a return, to be overwritten, does not wait for its end
                   */
    bool is_log;  /* standard error: the library's warnings follow empty lines */
    struct launch_same *same; /* borrowed: warnings that others have given are not printed; NULL:
                                 all lines are */
    struct launch_report *report; /* borrowed: takes warnings; NULL: they are not wanted */
    /* Of a rank that another shell starts: lines are kept until the one comes that says it did, or
     * there is no room for more. NULL: they are printed as they come. */
    const char *awaited;
    struct launch_inits *inits; /* borrowed: takes what its shell sends on of what the rank tells
                                   the launcher; NULL: it tells that otherwise */
    bool *reported;             /* its host's shell has said why it does not; not twice. Borrowed */
    char line[8192];            /* unfinished, or kept */
    size_t used;
};

/* Read what is there and print finished lines; closes at end of file. */
void launch_output_read(struct launch_output *output);
/* Read all that is there now, without waiting. */
void launch_output_drain(struct launch_output *output);
