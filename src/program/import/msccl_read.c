/* Reads MSCCL's XML with expat: elements algo > gpu > tb (or copy) > step in lists, in one go.
 * Entities are never expanded: a DOCTYPE is refused before its content is looked at. Unknown
 * elements and attributes are refused: what is misspelt would be missing. */
#include "msccl.h"

#include "base/mem.h"

#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct msccl_kind tt_msccl_kinds[MSCCL_TYPES_] = {
    [MSCCL_S] = {.name = "s", .sends = true, .reads = true},
    [MSCCL_R] = {.name = "r", .receives = true, .writes = true},
    [MSCCL_RCS] = {.name = "rcs", .sends = true, .receives = true, .writes = true},
    [MSCCL_RRS] = {.name = "rrs", .sends = true, .receives = true, .reads = true, .reduces = true},
    [MSCCL_RRC] = {.name = "rrc", .receives = true, .reads = true, .writes = true, .reduces = true},
    [MSCCL_RRCS] = {.name = "rrcs",
                    .sends = true,
                    .receives = true,
                    .reads = true,
                    .writes = true,
                    .reduces = true},
    [MSCCL_CPY] = {.name = "cpy", .reads = true, .writes = true},
    [MSCCL_RE] = {.name = "re", .reads = true, .writes = true, .reduces = true},
    [MSCCL_NOP] = {.name = "nop"},
};

/* ---- faults and lists ---- */

bool tt_msccl_refuse(struct msccl_file *file, int line, const char *fmt, ...)
{
    if (file->rc) return false;
    file->rc = ncclInvalidUsage;
    int length = line > 0 ? snprintf(file->fault, file->fault_bytes, "line %d: ", line) : 0;
    if (length < 0 || (size_t)length >= file->fault_bytes) return false;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(file->fault + length, file->fault_bytes - (size_t)length, fmt, args);
    va_end(args);
    return false;
}

bool tt_msccl_no_memory(struct msccl_file *file)
{
    if (!file->rc) (void)snprintf(file->fault, file->fault_bytes, "out of memory");
    if (!file->rc) file->rc = ncclSystemError;
    return false;
}

void tt_msccl_note(struct msccl_file *file, int line, const char *fmt, ...)
{
    enum { MOST_BYTES = 4096 };
    char text[240];
    int length = snprintf(text, sizeof(text), "line %d: ", line);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + length, sizeof(text) - (size_t)length, fmt, args);
    va_end(args);
    size_t more = strlen(text);
    if (file->notes_bytes + more + 2 > MOST_BYTES) return;
    char *grown = realloc(file->notes, file->notes_bytes + more + 2);
    if (!grown) return;
    (void)snprintf(grown + file->notes_bytes, more + 2, "%s\n", text);
    file->notes = grown;
    file->notes_bytes += more + 1;
}

void *tt_msccl_append(struct msccl_list *list, size_t item_bytes)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        void *grown = realloc(list->items, capacity * item_bytes);
        if (!grown) return NULL;
        list->items = grown;
        list->capacity = capacity;
    }
    void *item = (char *)list->items + list->count++ * item_bytes;
    memset(item, 0, item_bytes);
    return item;
}

void tt_msccl_file_fini(struct msccl_file *file)
{
    free(file->ranks.items);
    free(file->blocks.items);
    free(file->steps.items);
    free(file->kept.items);
    free(file->moves);
    free(file->notes);
}

/* ---- attributes ---- */

enum { DEPTH = 4, MOST_ATTRIBUTES = 16 };

struct reader {
    struct msccl_file *file;
    XML_Parser parser;
    int depth;
    const char *element;
    bool in_copy;
    const char *keys[MOST_ATTRIBUTES]; /* of the element at hand */
    const char *values[MOST_ATTRIBUTES];
};

struct attribute {
    const char *name;
    bool optional;
};

static int line_of(const struct reader *reader)
{
    return (int)XML_GetCurrentLineNumber(reader->parser);
}

