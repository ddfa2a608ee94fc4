/* The client's side of NVTX's payload extension (module 2). A tool's library exports
 * InitializeInjectionNvtxExtension, which gets a list of places for its functions. Of these three
 * are used: it is told once what fields a kind of call has, and that an operator is a word. From
 * then on a range has the fields themselves, those of an operation when it begins, those of a
 * communicator's begin or end when it ends. They have NCCL's names. */
#include "plugin/profiler/nvtx_payload.h"

#include "base/mem.h"
#include "nccl.h"

#include <dlfcn.h>
#include <string.h>

/* ---- the interface ---- */

enum {
    VERSION = 3,
    MODULE_PAYLOAD = 2,
    COMPATIBLE_WITH = 0x0103,
    SLOTS = 63,
    SLOT_SCHEMA = 0,
    SLOT_ENUM = 1,
    SLOT_POP = 4,
    TYPE_INT32 = 15,
    TYPE_UINT64 = 18,
    TYPE_SIZE = 22,
    TYPE_COUNT = 28, /* of those whose sizes a tool is told */
    SCHEMA_STATIC = 1,
    ID_FIRST = 1 << 24, /* of schemas that the client numbers */
    ID_OPERATOR = ID_FIRST + 64,
};

struct segment {
    size_t number, count;
    intptr_t *slots;
};
struct module {
    uint16_t version, size, number, compatible;
    size_t nsegments;
    struct segment *segments;
    intptr_t (*export_function)(uint32_t number);
    const void *types;
};
struct type_size {
    uint16_t size, align;
};
struct schema_entry {
    uint64_t flags, type;
    const char *name, *description;
    uint64_t detail, offset;
    const void *semantics, *reserved;
};
struct schema {
    uint64_t fields; /* bits of the members that count, by their number */
    const char *name;
    uint64_t type, flags;
    const struct schema_entry *entries;
    size_t nentries, bytes, align;
    uint64_t id;
    const void *extension;
};
struct enum_entry {
    const char *name;
    uint64_t value;
    int8_t is_flag;
};
struct enum_type {
    uint64_t fields;
    const char *name;
    const struct enum_entry *entries;
    size_t nentries, bytes;
    uint64_t id;
    const void *extension;
};
_Static_assert(sizeof(struct module) == 40 && sizeof(struct schema_entry) == 64 &&
                   offsetof(struct schema_entry, offset) == 40 && sizeof(struct schema) == 80 &&
                   sizeof(struct enum_entry) == 24 && sizeof(struct enum_type) == 56 &&
                   sizeof(struct tt_nvtx_payload) == 24,
               "as tools read it");

#define TYPE(type)                                                                                 \
    {                                                                                              \
        sizeof(type), _Alignof(type)                                                               \
    }
static const struct type_size type_sizes[TYPE_COUNT] = {
    {TYPE_COUNT, sizeof(struct type_size)},
    TYPE(char),
    TYPE(unsigned char),
    TYPE(short),
    TYPE(unsigned short),
    TYPE(int),
    TYPE(unsigned int),
    TYPE(long),
    TYPE(unsigned long),
    TYPE(long long),
    TYPE(unsigned long long),
    TYPE(int8_t),
    TYPE(uint8_t),
    TYPE(int16_t),
    TYPE(uint16_t),
    TYPE(int32_t),
    TYPE(uint32_t),
    TYPE(int64_t),
    TYPE(uint64_t),
    TYPE(float),
    TYPE(double),
    TYPE(long double),
    TYPE(size_t),
    TYPE(void *),
    TYPE(wchar_t),
};

/* ---- the fields of calls and lives ---- */

#define FIELD(type, title, at)                                                                     \
    {                                                                                              \
        0, type, title, NULL, 0, at, NULL, NULL                                                    \
    }
#define CALL(type, title, member) FIELD(type, title, offsetof(struct tt_nvtx_call, member))
#define COMM CALL(TYPE_UINT64, "NCCL communicator ID", comm)
#define BYTES CALL(TYPE_SIZE, "Message size [bytes]", bytes)
#define ROOT CALL(TYPE_INT32, "Root", root)
#define OPERATOR CALL(ID_OPERATOR, "Reduction operation", op)

static const struct schema_entry fields[TT_NVTX_KIND_COUNT_][4] = {
    [TT_NVTX_MOVE] = {COMM, BYTES},
    [TT_NVTX_REDUCE] = {COMM, BYTES, OPERATOR},
    [TT_NVTX_ROOTED] = {COMM, BYTES, ROOT},
    [TT_NVTX_ROOTED_REDUCE] = {COMM, BYTES, ROOT, OPERATOR},
    [TT_NVTX_MESSAGE] = {COMM, BYTES, CALL(TYPE_INT32, "Peer rank", root)},
};

#define LIFE(type, title, member) FIELD(type, title, offsetof(struct tt_nvtx_life, member))
#define LIFE_COMM LIFE(TYPE_UINT64, "NCCL communicator ID", comm)
#define NRANKS LIFE(TYPE_INT32, "No. of ranks", nranks)
#define RANK LIFE(TYPE_INT32, "Rank", rank)
#define DEVICE LIFE(TYPE_INT32, "CUDA device", device)

