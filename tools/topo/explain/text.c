/* Sentences of `tutti topo explain`, words for paths, and groups of equally full links. */
#include "explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(piece, sizeof(piece), format, arguments);
    va_end(arguments);
    size_t bytes = strlen(piece);
    if (text->bytes + bytes + 1 > text->room) {
        size_t room = 2 * (text->room + bytes + 128);
        char *grown = realloc(text->text, room);
        if (!grown) return;
        text->text = grown;
        text->room = room;
    }
    memcpy(text->text + text->bytes, piece, bytes + 1);
    text->bytes += bytes;
}

const char *text_get(const struct text *text)
{
    return text->text ? text->text : "";
}

void text_free(struct text *text)
{
    free(text->text);
    *text = (struct text){0};
}

void report_add(const struct report *report, const char *kind, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int bytes = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (bytes < 0) return;
    if (report->findings) {
        json_array_append_new(report->findings,
                              json_pack("{s:s, s:s}", "kind", kind, "text", text));
    } else {
        printf("%s%s\n", strcmp(kind, "title") == 0 ? "" : "  ", text);
    }
    free(text);
}

const char *path_type_meaning(int type)
{
    static const char *const meanings[TT_PATH_COUNT_] = {
        "on the same device",
        "by NVLink",
        "by NVLink through another GPU",
        "by chip-to-chip links",
        "through one PCI switch at most",
        "through several PCI switches",
        "by a chip-to-chip link, then PCI",
        "by NVLink to the GPU that is next to the NIC",
        "through a CPU's host bridge",
        "across CPUs",
        "by the network alone",
        "not at all"};
    return meanings[type];
}

int path_type_of(const char *name)
{
    for (int type = 0; type < TT_PATH_COUNT_; type++) {
        if (strcmp(name, tt_path_type_name((enum tt_path_type)type)) == 0) return type;
    }
    return TT_PATH_DIS;
}

/* ---- groups of links ---- */

static const char *kind_of(const char *end)
{
    static const struct {
        const char *type, *kind;
    } kinds[] = {{"DEV/", "GPU"},  {"GPU/", "GPU"}, {"PCI/", "PCI switch"}, {"NIC/", "NIC"},
                 {"NET/", "port"}, {"CPU/", "CPU"}, {"NVS/", "NVSwitch"}};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (strncmp(end, kinds[k].type, 4) == 0) return kinds[k].kind;
    }
    return *end ? "part" : "";
}

/* 1: the same way, -1: the other way round, 0: not alike. */
static int belongs(const struct load_group *group, const struct tt_topo_load *load)
{
    const struct tt_topo_load *first = &group->first;
    const char *from = kind_of(load->from);
    const char *to = kind_of(load->to);
    float more = load->used - first->used;
    if (load->type != first->type || load->bw != first->bw || more > 0.01F || more < -0.01F)
        return 0;
    if (!strcmp(group->from, from) && !strcmp(group->to, to)) return 1;
    return !strcmp(group->from, to) && !strcmp(group->to, from) ? -1 : 0;
}

int load_groups_of(const struct tt_topo_loads *loads, struct load_group groups[LOAD_GROUPS])
{
    int count = 0;
    for (int k = 0; k < loads->count; k++) {
        const struct tt_topo_load *load = &loads->load[k];
        int g = 0;
        while (g < count && belongs(&groups[g], load) == 0) {
            g++;
        }
        if (g == LOAD_GROUPS) continue;
        if (g == count) {
            groups[count] = (struct load_group){.first = *load};
            (void)snprintf(groups[g].from, sizeof(groups[g].from), "%s", kind_of(load->from));
            (void)snprintf(groups[g].to, sizeof(groups[g].to), "%s", kind_of(load->to));
            count++;
        }
        int member = belongs(&groups[g], load);
        groups[g].count += member > 0;
        groups[g].both = groups[g].both || member < 0;
    }
    return count;
}

bool load_group_is_full(const struct load_group *group)
{
    return group->first.used >= 0.9F * group->first.bw;
}
