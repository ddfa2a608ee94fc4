/* `tutti topo explain`: why channels run where they do, which limit they meet, and what would move
 * it, in sentences. */
#include "explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- between GPUs ---- */

struct ways { /* ordered pairs by type of path */
    int pairs, direct;
    double least, most; /* GB/s */
};

static void count_ways(const struct box *box, struct ways ways[TT_WAY_COUNT_])
{
    int gpus = tale_count(box, "gpus");
    for (int a = 0; a < gpus; a++) {
        for (int b = 0; b < gpus; b++) {
            struct ways *way = &ways[tale_way(box_way(box, "gpu_gpu", a, b))];
            double bw = box_way_bw(box, "gpu_gpu", a, b);
            if (a == b) continue;
            if (way->pairs == 0 || bw < way->least) way->least = bw;
            if (bw > way->most) way->most = bw;
            way->pairs++;
            way->direct += tale_access(box, "p2p", a, b) != 0;
        }
    }
}

static void explain_pairs(const struct tale *tale)
{
    struct ways ways[TT_WAY_COUNT_] = {{0}};
    count_ways(tale->box, ways);
    for (int k = 0; k < TT_WAY_COUNT_; k++) {
        const struct ways *way = &ways[k];
        struct words words = {0};
        if (way->pairs == 0) continue;
        words_add(&words, "%.4g", way->least);
        if (way->most > way->least) words_add(&words, " to %.4g", way->most);
        words_add(&words, " GB/s");
        if (k == TT_WAY_NET) {
            words_add(&words, ": the NICs are faster than the ways between them");
        } else if (way->direct == way->pairs) {
            words_add(&words, ", with direct access (P2P)");
        } else if (way->direct) {
            words_add(&words, ", %d of them with direct access (P2P)", way->direct);
        } else {
            words_add(&words, ", without direct access: by shared host memory (SHM)");
        }
        tale_say(tale, "pairs", "%d ordered pairs of GPUs reach each other %s (%s), %s.",
                 way->pairs, tale_meaning(k), tt_topo_way_name((enum tt_topo_way)k),
                 words_text(&words));
        words_free(&words);
    }
}

/* ---- to NICs ---- */

enum { MANY = 32 }; /* ports that are not named one by one */

struct service { /* how a port serves the GPU that prefers it */
    double bw;
    int rank, way; /* -1: nobody prefers it */
    bool direct;
};

static struct service service_of(const struct box *box, int net)
{
    json_t *rank = json_object_get(box_row(box, "nets", net), "local_gpu_rank");
    struct service service = {.bw = box_real(box, "nets", net, "bw"), .rank = -1, .way = -1};
    if (!json_is_integer(rank)) return service;
    service.rank = (int)json_integer_value(rank);
    int gpu = tale_index(box, service.rank);
    service.way = tale_way(box_way(box, "gpu_net", gpu, net));
    service.direct =
        tale_access(box, "gdr_send", gpu, net) && tale_access(box, "gdr_recv", gpu, net);
    return service;
}

static bool is_alike(const struct service *a, const struct service *b)
{
    return a->bw == b->bw && a->way == b->way && a->direct == b->direct;
}

static void explain_alike(const struct tale *tale, int first)
{
    const struct box *box = tale->box;
    const struct service service = service_of(box, first);
    struct words nets = {0};
    struct words ranks = {0};
    int count = 0;
    for (int n = 0; n < tale_count(box, "nets"); n++) {
        const struct service other = service_of(box, n);
        if (!is_alike(&service, &other)) continue;
        if (n < first) goto out; /* told with that one */
        words_add(&nets, "%s%d", count ? ", " : "", box_int(box, "nets", n, "dev"));
        words_add(&ranks, "%s%d", count ? ", " : "", other.rank);
        count++;
    }
    const char *each = count > 1 ? " each" : "";
    const char *how =
        service.direct ? ", with GPU-direct" : ", by way of the CPU's memory (no GPU-direct)";
    if (service.rank < 0) {
        tale_say(tale, "nic",
                 "NET %s (%.4g GB/s%s) %s no GPU's first choice: others are as near or faster.",
                 words_text(&nets), service.bw, each, count > 1 ? "are" : "is");
    } else if (count > MANY) {
        tale_say(tale, "nic",
                 "%d ports (%.4g GB/s each) are the first choice of a GPU each, "
                 "reached %s (%s)%s.",
                 count, service.bw, tale_meaning(service.way),
                 tt_topo_way_name((enum tt_topo_way)service.way), how);
    } else {
        tale_say(tale, "nic",
                 "NET %s (%.4g GB/s%s) %s the first choice of rank %s%s, reached %s "
                 "(%s)%s.",
                 words_text(&nets), service.bw, each, count > 1 ? "are" : "is", words_text(&ranks),
                 count > 1 ? ", in this order" : "", tale_meaning(service.way),
                 tt_topo_way_name((enum tt_topo_way)service.way), how);
    }
out:
    words_free(&nets);
    words_free(&ranks);
}

/* ---- the command ---- */

static void title_domain(const struct tale *tale, const struct topo_scenario *scenario,
                         const struct tt_topo_domain *domain)
{
    const char *where = domain->inter ? ", one node of several" : ", alone";
    if (scenario->ndomains == 1) {
        tale_say(tale, "title", "channels of the %d GPU%s%s", domain->nranks,
                 domain->nranks == 1 ? "" : "s", where);
    } else if (domain->nranks == 1) {
        tale_say(tale, "title", "channels of rank %d%s", domain->rank[0], where);
    } else {
        tale_say(tale, "title", "channels of %d GPUs, rank %d and others%s", domain->nranks,
                 domain->rank[0], where);
    }
}

static bool tell(const struct tale *tale, const struct tt_topo_file *file,
                 const struct topo_options *options, const struct topo_scenario *scenario)
{
    struct tt_topo_loads first[TT_GRAPH_COUNT_] = {{0}};
    tale_say(tale, "title", "%d x %s: GPUs %d, network ports %d, CPUs %d", scenario->nodes,
             topo_name(options->paths[0]), tale_count(tale->box, "gpus"),
             tale_count(tale->box, "nets"), tale_count(tale->box, "cpus"));
    tale_say(tale, "title", "ways");
    explain_pairs(tale);
    for (int n = 0; n < tale_count(tale->box, "nets"); n++)
        explain_alike(tale, n);
    bool done = true;
    for (int d = 0; d < scenario->ndomains && done; d++) {
        const struct tt_topo_domain *domain = &scenario->domains[d];
        struct tt_topo_loads loads[TT_GRAPH_COUNT_];
        topo_progress("weighing links");
        done = tt_topo_loads_make(file, &options->look, domain, loads) == ncclSuccess;
        topo_progress(NULL);
        if (!done) break;
        title_domain(tale, scenario, domain);
        explain_domain(tale, domain, loads);
        if (d == 0) {
            memcpy(first, loads, sizeof(first));
        } else {
            tt_topo_loads_free(loads);
        }
    }
    if (!done) topo_tell();
    tale_say(tale, "title", "what would be faster");
    explain_advice(tale, scenario, first);
    tt_topo_loads_free(first);
    return done;
}

int topo_explain(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct topo_scenario scenario = {0};
    struct box box = {0};
    bool done = machine && box_init(&box, machine) &&
                topo_scenario_make(file, &options->look, options->nodes[0], &scenario);
    if (done) {
        struct tale tale = {.box = &box, .findings = options->json ? json_array() : NULL};
        done = tell(&tale, file, options, &scenario);
        if (tale.findings) topo_print(tale.findings);
        json_decref(tale.findings);
    }
    topo_scenario_free(&scenario);
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
