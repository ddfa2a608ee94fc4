/* Programs from files (TUTTI_PROGRAM_DIR), each beside what the library chooses by itself: with the
 * figures that were just measured, which the runs read through this process's file. */
#include "tutti.h"

#include "base/mem.h"
#include "base/param.h"
#include "base/system/file.h"
#include "program/import/import.h"
#include "tune.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MOST_BYTES = 64 << 20, FAULT_BYTES = 256, SIZES_MOST = 16 };
static const double usual_run_sec = 10;

struct times {
    struct {
        size_t bytes;
        double usec;
    } rows[SIZES_MOST];
    int count;
};

static void keep_row(void *context, const char *operation, size_t bytes, double usec)
{
    struct times *times = context;
    (void)operation;
    if (times->count == SIZES_MOST) return;
    times->rows[times->count].bytes = bytes;
    times->rows[times->count++].usec = usec;
}

/* One row for each size that both have. How many are faster. */
static int add_rows(struct tt_tune_host *host, uint64_t hash, const struct times *times,
                    const struct times *own)
{
    int faster = 0;
    for (int k = 0; k < times->count && k < own->count; k++) {
        if (times->rows[k].bytes != own->rows[k].bytes) continue;
        if (host->nmeasured == TT_TUNE_MEASURED_MOST) break;
        host->measured[host->nmeasured++] =
            (struct tt_tune_measured){.hash = hash,
                                      .bytes = times->rows[k].bytes,
                                      .usec = times->rows[k].usec,
                                      .own_usec = own->rows[k].usec};
        faster += times->rows[k].usec < own->rows[k].usec;
    }
    return faster;
}

/* So that a slow one leaves time to others. */
static double time_of_run(double end_sec)
{
    double left = end_sec - tune_now_sec(), share = left / 4;
    if (share < usual_run_sec) share = usual_run_sec;
    return left < share ? left : share;
}

/* Small sizes, then large ones, so that these do not take the time of the others. */
static void measure(const char *path, const struct tt_program *program, const char *figures,
                    double end_sec, struct tt_tune_host *host)
{
    static const struct {
        const char *least, *most;
        int repeats;
    } ranges[] = {{"64", "32K", 5}, {"256K", "16M", 2}};
    int faster = 0, measured = 0;
    for (size_t k = 0; k < TT_LEN(ranges); k++) {
        struct times times = {.count = 0}, own = {.count = 0};
        struct tune_run run = {.program = path,
                               .nranks = (int)program->nranks,
                               .figures = figures,
                               .least = ranges[k].least,
                               .most = ranges[k].most,
                               .operations = {perf_program_operation(program)},
                               .repeats = ranges[k].repeats};
        run.timeout_sec = time_of_run(end_sec);
        if (!tune_run(&run, keep_row, &times)) return;
        run.program = NULL;
        run.timeout_sec = time_of_run(end_sec);
        if (!tune_run(&run, keep_row, &own)) return;
        faster += add_rows(host, tt_program_hash(program), &times, &own);
        measured += times.count;
    }
    (void)fprintf(stderr, "tutti tune: %s: faster than the library's own at %d of %d sizes\n", path,
                  faster, measured);
}

static bool is_full(const struct tt_tune_host *host)
{
    return host->nmeasured + SIZES_MOST > TT_TUNE_MEASURED_MOST;
}

/* False: there is no time or room left. */
static bool take_file(const char *path, const char *figures, double end_sec,
                      struct tt_tune_host *host)
{
    char fault[FAULT_BYTES] = "";
    const char *why = fault;
    struct tt_import *import = NULL;
    size_t bytes = 0;
    if (end_sec - tune_now_sec() < 1 || is_full(host)) return false;
    char *text = tt_file_read(path, FILE_MOST_BYTES, &bytes, &why);
    if (text) {
        why = fault;
        (void)tt_import_read(text, bytes, &import, fault, sizeof(fault));
    }
    if (import) {
        measure(path, import->program, figures, end_sec, host);
    } else {
        (void)fprintf(stderr, "tutti tune: %s is not measured: %s\n", path, why);
    }
    tt_import_destroy(import);
    free(text);
    return true;
}

static int is_program(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot > entry->d_name && (!strcasecmp(dot, ".xml") || !strcasecmp(dot, ".json"));
}

static void take_folder(const char *folder, const char *figures, double end_sec,
                        struct tt_tune_host *host)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_program, alphasort), done = 0;
    for (bool going = true; done < count && going; done += going) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entries[done]->d_name);
        going = take_file(path, figures, end_sec, host);
    }
    if (done < count) {
        (void)fprintf(
            stderr,
            "tutti tune: no time or room left for %d of %d program files; --seconds gives "
            "more time\n",
            count - done, count);
    }
    for (int k = 0; k < count; k++)
        free(entries[k]);
    free((void *)entries);
}

void tune_programs(const char *machine, double end_sec, struct tt_tune_host *host)
{
    char figures[64];
    const char *folder = tt_param_str("TUTTI_PROGRAM_DIR");
    struct stat found;
    if (!folder || !*folder || stat(folder, &found) || !S_ISDIR(found.st_mode)) return;
    int fd = memfd_create("tutti-tune-figures", MFD_CLOEXEC);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) return;
    tt_tune_host_print(out, machine, host);
    (void)fflush(out);
    (void)snprintf(figures, sizeof(figures), "/proc/%ld/fd/%d", (long)getpid(), fd);
    take_folder(folder, figures, end_sec, host);
    (void)fclose(out);
}
