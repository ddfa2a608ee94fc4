/* Makes the ranks' environment. The secret lives in a file of mode 0600, never on a command line.
 */
#include "env.h"

#include "../tutti.h"

#include "base/beside.h"
#include "base/launcher.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { LEAST_PORT = 10240, PORT_TRIES = 16 };

/* By chance below those that the kernel gives out, so that on the host of rank 0, which may be
 * another one, no connection has taken it meanwhile. 0: there are none. */
static in_port_t port_below(void)
{
    int first = 0;
    uint32_t number = 0;
    FILE *range = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (!range) return 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own number */
    if (fscanf(range, "%d", &first) != 1) first = 0;
    (void)fclose(range);
    if (first < 2 * LEAST_PORT || getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0) return 0;
    return (in_port_t)(LEAST_PORT + number % (uint32_t)(first - LEAST_PORT));
}

static bool bind_some(int fd, struct sockaddr *addr, socklen_t len, in_port_t *port)
{
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        *port = tries + 1 < PORT_TRIES ? htons(port_below()) : 0; /* 0: the kernel chooses */
        if (!bind(fd, addr, len)) return true;
        if (errno != EADDRINUSE && errno != EACCES) return false;
    }
    return false;
}

/* A socket that keeps a port from all other processes, other launchers included, while rank 0,
 * which opens it with address reuse, still can. -1 where there is none. */
static int hold_port(int *port_out)
{
    const int yes = 1;
    const int no = 0;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    socklen_t len = sizeof(v6);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_v6 = fd >= 0 && !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) &&
                 bind_some(fd, (struct sockaddr *)&v6, len, &v6.sin6_port) &&
                 !getsockname(fd, (struct sockaddr *)&v6, &len);
    if (!is_v6) { /* a host without IPv6 */
        if (fd >= 0) close(fd);
        len = sizeof(v4);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) return -1;
        if (!bind_some(fd, (struct sockaddr *)&v4, len, &v4.sin_port) ||
            getsockname(fd, (struct sockaddr *)&v4, &len)) {
            close(fd);
            return -1;
        }
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); /* from now on */
    *port_out = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
    return fd;
}

/* MASTER_PORT is the program's: it is free when the ranks start, and no socket holds it. */
static int free_port(void)
{
    int port = -1;
    int fd = hold_port(&port);
    if (fd >= 0) close(fd);
    return port;
}

/* A new file in `folder`; -1: %m says why. The path is absolute, as a rank may change folders. */
static int make_secret_file(struct launch_env *env, const char *folder)
{
    char *absolute = realpath(folder, NULL);
    int n = snprintf(env->secret_file, sizeof(env->secret_file), "%s/tutti-secret-XXXXXX",
                     absolute ? absolute : "");
    bool fits = n > 0 && (size_t)n < sizeof(env->secret_file);
    int fd = absolute && fits ? mkostemp(env->secret_file, O_CLOEXEC) : -1;
    if (absolute && !fits) errno = ENAMETOOLONG;
    free(absolute);
    return fd;
}

static bool make_secret(struct launch_env *env)
{
    unsigned char bytes[32];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) return false;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(env->secret + 2 * i, 3, "%02x", bytes[i]);
    }
    const char *folder = getenv("TMPDIR");
    int fd = folder && *folder ? make_secret_file(env, folder) : -1;
    if (folder && *folder && fd < 0)
        fprintf(stderr, "tutti run: TMPDIR %s: %m; /tmp is used\n", folder);
    if (fd < 0) fd = make_secret_file(env, "/tmp");
    if (fd < 0) {
        env->secret_file[0] = 0;
        fprintf(stderr, "tutti run: no file for the secret in /tmp: %m\n");
        return false;
    }
    bool ok = write(fd, env->secret, 64) == 64;
    if (!ok) fprintf(stderr, "tutti run: %s: %m\n", env->secret_file);
    close(fd);
    return ok;
}

