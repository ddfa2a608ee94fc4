/* NCCL_IB_HCA: [^][=]name[:port[:rail[:plane]]],... Without = a name is a prefix; ^ takes all but
 * these. */
#include "net/ib/device.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name;
    size_t name_bytes;
    long port, rail, plane; /* -1: not said */
};

/* The entry at `at`; returns where the next one begins. */
static const char *read_entry(const char *at, struct entry *entry)
{
    long *const numbers[] = {&entry->port, &entry->rail, &entry->plane};
    *entry = (struct entry){at, strcspn(at, ",:"), -1, -1, -1};
    at += entry->name_bytes;
    for (size_t i = 0; *at == ':' && i < 3; i++) {
        char *end;
        long number = strtol(at + 1, &end, 10);
        if (end > at + 1) *numbers[i] = number;
        at = end;
    }
    at += strcspn(at, ",");
    return at + (*at == ',');
}

bool tt_ib_port_taken(const char *list, struct ib_port *port)
{
    if (!list || !*list) return true;
    bool excludes = *list == '^';
    list += excludes;
    bool exact = *list == '=';
    list += exact;
    while (*list) {
        struct entry entry;
        list = read_entry(list, &entry);
        bool whole = strlen(port->name) == entry.name_bytes;
        bool named = entry.name_bytes && !strncmp(port->name, entry.name, entry.name_bytes);
        if (!named || (exact && !whole)) continue;
        if (entry.port >= 0 && entry.port != port->number) continue;
        if (!excludes && entry.rail >= 0) port->rail = (int16_t)entry.rail;
        if (!excludes && entry.plane >= 0) port->plane = (int16_t)entry.plane;
        return !excludes;
    }
    return excludes;
}
