/* The verdict of `tutti topo diff`: what two machines are to each other, in words. Whether they are
 * one machine with other numbers is decided by colours: every part begins with what it is, then
 * takes in its neighbours' colours, over and over; equal machines end with equally many parts of
 * each colour, in whatever order they are listed. */
#include "verdict.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how many of what ---- */

enum { KINDS = 12 };

struct tally {
    struct {
        char what[32];
        int count;
    } kind[KINDS];
    int kinds, total;
};

static void count_one(struct tally *tally, const char *what)
{
    int k = 0;
    while (k < tally->kinds && strcmp(tally->kind[k].what, what) != 0)
        k++;
    tally->total++;
    if (k == KINDS) return;
    if (k == tally->kinds) {
        (void)snprintf(tally->kind[k].what, sizeof(tally->kind[k].what), "%s", what);
        tally->kinds++;
    }
    tally->kind[k].count++;
}

static bool holds(const struct tally *a, const struct tally *b)
{
    for (int k = 0; k < a->kinds; k++) {
        bool found = false;
        for (int other = 0; other < b->kinds; other++) {
            found = found || (strcmp(a->kind[k].what, b->kind[other].what) == 0 &&
                              a->kind[k].count == b->kind[other].count);
        }
        if (!found) return false;
    }
    return a->total == b->total;
}

/* "PIX"; "8 x 50 GB/s"; "4 x PIX, 4 x PXB"; plain: all are of one kind, their number goes without
 * saying. */
static void put_tally(struct text *text, const struct tally *tally, bool plain)
{
    if (tally->total == 0) text_add(text, "none");
    for (int k = 0; k < tally->kinds; k++) {
        if (k) text_add(text, ", ");
        if (!plain) text_add(text, "%d x ", tally->kind[k].count);
        text_add(text, "%s", tally->kind[k].what);
    }
}

/* ---- facts of a machine ---- */

/* other: what it is compared with, where that matters */
typedef void count_fact(const struct box *box, const struct box *other, struct tally *tally);

static bool knows_models(const struct box *box)
{
    for (int g = 0; g < box_count(box, "gpus"); g++) {
        if (!box_gpu_model(box, g)) return false;
    }
    return true;
}

/* By product where both files have it, else by what they compute. */
static void count_gpus(const struct box *box, const struct box *other, struct tally *tally)
{
    bool models = knows_models(box) && knows_models(other);
    for (int g = 0; g < box_count(box, "gpus"); g++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "sm_%d", box_int(box, "gpus", g, "cc"));
        count_one(tally, models ? box_gpu_model(box, g) : what);
    }
}

static void count_cpus(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    for (int c = 0; c < box_count(box, "cpus"); c++) {
        const char *model = box_text(box, "cpus", c, "model");
        const char *vendor = box_text(box, "cpus", c, "vendor");
        const char *arch = box_text(box, "cpus", c, "arch");
        count_one(tally, *model ? model : *vendor ? vendor : *arch ? arch : "unknown");
    }
}

static void count_ports(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    for (int n = 0; n < box_count(box, "nets"); n++) {
        char what[32];
        (void)snprintf(what, sizeof(what), "%.4g GB/s", box_real(box, "nets", n, "bw"));
        count_one(tally, what);
    }
}

static void count_links(const struct box *box, struct tally *tally, enum box_kind kind, bool nvlink)
{
    for (int k = 0; k < box->count; k++) {
        const struct box_node *node = &box->node[k];
        char what[32];
        double bw = nvlink ? node->nvlink : node->up_bw;
        if (node->kind != kind) continue;
        (void)snprintf(what, sizeof(what), "%.4g GB/s", bw);
        if (bw <= 0 || bw >= BOX_NO_LINK) (void)snprintf(what, sizeof(what), "none");
        count_one(tally, what);
    }
}

static void count_gpu_links(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    count_links(box, tally, BOX_GPU, false);
}

static void count_nic_links(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    count_links(box, tally, BOX_NIC, false);
}

static void count_switch_links(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    count_links(box, tally, BOX_PCI, false);
}

static void count_nvlinks(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    count_links(box, tally, BOX_GPU, true);
}

