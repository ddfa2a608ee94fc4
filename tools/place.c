/* Finds our own files from the place of the running program: installed, or in the build tree. */
#include "tutti.h"

#include "base/text/spelling.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tutti_folder(char *folder, size_t folder_bytes)
{
    ssize_t n = readlink("/proc/self/exe", folder, folder_bytes - 1);
    if (n <= 0) return false;
    folder[n] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

static bool file_exists(const char *folder, const char *rest)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, rest);
    return n > 0 && (size_t)n < sizeof(path) && access(path, R_OK) == 0;
}

bool tutti_home(char *path, size_t path_bytes)
{
    char folder[PATH_MAX / 2];
    char joined[PATH_MAX];
    if (!tutti_folder(folder, sizeof(folder))) return false;
    snprintf(joined, sizeof(joined), "%s%s%s", *TUTTI_HOME == '/' ? "" : folder,
             *TUTTI_HOME == '/' ? "" : "/", TUTTI_HOME);
    if (!file_exists(joined, "lib/libnccl.so.2")) return false;
    char *real = realpath(joined, NULL);
    if (!real) return false;
    int n = snprintf(path, path_bytes, "%s", real);
    free(real);
    return n > 0 && (size_t)n < path_bytes;
}

bool tutti_library_path(char *path, size_t path_bytes)
{
    char folder[PATH_MAX];
    if (tutti_home(folder, sizeof(folder))) {
        int n = snprintf(path, path_bytes, "%s/lib", folder);
        return n > 0 && (size_t)n < path_bytes;
    }
    if (tutti_folder(folder, sizeof(folder)) && file_exists(folder, "../src/libnccl.so.2")) {
        int n = snprintf(path, path_bytes, "%s/../src:%s/../hostcuda", folder, folder);
        return n > 0 && (size_t)n < path_bytes;
    }
    fprintf(stderr,
            "tutti: no libnccl.so.2 beside this program (looked in %s/lib and ../src); "
            "install Tutti or build it with ./run\n",
            TUTTI_HOME);
    return false;
}

void tutti_print_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (const char *c = text; *c; c++) {
        if (*c == '\'') {
            fputs("'\\''", out);
        } else {
            fputc(*c, out);
        }
    }
    fputc('\'', out);
}

int tutti_usage_error(const char *command, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "tutti %s: ", command);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "; `tutti %s --help` shows the usage\n", command);
    va_end(args);
    return 2;
}

void tutti_words_add(struct tutti_words *words, const char *word)
{
    size_t used = strlen(words->text);
    if (used + strlen(word) + 2 > sizeof(words->text)) return;
    snprintf(words->text + used, sizeof(words->text) - used, "%s%s", used ? "," : "", word);
}

int tutti_unknown(const char *command, const char *what, const char *word,
                  const struct tutti_words *words)
{
    char meant[TT_SPELLING_BYTES + 32];
    tt_param_suggest(words->text, word, strcspn(word, "="), meant, sizeof(meant));
    fprintf(stderr, "tutti %s: no %s '%s'%s `tutti %s --help` shows the usage\n", command, what,
            word, *meant ? meant : ";", command);
    return 2;
}

bool tutti_parse_int(const char *text, long low, long high, long *value_out)
{
    char *end = NULL;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > high) return false;
    *value_out = value;
    return true;
}
