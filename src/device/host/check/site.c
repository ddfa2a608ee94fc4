/* Where the program called: the first frame of the stack that is none of our libraries'. */
#include "state.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES_MOST = 24 };

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

bool check_is_system(const char *file)
{
    static const char *const names[] = {
        "libc.",     "libc-",    "libm.",      "libpthread", "ld-linux", "libdl.",  "librt.",
        "libstdc++", "libgcc_s", "linux-vdso", "libasan",    "libubsan", "libtsan", "libhwloc",
        "libexpat",  "libudev",  "libsodium",  "libcap",     "libzstd",  NULL};
    return is_ours(file) || is_one_of(file, names);
}

/* The first return address that lies outside of our libraries. */
const void *check_call_site(void)
{
    void *frames[FRAMES_MOST];
    Dl_info found;
    int count = backtrace(frames, FRAMES_MOST);
    for (int i = 0; i < count; i++) {
        if (dladdr(frames[i], &found) && found.dli_fname && !is_ours(found.dli_fname))
            return frames[i];
    }
    return NULL;
}

const void *check_fault_site(const void *instruction)
{
    void *frames[FRAMES_MOST];
    Dl_info found;
    int count = backtrace(frames, FRAMES_MOST);
    int i = 0;
    while (i < count && frames[i] != instruction)
        i++;
    for (; i < count; i++) {
        bool named = dladdr(frames[i], &found) && found.dli_fname;
        if (named && !check_is_system(found.dli_fname)) return frames[i];
    }
    return instruction;
}

void check_site_write(const void *site, char *out, size_t out_bytes)
{
    Dl_info found;
    out[0] = 0;
    if (!site || !dladdr(site, &found) || !found.dli_fname) return;
    const char *name = strrchr(found.dli_fname, '/');
    size_t offset = (size_t)((const char *)site - (const char *)found.dli_fbase);
    int len =
        snprintf(out, out_bytes, ", called at %s+0x%zx", name ? name + 1 : found.dli_fname, offset);
    if (found.dli_sname && len > 0 && (size_t)len < out_bytes)
        snprintf(out + len, out_bytes - (size_t)len, " (%s)", found.dli_sname);
}
