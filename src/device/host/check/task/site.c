/* Where the program called: the first frame of the stack that is none of our libraries'. */
#include "site.h"

#include "object.h"
#include "source.h"

#include "device/host/check/state.h"

#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES_MOST = 24, SOURCE_BYTES = 128 };

static bool is_one_of(const char *file, const char *const *names)
{
    const char *name = strrchr(file, '/');
    name = name ? name + 1 : file;
    for (; *names; names++) {
        if (!strncmp(name, *names, strlen(*names))) return true;
    }
    return false;
}

static bool is_ours(const char *file)
{
    static const char *const names[] = {"libtutti-host.so", "libcudart.so", "libcuda.so",
                                        "libnccl.so", NULL};
    return is_one_of(file, names);
}

bool tt_check_is_system(const char *file)
{
    static const char *const names[] = {
        "libc.",     "libc-",    "libm.",      "libpthread", "ld-linux", "libdl.",  "librt.",
        "libstdc++", "libgcc_s", "linux-vdso", "libasan",    "libubsan", "libtsan", "libhwloc",
        "libexpat",  "libudev",  "libsodium",  "libcap",     "libzstd",  NULL};
    return is_ours(file) || is_one_of(file, names);
}

/* ---- where a call came from ---- */

struct frames {
    void *at[FRAMES_MOST];
    int first, count;
    bool (*is_passed)(const char *file); /* whose frames do not count */
    bool programs[FRAMES_MOST];
};

static int mark(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct frames *frames = arg;
    (void)bytes;
    for (int i = frames->first; i < frames->count; i++) {
        if (!tt_check_object_holds(info, frames->at[i])) continue;
        if (info->dlpi_name && frames->is_passed(info->dlpi_name)) break;
        frames->programs[i] = true;
    }
    return 0;
}

static const void *first_of(struct frames *frames)
{
    dl_iterate_phdr(mark, frames);
    for (int i = frames->first; i < frames->count; i++) {
        if (frames->programs[i]) return frames->at[i];
    }
    return NULL;
}

/* The first return address that lies outside of our libraries: the call is the byte before it. */
const void *tt_check_call_site(void)
{
    struct frames frames = {.is_passed = is_ours};
    frames.count = backtrace(frames.at, FRAMES_MOST);
    return first_of(&frames);
}

const void *tt_check_fault_site(const void *instruction)
{
    struct frames frames = {.is_passed = tt_check_is_system};
    frames.count = backtrace(frames.at, FRAMES_MOST);
    while (frames.first < frames.count && frames.at[frames.first] != instruction)
        frames.first++;
    const void *found = first_of(&frames);
    if (!found || found == instruction) return (const char *)instruction + 1;
    return found;
}

/* ---- its name ---- */

struct line {
    const void *site;
    char *out;
    size_t out_bytes;
};

/* The function that an object exports around the address, or NULL. */
static const char *function_at(const struct dl_phdr_info *info, size_t offset)
{
    struct tt_check_object object;
    if (!tt_check_object_read(info, &object)) return NULL;
    for (size_t i = 0; i < object.nsymbols; i++) {
        const ElfW(Sym) *one = &object.symbols[i];
        bool is_function = one->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(one->st_info) == STT_FUNC;
        if (is_function && offset - one->st_value < one->st_size)
            return object.names + one->st_name;
    }
    return NULL;
}

static int write_line(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const struct line *line = arg;
    (void)bytes;
    if (!tt_check_object_holds(info, line->site)) return 0;
    char source[SOURCE_BYTES];
    const bool is_library = info->dlpi_name && *info->dlpi_name;
    const char *file = is_library ? info->dlpi_name : program_invocation_name;
    const char *name = strrchr(file, '/');
    const size_t offset = (uintptr_t)line->site - 1 - info->dlpi_addr;
    const char *function = function_at(info, offset);
    const bool known =
        tt_check_source_find(is_library ? file : "/proc/self/exe", offset, source, sizeof(source));
    snprintf(line->out, line->out_bytes, "%s%s%s+0x%zx%s%s%s", known ? source : "",
             known ? ", " : "", name ? name + 1 : file, offset, function ? " (" : "",
             function ? function : "", function ? ")" : "");
    return 1;
}

void tt_check_site_write(const void *site, char *out, size_t out_bytes)
{
    struct line line = {site, out, out_bytes};
    out[0] = 0;
    if (site) dl_iterate_phdr(write_line, &line);
}
