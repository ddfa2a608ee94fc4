/* Reads the program's ELF file. Everything in it is checked against the file's size: the file may
 * be cut or made to crash us. */
#include "linkage.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const char *bytes;
    size_t len;
    char path[PATH_MAX];
};

struct facts {
    bool needs_runtime, needs_nccl;     /* as shared libraries */
    bool defines_runtime, defines_nccl; /* their functions are inside */
    bool has_device_code;               /* made by nvcc */
    const char *mpi;                    /* the MPI library that it needs; NULL: none */
    bool mpi_takes_pmi;                 /* MPICH or one with its binary interface */
    const char *rpath;                  /* DT_RPATH that counts: no DT_RUNPATH beside it */
};

/* ---- reading within bounds ---- */

static const void *at(const struct image *image, uint64_t offset, uint64_t len)
{
    if (offset > image->len || len > image->len - offset) return NULL;
    return image->bytes + offset;
}

static const char *text_at(const struct image *image, uint64_t table, uint64_t table_len,
                           uint64_t offset)
{
    const char *text = offset < table_len ? at(image, table, table_len) : NULL;
    if (!text || !memchr(text + offset, 0, table_len - offset)) return NULL;
    return text + offset;
}

static const Elf64_Shdr *section(const struct image *image, const Elf64_Ehdr *head, size_t number)
{
    if (number >= head->e_shnum || head->e_shentsize != sizeof(Elf64_Shdr)) return NULL;
    uint64_t offset = head->e_shoff + number * sizeof(Elf64_Shdr);
    return offset < head->e_shoff ? NULL : at(image, offset, sizeof(Elf64_Shdr));
}

/* ---- what it says ---- */

static bool begins(const char *text, const char *with)
{
    return text && !strncmp(text, with, strlen(with));
}

static void read_symbols(const struct image *image, const Elf64_Ehdr *head, const Elf64_Shdr *table,
                         struct facts *facts)
{
    const Elf64_Shdr *names = section(image, head, table->sh_link);
    const Elf64_Sym *symbols = at(image, table->sh_offset, table->sh_size);
    if (!names || !symbols) return;
    for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
        const Elf64_Sym *symbol = &symbols[i];
        if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) continue;
        const char *name = text_at(image, names->sh_offset, names->sh_size, symbol->st_name);
        if (!name) continue;
        if (!strcmp(name, "cudaMalloc") || !strcmp(name, "__cudaRegisterFatBinary"))
            facts->defines_runtime = true;
        if (!strcmp(name, "ncclCommInitRank") || !strcmp(name, "ncclCommInitAll"))
            facts->defines_nccl = true;
    }
}

static void read_dynamic(const struct image *image, const Elf64_Ehdr *head, const Elf64_Shdr *table,
                         struct facts *facts)
{
    const Elf64_Shdr *names = section(image, head, table->sh_link);
    const Elf64_Dyn *entries = at(image, table->sh_offset, table->sh_size);
    bool has_runpath = false;
    if (!names || !entries) return;
    for (size_t i = 0; i < table->sh_size / sizeof(*entries); i++) {
        const char *text = text_at(image, names->sh_offset, names->sh_size, entries[i].d_un.d_val);
        if (entries[i].d_tag == DT_NULL) break;
        if (entries[i].d_tag == DT_RUNPATH) has_runpath = true;
        if (entries[i].d_tag == DT_RPATH) facts->rpath = text;
        if (entries[i].d_tag != DT_NEEDED) continue;
        facts->needs_runtime = facts->needs_runtime || begins(text, "libcudart.so");
        facts->needs_nccl = facts->needs_nccl || begins(text, "libnccl.so");
        bool mpich = begins(text, "libmpich.so") || begins(text, "libmpi.so.12");
        if (mpich || begins(text, "libmpi.so") || begins(text, "libmpi_cxx")) facts->mpi = text;
        facts->mpi_takes_pmi = facts->mpi_takes_pmi || mpich;
    }
    if (has_runpath) facts->rpath = NULL;
}

static bool read_facts(const struct image *image, struct facts *facts)
{
    const Elf64_Ehdr *head = at(image, 0, sizeof(*head));
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    const Elf64_Shdr *names = section(image, head, head->e_shstrndx);
    for (size_t i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *one = section(image, head, i);
        if (!one) return true;
        const char *name =
            names ? text_at(image, names->sh_offset, names->sh_size, one->sh_name) : NULL;
        if (begins(name, ".nv_fatbin") || begins(name, ".nvFatBinSegment"))
            facts->has_device_code = true;
        if (one->sh_type == SHT_SYMTAB || one->sh_type == SHT_DYNSYM)
            read_symbols(image, head, one, facts);
        if (one->sh_type == SHT_DYNAMIC) read_dynamic(image, head, one, facts);
    }
    return true;
}

/* ---- folders ---- */

static bool same_folder(const char *folder, const char *libraries)
{
    char own[PATH_MAX];
    char other[PATH_MAX];
    char list[8192];
    char *rest = NULL;
    snprintf(list, sizeof(list), "%s", libraries);
    if (!realpath(folder, own)) return false;
    for (char *one = strtok_r(list, ":", &rest); one; one = strtok_r(NULL, ":", &rest)) {
        if (realpath(one, other) && !strcmp(own, other)) return true;
    }
    return false;
}

