/* The configuration: one rule a line, comma separated,
 *
 *     collective,min bytes,max
 * bytes,algorithm,protocol,channels,nodes,ranks[,operations[,registered]]
 *
 * -1 means any (channels: keep). Lines that begin with # and empty lines are passed over; a bad
 * line is reported with its number and reason, and skipped: it never becomes a rule that no user
 * wrote.
 */
#include "tuner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256, FIELDS_LEAST = 8, FIELDS_MOST = 10, RULES_MOST = 65536 };

struct fields {
    char *text[FIELDS_MOST + 1];
    int count;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char *trimmed(char *text)
{
    while (is_blank(*text))
        text++;
    size_t len = strlen(text);
    while (len && is_blank(text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

/* Cut at commas; one field more than there may be is kept, so that it is seen. */
static void split(char *line, struct fields *fields)
{
    fields->count = 0;
    for (char *at = line; at && fields->count <= FIELDS_MOST;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        fields->text[fields->count++] = trimmed(at);
        at = comma ? comma + 1 : NULL;
    }
}

static bool read_bytes(const char *text, size_t *value_out)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno) return false;
    *value_out = (size_t)value;
    return true;
}

/* A whole number from -1 on. */
static bool read_count(const char *text, long long *value_out)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < -1) return false;
    *value_out = value;
    return true;
}

/* The first fault of the words and sizes; NULL: none. */
static const char *read_head(const struct fields *f, struct tuner_rule *rule, int *field)
{
    *field = 1;
    rule->func = tuner_func_number(f->text[0]);
    if (rule->func < 0)
        return "is no collective (broadcast, reduce, allgather, reducescatter, allreduce)";
    *field = 2;
    if (!read_bytes(f->text[1], &rule->least_bytes)) return "is no number of bytes";
    *field = 3;
    rule->most_bytes = SIZE_MAX;
    bool any = !strcmp(f->text[2], "-1");
    if (!any && !read_bytes(f->text[2], &rule->most_bytes)) return "is no number of bytes";
    if (rule->most_bytes < rule->least_bytes) return "is less than the least size";
    *field = 4;
    rule->algo = tuner_algo_number(f->text[3]);
    if (rule->algo < 0)
        return "is no algorithm (tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat)";
    *field = 5;
    rule->proto = tuner_proto_number(f->text[4]);
    return rule->proto < 0 ? "is no protocol (ll, ll128, simple)" : NULL;
}

static const char *read_tail(const struct fields *f, struct tuner_rule *rule, int *field)
{
    long long nchannels = -1;
    long long *const numbers[] = {&nchannels, &rule->nnodes, &rule->nranks, &rule->nops,
                                  &rule->registered};
    rule->nops = rule->registered = -1;
    for (int i = 5; i < f->count; i++) {
        *field = i + 1;
        if (!read_count(f->text[i], numbers[i - 5])) return "is neither -1 nor a number";
    }
    *field = 6;
    if (nchannels > 1024) return "is more channels than there can be";
    rule->nchannels = nchannels == 0 ? -1 : (int)nchannels;
    *field = 10;
    return rule->registered > 1 ? "is neither 0, 1 nor -1" : NULL;
}

static bool read_rule(char *line, int number, struct tuner_rule *rule,
                      const struct tuner_notes *notes)
{
    struct fields fields;
    int field = 0;
    split(line, &fields);
    if (fields.count < FIELDS_LEAST || fields.count > FIELDS_MOST) {
        tuner_complain(notes, number, "%s%d fields, a rule has 8 to 10; the line is skipped",
                       fields.count > FIELDS_MOST ? "more than " : "",
                       fields.count > FIELDS_MOST ? FIELDS_MOST : fields.count);
        return false;
    }
    const char *fault = read_head(&fields, rule, &field);
    if (!fault) fault = read_tail(&fields, rule, &field);
    if (!fault) return true;
    tuner_complain(notes, number, "field %d, '%.40s', %s; the line is skipped", field,
                   field <= fields.count ? fields.text[field - 1] : "", fault);
    return false;
}

static bool append(struct tuner_rules *rules, const struct tuner_rule *rule)
{
    if ((rules->count & (rules->count - 1)) == 0) { /* full at every power of two */
        size_t room = rules->count ? rules->count * 2 : 1;
        struct tuner_rule *grown = realloc(rules->items, room * sizeof(*grown));
        if (!grown) return false;
        rules->items = grown;
    }
    rules->items[rules->count++] = *rule;
    return true;
}

/* One line without its end. */
static bool read_line(struct tuner_rules *rules, const char *text, size_t len, int number,
                      const struct tuner_notes *notes)
{
    char line[LINE_BYTES];
    struct tuner_rule rule;
    if (len >= sizeof(line)) {
        if (text[0] != '#') {
            tuner_complain(notes, number, "longer than %d characters; the line is skipped",
                           LINE_BYTES - 1);
        }
        return true;
    }
    memcpy(line, text, len);
    line[len] = '\0';
    if (strlen(line) != len) {
        tuner_complain(notes, number, "has a zero byte; the line is skipped");
        return true;
    }
    char *start = trimmed(line);
    if (!*start || *start == '#' || !read_rule(start, number, &rule, notes)) return true;
    if (rules->count < RULES_MOST) return append(rules, &rule);
    tuner_complain(notes, number, "more than %d rules; the line is skipped", RULES_MOST);
    return true;
}

bool tuner_rules_parse(struct tuner_rules *rules, const char *text, size_t bytes,
                       const struct tuner_notes *notes)
{
    int number = 0;
    *rules = (struct tuner_rules){NULL, 0};
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (!read_line(rules, at, (size_t)(stop - at), ++number, notes)) {
            tuner_rules_free(rules);
            return false;
        }
        at = stop + 1;
    }
    return true;
}

void tuner_rules_free(struct tuner_rules *rules)
{
    free(rules->items);
    *rules = (struct tuner_rules){NULL, 0};
}

static bool agrees(long long wanted, unsigned long long is)
{
    return wanted < 0 || (unsigned long long)wanted == is;
}

const struct tuner_rule *tuner_rules_next(const struct tuner_rules *rules,
                                          const struct tuner_question *question,
                                          const struct tuner_size *size, size_t *at)
{
    while (*at < rules->count) {
        const struct tuner_rule *rule = &rules->items[(*at)++];
        if (rule->func != question->func) continue;
        if (question->bytes < rule->least_bytes || question->bytes > rule->most_bytes) continue;
        bool fits = agrees(rule->nnodes, size->nnodes) && agrees(rule->nranks, size->nranks) &&
                    agrees(rule->nops, (unsigned long long)question->nops) &&
                    agrees(rule->registered, (unsigned long long)question->registered);
        if (fits) return rule;
    }
    return NULL;
}
