/* What the kernel says of devices. Reads only; every failure is "unknown". */
#include "detect_sysfs.h"

#include "words.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

const char *tt_sysfs_root(void)
{
    const char *root = getenv("HWLOC_FSROOT");
    return root && strcmp(root, "/") != 0 ? root : "";
}

void tt_sysfs_text(const char *directory, const char *name, char text[TT_SYSFS_TEXT])
{
    char path[PATH_MAX];
    text[0] = 0;
    int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *in = length < (int)sizeof(path) ? fopen(path, "re") : NULL;
    if (!in) return;
    if (!fgets(text, TT_SYSFS_TEXT, in)) text[0] = 0;
    text[strcspn(text, "\n")] = 0;
    (void)fclose(in);
}

long tt_sysfs_number(const char *directory, const char *name, long fallback)
{
    char text[TT_SYSFS_TEXT], *end = text;
    tt_sysfs_text(directory, name, text);
    long value = strtol(text, &end, 0);
    return end == text ? fallback : value;
}

bool tt_sysfs_real(const char *relative, char path[PATH_MAX])
{
    char asked[PATH_MAX];
    int length = snprintf(asked, sizeof(asked), "%s%s", tt_sysfs_root(), relative);
    return length < (int)sizeof(asked) && realpath(asked, path) != NULL;
}

bool tt_sysfs_is_pci(const char *path)
{
    char link[PATH_MAX], target[PATH_MAX];
    int length = snprintf(link, sizeof(link), "%s/subsystem", path);
    if (length >= (int)sizeof(link) || !realpath(link, target)) return false;
    return strcmp(strrchr(target, '/') + 1, "pci") == 0;
}

bool tt_sysfs_is_busid(const char *name)
{
    static const char shape[] = "xxxx:xx:xx.x";
    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        bool fits = shape[i] == 'x' ? isxdigit((unsigned char)name[i]) != 0 : name[i] == shape[i];
        if (!fits) return false;
    }
    return name[sizeof(shape) - 1] == 0;
}

/* A switch shows two levels, the port towards the device and the port towards the root: only the
 * latter counts, so every second level does. */
bool tt_sysfs_chain(const char *path, struct tt_sysfs_chain *chain)
{
    char walk[PATH_MAX];
    int level = 0;
    chain->count = 0;
    chain->numa = -1;
    if (strlen(path) >= sizeof(walk) || !tt_sysfs_is_busid(strrchr(path, '/') + 1)) return false;
    snprintf(walk, sizeof(walk), "%s", path);
    while (tt_sysfs_is_busid(strrchr(walk, '/') + 1)) {
        if (level % 2 == 0 && chain->count < TT_SYSFS_LEVELS)
            memcpy(chain->path[chain->count++], walk, sizeof(walk));
        if (chain->numa < 0) chain->numa = (int)tt_sysfs_number(walk, "numa_node", -1);
        *strrchr(walk, '/') = 0;
        level++;
    }
    return true;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

void tt_sysfs_each(const char *directory, void (*call)(void *context, const char *name),
                   void *context)
{
    char path[PATH_MAX];
    struct dirent **names = NULL;
    int length = snprintf(path, sizeof(path), "%s%s", tt_sysfs_root(), directory);
    int count = length < (int)sizeof(path) ? scandir(path, &names, visible, versionsort) : -1;
    for (int i = 0; i < count; i++) {
        call(context, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

/* ---- links and CPUs ---- */

void tt_sysfs_link(const char *path, struct tt_sysfs_link *link)
{
    char own[TT_SYSFS_TEXT], above[TT_SYSFS_TEXT], parent[PATH_MAX];
    snprintf(parent, sizeof(parent), "%s", path);
    *strrchr(parent, '/') = 0;
    tt_sysfs_text(path, "max_link_speed", own);
    tt_sysfs_text(parent, "max_link_speed", above);
    bool known_own = false, known_above = false;
    int units = tt_word_link_units(own, &known_own);
    int units_above = tt_word_link_units(above, &known_above);
    bool lower = known_above && (!known_own || units_above < units);
    memcpy(link->speed, lower ? above : own, sizeof(link->speed));
    if (!lower && !known_own) link->speed[0] = 0;
    link->width = tt_sysfs_number(path, "max_link_width", 0);
    long width_above = tt_sysfs_number(parent, "max_link_width", 0);
    if (link->width > 64 || link->width < 0) link->width = 0; /* 255: unknown */
    if (width_above > 0 && width_above <= 64 && (!link->width || width_above < link->width))
        link->width = width_above;
}

/* The first value of a key in /proc/cpuinfo, "" without. */
static void cpuinfo(const char *key, char value[TT_SYSFS_TEXT])
{
    char path[PATH_MAX], line[TT_SYSFS_TEXT];
    size_t length = strlen(key);
    value[0] = 0;
    (void)snprintf(path, sizeof(path), "%s/proc/cpuinfo", tt_sysfs_root());
    FILE *in = fopen(path, "re");
    while (in && !value[0] && fgets(line, sizeof(line), in)) {
        char *colon = strchr(line, ':');
        bool same = colon && strncmp(line, key, length) == 0 &&
                    line + length + strspn(line + length, " \t") == colon;
        if (!same) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(value, TT_SYSFS_TEXT, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (in) (void)fclose(in);
}

void tt_sysfs_cpu(struct tt_sysfs_cpu *cpu)
{
    struct utsname host;
    if (uname(&host)) strcpy(host.machine, "x86_64");
    bool power = strncmp(host.machine, "ppc64", 5) == 0;
    bool arm = strcmp(host.machine, "aarch64") == 0;
    snprintf(cpu->arch, sizeof(cpu->arch), "%s", power ? "ppc64" : arm ? "arm64" : host.machine);
    cpuinfo("vendor_id", cpu->vendor);
    cpuinfo("cpu family", cpu->family);
    cpuinfo("model", cpu->model);
    if (!cpu->vendor[0]) strcpy(cpu->vendor, "unknown");
    if (!cpu->family[0]) strcpy(cpu->family, "0");
    if (!cpu->model[0]) strcpy(cpu->model, "0");
}
