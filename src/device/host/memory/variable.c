/* Variables of devices that programs declare: their host variable is the storage, managed ones get
 * memory of ours when devices may start. The list says which addresses lie in one. What they start
 * with stands in the device code, which is read once when a module has named all of them. */
#include "variable.h"

#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_kernel.h"
#include "device/host/image/image.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct tt_host_variable {
    struct tt_host_variable *next;
    const void *module, *shadow;
    char *name; /* owned */
    size_t bytes;
    void **slot;        /* managed: the program's pointer; NULL for others */
    void *initial;      /* owned: its memory until devices may start */
    void *managed;      /* owned: its memory from then on */
    const char *unread; /* literal: why it starts as zeros although its device code says more */
};

void tuttiHostVariableAdd(void *module, const void *shadow, const char *name, size_t bytes)
{
    struct tt_host_variable *variable = shadow ? calloc(1, sizeof(*variable)) : NULL;
    if (!variable) return;
    variable->module = module;
    variable->shadow = shadow;
    variable->bytes = bytes;
    variable->name = strdup(name ? name : "?");
    pthread_mutex_lock(&tt_host.variables.lock);
    variable->next = tt_host.variables.first;
    tt_host.variables.first = variable;
    atomic_fetch_add_explicit(&tt_host.variables.count, 1, memory_order_release);
    pthread_mutex_unlock(&tt_host.variables.lock);
}

void tuttiHostManagedAdd(void *module, void **slot, const char *name, size_t bytes)
{
    void *initial = slot ? calloc(1, bytes ? bytes : 1) : NULL;
    if (!initial) return;
    *slot = initial;
    tuttiHostVariableAdd(module, initial, name, bytes);
    pthread_mutex_lock(&tt_host.variables.lock);
    struct tt_host_variable *variable = tt_host.variables.first;
    while (variable && variable->shadow != initial) {
        variable = variable->next;
    }
    if (variable) variable->slot = slot;
    if (variable) variable->initial = initial;
    pthread_mutex_unlock(&tt_host.variables.lock);
    if (!variable) free(initial);
    if (!variable) *slot = NULL;
}

/* Lock held. Without devices or memory the variable stays where it is. */
static void manage(struct tt_host_variable *variable)
{
    void *managed = NULL;
    if (tuttiHostMallocHost(variable->bytes, 1 | TT_HOST_KEPT, true, &managed)) return;
    memcpy(managed, variable->initial, variable->bytes);
    variable->managed = managed;
    variable->shadow = *variable->slot = managed;
}

void tuttiHostManagedInit(void *module)
{
    pthread_mutex_lock(&tt_host.variables.lock);
    for (struct tt_host_variable *one = tt_host.variables.first; one; one = one->next) {
        if (one->module == module && one->slot && !one->managed) manage(one);
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
}

/* ---- what variables start with ---- */

/* Protection of the memory at `ptr`, and the end of its mapping; 0 when it is unknown. */
static int protection(const void *ptr, uintptr_t *end)
{
    char line[256], *rest;
    uintptr_t at = (uintptr_t)ptr;
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof(line), maps)) {
        uintptr_t first = strtoull(line, &rest, 16);
        if (*rest != '-') continue;
        *end = strtoull(rest + 1, &rest, 16);
        if (at < first || at >= *end || strlen(rest) < 4) continue;
        found = (rest[1] == 'r' ? PROT_READ : 0) | (rest[2] == 'w' ? PROT_WRITE : 0) |
                (rest[3] == 'x' ? PROT_EXEC : 0);
    }
    if (maps) fclose(maps);
    return found;
}

/* The host variable of a constant may lie in pages that are not to be written. */
static bool write_start(void *to, const void *from, size_t bytes)
{
    uintptr_t end, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (bytes == 0 || memcmp(to, from, bytes) == 0) return true;
    int flags = protection(to, &end);
    if (!(flags & PROT_WRITE)) {
        uintptr_t first = (uintptr_t)to / page * page;
        if (!flags || end - (uintptr_t)to < bytes) return false;
        size_t len = ((uintptr_t)to + bytes - first + page - 1) / page * page;
        if (mprotect((void *)first, len, flags | PROT_WRITE)) return false;
        memcpy(to, from, bytes);
        mprotect((void *)first, len, flags);
        return true;
    }
    memcpy(to, from, bytes);
    return true;
}

