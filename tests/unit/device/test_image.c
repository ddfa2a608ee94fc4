/* Device code as a file: what variables start with, in PTX, cubins and fat binaries, packed or not,
 * and that bytes which are not checked before do no harm. */
#include "../check.h"

#include "device/host/image/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

/* One line per symbol and pointer; the caller frees it. */
static char *describe(const void *code, size_t len)
{
    const char *why = NULL;
    char *text = NULL;
    size_t text_len;
    void *exact = malloc(len ? len : 1); /* so that a sanitizer sees each byte beyond */
    memcpy(exact, code, len);
    struct tt_host_image *image = tt_host_image_open(exact, len, &why);
    free(exact);
    FILE *out = open_memstream(&text, &text_len);
    if (!image) fprintf(out, "unread: %s\n", why);
    for (size_t i = 0; image && i < image->nsymbols; i++) {
        const struct tt_host_image_symbol *symbol = &image->symbols[i];
        assert_true(symbol->initial_bytes <= symbol->bytes);
        fprintf(out, "%s%s %s", symbol->is_kernel ? "kernel" : "variable",
                symbol->is_managed ? " managed" : "", symbol->name);
        if (!symbol->is_kernel) fprintf(out, " %zu:", symbol->bytes);
        for (size_t b = 0; b < symbol->initial_bytes; b++) {
            fprintf(out, "%s%02x", b ? "" : " ", symbol->initial[b]);
        }
        fprintf(out, "%s\n", symbol->is_unread ? " unread" : "");
    }
    for (size_t i = 0; image && i < image->npointers; i++) {
        const struct tt_host_image_pointer *one = &image->pointers[i];
        assert_true(one->in < image->nsymbols && one->to < image->nsymbols);
        fprintf(out, "%s+%zu = %s+%zu\n", image->symbols[one->in].name, one->offset,
                image->symbols[one->to].name, one->addend);
    }
    fclose(out);
    tt_host_image_close(image);
    return text;
}

static void expect(const char *name, const void *code, size_t len, const char *wanted)
{
    char *text = describe(code, len);
    print_message("case: %s\n", name);
    assert_string_equal(text, wanted);
    free(text);
}

/* ---- PTX ---- */

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const struct {
    const char *name, *text, *wanted;
} ptx_cases[] = {
    {"integers", HEAD ".visible .global .align 4 .u32 a = 7;\n.global .s16 b[4] = {-1, 0x10, 3};",
     "variable a 4: 07000000\nvariable b 8: ffff10000300\n"},
    {"bytes, zeros", HEAD ".const .align 8 .b8 c[6] = {1, 2, 255};.global .b64 d;",
     "variable c 6: 0102ff\nvariable d 8:\n"},
    {"floats", HEAD ".global .f32 e = 0f3FC00000; .global .f64 f = 0d4004000000000000;",
     "variable e 4: 0000c03f\nvariable f 8: 0000000000000440\n"},
    {"managed", HEAD ".global .attribute(.managed) .align 4 .u32 g = 42;",
     "variable managed g 4: 2a000000\n"},
    {"addresses",
     HEAD ".global .u32 a[4];.global .u64 p = generic(a)+8;.const .u64 q[2]={a,generic(a+4)};",
     "variable a 16:\nvariable p 8: 0000000000000000\nvariable q 16: "
     "00000000000000000000000000000000\np+0 = a+8\nq+0 = a+0\nq+8 = a+4\n"},
    {"address of a function", HEAD ".global .u64 p = f; .global .b8 r[8] = {0xFF(f)};",
     "variable p 8: unread\nvariable r 8: unread\n"},
    {"functions",
     HEAD "/* .global .u32 no = 1; */\n.extern .global .u32 other;\n.func (.reg .u32 r) g(.param "
          ".u32 x)\n{ .reg .u32 a; { ret; } }\n.visible .entry k(\n.param .u64 k_0\n)\n{\n"
          ".shared .u32 s;\nret; // }\n}\n.global .u32 z = 0b101;",
     "kernel k\nvariable z 4: 05000000\n"},
    {"vectors, several dimensions", HEAD ".global .v4 .f32 v;.global .u8 m[2][3] = {1,2,3,4,5,6};",
     "variable v 16:\nvariable m 6: 010203040506\n"},
    {"open", HEAD ".global .b8 s[] = {104, 105, 0};", "variable s 3: 686900\n"},
    {"textures", HEAD ".global .texref t;.global .u32 a = 1;", "variable a 4: 01000000\n"},
    {"too many values", HEAD ".global .u8 a[1] = {1, 2};", "variable a 1: unread\n"},
    {"larger than memory", HEAD ".global .u64 a[4611686018427387904][4] = {1};", ""},
    {"ends early", HEAD ".global .u32 a = ", "variable a 4: unread\n"},
    {"no PTX", "what is this", "unread: it is neither a fat binary nor a cubin nor PTX\n"},
    {"nothing", "", "unread: it is empty\n"},
};