static void count_pairs(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    int gpus = box_count(box, "gpus");
    for (int a = 0; a < gpus; a++) {
        for (int b = 0; b < gpus; b++) {
            if (a != b) count_one(tally, box_path_type(box, "gpu_gpu", a, b));
        }
    }
}

/* Of each port, the best path that a GPU has to it. */
static void count_near(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    for (int n = 0; n < box_count(box, "nets"); n++) {
        int best = TT_PATH_DIS;
        for (int g = 0; g < box_count(box, "gpus"); g++) {
            int type = path_type_of(box_path_type(box, "gpu_net", g, n));
            if (type < best) best = type;
        }
        count_one(tally, tt_path_type_name((enum tt_path_type)best));
    }
}

static void count_direct(const struct box *box, const struct box *other, struct tally *tally)
{
    (void)other;
    for (int n = 0; n < box_count(box, "nets"); n++)
        count_one(tally, box_int(box, "nets", n, "gdr") ? "possible" : "not possible");
}

struct fact {
    const char *words; /* before "A instead of B" */
    count_fact *count;
    bool part; /* it says what there is, else how that is joined */
};

static const struct fact facts[] = {
    {"GPUs", count_gpus, true},
    {"network ports", count_ports, true},
    {"CPUs", count_cpus, true},
    {"NVLinks of GPUs", count_nvlinks, false},
    {"PCI links of GPUs", count_gpu_links, false},
    {"PCI links of NICs", count_nic_links, false},
    {"PCI links of switches", count_switch_links, false},
    {"GPU to GPU by", count_pairs, false},
    {"NICs by", count_near, false},
    {"GPU-direct", count_direct, false},
};

/* ---- one machine with other numbers? ---- */

enum { ROUNDS = 12 }; /* more than links from one end of a machine to the other */

struct colours {
    json_t *number; /* owned; of "GPU/3" in `of` */
    uint64_t *of;   /* owned */
    uint64_t *more; /* owned; what neighbours add in a round */
    size_t count;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15U)) * 0xbf58476d1ce4e5b9U;
    return x ^ (x >> 29);
}

static uint64_t mix_text(uint64_t a, const char *text)
{
    for (; text && *text; text++)
        a = mix(a, (unsigned char)*text);
    return mix(a, 256);
}

/* What a part is, without numbers and names. */
static uint64_t first_colour(const struct box *box, const char *part)
{
    static const struct {
        const char *type, *list, *fields[6];
    } kinds[] = {
        {"GPU/", "gpus", {"cc", "gdr", NULL}},
        {"NET/", "nets", {"bw", "latency", "gdr", "coll", "max_conn", NULL}},
        {"CPU/", "cpus", {"arch", "vendor", "model", NULL}},
    };
    uint64_t colour = mix(1, (unsigned char)part[0] + 256U * (unsigned char)part[1]);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (strncmp(part, kinds[k].type, 4) != 0) continue;
        json_t *row = box_row(box, kinds[k].list, (int)strtol(part + 4, NULL, 10));
        for (int f = 0; kinds[k].fields[f]; f++) {
            char *value = json_dumps(json_object_get(row, kinds[k].fields[f]),
                                     JSON_ENCODE_ANY | JSON_REAL_PRECISION(7));
            colour = mix_text(colour, value);
            free(value);
        }
    }
    return colour;
}

