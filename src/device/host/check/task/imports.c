/* Whether the program may hand buffers to the kernel, which refuses closed pages: it, or a library
 * that does not come with the system, imports a function that does, or one that finds functions.
 * Calls of the usual ones are led to functions of ours that judge the buffer (io_calls.c), those of
 * C++'s streams as well, and do not count. */
#include "object.h"
#include "site.h"

#include "device/host/check/state.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

static size_t without(const char *name, size_t len, const char *end)
{
    size_t cut = strlen(end);
    return len > cut && !memcmp(name + len - cut, end, cut) ? len - cut : len;
}

static bool is_listed(const char *names, const char *name, size_t len)
{
    for (size_t bytes; *names; names += bytes + 1) {
        bytes = strcspn(names, " ");
        if (bytes == len && !memcmp(names, name, len)) return true;
    }
    return false;
}

/* Of the C library. __read_chk, pread64, preadv64v2 and fwrite_unlocked are what the names without
 * that are. */
static bool is_io(const char *name)
{
    size_t len = without(name, strlen(name), "_chk");
    if (name[len] && !strncmp(name, "__", 2)) {
        name += 2;
        len -= 2;
    }
    len = without(name, len, "_unlocked");
    len = without(name, len, "v2");
    len = without(name, len, "64");
    return !strncmp(name, "io_uring_", strlen("io_uring_")) ||
           is_listed(
               "read pread readv preadv write pwrite writev pwritev recv recvfrom recvmsg recvmmsg "
               "send sendto sendmsg sendmmsg fread fwrite setvbuf setbuf "
               "setbuffer aio_read aio_write lio_listio io_submit vmsplice process_vm_readv "
               "process_vm_writev syscall ioctl getrandom getentropy getcwd readlink readlinkat "
               "getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr mq_send mq_timedsend "
               "mq_receive mq_timedreceive msgsnd msgrcv getsockopt setsockopt dlsym dlvsym ",
               name, len);
}

/* Streams of C++, in a library that comes with the system. */
static bool is_stream(const char *name)
{
    return is_listed("_ZNSi4readEPcl _ZNSi8readsomeEPcl _ZNSo5writeEPKcl "
                     "_ZNSt13basic_filebufIcSt11char_traitsIcEE6xsgetnEPcl "
                     "_ZNSt13basic_filebufIcSt11char_traitsIcEE6xsputnEPKcl ",
                     name, strlen(name));
}

/* What they move their bytes by. */
static bool is_io_of_streams(const char *name)
{
    return is_listed("read write readv writev fread fwrite ", name, strlen(name));
}

/* ---- calls that are led elsewhere ---- */

enum { PAGE = 4096 };

struct look {
    void *(*instead)(const char *name);
    bool does_io; /* by a function that is not led elsewhere */
    bool streams,
        streams_led;  /* the program uses them; they move their bytes by functions of ours */
    const void *page; /* the one that was asked for last, and what it is */
    bool sealed;
};

#if defined(__x86_64__)
enum { RELOC_CALL = R_X86_64_JUMP_SLOT, RELOC_ADDRESS = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { RELOC_CALL = R_AARCH64_JUMP_SLOT, RELOC_ADDRESS = R_AARCH64_GLOB_DAT };
#else
enum { RELOC_CALL = 0, RELOC_ADDRESS = 0 }; /* no slot has them */
#endif

/* Is the slot in what the loader makes read-only when it is done with the object? */
static bool is_sealed(const struct dl_phdr_info *info, uintptr_t slot)
{
    bool sealed = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from = (info->dlpi_addr + part->p_vaddr) / PAGE * PAGE;
        uintptr_t to = (info->dlpi_addr + part->p_vaddr + part->p_memsz) / PAGE * PAGE;
        sealed = sealed || (part->p_type == PT_GNU_RELRO && slot >= from && slot < to);
    }
    return sealed;
}

/* Another thread may be loading the object: then the slot holds no address yet, and is left. Sealed
 * ones may be written by the loader alone, until they are sealed: those are left as well. */
static bool lead(struct look *look, const struct dl_phdr_info *info, const ElfW(Rela) * one,
                 void *to)
{
    _Atomic(void *) *slot = (_Atomic(void *) *)(info->dlpi_addr + one->r_offset);
    size_t type = ELF64_R_TYPE(one->r_info);
    if (type != RELOC_CALL && type != RELOC_ADDRESS) return false;
    void *now = atomic_load(slot);
    bool sealed = is_sealed(info, (uintptr_t)slot);
    void *page = (void *)((uintptr_t)slot / PAGE * PAGE);
    if (now == to) return true;
    if (!now || (uintptr_t)now < info->dlpi_addr) return false;
    if (sealed && page != look->page) look->sealed = tt_check_is_sealed(page);
    if (sealed) look->page = page;
    if (sealed && (!look->sealed || mprotect(page, PAGE, PROT_READ | PROT_WRITE))) return false;
    bool led = atomic_compare_exchange_strong(slot, &now, to);
    if (sealed) mprotect(page, PAGE, PROT_READ);
    return led;
}

/* False where a use of the object's is not led elsewhere. */
static bool lead_all(struct look *look, const struct dl_phdr_info *info,
                     const struct tt_check_object *object, bool (*is_wanted)(const char *name))
{
    bool all = true;
    for (size_t i = 0; i < object->ncalls + object->nothers; i++) {
        bool calls = i < object->ncalls;
        const ElfW(Rela) *one = calls ? &object->calls[i] : &object->others[i - object->ncalls];
        size_t symbol = ELF64_R_SYM(one->r_info);
        const char *name = object->names + object->symbols[symbol].st_name;
        if (!symbol || object->symbols[symbol].st_shndx != SHN_UNDEF) continue;
        look->streams = look->streams || is_stream(name);
        if (!is_wanted(name)) continue;
        void *to = look->instead(name);
        if (!to || !lead(look, info, one, to)) all = false;
    }
    return all;
}

static int look_at(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct look *look = arg;
    struct tt_check_object object;
    const char *file = info->dlpi_name ? info->dlpi_name : "";
    (void)bytes;
    bool is_system = tt_check_is_system(file), has_streams = strstr(file, "libstdc++") != NULL;
    if ((is_system && !has_streams) || !tt_check_object_read(info, &object)) return 0;
    bool led = lead_all(look, info, &object, has_streams ? is_io_of_streams : is_io);
    if (has_streams) look->streams_led = led;
    if (!has_streams && !led) look->does_io = true;
    return 0;
}

static int count_loaded(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    *(uint64_t *)arg = info->dlpi_adds;
    return 1;
}

bool tt_check_program_does_io(struct tt_host_check *check)
{
    uint64_t loaded = 0;
    dl_iterate_phdr(count_loaded, &loaded);
    if (loaded == check->io_of) return check->does_io;
    struct look look = {.instead = check->io_instead};
    dl_iterate_phdr(look_at, &look);
    check->does_io = look.does_io || check->lends_buffers || (look.streams && !look.streams_led);
    check->io_of = loaded;
    return check->does_io;
}
