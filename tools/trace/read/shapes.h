/* Lines of a file have few shapes: the text between their values repeats. What was read once is a
 * tree of these texts, and a line that fits one of its paths is read by comparing words of eight
 * bytes, several times as fast. Any other line is for line_read(), from whose answer the tree
 * grows; so what is read is the same. */
#pragma once

#include "line.h"
#include "scan.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHAPES_NODES = 512, SHAPES_GUESSES = 512 };
enum { SHAPES_FIRSTS = 32 };

/* A text up to a value, and the value; or the text up to the end of the line. */
struct shape_node {
    struct scan_text before;
    uint64_t seen; /* bits of the members up to here */
    struct scan_head head;
    uint16_t child, sibling; /* 0: none */
    uint16_t guess;          /* the last text here */
    uint8_t member;          /* LINE_MEMBER_COUNT_: unknown */
    uint8_t kind;            /* enum line_kind, as far as it is known here */
    bool is_text, is_end;
};

/* A text that was a value, with its closing quote, at a place that its first bytes name. */
struct shape_guess {
    struct scan_text text; /* 0 bytes: none */
    uint16_t word;         /* as the line's reader knows it; 0: not yet */
    uint16_t node, next;   /* behind it at this node, the last time; 0: none */
};

struct shapes {
    uint32_t used;
    uint16_t
        firsts[SHAPES_FIRSTS]; /* nodes that lines begin with, by one of their bytes; 0: none */
    struct shape_node nodes[SHAPES_NODES]; /* the first one has no text and stands above all */
    struct shape_guess guesses[SHAPES_GUESSES];
};

/* Read the line at `at`; *limit is a '\n', which need not be its end, and SCAN_SLACK_BYTES behind
 * it may be read. Returns the line's own '\n', which is before `limit`. NULL: it has a shape that
 * is not known, is no line, or has no end yet. Of numbers only `number` and `is_text` are set. */
const char *shapes_read(struct shapes *shapes, const char *at, const char *limit,
                        struct line *line);
/* line_read() has just read it. */
void shapes_learn(struct shapes *shapes, const char *at, const char *end, const struct line *line);
