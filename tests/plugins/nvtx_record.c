/* A tool that injects itself by NVTX, as strangers write them: what it hears goes into the file
 * NVTX_RECORD_FILE.<process>, a line each. NVTX_RECORD_FAIL: "init" declines, "push" wants no
 * ranges. With NVTX_RECORD_FIELDS it speaks the payload extension, and decodes what comes by what
 * was registered. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*function)(void);
struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, npayloads;
    int64_t payload;
    int32_t message_type;
    const char *message;
};
struct tables {
    size_t bytes;
    int (*slots)(int module, function ***slots_out, unsigned int *count_out);
};
enum { CORE2 = 5, CORE2_SLOTS = 16, PUSH = 4, POP = 5, CREATE = 12 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;

static void *create(const char *name)
{
    static char domain[64];
    snprintf(domain, sizeof(domain), "%s", name);
    fprintf(file, "create %s\n", name);
    return domain;
}

/* ---- the payload extension ---- */

struct module {
    uint16_t version, size, number, compatible;
    size_t nsegments;
    struct {
        size_t number, count;
        intptr_t *slots;
    } * segments;
    void *export_function;
    const uint16_t (*types)[2];
};
struct entry {
    uint64_t flags, type;
    const char *name, *description;
    uint64_t detail, offset;
    const void *semantics, *reserved;
};
struct schema {
    uint64_t fields;
    const char *name;
    uint64_t type, flags;
    const struct entry *entries;
    size_t nentries, bytes, align;
    uint64_t id;
    const void *extension;
};
struct word {
    const char *name;
    uint64_t value;
    int8_t is_flag;
};
struct words {
    uint64_t fields;
    const char *name;
    const struct word *entries;
    size_t nentries, bytes;
    uint64_t id;
    const void *extension;
};
struct payload {
    uint64_t schema;
    size_t bytes;
    const char *payload;
};
enum { SCHEMAS = 16, EXTENSION = (int32_t)0xdfbd0009 };
static struct schema schemas[SCHEMAS]; /* their entries stay the client's, as tools keep them */
static int nschemas;
static struct words words;

static uint64_t add_schema(void *domain, const struct schema *schema)
{
    if (!domain || schema->type != 1 || nschemas == SCHEMAS || schema->fields != 0x174) abort();
    schemas[nschemas++] = *schema;
    return schema->id;
}

static uint64_t add_words(void *domain, const struct words *own)
{
    if (!domain || own->fields != 0x3c) abort();
    words = *own;
    return own->id;
}

static void write_field(const struct entry *entry, const char *payload)
{
    uint64_t wide;
    int32_t narrow;
    memcpy(&wide, payload + entry->offset, sizeof(wide));
    memcpy(&narrow, payload + entry->offset, sizeof(narrow));
    if (entry->type == 18 || entry->type == 22)
        fprintf(file, "|%s=%llu", entry->name, (unsigned long long)wide);
    if (entry->type == 15) fprintf(file, "|%s=%d", entry->name, narrow);
    for (size_t k = 0; entry->type == words.id && k < words.nentries; k++) {
        if ((int32_t)words.entries[k].value == narrow)
            fprintf(file, "|%s=%s", entry->name, words.entries[k].name);
    }
}

static void write_fields(const char *name, const struct payload *own)
{
    int k = 0;
    while (k < nschemas && schemas[k].id != own->schema)
        k++;
    if (k == nschemas || own->bytes != schemas[k].bytes) abort();
    fprintf(file, "fields|%s", name);
    for (size_t i = 0; i < schemas[k].nentries; i++)
        write_field(&schemas[k].entries[i], own->payload);
    fputc('\n', file);
}

/* ---- ranges ---- */

static int push(void *domain, const struct attributes *own)
{
    pthread_mutex_lock(&lock);
    if (own->payload_type == EXTENSION && own->npayloads == 1)
        write_fields(own->message, (const struct payload *)(intptr_t)own->payload);
    fprintf(file, "push %d %s %s %d %lld %d %d\n", (int)gettid(), (const char *)domain,
            own->message_type == 1 ? own->message : "?", own->payload_type, (long long)own->payload,
            own->version, own->size);
    fflush(file);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int pop(void *domain)
{
    pthread_mutex_lock(&lock);
    fprintf(file, "pop %d %s\n", (int)gettid(), (const char *)domain);
    fflush(file);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* What a range is shown with when it ends. */
static int pop_fields(void *domain, const struct payload *own, size_t count)
{
    pthread_mutex_lock(&lock);
    if (count != 1) abort();
    write_fields("end", own);
    fprintf(file, "pop %d %s\n", (int)gettid(), (const char *)domain);
    fflush(file);
    pthread_mutex_unlock(&lock);
    return 0;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(struct module *module);

int InitializeInjectionNvtxExtension(struct module *module)
{
    if (!getenv("NVTX_RECORD_FIELDS")) return 0;
    if (module->version != 3 || module->size != sizeof(*module) || module->number != 2 ||
        module->nsegments != 1 || module->segments[0].count < 8 || module->types[0][0] != 28 ||
        module->types[0][1] != 4 || module->types[22][0] != sizeof(size_t))
        return 0;
    module->segments[0].slots[0] = (intptr_t)add_schema;
    module->segments[0].slots[1] = (intptr_t)add_words;
    module->segments[0].slots[4] = (intptr_t)pop_fields;
    return 1;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t number));

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t number))
{
    char path[4096];
    function **slots = NULL;
    unsigned int count = 0;
    const struct tables *tables = get_table(1);
    const char *fail = getenv("NVTX_RECORD_FAIL");
    snprintf(path, sizeof(path), "%s.%d", getenv("NVTX_RECORD_FILE"), (int)getpid());
    file = fopen(path, "w");
    if (!file || (fail && !strcmp(fail, "init"))) return 0;
    for (int module = 1; module < 7; module++) { /* a tool may ask for all of them */
        if (!tables->slots(module, &slots, &count) || slots[0] || slots[count]) return 0;
        for (unsigned int k = 1; k < count; k++)
            *slots[k] = NULL;
    }
    if (get_table(99) || tables->slots(0, &slots, &count) || tables->slots(7, &slots, &count))
        return 0;
    if (!tables->slots(CORE2, &slots, &count) || count != CORE2_SLOTS) return 0;
    if (!fail) *slots[PUSH] = (function)push;
    *slots[POP] = (function)pop;
    *slots[CREATE] = (function)create;
    return 1;
}
