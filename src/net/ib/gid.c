/* Which of a port's addresses is used. InfiniBand routes by LID and uses the first one; RoCE has
 * one per IP address and version, of which the variables choose. */
#include "base/param.h"
#include "net/ib/device.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gid_request { /* what NCCL_IB_* variables ask of a port's GID */
    int family;
    int version;
    bool ranged;
    unsigned char range[16]; /* as a GID */
    int range_bits;
};

static bool is_mapped_v4(const union ibv_gid *gid)
{
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static bool is_usable(const union ibv_gid *gid)
{
    static const union ibv_gid zero;
    bool link_local = gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
    return memcmp(gid, &zero, sizeof(zero)) != 0 && !link_local;
}

/* 1 or 2; 0: the kernel does not say. */
static int version_of(const struct ib_port *port, int index)
{
    char path[sizeof(port->sysfs) + 64], text[32] = "";
    snprintf(path, sizeof(path), "%s/ports/%d/gid_attrs/types/%d", port->sysfs, port->number,
             index);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (!fgets(text, sizeof(text), file)) text[0] = '\0';
    fclose(file);
    if (strstr(text, "v2")) return 2;
    return text[0] ? 1 : 0;
}

static bool in_range(const union ibv_gid *gid, const struct gid_request *request)
{
    int whole = request->range_bits / 8, rest = request->range_bits % 8;
    unsigned char mask = (unsigned char)(0xff00 >> rest);
    if (memcmp(gid->raw, request->range, (size_t)whole) != 0) return false;
    return !rest || (gid->raw[whole] & mask) == (request->range[whole] & mask);
}

static bool suits(const struct ib_port *port, int index, const union ibv_gid *gid,
                  const struct gid_request *request)
{
    int family = is_mapped_v4(gid) ? AF_INET : AF_INET6;
    if (!is_usable(gid) || family != request->family) return false;
    if (request->ranged && !in_range(gid, request)) return false;
    int version = version_of(port, index);
    return !version || version == request->version;
}

/* NCCL_IB_ADDR_RANGE: address/bits of the wanted family. */
static void read_range(struct gid_request *request)
{
    const char *text = tt_param_str("NCCL_IB_ADDR_RANGE");
    char address[INET6_ADDRSTRLEN + 1] = "";
    if (!text) return;
    size_t bytes = strcspn(text, "/");
    bool v4 = request->family == AF_INET;
    int most = v4 ? 32 : 128;
    if (bytes < sizeof(address)) memcpy(address, text, bytes);
    long bits = text[bytes] ? strtol(text + bytes + 1, NULL, 10) : most;
    request->ranged = inet_pton(request->family, address, request->range + (v4 ? 12 : 0)) == 1 &&
                      bits >= 0 && bits <= most;
    if (v4) request->range[10] = request->range[11] = 0xff;
    request->range_bits = (int)bits + (v4 ? 96 : 0);
    if (!request->ranged) {
        tt_warn_setting("NCCL_IB_ADDR_RANGE '%.64s' is no address/bits of %s: it is ignored", text,
                        v4 ? "AF_INET" : "AF_INET6");
    }
}

bool tt_ib_gid_choose(const struct ib_port *port, int *index_out, union ibv_gid *gid_out)
{
    const char *family = tt_param_str("NCCL_IB_ADDR_FAMILY");
    int index = (int)tt_param_int("NCCL_IB_GID_INDEX");
    bool v6 = family && !strcmp(family, "AF_INET6");
    struct gid_request request = {.family = v6 ? AF_INET6 : AF_INET,
                                  .version = (int)tt_param_int("NCCL_IB_ROCE_VERSION_NUM")};
    if (!port->ethernet && index < 0) index = 0;
    *index_out = index;
    memset(gid_out, 0, sizeof(*gid_out));
    if (index >= 0) return !tt_ib()->verbs.query_gid(port->context, port->number, index, gid_out);
    read_range(&request);
    for (int i = 0; i < port->attr.gid_tbl_len; i++) {
        if (tt_ib()->verbs.query_gid(port->context, port->number, i, gid_out)) continue;
        *index_out = i;
        if (suits(port, i, gid_out, &request)) return true;
    }
    return false;
}
