/* Which devices there are: TUTTI_DEVICES or a machine file's gpu elements, then
 * CUDA_VISIBLE_DEVICES. Bus id and UUID stay those of the machine, whatever is visible. */
#include "state.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/system/file.h"
#include "device/host/check/block.h"
#include "device/host/host.h"

#include <expat.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 16 << 20, DEFAULT_SMS = 132, USUAL_CC = 90 };
static const char usual_name[] = "Tutti Host Device";

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

/* Stable on one machine: from its id and the bus id, which comes first: beginnings differ too. */
static void make_uuid(struct tt_device_info *info)
{
    char id[64] = "tutti";
    uint64_t hash[2] = {0x686f7374ull, 0x7475747469ull};
    FILE *file = fopen("/etc/machine-id", "re");
    if (file && !fgets(id, sizeof(id), file)) id[0] = 0;
    if (file) fclose(file);
    for (const char *c = id; *c; c++) {
        hash[1] = mix(hash[1] ^ (unsigned char)*c);
    }
    for (const char *c = info->bus_id; *c; c++) {
        hash[0] = mix(hash[0] ^ (unsigned char)*c);
    }
    hash[0] = mix(hash[0] + hash[1]);
    memcpy(info->uuid, hash, sizeof(info->uuid));
}

static struct tt_device_info *add_info(const char *bus_id, const char *name, int cc)
{
    struct tt_host_devices *machine = &tt_host.devices;
    if (machine->ninfos == TT_HOST_MAX_DEVICES) return NULL;
    struct tt_device_info *info = &machine->infos[machine->ninfos];
    snprintf(info->name, sizeof(info->name), "%s", name);
    snprintf(info->bus_id, sizeof(info->bus_id), "%s", bus_id);
    for (char *c = info->bus_id; *c; c++) {
        if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a');
    }
    info->nvml_index = machine->ninfos++;
    info->cc_major = cc / 10;
    info->cc_minor = cc % 10;
    info->sms = DEFAULT_SMS;
    make_uuid(info);
    return info;
}

/* ---- machine file ---- */

struct reading {
    XML_Parser parser;
    char bus_id[256][16]; /* of the enclosing pci elements */
    char block[65536];    /* not on the stack: the thread may have little */
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
    if (strcmp(element, "gpu") != 0) return;
    const char *sm = attribute(attrs, "sm");
    const char *name = attribute(attrs, "name");
    const char *dev = attribute(attrs, "dev");
    long cc = sm ? strtol(sm, NULL, 10) : USUAL_CC;
    long index = dev ? strtol(dev, NULL, 10) : -1;
    struct tt_device_info *info = add_info(reading->bus_id[depth], name ? name : usual_name,
                                           cc > 0 && cc < 1000 ? (int)cc : USUAL_CC);
    if (info && index >= 0 && index < TT_HOST_MAX_DEVICES) info->nvml_index = (int)index;
}

static void on_end(void *arg, const char *element)
{
    struct reading *reading = arg;
    (void)element;
    reading->depth--;
}

/* Entities are how a small file becomes a large one, and come with a document type; machine files
 * need neither. */
static void on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
                       const XML_Char *public_id, int internal)
{
    struct reading *reading = arg;
    (void)name, (void)system, (void)public_id, (void)internal;
    XML_StopParser(reading->parser, XML_FALSE);
}

static bool parse_file(const char *path, FILE *file)
{
    struct reading *reading = tt_calloc(1, sizeof(*reading));
    XML_Parser parser = XML_ParserCreate(NULL);
    size_t total = 0;
    bool good = reading && parser;
    if (good) {
        reading->parser = parser;
        XML_SetUserData(parser, reading);
        XML_SetElementHandler(parser, on_start, on_end);
        XML_SetStartDoctypeDeclHandler(parser, on_doctype);
    }
    while (good) {
        size_t n = fread(reading->block, 1, sizeof(reading->block), file);
        total += n;
        good = total <= FILE_MAX_BYTES &&
               XML_Parse(parser, reading->block, (int)n, n == 0) == XML_STATUS_OK;
        if (n == 0) break;
    }
    if (!good && parser) {
        tt_warn("machine file %s, line %lu: %s; the default devices are used", path,
                (unsigned long)XML_GetCurrentLineNumber(parser),
                XML_ErrorString(XML_GetErrorCode(parser)));
    }
    if (parser) XML_ParserFree(parser);
    free(reading);
    return good;
}

