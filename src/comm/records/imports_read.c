/* Program files from a folder: those whose name ends in .xml or .json, in the order of their names.
 */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/system/file.h"
#include "comm/init.h"
#include "comm/records/imports.h"
#include "tune/tune.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { FILES_MOST = 1024, FILE_MOST_BYTES = 64 << 20, FAULT_BYTES = 256 };

void tt_imports_destroy(struct tt_imports *imports)
{
    if (!imports) return;
    for (int k = 0; k < imports->nfiles; k++) {
        struct tt_import_file *file = &imports->files[k];
        free(file->path);
        tt_import_destroy(file->import);
        free(file->fault);
        free(file->refs);
    }
    free(imports->files);
    free(imports->programs);
    free(imports);
}

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

uint64_t tt_imports_hash(const struct tt_imports *imports)
{
    uint64_t hash = TT_HASH_START;
    for (int k = 0; k < imports->nfiles; k++) {
        const struct tt_import_file *file = &imports->files[k];
        hash = tt_hash_bytes(hash, file->name, strlen(file->name) + 1);
        hash = hash_word(hash, file->hash);
    }
    return hash;
}

int tt_imports_channels(const struct tt_imports *imports)
{
    int most = 1;
    for (int k = 0; k < imports->nfiles; k++) {
        const struct tt_import *import = imports->files[k].import;
        if (import && import->program->nchannels > most) most = import->program->nchannels;
    }
    return most;
}

/* ---- one file ---- */

/* What of the import counts; the same on all ranks that read the same text. */
static void take_import(struct tt_import_file *file, struct tt_import *import, bool forced)
{
    uint64_t most = import->max_bytes ? import->max_bytes : UINT64_MAX;
    file->least_bytes = forced ? 0 : import->min_bytes;
    file->most_bytes = forced ? UINT64_MAX : most;
    file->predicted = !forced && !import->min_bytes && !import->max_bytes;
    file->import = import;
    file->hash = hash_word(TT_HASH_START, tt_program_hash(import->program));
    file->hash = hash_word(file->hash, file->least_bytes);
    file->hash = hash_word(file->hash, file->most_bytes);
    file->hash = hash_word(file->hash, file->predicted);
}

/* Read it; false when it is for another number of ranks. A refused one stays, so that ranks can
 * compare what they refuse. */
static bool read_file(const struct tt_imports *imports, const char *path,
                      const struct tt_member *member, struct tt_import_file *file)
{
    char fault[FAULT_BYTES] = "";
    struct tt_import *import = NULL;
    size_t bytes = 0;
    const char *why = NULL;
    char *text = tt_file_read(path, FILE_MOST_BYTES, &bytes, &why);
    if (!text) (void)snprintf(fault, sizeof(fault), "%s", why);
    if (text) (void)tt_import_read(text, bytes, &import, fault, sizeof(fault));
    if (import && import->program->nranks != member->nranks) {
        if (member->rank == 0) {
            tt_info(TT_LOG_TUNING, "program %s is for %d ranks: not for this communicator of %d",
                    path, (int)import->program->nranks, member->nranks);
        }
        tt_import_destroy(import);
        free(text);
        return false;
    }
    if (import) {
        take_import(file, import, imports->forced);
    } else {
        file->hash = hash_word(TT_HASH_START, tt_hash_bytes(TT_HASH_START, text ? text : fault,
                                                            text ? bytes : strlen(fault)));
        file->fault = strdup(fault[0] ? fault : "out of memory");
    }
    free(text);
    return true;
}

/* ---- the folder ---- */

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool is_program(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot > name && (strcasecmp(dot, ".xml") == 0 || strcasecmp(dot, ".json") == 0);
}

/* Names of its program files, sorted, each owned; -1 when it cannot be read. */
static int list_folder(const char *path, char *names[FILES_MOST])
{
    DIR *folder = opendir(path);
    if (!folder) return -1;
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (!is_program(entry->d_name)) continue;
        if (count == FILES_MOST) {
            tt_warn_setting("TUTTI_PROGRAM_DIR: %s has more than %d program files: the others are "
                            "not read",
                            path, FILES_MOST);
            break;
        }
        names[count] = strdup(entry->d_name);
        if (names[count]) count++;
    }
    closedir(folder);
    qsort(names, (size_t)count, sizeof(names[0]), compare_names);
    return count;
}

/* The path of a file of the folder, owned; a file in place of a folder is the path itself. */
static char *path_of(const char *folder, const char *name)
{
    size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = tt_calloc(bytes, 1);
    if (path) (void)snprintf(path, bytes, "%s%s%s", folder, *name ? "/" : "", name);
    return path;
}

static void read_all(struct tt_imports *imports, const char *folder, char **names, int nnames,
                     const struct tt_member *member)
{
    imports->files = tt_calloc((size_t)nnames, sizeof(*imports->files));
    for (int k = 0; imports->files && k < nnames; k++) {
        struct tt_import_file *file = &imports->files[imports->nfiles];
        file->path = path_of(folder, names[k]);
        if (file->path && read_file(imports, file->path, member, file)) {
            const char *slash = strrchr(file->path, '/');
            file->name = slash ? slash + 1 : file->path;
            imports->nfiles++;
        } else {
            free(file->path);
            file->path = NULL;
        }
    }
}

struct tt_imports *tt_imports_read(const struct tt_member *member)
{
    const char *path = tt_param_str("TUTTI_PROGRAM_DIR");
    struct stat st;
    if (!path || !*path || member->nranks < 2) return NULL;
    struct tt_imports *imports = tt_calloc(1, sizeof(*imports));
    char **names = tt_calloc(FILES_MOST, sizeof(char *));
    int nnames = -1;
    if (imports && names && stat(path, &st) == 0) {
        imports->forced = !S_ISDIR(st.st_mode);
        if (imports->forced) names[0] = strdup("");
        nnames = imports->forced ? names[0] != NULL : list_folder(path, names);
    }
    if (nnames < 0) {
        tt_warn_setting("TUTTI_PROGRAM_DIR: %s cannot be read (%s): no programs are imported", path,
                        strerror(errno));
    }
    if (nnames > 0) read_all(imports, path, names, nnames, member);
    for (int k = 0; k < nnames; k++)
        free(names[k]);
    free(names);
    if (imports && imports->nfiles > 0) return imports;
    tt_imports_destroy(imports);
    return NULL;
}
