/* Reader of ELF's section .debug_line (DWARF 2 to 5, chapter 6.2): per source file a header with
 * names of files, and a small program whose steps are rows (address, file, line), ascending in each
 * of its sequences. Not by a library: this runs in a handler of SIGSEGV, where nothing may be
 * loaded or allocated. The file is not trusted: each read is checked against the end of its
 * section. */
#include "source.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---- */

struct reader {
    const unsigned char *at, *end;
    bool failed; /* it was read past the end: the rest is zeros */
};

static uint64_t take(struct reader *reader, size_t bytes)
{
    uint64_t value = 0;
    if (reader->failed || bytes > (size_t)(reader->end - reader->at)) {
        reader->failed = true;
        return 0;
    }
    memcpy(&value, reader->at, bytes < sizeof(value) ? bytes : sizeof(value)); /* little-endian */
    reader->at += bytes;
    return value;
}

/* LEB128 without sign; `sign`: with it. */
static uint64_t take_leb(struct reader *reader, bool sign)
{
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    while (byte & 0x80 && !reader->failed) {
        byte = take(reader, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        shift += 7;
    }
    if (sign && shift < 64 && byte & 0x40) value |= ~(uint64_t)0 << shift;
    return value;
}

static const char *take_text(struct reader *reader)
{
    const char *text = (const char *)reader->at;
    const unsigned char *end =
        reader->failed ? NULL : memchr(reader->at, 0, (size_t)(reader->end - reader->at));
    if (!end) {
        reader->failed = true;
        return "";
    }
    reader->at = end + 1;
    return text;
}

static const char *text_at(const struct reader *section, uint64_t offset)
{
    struct reader reader = *section;
    if (!reader.at || offset > (size_t)(reader.end - reader.at)) return "";
    reader.at += offset;
    return take_text(&reader);
}

/* ---- the object's sections ---- */

struct sections {
    struct reader line, line_str, str; /* at NULL: there is none */
};

static bool take_sections(const unsigned char *bytes, size_t size, struct sections *out)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)bytes;
    if (size < sizeof(*head) || memcmp(bytes, ELFMAG, SELFMAG) != 0 ||
        bytes[EI_CLASS] != ELFCLASS64 || bytes[EI_DATA] != ELFDATA2LSB ||
        head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff > size ||
        head->e_shoff % _Alignof(Elf64_Shdr) ||
        (size - head->e_shoff) / sizeof(Elf64_Shdr) < head->e_shnum ||
        head->e_shstrndx >= head->e_shnum)
        return false;
    const Elf64_Shdr *all = (const Elf64_Shdr *)(bytes + head->e_shoff);
    struct reader names = {.at = NULL};
    for (int i = -1; i < head->e_shnum; i++) {
        const Elf64_Shdr *one = &all[i < 0 ? head->e_shstrndx : i];
        if (one->sh_type == SHT_NOBITS || one->sh_offset > size ||
            size - one->sh_offset < one->sh_size || one->sh_flags & SHF_COMPRESSED)
            continue;
        const struct reader part = {bytes + one->sh_offset, bytes + one->sh_offset + one->sh_size,
                                    false};
        const char *name = i < 0 ? "" : text_at(&names, one->sh_name);
        if (i < 0) names = part;
        if (!strcmp(name, ".debug_line")) out->line = part;
        if (!strcmp(name, ".debug_line_str")) out->line_str = part;
        if (!strcmp(name, ".debug_str")) out->str = part;
    }
    return out->line.at;
}

/* ---- a unit's header ---- */

enum { FORMS_MOST = 8, LINES_MOST_BYTES = 32 << 20 };

struct unit {
    const struct sections *sections;
    struct reader header; /* of the names */
    struct reader program;
    int version;
    size_t offset_bytes;
    unsigned step, line_range, opcode_base;
    int line_base;
    unsigned char skips[256]; /* numbers behind each standard opcode */
};

