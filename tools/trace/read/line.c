/* Reading one line. The line ends with '\n', which stands in no token, so the scanners need no
 * other bound. */
#include "line.h"

#include "base/mem.h"

#include <string.h>

enum { DEEPEST = 32 };

struct name {
    const char *name;
    enum line_member member;
};
static const struct name members[] = {
    {"t", LINE_T},
    {"id", LINE_ID},
    {"parent", LINE_PARENT},
    {"c", LINE_C},
    {"c_pid", LINE_C_PID},
    {"comm", LINE_COMM_ID},
    {"tid", LINE_TID},
    {"ts", LINE_TS},
    {"dur", LINE_DUR},
    {"type", LINE_TYPE},
    {"func", LINE_FUNC},
    {"phase", LINE_FUNC},
    {"phaseName", LINE_FUNC},
    {"datatype", LINE_DATATYPE},
    {"count", LINE_COUNT},
    {"bytes", LINE_COUNT},
    {"totalBytes", LINE_COUNT},
    {"seq", LINE_SEQ},
    {"seqNumber", LINE_SEQ},
    {"timer", LINE_SEQ},
    {"pTimer", LINE_SEQ},
    {"net", LINE_SEQ},
    {"peer", LINE_PEER},
    {"root", LINE_PEER},
    {"algo", LINE_ALGO},
    {"sync", LINE_ALGO},
    {"proto", LINE_PROTO},
    {"channels", LINE_CHANNEL},
    {"nChannels", LINE_CHANNEL},
    {"channel", LINE_CHANNEL},
    {"channelId", LINE_CHANNEL},
    {"warps", LINE_WARPS},
    {"nWarps", LINE_WARPS},
    {"pid", LINE_PID},
    {"steps", LINE_STEPS},
    {"nSteps", LINE_STEPS},
    {"step", LINE_STEPS},
    {"depth", LINE_STEPS},
    {"groupDepth", LINE_STEPS},
    {"batches", LINE_STEPS},
    {"ops", LINE_STEPS},
    {"chunk", LINE_CHUNK},
    {"chunkSize", LINE_CHUNK},
    {"send", LINE_FLAG},
    {"isSend", LINE_FLAG},
    {"captured", LINE_FLAG},
    {"graphCaptured", LINE_FLAG},
    {"complete", LINE_FLAG},
    {"state", LINE_STATE_NAME},
    {"value", LINE_VALUE},
    {"arg", LINE_VALUE},
    {"states", LINE_STATES},
    {"host", LINE_HOST},
    {"exe", LINE_EXE},
    {"start_wall_ns", LINE_WALL},
    {"wall_ns", LINE_WALL},
    {"start_mono_ns", LINE_MONO},
    {"mono_ns", LINE_MONO},
    {"api", LINE_API},
    {"mask", LINE_MASK},
    {"name", LINE_NAME},
    {"rank", LINE_RANK},
    {"nranks", LINE_NRANKS},
    {"nnodes", LINE_NNODES},
    {"lost", LINE_LOST_STARTS},
    {"lost_starts", LINE_LOST_STARTS},
    {"lost_states", LINE_LOST_STATES},
    {"lost_stops", LINE_LOST_STOPS},
    {"flight", LINE_FLIGHT_WHY},
    {"redop", LINE_REDOP},
    {"begun", LINE_BEGUN},
    {"ended", LINE_ENDED},
    {"queued", LINE_QUEUED},
    {"waits", LINE_WAITS},
    {"since", LINE_SINCE},
    {"sent", LINE_SENT},
    {"received", LINE_RECEIVED},
    {"n", LINE_N},
    {"base", LINE_BASE},
    {"words", LINE_WORDS},
    {"v", LINE_VERSION},
};

/* A slot by the first eight bytes of a name and its length; what lies behind the name counts
 * nothing. */
static uint8_t slot_of(const char *name, size_t bytes)
{
    uint64_t head;
    memcpy(&head, name, sizeof(head));
    if (bytes < sizeof(head)) head &= ((uint64_t)1 << 8 * bytes) - 1;
    return (uint8_t)((head + bytes) * 0x9e3779b97f4a7c15u >> 56);
}

void line_names_init(struct line_names *names)
{
    memset(names, 0, sizeof(*names));
    for (size_t i = 0; i < TT_LEN(members); i++) {
        char name[24] = "";
        size_t bytes = strlen(members[i].name);
        memcpy(name, members[i].name, bytes);
        uint8_t slot = slot_of(name, bytes);
        while (names->slots[slot])
            slot++;
        names->slots[slot] = (uint8_t)(i + 1);
        names->bytes[slot] = (uint8_t)bytes;
    }
}

/* -1: unknown. */
static int find_member(const struct line_names *names, const char *name, size_t bytes)
{
    for (uint8_t slot = slot_of(name, bytes); names->slots[slot]; slot++) {
        uint8_t row = names->slots[slot] - 1;
        if (names->bytes[slot] == bytes && !memcmp(members[row].name, name, bytes))
            return (int)members[row].member;
    }
    return -1;
}

