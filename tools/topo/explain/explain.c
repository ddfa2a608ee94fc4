/* `tutti topo explain`: why channels run where they do, which limit they meet, and what would move
 * it, in sentences. */
#include "explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- between GPUs ---- */

struct pairs { /* ordered pairs by type of path */
    int count, direct;
    double least, most; /* GB/s */
};

static void count_paths(const struct box *box, struct pairs paths[TT_PATH_COUNT_])
{
    int gpus = box_count(box, "gpus");
    for (int a = 0; a < gpus; a++) {
        for (int b = 0; b < gpus; b++) {
            struct pairs *pairs = &paths[path_type_of(box_path_type(box, "gpu_gpu", a, b))];
            double bw = box_path_bw(box, "gpu_gpu", a, b);
            if (a == b) continue;
            if (pairs->count == 0 || bw < pairs->least) pairs->least = bw;
            if (bw > pairs->most) pairs->most = bw;
            pairs->count++;
            pairs->direct += box_access(box, "p2p", a, b) != 0;
        }
    }
}

static void explain_pairs(const struct report *report)
{
    struct pairs paths[TT_PATH_COUNT_] = {{0}};
    count_paths(report->box, paths);
    for (int k = 0; k < TT_PATH_COUNT_; k++) {
        const struct pairs *pairs = &paths[k];
        struct text text = {0};
        if (pairs->count == 0) continue;
        text_add(&text, "%.4g", pairs->least);
        if (pairs->most > pairs->least) text_add(&text, " to %.4g", pairs->most);
        text_add(&text, " GB/s");
        if (k == TT_PATH_NET) {
            text_add(&text, ": the NICs are faster than the paths between them");
        } else if (pairs->direct == pairs->count) {
            text_add(&text, ", with direct access (P2P)");
        } else if (pairs->direct) {
            text_add(&text, ", %d of them with direct access (P2P)", pairs->direct);
        } else {
            text_add(&text, ", without direct access: by shared host memory (SHM)");
        }
        report_add(report, "pairs", "%d ordered pairs of GPUs reach each other %s (%s), %s.",
                   pairs->count, path_type_meaning(k), tt_path_type_name((enum tt_path_type)k),
                   text_get(&text));
        text_free(&text);
    }
}

/* ---- to NICs ---- */

enum { MANY = 32 }; /* ports that are not named one by one */

struct service { /* how a port serves the GPU that prefers it */
    double bw;
    int rank, type; /* -1: no rank prefers it */
    bool direct;
};

static struct service service_of(const struct box *box, int net)
{
    json_t *rank = json_object_get(box_row(box, "nets", net), "local_gpu_rank");
    struct service service = {.bw = box_real(box, "nets", net, "bw"), .rank = -1, .type = -1};
    if (!json_is_integer(rank)) return service;
    service.rank = (int)json_integer_value(rank);
    int gpu = box_gpu_of_rank(box, service.rank);
    service.type = path_type_of(box_path_type(box, "gpu_net", gpu, net));
    service.direct = box_access(box, "gdr_send", gpu, net) && box_access(box, "gdr_recv", gpu, net);
    return service;
}

static bool is_same_service(const struct service *a, const struct service *b)
{
    return a->bw == b->bw && a->type == b->type && a->direct == b->direct;
}

struct ports {                         /* that serve alike */
    struct text names, numbers, ranks; /* owned */
    int count, first_rank;
    bool named; /* otherwise than by their numbers */
    bool apart; /* of several ranks */
};

static void add_port(struct ports *ports, const struct box *box, int net, int rank)
{
    char name[BOX_NAME_BYTES];
    char number[BOX_NAME_BYTES];
    const char *comma = ports->count ? ", " : "";
    box_net_name(box, net, name);
    (void)snprintf(number, sizeof(number), "NET %d", box_int(box, "nets", net, "dev"));
    ports->named = ports->named || strcmp(name, number) != 0;
    text_add(&ports->names, "%s%s", comma, name);
    text_add(&ports->numbers, "%s%s", comma, ports->count ? number + 4 : number);
    text_add(&ports->ranks, "%s%d", comma, rank);
    if (!ports->count) ports->first_rank = rank;
    ports->apart = ports->apart || rank != ports->first_rank;
    ports->count++;
}