static void ptx_says_what_variables_start_with(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN(ptx_cases); i++) {
        expect(ptx_cases[i].name, ptx_cases[i].text, strlen(ptx_cases[i].text),
               ptx_cases[i].wanted);
    }
}

/* ---- cubins ---- */

enum { DATA = 1, ZEROS, SYMBOLS, NAMES, RELOCATIONS, TEXT, NSECTIONS };

static const char cubin_names[] = "\0row\0none\0entry\0inner\0ptr\0fn";

struct cubin {
    Elf64_Ehdr head;
    unsigned char data[40];
    Elf64_Sym symbols[7];
    char names[sizeof(cubin_names)];
    Elf64_Rela relocations[2];
    Elf64_Shdr sections[NSECTIONS];
};

static void make_cubin(struct cubin *cubin)
{
    const unsigned char object = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    const unsigned char function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    *cubin = (struct cubin){
        .data = {1, 2, 3, 4, [8] = 9},
        .symbols = {{0},
                    {1, object, 0, DATA, 0, 6},       /* row */
                    {5, object, 4, ZEROS, 0, 16},     /* none, managed */
                    {10, function, 0x10, TEXT, 0, 4}, /* entry */
                    {16, function, 0, TEXT, 0, 4},    /* inner: no kernel */
                    {22, object, 0, DATA, 16, 8},     /* ptr */
                    {26, object, 0, DATA, 32, 8}},    /* fn */
        .relocations = {{16, ELF64_R_INFO(1, 4), 2}, {32, ELF64_R_INFO(3, 2), 0}},
        .sections = {[DATA] = {0, SHT_PROGBITS, 3, 0, offsetof(struct cubin, data), 40, 0, 0, 8, 0},
                     [ZEROS] = {0, SHT_NOBITS, 3, 0, 0, 16, 0, 0, 8, 0},
                     [SYMBOLS] = {0, SHT_SYMTAB, 0, 0, offsetof(struct cubin, symbols),
                                  sizeof(cubin->symbols), NAMES, 1, 8, sizeof(Elf64_Sym)},
                     [NAMES] = {0, SHT_STRTAB, 0, 0, offsetof(struct cubin, names),
                                sizeof(cubin_names), 0, 0, 1, 0},
                     [RELOCATIONS] = {0, SHT_RELA, 0, 0, offsetof(struct cubin, relocations),
                                      sizeof(cubin->relocations), SYMBOLS, DATA, 8,
                                      sizeof(Elf64_Rela)},
                     [TEXT] = {0, SHT_PROGBITS, 6, 0, 0, 4, 0, 0, 8, 0}},
    };
    memcpy(cubin->names, cubin_names, sizeof(cubin_names));
    memcpy(cubin->head.e_ident, ELFMAG, SELFMAG);
    cubin->head.e_ident[EI_CLASS] = ELFCLASS64;
    cubin->head.e_ident[EI_DATA] = ELFDATA2LSB;
    cubin->head.e_machine = 190;
    cubin->head.e_shoff = offsetof(struct cubin, sections);
    cubin->head.e_shentsize = sizeof(Elf64_Shdr);
    cubin->head.e_shnum = NSECTIONS;
}

