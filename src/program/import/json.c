/* Reads JSON by recursive descent, one function per form. */
#include "json.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 64, NODES_MOST = 4 << 20, BLOCK_BYTES = 1 << 16 };

struct json_block { /* of memory that lives as long as the tree */
    struct json_block *next;
    size_t used, capacity;
    char bytes[];
};

struct json_reader {
    struct json *json;
    const char *at, *end;
    int line, depth;
    uint32_t nnodes;
    const char *fault;
};

static bool refuse(struct json_reader *reader, const char *fault)
{
    if (!reader->fault) reader->fault = fault;
    return false;
}

static void *take(struct json_reader *reader, size_t bytes)
{
    struct json_block *block = reader->json->blocks;
    bytes = (bytes + 7) & ~(size_t)7;
    if (!block || block->capacity - block->used < bytes) {
        size_t capacity = tt_max_size(bytes, BLOCK_BYTES);
        struct json_block *fresh = tt_calloc(1, sizeof(*fresh) + capacity);
        if (!fresh) {
            reader->line = 0;
            (void)refuse(reader, "out of memory");
            return NULL;
        }
        fresh->capacity = capacity;
        fresh->next = block;
        reader->json->blocks = block = fresh;
    }
    void *taken = block->bytes + block->used;
    block->used += bytes;
    return taken;
}

static void skip_space(struct json_reader *reader)
{
    for (; reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at; reader->at++)
        reader->line += *reader->at == '\n';
}

static char peek(const struct json_reader *reader)
{
    if (reader->at < reader->end) return *reader->at;
    return '\0';
}

/* ---- strings ---- */

static bool read_hex(struct json_reader *reader, unsigned int *code_out)
{
    unsigned int code = 0;
    for (int k = 0; k < 4; k++) {
        char digit = peek(reader);
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *found = digit ? strchr(digits, digit) : NULL;
        if (!found) return refuse(reader, "\\u without four hexadecimal digits");
        code = code * 16 + (unsigned int)(found - digits) % 16;
        reader->at++;
    }
    *code_out = code;
    return true;
}

static char *put_utf8(char *to, unsigned int code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)((0xf0u << (3 - more)) | (code >> (6 * more)));
    while (more-- > 0)
        *to++ = (char)(0x80 | ((code >> (6 * more)) & 0x3f));
    return to;
}

