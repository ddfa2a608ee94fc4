/* Cubins: ELF files of 64 bits. Variables are objects of the symbol table; their section holds what
 * they start with, or nothing where they are zeros. Addresses in them are relocated. */
#include "read.h"

#include <elf.h>
#include <stdlib.h>

enum { ENTRY = 0x10, MANAGED = 0x04 };           /* of a symbol's st_other */
enum { ADDRESS_64 = 2, GENERIC_ADDRESS_64 = 4 }; /* relocations */
enum { DEVICE = 190, RELOCATABLE_OBJECT = 13 };  /* a machine; a variable of a cubin to be linked */
enum { NO_SYMBOL = -1, NAMES_FOLDED = 4 };

struct variable { /* of a variable in its section */
    uint32_t section;
    uint64_t value, bytes;
    size_t symbol;
};

struct elf_reader {
    struct tt_host_image *image;
    struct image_view file, sections, symbols, names;
    size_t nsections, nsymbols;
    long *number;               /* owned: the image's symbol of each of the file's, or NO_SYMBOL */
    struct variable *variables; /* owned: of variables, sorted */
    size_t nvariables;
    /* Bytes that may still be copied or read. Variables and tables of relocations do not overlap;
     * of names a linker may fold one into the end of another. */
    size_t data_left, names_left, tables_left;
};

static bool section_at(const struct elf_reader *elf, size_t index, Elf64_Shdr *section)
{
    return index < elf->nsections &&
           image_get(elf->sections, index * sizeof(*section), section, sizeof(*section));
}

static bool symbol_at(const struct elf_reader *elf, size_t index, Elf64_Sym *symbol)
{
    return index < elf->nsymbols &&
           image_get(elf->symbols, index * sizeof(*symbol), symbol, sizeof(*symbol));
}

static bool is_for_devices(const struct elf_reader *elf, const char **why)
{
    Elf64_Ehdr head;
    bool known = image_get(elf->file, 0, &head, sizeof(head));
    if (known && head.e_machine == DEVICE) return true;
    if (known) *why = "it is an object or program of another machine";
    return false;
}

/* Find the sections, the symbols and their names. */
static bool open_tables(struct elf_reader *elf)
{
    Elf64_Ehdr head;
    Elf64_Shdr section, names;
    if (!image_get(elf->file, 0, &head, sizeof(head))) return false;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB) return false;
    if (head.e_shentsize != sizeof(section) || head.e_shoff == 0) return false;
    elf->nsections = head.e_shnum;
    if (elf->nsections == 0) { /* too many for the header */
        if (!image_get(elf->file, head.e_shoff, &section, sizeof(section))) return false;
        if (section.sh_size > elf->file.len / sizeof(section)) return false;
        elf->nsections = section.sh_size;
    }
    if (!image_part(elf->file, head.e_shoff, elf->nsections * sizeof(section), &elf->sections))
        return false;
    for (size_t i = 0; section_at(elf, i, &section); i++) {
        if (section.sh_type != SHT_SYMTAB) continue;
        elf->nsymbols = section.sh_size / sizeof(Elf64_Sym);
        return section_at(elf, section.sh_link, &names) &&
               image_part(elf->file, section.sh_offset, section.sh_size, &elf->symbols) &&
               image_part(elf->file, names.sh_offset, names.sh_size, &elf->names);
    }
    return true; /* without symbols: nothing is declared */
}

static bool spend(size_t *left, size_t bytes)
{
    if (bytes > *left) return false;
    *left -= bytes;
    return true;
}

static bool add_variable(struct elf_reader *elf, struct tt_host_image_symbol *made,
                         const Elf64_Sym *symbol)
{
    Elf64_Shdr section;
    struct image_view data;
    if (!section_at(elf, symbol->st_shndx, &section)) return false;
    uint64_t offset = symbol->st_value - section.sh_addr;
    if (offset > section.sh_size || symbol->st_size > section.sh_size - offset) return false;
    made->bytes = symbol->st_size;
    made->is_managed = symbol->st_other & MANAGED;
    elf->variables[elf->nvariables++] =
        (struct variable){symbol->st_shndx, offset, symbol->st_size, elf->image->nsymbols - 1};
    if (section.sh_type == SHT_NOBITS || symbol->st_size == 0) return true;
    if (!image_part(elf->file, section.sh_offset, section.sh_size, &data)) return false;
    if (!image_part(data, offset, symbol->st_size, &data)) return false;
    if (!spend(&elf->data_left, data.len)) return false;
    made->initial = malloc(data.len);
    if (!made->initial) return false;
    made->initial_bytes = data.len;
    memcpy(made->initial, data.at, data.len);
    return true;
}