static const char cubin_wanted[] = "variable row 6: 010203040000\n"
                                   "variable managed none 16:\n"
                                   "kernel entry\n"
                                   "variable ptr 8: 0000000000000000\n"
                                   "variable fn 8: 0000000000000000 unread\n"
                                   "ptr+0 = row+2\n";

static void cubins_say_what_variables_start_with(void **state)
{
    struct cubin cubin;
    (void)state;
    make_cubin(&cubin);
    expect("cubin", &cubin, sizeof(cubin), cubin_wanted);
    cubin.symbols[1].st_size = 41;
    expect("beyond its section", &cubin, sizeof(cubin), "unread: its cubin is damaged\n");
    make_cubin(&cubin);
    cubin.sections[DATA].sh_offset = sizeof(cubin) - 2;
    expect("section beyond the file", &cubin, sizeof(cubin), "unread: its cubin is damaged\n");
    expect("cut", &cubin, sizeof(cubin) - 1, "unread: its cubin is damaged\n");
    make_cubin(&cubin);
    for (size_t i = 1; i < LEN(cubin.symbols); i++) { /* as nvcc -rdc=true -cubin has variables */
        if (ELF64_ST_TYPE(cubin.symbols[i].st_info) == STT_OBJECT)
            cubin.symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, 13);
    }
    expect("to be linked", &cubin, sizeof(cubin), cubin_wanted);
    cubin.head.e_machine = EM_X86_64;
    expect("a host's", &cubin, sizeof(cubin),
           "unread: it is an object or program of another machine\n");
}

/* A file of some MiB whose symbols all have one long name, and whose sections of relocations are
 * all the same bytes: reading them takes no more memory than the file has bytes. */
struct hostile {
    Elf64_Ehdr head;
    unsigned char data[8];
    Elf64_Sym symbols[2000];
    Elf64_Rela relocations[5000];
    Elf64_Shdr sections[3000];
    char name[1 << 20];
};

static void make_hostile(struct hostile *file, size_t nsymbols, size_t nsections)
{
    struct cubin cubin;
    make_cubin(&cubin);
    memset(file, 0, sizeof(*file));
    file->head = cubin.head;
    file->head.e_shoff = offsetof(struct hostile, sections);
    file->head.e_shnum = (uint16_t)nsections;
    memset(file->name, 'n', sizeof(file->name) - 1);
    file->sections[DATA] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_size = sizeof(file->data)};
    file->sections[DATA].sh_offset = offsetof(struct hostile, data);
    file->sections[SYMBOLS] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = NAMES};
    file->sections[SYMBOLS].sh_offset = offsetof(struct hostile, symbols);
    file->sections[SYMBOLS].sh_size = nsymbols * sizeof(Elf64_Sym);
    file->sections[NAMES] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_size = sizeof(file->name)};
    file->sections[NAMES].sh_offset = offsetof(struct hostile, name);
    for (size_t i = 0; i < nsymbols; i++) {
        file->symbols[i] =
            (Elf64_Sym){0, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, DATA, 0, i ? 0 : 8};
    }
    for (size_t i = 0; i < LEN(file->relocations); i++) {
        file->relocations[i] = (Elf64_Rela){0, ELF64_R_INFO(0, 2), 0};
    }
    for (size_t i = NSECTIONS; i < nsections; i++) {
        file->sections[i] = (Elf64_Shdr){.sh_type = SHT_RELA, .sh_info = DATA};
        file->sections[i].sh_offset = offsetof(struct hostile, relocations);
        file->sections[i].sh_size = sizeof(file->relocations);
    }
}

