/* The client's side of NVTX's injection (version 3 of the interface). A tool's library exports
 * InitializeInjectionNvtx2. It is called with one function, which hands out tables by number; the
 * table of callbacks hands out, by number of a module, an array with the addresses of function
 * pointers, and the tool writes its functions there. Of all these functions three are used: create
 * a domain, push and pop a range. The others are places that no tool reads. */
#include "plugin/profiler/nvtx.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "plugin/process.h"
#include "plugin/profiler/nvtx_payload.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the interface ---- */

enum {
    VERSION = 3,
    TABLE_CALLBACKS = 1,
    TABLE_VERSION = 3,
    MODULE_DOMAINS = 5, /* "core 2" */
    MODULE_COUNT = 7,
    /* of that module */
    SLOT_PUSH = 4,
    SLOT_POP = 5,
    SLOT_CREATE = 12,
    SLOT_MOST = 16, /* of any module */
    PAYLOAD_NONE = 0,
    PAYLOAD_INT64 = 2,
    PAYLOAD_EXTENSION = (int32_t)0xdfbd0009,
    MESSAGE_ASCII = 1,
};

struct tt_nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, npayloads;
    union {
        int64_t payload;
        const struct tt_nvtx_payload *payloads; /* PAYLOAD_EXTENSION */
    };
    int32_t message_type;
    const char *message;
};
_Static_assert(sizeof(struct tt_nvtx_attributes) == 48 &&
                   offsetof(struct tt_nvtx_attributes, payload) == 24 &&
                   offsetof(struct tt_nvtx_attributes, message) == 40,
               "as tools read it");

typedef void (*slot_function)(void);

struct callbacks_table {
    size_t bytes;
    int (*module_slots)(int module, slot_function ***slots_out, unsigned int *count_out);
};
struct version_table {
    size_t bytes;
    uint32_t version, reserved;
    void (*set_injection_version)(uint32_t version);
};

/* Slots of each module, 0 is no slot: marks and ranges; names for the driver, OpenCL, the runtime;
 * domains; synchronisation. */
static const unsigned int slot_counts[MODULE_COUNT] = {0, 16, 9, 16, 7, 16, 7};

struct tt_nvtx_slots {
    slot_function functions[MODULE_COUNT][SLOT_MOST];
    slot_function *addresses[MODULE_COUNT][SLOT_MOST + 1]; /* of them; ends with NULL */
};

_Atomic bool *const tt_nvtx_flag = &tt_plugins.nvtx.on;

static int module_slots(int module, slot_function ***slots_out, unsigned int *count_out)
{
    if (module <= 0 || module >= MODULE_COUNT) return 0;
    struct tt_nvtx_slots *slots = tt_plugins.nvtx.slots;
    for (unsigned int k = 1; k < slot_counts[module]; k++)
        slots->addresses[module][k] = &slots->functions[module][k];
    if (slots_out) *slots_out = slots->addresses[module];
    if (count_out) *count_out = slot_counts[module];
    return 1;
}

static void ignore_version(uint32_t version)
{
    (void)version;
}

static const void *export_table(uint32_t number)
{
    static const struct callbacks_table callbacks = {sizeof(callbacks), module_slots};
    static const struct version_table version = {sizeof(version), VERSION, 0, ignore_version};
    if (number == TABLE_CALLBACKS) return &callbacks;
    return number == TABLE_VERSION ? &version : NULL;
}

/* ---- loading ---- */

static slot_function function_of(int slot)
{
    return tt_plugins.nvtx.slots->functions[MODULE_DOMAINS][slot];
}

/* The library stays for good: its functions may run in any thread, to the end of the process. */
static void load(void)
{
    const char *path = tt_param_str("NVTX_INJECTION64_PATH");
    if (!path || !*path || tt_param_bool("NCCL_NVTX_DISABLE")) return;
    tt_plugins.nvtx.slots = tt_calloc(1, sizeof(*tt_plugins.nvtx.slots));
    if (!tt_plugins.nvtx.slots) {
        tt_info(TT_LOG_INIT, "NVTX: out of memory");
        return;
    }
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        tt_info(TT_LOG_INIT, "NVTX: %s", dlerror());
        return;
    }
    void *symbol = dlsym(library, "InitializeInjectionNvtx2");
    int (*initialize)(const void *(*tables)(uint32_t)) = NULL;
    memcpy(&initialize, &symbol, sizeof(initialize));
    if (!initialize || !initialize(export_table)) {
        tt_info(TT_LOG_INIT, "NVTX: %s %s", path,
                initialize ? "does not want to be used" : "has no InitializeInjectionNvtx2");
        return;
    }
    void *(*create)(const char *) = (void *(*)(const char *))function_of(SLOT_CREATE);
    tt_plugins.nvtx.push =
        (int (*)(void *, const struct tt_nvtx_attributes *))function_of(SLOT_PUSH);
    tt_plugins.nvtx.pop = (int (*)(void *))function_of(SLOT_POP);
    if (create) tt_plugins.nvtx.domain = create("NCCL");
    tt_plugins.nvtx.shows_fields =
        tt_nvtx_payload_load(library, tt_plugins.nvtx.domain, &tt_plugins.nvtx.pop_payload);
    bool on = tt_plugins.nvtx.push && tt_plugins.nvtx.pop;
    atomic_store_explicit(&tt_plugins.nvtx.on, on, memory_order_release);
    tt_info(TT_LOG_INIT, "NVTX: %s, ranges are %s", path, on ? "on" : "not wanted");
}

void tt_nvtx_load(void)
{
    pthread_once(&tt_plugins.nvtx.once, load);
}

/* ---- ranges ---- */

/* Takes the attributes with a payload. */
static struct tt_nvtx_range push(const char *name, struct tt_nvtx_attributes *attributes)
{
    char text[64]; /* the tool copies it */
    snprintf(text, sizeof(text), "nccl%s", name);
    attributes->version = VERSION;
    attributes->size = sizeof(*attributes);
    attributes->message_type = MESSAGE_ASCII;
    attributes->message = text;
    tt_plugins.nvtx.push(tt_plugins.nvtx.domain, attributes);
    return (struct tt_nvtx_range){true, NULL};
}

struct tt_nvtx_range tt_nvtx_open(const char *name, int64_t number)
{
    struct tt_nvtx_attributes attributes = {.payload_type =
                                                number < 0 ? PAYLOAD_NONE : PAYLOAD_INT64,
                                            .payload = number < 0 ? 0 : number};
    return push(name, &attributes);
}

struct tt_nvtx_range tt_nvtx_open_call(const char *name, const struct tt_nvtx_call *call)
{
    if (!tt_plugins.nvtx.shows_fields) return tt_nvtx_open(name, (int64_t)call->bytes);
    const struct tt_nvtx_payload payload = tt_nvtx_payload_of(call);
    struct tt_nvtx_attributes attributes = {
        .payload_type = PAYLOAD_EXTENSION, .npayloads = 1, .payloads = &payload};
    return push(name, &attributes);
}

void tt_nvtx_end(struct tt_nvtx_range *range)
{
    if (!range->open) return;
    if (range->life && tt_plugins.nvtx.pop_payload) {
        const struct tt_nvtx_payload payload = tt_nvtx_payload_of_life(range->life);
        tt_plugins.nvtx.pop_payload(tt_plugins.nvtx.domain, &payload, 1);
    } else {
        tt_plugins.nvtx.pop(tt_plugins.nvtx.domain);
    }
}
