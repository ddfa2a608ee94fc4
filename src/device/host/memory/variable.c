/* Variables of devices that programs declare: their host variable is the storage, managed ones get
 * memory of ours when devices may start. The list says which addresses lie in one. */
#include "variable.h"

#include "device/host/host.h"
#include "device/host/host_kernel.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

struct host_variable {
    struct host_variable *next;
    const void *module, *shadow;
    char *name; /* owned */
    size_t bytes;
    void **slot;   /* managed: the program's pointer; NULL for others */
    void *initial; /* owned: its memory until devices may start */
    void *managed; /* owned: its memory from then on */
};

void tuttiHostVariableAdd(void *module, const void *shadow, const char *name, size_t bytes)
{
    struct host_variable *variable = shadow ? calloc(1, sizeof(*variable)) : NULL;
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
    struct host_variable *variable = tt_host.variables.first;
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
static void manage(struct host_variable *variable)
{
    void *managed = NULL;
    if (tuttiHostMallocHost(variable->bytes, 1, true, &managed)) return;
    memcpy(managed, variable->initial, variable->bytes);
    variable->managed = managed;
    variable->shadow = *variable->slot = managed;
}

void tuttiHostManagedInit(void *module)
{
    pthread_mutex_lock(&tt_host.variables.lock);
    for (struct host_variable *one = tt_host.variables.first; one; one = one->next) {
        if (one->module == module && one->slot && !one->managed) manage(one);
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
}

bool tuttiHostVariable(const void *shadow, size_t *bytes)
{
    pthread_mutex_lock(&tt_host.variables.lock);
    const struct host_variable *variable = tt_host.variables.first;
    while (variable && variable->shadow != shadow) {
        variable = variable->next;
    }
    if (variable) *bytes = variable->bytes;
    pthread_mutex_unlock(&tt_host.variables.lock);
    return variable != NULL;
}

bool tuttiHostInVariable(const void *ptr)
{
    bool found = false;
    if (!atomic_load_explicit(&tt_host.variables.count, memory_order_acquire)) return false;
    pthread_mutex_lock(&tt_host.variables.lock);
    const struct host_variable *variable = tt_host.variables.first;
    for (; variable && !found; variable = variable->next) {
        found = (size_t)((const char *)ptr - (const char *)variable->shadow) < variable->bytes;
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
    return found;
}

void host_variables_drop(const void *module)
{
    pthread_mutex_lock(&tt_host.variables.lock);
    struct host_variable **link = &tt_host.variables.first;
    while (*link) {
        struct host_variable *variable = *link;
        if (variable->module != module) {
            link = &variable->next;
            continue;
        }
        *link = variable->next;
        atomic_fetch_sub_explicit(&tt_host.variables.count, 1, memory_order_release);
        if (variable->managed) host_memory_free(variable->managed);
        free(variable->initial);
        free(variable->name);
        free(variable);
    }
    pthread_mutex_unlock(&tt_host.variables.lock);
}