/* Sort what the element has by its list of names (ends at NULL). */
static bool take_attributes(struct reader *reader, const char **attrs,
                            const struct attribute *known)
{
    memset(reader->values, 0, sizeof(reader->values));
    for (int k = 0; known[k].name; k++)
        reader->keys[k] = known[k].name;
    for (; attrs[0]; attrs += 2) {
        int k = 0;
        while (known[k].name && strcmp(known[k].name, attrs[0]) != 0) {
            k++;
        }
        if (!known[k].name) {
            return tt_msccl_refuse(reader->file, line_of(reader), "<%s> has no attribute %.40s",
                                   reader->element, attrs[0]);
        }
        reader->values[k] = attrs[1];
    }
    for (int k = 0; known[k].name; k++) {
        if (reader->values[k] || known[k].optional) continue;
        return tt_msccl_refuse(reader->file, line_of(reader), "<%s> lacks the attribute %s",
                               reader->element, known[k].name);
    }
    return true;
}

/* Plain decimal numbers up to INT64_MAX only: "0x10", "010", "3x" and "" are none. */
static bool take_number(struct reader *reader, int k, int64_t low, int64_t high, int64_t *out)
{
    const char *text = reader->values[k], *digit = text[0] == '-' ? text + 1 : text;
    int64_t value = 0;
    bool number = digit[0] && (digit[0] != '0' || (!digit[1] && digit == text));
    size_t digits = strspn(digit, "0123456789");
    number = number && !digit[digits];
    for (size_t d = 0; number && d < digits; d++) {
        int unit = digit[d] - '0';
        number = value <= (INT64_MAX - unit) / 10;
        if (number) value = value * 10 + unit;
    }
    if (digit != text) value = -value;
    if (!number) {
        return tt_msccl_refuse(reader->file, line_of(reader),
                               "%s of <%s> is \"%.40s\", which is no decimal number",
                               reader->keys[k], reader->element, text);
    }
    if (value < low || value > high) {
        return tt_msccl_refuse(reader->file, line_of(reader),
                               "%s of <%s> is %lld, not in %lld to %lld", reader->keys[k],
                               reader->element, (long long)value, (long long)low, (long long)high);
    }
    *out = value;
    return true;
}

static bool take_int(struct reader *reader, int k, int low, int high, int *out)
{
    int64_t value = 0;
    if (!take_number(reader, k, low, high, &value)) return false;
    *out = (int)value;
    return true;
}

/* The number of the value in a list of words (ends at NULL). */
static bool take_word(struct reader *reader, int k, const char *const *words, int *out)
{
    for (int w = 0; words[w]; w++) {
        if (strcmp(words[w], reader->values[k]) != 0) continue;
        *out = w;
        return true;
    }
    return tt_msccl_refuse(reader->file, line_of(reader), "%s of <%s> is \"%.40s\", which is none",
                           reader->keys[k], reader->element, reader->values[k]);
}

static bool take_flag(struct reader *reader, int k, bool *out)
{
    int value = 0;
    if (!take_int(reader, k, 0, 1, &value)) return false;
    *out = value;
    return true;
}

/* ---- elements ---- */

enum {
    ALGO_NAME,
    ALGO_PROTO,
    ALGO_NCHANNELS,
    ALGO_NCHUNKS,
    ALGO_NGPUS,
    ALGO_COLL,
    ALGO_INPLACE,
    ALGO_OUTOFPLACE,
    ALGO_MIN,
    ALGO_MAX,
    ALGO_REDOP,
};
static const struct attribute algo_attributes[] = {
    {"name", true},          {"proto", false},   {"nchannels", false}, {"nchunksperloop", false},
    {"ngpus", false},        {"coll", false},    {"inplace", true},    {"outofplace", true},
    {"minBytes", true},      {"maxBytes", true}, {"redop", true},      {"maxcount", true},
    {"nthreadblocks", true}, {NULL, true}};

