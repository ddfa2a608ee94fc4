/* What the kernel says of devices. Reads only; every failure is "unknown". */
#include "detect_sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
