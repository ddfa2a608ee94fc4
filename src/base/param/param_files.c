/* NCCL's configuration files: NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf, NAME=VALUE.
 * Pairs become real environment variables without overriding any, so plugins and children see
 * them, and the real environment wins over the user's file, which wins over the system's. */
#include "base/param/param_files.h"

#include "base/mem.h"
#include "base/process.h"
#include "base/system/file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, ITEM_MAX = 1023 };

struct file_pair {
    struct file_pair *next;
    char *name;
    char *origin;
};

static void remember_pair(const char *name, const char *path)
{
    struct file_pair *pair = tt_calloc(1, sizeof(*pair));
    if (!pair) return;
    pair->name = strdup(name);
    if (!pair->name || asprintf(&pair->origin, "file %s", path) < 0) {
        free(pair->name);
        free(pair);
        return;
    }
    pair->next = tt_base.files.pairs;
    tt_base.files.pairs = pair;
}

/* One line without its end; changes it. Nothing is trimmed or unquoted: NCCL does neither. */
static void take_line(char *line, const char *path)
{
    size_t len = strlen(line);
    if (len && line[len - 1] == '\n') line[--len] = '\0';
    if (len && line[len - 1] == '\r') line[--len] = '\0';
    char *equals = strchr(line, '=');
    if (line[0] == '#' || !equals || equals == line) return;

    *equals = '\0';
    char *value = equals + 1;
    if (strlen(line) > ITEM_MAX) line[ITEM_MAX] = '\0';
    if (strlen(value) > ITEM_MAX) value[ITEM_MAX] = '\0';
    if (getenv(line)) return;
    if (setenv(line, value, 0) == 0) remember_pair(line, path);
}

static void read_file(const char *path)
{
    char line[LINE_BYTES];
    const char *why;
    FILE *file = tt_file_open(path, &why);
    if (!file) return; /* a missing file is not an error; param_names.c reports one that is named */
    while (fgets(line, sizeof(line), file)) {
        take_line(line, path);
    }
    fclose(file);
}

static void read_all(void)
{
    const char *chosen = getenv("NCCL_CONF_FILE");
    const char *home = getenv("HOME");
    char path[LINE_BYTES];
    if (chosen && *chosen) {
        snprintf(path, sizeof(path), "%s", chosen); /* a copy: setenv may move the original */
        read_file(path);
    } else if (home && *home) {
        snprintf(path, sizeof(path), "%s/.nccl.conf", home);
        read_file(path);
    }
    read_file("/etc/nccl.conf");
}

void tt_param_files_read(void)
{
    if (atomic_load_explicit(&tt_base.files.read, memory_order_acquire)) return;
    pthread_mutex_lock(&tt_base.files.lock);
    if (!atomic_load_explicit(&tt_base.files.read, memory_order_relaxed)) {
        read_all();
        /* pairs with the acquire load above: a thread that sees the flag sees the environment
         * filled */
        atomic_store_explicit(&tt_base.files.read, true, memory_order_release);
    }
    pthread_mutex_unlock(&tt_base.files.lock);
}

const char *tt_param_file_of(const char *name)
{
    const char *origin = NULL;
    tt_param_files_read();
    pthread_mutex_lock(&tt_base.files.lock);
    for (const struct file_pair *pair = tt_base.files.pairs; pair; pair = pair->next) {
        if (!strcmp(pair->name, name)) origin = pair->origin;
    }
    pthread_mutex_unlock(&tt_base.files.lock);
    return origin;
}

void tt_param_files_forget(void)
{
    pthread_mutex_lock(&tt_base.files.lock);
    atomic_store_explicit(&tt_base.files.read, false, memory_order_release);
    pthread_mutex_unlock(&tt_base.files.lock);
}