static const char *const collectives[] = {"allreduce", "allgather", "reducescatter", "broadcast",
                                          "reduce",    "alltoall",  "gather",        "scatter",
                                          "alltoallv", "send",      "recv",          NULL};
static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_ALLGATHER, TT_FUNC_REDUCESCATTER,
                                     TT_FUNC_BROADCAST, TT_FUNC_REDUCE,    TT_FUNC_ALLTOALL,
                                     TT_FUNC_GATHER,    TT_FUNC_SCATTER};

static bool read_collective(struct reader *reader)
{
    int k = 0;
    if (strcmp(reader->values[ALGO_COLL], "reduce_scatter") == 0)
        reader->values[ALGO_COLL] = "reducescatter";
    if (!take_word(reader, ALGO_COLL, collectives, &k)) return false;
    if ((size_t)k >= TT_LEN(funcs)) {
        return tt_msccl_refuse(reader->file, line_of(reader),
                               "%s is no collective that is imported", collectives[k]);
    }
    reader->file->func = funcs[k];
    return true;
}

/* Older files say neither where they may be used, nor for which sizes. */
static bool read_use(struct reader *reader)
{
    struct msccl_file *file = reader->file;
    int64_t low = 0, high = 0;
    if (reader->values[ALGO_INPLACE] && !take_flag(reader, ALGO_INPLACE, &file->in_place))
        return false;
    file->out_of_place = !file->in_place;
    if (reader->values[ALGO_OUTOFPLACE] && !take_flag(reader, ALGO_OUTOFPLACE, &file->out_of_place))
        return false;
    if (reader->values[ALGO_MIN] && !take_number(reader, ALGO_MIN, 0, INT64_MAX, &low))
        return false;
    if (reader->values[ALGO_MAX] && !take_number(reader, ALGO_MAX, -1, INT64_MAX, &high))
        return false;
    file->min_bytes = (uint64_t)low;
    file->max_bytes = high > 0 ? (uint64_t)high : 0;
    if (!file->in_place && !file->out_of_place)
        return tt_msccl_refuse(file, file->line, "usable neither in place nor out of place");
    if (file->max_bytes && file->min_bytes > file->max_bytes) {
        return tt_msccl_refuse(file, file->line, "minBytes %llu is more than maxBytes %llu",
                               (unsigned long long)file->min_bytes,
                               (unsigned long long)file->max_bytes);
    }
    return true;
}

void tt_msccl_take_name(struct msccl_file *file, const char *name)
{
    size_t bytes = strlen(name);
    if (bytes >= sizeof(file->name)) bytes = sizeof(file->name) - 1;
    while (((unsigned char)name[bytes] & 0xc0) == 0x80)
        bytes--;
    (void)snprintf(file->name, sizeof(file->name), "%.*s", (int)bytes, name);
}

static bool read_algo(struct reader *reader)
{
    static const char *const protos[] = {"LL", "LL128", "Simple", NULL}; /* as enum tt_proto */
    static const char *const operators[] = {"nop", "sum", "prod", "max", "min", NULL};
    struct msccl_file *file = reader->file;
    int proto = 0, op = 0; /* which is the caller's */
    file->line = line_of(reader);
    if (reader->values[ALGO_NAME]) tt_msccl_take_name(file, reader->values[ALGO_NAME]);
    if (!take_word(reader, ALGO_PROTO, protos, &proto)) return false;
    file->proto = (enum tt_proto)proto;
    if (reader->values[ALGO_REDOP] && !take_word(reader, ALGO_REDOP, operators, &op)) return false;
    return take_int(reader, ALGO_NCHANNELS, 1, TT_MAX_CHANNELS, &file->nchannels) &&
           take_int(reader, ALGO_NCHUNKS, 1, MSCCL_CHUNKS, &file->nchunks) &&
           take_int(reader, ALGO_NGPUS, 1, UINT16_MAX, &file->nranks) && read_collective(reader) &&
           read_use(reader);
}

