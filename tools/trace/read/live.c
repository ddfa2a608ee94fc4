/* Is a file's process still at work? The proof is its open descriptor of that very file, which
 * neither a number of a process that was used again nor a namesake on another host has. */
#include "reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool may_write(int pid, const char *number)
{
    char path[64], line[64];
    unsigned long flags = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, number);
    FILE *about = fopen(path, "re");
    if (!about) return false;
    while (fgets(line, sizeof(line), about)) {
        if (!strncmp(line, "flags:", 6)) flags = strtoul(line + 6, NULL, 8);
    }
    (void)fclose(about);
    return (flags & O_ACCMODE) != O_RDONLY;
}

bool timeline_is_written(int fd, int pid)
{
    struct stat own, other;
    char folder[32];
    bool found = false;
    if (pid <= 0 || fstat(fd, &own) != 0 || !S_ISREG(own.st_mode)) return false;
    (void)snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
    DIR *open_files = opendir(folder); /* not there, or of another user: nothing is known */
    if (!open_files) return false;
    for (struct dirent *entry; !found && (entry = readdir(open_files)) != NULL;) {
        if (entry->d_name[0] == '.' || fstatat(dirfd(open_files), entry->d_name, &other, 0) != 0)
            continue;
        found = own.st_dev == other.st_dev && own.st_ino == other.st_ino &&
                may_write(pid, entry->d_name);
    }
    closedir(open_files);
    return found;
}