static const struct schema_entry life_fields[TT_NVTX_LIFE_COUNT_][7] = {
    [TT_NVTX_INIT_ALL] = {LIFE_COMM, LIFE(TYPE_INT32, "No. of devices", nranks)},
    [TT_NVTX_INIT] = {LIFE_COMM, NRANKS, RANK, DEVICE},
    [TT_NVTX_SPLIT] = {LIFE_COMM, LIFE(TYPE_UINT64, "Parent NCCL communicator ID", parent), NRANKS,
                       RANK, DEVICE, LIFE(TYPE_INT32, "Color", color),
                       LIFE(TYPE_INT32, "Key", key)},
    [TT_NVTX_SHRINK] = {LIFE_COMM, NRANKS, RANK, DEVICE,
                        LIFE(TYPE_INT32, "num_exclude", nexcluded)},
    [TT_NVTX_FINALIZE] = {LIFE_COMM},
};
static const struct enum_entry operators[] = {{"Sum", ncclSum, 0},
                                              {"Product", ncclProd, 0},
                                              {"Max", ncclMax, 0},
                                              {"Min", ncclMin, 0},
                                              {"Avg", ncclAvg, 0}};

static uint64_t id_of(enum tt_nvtx_kind kind)
{
    return ID_FIRST + 1 + (uint64_t)kind;
}

static uint64_t id_of_life(enum tt_nvtx_life_kind kind)
{
    return ID_FIRST + 1 + TT_NVTX_KIND_COUNT_ + (uint64_t)kind;
}

struct fields { /* of one payload */
    const struct schema_entry *entries;
    size_t most, bytes;
    uint64_t id;
};

static void add_schema(const intptr_t *slots, void *domain, struct fields own)
{
    enum { SCHEMA_FIELDS = 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 8 };
    uint64_t (*add)(void *, const struct schema *) =
        (uint64_t(*)(void *, const struct schema *))slots[SLOT_SCHEMA];
    struct schema schema = {.fields = SCHEMA_FIELDS,
                            .type = SCHEMA_STATIC,
                            .entries = own.entries,
                            .bytes = own.bytes,
                            .id = own.id};
    while (schema.nentries < own.most && own.entries[schema.nentries].name)
        schema.nentries++;
    (void)add(domain, &schema);
}

static void register_fields(const intptr_t *slots, void *domain)
{
    enum { ENUM_FIELDS = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 };
    static const struct enum_type words = {
        ENUM_FIELDS, NULL, operators, TT_LEN(operators), sizeof(ncclRedOp_t), ID_OPERATOR, NULL};
    uint64_t (*add_enum)(void *, const struct enum_type *) =
        (uint64_t(*)(void *, const struct enum_type *))slots[SLOT_ENUM];
    if (add_enum) (void)add_enum(domain, &words);
    for (int kind = 0; kind < TT_NVTX_KIND_COUNT_; kind++) {
        add_schema(slots, domain,
                   (struct fields){fields[kind], TT_LEN(fields[kind]), sizeof(struct tt_nvtx_call),
                                   id_of((enum tt_nvtx_kind)kind)});
    }
    for (int kind = 0; kind < TT_NVTX_LIFE_COUNT_; kind++) {
        add_schema(slots, domain,
                   (struct fields){life_fields[kind], TT_LEN(life_fields[kind]),
                                   sizeof(struct tt_nvtx_life),
                                   id_of_life((enum tt_nvtx_life_kind)kind)});
    }
}

bool tt_nvtx_payload_load(void *library, void *domain, tt_nvtx_pop_payload *pop_out)
{
    intptr_t slots[SLOTS] = {0};
    struct segment segment = {0, SLOTS, slots};
    struct module module = {.version = VERSION,
                            .size = sizeof(module),
                            .number = MODULE_PAYLOAD,
                            .compatible = COMPATIBLE_WITH,
                            .nsegments = 1,
                            .segments = &segment,
                            .types = type_sizes};
    void *symbol = dlsym(library, "InitializeInjectionNvtxExtension");
    int (*initialize)(struct module *) = NULL;
    memcpy(&initialize, &symbol, sizeof(initialize));
    if (!initialize || !initialize(&module) || !slots[SLOT_SCHEMA]) return false;
    register_fields(slots, domain);
    *pop_out = (tt_nvtx_pop_payload)slots[SLOT_POP];
    return true;
}

struct tt_nvtx_payload tt_nvtx_payload_of(const struct tt_nvtx_call *call)
{
    return (struct tt_nvtx_payload){id_of(call->kind), sizeof(*call), call};
}

struct tt_nvtx_payload tt_nvtx_payload_of_life(const struct tt_nvtx_life *life)
{
    return (struct tt_nvtx_payload){id_of_life(life->kind), sizeof(*life), life};
}