static bool read_gpu(struct reader *reader)
{
    struct msccl_file *file = reader->file;
    struct msccl_rank *rank = tt_msccl_append(&file->ranks, sizeof(*rank));
    if (!rank) return tt_msccl_no_memory(file);
    rank->line = line_of(reader);
    rank->first = rank->end = (uint32_t)file->blocks.count;
    return take_int(reader, 0, 0, file->nranks - 1, &rank->id) &&
           take_int(reader, 1, 0, MSCCL_CHUNKS, &rank->chunks[MSCCL_IN]) &&
           take_int(reader, 2, 0, MSCCL_CHUNKS, &rank->chunks[MSCCL_OUT]) &&
           take_int(reader, 3, 0, MSCCL_CHUNKS, &rank->chunks[MSCCL_SCRATCH]);
}

/* NULL: refused. */
static struct msccl_block *add_block(struct reader *reader)
{
    struct msccl_file *file = reader->file;
    struct msccl_rank *rank = msccl_rank(file, (int)file->ranks.count - 1);
    struct msccl_block *block = tt_msccl_append(&file->blocks, sizeof(*block));
    if (!block) {
        (void)tt_msccl_no_memory(file);
        return NULL;
    }
    if (file->blocks.count > MSCCL_BLOCKS) {
        (void)tt_msccl_refuse(file, line_of(reader), "more than %d blocks", (int)MSCCL_BLOCKS);
        return NULL;
    }
    block->line = line_of(reader);
    block->rank = rank->id;
    block->first = block->end = (uint32_t)file->steps.count;
    rank->end++;
    return block;
}

static bool read_block(struct reader *reader)
{
    const struct msccl_file *file = reader->file;
    struct msccl_block *block = add_block(reader);
    if (!block) return false;
    return take_int(reader, 0, 0, MSCCL_BLOCKS, &block->id) &&
           take_int(reader, 1, -1, file->nranks - 1, &block->send) &&
           take_int(reader, 2, -1, file->nranks - 1, &block->recv) &&
           take_int(reader, 3, 0, file->nchannels - 1, &block->channel);
}

enum {
    STEP_S,
    STEP_TYPE,
    STEP_SRCBUF,
    STEP_SRCOFF,
    STEP_DSTBUF,
    STEP_DSTOFF,
    STEP_CNT,
    STEP_DEPID,
    STEP_DEPS,
    STEP_HASDEP,
};

static bool read_step_numbers(struct reader *reader, struct msccl_step *step)
{
    bool has_dep = false;
    bool read = take_int(reader, STEP_SRCOFF, -1, MSCCL_CHUNKS, &step->src) &&
                take_int(reader, STEP_DSTOFF, -1, MSCCL_CHUNKS, &step->dst) &&
                take_int(reader, STEP_CNT, 0, MSCCL_CHUNKS, &step->cnt) &&
                take_int(reader, STEP_DEPID, -1, MSCCL_BLOCKS, &step->dep_block) &&
                take_int(reader, STEP_DEPS, -1, MSCCL_STEPS, &step->dep_step) &&
                take_flag(reader, STEP_HASDEP, &has_dep);
    step->has_dep = has_dep;
    return read;
}

static bool read_step(struct reader *reader)
{
    static const char *const buffers[] = {"i", "o", "s", NULL}; /* as enum msccl_buffer */
    const char *types[MSCCL_TYPES_ + 1] = {NULL};
    struct msccl_file *file = reader->file;
    struct msccl_block *block = msccl_block(file, (uint32_t)file->blocks.count - 1);
    struct msccl_step *step = tt_msccl_append(&file->steps, sizeof(*step));
    int s = 0, type = 0, src = 0, dst = 0;
    if (!step) return tt_msccl_no_memory(file);
    if (file->steps.count > MSCCL_STEPS)
        return tt_msccl_refuse(file, line_of(reader), "more than %d steps", (int)MSCCL_STEPS);
    for (int k = 0; k < MSCCL_TYPES_; k++)
        types[k] = tt_msccl_kinds[k].name;
    step->line = line_of(reader);
    if (!take_int(reader, STEP_S, 0, MSCCL_STEPS, &s) ||
        !take_word(reader, STEP_TYPE, types, &type) ||
        !take_word(reader, STEP_SRCBUF, buffers, &src) ||
        !take_word(reader, STEP_DSTBUF, buffers, &dst) || !read_step_numbers(reader, step))
        return false;
    step->type = (uint8_t)type;
    step->src_buffer = (uint8_t)src;
    step->dst_buffer = (uint8_t)dst;
    if ((uint32_t)s != block->end - block->first) {
        return tt_msccl_refuse(file, step->line, "step %d comes where step %u is due", s,
                               (unsigned int)(block->end - block->first));
    }
    block->end++;
    return true;
}

