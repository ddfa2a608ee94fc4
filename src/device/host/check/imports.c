/* Whether the program may hand buffers to the kernel, which refuses closed pages: it, or a library
 * that does not come with the system, imports a function that does. */
#include "state.h"

#include <elf.h>
#include <link.h>
#include <string.h>

static enum check_io io_of(const char *name)
{
    static const char *const names[] = {"read",
                                        "pread",
                                        "pread64",
                                        "readv",
                                        "preadv",
                                        "preadv64",
                                        "write",
                                        "pwrite",
                                        "pwrite64",
                                        "writev",
                                        "pwritev",
                                        "pwritev64",
                                        "recv",
                                        "recvfrom",
                                        "recvmsg",
                                        "recvmmsg",
                                        "send",
                                        "sendto",
                                        "sendmsg",
                                        "sendmmsg",
                                        "fread",
                                        "fread_unlocked",
                                        "getdelim",
                                        "aio_read",
                                        "aio_write",
                                        "lio_listio",
                                        "vmsplice",
                                        "syscall",
                                        "ioctl",
                                        "process_vm_readv",
                                        "process_vm_writev",
                                        "_ZNSi4readEPcl",
                                        "_ZNSo5writeEPKcl",
                                        NULL};
    size_t i = 0;
    while (names[i] && strcmp(name, names[i]) != 0)
        i++;
    if (names[i]) return CHECK_IO_DIRECT;
    return !strncmp(name, "fwrite", strlen("fwrite")) ? CHECK_IO_FILES : CHECK_IO_NONE;
}

struct tables { /* of one object */
    const char *names;
    const ElfW(Sym) * symbols;
    const ElfW(Rela) * calls, *others;
    size_t ncalls, nothers;
};

static void read_dynamic(const ElfW(Dyn) * one, ElfW(Addr) base, struct tables *tables)
{
    for (; one->d_tag != DT_NULL; one++) {
        ElfW(Addr) at = one->d_un.d_ptr < base ? base + one->d_un.d_ptr : one->d_un.d_ptr;
        switch (one->d_tag) {
        case DT_STRTAB: tables->names = (const char *)at; break;
        case DT_SYMTAB: tables->symbols = (const ElfW(Sym) *)at; break;
        case DT_JMPREL: tables->calls = (const ElfW(Rela) *)at; break;
        case DT_PLTRELSZ: tables->ncalls = one->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: tables->others = (const ElfW(Rela) *)at; break;
        case DT_RELASZ: tables->nothers = one->d_un.d_val / sizeof(ElfW(Rela)); break;
        default: break;
        }
    }
}

static void look_for(enum check_io *io, const struct tables *tables, const ElfW(Rela) * list,
                     size_t count)
{
    for (size_t i = 0; list && i < count; i++) {
        size_t symbol = ELF64_R_SYM(list[i].r_info);
        const ElfW(Sym) *one = &tables->symbols[symbol];
        if (!symbol || one->st_shndx != SHN_UNDEF) continue;
        enum check_io found = io_of(tables->names + one->st_name);
        if (found > *io) *io = found;
    }
}

static int look_at(struct dl_phdr_info *object, size_t bytes, void *arg)
{
    enum check_io *io = arg;
    struct tables tables = {0};
    (void)bytes;
    if (object->dlpi_name && check_is_system(object->dlpi_name)) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        read_dynamic((const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr),
                     object->dlpi_addr, &tables);
    }
    if (!tables.names || !tables.symbols) return 0;
    look_for(io, &tables, tables.calls, tables.ncalls);
    look_for(io, &tables, tables.others, tables.nothers);
    return 0;
}

static int count_loaded(struct dl_phdr_info *object, size_t bytes, void *arg)
{
    (void)bytes;
    *(uint64_t *)arg = object->dlpi_adds;
    return 1;
}

enum check_io check_program_io(struct host_check *check)
{
    uint64_t loaded = 0;
    dl_iterate_phdr(count_loaded, &loaded);
    if (loaded == check->io_of) return check->io;
    check->io = CHECK_IO_NONE;
    dl_iterate_phdr(look_at, &check->io);
    check->io_of = loaded;
    return check->io;
}
