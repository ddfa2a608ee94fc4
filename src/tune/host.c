/* The file of one machine's figures:
 *
 *     tutti-tune 1
 *     machine NAME
 *     phase_usec 0.170            one line for each figure
 *     program HASH BYTES USEC OWN_USEC   of a program from a file, and what the library chose there
 *     time ...                    what was measured, for tuner plugins
 */
#include "tune/host.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/system/file.h"
#include "base/text/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { FILE_MOST = 4 << 20, LINE_BYTES = 256 };

const struct tt_tune_host tt_tune_host_default = {
    .phase_usec = 0.17,
    .switch_usec = 1.5,
    .net_phase_usec = 15.0,
    .touch_usec = 0.03,
    .direct_bytes_usec = 57e3,
    .slot_bytes_usec = 50e3,
    .crowded_slot_bytes_usec = 20e3,
    .net_bytes_usec = 4e3,
};

struct figure {
    const char *name;
    size_t offset;
    double least, most; /* beyond these no machine is */
};

static const struct figure figures[TT_TUNE_FIGURES] = {
    {"phase_usec", offsetof(struct tt_tune_host, phase_usec), 1e-3, 1e4},
    {"switch_usec", offsetof(struct tt_tune_host, switch_usec), 1e-3, 1e4},
    {"net_phase_usec", offsetof(struct tt_tune_host, net_phase_usec), 1e-2, 1e6},
    {"touch_usec", offsetof(struct tt_tune_host, touch_usec), 1e-4, 1e3},
    {"direct_bytes_usec", offsetof(struct tt_tune_host, direct_bytes_usec), 1, 1e7},
    {"slot_bytes_usec", offsetof(struct tt_tune_host, slot_bytes_usec), 1, 1e7},
    {"crowded_slot_bytes_usec", offsetof(struct tt_tune_host, crowded_slot_bytes_usec), 1, 1e7},
    {"net_bytes_usec", offsetof(struct tt_tune_host, net_bytes_usec), 1, 1e7},
};

const char *tt_tune_host_name(int figure)
{
    return figures[figure].name;
}

double *tt_tune_host_figure(struct tt_tune_host *host, int figure)
{
    return (double *)(void *)((char *)host + figures[figure].offset);
}

/* ---- the machine ---- */

