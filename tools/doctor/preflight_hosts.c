/* Several hosts: each is asked by the remote shell, then compared with the first. */
#include "doctor/preflight.h"
#include "tutti.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLOCK_SEC = 5 }; /* a remote shell takes that long itself */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* As in `tutti run`: this host needs no remote shell. */
static bool is_here(const char *host)
{
    return !strcmp(host, "localhost") || !strcmp(host, "127.0.0.1");
}

static const char *remote_shell(void)
{
    const char *shell = getenv("TUTTI_RSH");
    return shell && *shell ? shell : "ssh";
}

/* What the shell on that host reads. Owned. */
static char *script_of(const char *words)
{
    char program[4096], *script = NULL;
    size_t bytes = 0;
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    FILE *out = len > 0 ? open_memstream(&script, &bytes) : NULL;
    if (!out) return NULL;
    program[len] = '\0';
    fputs("exec ", out);
    if (words) tutti_print_quoted(out, program);
    fprintf(out, " %s\n", words ? words : "true");
    fclose(out);
    return script;
}

/* In the child: `sh` there, as `tutti run` starts it, which reads its script from standard input.
 */
static _Noreturn void run_shell(const char *host)
{
    char words[1024], where[256], sh[] = "sh", *argv[32];
    int count = 0;
    if (is_here(host)) execl("/bin/sh", "sh", (char *)NULL);
    snprintf(words, sizeof(words), "%s", remote_shell());
    for (char *rest = NULL, *word = strtok_r(words, " ", &rest); word && count < 28;
         word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    snprintf(where, sizeof(where), "%s", host);
    argv[count++] = where;
    argv[count++] = sh;
    argv[count] = NULL;
    execvp(argv[0], argv);
    _exit(127);
}

/* A pipe with the script in it, whose end here stays open as long as the program shall live. */
static bool open_script(int ends[2], const char *words)
{
    char *script = script_of(words);
    size_t len = script ? strlen(script) : 0;
    bool good = len && !pipe2(ends, O_CLOEXEC | O_NONBLOCK);
    if (good) {
        fcntl(ends[1], F_SETPIPE_SZ, (int)len);
        good = write(ends[1], script, len) == (ssize_t)len;
        fcntl(ends[0], F_SETFL, 0);
        if (!good) {
            close(ends[0]);
            close(ends[1]);
        }
    }
    free(script);
    return good;
}

bool preflight_shell_open(struct preflight_shell *shell, const char *host, const char *words)
{
    int out[2], in[2];
    *shell = (struct preflight_shell){.to = -1};
    if (*host == '-' || pipe2(out, O_CLOEXEC)) return false;
    if (!open_script(in, words)) {
        close(out[0]);
        close(out[1]);
        return false;
    }
    fflush(NULL);
    shell->child = fork();
    if (shell->child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        run_shell(host);
    }
    close(out[1]);
    close(in[0]);
    shell->from = fdopen(out[0], "r");
    shell->to = in[1];
    if (shell->child > 0 && shell->from) return true;
    if (!shell->from) close(out[0]);
    preflight_shell_close(shell);
    return false;
}

int preflight_shell_close(struct preflight_shell *shell)
{
    int status = -1;
    if (shell->to > 0) close(shell->to);
    if (shell->from) fclose(shell->from);
    if (shell->child > 0 && waitpid(shell->child, &status, 0) != shell->child) status = -1;
    *shell = (struct preflight_shell){.to = -1};
    return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Nothing came: is it the remote shell, or this program there? */
static void blame_shell(const char *host, int status, char *why, size_t why_bytes,
                        const char **advice)
{
    struct preflight_shell shell;
    char program[300] = "tutti";
    int alone = preflight_shell_open(&shell, host, NULL) ? preflight_shell_close(&shell) : -1;
    if (alone != 0) {
        snprintf(why, why_bytes, "`%s %s sh` failed (status %d)", remote_shell(), host, alone);
        *advice = "it must start a shell there without a password (TUTTI_RSH)";
        return;
    }
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (len > 0) program[len] = '\0';
    snprintf(why, why_bytes,
             "the shell starts there, but `%s doctor --preflight` failed (status %d)", program,
             status);
    *advice = "install Tutti there at the same path as here";
}

json_t *preflight_remote(const char *host, char *why, size_t why_bytes, const char **advice)
{
    struct preflight_shell shell;
    if (!preflight_shell_open(&shell, host, "doctor --preflight --json")) {
        snprintf(why, why_bytes, "'%s' is no host, or no descriptor is left", host);
        *advice = "";
        return NULL;
    }
    json_t *list = json_loadf(shell.from, 0, NULL);
    int status = preflight_shell_close(&shell);
    json_t *found = json_incref(json_array_get(list, 0));
    json_decref(list);
    if (!json_is_array(json_object_get(found, "checks"))) {
        json_decref(found);
        found = NULL;
        blame_shell(host, status, why, why_bytes, advice);
    }
    return found;
}

void preflight_add(json_t *host, const char *name, const char *state, const char *found,
                   const char *advice)
{
    json_array_append_new(json_object_get(host, "checks"),
                          json_pack("{s:s, s:s, s:s, s:s}", "name", name, "state", state, "found",
                                    found, "advice", advice));
}

static void add_mend(json_t *host, const char *name, const char *found, const char *advice)
{
    preflight_add(host, name, "mend", found, advice);
}

/* As the user calls it: several hosts may give themselves one name. */
static const char *name_of(const json_t *host)
{
    const char *called = text_of(host, "called");
    return *called ? called : text_of(host, "host");
}

void preflight_compare(json_t *hosts)
{
    const json_t *first = json_array_get(hosts, 0);
    json_t *host;
    size_t i;
    char text[256];
    json_array_foreach(hosts, i, host)
    {
        if (strcmp(text_of(host, "version"), text_of(first, "version")) != 0) {
            snprintf(text, sizeof(text), "Tutti %s, %s has %s", text_of(host, "version"),
                     name_of(first), text_of(first, "version"));
            add_mend(host, "version", text, "install the same on all hosts");
        }
        json_int_t mtu = json_integer_value(json_object_get(host, "mtu"));
        json_int_t other = json_integer_value(json_object_get(first, "mtu"));
        if (mtu != other) {
            snprintf(text, sizeof(text), "MTU %lld, %s has %lld", (long long)mtu, name_of(first),
                     (long long)other);
            add_mend(host, "MTU", text, "the same on all hosts and switches between them");
        }
        json_int_t sec = json_integer_value(json_object_get(host, "time")) -
                         json_integer_value(json_object_get(host, "asked"));
        if (json_object_get(host, "asked") && (sec > CLOCK_SEC || sec < -CLOCK_SEC)) {
            snprintf(text, sizeof(text), "%lld s from this host's clock", (long long)sec);
            add_mend(host, "clock", text, "synchronise the clocks (chrony, ntpd)");
        }
    }
}

int preflight_faults(const json_t *host)
{
    const json_t *check;
    size_t i;
    int count = 0;
    json_array_foreach(json_object_get(host, "checks"), i, check) count +=
        !strcmp(text_of(check, "state"), "mend");
    return count;
}

void preflight_show(const json_t *host)
{
    const json_t *check;
    size_t i;
    const char *name = name_of(host), *own = text_of(host, "host");
    const bool differ = strcmp(name, own) != 0;
    printf("%s%s%s%s: %d to mend\n", name, differ ? " (" : "", differ ? own : "", differ ? ")" : "",
           preflight_faults(host));
    json_array_foreach(json_object_get(host, "checks"), i, check)
    {
        printf("  %-4s  %-14s %s\n", text_of(check, "state"), text_of(check, "name"),
               text_of(check, "found"));
        if (*text_of(check, "advice")) printf("        -> %s\n", text_of(check, "advice"));
    }
}
