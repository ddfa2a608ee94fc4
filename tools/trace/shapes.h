/* Lines of a file have few shapes: the text between their values repeats. What was read once is a
 * tree of these texts, and a line that fits one of its paths is read by comparing words of eight
 * bytes, several times as fast. Any other line is for line_read(), from whose answer the tree
 * grows; so what is read is the same. */
#pragma once

#include "line.h"

#include <stdbool.h>
#include <stdint.h>

enum { SHAPES_NODES = 512, SHAPES_GUESSES = 512, SHAPES_WORDS = 3 };
enum { SHAPES_SLACK_BYTES = 8 * SHAPES_WORDS };

struct shape_text { /* of at most 24 bytes, as words and which of their bytes count */
    uint64_t words[SHAPES_WORDS], masks[SHAPES_WORDS];
    uint8_t nwords, bytes;
};

/* A text up to a value, and the value. */
struct shape_node {
    struct shape_text before;
    uint64_t seen;           /* the bit of its member */
    uint16_t child, sibling; /* 0: none */
    uint8_t member;          /* LINE_MEMBER_COUNT_: nobody knows it */
    uint8_t kind;            /* enum line_kind, plus 1; 0: an earlier node said it */
    bool is_text, is_end;
};

/* A text that was a value, with its closing quote, at a place that its first bytes name. */
struct shape_guess {
    struct shape_text text; /* 0 bytes: none */
    uint16_t word;          /* as the line's reader knows it; 0: not yet */
};

struct shapes {
    uint32_t used;
    struct shape_node nodes[SHAPES_NODES]; /* the first one has no text and stands above all */
    struct shape_guess guesses[SHAPES_GUESSES];
};

/* Read the line at [at, end), of which SHAPES_SLACK_BYTES more may be read. False: it has a shape
 * that is not known, or is no line. */
bool shapes_read(struct shapes *shapes, const char *at, const char *end, struct line *line);
/* line_read() has just read it. */
void shapes_learn(struct shapes *shapes, const char *at, const char *end, const struct line *line);