/* ---- copies of a gpu's own input, as files of SCCL and TACCL have them beside the blocks ---- */

enum { COPIES = -1 }; /* number of a block that holds them, until the gpu's others are counted */

static bool read_copy(struct reader *reader)
{
    struct msccl_file *file = reader->file;
    const struct msccl_rank *rank = msccl_rank(file, (int)file->ranks.count - 1);
    uint32_t last = (uint32_t)file->blocks.count - 1; /* looked at where the gpu has one */
    bool more = rank->end > rank->first && msccl_block(file, last)->id == COPIES;
    struct msccl_block *block = more ? msccl_block(file, last) : add_block(reader);
    struct msccl_step *step = block ? tt_msccl_append(&file->steps, sizeof(*step)) : NULL;
    if (!step) return block && tt_msccl_no_memory(file);
    if (file->steps.count > MSCCL_STEPS)
        return tt_msccl_refuse(file, line_of(reader), "more than %d steps", (int)MSCCL_STEPS);
    block->id = COPIES;
    block->send = block->recv = -1;
    block->end++;
    *step = (struct msccl_step){.line = line_of(reader),
                                .type = MSCCL_CPY,
                                .src_buffer = MSCCL_IN,
                                .dst_buffer = MSCCL_OUT,
                                .cnt = 1,
                                .dep_block = -1,
                                .dep_step = -1};
    return take_int(reader, 0, 0, MSCCL_CHUNKS, &step->src) &&
           take_int(reader, 1, 0, MSCCL_CHUNKS, &step->dst);
}

/* Blocks of copies come behind the others, whose numbers the file says. */
static void number_copies(struct msccl_file *file)
{
    const struct msccl_rank *rank = msccl_rank(file, (int)file->ranks.count - 1);
    int next = 0;
    for (uint32_t b = rank->first; b < rank->end; b++)
        next += msccl_block(file, b)->id != COPIES;
    for (uint32_t b = rank->first; b < rank->end; b++) {
        struct msccl_block *block = msccl_block(file, b);
        if (block->id == COPIES) block->id = next++;
    }
}

/* ---- the document ---- */

static const struct attribute gpu_attributes[] = {
    {"id", false}, {"i_chunks", false}, {"o_chunks", false}, {"s_chunks", false}, {NULL, true}};
static const struct attribute block_attributes[] = {
    {"id", false}, {"send", false}, {"recv", false}, {"chan", false}, {NULL, true}};
static const struct attribute copy_attributes[] = {
    {"i_off", false}, {"o_off", false}, {NULL, true}};
static const struct attribute step_attributes[] = {
    {"s", false},      {"type", false},   {"srcbuf", false}, {"srcoff", false},
    {"dstbuf", false}, {"dstoff", false}, {"cnt", false},    {"depid", false},
    {"deps", false},   {"hasdep", false}, {NULL, true}};

struct level { /* elements at that depth */
    const char *element;
    const struct attribute *attributes;
    bool (*read)(struct reader *reader);
};
static const struct level copy_level = {"copy", copy_attributes, read_copy};
static const struct level levels[DEPTH] = {
    {"algo", algo_attributes, read_algo},
    {"gpu", gpu_attributes, read_gpu},
    {"tb", block_attributes, read_block},
    {"step", step_attributes, read_step},
};

