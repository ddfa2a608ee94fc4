/* Reads the NCCL_DEBUG* variables (levels, subsystems, file, time stamps) as NCCL documents them.
 * A word that means nothing is named and skipped; it never switches a whole list off. */
#include "base/log/log_config.h"

#include "base/mem.h"
#include "base/param/param_files.h"
#include "base/system/clock.h"
#include "base/text/spelling.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct word {
    const char *name;
    uint32_t bits;
};

static const struct word levels[] = {
    {"VERSION", TT_LOG_UP_TO_VERSION},
    {"WARN", TT_LOG_UP_TO_WARN},
    {"ATTN", TT_LOG_UP_TO_ATTN},
    {"INFO", TT_LOG_UP_TO_INFO},
    {"ABORT", TT_LOG_UP_TO_ABORT},
    {"TRACE", TT_LOG_UP_TO_TRACE},
    {"NONE", 0},
};

static const struct word level_words[] = {
    {"VERSION", 1U << TT_LOG_VERSION}, {"WARN", 1U << TT_LOG_WARN},   {"ATTN", 1U << TT_LOG_ATTN},
    {"INFO", 1U << TT_LOG_INFO},       {"ABORT", 1U << TT_LOG_ABORT}, {"TRACE", 1U << TT_LOG_TRACE},
    {"ALL", TT_LOG_UP_TO_TRACE},
};

static const struct word sub_words[] = {
    {"INIT", TT_LOG_INIT},
    {"COLL", TT_LOG_COLL},
    {"P2P", TT_LOG_P2P},
    {"SHM", TT_LOG_SHM},
    {"NET", TT_LOG_NET},
    {"GRAPH", TT_LOG_GRAPH},
    {"TUNING", TT_LOG_TUNING},
    {"TUNE", TT_LOG_TUNING}, /* as guides spell it */
    {"ENV", TT_LOG_ENV},
    {"ALLOC", TT_LOG_ALLOC},
    {"CALL", TT_LOG_CALL},
    {"PROXY", TT_LOG_PROXY},
    {"NVLS", TT_LOG_NVLS},
    {"BOOTSTRAP", TT_LOG_BOOTSTRAP},
    {"REG", TT_LOG_REG},
    {"PROFILE", TT_LOG_PROFILE},
    {"RAS", TT_LOG_RAS},
    {"DESTROY", TT_LOG_DESTROY},
    {"ALLOC_HOST", TT_LOG_ALLOC_HOST},
    {"ALL", ~0U},
};

static const char default_stamp[] = "[%F %T] ";

static void complain(struct tt_log_config *config, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void complain(struct tt_log_config *config, const char *fmt, ...)
{
    if (config->complaint_count == TT_LOG_COMPLAINTS_MAX) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(config->complaints[config->complaint_count++], TT_LOG_COMPLAINT_BYTES, fmt, args);
    va_end(args);
}

/* The word of `len` bytes at `text` in any case, NULL when unknown. */
static const struct word *find_word(const struct word *words, size_t count, const char *text,
                                    size_t len)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i].name) == len && !strncasecmp(words[i].name, text, len))
            return &words[i];
    }
    return NULL;
}

static void suggest(const struct word *words, size_t count, const char *text, size_t len,
                    char meant[64])
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof(list); i++) {
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s,", words[i].name);
    }
    tt_param_suggest(list, text, len, meant, 64);
}

static bool read_bool(const char *name)
{
    const char *text = getenv(name);
    return text && (!strcmp(text, "1") || !strcasecmp(text, "T") || !strcasecmp(text, "TRUE"));
}

static void read_level(struct tt_log_config *config)
{
    const char *text = getenv("NCCL_DEBUG");
    if (!text || !*text) {
        config->warn_only = read_bool("TUTTI_WARN");
        if (config->warn_only) config->levels = TT_LOG_UP_TO_WARN;
        return;
    }
    const struct word *word = find_word(levels, TT_LEN(levels), text, strlen(text));
    if (word) {
        config->levels = word->bits;
    } else {
        char meant[64];
        suggest(levels, TT_LEN(levels), text, strlen(text), meant);
        complain(config,
                 "NCCL_DEBUG: level '%.64s' is not known; use VERSION, WARN, ATTN, INFO or TRACE%s",
                 text, meant);
    }
}

/* A list of words: comma separated, a leading ^ takes the listed ones away from all. */
static uint32_t read_list(struct tt_log_config *config, const char *name, const struct word *words,
                          size_t count, uint32_t fallback)
{
    const char *text = getenv(name);
    if (!text) return fallback;
    const bool invert = *text == '^';
    uint32_t bits = 0;
    for (text += invert; *text; text += strcspn(text, ",")) {
        text += strspn(text, ", \t");
        size_t len = strcspn(text, ",");
        while (len && (text[len - 1] == ' ' || text[len - 1] == '\t')) {
            len--;
        }
        if (!len) continue;
        const struct word *word = find_word(words, count, text, len);
        if (word) {
            bits |= word->bits;
        } else {
            char meant[64];
            suggest(words, count, text, len, meant);
            complain(config, "%s: '%.*s' is not known and is skipped%s", name,
                     (int)tt_min_size(len, 64), text, meant);
        }
    }
    return invert ? ~bits : bits;
}