static void hostile_cubins_take_no_more_than_they_have(void **state)
{
    struct hostile *file = malloc(sizeof(*file));
    (void)state;
    assert_non_null(file);
    make_hostile(file, LEN(file->symbols), NSECTIONS);
    expect("names", file, sizeof(*file), "unread: its cubin is damaged\n");
    make_hostile(file, 1, LEN(file->sections));
    expect("relocations", file, sizeof(*file), "unread: its cubin is damaged\n");
    free(file);
}

/* ---- fat binaries ---- */

struct fat { /* header, then the header of a part, then its bytes */
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
    uint16_t kind, part_version;
    uint32_t part_header_bytes;
    uint64_t part_bytes;
    uint32_t packed_bytes, options;
    uint16_t minor, major;
    uint32_t arch, name, name_bytes;
    uint64_t flags, unused, unpacked_bytes;
    unsigned char body[2048];
};
enum { FAT_HEADERS = offsetof(struct fat, body) };

static size_t make_fat(struct fat *fat, unsigned kind, const void *body, size_t len)
{
    *fat = (struct fat){.magic = 0xba55ed50,
                        .version = 1,
                        .header_bytes = 16,
                        .bytes = 64 + len,
                        .kind = (uint16_t)kind,
                        .part_version = 0x101,
                        .part_header_bytes = 64,
                        .part_bytes = len,
                        .packed_bytes = (uint32_t)len};
    memcpy(fat->body, body, len);
    return FAT_HEADERS + len;
}

static const char packed_text[] = HEAD ".global .b8 row[16] = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1};";
static const char packed_wanted[] = "variable row 16: 01010101010101010101010101010101\n";

static void fat_binaries_are_unpacked(void **state)
{
    struct cubin cubin;
    struct fat fat;
    unsigned char bytes[300];
    const size_t len = sizeof(packed_text) - 1,
                 plain = len - 31; /* ends with "1,", which repeats */
    (void)state;
    make_cubin(&cubin);
    expect("cubin", &fat, make_fat(&fat, 2, &cubin, sizeof(cubin)), cubin_wanted);
    expect("PTX", &fat, make_fat(&fat, 1, packed_text, len), packed_wanted);
    /* LZ4: literals, the last two of which repeat for 26 bytes, then the rest */
    assert_true(plain > 15 && plain - 15 < 255);
    bytes[0] = 0xff, bytes[1] = (unsigned char)(plain - 15);
    memcpy(bytes + 2, packed_text, plain);
    unsigned char *at = bytes + 2 + plain;
    *at++ = 2, *at++ = 0, *at++ = 26 - 4 - 15, *at++ = 5 << 4;
    memcpy(at, packed_text + plain + 26, 5);
    size_t packed = (size_t)(at + 5 - bytes), all = make_fat(&fat, 1, bytes, packed);
    fat.flags = 0x2011, fat.unpacked_bytes = len;
    expect("LZ4", &fat, all, packed_wanted);
    fat.unpacked_bytes = len + 1;
    expect("LZ4, too short", &fat, all, "unread: a part of it does not unpack\n");
    fat.flags = 0x1011 | 0x2000 | 0x8000;
    expect("unknown", &fat, all,
           "unread: a part of it is packed in a way or to a size that is not known\n");
    /* Zstandard: a frame of one plain block */
    const unsigned char frame[] = {0x28,
                                   0xb5,
                                   0x2f,
                                   0xfd,
                                   0x20,
                                   (unsigned char)len,
                                   (unsigned char)(len << 3 | 1),
                                   (unsigned char)(len >> 5),
                                   0};
    memcpy(bytes, frame, sizeof(frame));
    memcpy(bytes + sizeof(frame), packed_text, len);
    all = make_fat(&fat, 1, bytes, sizeof(frame) + len);
    fat.flags = 0x8011, fat.unpacked_bytes = len;
    void *library = dlopen("libzstd.so.1", RTLD_NOW);
    expect("Zstandard", &fat, all,
           library ? packed_wanted
                   : "unread: it is packed with Zstandard, and libzstd.so.1 is not installed\n");
    if (library) dlclose(library);
}

