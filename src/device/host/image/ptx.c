/* PTX: text. Only what stands outside of functions is looked at: the names of entries, and the
 * declarations of variables in .global and .const with what they start with. Terms as in "Parallel
 * Thread Execution ISA", State Spaces and Variables. */
#include "read.h"

#include <ctype.h>
#include <stdlib.h>

enum { END = 0, WORD = 'w', NUMBER = 'n', STRING = 's' }; /* others: the character itself */

struct token {
    const char *at;
    size_t len;
    int kind;
};

struct ptx_reader {
    struct tt_host_image *image;
    const char *at, *end;
    struct token token; /* the latest */
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static void skip_blanks(struct ptx_reader *ptx)
{
    while (ptx->at < ptx->end) {
        size_t left = (size_t)(ptx->end - ptx->at);
        bool line = left > 1 && memcmp(ptx->at, "//", 2) == 0;
        bool block = left > 3 && memcmp(ptx->at, "/*", 2) == 0;
        if (isspace((unsigned char)*ptx->at)) {
            ptx->at++;
            continue;
        }
        if (!line && !block) return;
        const char *over =
            line ? memchr(ptx->at, '\n', left) : memmem(ptx->at + 2, left - 2, "*/", 2);
        ptx->at = over ? over + (line ? 1 : 2) : ptx->end;
    }
}

static int next(struct ptx_reader *ptx)
{
    skip_blanks(ptx);
    struct token *token = &ptx->token;
    *token = (struct token){.at = ptx->at};
    if (ptx->at == ptx->end) return END;
    char first = *ptx->at++;
    token->kind = (unsigned char)first;
    if (is_word(first)) {
        token->kind = isdigit((unsigned char)first) ? NUMBER : WORD;
        while (ptx->at < ptx->end && is_word(*ptx->at)) {
            ptx->at++;
        }
    } else if (first == '"') {
        token->kind = STRING;
        while (ptx->at < ptx->end && *ptx->at++ != '"') {
        }
    }
    token->len = (size_t)(ptx->at - token->at);
    return token->kind;
}

static bool is(const struct ptx_reader *ptx, const char *word)
{
    return ptx->token.kind == WORD && ptx->token.len == strlen(word) &&
           memcmp(ptx->token.at, word, ptx->token.len) == 0;
}

static void skip_to(struct ptx_reader *ptx, char closing)
{
    while (ptx->token.kind != END && ptx->token.kind != closing) {
        next(ptx);
    }
}

/* The latest token is the opening brace. */
static void skip_braces(struct ptx_reader *ptx)
{
    size_t depth = 1;
    while (depth && next(ptx) != END) {
        if (ptx->token.kind == '{') depth++;
        if (ptx->token.kind == '}') depth--;
    }
}

/* The latest token as bits: an integer, or a float as hexadecimal digits behind 0f (*bytes is 4) or
 * 0d (8). */
static bool number(const struct ptx_reader *ptx, uint64_t *bits, size_t *bytes)
{
    char text[80], *rest = text;
    if (ptx->token.kind != NUMBER || ptx->token.len >= sizeof(text)) return false;
    memcpy(text, ptx->token.at, ptx->token.len);
    text[ptx->token.len] = 0;
    bool prefixed = text[0] == '0' && strchr("fFdDbB", text[1]) && text[1];
    bool binary = prefixed && (text[1] == 'b' || text[1] == 'B');
    bool single = prefixed && (text[1] == 'f' || text[1] == 'F');
    *bits = strtoull(prefixed ? text + 2 : text, &rest, binary ? 2 : prefixed ? 16 : 0);
    *bytes = !prefixed || binary ? 0 : single ? 4 : 8;
    return *rest == 0 || (*rest == 'U' && rest[1] == 0);
}

/* Bytes of an element of the type that the latest token names, or 0. */
static size_t type_bytes(const struct ptx_reader *ptx)
{
    static const char *const widths[] = {"8", "16", "32", "64", "128"};
    const struct token *token = &ptx->token;
    if (is(ptx, ".f16x2") || is(ptx, ".bf16x2")) return 4;
    if (token->kind != WORD || token->len < 3 || token->at[0] != '.') return 0;
    size_t letters = memcmp(token->at, ".bf", 3) == 0 ? 3 : 2;
    if (letters == 2 && !strchr("busf", token->at[1])) return 0;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        size_t len = strlen(widths[i]);
        if (token->len == letters + len && memcmp(token->at + letters, widths[i], len) == 0)
            return (size_t)1 << i;
    }
    return 0;
}

