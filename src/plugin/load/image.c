/* Looks at an ELF file's program headers only: the loader maps what they name, without comparing it
 * with the length of the file. */
#include "plugin/load/image.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of another kind, or no ELF file at all: the loader refuses it by its first bytes. */
static bool is_image(const ElfW(Ehdr) * header)
{
    const int class = sizeof(header->e_entry) == 8 ? ELFCLASS64 : ELFCLASS32;
    return !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == class &&
           header->e_phentsize == sizeof(ElfW(Phdr));
}

static bool is_whole(int fd, uint64_t file_bytes)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header)) return true;
    if (!is_image(&header)) return true;
    for (unsigned k = 0; k < header.e_phnum; k++) {
        const uint64_t at = header.e_phoff + k * sizeof(segment);
        if (at > file_bytes || file_bytes - at < sizeof(segment)) return false;
        if (pread(fd, &segment, sizeof(segment), (off_t)at) != (ssize_t)sizeof(segment))
            return false;
        if (segment.p_type != PT_LOAD) continue;
        if (segment.p_offset > file_bytes || file_bytes - segment.p_offset < segment.p_filesz)
            return false;
    }
    return true;
}

const char *tt_image_fault(const char *path)
{
    struct stat status;
    const char *fault = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        fault = "it is not a regular file";
    } else if (!is_whole(fd, (uint64_t)status.st_size)) {
        fault = "the file is cut short: it ends before what its headers name";
    }
    close(fd);
    return fault;
}
