/* Several hosts: each is asked by the remote shell, then compared with the first. */
#include "doctor/preflight.h"

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

/* In the child: the shell with the host and what to run there; no local shell sees the words. */
static _Noreturn void run_shell(const char *host, const char *order)
{
    char program[4096], words[256], *argv[16];
    const char *shell = getenv("TUTTI_RSH");
    int count = 0;
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    size_t bytes = strlen(order) + sizeof(program) + 2;
    char *all = malloc(bytes);
    if (len <= 0 || !all) _exit(127);
    program[len] = '\0';
    snprintf(all, bytes, "%s %s", program, order);
    if (is_here(host)) execl("/bin/sh", "sh", "-c", all, (char *)NULL);
    snprintf(words, sizeof(words), "%s", shell && *shell ? shell : "ssh");
    for (char *rest = NULL, *word = strtok_r(words, " ", &rest); word && count < 12;
         word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    char where[256];
    snprintf(where, sizeof(where), "%s", host);
    argv[count++] = where;
    argv[count++] = all;
    argv[count] = NULL;
    execvp(argv[0], argv);
    _exit(127);
}

bool preflight_shell_open(struct preflight_shell *shell, const char *host, const char *words)
{
    int out[2], in[2];
    *shell = (struct preflight_shell){.to = -1};
    if (*host == '-' || pipe2(out, O_CLOEXEC)) return false;
    if (pipe2(in, O_CLOEXEC)) {
        close(out[0]);
        close(out[1]);
        return false;
    }
    fflush(NULL);
    shell->child = fork();
    if (shell->child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        run_shell(host, words);
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

json_t *preflight_remote(const char *host, char *why, size_t why_bytes)
{
    struct preflight_shell shell;
    if (!preflight_shell_open(&shell, host, "doctor --preflight --json")) {
        snprintf(why, why_bytes, "'%s' is no host, or no descriptor is left", host);
        return NULL;
    }
    json_t *list = json_loadf(shell.from, 0, NULL);
    int status = preflight_shell_close(&shell);
    json_t *found = json_incref(json_array_get(list, 0));
    json_decref(list);
    if (!json_is_array(json_object_get(found, "checks"))) {
        json_decref(found);
        found = NULL;
        const char *rsh = getenv("TUTTI_RSH");
        snprintf(why, why_bytes, "`%s %s true` or `tutti doctor` there failed (status %d)",
                 rsh && *rsh ? rsh : "ssh", host, status);
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