static bool add_symbol(struct elf_reader *elf, size_t index)
{
    Elf64_Sym symbol;
    elf->number[index] = NO_SYMBOL;
    if (!symbol_at(elf, index, &symbol)) return false;
    unsigned type = ELF64_ST_TYPE(symbol.st_info);
    bool is_kernel = type == STT_FUNC && (symbol.st_other & ENTRY);
    bool is_defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
    bool is_variable = type == STT_OBJECT || type == RELOCATABLE_OBJECT;
    if (!is_defined || (!is_variable && !is_kernel)) return true;
    if (symbol.st_name >= elf->names.len) return false;
    const char *name = (const char *)elf->names.at + symbol.st_name;
    size_t len = strnlen(name, elf->names.len - symbol.st_name);
    if (!spend(&elf->names_left, len)) return false;
    struct tt_host_image_symbol *made = tt_host_image_add(elf->image, name, len);
    if (!made) return false;
    made->is_kernel = is_kernel;
    elf->number[index] = (long)(elf->image->nsymbols - 1);
    return is_kernel || add_variable(elf, made, &symbol);
}

static int by_address(const void *one, const void *other)
{
    const struct variable *a = one, *b = other;
    if (a->section != b->section) return a->section < b->section ? -1 : 1;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return 0;
}

/* The variable that holds the eight bytes, or NULL. */
static const struct variable *variable_at(const struct elf_reader *elf, uint32_t section,
                                          uint64_t at)
{
    size_t low = 0, high = elf->nvariables;
    while (low < high) { /* the last one that begins at or before `at` */
        size_t middle = (low + high) / 2;
        struct variable key = {.section = section, .value = at};
        bool before = by_address(&elf->variables[middle], &key) <= 0;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    const struct variable *variable = low ? &elf->variables[low - 1] : NULL;
    bool inside = variable && variable->section == section && variable->bytes >= 8 &&
                  at - variable->value <= variable->bytes - 8;
    return inside ? variable : NULL;
}

static bool relocate(struct elf_reader *elf, const Elf64_Shdr *section)
{
    bool with_addend = section->sh_type == SHT_RELA;
    size_t step = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    struct image_view table;
    if (!image_part(elf->file, section->sh_offset, section->sh_size, &table)) return false;
    if (!spend(&elf->tables_left, table.len)) return false;
    for (uint64_t at = 0; table.len - at >= step; at += step) {
        Elf64_Rela entry = {0};
        memcpy(&entry, table.at + at, step);
        uint64_t type = ELF64_R_TYPE(entry.r_info), symbol = ELF64_R_SYM(entry.r_info);
        const struct variable *variable = variable_at(elf, section->sh_info, entry.r_offset);
        if (!variable || !elf->image->symbols[variable->symbol].initial) continue;
        struct tt_host_image_symbol *in = &elf->image->symbols[variable->symbol];
        long to = symbol < elf->nsymbols ? elf->number[symbol] : NO_SYMBOL;
        struct tt_host_image_pointer pointer = {
            .in = variable->symbol, .offset = entry.r_offset - variable->value, .to = (size_t)to};
        memcpy(&pointer.addend, in->initial + pointer.offset, 8);
        if (with_addend) pointer.addend = (size_t)entry.r_addend;
        bool known = (type == ADDRESS_64 || type == GENERIC_ADDRESS_64) && to != NO_SYMBOL &&
                     !elf->image->symbols[to].is_kernel;
        if (!known) in->is_unread = true; /* the address of a function, say */
        if (known && !tt_host_image_point(elf->image, &pointer)) return false;
    }
    return true;
}

bool tt_host_image_read_elf(struct tt_host_image *image, struct image_view code, const char **why)
{
    struct elf_reader elf = {.image = image,
                             .file = code,
                             .data_left = code.len,
                             .names_left = NAMES_FOLDED * code.len,
                             .tables_left = code.len};
    Elf64_Shdr section;
    *why = "its cubin is damaged";
    bool good = is_for_devices(&elf, why) && open_tables(&elf);
    if (good) {
        elf.number = calloc(elf.nsymbols + 1, sizeof(*elf.number));
        elf.variables = calloc(elf.nsymbols + 1, sizeof(*elf.variables));
        good = elf.number && elf.variables;
    }
    for (size_t i = 0; good && i < elf.nsymbols; i++) {
        good = add_symbol(&elf, i);
    }
    if (good) qsort(elf.variables, elf.nvariables, sizeof(*elf.variables), by_address);
    for (size_t i = 0; good && section_at(&elf, i, &section); i++) {
        if (section.sh_type == SHT_REL || section.sh_type == SHT_RELA)
            good = relocate(&elf, &section);
    }
    free(elf.number);
    free(elf.variables);
    return good;
}