static const char *skip_blank(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

/* From behind the first quote to the last one. NULL: it has none. */
static const char *text_end(const char *at)
{
    for (; *at != '"'; at++) {
        if (*at == '\\') at++;
        if (*at == '\n') return NULL;
    }
    return at;
}

/* Whole numbers; what follows the point counts nothing. NULL: none, or over 64 bits. */
static const char *read_number(const char *at, uint64_t *number)
{
    bool minus = *at == '-';
    uint64_t sum = 0;
    at += minus;
    if (*at < '0' || *at > '9') return NULL;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (sum > (UINT64_MAX - digit) / 10) return NULL;
        sum = sum * 10 + digit;
    }
    if (*at == '.') {
        at++;
        while (*at >= '0' && *at <= '9')
            at++;
    }
    *number = minus ? 0 - sum : sum;
    return *at == 'e' || *at == 'E' ? NULL : at;
}

/* An array or object, which stays text. NULL: it does not end in this line. */
static const char *nested_end(const char *at)
{
    int depth = 0;
    for (; *at != '\n'; at++) {
        if (*at == '"') at = text_end(at + 1);
        if (!at || depth > DEEPEST) return NULL;
        if (*at == '[' || *at == '{') depth++;
        if (*at == ']' || *at == '}') depth--;
        if (depth == 0) return at + 1;
    }
    return NULL;
}

static const char *read_value(const char *at, struct line_value *value)
{
    const char *end = NULL;
    value->number = 0;
    value->bytes = 0;
    value->word = NULL;
    value->is_text = *at == '"' || *at == '[' || *at == '{';
    value->text = at;
    if (*at == '"') {
        end = text_end(at + 1);
        if (!end) return NULL;
        value->text = at + 1;
        value->bytes = (uint32_t)(end - value->text);
        return end + 1;
    }
    if (value->is_text) {
        end = nested_end(at);
    } else if (!strncmp(at, "true", 4) || !strncmp(at, "null", 4)) {
        value->number = *at == 't';
        end = at + 4;
    } else if (!strncmp(at, "false", 5)) {
        end = at + 5;
    } else {
        return read_number(at, &value->number);
    }
    value->bytes = end ? (uint32_t)(end - at) : 0;
    return end;
}

static enum line_kind kind_of(const struct line *line)
{
    static const struct {
        const char *name;
        enum line_kind kind;
    } kinds[] = {
        {"start", LINE_START},   {"stop", LINE_STOP},       {"state", LINE_STATE},
        {"head", LINE_HEAD},     {"clk", LINE_CLK},         {"comm", LINE_COMM},
        {"thread", LINE_THREAD}, {"end", LINE_END},         {"ev", LINE_EVENT},
        {"st", LINE_STATE},      {"flight", LINE_FLIGHT},   {"messages", LINE_MESSAGES},
        {"word", LINE_WORD},     {"records", LINE_RECORDS},
    };
    const struct line_value *t = &line->values[LINE_T];
    if (!line_has(line, LINE_T)) return LINE_OTHER;
    for (size_t i = 0; i < TT_LEN(kinds); i++) {
        if (strlen(kinds[i].name) == t->bytes && !memcmp(kinds[i].name, t->text, t->bytes))
            return kinds[i].kind;
    }
    return LINE_OTHER;
}

/* One `"name":value`; `at` is at its first quote. NULL: line->wrong says why. */
static const char *read_member(const struct line_names *names, const char *at, struct line *line)
{
    const char *name = at + 1, *name_end;
    line->wrong = "a name does not begin with a quote";
    if (*at != '"') return NULL;
    line->wrong = "a text has no end";
    name_end = text_end(name);
    if (!name_end) return NULL;
    int member = find_member(names, name, (size_t)(name_end - name));
    at = skip_blank(name_end + 1);
    line->wrong = "a name without a value";
    if (*at != ':') return NULL;
    at = skip_blank(at + 1);
    line->wrong = "a value that is none";
    struct line_value *value = &line->values[member < 0 ? LINE_MEMBER_COUNT_ : member];
    const char *begin = at + (*at == '"');
    at = read_value(at, value);
    if (at && member >= 0) line->seen |= (uint64_t)1 << member;
    struct line_span span = {begin, at, member, begin[-1] == '"'};
    if (span.is_text && at) span.end = at - 1;
    if (line->nspans < LINE_SPANS) line->spans[line->nspans] = span;
    line->nspans++;
    return at;
}

bool line_read(const struct line_names *names, const char *at, const char *end, struct line *line)
{
    line->kind = LINE_OTHER;
    line->seen = 0;
    line->nspans = 0;
    line->wrong = "no object of JSON";
    at = skip_blank(at);
    if (*at != '{') return false;
    at = skip_blank(at + 1);
    while (*at != '}') {
        at = read_member(names, at, line);
        if (!at) return false;
        at = skip_blank(at);
        line->wrong = "neither a comma nor the end behind a value";
        if (*at != ',' && *at != '}') return false;
        if (*at == ',') at = skip_blank(at + 1);
    }
    line->wrong = "more behind the object";
    if (skip_blank(at + 1) != end) return false;
    line->kind = kind_of(line);
    return true;
}

uint64_t line_hex(const struct line *line, enum line_member member)
{
    const struct line_value *value = &line->values[member];
    uint64_t number = 0;
    if (!line_has(line, member) || !value->is_text) return 0;
    for (uint32_t i = 0; i < value->bytes && i < 16; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = value->text[i] ? strchr(digits, value->text[i] | 0x20) : NULL;
        if (!digit) return 0;
        number = number << 4 | (uint64_t)(digit - digits);
    }
    return number;
}
