/* Tables of a loaded object: its symbols, and where it uses those of others. */
#include "object.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many as the table of hashes reaches. */
static size_t hashed(const uint32_t *table)
{
    size_t nbuckets = table[0], first = table[1], last = 0;
    const uint32_t *buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    for (size_t i = 0; i < nbuckets; i++) {
        if (buckets[i] > last) last = buckets[i];
    }
    if (last < first) return first;
    while (!(buckets[nbuckets + last - first] & 1))
        last++;
    return last + 1;
}

static void read_dynamic(const ElfW(Dyn) * one, ElfW(Addr) base, struct tt_check_object *out)
{
    for (; one->d_tag != DT_NULL; one++) {
        ElfW(Addr) at = one->d_un.d_ptr < base ? base + one->d_un.d_ptr : one->d_un.d_ptr;
        switch (one->d_tag) {
        case DT_STRTAB: out->names = (const char *)at; break;
        case DT_SYMTAB: out->symbols = (const ElfW(Sym) *)at; break;
        case DT_GNU_HASH: out->nsymbols = hashed((const uint32_t *)at); break;
        case DT_JMPREL: out->calls = (const ElfW(Rela) *)at; break;
        case DT_PLTRELSZ: out->ncalls = one->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: out->others = (const ElfW(Rela) *)at; break;
        case DT_RELASZ: out->nothers = one->d_un.d_val / sizeof(ElfW(Rela)); break;
        default: break;
        }
    }
}

bool tt_check_object_read(const struct dl_phdr_info *info, struct tt_check_object *out)
{
    *out = (struct tt_check_object){0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_DYNAMIC) continue;
        read_dynamic((const ElfW(Dyn) *)(info->dlpi_addr + part->p_vaddr), info->dlpi_addr, out);
    }
    return out->names && out->symbols;
}

bool tt_check_object_holds(const struct dl_phdr_info *info, const void *ptr)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        size_t at = (uintptr_t)ptr - info->dlpi_addr - part->p_vaddr;
        if (part->p_type == PT_LOAD && at < part->p_memsz) return true;
    }
    return false;
}

bool tt_check_is_sealed(const void *page)
{
    char line[512], *rest;
    bool sealed = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        uintptr_t first = strtoull(line, &rest, 16);
        if (*rest != '-') continue;
        uintptr_t last = strtoull(rest + 1, &rest, 16);
        if ((uintptr_t)page >= first && (uintptr_t)page < last)
            sealed = strncmp(rest, " r--", 4) == 0;
    }
    if (maps) fclose(maps);
    return sealed;
}
