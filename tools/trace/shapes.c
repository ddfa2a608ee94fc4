/* Paths of texts and values. Compared are whole words, of which a mask says what counts. */
#include "shapes.h"

#include <string.h>

static uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

static inline bool begins_with(const char *at, const struct shape_text *text)
{
    uint64_t other = (word_at(at) ^ text->words[0]) & text->masks[0];
    for (int k = 1; k < text->nwords; k++)
        other |= (word_at(at + 8 * (size_t)k) ^ text->words[k]) & text->masks[k];
    return other == 0;
}

static bool set_text(struct shape_text *text, const char *from, size_t bytes)
{
    char padded[8 * SHAPES_WORDS] = {0}, mask[8 * SHAPES_WORDS] = {0};
    if (bytes > sizeof(padded)) return false;
    memcpy(padded, from, bytes);
    memset(mask, 0xff, bytes);
    memcpy(text->words, padded, sizeof(text->words));
    memcpy(text->masks, mask, sizeof(text->masks));
    text->bytes = (uint8_t)bytes;
    text->nwords = (uint8_t)((bytes + 7) / 8);
    return true;
}

/* Eight digits at once (their count is 8). */
static uint64_t eight_digits(uint64_t word)
{
    word = (word & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (word & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

/* How many of the eight characters are digits, up to the first other one. */
static int count_digits(uint64_t word)
{
    uint64_t digits = word ^ 0x3030303030303030u; /* 0..9 where they are */
    uint64_t others = ((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u;
    return others ? __builtin_ctzll(others) / 8 : 8;
}

/* Up to 19 digits, with a sign. NULL: no such number. */
static inline const char *read_digits(const char *at, uint64_t *number)
{
    static const uint64_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    enum { DIGITS_MOST = 19 };
    bool minus = *at == '-';
    uint64_t sum = 0;
    int all = 0, count = 8;
    at += minus;
    while (count == 8) {
        uint64_t word = word_at(at);
        count = count_digits(word);
        if (count == 0) break;
        /* the digits move to the end of the word, behind zeros */
        sum = sum * powers[count] + eight_digits(count == 8 ? word : word << (64 - 8 * count));
        all += count;
        at += count;
        if (all > DIGITS_MOST) return NULL;
    }
    *number = minus ? 0 - sum : sum;
    return all ? at : NULL;
}

/* The text up to its first quote takes the place of what was at `guess`, which an earlier value of
 * the line may have: that one has no place any more. NULL: it is longer than the line, or has
 * escapes. */
static const char *learn_text(struct shape_guess *guess, const char *at, const char *end,
                              struct line *line, struct line_value *value)
{
    const char *quote = memchr(at, '"', (size_t)(end - at));
    if (!quote || memchr(at, '\\', (size_t)(quote - at))) return NULL;
    for (uint64_t seen = line->seen; seen; seen &= seen - 1) {
        struct line_value *other = &line->values[__builtin_ctzll(seen)];
        if (other->is_text && other->word == &guess->word) other->word = NULL;
    }
    guess->word = 0;
    if (set_text(&guess->text, at, (size_t)(quote - at) + 1)) return quote;
    guess->text.bytes = 0;
    value->word = NULL;
    return quote;
}

/* A text that ends with its first quote. */
static inline const char *read_text(struct shapes *shapes, const char *at, const char *end,
                                    struct line *line, struct line_value *value)
{
    uint64_t hash = (word_at(at) ^ word_at(at + 8) * 3) * 0x9e3779b97f4a7c15u;
    struct shape_guess *guess = &shapes->guesses[hash >> 32 & (SHAPES_GUESSES - 1)];
    bool known = guess->text.bytes && begins_with(at, &guess->text);
    if (!known && guess->text.bytes) { /* two places for each hash, as a few texts share one */
        guess = &shapes->guesses[(hash >> 32 & (SHAPES_GUESSES - 1)) ^ 1];
        known = guess->text.bytes && begins_with(at, &guess->text);
    }
    value->word = &guess->word;
    return known ? at + guess->text.bytes - 1 : learn_text(guess, at, end, line, value);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
bool shapes_read(struct shapes *shapes, const char *at, const char *end, struct line *line)
{
    const struct shape_node *nodes = shapes->nodes;
    uint8_t kind = 0;
    line->seen = 0;
    for (const uint16_t *next = &nodes[0].child; *next;) {
        const struct shape_node *node = &nodes[*next];
        if (!begins_with(at, &node->before)) {
            next = &node->sibling;
            continue;
        }
        at += node->before.bytes;
        if (node->kind) kind = node->kind;
        if (node->is_end) {
            line->kind = (enum line_kind)(kind ? kind - 1 : LINE_OTHER);
            return at == end;
        }
        struct line_value *value = &line->values[node->member];
        const char *from = at;
        at = node->is_text ? read_text(shapes, at, end, line, value)
                           : read_digits(at, &value->number);
        if (!at || at > end) return false;
        value->text = from;
        value->bytes = node->is_text ? (uint32_t)(at - from) : 0;
        value->is_text = node->is_text;
        if (node->is_text) value->number = 0;
        line->seen |= node->seen;
        next = &node->child;
    }
    return false;
}
#else
bool shapes_read(struct shapes *shapes, const char *at, const char *end, struct line *line)
{
    (void)shapes, (void)at, (void)end, (void)line;
    return false;
}
#endif

static bool is_same(const struct shape_node *a, const struct shape_node *b)
{
    return a->before.bytes == b->before.bytes &&
           !memcmp(a->before.words, b->before.words, sizeof(a->before.words)) &&
           a->member == b->member && a->kind == b->kind && a->is_text == b->is_text &&
           a->is_end == b->is_end;
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
    if (!set_text(&node->before, at, (size_t)(until - at))) return false;
    if (!span) {
        node->is_end = true;
        return true;
    }
    bool is_number = (*until >= '0' && *until <= '9') || *until == '-';
    node->is_text = span->is_text;
    if (span->member >= 0) {
        node->member = (uint8_t)span->member;
        node->seen = (uint64_t)1 << span->member;
    }
    return span->is_text || is_number;
}

void shapes_learn(struct shapes *shapes, const char *at, const char *end, const struct line *line)
{
    uint32_t parent = 0;
    uint8_t kind = 0;
    if (line->nspans > LINE_SPANS) return;
    for (uint32_t k = 0; k <= line->nspans; k++) {
        const struct line_span *span = k < line->nspans ? &line->spans[k] : NULL;
        if (span && span->member == LINE_T && span->is_text) {
            kind = (uint8_t)(line->kind + 1); /* the name of the kind belongs to the text */
            continue;
        }
        struct shape_node node = {.member = LINE_MEMBER_COUNT_, .kind = kind};
        const char *until = span ? span->begin : end;
        if (!describe(span, at, until, &node)) return;
        parent = child_of(shapes, parent, &node);
        if (!parent) return;
        kind = 0;
        if (span) at = span->end;
    }
}
