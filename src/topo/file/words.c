/* Tables are matched by prefix, first entry wins, because the texts come from drivers that append
 * to them ("8 GT/s PCIe"). */
#include "words.h"

#include "xml.h"

#include "base/mem.h"
#include "base/text/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *text;
    int number;
};

static int lookup(const struct word *words, size_t nwords, const char *text, bool *known_out)
{
    for (size_t k = 0; k + 1 < nwords; k++) {
        if (strncmp(words[k].text, text, strlen(words[k].text)) != 0) continue;
        if (known_out) *known_out = true;
        return words[k].number;
    }
    if (known_out) *known_out = false;
    return words[nwords - 1].number; /* the fallback stands last */
}

enum tt_topo_role tt_word_role(const char *device_class, bool *known_out)
{
    static const struct word words[] = {
        {"0x060400", TT_ROLE_BRIDGE}, {"0x080100", TT_ROLE_BRIDGE}, {"0x068000", TT_ROLE_NVSWITCH},
        {"0x068001", TT_ROLE_CPU},    {"0x03", TT_ROLE_GPU},        {"0x02", TT_ROLE_NIC},
        {NULL, TT_ROLE_BRIDGE},
    };
    return (enum tt_topo_role)lookup(words, TT_LEN(words), device_class, known_out);
}

int tt_word_link_units(const char *link_speed, bool *known_out)
{
    static const struct word words[] = {
        {"2.5 GT/s", 15},
        {"5 GT/s", 30},
        {"8 GT/s", 60},
        {"16 GT/s", 120},
        {"32 GT/s", 240},
        {"5.0 GT/s PCIe", 30},
        {"8.0 GT/s PCIe", 60},
        {"16.0 GT/s PCIe", 120},
        {"32.0 GT/s PCIe", 240},
        {"64.0 GT/s PCIe", 480},
        {NULL, 60},
    };
    return lookup(words, TT_LEN(words), link_speed, known_out);
}

enum tt_topo_arch tt_word_arch(const char *text)
{
    static const struct word words[] = {{"x86_64", TT_ARCH_X86},
                                        {"arm64", TT_ARCH_ARM},
                                        {"ppc64", TT_ARCH_POWER},
                                        {NULL, TT_ARCH_NONE}};
    return (enum tt_topo_arch)lookup(words, TT_LEN(words), text, NULL);
}

enum tt_topo_vendor tt_word_vendor(const char *text)
{
    static const struct word words[] = {
        {"GenuineIntel", TT_VENDOR_INTEL},
        {"AuthenticAMD", TT_VENDOR_AMD},
        {"CentaurHauls", TT_VENDOR_ZHAOXIN},
        {"  Shanghai  ", TT_VENDOR_ZHAOXIN},
        {NULL, TT_VENDOR_NONE},
    };
    return (enum tt_topo_vendor)lookup(words, TT_LEN(words), text, NULL);
}

enum tt_topo_model tt_word_model(enum tt_topo_vendor vendor, int64_t family, int64_t model)
{
    if (vendor == TT_VENDOR_ZHAOXIN) {
        return family == 7 && model == 0x5B ? TT_MODEL_YONGFENG : TT_MODEL_NONE;
    }
    if (vendor != TT_VENDOR_INTEL) return TT_MODEL_NONE;
    if (family != 6 || model < 0x55) return TT_MODEL_INTEL_BDW;
    if (model >= 0xCF) return TT_MODEL_INTEL_ERP;
    return model >= 0x8F ? TT_MODEL_INTEL_SRP : TT_MODEL_INTEL_SKL;
}

bool tt_word_busid(const char *text, uint64_t *busid_out)
{
    uint64_t busid = 0;
    int ndigits = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '.' || *c == ':') continue;
        if (!isxdigit((unsigned char)*c) || ++ndigits > 16) return false;
        int digit = isdigit((unsigned char)*c) ? *c - '0' : tolower((unsigned char)*c) - 'a' + 10;
        busid = busid << 4 | (uint64_t)digit;
    }
    *busid_out = busid;
    return ndigits > 0;
}

void tt_word_busid_text(uint64_t busid, char text[24])
{
    (void)snprintf(text, 24, "%04x:%02x:%02x.%x", (unsigned int)(busid >> 20 & 0xfffffff),
                   (unsigned int)(busid >> 12 & 0xff), (unsigned int)(busid >> 4 & 0xff),
                   (unsigned int)(busid & 0xf));
}

bool tt_word_int(const char *text, int64_t *value_out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (end == text || *end || errno) return false;
    *value_out = value;
    return true;
}

bool tt_word_hex(const char *text, uint64_t *value_out)
{
    char *end;
    errno = 0;
    if (!isxdigit((unsigned char)text[0])) return false; /* no sign, no blank */
    unsigned long long value = strtoull(text, &end, 16);
    if (*end || errno) return false;
    *value_out = value;
    return true;
}

bool tt_word_float(const char *text, double *value_out)
{
    char *end;
    double value = tt_number_read(text, &end);
    if (end == text || *end || !isfinite(value)) return false;
    *value_out = value;
    return true;
}

int64_t tt_topo_int(const struct tt_xml_node *node, const char *key, int64_t fallback)
{
    const char *text = tt_xml_get(node, key);
    int64_t value = fallback;
    if (text && text[0]) (void)tt_word_int(text, &value);
    return value;
}

uint64_t tt_topo_busid(const struct tt_xml_node *node, const char *key)
{
    const char *text = tt_xml_get(node, key);
    uint64_t busid = 0;
    if (text) (void)tt_word_busid(text, &busid);
    return busid;
}

const char *tt_path_type_name(enum tt_path_type type)
{
    static const char *const names[TT_PATH_COUNT_] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                      "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
    return names[type];
}