/* The next unit, and the reader behind it. False: there is no more that is understood. */
static bool take_unit(struct reader *all, struct unit *unit)
{
    unit->offset_bytes = 4;
    uint64_t bytes = take(all, 4);
    if (bytes == 0xffffffff) {
        unit->offset_bytes = 8;
        bytes = take(all, 8);
    }
    if (all->failed || !bytes || bytes > (size_t)(all->end - all->at)) return false;
    struct reader reader = {all->at, all->at + bytes, false};
    all->at += bytes;
    unit->version = (int)take(&reader, 2);
    if (unit->version >= 5) take(&reader, 2); /* sizes of addresses */
    const uint64_t header_bytes = take(&reader, unit->offset_bytes);
    if (reader.failed || header_bytes > (size_t)(reader.end - reader.at)) {
        unit->version = 0;
        return true;
    }
    unit->program = (struct reader){reader.at + header_bytes, reader.end, false};
    reader.end = unit->program.at;
    unit->step = (unsigned)take(&reader, 1);
    if (unit->version >= 4) take(&reader, 1);                /* operations of an instruction */
    take(&reader, 1);                                        /* whether rows begin statements */
    unit->line_base = (int)(take(&reader, 1) ^ 0x80) - 0x80; /* with its sign */
    unit->line_range = (unsigned)take(&reader, 1);
    unit->opcode_base = (unsigned)take(&reader, 1);
    for (unsigned i = 1; i < unit->opcode_base; i++)
        unit->skips[i] = (unsigned char)take(&reader, 1);
    unit->header = reader;
    const bool known = unit->version >= 2 && unit->version <= 5 && unit->line_range;
    if (reader.failed || !known || !unit->opcode_base) unit->version = 0;
    return true;
}

/* ---- its names ---- */

/* A value of a form that names of files have; its text, "" where it has none. */
static const char *take_form(const struct unit *unit, struct reader *reader, uint64_t form)
{
    switch (form) {
    case 0x08: return take_text(reader); /* string */
    case 0x1f: return text_at(&unit->sections->line_str, take(reader, unit->offset_bytes));
    case 0x0e: return text_at(&unit->sections->str, take(reader, unit->offset_bytes)); /* strp */
    case 0x0b: take(reader, 1); break;
    case 0x05: take(reader, 2); break;
    case 0x06: take(reader, 4); break;
    case 0x07: take(reader, 8); break;
    case 0x1e: take(reader, 16); break;
    case 0x0f: take_leb(reader, false); break;
    case 0x09: take(reader, take_leb(reader, false)); break; /* a block */
    default: reader->failed = true; break;
    }
    return "";
}

/* A table of DWARF 5: of folders, then of files. The name of entry `wanted`; "": it has none. */
static const char *take_table(const struct unit *unit, struct reader *reader, uint64_t wanted)
{
    uint64_t kinds[FORMS_MOST] = {0}, forms[FORMS_MOST] = {0};
    const char *name = "";
    const size_t nforms = (size_t)take(reader, 1);
    if (nforms > FORMS_MOST) reader->failed = true;
    for (size_t i = 0; i < nforms && !reader->failed; i++) {
        kinds[i] = take_leb(reader, false);
        forms[i] = take_leb(reader, false);
    }
    const uint64_t count = take_leb(reader, false);
    for (uint64_t entry = 0; nforms && entry < count && !reader->failed; entry++) {
        for (size_t i = 0; i < nforms; i++) {
            const char *text = take_form(unit, reader, forms[i]);
            if (entry == wanted && kinds[i] == 1) name = text; /* DW_LNCT_path */
        }
    }
    return name;
}

static const char *file_name(const struct unit *unit, uint64_t wanted)
{
    struct reader reader = unit->header;
    if (unit->version >= 5) {
        take_table(unit, &reader, UINT64_MAX);
        return take_table(unit, &reader, wanted);
    }
    while (*take_text(&reader)) { /* folders */
    }
    for (uint64_t number = 1; !reader.failed; number++) {
        const char *name = take_text(&reader);
        if (!*name || number == wanted) return name;
        for (int i = 0; i < 3; i++) /* its folder, time and size */
            take_leb(&reader, false);
    }
    return "";
}

