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

enum { MOST = 15, HEAD = 7, TAIL = 6 }; /* characters of a name */

static void cut_middle(const char *own, size_t length, char name[BOX_NAME_BYTES])
{
    (void)snprintf(name, BOX_NAME_BYTES, "%.*s..%s", (int)prefix_bytes(own, HEAD), own,
                   own + prefix_bytes(own, length - TAIL));
}

static bool goes_on(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* "rdm..41s0f0-b..": from one character before those in which it differs from the other name. */
static void cut_around(const char *own, const char *other, char name[BOX_NAME_BYTES])
{
    enum { START = 3, PART = 8 };
    const size_t head = prefix_bytes(own, START);
    size_t from = 0;
    while (own[from] && own[from] == other[from])
        from++;
    if (from > head) from--;
    while (from > 0 && goes_on(own[from]))
        from--;
    const size_t bytes = prefix_bytes(own + from, PART);
    (void)snprintf(name, BOX_NAME_BYTES, "%.*s%s%.*s%s", from > head ? (int)head : (int)from, own,
                   from > head ? ".." : "", (int)bytes, own + from, own[from + bytes] ? ".." : "");
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += !goes_on(*text);
    return count;
}

/* Where another long name of the host would be cut to the same, what differs is kept. */
static void cut_name(const struct box *box, int net, char name[BOX_NAME_BYTES])
{
    const char *own = box_text(box, "nets", net, "name");
    char others[BOX_NAME_BYTES];
    cut_middle(own, characters(own), name);
    for (int n = 0; n < box_count(box, "nets"); n++) {
        const char *other = box_text(box, "nets", n, "name");
        const size_t length = characters(other);
        if (n == net || length <= MOST ||
            box_int(box, "nets", n, "host") != box_int(box, "nets", net, "host"))
            continue;
        cut_middle(other, length, others);
        if (strcmp(name, others) != 0) continue;
        cut_around(own, other, name);
        return;
    }
}

void box_net_name(const struct box *box, int net, char name[BOX_NAME_BYTES])
{
    const char *own = box_text(box, "nets", net, "name");
    int host = box_int(box, "nets", net, "host");
    bool unique = *own != '\0';
    for (int n = 0; n < box_count(box, "nets") && unique; n++) {
        unique = n == net || box_int(box, "nets", n, "host") != host ||
                 strcmp(box_text(box, "nets", n, "name"), own) != 0;
    }
    if (!unique) {
        (void)snprintf(name, BOX_NAME_BYTES, "NET %d", box_int(box, "nets", net, "dev"));
    } else if (characters(own) <= MOST) {
        (void)snprintf(name, BOX_NAME_BYTES, "%s", own);
    } else {
        cut_name(box, net, name);
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
