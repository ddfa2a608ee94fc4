/* Element trees: life, attributes, text. Reading is in xml_parse.c. */
#include "xml.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tt_xml_free(struct tt_xml_node *node)
{
    if (!node) return;
    for (int k = 0; k < node->nchildren; k++)
        tt_xml_free(node->children[k]);
    for (int k = 0; k < node->nattrs; k++) {
        free(node->attrs[k].key);
        free(node->attrs[k].value);
    }
    free(node->children);
    free(node->name);
    free(node);
}

const char *tt_xml_get(const struct tt_xml_node *node, const char *key)
{
    for (int k = 0; k < node->nattrs; k++) {
        if (strcmp(node->attrs[k].key, key) == 0) return node->attrs[k].value;
    }
    return NULL;
}

bool tt_xml_set(struct tt_xml_node *node, const char *key, const char *value)
{
    char *copy = strdup(value);
    if (!copy) return false;
    for (int k = 0; k < node->nattrs; k++) {
        if (strcmp(node->attrs[k].key, key) != 0) continue;
        free(node->attrs[k].value);
        node->attrs[k].value = copy;
        return true;
    }
    char *name = node->nattrs < TT_XML_ATTRS ? strdup(key) : NULL;
    if (!name) {
        free(copy);
        return false;
    }
    node->attrs[node->nattrs++] = (struct tt_xml_attr){name, copy};
    return true;
}

bool tt_xml_adopt(struct tt_xml_node *parent, struct tt_xml_node *child)
{
    if (parent->nchildren == parent->capacity) {
        int capacity = parent->capacity ? 2 * parent->capacity : 4;
        struct tt_xml_node **grown =
            realloc(parent->children, (size_t)capacity * sizeof(struct tt_xml_node *));
        if (!grown) return false;
        parent->children = grown;
        parent->capacity = capacity;
    }
    parent->children[parent->nchildren++] = child;
    child->parent = parent;
    return true;
}

static struct tt_xml_node *node_new(const char *name)
{
    struct tt_xml_node *node = calloc(1, sizeof(*node));
    if (!node) return NULL;
    node->name = strdup(name);
    if (node->name) return node;
    free(node);
    return NULL;
}

struct tt_xml_node *tt_xml_add(struct tt_xml_node *parent, const char *name)
{
    struct tt_xml_node *node = node_new(name);
    if (!node || !parent || tt_xml_adopt(parent, node)) return node;
    tt_xml_free(node);
    return NULL;
}

struct tt_xml_node *tt_xml_copy(const struct tt_xml_node *node)
{
    struct tt_xml_node *copy = node_new(node->name);
    if (!copy) return NULL;
    bool complete = true;
    copy->line = node->line;
    for (int k = 0; k < node->nattrs && complete; k++) {
        complete = tt_xml_set(copy, node->attrs[k].key, node->attrs[k].value);
    }
    for (int k = 0; k < node->nchildren && complete; k++) {
        struct tt_xml_node *child = tt_xml_copy(node->children[k]);
        complete = child && tt_xml_adopt(copy, child);
        if (!complete) tt_xml_free(child);
    }
    if (complete) return copy;
    tt_xml_free(copy);
    return NULL;
}

void tt_xml_drop(struct tt_xml_node *parent, int index)
{
    tt_xml_free(parent->children[index]);
    parent->nchildren--;
    memmove(&parent->children[index], &parent->children[index + 1],
            (size_t)(parent->nchildren - index) * sizeof(struct tt_xml_node *));
}

const struct tt_xml_node *tt_xml_above(const struct tt_xml_node *node, const char *name)
{
    while (node && strcmp(node->name, name) != 0) {
        node = node->parent;
    }
    return node;
}

/* ---- text ---- */

static void print_value(FILE *out, const char *value)
{
    for (const char *c = value; *c; c++) {
        switch (*c) {
        case '"': (void)fputs("&quot;", out); break;
        case '&': (void)fputs("&amp;", out); break;
        case '<': (void)fputs("&lt;", out); break;
        default: (void)fputc(*c, out); break;
        }
    }
}

static void print_node(FILE *out, const struct tt_xml_node *node, int depth)
{
    (void)fprintf(out, "%*s<%s", 2 * depth, "", node->name);
    for (int k = 0; k < node->nattrs; k++) {
        (void)fprintf(out, " %s=\"", node->attrs[k].key);
        print_value(out, node->attrs[k].value);
        (void)fputc('"', out);
    }
    if (node->nchildren == 0) {
        (void)fputs("/>\n", out);
        return;
    }
    (void)fputs(">\n", out);
    for (int k = 0; k < node->nchildren; k++)
        print_node(out, node->children[k], depth + 1);
    (void)fprintf(out, "%*s</%s>\n", 2 * depth, "", node->name);
}

char *tt_xml_print(const struct tt_xml_node *root)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    if (!out) return NULL;
    print_node(out, root, 0);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
