/* Network namespaces, their links, and folders that only they see. */
#include "hosts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_HOSTS = 16 };

static int spaces[MOST_HOSTS], nspaces, hub = -1;
static char root[64];

static bool command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool command(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return system(text) == 0; /* NOLINT(cert-env33-c): the text is ours */
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool well = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return well;
}

/* Who is not root is it in there. */
static bool leave_world(void)
{
    char text[64];
    uid_t uid = getuid();
    gid_t gid = getgid();
    if (uid == 0 && !unshare(CLONE_NEWNET | CLONE_NEWNS)) return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS)) return false;
    put("/proc/self/setgroups", "deny");
    snprintf(text, sizeof(text), "0 %u 1", (unsigned)uid);
    if (!put("/proc/self/uid_map", text)) return false;
    snprintf(text, sizeof(text), "0 %u 1", (unsigned)gid);
    return put("/proc/self/gid_map", text);
}

static bool mount_folder(const char *name, const char *options)
{
    char path[128];
    snprintf(path, sizeof(path), "%s%s%s", root, *name ? "/" : "", name);
    mkdir(path, 0700);
    return !options || !mount("tmpfs", path, "tmpfs", 0, options);
}

static bool own_folders(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%.32s/tutti-faults-XXXXXX", tmp ? tmp : "/tmp");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) return false;
    if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1g")) return false;
    if (!mkdtemp(root)) return false;
    return mount_folder("", "size=64m") && mount_folder("tmp", NULL) && mount_folder("log", NULL) &&
           mount_folder("disk", "size=256k");
}

static bool add_host(int k)
{
    int space = -1;
    if (unshare(CLONE_NEWNET)) return false;
    space = open("/proc/self/ns/net", O_RDONLY);
    bool well = space >= 0 && command("ip link set lo up");
    if (setns(hub, CLONE_NEWNET) || !well) return false;
    spaces[nspaces++] = space;
    if (!command("ip link add h%d type veth peer name tt0 netns /proc/%d/fd/%d && "
                 "ip link set h%d master joint up",
                 k, (int)getpid(), space, k))
        return false;
    if (setns(space, CLONE_NEWNET)) return false;
    well = command("ip addr add 10.77.0.%d/24 dev tt0 && ip link set tt0 up", k + 1);
    return !setns(hub, CLONE_NEWNET) && well;
}

const char *hosts_open(int n)
{
    if (!leave_world()) return "namespaces are not allowed here";
    if (!own_folders()) return "no file systems can be mounted here";
    if (!command("command -v ip nft >/dev/null")) return "no ip or nft command";
    hub = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (hub < 0 || !command("ip link set lo up && ip link add joint type bridge && "
                            "ip link set joint up"))
        return "this kernel has no bridge";
    for (int k = 0; k < n; k++) {
        if (!add_host(k)) return "this kernel has no veth";
    }
    return NULL;
}

void hosts_close(void)
{
    if (!*root) return;
    umount2(hosts_folder("disk"), MNT_DETACH);
    umount2(root, MNT_DETACH);
    rmdir(root);
}

void hosts_enter(int host)
{
    if (host < nspaces && setns(spaces[host], CLONE_NEWNET)) _exit(2);
}

bool hosts_link(int host, bool up)
{
    struct ifreq request = {.ifr_flags = up ? IFF_UP : 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "h%d", host);
    bool well = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &request);
    if (fd >= 0) close(fd);
    return well;
}

bool hosts_loss(int host, int percent)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        hosts_enter(host);
        bool well = command("nft flush ruleset");
        if (percent)
            well = command("nft 'table inet loss { chain in { type filter hook input priority 0; "
                           "numgen random mod 100 < %d drop; }; }'",
                           percent);
        _exit(!well);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

const char *hosts_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return *root ? path : "";
}

int hosts_sweep(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        unlinkat(dirfd(dir), entry->d_name, 0);
        count++;
    }
    if (dir) closedir(dir);
    return count;
}