/* ---- several pieces ---- */

static size_t add_piece(char *linked, size_t len, const char *text)
{
    struct tt_host_linked_header *header = (struct tt_host_linked_header *)(void *)linked;
    uint64_t bytes = strlen(text);
    memcpy(linked + len, &bytes, sizeof(bytes));
    memcpy(linked + len + sizeof(bytes), text, bytes);
    header->count++;
    header->bytes += sizeof(bytes) + bytes;
    return len + sizeof(bytes) + bytes;
}

static void pieces_are_read_one_by_one(void **state)
{
    static _Alignas(8) char linked[1024];
    const struct tt_host_linked_header empty = {TT_HOST_LINKED_MAGIC, 0, 0};
    size_t len = sizeof(empty), first;
    uint64_t beyond = sizeof(linked);
    (void)state;
    memcpy(linked, &empty, sizeof(empty));
    first = len = add_piece(linked, len, HEAD ".global .u32 a = 1; .global .u64 p = a;");
    len = add_piece(linked, len, HEAD ".global .u32 b = 2; .global .u64 q = b;");
    expect("two", linked, len,
           "variable a 4: 01000000\nvariable p 8: 0000000000000000\nvariable b 4: 02000000\n"
           "variable q 8: 0000000000000000\np+0 = a+0\nq+0 = b+0\n");
    expect("cut", linked, len - 1, "unread: it ends too early\n");
    memcpy(linked + first, &beyond, sizeof(beyond));
    expect("beyond the end", linked, len, "unread: it ends too early\n");
    memcpy(linked, &empty, sizeof(empty));
    len = add_piece(linked, sizeof(empty), HEAD ".global .u32 a = 1;");
    len = add_piece(linked, len, "no code");
    expect("a piece that is none", linked, len,
           "unread: it is neither a fat binary nor a cubin nor PTX\n");
}

/* ---- bytes that are not checked before ---- */

static void damage(unsigned char *bytes, size_t len, uint64_t seed)
{
    for (int turn = 0; turn < 3; turn++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        size_t at = (size_t)(seed >> 33) % len;
        bytes[at] = (seed >> 20) & 1 ? (unsigned char)(seed >> 24) : (seed >> 21) & 1 ? 0xff : 0;
        if ((seed >> 22) & 1) memset(bytes + at, bytes[at], len - at < 8 ? len - at : 8);
    }
}

static void damaged_code_does_no_harm(void **state)
{
    struct cubin cubin;
    struct fat fat;
    unsigned char bytes[4096];
    (void)state;
    make_cubin(&cubin);
    for (uint64_t seed = 0; seed < 6000; seed++) {
        size_t which = seed % (LEN(ptx_cases) + 3), len;
        if (which < LEN(ptx_cases)) {
            len = strlen(ptx_cases[which].text);
            memcpy(bytes, ptx_cases[which].text, len);
        } else if (which == LEN(ptx_cases)) {
            memcpy(bytes, &cubin, len = sizeof(cubin));
        } else {
            len = make_fat(&fat, 2, &cubin, sizeof(cubin));
            if (which > LEN(ptx_cases) + 1) fat.flags = 0x2011, fat.unpacked_bytes = 3000;
            memcpy(bytes, &fat, len);
        }
        if (len) damage(bytes, len, seed);
        if (seed % 5 == 0) len /= 2;
        free(describe(bytes, len));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptx_says_what_variables_start_with),
        cmocka_unit_test(cubins_say_what_variables_start_with),
        cmocka_unit_test(hostile_cubins_take_no_more_than_they_have),
        cmocka_unit_test(fat_binaries_are_unpacked),
        cmocka_unit_test(pieces_are_read_one_by_one),
        cmocka_unit_test(damaged_code_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