/* Lock held. */
static struct tt_host_variable *find_name(const void *module, const char *name)
{
    struct tt_host_variable *one = tt_host.variables.first;
    while (one && (one->module != module || !one->name || strcmp(one->name, name) != 0)) {
        one = one->next;
    }
    return one;
}

static void start(struct tt_host_variable *variable, const struct tt_host_image *image)
{
    const struct tt_host_image_symbol *symbol = tt_host_image_find(image, variable->name, false);
    if (!symbol) return;
    size_t bytes =
        symbol->initial_bytes < variable->bytes ? symbol->initial_bytes : variable->bytes;
    if (symbol->is_unread) {
        variable->unread = "it has the address of something that is not on the host";
    } else if (!write_start((void *)(uintptr_t)variable->shadow, symbol->initial, bytes)) {
        variable->unread = "its host variable cannot be written";
    }
}

/* Managed variables move when devices start, so their addresses are no starting values yet. */
static void point(const void *module, const struct tt_host_image *image,
                  const struct tt_host_image_pointer *pointer)
{
    struct tt_host_variable *in = find_name(module, image->symbols[pointer->in].name);
    const struct tt_host_variable *to = find_name(module, image->symbols[pointer->to].name);
    if (!in || pointer->offset > in->bytes || in->bytes - pointer->offset < sizeof(void *)) return;
    const char *address = to && !to->slot ? (const char *)to->shadow + pointer->addend : NULL;
    if (!address ||
        !write_start((char *)(uintptr_t)in->shadow + pointer->offset, &address, sizeof(address)))
        in->unread = "it has the address of a variable that is not there yet";
}

void tt_host_variables_start(const void *module, const void *code)
{
    const char *why = NULL;
    pthread_mutex_lock(&tt_host.variables.lock);
    struct tt_host_variable *one = tt_host.variables.first;
    while (one && one->module != module) {
        one = one->next;
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
    if (!one || !code) return;
    struct tt_host_image *image = tt_host_image_open(code, SIZE_MAX, &why); /* may open a library */
    pthread_mutex_lock(&tt_host.variables.lock);
    for (one = tt_host.variables.first; one; one = one->next) {
        if (one->module == module && image && one->name) start(one, image);
        if (one->module == module && !image) one->unread = why;
    }
    for (size_t i = 0; image && i < image->npointers; i++) {
        point(module, image, &image->pointers[i]);
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
    tt_host_image_close(image);
}

/* ---- look-up ---- */

bool tuttiHostVariable(const void *shadow, size_t *bytes)
{
    char name[128] = "";
    const char *unread = NULL;
    pthread_mutex_lock(&tt_host.variables.lock);
    struct tt_host_variable *variable = tt_host.variables.first;
    while (variable && variable->shadow != shadow) {
        variable = variable->next;
    }
    if (variable) *bytes = variable->bytes;
    if (variable && variable->unread) { /* the first of its module speaks for all */
        unread = variable->unread;
        snprintf(name, sizeof(name), "%s", variable->name ? variable->name : "?");
        for (struct tt_host_variable *one = tt_host.variables.first; one; one = one->next) {
            if (one->module == variable->module) one->unread = NULL;
        }
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
    if (unread) {
        tuttiHostWarn(
            "tutti: device variable %s starts as zeros, as its device code cannot be used: "
            "%s; copy the value there first (cudaMemcpyToSymbol)",
            name, unread);
    }
    return variable != NULL;
}

bool tuttiHostInVariable(const void *ptr)
{
    bool found = false;
    if (!atomic_load_explicit(&tt_host.variables.count, memory_order_acquire)) return false;
    pthread_mutex_lock(&tt_host.variables.lock);
    const struct tt_host_variable *variable = tt_host.variables.first;
    for (; variable && !found; variable = variable->next) {
        found = (size_t)((const char *)ptr - (const char *)variable->shadow) < variable->bytes;
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
    return found;
}

void tt_host_variables_drop(const void *module)
{
    pthread_mutex_lock(&tt_host.variables.lock);
    struct tt_host_variable **link = &tt_host.variables.first;
    while (*link) {
        struct tt_host_variable *variable = *link;
        if (variable->module != module) {
            link = &variable->next;
            continue;
        }
        *link = variable->next;
        atomic_fetch_sub_explicit(&tt_host.variables.count, 1, memory_order_release);
        if (variable->managed) tt_host_memory_leave(variable->managed);
        free(variable->initial);
        free(variable->name);
        free(variable);
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
}