struct declared { /* what a declaration has said so far */
    size_t symbol, element_bytes, lanes, bytes;
    bool managed;
    bool open; /* as many elements as values are given */
};

static struct tt_host_image_symbol *made(const struct ptx_reader *ptx,
                                         const struct declared *declared)
{
    return &ptx->image->symbols[declared->symbol];
}

/* An offset behind a name or bracket, if there is one; leaves the token behind it. */
static bool offset(struct ptx_reader *ptx, size_t *sum)
{
    uint64_t more;
    size_t unused;
    if (ptx->token.kind != '+') return true;
    next(ptx);
    if (!number(ptx, &more, &unused)) return false;
    *sum += more;
    next(ptx);
    return true;
}

/* The address of a variable, as generic(name), name or either with an offset; the latest token is
 * the first of it. Leaves the token behind it. False: something else. */
static bool address(struct ptx_reader *ptx, const struct declared *declared)
{
    bool generic = is(ptx, "generic");
    if (generic && next(ptx) != '(') return false;
    if (generic) next(ptx);
    struct token name = ptx->token;
    struct tt_host_image_pointer pointer = {.in = declared->symbol,
                                            .offset = made(ptx, declared)->initial_bytes};
    if (name.kind != WORD || declared->element_bytes != 8) return false;
    next(ptx);
    if (!offset(ptx, &pointer.addend)) return false;
    if (generic) { /* and behind the bracket */
        if (ptx->token.kind != ')') return false;
        next(ptx);
        if (!offset(ptx, &pointer.addend)) return false;
    }
    for (; pointer.to < ptx->image->nsymbols; pointer.to++) {
        const struct tt_host_image_symbol *to = &ptx->image->symbols[pointer.to];
        if (to->is_kernel || strlen(to->name) != name.len) continue;
        if (memcmp(to->name, name.at, name.len) == 0)
            return tt_host_image_point(ptx->image, &pointer);
    }
    return false;
}

/* A number as `element` bytes; the latest token is the first of it. Leaves the token behind it. */
static bool literal(struct ptx_reader *ptx, size_t element, uint64_t *bits)
{
    size_t float_bytes;
    bool minus = ptx->token.kind == '-';
    if (minus) next(ptx);
    if (!number(ptx, bits, &float_bytes) || (float_bytes && float_bytes != element)) return false;
    if (minus) *bits = 0 - *bits;
    return next(ptx) != '('; /* which would be a byte of an address */
}

/* One value behind the others. The latest token is its first; leaves the token behind it. */
static bool value(struct ptx_reader *ptx, const struct declared *declared)
{
    struct tt_host_image_symbol *symbol = made(ptx, declared);
    size_t element = declared->element_bytes, done = symbol->initial_bytes;
    uint64_t bits = 0;
    if (element > 8 || (!declared->open && element > symbol->bytes - done)) return false;
    bool read = ptx->token.kind == WORD ? address(ptx, declared) : literal(ptx, element, &bits);
    if (!read) return false;
    if ((done & (done - 1)) == 0 || done < 8) { /* room doubles */
        unsigned char *grown = realloc(symbol->initial, done < 8 ? 16 : done * 2);
        if (!grown) return false;
        symbol->initial = grown;
    }
    memcpy(symbol->initial + done, &bits, element);
    symbol->initial_bytes += element;
    if (declared->open) symbol->bytes = symbol->initial_bytes;
    return true;
}