/* Without it a rank that fails because of another one may be blamed: nothing worse. */
static void open_exits(struct launch_env *env)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(addr);
    const int on = 1;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    /* the kernel chooses an abstract name */
    if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr.sun_family)) ||
        setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ||
        getsockname(fd, (struct sockaddr *)&addr, &len)) {
        close(fd);
        return;
    }
    const size_t used = len - offsetof(struct sockaddr_un, sun_path) - 1;
    snprintf(env->exits_name, sizeof(env->exits_name), "%.*s", (int)used, addr.sun_path + 1);
    env->exits_fd = fd;
}

pid_t launch_env_note(const struct launch_env *env, struct tt_launcher_note *note_out)
{
    char control[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
    struct iovec part = {note_out, sizeof(*note_out)};
    struct ucred from = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    if (env->exits_fd < 0 || recvmsg(env->exits_fd, &message, 0) != sizeof(*note_out)) return 0;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_CREDENTIALS)
            memcpy(&from, CMSG_DATA(at), sizeof(from));
    }
    return from.pid;
}

/* The ranks get this job's own. */
static void warn_of_secret(void)
{
    const char *path = getenv("TUTTI_SECRET_FILE");
    if (!path || !access(path, R_OK)) return;
    fprintf(stderr, "tutti run: TUTTI_SECRET_FILE %s: %m; the ranks get a secret of this job\n",
            path);
}

bool launch_env_init(struct launch_env *env, const struct launch_options *options)
{
    memset(env, 0, sizeof(*env));
    env->id_port_fd = -1;
    env->exits_fd = -1;
    open_exits(env);
    env->options = options;
    char ours[6000];
    if (!tutti_library_path(ours, sizeof(ours))) return false;
    const char *theirs = getenv("LD_LIBRARY_PATH");
    snprintf(env->libraries, sizeof(env->libraries), "%s%s%s", ours, theirs && *theirs ? ":" : "",
             theirs ? theirs : "");
    const char *master = options->master       ? options->master
                         : options->nhosts > 0 ? options->hosts[0].name
                                               : "127.0.0.1";
    snprintf(env->master, sizeof(env->master), "%s", master);
    env->id_port_fd = hold_port(&env->id_port);
    env->port = free_port();
    if (env->id_port_fd < 0 || env->port < 0) {
        fprintf(stderr, "tutti run: no port for rank 0: %m\n");
        return false;
    }
    warn_of_secret();
    return make_secret(env);
}

void launch_env_fini(struct launch_env *env)
{
    if (env->id_port_fd >= 0) close(env->id_port_fd);
    if (env->exits_fd >= 0) close(env->exits_fd);
    if (env->secret_file[0]) unlink(env->secret_file);
    explicit_bzero(env->secret, sizeof(env->secret));
}

struct writer {
    char *at, *end;
    char **texts;
    int count;
};