/* What follows a backslash; two \u that stand for one character are one. */
static bool read_escape(struct json_reader *reader, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    char kind = peek(reader);
    unsigned int code = 0, low = 0;
    const char *plain = kind ? strchr(from, kind) : NULL;
    reader->at += kind != '\0';
    if (plain) {
        *(*to)++ = into[plain - from];
        return true;
    }
    if (kind != 'u') return refuse(reader, "an escape that JSON does not have");
    if (!read_hex(reader, &code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && reader->end - reader->at > 2 && reader->at[0] == '\\' &&
        reader->at[1] == 'u') {
        reader->at += 2;
        if (!read_hex(reader, &low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return refuse(reader, "half a character in \\u");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code < 0xe000) return refuse(reader, "half a character in \\u");
    if (code == 0) return refuse(reader, "a NUL in a string");
    *to = put_utf8(*to, code);
    return true;
}

static bool read_string(struct json_reader *reader, const char **text_out)
{
    const char *stop = reader->at + 1; /* an escape is never shorter than what it stands for */
    while (stop < reader->end && *stop != '"')
        stop += *stop == '\\' && reader->end - stop > 1 ? 2 : 1;
    if (stop >= reader->end) return refuse(reader, "a string that does not end");
    char *text = take(reader, (size_t)(stop - reader->at));
    char *to = text;
    if (!text) return false;
    for (reader->at++; reader->at < stop;) {
        unsigned char byte = (unsigned char)*reader->at++;
        if (byte < 0x20) return refuse(reader, "a control character in a string");
        if (byte != '\\') {
            *to++ = (char)byte;
        } else if (!read_escape(reader, &to)) {
            return false;
        }
    }
    *to = '\0';
    reader->at = stop + 1;
    *text_out = text;
    return true;
}

/* ---- values ---- */

static size_t digits_at(const struct json_reader *reader)
{
    size_t count = 0;
    while (reader->at + count < reader->end && reader->at[count] >= '0' && reader->at[count] <= '9')
        count++;
    return count;
}

static bool read_number(struct json_reader *reader, struct json_node *node)
{
    const char *start = reader->at;
    reader->at += peek(reader) == '-';
    size_t digits = digits_at(reader);
    if (digits == 0 || (digits > 1 && *reader->at == '0')) return refuse(reader, "no JSON value");
    reader->at += digits;
    if (peek(reader) == '.') {
        reader->at++;
        digits = digits_at(reader);
        reader->at += digits;
    }
    if (digits && (peek(reader) | 0x20) == 'e') {
        reader->at++;
        reader->at += peek(reader) == '-' || peek(reader) == '+';
        digits = digits_at(reader);
        reader->at += digits;
    }
    if (!digits) return refuse(reader, "a number that does not end");
    size_t bytes = (size_t)(reader->at - start);
    char *text = take(reader, bytes + 1);
    if (!text) return false;
    memcpy(text, start, bytes);
    node->kind = JSON_NUMBER;
    node->text = text;
    return true;
}

static bool read_word(struct json_reader *reader, struct json_node *node)
{
    static const char *const words[] = {[JSON_NULL] = "null", "false", "true"};
    for (int kind = JSON_NULL; kind <= JSON_TRUE; kind++) {
        size_t bytes = strlen(words[kind]);
        if ((size_t)(reader->end - reader->at) < bytes ||
            memcmp(reader->at, words[kind], bytes) != 0)
            continue;
        reader->at += bytes;
        node->kind = (uint8_t)kind;
        return true;
    }
    return read_number(reader, node);
}

static struct json_node *read_value(struct json_reader *reader);

static bool read_key(struct json_reader *reader, const char **key_out)
{
    if (peek(reader) != '"') return refuse(reader, "a member of an object without a name");
    if (!read_string(reader, key_out)) return false;
    skip_space(reader);
    if (peek(reader) != ':') return refuse(reader, "a member of an object without ':'");
    reader->at++;
    skip_space(reader);
    return true;
}

/* The members of an array or object up to its closing bracket.
 * NOLINTNEXTLINE(misc-no-recursion): as deep as the text nests, which is limited */
static bool read_members(struct json_reader *reader, struct json_node *node, char close)
{
    struct json_node **last = &node->first;
    reader->at++;
    skip_space(reader);
    if (peek(reader) == close && reader->at++) return true;
    for (;;) {
        const char *key = NULL;
        if (node->kind == JSON_OBJECT && !read_key(reader, &key)) return false;
        struct json_node *member = read_value(reader);
        if (!member) return false;
        member->key = key;
        *last = member;
        last = &member->next;
        node->count++;
        skip_space(reader);
        char next = peek(reader);
        if (next != close && next != ',') {
            return refuse(reader, reader->at < reader->end ? "',' or a closing bracket is missing"
                                                           : "the text ends in the middle");
        }
        reader->at++;
        if (next == close) return true;
        skip_space(reader);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the text nests, which is limited */
static struct json_node *read_value(struct json_reader *reader)
{
    char first = peek(reader);
    bool read = true;
    if (reader->at >= reader->end) read = refuse(reader, "the text ends in the middle");
    if (++reader->depth > DEPTH_MOST) read = refuse(reader, "nested deeper than 64");
    if (++reader->nnodes > NODES_MOST) read = refuse(reader, "more than 4194304 values");
    struct json_node *node = read ? take(reader, sizeof(*node)) : NULL;
    if (!node) return NULL;
    node->line = reader->line;
    if (first == '{' || first == '[') {
        node->kind = first == '{' ? JSON_OBJECT : JSON_ARRAY;
        read = read_members(reader, node, first == '{' ? '}' : ']');
    } else if (first == '"') {
        node->kind = JSON_STRING;
        read = read_string(reader, &node->text);
    } else {
        read = read_word(reader, node);
    }
    reader->depth--;
    return read ? node : NULL;
}

bool tt_json_read(struct json *json, const char *text, size_t text_bytes, int *line_out,
                  const char **fault_out)
{
    struct json_reader reader = {.json = json, .at = text, .end = text + text_bytes, .line = 1};
    *json = (struct json){.root = NULL};
    skip_space(&reader);
    json->root = read_value(&reader);
    if (json->root) {
        skip_space(&reader);
        if (reader.at < reader.end) (void)refuse(&reader, "more text after the value");
    }
    *line_out = reader.line;
    *fault_out = reader.fault;
    return !reader.fault;
}

void tt_json_fini(struct json *json)
{
    for (struct json_block *block = json->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    json->blocks = NULL;
}

/* ---- looking ---- */

const struct json_node *tt_json_member(const struct json_node *object, const char *key)
{
    const struct json_node *found = NULL;
    if (!object || object->kind != JSON_OBJECT) return NULL;
    for (const struct json_node *member = object->first; member; member = member->next) {
        if (strcmp(member->key, key) == 0) found = member;
    }
    return found;
}

bool tt_json_int(const struct json_node *node, int64_t low, int64_t high, int64_t *value_out)
{
    char *end = NULL;
    if (node->kind != JSON_NUMBER || strlen(node->text) > 18) return false;
    long long value = strtoll(node->text, &end, 10);
    if (*end || value < low || value > high) return false;
    *value_out = value;
    return true;
}