/* "$ORIGIN/lib" of /opt/a/program is /opt/a/lib. False when it does not fit. */
static bool expand(const char *folder, const char *program, char *out, size_t out_bytes)
{
    const char *rest = folder;
    char dir[PATH_MAX] = "";
    if (begins(folder, "$ORIGIN")) rest = folder + strlen("$ORIGIN");
    if (begins(folder, "${ORIGIN}")) rest = folder + strlen("${ORIGIN}");
    if (rest != folder) {
        snprintf(dir, sizeof(dir), "%s", program);
        char *slash = strrchr(dir, '/');
        if (slash) *slash = 0;
    }
    int len = snprintf(out, out_bytes, "%s%s", dir, rest);
    return len >= 0 && (size_t)len < out_bytes;
}

/* The first folder of a DT_RPATH that has a library of these names and is not ours; false: none. */
static bool hides(const char *rpath, const char *program, const char *libraries, char *out,
                  size_t out_bytes)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libnccl.so.2",
                                        "libcuda.so.1"};
    char list[8192];
    char path[PATH_MAX + 32];
    char *rest = NULL;
    snprintf(list, sizeof(list), "%s", rpath);
    for (char *one = strtok_r(list, ":", &rest); one; one = strtok_r(NULL, ":", &rest)) {
        if (!expand(one, program, out, out_bytes) || same_folder(out, libraries)) continue;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            snprintf(path, sizeof(path), "%s/%s", out, names[i]);
            if (!access(path, R_OK)) return true;
        }
    }
    return false;
}

/* ---- the file ---- */

static bool find_program(const char *program, char *path)
{
    char list[8192];
    char *rest = NULL;
    const char *folders = getenv("PATH");
    if (strchr(program, '/')) return realpath(program, path) != NULL;
    snprintf(list, sizeof(list), "%s", folders ? folders : "");
    for (char *one = strtok_r(list, ":", &rest); one; one = strtok_r(NULL, ":", &rest)) {
        char candidate[PATH_MAX];
        int len = snprintf(candidate, sizeof(candidate), "%s/%s", one, program);
        if (len > 0 && len < (int)sizeof(candidate) && !access(candidate, X_OK))
            return realpath(candidate, path) != NULL;
    }
    return false;
}

static bool open_image(const char *program, struct image *image)
{
    struct stat status;
    if (!find_program(program, image->path)) return false;
    int fd = open(image->path, O_RDONLY | O_CLOEXEC);
    void *map = MAP_FAILED;
    if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0) {
        image->len = (size_t)status.st_size;
        map = mmap(NULL, image->len, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0) close(fd);
    image->bytes = map == MAP_FAILED ? NULL : map;
    return image->bytes != NULL;
}

static int complain(const struct image *image, const struct facts *facts, const char *libraries,
                    int nranks, bool has_pmi)
{
    char folder[PATH_MAX];
    int count = 0;
    bool inside = facts->defines_runtime || facts->has_device_code;
    if (inside && !facts->needs_runtime) {
        count++;
        fprintf(stderr,
                "tutti: %s has NVIDIA's CUDA runtime inside (nvcc's default), which nothing can "
                "redirect; link it with: nvcc -cudart shared (CMake: CUDA_RUNTIME_LIBRARY "
                "Shared)\n",
                image->path);
    }
    if (facts->defines_nccl && !facts->needs_nccl) {
        count++;
        fprintf(stderr,
                "tutti: %s has NCCL inside (libnccl_static.a), which nothing can redirect; link it "
                "with -lnccl, the shared library\n",
                image->path);
    }
    if (facts->rpath && hides(facts->rpath, image->path, libraries, folder, sizeof(folder))) {
        count++;
        fprintf(stderr,
                "tutti: the DT_RPATH of %s finds the libraries in %s before ours; link it with "
                "-Wl,--enable-new-dtags (DT_RUNPATH), or take it out: patchelf --remove-rpath\n",
                image->path, folder);
    }
    if (facts->mpi && nranks > 1 && !(facts->mpi_takes_pmi && has_pmi)) {
        count++;
        fprintf(stderr,
                "tutti: %s is linked to an MPI library (%s), which does not start under this "
                "launcher%s: MPI_Init makes %d programs of one rank each; start it with "
                "eval \"$(tutti env --shell)\" and mpirun -n %d\n",
                image->path, facts->mpi, facts->mpi_takes_pmi ? " on other hosts" : "", nranks,
                nranks);
    }
    return count;
}

int linkage_check(const char *program, const char *libraries, int nranks, bool has_pmi)
{
    struct image image = {NULL, 0, ""};
    struct facts facts = {.rpath = NULL};
    if (!open_image(program, &image)) return 0;
    int count =
        read_facts(&image, &facts) ? complain(&image, &facts, libraries, nranks, has_pmi) : 0;
    munmap((void *)(uintptr_t)image.bytes, image.len);
    return count;
}