/* The latest token is '='. What is not understood leaves the variable unread. */
static void initializer(struct ptx_reader *ptx, const struct declared *declared)
{
    bool list = next(ptx) == '{', good = true;
    if (list && next(ptx) == '}') return;
    do {
        good = value(ptx, declared);
    } while (good && list && ptx->token.kind == ',' && next(ptx) != END);
    if (good && ptx->token.kind == (list ? '}' : ';')) return;
    struct tt_host_image_symbol *symbol = made(ptx, declared);
    symbol->is_unread = true;
    symbol->initial_bytes = 0;
}

/* A word of a declaration before its name; false at the name, or at what no name follows. */
static bool property(struct ptx_reader *ptx, struct declared *declared)
{
    size_t bytes = type_bytes(ptx);
    if (bytes) declared->element_bytes = bytes;
    if (is(ptx, ".v2")) declared->lanes = 2;
    if (is(ptx, ".v4")) declared->lanes = 4;
    if (is(ptx, ".managed")) declared->managed = true;
    if (is(ptx, ".align")) next(ptx);
    bool name = ptx->token.kind == WORD && ptx->token.at[0] != '.' && declared->element_bytes;
    return !name && ptx->token.kind != END && ptx->token.kind != ';';
}

/* The latest token is .global or .const; leaves the one behind the declaration, if its end is
 * understood. False without memory. */
static bool declaration(struct ptx_reader *ptx)
{
    struct declared declared = {.lanes = 1};
    uint64_t count;
    size_t unused;
    do {
        next(ptx);
    } while (property(ptx, &declared));
    if (ptx->token.kind != WORD) return true; /* a texture, say */
    struct token name = ptx->token;
    declared.bytes = declared.element_bytes * declared.lanes;
    while (next(ptx) == '[') {
        if (next(ptx) == ']') {
            declared.open = true;
            continue;
        }
        if (!number(ptx, &count, &unused) ||
            __builtin_mul_overflow(declared.bytes, count, &declared.bytes))
            return true; /* no real program has such a variable */
        next(ptx);
    }
    struct tt_host_image_symbol *symbol = tt_host_image_add(ptx->image, name.at, name.len);
    if (!symbol) return false;
    declared.symbol = ptx->image->nsymbols - 1;
    symbol->bytes = declared.open ? 0 : declared.bytes;
    symbol->is_managed = declared.managed;
    if (ptx->token.kind == '=') initializer(ptx, &declared);
    return true;
}

/* What the latest token begins; false without memory. */
static bool statement(struct ptx_reader *ptx, bool is_extern)
{
    bool variable = is(ptx, ".global") || is(ptx, ".const");
    if (variable && !is_extern && !declaration(ptx)) return false;
    if (is(ptx, ".entry") && next(ptx) == WORD && !is_extern) {
        struct tt_host_image_symbol *kernel =
            tt_host_image_add(ptx->image, ptx->token.at, ptx->token.len);
        if (!kernel) return false;
        kernel->is_kernel = true;
    }
    if (ptx->token.kind == '(') skip_to(ptx, ')');
    if (ptx->token.kind == '{') skip_braces(ptx);
    return true;
}

bool tt_host_image_read_ptx(struct tt_host_image *image, struct image_view code, const char **why)
{
    const char *text = (const char *)code.at;
    struct ptx_reader ptx = {.image = image, .at = text, .end = text + strnlen(text, code.len)};
    bool is_extern = false;
    *why = "it is neither a fat binary nor a cubin nor PTX";
    next(&ptx);
    if (!is(&ptx, ".version")) return false; /* what comes first in PTX */
    *why = "out of memory";
    for (; ptx.token.kind != END; next(&ptx)) {
        if (is(&ptx, ".extern")) is_extern = true;
        if (!statement(&ptx, is_extern)) return false;
        if (ptx.token.kind == ';' || ptx.token.kind == '}') is_extern = false;
    }
    return true;
}
