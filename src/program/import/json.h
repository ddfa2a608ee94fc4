/* Reads JSON into a tree with the line of each value, so that messages can name it. Private to the
 * sub-room. (libjansson, which the tools use, does not keep lines.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json_node {
    uint8_t kind;
    int line;
    const char *key;  /* in an object; NULL elsewhere */
    const char *text; /* of a string, decoded; of a number, as it was written */
    uint32_t count;   /* of an array's or object's members */
    struct json_node *first, *next;
};

struct json {
    struct json_node *root;
    void *blocks; /* owned: nodes and texts */
};

/* Read a whole text (RFC 8259). Released with tt_json_fini(), also after a fault.
 * Returns false with the fault's line and text; "out of memory" and line 0: memory is short.
 * A string that holds a NUL, nesting beyond 64 and more than 4 Mi values are faults. */
bool tt_json_read(struct json *json, const char *text, size_t text_bytes, int *line_out,
                  const char **fault_out);
void tt_json_fini(struct json *json);

/* The last member of that name; NULL: none, or no object. */
const struct json_node *tt_json_member(const struct json_node *object, const char *key);
/* Whether the value is an integer within the limits, written plainly (no fraction, no exponent). */
bool tt_json_int(const struct json_node *node, int64_t low, int64_t high, int64_t *value_out);
