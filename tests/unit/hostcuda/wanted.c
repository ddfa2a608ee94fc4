/* Looks up every function that real programs were seen to need, the way they do: by dlsym in the
 * library, and the driver's also by cudaGetDriverEntryPoint, cudaGetDriverEntryPointByVersion and
 * cuGetProcAddress, which must agree on an address inside of our libraries.
 * usage: wanted LIBCUDA LIBCUDART NAMES */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, names;

typedef cudaError_t entry_point(const char *, void **, unsigned long long,
                                enum cudaDriverEntryPointQueryResult *);
typedef cudaError_t versioned(const char *, void **, unsigned int, unsigned long long,
                              enum cudaDriverEntryPointQueryResult *);
typedef int proc_address(const char *, void **, int, unsigned long long, int *);

struct lookups {
    void *driver, *runtime;
    entry_point *entry;
    versioned *by_version;
    proc_address *proc;
};

static void expect(int good, const char *name, const char *how)
{
    if (good) return;
    failures++;
    printf("%s: not found by %s\n", name, how);
}

static int is_code(const void *fn)
{
    Dl_info info;
    return fn && dladdr(fn, &info) && info.dli_fname &&
           (strstr(info.dli_fname, "libcuda") || strstr(info.dli_fname, "libtutti-host"));
}

static void look_up_driver(const struct lookups *lookups, const char *name)
{
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    void *plain = NULL, *named = NULL, *asked = NULL;
    int found = 1;
    expect(is_code(dlsym(lookups->driver, name)), name, "dlsym");
    expect(lookups->entry(name, &plain, cudaEnableDefault, &status) == cudaSuccess &&
               status == cudaDriverEntryPointSuccess && is_code(plain),
           name, "cudaGetDriverEntryPoint");
    status = cudaDriverEntryPointSymbolNotFound;
    expect(lookups->by_version(name, &named, 12080, cudaEnableDefault, &status) == cudaSuccess &&
               status == cudaDriverEntryPointSuccess && is_code(named),
           name, "cudaGetDriverEntryPointByVersion");
    expect(lookups->proc(name, &asked, 12080, 0, &found) == 0 && found == 0 && is_code(asked), name,
           "cuGetProcAddress");
}

static void look_up(const struct lookups *lookups, const char *name)
{
    names++;
    if (!strncmp(name, "cu", 2) && strncmp(name, "cuda", 4) != 0) {
        look_up_driver(lookups, name);
    } else {
        expect(is_code(dlsym(lookups->runtime, name)), name, "dlsym");
    }
}

int main(int argc, char **argv)
{
    struct lookups lookups;
    char name[128];
    if (argc != 4) return 2;
    lookups.driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    lookups.runtime = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    FILE *file = fopen(argv[3], "re");
    if (!lookups.driver || !lookups.runtime || !file) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    lookups.entry = (entry_point *)dlsym(lookups.runtime, "cudaGetDriverEntryPoint");
    lookups.by_version = (versioned *)dlsym(lookups.runtime, "cudaGetDriverEntryPointByVersion");
    lookups.proc = (proc_address *)dlsym(lookups.driver, "cuGetProcAddress_v2");
    if (!lookups.entry || !lookups.by_version || !lookups.proc) return 2;
    while (fscanf(file, "%127s", name) == 1) {
        look_up(&lookups, name);
    }
    fclose(file);
    printf("%d names, %d failures\n", names, failures);
    return failures || names < 50;
}