/* ---- its program ---- */

struct row {
    uint64_t address, file, line;
};

struct run {
    const struct unit *unit;
    struct reader reader;
    struct row now, last;
    bool in_sequence; /* `last` is a row of the same sequence */
    uint64_t wanted;
    bool found;
};

/* What the linker has left out begins at 0. */
static void emit(struct run *run, bool ends)
{
    run->found = run->in_sequence && run->last.address && run->wanted >= run->last.address &&
                 run->wanted < run->now.address;
    if (run->found) return;
    run->last = run->now;
    run->in_sequence = !ends;
    if (ends) run->now = (struct row){.file = 1, .line = 1};
}

static void extended(struct run *run)
{
    const uint64_t bytes = take_leb(&run->reader, false);
    if (!bytes || bytes > (size_t)(run->reader.end - run->reader.at)) {
        run->reader.failed = true;
        return;
    }
    struct reader body = {run->reader.at, run->reader.at + bytes, false};
    run->reader.at += bytes;
    const uint64_t opcode = take(&body, 1);
    if (opcode == 1) emit(run, true);
    if (opcode == 2) run->now.address = take(&body, bytes - 1 < 8 ? bytes - 1 : 8);
}

static void standard(struct run *run, unsigned opcode)
{
    const struct unit *unit = run->unit;
    switch (opcode) {
    case 1: emit(run, false); break;
    case 2: run->now.address += take_leb(&run->reader, false) * unit->step; break;
    case 3: run->now.line += take_leb(&run->reader, true); break;
    case 4: run->now.file = take_leb(&run->reader, false); break;
    case 8: run->now.address += (255 - unit->opcode_base) / unit->line_range * unit->step; break;
    case 9: run->now.address += take(&run->reader, 2); break;
    default:
        for (int i = 0; i < unit->skips[opcode]; i++)
            take_leb(&run->reader, false);
        break;
    }
}

static bool run_unit(const struct unit *unit, uint64_t wanted, struct row *row_out)
{
    struct run run = {
        .unit = unit, .reader = unit->program, .now = {.file = 1, .line = 1}, .wanted = wanted};
    while (!run.found && !run.reader.failed && run.reader.at < run.reader.end) {
        const unsigned opcode = (unsigned)take(&run.reader, 1);
        if (opcode >= unit->opcode_base) {
            const unsigned both = opcode - unit->opcode_base;
            run.now.address += both / unit->line_range * unit->step;
            run.now.line += (uint64_t)(unit->line_base + (int)(both % unit->line_range));
            emit(&run, false);
        } else if (opcode) {
            standard(&run, opcode);
        } else {
            extended(&run);
        }
    }
    *row_out = run.last;
    return run.found;
}

static bool find_line(const unsigned char *bytes, size_t size, uint64_t address, char *out,
                      size_t out_bytes)
{
    struct sections sections = {.line = {.at = NULL}};
    struct unit unit = {.sections = &sections};
    struct row row;
    if (!take_sections(bytes, size, &sections) ||
        sections.line.end - sections.line.at > LINES_MOST_BYTES)
        return false;
    while (take_unit(&sections.line, &unit)) {
        if (!unit.version || !run_unit(&unit, address, &row)) continue;
        const char *name = file_name(&unit, row.file), *slash = strrchr(name, '/');
        if (!*name || row.line - 1 >= INT32_MAX) return false;
        snprintf(out, out_bytes, "%.100s:%d", slash ? slash + 1 : name, (int)row.line);
        return true;
    }
    return false;
}

bool tt_check_source_find(const char *path, uint64_t address, char *out, size_t out_bytes)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool sized = fd >= 0 && !fstat(fd, &status) && status.st_size > 0;
    const size_t size = sized ? (size_t)status.st_size : 0;
    void *bytes = sized ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (bytes == MAP_FAILED) return false;
    const bool found = find_line(bytes, size, address, out, out_bytes);
    munmap(bytes, size);
    return found;
}