static void XMLCALL on_start(void *arg, const char *element, const char **attrs)
{
    struct reader *reader = arg;
    int depth = reader->depth++;
    bool copies = depth == 2 && strcmp(copy_level.element, element) == 0;
    const struct level *level = copies ? &copy_level : &levels[depth < DEPTH ? depth : 0];
    bool read = depth < DEPTH && !reader->in_copy && strcmp(level->element, element) == 0;
    reader->in_copy = reader->in_copy || copies;
    if (!read && depth == 0) {
        tt_msccl_refuse(reader->file, line_of(reader),
                        "the document is <%.40s>: an algorithm of MSCCL is <algo>", element);
    } else if (!read) {
        tt_msccl_refuse(reader->file, line_of(reader), "<%s> holds no <%.40s>",
                        reader->in_copy ? copy_level.element : levels[depth - 1].element, element);
    } else {
        reader->element = level->element;
        read = take_attributes(reader, attrs, level->attributes) && level->read(reader);
    }
    if (!read) (void)XML_StopParser(reader->parser, XML_FALSE);
}

static void XMLCALL on_end(void *arg, const char *element)
{
    struct reader *reader = arg;
    (void)element;
    reader->depth--;
    if (reader->depth == 2) reader->in_copy = false;
    if (reader->depth == 1 && !reader->file->rc) number_copies(reader->file);
}

static void XMLCALL on_text(void *arg, const char *text, int bytes)
{
    struct reader *reader = arg;
    for (int k = 0; k < bytes; k++) {
        if (strchr(" \t\r\n", text[k])) continue;
        tt_msccl_refuse(reader->file, line_of(reader), "text between elements");
        (void)XML_StopParser(reader->parser, XML_FALSE);
        return;
    }
}

static void XMLCALL on_doctype(void *arg, const char *doctype, const char *sysid, const char *pubid,
                               int has_internal)
{
    struct reader *reader = arg;
    (void)doctype;
    (void)sysid;
    (void)pubid;
    (void)has_internal;
    tt_msccl_refuse(reader->file, line_of(reader), "DOCTYPE is not allowed");
    (void)XML_StopParser(reader->parser, XML_FALSE);
}

static bool not_xml(const struct reader *reader)
{
    enum XML_Error error = XML_GetErrorCode(reader->parser);
    if (error == XML_ERROR_NO_MEMORY) return tt_msccl_no_memory(reader->file);
    bool cut = error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN;
    if (cut && reader->depth > 0) {
        return tt_msccl_refuse(reader->file, line_of(reader), "the file ends inside of <%s>",
                               reader->in_copy ? copy_level.element
                                               : levels[reader->depth - 1].element);
    }
    return tt_msccl_refuse(reader->file, line_of(reader), "not XML: %s", XML_ErrorString(error));
}

bool tt_msccl_read(struct msccl_file *file, const char *text, size_t text_bytes)
{
    struct reader reader = {.file = file};
    if (text_bytes > MSCCL_FILE_BYTES) {
        return tt_msccl_refuse(file, 1, "%zu bytes are too many (limit %d)", text_bytes,
                               (int)MSCCL_FILE_BYTES);
    }
    reader.parser = XML_ParserCreate(NULL);
    if (!reader.parser) return tt_msccl_no_memory(file);
    XML_SetUserData(reader.parser, &reader);
    XML_SetElementHandler(reader.parser, on_start, on_end);
    XML_SetCharacterDataHandler(reader.parser, on_text);
    XML_SetStartDoctypeDeclHandler(reader.parser, on_doctype);
    enum XML_Status status = XML_Parse(reader.parser, text, (int)text_bytes, XML_TRUE);
    bool read = status == XML_STATUS_OK && !file->rc;
    if (!read && !file->rc) read = not_xml(&reader);
    XML_ParserFree(reader.parser);
    return read;
}
