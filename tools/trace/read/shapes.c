/* Paths of texts and values. Compared are whole words, of which a mask says what counts. */
#include "shapes.h"

#include <string.h>

static inline const char *read_number(struct shape_node *node, const char *at, uint64_t *number)
{
    if (*at != '-') return scan_number(&node->head, at, number);
    at = scan_number(&node->head, at + 1, number);
    if (at) *number = 0 - *number;
    return at;
}

/* The text up to its first quote takes the place of what was at `guess`, which an earlier value of
 * the line (of `seen`) may have: that one has no place any more. NULL: it has no end in the line,
 * or has escapes. */
static const char *learn_text(struct shape_guess *guess, const char *at, uint64_t seen,
                              struct line *line)
{
    const char *quote = at;
    for (; *quote != '"'; quote++) {
        if (*quote == '\n' || *quote == '\\') return NULL;
    }
    for (; seen; seen &= seen - 1) {
        struct line_value *other = &line->values[__builtin_ctzll(seen)];
        if (other->is_text && other->word == &guess->word) other->word = NULL;
    }
    guess->word = 0;
    if (!scan_set(&guess->text, at, (size_t)(quote - at) + 1)) guess->text.bytes = 0;
    return quote;
}

static inline bool is_at(const char *at, const struct shape_guess *guess)
{
    return guess->text.bytes && scan_begins(at, &guess->text);
}

/* A text that ends with its first quote: mostly the one that stood here before. NULL: it has no end
 * in the line, or has escapes. */
