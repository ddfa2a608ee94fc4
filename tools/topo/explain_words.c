/* Sentences of `tutti topo explain`, words for paths, and groups of equally full links. */
#include "explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void words_add(struct words *words, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(piece, sizeof(piece), format, arguments);
    va_end(arguments);
    size_t bytes = strlen(piece);
    if (words->bytes + bytes + 1 > words->room) {
        size_t room = 2 * (words->room + bytes + 128);
        char *grown = realloc(words->text, room);
        if (!grown) return;
        words->text = grown;
        words->room = room;
    }
    memcpy(words->text + words->bytes, piece, bytes + 1);
    words->bytes += bytes;
}

const char *words_text(const struct words *words)
{
    return words->text ? words->text : "";
}

void words_free(struct words *words)
{
    free(words->text);
    *words = (struct words){0};
}

void tale_say(const struct tale *tale, const char *kind, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int bytes = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (bytes < 0) return;
    if (tale->findings) {
        json_array_append_new(tale->findings, json_pack("{s:s, s:s}", "kind", kind, "text", text));
    } else {
        printf("%s%s\n", strcmp(kind, "title") == 0 ? "" : "  ", text);
    }
    free(text);
}

int tale_count(const struct box *box, const char *list)
{
    return (int)json_array_size(json_object_get(json_object_get(box->machine, "system"), list));
}

const char *tale_meaning(int way)
{
    static const char *const meanings[TT_WAY_COUNT_] = {
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
    return meanings[way];
}

int tale_way(const char *name)
{
    for (int way = 0; way < TT_WAY_COUNT_; way++) {
        if (strcmp(name, tt_topo_way_name((enum tt_topo_way)way)) == 0) return way;
    }
    return TT_WAY_DIS;
}

int tale_index(const struct box *box, int rank)
{
    for (int g = 0; g < tale_count(box, "gpus"); g++) {
        if (box_int(box, "gpus", g, "rank") == rank) return g;
    }
    return -1;
}

int tale_access(const struct box *box, const char *matrix, int from, int to)
{
    json_t *rows = json_object_get(json_object_get(box->machine, "access"), matrix);
    json_t *row = json_array_get(rows, (size_t)from);
    return (int)json_integer_value(json_array_get(row, (size_t)to));
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
static int belongs(const struct tale_group *group, const struct tt_topo_load *load)
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

int tale_groups(const struct tt_topo_loads *loads, struct tale_group groups[TALE_GROUPS])
{
    int count = 0;
    for (int k = 0; k < loads->count; k++) {
        const struct tt_topo_load *load = &loads->load[k];
        int g = 0;
        while (g < count && belongs(&groups[g], load) == 0) {
            g++;
        }
        if (g == TALE_GROUPS) continue;
        if (g == count) {
            groups[count] = (struct tale_group){.first = *load};
            (void)snprintf(groups[g].from, sizeof(groups[g].from), "%s", kind_of(load->from));
            (void)snprintf(groups[g].to, sizeof(groups[g].to), "%s", kind_of(load->to));
            count++;
        }
        int way = belongs(&groups[g], load);
        groups[g].count += way > 0;
        groups[g].both = groups[g].both || way < 0;
    }
    return count;
}

bool tale_is_full(const struct tale_group *group)
{
    return group->first.used >= 0.9F * group->first.bw;
}
