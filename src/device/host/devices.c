/* Which devices there are: TUTTI_DEVICES or a machine file's gpu elements, then
 * CUDA_VISIBLE_DEVICES. Bus id and UUID stay those of the machine, whatever is visible. */
#include "host.h"
#include "state.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"

#include <expat.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct machine {
    struct tt_device_card cards[HOST_MAX_DEVICES];
    int ncards;
    int visible[HOST_MAX_DEVICES]; /* indices into cards */
    int nvisible;
};

static struct machine machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

enum { FILE_MAX_BYTES = 16 << 20, DEFAULT_SMS = 132 };

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

/* Stable on one machine: from its id and the bus id. */
static void make_uuid(struct tt_device_card *card)
{
    char id[64] = "tutti";
    uint64_t hash[2] = {0x7475747469ull, 0x686f7374ull};
    FILE *file = fopen("/etc/machine-id", "re");
    if (file && !fgets(id, sizeof(id), file)) id[0] = 0;
    if (file) fclose(file);
    for (const char *c = id; *c; c++) {
        hash[0] = mix(hash[0] ^ (unsigned char)*c);
    }
    for (const char *c = card->bus_id; *c; c++) {
        hash[1] = mix(hash[1] ^ (unsigned char)*c);
    }
    hash[1] = mix(hash[0] + hash[1]);
    memcpy(card->uuid, hash, sizeof(card->uuid));
}

static struct tt_device_card *add_card(const char *bus_id, const char *name, int cc)
{
    if (machine.ncards == HOST_MAX_DEVICES) return NULL;
    struct tt_device_card *card = &machine.cards[machine.ncards];
    snprintf(card->name, sizeof(card->name), "%s", name);
    snprintf(card->bus_id, sizeof(card->bus_id), "%s", bus_id);
    for (char *c = card->bus_id; *c; c++) {
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    }
    card->nvml_index = machine.ncards++;
    card->cc_major = cc / 10;
    card->cc_minor = cc % 10;
    card->sms = DEFAULT_SMS;
    make_uuid(card);
    return card;
}

/* ---- machine file ---- */

struct reading {
    XML_Parser parser;
    char bus_id[256][16]; /* of the enclosing pci elements */
    int depth;
};

static const char *attribute(const char **attrs, const char *name)
{
    for (; attrs && attrs[0]; attrs += 2) {
        if (!strcmp(attrs[0], name)) return attrs[1];
    }
    return NULL;
}

static void on_start(void *arg, const char *element, const char **attrs)
{
    struct reading *reading = arg;
    if (reading->depth >= 255) {
        XML_StopParser(reading->parser, XML_FALSE);
        return;
    }
    int depth = ++reading->depth;
    memcpy(reading->bus_id[depth], reading->bus_id[depth - 1], sizeof(reading->bus_id[depth]));
    const char *bus = attribute(attrs, "busid");
    if (!strcmp(element, "pci") && bus) {
        snprintf(reading->bus_id[depth], sizeof(reading->bus_id[depth]), "%s", bus);
    }
    if (strcmp(element, "gpu")) return;
    const char *sm = attribute(attrs, "sm");
    int cc = sm ? atoi(sm) : 90;
    add_card(reading->bus_id[depth], "Tutti Host Device", cc > 0 && cc < 1000 ? cc : 90);
}

static void on_end(void *arg, const char *element)
{
    struct reading *reading = arg;
    (void)element;
    reading->depth--;
}

/* Entities are how a small file becomes a large one; machine files need none. */
static void on_entity(void *arg, const XML_Char *name, int parameter, const XML_Char *value,
                      int len, const XML_Char *base, const XML_Char *system,
                      const XML_Char *public_id, const XML_Char *notation)
{
    struct reading *reading = arg;
    (void)name, (void)parameter, (void)value, (void)len, (void)base, (void)system, (void)public_id,
        (void)notation;
    XML_StopParser(reading->parser, XML_FALSE);
}

