/* Names of devices as people know them: a port's is the file's, a GPU's is that of its product.
 * NCCL's machine files name no GPUs, so the ids of the PCI element are looked up; what is not in
 * the table has no name. */
#include "box.h"
#include "machine.h"

#include <stdio.h>
#include <string.h>

struct model {
    const char *pci_id, *name;
};

static const struct model models[] = {
    {"10de:1db1", "V100 SXM2"}, {"10de:1db4", "V100 PCIe"}, {"10de:1db5", "V100 SXM2"},
    {"10de:1db6", "V100 PCIe"}, {"10de:1eb8", "T4"},        {"10de:20b0", "A100 SXM4"},
    {"10de:20b2", "A100 SXM4"}, {"10de:20b5", "A100 PCIe"}, {"10de:20f1", "A100 PCIe"},
    {"10de:2204", "RTX 3090"},  {"10de:2230", "RTX A6000"}, {"10de:2235", "A40"},
    {"10de:2236", "A10"},       {"10de:2237", "A10G"},      {"10de:2330", "H100 SXM"},
    {"10de:2331", "H100 PCIe"}, {"10de:2335", "H200 SXM"},  {"10de:2342", "GH200"},
    {"10de:2684", "RTX 4090"},  {"10de:26b5", "L40"},       {"10de:26b9", "L40S"},
    {"10de:26ba", "L20"},       {"10de:27b2", "RTX 4000"},  {"10de:27b8", "L4"},
    {"10de:2901", "B200"},      {"10de:2941", "GB200"},
};

const char *box_gpu_model(const struct box *box, int gpu)
{
    const char *pci_id = box_text(box, "gpus", gpu, "pci_id");
    for (size_t k = 0; k < sizeof(models) / sizeof(models[0]); k++) {
        if (strcmp(models[k].pci_id, pci_id) == 0) return models[k].name;
    }
    return NULL;
}

const char *box_gpu_busid(const struct box *box, int gpu)
{
    const char *busid = box_text(box, "gpus", gpu, "busid");
    return strncmp(busid, "0000:", 5) == 0 ? busid + 5 : busid;
}

/* Bytes of the first `count` characters of UTF-8. */
static size_t prefix_bytes(const char *text, size_t count)
{
    size_t bytes = 0;
    while (text[bytes] && count > 0) {
        bytes++;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80)
            bytes++;
        count--;
    }
    return bytes;
}

void box_net_name(const struct box *box, int net, char name[BOX_NAME_BYTES])
{
    enum { MOST = 15, HEAD = 7, TAIL = 6 };
    const char *own = box_text(box, "nets", net, "name");
    int host = box_int(box, "nets", net, "host");
    bool unique = *own != '\0';
    for (int n = 0; n < box_count(box, "nets") && unique; n++) {
        unique = n == net || box_int(box, "nets", n, "host") != host ||
                 strcmp(box_text(box, "nets", n, "name"), own) != 0;
    }
    size_t all = strlen(own);
    size_t head = prefix_bytes(own, HEAD);
    size_t length = 0; /* characters */
    for (size_t k = 0; k < all; k++)
        length += ((unsigned char)own[k] & 0xc0) != 0x80;
    if (!unique) {
        (void)snprintf(name, BOX_NAME_BYTES, "NET %d", box_int(box, "nets", net, "dev"));
    } else if (length <= MOST) {
        (void)snprintf(name, BOX_NAME_BYTES, "%s", own);
    } else {
        size_t tail = prefix_bytes(own, length - TAIL);
        (void)snprintf(name, BOX_NAME_BYTES, "%.*s..%s", (int)head, own, own + tail);
    }
}

int box_net_index(const struct box *box, uint64_t net)
{
    int host = (int)(net >> 56);
    int dev = (int)(net & 0xffffff);
    for (int n = 0; n < box_count(box, "nets"); n++) {
        if (box_int(box, "nets", n, "dev") == dev && box_int(box, "nets", n, "host") == host)
            return n;
    }
    return -1;
}

int topo_rank_run(const int *ranks, int from, int count)
{
    enum { SHORT_ROW = 16, LEAST = 4 };
    const int *row = ranks + from;
    const int most = count - from;
    int run = 1;
    if (count <= SHORT_ROW || most < LEAST) return 1;
    const int by = row[1] - row[0];
    while ((by == 1 || by == -1) && run < most && row[run] - row[run - 1] == by)
        run++;
    return run < LEAST ? 1 : run;
}