/* In one sentence: by name, and by the number that NCCL's log has. */
static void say_ports(const struct report *report, const struct ports *ports,
                      const struct service *service)
{
    struct text text = {0};
    bool many = ports->count > MANY;
    bool several = ports->count > 1;
    if (many) text_add(&text, "%d ports (", ports->count);
    if (!many) text_add(&text, "%s (", text_get(&ports->names));
    if (!many && ports->named) text_add(&text, "%s; ", text_get(&ports->numbers));
    text_add(&text, "%.4g GB/s%s) %s", service->bw, several ? " each" : "", several ? "are" : "is");
    if (service->rank < 0) {
        report_add(report, "nic", "%s no GPU's first choice: others are as near or faster.",
                   text_get(&text));
    } else {
        text_add(&text, " the first choice of ");
        if (!ports->apart) {
            text_add(&text, "rank %d", ports->first_rank);
        } else if (many) {
            text_add(&text, "a GPU each");
        } else {
            text_add(&text, "ranks %s, in this order", text_get(&ports->ranks));
        }
        report_add(
            report, "nic", "%s, reached %s (%s)%s.", text_get(&text),
            path_type_meaning(service->type), tt_path_type_name((enum tt_path_type)service->type),
            service->direct ? ", with GPU-direct" : ", through the CPU's memory (no GPU-direct)");
    }
    text_free(&text);
}

/* A port and those that serve like it; nothing when an earlier one does. */
static void explain_same(const struct report *report, int first)
{
    const struct service service = service_of(report->box, first);
    struct ports ports = {.count = 0};
    for (int n = 0; n < box_count(report->box, "nets"); n++) {
        const struct service other = service_of(report->box, n);
        if (!is_same_service(&service, &other)) continue;
        if (n < first) break;
        add_port(&ports, report->box, n, other.rank);
    }
    if (ports.count) say_ports(report, &ports, &service);
    text_free(&ports.names);
    text_free(&ports.numbers);
    text_free(&ports.ranks);
}

/* ---- the command ---- */

static void title_domain(const struct report *report, const struct topo_scenario *scenario,
                         const struct tt_topo_domain *domain)
{
    const char *where = domain->inter ? ", one node of several" : ", alone";
    if (scenario->ndomains == 1) {
        report_add(report, "title", "channels of the %d GPU%s%s", domain->nranks,
                   domain->nranks == 1 ? "" : "s", where);
    } else if (domain->nranks == 1) {
        report_add(report, "title", "channels of rank %d%s", domain->rank[0], where);
    } else {
        report_add(report, "title", "channels of %d GPUs, rank %d and others%s", domain->nranks,
                   domain->rank[0], where);
    }
}

static bool explain_all(const struct report *report, const struct tt_topo_file *file,
                        const struct tt_topo_options *look, const char *name,
                        const struct topo_scenario *scenario)
{
    struct full_parts full = {.part = {{.bw = 0}}};
    report_add(report, "title", "%d x %s: GPUs %d, network ports %d, CPUs %d", scenario->nodes,
               name, box_count(report->box, "gpus"), box_count(report->box, "nets"),
               box_count(report->box, "cpus"));
    report_add(report, "title", "paths");
    explain_pairs(report);
    for (int n = 0; n < box_count(report->box, "nets"); n++)
        explain_same(report, n);
    bool done = true;
    for (int d = 0; d < scenario->ndomains && done; d++) {
        const struct tt_topo_domain *domain = &scenario->domains[d];
        struct tt_topo_loads loads[TT_GRAPH_COUNT_];
        topo_progress("weighing links");
        done = tt_topo_loads_make(file, look, domain, loads) == ncclSuccess;
        topo_progress(NULL);
        if (!done) break;
        title_domain(report, scenario, domain);
        explain_domain(report, domain, loads);
        explain_full(&full, loads);
        tt_topo_loads_free(loads);
    }
    if (!done) topo_print_error();
    report_add(report, "title", "what would be faster");
    explain_advice(report, scenario, &full);
    return done;
}

json_t *topo_findings(const struct tt_topo_file *file, const struct box *box,
                      const struct tt_topo_options *look, const char *name,
                      const struct topo_scenario *scenario)
{
    const struct report report = {.box = box, .findings = json_array()};
    if (explain_all(&report, file, look, name, scenario)) return report.findings;
    json_decref(report.findings);
    return NULL;
}

int topo_explain(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct topo_scenario scenario = {0};
    struct box box = {0};
    bool done = machine && box_init(&box, machine) &&
                topo_scenario_make(file, &options->look, options->nodes[0], &scenario);
    if (done) {
        const char *name = topo_name(options->paths[0]);
        const struct report text = {.box = &box};
        json_t *found = NULL;
        if (options->json) found = topo_findings(file, &box, &options->look, name, &scenario);
        done = options->json ? found != NULL
                             : explain_all(&text, file, &options->look, name, &scenario);
        if (found) topo_print(found);
        json_decref(found);
    }
    topo_scenario_free(&scenario);
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