static void read_host(struct tt_log_config *config)
{
    if (gethostname(config->host, sizeof(config->host) - 1) != 0) strcpy(config->host, "unknown");
    config->host[strcspn(config->host, ".")] = '\0';
    for (char *c = config->host; *c; c++) {
        if (*c == '%' || *c == '/') *c = '-';
    }
}

static void read_stamp_format(struct tt_log_config *config)
{
    const char *text = getenv("NCCL_DEBUG_TIMESTAMP_FORMAT");
    if (!text || strlen(text) >= sizeof(config->stamp_format)) text = default_stamp;
    snprintf(config->stamp_format, sizeof(config->stamp_format), "%s", text);
    for (char *c = config->stamp_format; *c; c++) {
        if (*c == '_') *c = ' ';
    }
}

/* NCCL_DEBUG_FILE with %h, %p and %% replaced; anything else stays as written. */
static void expand_path(const char *text, const char *host, char path[PATH_MAX])
{
    size_t len = 0;
    path[0] = '\0';
    while (*text && len < PATH_MAX - 1) {
        const char *kind = *text == '%' ? text + 1 : "";
        int more = 0;
        if (*kind == 'h') {
            more = snprintf(path + len, PATH_MAX - len, "%s", host);
        } else if (*kind == 'p') {
            more = snprintf(path + len, PATH_MAX - len, "%d", (int)getpid());
        } else {
            more = snprintf(path + len, PATH_MAX - len, "%c", *text);
        }
        text += *kind == 'h' || *kind == 'p' || *kind == '%' ? 2 : 1;
        len = tt_min_size(len + (size_t)more, PATH_MAX - 1);
    }
}

/* True when another descriptor of this process is open for writing on the same file: a second copy
 * of this room, or the program's own output. */
static bool is_open_elsewhere(int fd, const struct stat *file)
{
    bool found = false;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) return false;
    for (const struct dirent *entry = readdir(dir); entry && !found; entry = readdir(dir)) {
        struct stat other;
        const int other_fd = (int)strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] == '.' || other_fd == fd || other_fd == dirfd(dir)) continue;
        if (fstat(other_fd, &other) != 0) continue;
        if (other.st_dev != file->st_dev || other.st_ino != file->st_ino) continue;
        found = (fcntl(other_fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    }
    closedir(dir);
    return found;
}

/* Open for appending, so that processes may share a file; emptied by its first opener here. A FIFO
 * that no process reads is refused (ENXIO): opening it would wait. */
static int open_file(const char *path)
{
    struct stat file;
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int fd = open(path, flags, 0644);
    if (fd < 0 || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return fd;
    if (!is_open_elsewhere(fd, &file) && ftruncate(fd, 0) != 0) errno = 0; /* append then */
    return fd;
}

static void read_file(struct tt_log_config *config, int file_fd)
{
    char path[PATH_MAX];
    const char *text = getenv("NCCL_DEBUG_FILE");
    int fd = -1;
    config->fd = config->warn_only ? STDERR_FILENO : STDOUT_FILENO;
    if (text && *text && config->levels & ~TT_LOG_UP_TO_VERSION && !config->warn_only) {
        expand_path(text, config->host, path);
        fd = open_file(path);
        if (fd < 0) complain(config, "NCCL_DEBUG_FILE: %.128s: %m; lines go to stdout", path);
    }
    if (file_fd >= 0) { /* the old number now means the new place */
        dup3(fd >= 0 ? fd : STDOUT_FILENO, file_fd, O_CLOEXEC);
        if (fd >= 0) close(fd);
        fd = fd >= 0 ? file_fd : -1;
    }
    if (fd >= 0) config->fd = fd;
}

struct tt_log_config *tt_log_config_read(int file_fd)
{
    struct tt_log_config *config = tt_calloc(1, sizeof(*config));
    if (!config) return NULL;
    tt_param_files_read(); /* NCCL_DEBUG may stand in ~/.nccl.conf */
    read_level(config);
    config->levels |= read_list(config, "NCCL_DEBUG_LEVELS", level_words, TT_LEN(level_words), 0) &
                      TT_LOG_UP_TO_TRACE;
    config->mask = read_list(config, "NCCL_DEBUG_SUBSYS", sub_words, TT_LEN(sub_words),
                             TT_LOG_INIT | TT_LOG_BOOTSTRAP | TT_LOG_ENV);
    config->stamp_levels = read_list(config, "NCCL_DEBUG_TIMESTAMP_LEVELS", level_words,
                                     TT_LEN(level_words), 1U << TT_LOG_WARN | 1U << TT_LOG_ATTN);
    read_stamp_format(config);
    read_host(config);
    config->raise_on_warn = read_bool("NCCL_WARN_ENABLE_DEBUG_INFO");
    config->start_nsec = tt_now_nsec();
    read_file(config, file_fd);
    return config;
}