static size_t number_of(struct colours *colours, const char *part)
{
    json_t *number = json_object_get(colours->number, part);
    if (number) return (size_t)json_integer_value(number);
    json_object_set_new(colours->number, part, json_integer((json_int_t)colours->count));
    return colours->count++;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The first colours, and room to sum up those of neighbours. False when memory is short. */
static bool paint_first(const struct box *box, const json_t *links, struct colours *colours)
{
    size_t most = 2 * json_array_size(links) + 1;
    *colours = (struct colours){.number = json_object(),
                                .of = calloc(most, sizeof(uint64_t)),
                                .more = calloc(most, sizeof(uint64_t))};
    if (!colours->number || !colours->of || !colours->more) return false;
    for (size_t k = 0; k < json_array_size(links); k++) {
        for (size_t end = 0; end < 2; end++) {
            const char *part = json_string_value(json_array_get(json_array_get(links, k), end));
            colours->of[number_of(colours, part)] = first_colour(box, part);
        }
    }
    return true;
}

static bool paint(const struct box *box, struct colours *colours)
{
    const json_t *links = json_object_get(json_object_get(box->machine, "system"), "links");
    if (!paint_first(box, links, colours)) return false;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t k = 0; k < json_array_size(links); k++) {
            const json_t *link = json_array_get(links, k);
            size_t from = number_of(colours, json_string_value(json_array_get(link, 0)));
            size_t to = number_of(colours, json_string_value(json_array_get(link, 1)));
            uint64_t bw = (uint64_t)(json_number_value(json_array_get(link, 3)) * 1000);
            uint64_t kind = mix_text(mix(2, bw), json_string_value(json_array_get(link, 2)));
            colours->more[from] += mix(kind, colours->of[to]);
        }
        for (size_t part = 0; part < colours->count; part++) {
            colours->of[part] = mix(colours->of[part], colours->more[part]);
            colours->more[part] = 0;
        }
    }
    qsort(colours->of, colours->count, sizeof(uint64_t), by_value);
    return true;
}

/* Are they the same parts, joined in the same way? */
static bool is_renumbered(const struct box *a, const struct box *b)
{
    struct colours left;
    struct colours right;
    bool done = paint(a, &left);
    done = paint(b, &right) && done;
    bool same = done && left.count == right.count &&
                memcmp(left.of, right.of, left.count * sizeof(uint64_t)) == 0;
    json_decref(left.number);
    json_decref(right.number);
    free(left.of);
    free(left.more);
    free(right.of);
    free(right.more);
    return same;
}

/* Do both give these numbers or names, in another order? */
static bool is_shuffled(const struct box *a, const struct box *b, const char *list,
                        const char *field)
{
    struct tally left = {0};
    struct tally right = {0};
    bool moved = false;
    for (int k = 0; k < box_count(a, list); k++)
        count_one(&left, box_text(a, list, k, field));
    for (int k = 0; k < box_count(b, list); k++) {
        count_one(&right, box_text(b, list, k, field));
        moved = moved || strcmp(box_text(a, list, k, field), box_text(b, list, k, field)) != 0;
    }
    return moved && holds(&left, &right);
}

/* ---- the verdict ---- */

/* "NICs by PIX instead of PXB" for each fact in which they differ; part: for what there is, else
 * for how it is joined. */
static void put_facts(struct text *text, const struct box *a, const struct box *b, bool part)
{
    for (size_t f = 0; f < sizeof(facts) / sizeof(facts[0]); f++) {
        struct tally left = {0};
        struct tally right = {0};
        if (facts[f].part != part) continue;
        facts[f].count(a, b, &left);
        facts[f].count(b, a, &right);
        bool plain = left.kinds == 1 && right.kinds == 1 && (!part || left.total == right.total);
        if (holds(&left, &right)) continue;
        if (plain && strcmp(left.kind[0].what, right.kind[0].what) == 0) continue;
        text_add(text, "%s%s ", text->bytes ? "; " : "", facts[f].words);
        put_tally(text, &right, plain);
        text_add(text, " instead of ");
        put_tally(text, &left, plain);
    }
}

void verdict_make(const struct box *a, const struct box *b, const char *channels,
                  struct text *verdict)
{
    struct text parts = {0};
    struct text joints = {0};
    bool shuffled = is_shuffled(a, b, "gpus", "busid") || is_shuffled(a, b, "nets", "name");
    put_facts(&parts, a, b, true);
    put_facts(&joints, a, b, false);
    if (parts.bytes) {
        text_add(verdict, "different machines: %s", text_get(&parts));
    } else if (is_renumbered(a, b)) {
        text_add(verdict, "the same boxes, %s",
                 shuffled ? "renumbered" : "with other numbers or names");
    } else {
        text_add(verdict, "the same parts, %sjoined in another way",
                 shuffled ? "renumbered and " : "");
    }
    if (joints.bytes) text_add(verdict, "; %s", text_get(&joints));
    text_add(verdict, "; %s", channels);
    text_free(&parts);
    text_free(&joints);
}
