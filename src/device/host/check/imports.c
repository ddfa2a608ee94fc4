/* Whether the program may hand buffers to the kernel, which refuses closed pages: it, or a library
 * that does not come with the system, imports a function that does, or one that finds functions. */
#include "object.h"
#include "state.h"

#include <elf.h>
#include <link.h>
#include <string.h>

static size_t without(const char *name, size_t len, const char *end)
{
    size_t cut = strlen(end);
    return len > cut && !memcmp(name + len - cut, end, cut) ? len - cut : len;
}

static bool is_listed(const char *name, size_t len)
{
    const char *one =
        "read pread readv preadv write pwrite writev pwritev recv recvfrom recvmsg recvmmsg send "
        "sendto sendmsg sendmmsg fread fwrite getdelim __getdelim getline setvbuf setbuf setbuffer "
        "aio_read aio_write lio_listio io_submit vmsplice process_vm_readv process_vm_writev "
        "syscall ioctl getrandom getentropy getcwd readlink readlinkat getxattr lgetxattr "
        "fgetxattr setxattr lsetxattr fsetxattr mq_send mq_timedsend mq_receive mq_timedreceive "
        "msgsnd msgrcv getsockopt setsockopt dlsym dlvsym _ZNSi4readEPcl _ZNSi8readsomeEPcl "
        "_ZNSo5writeEPKcl _ZNSt13basic_filebufIcSt11char_traitsIcEE6xsgetnEPcl "
        "_ZNSt13basic_filebufIcSt11char_traitsIcEE6xsputnEPKcl ";
    for (size_t bytes; *one; one += bytes + 1) {
        bytes = strcspn(one, " ");
        if (bytes == len && !memcmp(one, name, len)) return true;
    }
    return false;
}

/* __read_chk, pread64, preadv64v2 and fwrite_unlocked are what the names without that are. */
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
    return is_listed(name, len) || !strncmp(name, "io_uring_", strlen("io_uring_"));
}

static bool uses_io(const struct tt_check_object *object, const ElfW(Rela) * list, size_t count)
{
    for (size_t i = 0; list && i < count; i++) {
        size_t symbol = ELF64_R_SYM(list[i].r_info);
        const ElfW(Sym) *one = &object->symbols[symbol];
        if (symbol && one->st_shndx == SHN_UNDEF && is_io(object->names + one->st_name))
            return true;
    }
    return false;
}

static int look_at(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    bool *does_io = arg;
    struct tt_check_object object;
    (void)bytes;
    if (info->dlpi_name && tt_check_is_system(info->dlpi_name)) return 0;
    if (!tt_check_object_read(info, &object)) return 0;
    *does_io = uses_io(&object, object.calls, object.ncalls) ||
               uses_io(&object, object.others, object.nothers);
    return *does_io;
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
    check->does_io = false;
    dl_iterate_phdr(look_at, &check->does_io);
    check->io_of = loaded;
    return check->does_io;
}