static void add(struct writer *writer, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct writer *writer, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(writer->at, (size_t)(writer->end - writer->at), fmt, args);
    va_end(args);
    if (n < 0 || n >= writer->end - writer->at || writer->count >= LAUNCH_MAX_VARS) return;
    writer->texts[writer->count++] = writer->at;
    writer->at += n + 1;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the writer writes to `buffer` */
int launch_env_vars(const struct launch_env *env, const struct launch_slot *slot, char *buffer,
                    size_t buffer_bytes, char *texts[LAUNCH_MAX_VARS])
{
    struct writer w = {buffer, buffer + buffer_bytes, texts, 0};
    bool v6 = strchr(env->master, ':') != NULL;
    add(&w, "RANK=%d", slot->rank);
    add(&w, "SIZE=%d", slot->nranks);
    add(&w, "WORLD_SIZE=%d", slot->nranks);
    add(&w, "LOCAL_RANK=%d", slot->local_rank);
    add(&w, "LOCAL_WORLD_SIZE=%d", slot->local_size);
    add(&w, "MASTER_ADDR=%s", env->master);
    add(&w, "MASTER_PORT=%d", env->port);
    if (!env->options->own_ids && !getenv("NCCL_COMM_ID")) {
        add(&w, v6 ? "NCCL_COMM_ID=[%s]:%d" : "NCCL_COMM_ID=%s:%d", env->master, env->id_port);
        if (slot->host < 0) add(&w, "TUTTI_SECRET_FILE=%s", env->secret_file);
    }
    add(&w, "LD_LIBRARY_PATH=%s", env->libraries);
    if (slot->host < 0 && env->exits_name[0]) add(&w, "TUTTI_JOB_EXITS=%s", env->exits_name);
    add(&w, "TUTTI_JOB_SETTINGS=%016llx", (unsigned long long)tt_settings_sum(environ));
    if (!getenv("TUTTI_WARN")) add(&w, "TUTTI_WARN=1"); /* hangs and bad calls are reported */
    if (!getenv("TUTTI_DEVICES") && slot->local_size > 8 && !getenv("NCCL_TOPO_FILE")) {
        add(&w, "TUTTI_DEVICES=%d", slot->local_size);
    }
    return w.count;
}

/* Variables of ours that a user set here, and those of -x, must reach the other hosts too. */
static void export_ours(FILE *out, const struct launch_options *options)
{
    for (int i = 0; i < options->nexports; i++) {
        const char *value = getenv(options->exports[i]);
        if (!value) continue;
        fprintf(out, "export %s=", options->exports[i]);
        tutti_print_quoted(out, value);
        fputc('\n', out);
    }
    for (char **var = environ; *var; var++) {
        if (strncmp(*var, "NCCL_", 5) != 0 && strncmp(*var, "TUTTI_", 6) != 0) continue;
        fputs("export ", out);
        tutti_print_quoted(out, *var);
        fputc('\n', out);
    }
}

char *launch_env_script(const struct launch_env *env, const struct launch_slot *slot,
                        char *const *program)
{
    char buffer[LAUNCH_VARS_BYTES];
    char *texts[LAUNCH_MAX_VARS];
    char *script = NULL;
    size_t script_bytes = 0;
    FILE *out = open_memstream(&script, &script_bytes);
    if (!out) return NULL;
    int count = launch_env_vars(env, slot, buffer, sizeof(buffer), texts);
    fputs("echo '" LAUNCH_STARTED "' >&2\n", out);
    export_ours(out, env->options);
    for (int i = 0; i < count; i++) {
        fputs("export ", out);
        tutti_print_quoted(out, texts[i]);
        fputc('\n', out);
    }
    fprintf(out,
            "s=$(mktemp) || exit 2; printf %%s '%s' >\"$s\"; export "
            "TUTTI_SECRET_FILE=\"$s\"\n"
            "if mkfifo -m 600 \"$s.n\" 2>/dev/null; then exec 4<>\"$s.n\"; export "
            "TUTTI_JOB_EXITS=\"$s.n\"\n"
            "while read -r x; do echo \"" LAUNCH_NOTE "$x\"; done <\"$s.n\" >&2 4>&- &\nfi\n"
            "cd ",
            env->secret);
    char folder[4096];
    tutti_print_quoted(out, getcwd(folder, sizeof(folder)) ? folder : "/");
    /* One command in braces: the shell has read all of it before our end of its input is watched.
     */
    fputs(" 2>/dev/null\n{\nexec 3<&0\n", out);
    for (char *const *arg = program; *arg; arg++) {
        tutti_print_quoted(out, *arg);
        fputc(' ', out);
    }
    fputs("</dev/null 3<&- 4>&- & p=$!\n"
          "{ while read -r x; do :; done; kill -TERM $p; sleep 1; kill -KILL $p; } "
          "<&3 >/dev/null 2>&1 4>&- & w=$!\n"
          "exec 3<&-\n"
          "trap '' PIPE; trap 'kill -TERM $p 2>/dev/null' TERM HUP INT\nwait $p; k=$?\n"
          "kill $w 2>/dev/null; rm -f \"$s\" \"$s.n\"; exit $k\n}\n",
          out);
    fclose(out);
    return script;
}