static bool parse_file(const char *path, FILE *file)
{
    struct reading *reading = tt_calloc(1, sizeof(*reading));
    XML_Parser parser = XML_ParserCreate(NULL);
    char block[65536];
    size_t total = 0;
    bool good = reading && parser;
    if (good) {
        reading->parser = parser;
        XML_SetUserData(parser, reading);
        XML_SetElementHandler(parser, on_start, on_end);
        XML_SetEntityDeclHandler(parser, on_entity);
    }
    while (good) {
        size_t n = fread(block, 1, sizeof(block), file);
        total += n;
        good = total <= FILE_MAX_BYTES && XML_Parse(parser, block, (int)n, n == 0) == XML_STATUS_OK;
        if (n == 0) break;
    }
    if (!good && parser) {
        tt_warn("NCCL_TOPO_FILE %s, line %lu: %s; the default devices are used", path,
                (unsigned long)XML_GetCurrentLineNumber(parser),
                XML_ErrorString(XML_GetErrorCode(parser)));
    }
    if (parser) XML_ParserFree(parser);
    free(reading);
    return good && machine.ncards > 0;
}

static bool read_machine_file(void)
{
    const char *path = tt_param_str("NCCL_TOPO_FILE");
    if (!path || !*path || tt_param_is_set("TUTTI_DEVICES")) return false;
    FILE *file = fopen(path, "re");
    if (!file) {
        tt_info(TT_LOG_INIT | TT_LOG_GRAPH, "could not open machine file %s: %m", path);
        return false;
    }
    bool good = parse_file(path, file);
    if (!good) machine.ncards = 0;
    fclose(file);
    return good;
}

/* ---- visibility ---- */

static bool uuid_matches(const struct tt_device_card *card, const char *text, size_t len)
{
    char full[48];
    const unsigned char *u = card->uuid;
    snprintf(full, sizeof(full),
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    return len > 4 && len <= strlen(full) && !strncasecmp(full, text, len);
}

static int find_visible(const char *text, size_t len)
{
    if (len > 4 && !strncasecmp(text, "GPU-", 4)) {
        for (int i = 0; i < machine.ncards; i++) {
            if (uuid_matches(&machine.cards[i], text, len)) return i;
        }
        return -1;
    }
    char *end = NULL;
    long index = strtol(text, &end, 10);
    return end == text + len && end != text && index >= 0 && index < machine.ncards ? (int)index
                                                                                    : -1;
}

/* An entry that names no device, or one for the second time, ends the list, as CUDA has it. */
static void choose_visible(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    if (!text) {
        for (int i = 0; i < machine.ncards; i++) {
            machine.visible[machine.nvisible++] = i;
        }
        return;
    }
    while (*text) {
        size_t len = strcspn(text, ",");
        while (len && *text == ' ') {
            text++;
            len--;
        }
        int index = find_visible(text, len);
        bool again = false;
        for (int i = 0; i < machine.nvisible; i++) {
            again = again || machine.visible[i] == index;
        }
        if (index < 0 || again) break;
        machine.visible[machine.nvisible++] = index;
        text += len;
        if (*text == ',') text++;
    }
}

static size_t device_memory(void)
{
    size_t most = (size_t)64 << 30;
    long pages = sysconf(_SC_PHYS_PAGES);
    size_t physical = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
    size_t own = physical / (size_t)(machine.ncards ? machine.ncards : 1);
    if (tt_param_is_set("TUTTI_DEVICE_MEMORY")) own = (size_t)tt_param_int("TUTTI_DEVICE_MEMORY");
    own = own < most ? own : most;
    return tt_max_size(own / (2 << 20) * (2 << 20), 2 << 20);
}

static void discover(void)
{
    if (!read_machine_file()) {
        int64_t count = tt_param_int("TUTTI_DEVICES");
        for (int64_t i = 0; i < count && i < HOST_MAX_DEVICES; i++) {
            char bus[16];
            snprintf(bus, sizeof(bus), "%04x:%02x:00.0", (unsigned)(i / 200),
                     (unsigned)(i % 200 + 1));
            add_card(bus, "Tutti Host Device", 90);
        }
    }
    choose_visible();
    for (int i = 0; i < machine.ncards; i++) {
        machine.cards[i].memory_bytes = device_memory();
    }
}

int host_device_count(void)
{
    pthread_once(&machine_once, discover);
    return machine.nvisible;
}

const struct tt_device_card *host_device_card(int device)
{
    if (device < 0 || device >= host_device_count()) return NULL;
    return &machine.cards[machine.visible[device]];
}

int tuttiHostDeviceCount(void)
{
    return host_device_count();
}

int tuttiHostDeviceCard(int device, struct tt_device_card *card)
{
    const struct tt_device_card *found = host_device_card(device);
    if (!found) return HOST_INVALID_DEVICE;
    *card = *found;
    return HOST_OK;
}

int tuttiHostCores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set)) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}