static int by_index(const void *left, const void *right)
{
    const struct tt_device_info *a = left;
    const struct tt_device_info *b = right;
    return a->nvml_index - b->nvml_index;
}

static bool read_machine_file(void)
{
    struct tt_host_devices *machine = &tt_host.devices;
    char path[TT_MACHINE_FILE_BYTES];
    if (!tt_param_machine_file(path)) return false;
    const char *why;
    FILE *file = tt_file_open(path, &why);
    if (!file) {
        tt_info(TT_LOG_INIT | TT_LOG_GRAPH, "could not open machine file %s: %s", path, why);
        return false;
    }
    bool good = parse_file(path, file);
    if (!good) machine->ninfos = 0;
    qsort(machine->infos, (size_t)machine->ninfos, sizeof(machine->infos[0]), by_index);
    fclose(file);
    return machine->ninfos > 0;
}

/* ---- visibility ---- */

static bool uuid_matches(const struct tt_device_info *info, const char *text, size_t len)
{
    char full[48];
    const unsigned char *u = info->uuid;
    snprintf(full, sizeof(full),
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    return len > 4 && len <= strlen(full) && !strncasecmp(full, text, len);
}

/* The one device whose UUID begins so. */
static int find_uuid(const char *text, size_t len)
{
    const struct tt_host_devices *machine = &tt_host.devices;
    int found = -1;
    for (int i = 0; i < machine->ninfos; i++) {
        if (!uuid_matches(&machine->infos[i], text, len)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

static int find_visible(const char *text, size_t len)
{
    if (len > 4 && !strncasecmp(text, "GPU-", 4)) return find_uuid(text, len);
    char *end = NULL;
    long index = strtol(text, &end, 10);
    bool good = end == text + len && end != text;
    return good && index >= 0 && index < tt_host.devices.ninfos ? (int)index : -1;
}

/* An entry that names no device, or one for the second time, ends the list, as CUDA has it. */
static void choose_visible(void)
{
    struct tt_host_devices *machine = &tt_host.devices;
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    if (!text) {
        for (int i = 0; i < machine->ninfos; i++) {
            machine->visible[machine->nvisible++] = i;
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
        for (int i = 0; i < machine->nvisible; i++) {
            again = again || machine->visible[i] == index;
        }
        if (index < 0 || again) break;
        machine->visible[machine->nvisible++] = index;
        text += len;
        if (*text == ',') text++;
    }
}

static size_t device_memory(void)
{
    size_t most = (size_t)64 << 30;
    long pages = sysconf(_SC_PHYS_PAGES);
    size_t physical = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
    size_t own = physical / (size_t)(tt_host.devices.ninfos ? tt_host.devices.ninfos : 1);
    if (tt_param_is_set("TUTTI_DEVICE_MEMORY")) own = (size_t)tt_param_int("TUTTI_DEVICE_MEMORY");
    own = own < most ? own : most;
    return tt_max_size(own / (2 << 20) * (2 << 20), 2 << 20);
}

static bool has_bus_id(const char *bus_id)
{
    for (int i = 0; i < tt_host.devices.ninfos; i++) {
        if (!strcmp(tt_host.devices.infos[i].bus_id, bus_id)) return true;
    }
    return false;
}

/* As many as asked: the machine file's first ones, then made up ones. */
static void fill_infos(int count)
{
    struct tt_host_devices *machine = &tt_host.devices;
    char bus[16];
    if (machine->ninfos > count) machine->ninfos = count;
    for (unsigned n = 1; machine->ninfos < count; n++) {
        snprintf(bus, sizeof(bus), "%04x:%02x:00.0", n / 201, n % 201);
        if (n % 201 && !has_bus_id(bus)) {
            struct tt_device_info *info = add_info(bus, usual_name, USUAL_CC);
            info->nvml_index = machine->ninfos - 1;
        }
    }
}

static void in_child(void)
{
    atomic_store_explicit(&tt_host.is_child, true, memory_order_relaxed);
}

/* Ranks on this host as the launcher says, 0 when none does. Each wants a device of its own. */
static int64_t launched_ranks(void)
{
    static const char *const names[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "MPI_LOCALNRANKS", "SLURM_TASKS_PER_NODE"};
    int64_t most = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        int64_t ranks = text ? strtoll(text, NULL, 10) : 0; /* Slurm: "16(x2),8" */
        if (ranks > most) most = ranks;
    }
    return most;
}

static void discover(void)
{
    struct tt_host_devices *machine = &tt_host.devices;
    bool from_file = read_machine_file();
    bool is_set = tt_param_is_set("TUTTI_DEVICES");
    if (!from_file || is_set) {
        int64_t count = tt_param_int("TUTTI_DEVICES");
        if (!is_set && launched_ranks() > count) count = launched_ranks();
        fill_infos(count < 0 ? 0 : count > TT_HOST_MAX_DEVICES ? TT_HOST_MAX_DEVICES : (int)count);
    }
    choose_visible();
    for (int i = 0; i < machine->ninfos; i++) {
        machine->infos[i].memory_bytes = device_memory();
    }
    tt_host_check_start();
    pthread_atfork(NULL, NULL, in_child);
    atomic_store_explicit(&machine->known, machine->nvisible + 1, memory_order_release);
}

int tt_host_device_count_slow(void)
{
    pthread_once(&tt_host.devices.once, discover);
    return tt_host.devices.nvisible;
}

const struct tt_device_info *tt_host_device_info(int device)
{
    if (device < 0 || device >= tt_host_device_count()) return NULL;
    return &tt_host.devices.infos[tt_host.devices.visible[device]];
}

int tuttiHostDeviceCount(void)
{
    return tt_host_forked() ? 0 : tt_host_device_count();
}

int tuttiHostReady(void)
{
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    return tt_host_device_count() ? TT_HOST_OK : TT_HOST_NO_DEVICE;
}

bool tuttiHostStarted(void)
{
    return atomic_load_explicit(&tt_host.devices.known, memory_order_acquire) != 0;
}

/* Three or two numbers in hexadecimal: domain (may be missing), bus, device; then ".0". */
static bool parse_bus_id(const char *text, unsigned long parts[3])
{
    char *end = NULL;
    int count = 0;
    for (; count < 3; count++) {
        parts[count] = strtoul(text, &end, 16);
        if (end == text) return false;
        text = end + 1;
        if (*end != ':') break;
    }
    if (count == 1) {
        parts[2] = parts[1];
        parts[1] = parts[0];
        parts[0] = 0;
    }
    return (count == 1 || count == 2) && (*end == 0 || !strcmp(end, ".0"));
}

int tuttiHostDeviceByBusId(const char *bus_id, int *device_out)
{
    unsigned long want[3];
    unsigned long have[3];
    if (!bus_id || !parse_bus_id(bus_id, want)) return TT_HOST_INVALID_VALUE;
    for (int i = 0; i < tt_host_device_count(); i++) {
        const struct tt_device_info *info = tt_host_device_info(i);
        if (!info || !parse_bus_id(info->bus_id, have)) continue;
        if (memcmp(want, have, sizeof(want)) != 0) continue;
        *device_out = i;
        return TT_HOST_OK;
    }
    return TT_HOST_INVALID_VALUE;
}

int tuttiHostDeviceInfo(int device, struct tt_device_info *info)
{
    const struct tt_device_info *found = tt_host_device_info(device);
    if (!found) return TT_HOST_INVALID_DEVICE;
    *info = *found;
    return TT_HOST_OK;
}

int tuttiHostCores(void)
{
    cpu_set_t set;
    int count = atomic_load_explicit(&tt_host.devices.cores, memory_order_relaxed);
    if (count) return count;
    count = sched_getaffinity(getpid(), sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    atomic_store_explicit(&tt_host.devices.cores, count > 0 ? count : 1, memory_order_relaxed);
    return count > 0 ? count : 1;
}
