/* Reads a document with expat, in one go. Entities are never expanded: a DOCTYPE is refused before
 * its content is looked at. Each error is reported once, with file and line. */
#include "xml.h"

#include "base/error.h"
#include "base/mem.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    XML_Parser parser;
    const char *name, *text;
    size_t text_bytes;
    struct tt_topo_notes *notes;
    struct tt_xml_node *root, *open; /* root is owned until it is handed out */
    int depth, nelements;
    ncclResult_t rc;
};

static int line_of(const struct reader *reader)
{
    return (int)XML_GetCurrentLineNumber(reader->parser);
}

static void stop(struct reader *reader, ncclResult_t rc)
{
    reader->rc = rc;
    (void)XML_StopParser(reader->parser, XML_FALSE);
}

static bool within_limits(struct reader *reader, const char *element)
{
    const char *what = NULL;
    int limit = 0;
    if (++reader->nelements > TT_XML_ELEMENTS) {
        what = "elements";
        limit = TT_XML_ELEMENTS;
    } else if (++reader->depth > TT_XML_DEPTH) {
        what = "levels of nesting";
        limit = TT_XML_DEPTH;
    }
    if (!what) return true;
    stop(reader, tt_fail(ncclInvalidUsage, "%s:%d: element <%.64s>: more than %d %s", reader->name,
                         line_of(reader), element, limit, what));
    return false;
}

static void read_attr(struct reader *reader, struct tt_xml_node *node, const char *key,
                      const char *value)
{
    if (strlen(value) >= TT_XML_VALUE_BYTES) {
        stop(reader,
             tt_fail(ncclInvalidUsage,
                     "%s:%d: <%.64s> attribute %.64s: value too long (limit %d characters)",
                     reader->name, line_of(reader), node->name, key, TT_XML_VALUE_BYTES - 1));
        return;
    }
    if (node->nattrs == TT_XML_ATTRS) {
        tt_topo_note(reader->notes, reader->name, line_of(reader),
                     "<%.64s> has more than %d attributes; %.64s is ignored", node->name,
                     TT_XML_ATTRS, key);
        return;
    }
    if (!tt_xml_set(node, key, value)) {
        stop(reader, tt_fail(ncclSystemError, "%s: out of memory", reader->name));
    }
}

static void XMLCALL on_start(void *arg, const char *element, const char **attrs)
{
    struct reader *reader = arg;
    if (!within_limits(reader, element)) return;
    struct tt_xml_node *node = tt_xml_add(reader->open, element);
    if (!node) {
        stop(reader, tt_fail(ncclSystemError, "%s: out of memory", reader->name));
        return;
    }
    if (!reader->root) reader->root = node;
    reader->open = node;
    node->line = line_of(reader);
    for (int k = 0; attrs[k] && !reader->rc; k += 2) {
        read_attr(reader, node, attrs[k], attrs[k + 1]);
    }
}

static void XMLCALL on_end(void *arg, const char *element)
{
    struct reader *reader = arg;
    (void)element;
    reader->depth--;
    reader->open = reader->open->parent;
}

static void XMLCALL on_doctype(void *arg, const char *doctype, const char *sysid, const char *pubid,
                               int has_internal)
{
    struct reader *reader = arg;
    (void)doctype;
    (void)sysid;
    (void)pubid;
    (void)has_internal;
    stop(reader,
         tt_fail(ncclInvalidUsage, "%s:%d: DOCTYPE is not allowed", reader->name, line_of(reader)));
}

/* ---- what was wrong ---- */

static bool inside_comment(const struct reader *reader)
{
    XML_Index at = XML_GetCurrentByteIndex(reader->parser);
    if (at < 0 || (size_t)at + 4 > reader->text_bytes) return false;
    return memcmp(reader->text + at, "<!--", 4) == 0;
}

static ncclResult_t mismatched(const struct reader *reader)
{
    XML_Index at = XML_GetCurrentByteIndex(reader->parser);
    const char *from = reader->text + (at > 0 ? at : 0);
    const char *end = reader->text + reader->text_bytes;
    if (from < end && *from == '<') from++;
    if (from < end && *from == '/') from++;
    int length = 0;
    while (from + length < end && length < 64 && !strchr("> \t\r\n", from[length])) {
        length++;
    }
    return tt_fail(ncclInvalidUsage, "%s:%d: mismatched tag: </%.*s> closes <%.64s> of line %d",
                   reader->name, line_of(reader), length, from,
                   reader->open ? reader->open->name : "nothing",
                   reader->open ? reader->open->line : 0);
}

static ncclResult_t explain(const struct reader *reader)
{
    enum XML_Error error = XML_GetErrorCode(reader->parser);
    int line = line_of(reader);
    bool ended = error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN;
    if (error == XML_ERROR_TAG_MISMATCH) return mismatched(reader);
    if (error == XML_ERROR_NO_MEMORY) {
        return tt_fail(ncclSystemError, "%s: out of memory", reader->name);
    }
    if (ended && inside_comment(reader)) {
        return tt_fail(ncclInvalidUsage, "%s:%d: unterminated comment", reader->name, line);
    }
    if (ended && reader->open) {
        return tt_fail(ncclInvalidUsage,
                       "%s:%d: unexpected end of file: element <%.64s> of line %d is not closed",
                       reader->name, line, reader->open->name, reader->open->line);
    }
    if (error == XML_ERROR_NO_ELEMENTS) {
        return tt_fail(ncclInvalidUsage, "%s:%d: no system element: the file is empty",
                       reader->name, line);
    }
    if (ended)
        return tt_fail(ncclInvalidUsage, "%s:%d: unexpected end of file", reader->name, line);
    return tt_fail(ncclInvalidUsage, "%s:%d: not XML: %s", reader->name, line,
                   XML_ErrorString(error));
}

ncclResult_t tt_xml_parse(const char *name, const char *text, size_t text_bytes,
                          struct tt_topo_notes *notes, struct tt_xml_node **root_out)
{
    struct reader reader = {.name = name, .text = text, .text_bytes = text_bytes, .notes = notes};
    if (text_bytes > TT_XML_FILE_BYTES) {
        return tt_fail(ncclInvalidUsage,
                       "%s:1: %zu bytes are too long for a machine file (limit %d)", name,
                       text_bytes, TT_XML_FILE_BYTES);
    }
    reader.parser = XML_ParserCreate(NULL);
    if (!reader.parser) return tt_fail(ncclSystemError, "%s: out of memory", name);
    XML_SetUserData(reader.parser, &reader);
    XML_SetElementHandler(reader.parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(reader.parser, on_doctype);
    enum XML_Status status = XML_Parse(reader.parser, text, (int)text_bytes, XML_TRUE);
    if (!reader.rc && status != XML_STATUS_OK) reader.rc = explain(&reader);
    XML_ParserFree(reader.parser);
    if (reader.rc) {
        tt_xml_free(reader.root);
    } else {
        *root_out = reader.root;
    }
    return reader.rc;
}
