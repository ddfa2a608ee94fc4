/* `tutti topo check`: is a machine file sound? Warnings do not make it unsound; with --strict
 * they are a "no" as well. A part that has less than most of its equals is one: where such a link
 * has lost lanes, the file is right and the machine is not. */
#include "explain/explain.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* ---- parts that have less than their equals ---- */

enum { EQUALS_LEAST = 3 }; /* of two either may be right */

struct equals {
    enum box_kind kind;
    bool nvlink;       /* GPU: its NVLinks together, else the link to the part above */
    const char *noun;  /* of the part */
    const char *speed; /* of what */
};

static double speed_of(const struct box_node *node, const struct equals *equals)
{
    const double bw = equals->nvlink ? node->nvlink : node->up_bw;
    return bw > 0 && bw < BOX_NO_LINK ? bw : 0;
}

/* Of the same model, at the same depth. */
static bool are_equals(const struct box *box, const struct box_node *a, const struct box_node *b)
{
    if (a->kind != b->kind || a->depth != b->depth) return false;
    if (a->kind != BOX_GPU || a->gpu < 0 || b->gpu < 0) return a->kind != BOX_GPU;
    const char *left = box_gpu_model(box, a->gpu), *right = box_gpu_model(box, b->gpu);
    return box_int(box, "gpus", a->gpu, "cc") == box_int(box, "gpus", b->gpu, "cc") &&
           !strcmp(left ? left : "", right ? right : "");
}

/* One line where more than half of the part's equals, itself included, have one speed, and this
 * part less. */
static void judge_part(const struct box *box, const struct box_node *part,
                       const struct equals *equals, struct text *warnings)
{
    const double own = speed_of(part, equals);
    double most = 0;
    int all = 0, best = 0;
    for (int k = 0; k < box->count; k++) {
        if (!are_equals(box, part, &box->node[k])) continue;
        const double speed = speed_of(&box->node[k], equals);
        all++;
        if (speed > most) best = 0;
        if (speed > most) most = speed;
        best += speed == most;
    }
    if (all < EQUALS_LEAST || best * 2 <= all || own >= most) return;
    const int number = part->kind == BOX_GPU ? part->gpu : part->index;
    text_add(warnings, "%s %d has %.4g GB/s %s, ", equals->noun, number, own, equals->speed);
    if (best + 1 == all) text_add(warnings, "the %d others %.4g\n", best, most);
    if (best + 1 < all) text_add(warnings, "%d of its equals %.4g\n", best, most);
}

static void judge_equals(json_t *machine, struct text *warnings)
{
    static const struct equals kinds[] = {
        {BOX_GPU, true, "GPU", "of NVLink"},
        {BOX_GPU, false, "GPU", "of PCI"},
        {BOX_NIC, false, "NIC", "of PCI"},
        {BOX_PCI, false, "PCI switch", "to the part above it"},
    };
    struct box box;
    if (!box_init(&box, machine)) return;
    for (size_t e = 0; e < sizeof(kinds) / sizeof(kinds[0]); e++) {
        for (int k = 0; k < box.count; k++) {
            if (box.node[k].kind == kinds[e].kind)
                judge_part(&box, &box.node[k], &kinds[e], warnings);
        }
    }
    box_fini(&box);
}

/* ---- the whole machine ---- */

/* A name is the key of a network port. */
static void judge_name(const struct box *box, int k, struct text *warnings)
{
    const char *name = box_text(box, "nets", k, "name");
    for (int other = 0; other < k && *name; other++) {
        if (strcmp(name, box_text(box, "nets", other, "name")) != 0 ||
            box_int(box, "nets", k, "host") != box_int(box, "nets", other, "host") ||
            box_int(box, "nets", k, "port") != box_int(box, "nets", other, "port"))
            continue;
        text_add(warnings, "NET %d and NET %d have the same name, %s\n",
                 box_int(box, "nets", other, "dev"), box_int(box, "nets", k, "dev"), name);
    }
}

/* Without a GPU nothing is searched; a port that is a hundred times slower than another has its
 * speed in another unit. */
static void judge_whole(json_t *machine, struct text *warnings)
{
    struct box box;
    if (!box_init(&box, machine)) return;
    const int count = box_count(&box, "nets");
    double most = 0;
    for (int k = 0; k < count; k++) {
        const double bw = box_real(&box, "nets", k, "bw");
        if (bw > most) most = bw;
    }
    if (box_count(&box, "gpus") == 0) text_add(warnings, "there is no GPU\n");
    for (int k = 0; k < count; k++) {
        const double bw = box_real(&box, "nets", k, "bw");
        judge_name(&box, k, warnings);
        if (bw <= 0 || bw * 100 > most) continue;
        text_add(warnings, "NET %d has %.4g GB/s, another port %.4g: speed is in Mb/s\n",
                 box_int(&box, "nets", k, "dev"), bw, most);
    }
    box_fini(&box);
}

static size_t count_of(const json_t *machine, const char *parts)
{
    return json_array_size(json_object_get(json_object_get(machine, "system"), parts));
}

int topo_check(const struct topo_options *options)
{
    struct text warnings = {0};
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    if (file) text_add(&warnings, "%s", tt_topo_file_warnings(file));
    const size_t said = warnings.bytes;
    if (machine) judge_equals(machine, &warnings);
    if (machine) judge_whole(machine, &warnings);
    const char *all = warnings.bytes ? text_get(&warnings) : "";
    (void)fputs(all + said, stderr);
    if (machine && !options->json) {
        const size_t gpus = count_of(machine, "gpus"), nics = count_of(machine, "nets");
        const size_t count = count_lines(all);
        printf("%s: sound; %zu GPU%s, %zu NIC%s, %zu warning%s\n", topo_name(options->paths[0]),
               gpus, gpus == 1 ? "" : "s", nics, nics == 1 ? "" : "s", count,
               count == 1 ? "" : "s");
    }
    if (options->json) {
        const char *error = machine ? NULL : tt_last_error();
        json_t *answer = json_pack("{s:s, s:b, s:s?, s:s}", "file", topo_name(options->paths[0]),
                                   "sound", machine != NULL, "error", error, "warnings", all);
        topo_print(answer);
        json_decref(answer);
    }
    int status = machine && !(options->strict && *all) ? 0 : 1;
    json_decref(machine);
    tt_topo_file_free(file);
    text_free(&warnings);
    return status;
}
