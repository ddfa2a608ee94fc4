/* Meaning of the texts and numbers in attributes of machine files. Private to the room. Source of
 * the tables: spec topology, section 1.3. */
#pragma once

#include "topo/topo.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_xml_node;

/* Of a pci element, or of the far end of an NVLink, by its device class. */
enum tt_topo_role {
    TT_ROLE_BRIDGE,
    TT_ROLE_NVSWITCH,
    TT_ROLE_CPU,
    TT_ROLE_GPU,
    TT_ROLE_NIC,
};
/* known_out false: no table entry; such a class counts as a bridge. May be NULL. */
enum tt_topo_role tt_word_role(const char *device_class, bool *known_out);

/* Units of 0.1 Gb/s per lane; unknown texts count as Gen3. */
int tt_word_link_units(const char *link_speed, bool *known_out);

/* Of an Intel or Zhaoxin CPU. */
enum tt_topo_model {
    TT_MODEL_NONE,
    TT_MODEL_INTEL_BDW,
    TT_MODEL_INTEL_SKL,
    TT_MODEL_INTEL_SRP,
    TT_MODEL_INTEL_ERP,
    TT_MODEL_YONGFENG,
};
enum tt_topo_arch tt_word_arch(const char *text);
enum tt_topo_vendor tt_word_vendor(const char *text);
enum tt_topo_model tt_word_model(enum tt_topo_vendor vendor, int64_t family, int64_t model);

/* All hex digits, '.' and ':' skipped: "0000:07:00.0" is 0x7000. False when there are other
 * characters or no digit. */
bool tt_word_busid(const char *text, uint64_t *busid_out);
void tt_word_busid_text(uint64_t busid, char text[24]); /* "0000:07:00.0" */

/* Whole-text integer, base by prefix. False for anything else, also beyond 64 bits. */
bool tt_word_int(const char *text, int64_t *value_out);
bool tt_word_hex(const char *text, uint64_t *value_out); /* with or without 0x, 64 bits */
/* Whole-text finite number. */
bool tt_word_float(const char *text, double *value_out);

/* The attribute as a number. Only for files that were checked. */
int64_t tt_topo_int(const struct tt_xml_node *node, const char *key, int64_t fallback);
uint64_t tt_topo_busid(const struct tt_xml_node *node, const char *key);