/* The processor as the kernel names it; its architecture where it does not. */
static void processor_name(char *name, size_t name_bytes)
{
    char line[LINE_BYTES];
    struct utsname names;
    FILE *file = fopen("/proc/cpuinfo", "re");
    name[0] = '\0';
    while (file && !name[0] && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(name, name_bytes, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    if (file) fclose(file);
    if (!name[0] && !uname(&names)) snprintf(name, name_bytes, "%s", names.machine);
}

void tt_tune_machine_name(char name[TT_TUNE_MACHINE_BYTES])
{
    char processor[TT_TUNE_MACHINE_BYTES - 32];
    processor_name(processor, sizeof(processor));
    snprintf(name, TT_TUNE_MACHINE_BYTES, "%s, %ld cores", processor,
             sysconf(_SC_NPROCESSORS_ONLN));
}

/* ---- the file ---- */

struct reading {
    const char *machine;
    struct tt_tune_host *host;
    uint32_t seen; /* one bit per figure */
    bool named;
    char *reason;
    size_t reason_bytes;
};

static bool read_figure(struct reading *reading, const char *word, const char *value, int number)
{
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        char *end = NULL;
        if (strcmp(word, figures[f].name) != 0) continue;
        double read = tt_number_read(value, &end);
        if (end == value || *end || !(read >= figures[f].least && read <= figures[f].most)) {
            snprintf(reading->reason, reading->reason_bytes,
                     "line %d: %s is %.40s, which is not between %g and %g", number, word, value,
                     figures[f].least, figures[f].most);
            return false;
        }
        *tt_tune_host_figure(reading->host, f) = read;
        reading->seen |= 1U << f;
        return true;
    }
    snprintf(reading->reason, reading->reason_bytes, "line %d: nobody knows '%.40s'", number, word);
    return false;
}

static bool read_program(struct reading *reading, const char *line, int number)
{
    struct tt_tune_host *host = reading->host;
    unsigned long long hash = 0;
    size_t bytes = 0;
    int at = -1;
    char *end = NULL, *last = NULL;
    /* NOLINTNEXTLINE(cert-err34-c): a number that does not fit is refused below */
    int got = sscanf(line, "program %16llx %zu %n", &hash, &bytes, &at);
    double usec = got == 2 && at > 0 ? tt_number_read(line + at, &end) : 0;
    double own = usec > 0 && end && *end == ' ' ? tt_number_read(end + 1, &last) : 0;
    if (!(usec > 0 && own > 0 && last && !*last)) {
        snprintf(reading->reason, reading->reason_bytes, "line %d: '%.60s' is no measured program",
                 number, line);
        return false;
    }
    if (host->nmeasured == TT_TUNE_MEASURED_MOST) {
        snprintf(reading->reason, reading->reason_bytes,
                 "line %d: more than %d lines of measured programs", number,
                 (int)TT_TUNE_MEASURED_MOST);
        return false;
    }
    host->measured[host->nmeasured++] =
        (struct tt_tune_measured){.hash = hash, .bytes = bytes, .usec = usec, .own_usec = own};
    return true;
}

static bool check_time(struct reading *reading, const char *line, int number)
{
    size_t bytes = 0;
    int at = -1, nranks = 0, nnodes = 0;
    char *end = NULL;
    /* NOLINTNEXTLINE(cert-err34-c): a number that does not fit is refused below */
    int got = sscanf(line, "time %*31s %*31s %*31s %d %d %zu %n", &nranks, &nnodes, &bytes, &at);
    double usec = got == 3 && at > 0 ? tt_number_read(line + at, &end) : 0;
    if (end && end > line + at && !*end && nranks > 0 && nnodes > 0 && usec > 0) return true;
    snprintf(reading->reason, reading->reason_bytes, "line %d: '%.60s' is no measured time", number,
             line);
    return false;
}

static bool read_line(struct reading *reading, char *line, int number)
{
    if (number == 1) {
        if (!strcmp(line, "tutti-tune 1")) return true;
        snprintf(reading->reason, reading->reason_bytes,
                 "line 1: it does not begin with 'tutti-tune 1'");
        return false;
    }
    if (!strncmp(line, "time", 4)) return check_time(reading, line, number);
    if (!strncmp(line, "program ", 8)) return read_program(reading, line, number);
    if (!line[0] || line[0] == '#') return true;
    char *value = strchr(line, ' ');
    if (value) *value++ = '\0';
    if (strcmp(line, "machine") != 0) return read_figure(reading, line, value ? value : "", number);
    reading->named = true;
    if (value && !strcmp(value, reading->machine)) return true;
    snprintf(reading->reason, reading->reason_bytes, "it was measured on '%.*s', this is '%s'",
             TT_TUNE_MACHINE_BYTES, value ? value : "", reading->machine);
    return false;
}

/* What is still missing at the end. */
static bool complete(struct reading *reading, int number, bool cut)
{
    if (cut) {
        snprintf(reading->reason, reading->reason_bytes, "line %d: it ends in the middle of a line",
                 number);
        return false;
    }
    if (!reading->named) {
        snprintf(reading->reason, reading->reason_bytes, "it does not name its machine");
        return false;
    }
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        if (reading->seen & (1U << f)) continue;
        snprintf(reading->reason, reading->reason_bytes, "it has no %s; it ends with line %d",
                 figures[f].name, number);
        return false;
    }
    return true;
}

/* NOLINTBEGIN(readability-non-const-parameter): `reading` writes to `reason` */
ncclResult_t tt_tune_host_parse(const char *text, const char *machine,
                                struct tt_tune_host *host_out, char *reason, size_t reason_bytes)