static inline struct shape_guess *read_text(struct shapes *shapes, struct shape_node *node,
                                            const char *at, struct line *line)
{
    struct shape_guess *guess = &shapes->guesses[node->guess];
    struct line_value *value = &line->values[node->member];
    size_t bytes = guess->text.bytes - (size_t)1;
    if (!is_at(at, guess)) {
        uint32_t place = scan_place(at) % SHAPES_GUESSES;
        /* two places for each hash, as a few texts share one */
        place ^= !is_at(at, &shapes->guesses[place]) && shapes->guesses[place].text.bytes;
        guess = &shapes->guesses[place];
        bytes = guess->text.bytes - (size_t)1;
        if (!is_at(at, guess)) {
            const char *quote = learn_text(guess, at, node->seen, line);
            if (!quote) return NULL;
            bytes = (size_t)(quote - at);
        }
        node->guess = (uint16_t)place;
    }
    value->text = at;
    value->bytes = (uint32_t)bytes;
    value->word = guess->text.bytes ? &guess->word : NULL;
    value->number = 0;
    return guess;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Of the nodes from `next` on the one whose text is at `at`; 0: none. */
static inline uint32_t find_node(const struct shapes *shapes, uint32_t next, const char *at)
{
    while (next && !scan_begins(at, &shapes->nodes[next].before))
        next = shapes->nodes[next].sibling;
    return next;
}

/* The node behind this text, which is mostly the same one for it. */
static inline uint32_t find_behind(const struct shapes *shapes, uint32_t here,
                                   struct shape_guess *guess, const char *at)
{
    uint32_t next = guess->node == here ? guess->next : 0;
    if (next && scan_begins(at, &shapes->nodes[next].before)) return next;
    next = find_node(shapes, shapes->nodes[here].child, at);
    guess->node = (uint16_t)here;
    guess->next = (uint16_t)next;
    return next;
}

static inline uint32_t find_first(struct shapes *shapes, const char *at)
{
    enum { TELLING = 9 }; /* differs in `{"t":"start"`, `{"t":"stop"`, `{"t":"state"` */
    uint16_t *first = &shapes->firsts[at[TELLING] & (SHAPES_FIRSTS - 1)];
    if (*first && scan_begins(at, &shapes->nodes[*first].before)) return *first;
    *first = (uint16_t)find_node(shapes, shapes->nodes[0].child, at);
    return *first;
}

const char *shapes_read(struct shapes *shapes, const char *at, const char *limit, struct line *line)
{
    /* No text and no number has a '\n' in it, so nothing goes beyond the one at `limit`. */
    uint32_t here = find_first(shapes, at);
    while (here) {
        struct shape_node *node = &shapes->nodes[here];
        at += node->before.bytes;
        if (node->is_end) {
            line->kind = (enum line_kind)node->kind;
            line->seen = node->seen;
            return *at == '\n' && at < limit ? at : NULL;
        }
        struct line_value *value = &line->values[node->member];
        value->is_text = node->is_text;
        if (node->is_text) {
            struct shape_guess *guess = read_text(shapes, node, at, line);
            if (!guess) return NULL;
            at += value->bytes;
            here = find_behind(shapes, here, guess, at);
        } else {
            at = read_number(node, at, &value->number);
            if (!at) return NULL;
            here = find_node(shapes, node->child, at);
        }
    }
    return NULL;
}
#else
const char *shapes_read(struct shapes *shapes, const char *at, const char *limit, struct line *line)
{
    (void)shapes, (void)at, (void)limit, (void)line;
    return NULL;
}
#endif

static bool is_same(const struct shape_node *a, const struct shape_node *b)
{
    return a->before.bytes == b->before.bytes &&
           !memcmp(a->before.words, b->before.words, sizeof(a->before.words)) &&
           a->member == b->member && a->kind == b->kind && a->is_text == b->is_text &&
           a->is_end == b->is_end && a->seen == b->seen;
}

/* The child of `parent` that is like `wanted`, or that becomes so; 0: there is no room. */
static uint32_t child_of(struct shapes *shapes, uint32_t parent, const struct shape_node *wanted)
{
    uint16_t *link = &shapes->nodes[parent].child;
    uint16_t found = *link;
    while (found && !is_same(&shapes->nodes[found], wanted)) {
        link = &shapes->nodes[found].sibling;
        found = *link;
    }
    if (found) return found;
    if (shapes->used == 0) shapes->used = 1;
    if (shapes->used == SHAPES_NODES) return 0;
    shapes->nodes[shapes->used] = *wanted;
    *link = (uint16_t)shapes->used++;
    return *link;
}

/* The node of a value, or of the end, whose text begins at `at`. False: it is nothing to learn. */
static bool describe(const struct line_span *span, const char *at, const char *until,
                     struct shape_node *node)
{
    if (!scan_set(&node->before, at, (size_t)(until - at))) return false;
    if (!span) {
        node->is_end = true;
        return true;
    }
    bool is_number = (*until >= '0' && *until <= '9') || *until == '-';
    node->is_text = span->is_text;
    if (span->member >= 0) {
        node->member = (uint8_t)span->member;
        node->seen |= (uint64_t)1 << span->member;
    }
    return span->is_text || is_number;
}

void shapes_learn(struct shapes *shapes, const char *at, const char *end, const struct line *line)
{
    uint32_t parent = 0;
    uint64_t seen = 0;
    uint8_t kind = LINE_OTHER;
    if (line->nspans > LINE_SPANS) return;
    for (uint32_t k = 0; k <= line->nspans; k++) {
        const struct line_span *span = k < line->nspans ? &line->spans[k] : NULL;
        struct shape_node node = {.member = LINE_MEMBER_COUNT_, .kind = kind};
        const char *until = span ? span->begin : end;
        if (span && span->member == LINE_T && span->is_text) {
            seen |= (uint64_t)1 << LINE_T;
            kind = (uint8_t)line->kind; /* its name belongs to the text behind it */
            continue;
        }
        node.seen = seen;
        node.head.digits = 0x3030303030303030u;
        if (!describe(span, at, until, &node)) return;
        seen = node.seen;
        parent = child_of(shapes, parent, &node);
        if (!parent) return;
        if (span) at = span->end;
    }
}
