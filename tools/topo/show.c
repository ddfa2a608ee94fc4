/* `tutti topo show`: a machine as a tree of text, and who reaches whom how. */
#include "box.h"
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tree ---- */

static void print_cpu(FILE *out, const struct box *box, const struct box_node *node)
{
    const char *vendor = box_text(box, "cpus", node->index, "vendor");
    const char *model = box_text(box, "cpus", node->index, "model");
    (void)fprintf(out, "CPU %d: NUMA domain %d", node->index,
                  box_int(box, "cpus", node->index, "numa"));
    if (box_int(box, "cpus", node->index, "host")) {
        (void)fprintf(out, " of host %d", box_int(box, "cpus", node->index, "host"));
    }
    (void)fprintf(out, ", %s%s%s", box_text(box, "cpus", node->index, "arch"), *vendor ? " " : "",
                  vendor);
    if (*model) fprintf(out, " (%s)", model);
}

static void print_gpu(FILE *out, const struct box *box, const struct box_node *node)
{
    int g = node->gpu;
    const char *model = box_gpu_model(box, g);
    (void)fprintf(out, "GPU %d: %s%srank %d, %s, sm_%d%s", g, model ? model : "", model ? ", " : "",
                  box_int(box, "gpus", g, "rank"), box_text(box, "gpus", g, "busid"),
                  box_int(box, "gpus", g, "cc"),
                  box_int(box, "gpus", g, "gdr") ? "" : ", no GPU-direct");
    if (node->ranks > 1) fprintf(out, ", %d ranks", node->ranks);
    if (node->nvlink > 0) {
        (void)fprintf(out, ", NVLink %.4g GB/s%s", node->nvlink,
                      node->switched ? " to the NVSwitch" : "");
    }
    if (node->c2c > 0) fprintf(out, ", C2C %.4g GB/s", node->c2c);
}

static void print_net(FILE *out, const struct box *box, const struct box_node *node)
{
    int n = node->index;
    const char *name = box_text(box, "nets", n, "name");
    (void)fprintf(out, "port %s%snet %d, %.4g GB/s, latency %.4g us%s", name, *name ? ": " : "",
                  box_int(box, "nets", n, "dev"), box_real(box, "nets", n, "bw"),
                  box_real(box, "nets", n, "latency"),
                  box_int(box, "nets", n, "gdr") ? "" : ", no GPU-direct");
    json_t *rank = json_object_get(box_row(box, "nets", n), "local_gpu_rank");
    if (json_is_integer(rank)) fprintf(out, ", next to rank %d", (int)json_integer_value(rank));
}

static void print_node(FILE *out, const struct box *box, int k)
{
    const struct box_node *node = &box->node[k];
    (void)fprintf(out, "%*s", 2 * node->depth, "");
    switch (node->kind) {
    case BOX_CPU: print_cpu(out, box, node); break;
    case BOX_GPU: print_gpu(out, box, node); break;
    case BOX_NET: print_net(out, box, node); break;
    case BOX_NIC: fprintf(out, "NIC %d", node->index); break;
    default: fprintf(out, "switch %d", node->index); break;
    }
    if (node->kind != BOX_CPU && node->kind != BOX_NET) {
        if (node->up_bw < BOX_NO_LINK) {
            (void)fprintf(out, "  [%.4g GB/s up]", node->up_bw);
        } else {
            (void)fprintf(out, "  [no PCI link known]");
        }
    }
    (void)fprintf(out, "\n");
}

static void print_tree(FILE *out, const struct box *box, int k)
{
    print_node(out, box, k);
    for (int child = k + 1; child < box->count; child++) {
        if (box->node[child].parent == k) print_tree(out, box, child);
    }
}

void topo_show_tree(const struct box *box, FILE *out)
{
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].parent < 0) print_tree(out, box, k);
    }
}

/* ---- matrices ---- */

static void print_heads(const struct box *box, bool nets)
{
    printf("%-8s", "");
    for (int g = 0; g < box_count(box, "gpus"); g++)
        printf("GPU%-6d", g);
    for (int n = 0; nets && n < box_count(box, "nets"); n++) {
        char name[BOX_NAME_BYTES];
        box_net_name(box, n, name);
        printf("%-8s ", name);
    }
}

/* width: of the column, at least */
static void print_path(const char *type, double bw, size_t width)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%s", type);
    if (bw > 0) (void)snprintf(text, sizeof(text), "%s/%.0f", type, bw);
    printf("%-*s ", width > 8 ? (int)width : 8, text);
}

static void print_row(const struct box *box, int g)
{
    printf("GPU%-5d", g);
    for (int p = 0; p < box_count(box, "gpus"); p++) {
        if (p == g) {
            printf("%-8s ", "X");
        } else {
            print_path(box_path_type(box, "gpu_gpu", g, p), box_path_bw(box, "gpu_gpu", g, p), 0);
        }
    }
    for (int n = 0; n < box_count(box, "nets"); n++) {
        char name[BOX_NAME_BYTES];
        box_net_name(box, n, name);
        print_path(box_path_type(box, "gpu_net", g, n), box_path_bw(box, "gpu_net", g, n),
                   strlen(name));
    }
    int cpu = box_int(box, "gpus", g, "local_cpu");
    printf("%d\n", cpu < 0 ? -1 : box_int(box, "cpus", cpu, "numa"));
}

static void print_matrix(const struct box *box)
{
    if (!box_count(box, "gpus")) {
        printf("no GPU, hence no paths\n");
        return;
    }
    print_heads(box, true);
    printf("NUMA\n");
    for (int g = 0; g < box_count(box, "gpus"); g++)
        print_row(box, g);
    printf("\npath/GB/s. NVL NVLink; NVB NVLink through a GPU; C2C chip to chip; PIX at most one\n"
           "PCI switch; PXB several; P2C C2C, then PCI; PXN through another GPU's NVLink; PHB\n"
           "through the CPU; SYS across CPUs; NET only by the network; DIS not at all\n");
}

static void print_access(const struct box *box, int g, int p)
{
    int relay = box_access(box, "p2p_intermediate_rank", g, p);
    char text[16] = "-";
    if (p == g) {
        text[0] = 'X';
    } else if (box_access(box, "p2p", g, p) && relay >= 0) {
        (void)snprintf(text, sizeof(text), "via %d", relay);
    } else if (box_access(box, "p2p", g, p)) {
        bool reads = box_access(box, "p2p_read", g, p);
        (void)snprintf(text, sizeof(text), "ok%s", reads ? ",read" : "");
    }
    printf("%-8s ", text);
}

static void print_p2p(const struct box *box)
{
    print_heads(box, false);
    printf("\n");
    for (int g = 0; g < box_count(box, "gpus"); g++) {
        printf("GPU%-5d", g);
        for (int p = 0; p < box_count(box, "gpus"); p++)
            print_access(box, g, p);
        printf("\n");
    }
    printf("\nok direct access (read: the receiver reads); via N through rank N; - none\n");
}

static bool print_xml(const struct tt_topo_file *file)
{
    char *text = tt_topo_file_print(file);
    if (text) (void)fputs(text, stdout);
    free(text);
    return text != NULL;
}

int topo_show(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct box box = {0};
    bool done = machine && box_init(&box, machine);
    if (done && options->xml) {
        done = print_xml(file);
    } else if (done && options->svg) {
        done = topo_show_svg(&box, topo_name(options->paths[0]), stdout);
    } else if (done && options->json) {
        topo_print(machine);
    } else if (done && options->p2p) {
        print_p2p(&box);
    } else if (done) {
        topo_show_tree(&box, stdout);
        printf("\n");
        print_matrix(&box);
    }
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