/* NOLINTEND(readability-non-const-parameter): as above */
{
    struct tt_tune_host host = tt_tune_host_default;
    struct reading reading = {
        .machine = machine, .host = &host, .reason = reason, .reason_bytes = reason_bytes};
    int number = 0;
    for (const char *at = text; *at || number == 0;) {
        char line[LINE_BYTES];
        size_t len = strcspn(at, "\r\n");
        snprintf(line, sizeof(line), "%.*s", (int)tt_min_size(len, LINE_BYTES), at);
        if (!read_line(&reading, line, ++number)) return ncclInvalidUsage;
        at += len;
        if (*at == '\r') at++;
        if (*at == '\n') at++;
    }
    bool cut = *text && text[strlen(text) - 1] != '\n';
    if (!complete(&reading, number, cut)) return ncclInvalidUsage;
    *host_out = host;
    return ncclSuccess;
}

void tt_tune_host_print(FILE *out, const char *machine, const struct tt_tune_host *host)
{
    struct tt_tune_host copy = *host;
    fprintf(out, "tutti-tune 1\nmachine %s\n", machine);
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        fprintf(out, "%s %.6g\n", figures[f].name, *tt_tune_host_figure(&copy, f));
    }
    for (uint64_t k = 0; k < host->nmeasured; k++) {
        const struct tt_tune_measured *row = &host->measured[k];
        fprintf(out, "program %016llx %llu %.6g %.6g\n", (unsigned long long)row->hash,
                (unsigned long long)row->bytes, row->usec, row->own_usec);
    }
}

bool tt_tune_host_path(char *path, size_t path_bytes)
{
    const char *named = tt_param_str("TUTTI_TUNE_FILE");
    const char *home = getenv("HOME");
    if (named && !strcmp(named, "none")) return false;
    if (named && *named) {
        snprintf(path, path_bytes, "%s", named);
        return true;
    }
    if (home && *home) snprintf(path, path_bytes, "%s/.config/tutti/machine.tune", home);
    return home && *home;
}

void tt_tune_host_find(struct tt_tune_host *host_out, struct tt_tune_found *found_out)
{
    struct tt_tune_found *found = found_out;
    char machine[TT_TUNE_MACHINE_BYTES];
    *host_out = tt_tune_host_default;
    found->path[0] = found->reason[0] = '\0';
    found->hash = 0;
    if (!tt_tune_host_path(found->path, sizeof(found->path))) return;
    const char *why = NULL;
    size_t bytes = 0;
    errno = 0;
    char *text = tt_file_read(found->path, FILE_MOST, &bytes, &why);
    if (!text) { /* a missing file is a fault only where it was asked for */
        bool usual = errno == ENOENT && !tt_param_is_set("TUTTI_TUNE_FILE");
        if (!usual) snprintf(found->reason, sizeof(found->reason), "%s", why);
        return;
    }
    tt_tune_machine_name(machine);
    if (!tt_tune_host_parse(text, machine, host_out, found->reason, sizeof(found->reason)))
        found->hash = tt_hash_bytes(TT_HASH_START, host_out, sizeof(*host_out)) | 1; /* no holes */
    free(text);
}

void tt_tune_host_load(struct tt_tune_host *host_out, uint64_t *hash_out)
{
    struct tt_tune_found found;
    tt_tune_host_find(host_out, &found);
    *hash_out = found.hash;
    if (found.hash) tt_info(TT_LOG_TUNING, "figures of this machine are those of %s", found.path);
    if (!found.reason[0]) return;
    const uint32_t before = tt_log_expected();
    if (tt_param_are_reported()) tt_log_expect(TT_LOG_TUNING);
    if (tt_param_is_set("TUTTI_TUNE_FILE")) {
        tt_warn_setting("TUTTI_TUNE_FILE %s is refused: %s; the built-in figures are used, `tutti "
                        "tune` measures this "
                        "machine",
                        found.path, found.reason);
    } else {
        tt_warn(
            "%s is refused: %s; the built-in figures are used, `tutti tune` measures this machine",
            found.path, found.reason);
    }
    tt_log_expect(before);
}
