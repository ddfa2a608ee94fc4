/* The checks of one host. Each looks at one thing in /proc, /sys or a system call, and says what it
 * found and, when that slows or breaks jobs, what to do. What cannot be seen here (without root, in
 * a container) is a note, not a fault. */
#include "doctor/preflight.h"

#include "base/network/socket.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NETIFS = 16, MIN_FILES = 4096, CONFIG_BYTES = 4096, CONFIG_FIRST = 0x100 };
enum { PCI_CAP_ACS = 0x0d, ACS_CONTROL = 6, ACS_REDIRECTS = 0x1c };
#define MIN_SHM_BYTES (64ull << 20)

enum state { OK, MEND, NOTE };

static void add(json_t *host, const char *name, enum state state, const char *advice,
                const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void add(json_t *host, const char *name, enum state state, const char *advice,
                const char *fmt, ...)
{
    static const char *const states[] = {"ok", "mend", "note"};
    char found[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(found, sizeof(found), fmt, args);
    va_end(args);
    json_array_append_new(json_object_get(host, "checks"),
                          json_pack("{s:s, s:s, s:s, s:s}", "name", name, "state", states[state],
                                    "found", found, "advice", state == MEND ? advice : ""));
}

/* First line of a file; false when there is none. */
static bool read_line(const char *path, char *text, size_t text_bytes)
{
    FILE *file = fopen(path, "re");
    *text = 0;
    if (!file) return false;
    bool got = fgets(text, (int)text_bytes, file) != NULL;
    fclose(file);
    text[strcspn(text, "\n")] = 0;
    return got;
}

static long read_number(const char *path, long missing)
{
    char text[64];
    return read_line(path, text, sizeof(text)) ? strtol(text, NULL, 0) : missing;
}

/* ---- network ---- */

/* A connection of the host with itself over that address: a firewall, or none. */
static bool can_connect(union tt_addr addr)
{
    int listener = -1, fd = -1;
    bool good = !tt_socket_listen(&addr, &listener) && !tt_socket_connect(&addr, &fd);
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    good = good && poll(&wait, 1, 2000) == 1;
    if (fd >= 0) close(fd);
    if (listener >= 0) close(listener);
    return good;
}

static void check_network(json_t *host)
{
    struct tt_netif netifs[MAX_NETIFS];
    char path[64], addr[80];
    int count = 0;
    if (tt_netif_list(netifs, MAX_NETIFS, &count) || count == 0) {
        add(host, "interfaces", MEND, "bring one up, or correct NCCL_SOCKET_IFNAME",
            "no usable interface");
        return;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "/sys/class/net/%.15s/mtu", netifs[i].name);
        long mtu = read_number(path, 0);
        add(host, "interface", OK, "", "%s %s, MTU %ld, %d Mbit/s", netifs[i].name,
            tt_addr_text(&netifs[i].addr, addr, sizeof(addr)), mtu, netifs[i].speed_mbps);
        if (i == 0) json_object_set_new(host, "mtu", json_integer(mtu));
    }
    bool open = can_connect(netifs[0].addr);
    add(host, "ports", open ? OK : MEND, "let the firewall pass TCP between the hosts of the job",
        open ? "a connection over %s works" : "no connection over %s, even from this host",
        netifs[0].name);
}

/* ---- limits ---- */

static bool has_rdma(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    bool some = false;
    if (!folder) return false;
    for (const struct dirent *entry; (entry = readdir(folder));)
        some |= entry->d_name[0] != '.';
    closedir(folder);
    return some;
}

static void check_limits(json_t *host)
{
    struct rlimit files, locked;
    struct statvfs shm;
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_MEMLOCK, &locked);
    add(host, "descriptors", files.rlim_max < MIN_FILES ? MEND : OK,
        "raise `ulimit -Hn` (limits.conf, LimitNOFILE): each peer over sockets takes some",
        "%llu, at most %llu", (unsigned long long)files.rlim_cur,
        (unsigned long long)files.rlim_max);
    bool unlimited = locked.rlim_max == RLIM_INFINITY;
    add(host, "locked memory", has_rdma() && !unlimited ? MEND : OK,
        "`ulimit -l unlimited`: RDMA devices pin the buffers they use", "%s%s",
        unlimited ? "unlimited" : "limited", has_rdma() ? "" : ", no RDMA device");
    if (statvfs("/dev/shm", &shm)) {
        add(host, "/dev/shm", NOTE, "", "not there");
        return;
    }
    unsigned long long bytes = (unsigned long long)shm.f_blocks * shm.f_frsize;
    unsigned long long left = (unsigned long long)shm.f_bavail * shm.f_frsize;
    add(host, "/dev/shm", left < MIN_SHM_BYTES ? MEND : OK,
        "enlarge it (docker run --shm-size) or remove what is left over there",
        "%llu MiB, %llu MiB free", bytes >> 20, left >> 20);
}

/* ---- processors and clocks ---- */

static void check_cores(json_t *host)
{
    char nodes[128], clock[64];
    if (!read_line("/sys/devices/system/node/online", nodes, sizeof(nodes)))
        snprintf(nodes, sizeof(nodes), "unknown");
    bool balances =
        read_number("/proc/sys/kernel/numa_balancing", 0) && strcspn(nodes, ",-") < strlen(nodes);
    add(host, "NUMA", balances ? MEND : OK,
        "sysctl kernel.numa_balancing=0: it moves pages of running jobs", "nodes %s, balancing %s",
        nodes, balances ? "on" : "off, or of no effect");
    if (!read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", clock,
                   sizeof(clock))) {
        add(host, "clock", NOTE, "", "its source is not visible");
        return;
    }
    bool slow = !strcmp(clock, "hpet") || !strcmp(clock, "acpi_pm");
    add(host, "clock", slow ? MEND : OK,
        "find out why the kernel gave the time stamp counter up (dmesg): each look is a slow "
        "access",
        "source %s", clock);
}

/* ---- PCI ---- */

struct pci_count {
    int bridges, redirecting, unreadable, narrow;
    char first[64]; /* the first narrow one */
};

/* Does a bridge send traffic between its devices up to the root? -1: not to be seen. */
static int redirects(const char *device)
{
    char path[300];
    unsigned char config[CONFIG_BYTES] = {0};
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", device);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, config, sizeof(config)) : -1;
    if (fd >= 0) close(fd);
    if (bytes <= CONFIG_FIRST) return bytes == 256 && geteuid() == 0 ? 0 : -1;
    for (int at = CONFIG_FIRST, left = 64; at >= CONFIG_FIRST && at + 8 < bytes && left; left--) {
        uint32_t head = (uint32_t)config[at] | (uint32_t)config[at + 1] << 8 |
                        (uint32_t)config[at + 2] << 16 | (uint32_t)config[at + 3] << 24;
        if ((head & 0xffff) == PCI_CAP_ACS) return (config[at + ACS_CONTROL] & ACS_REDIRECTS) != 0;
        at = (int)(head >> 20);
    }
    return 0;
}

/* GPUs and network devices whose link runs below what both ends can. */
static bool is_narrow(const char *device, char *text, size_t text_bytes)
{
    static const char *const names[] = {"current_link_width", "max_link_width",
                                        "current_link_speed", "max_link_speed"};
    char path[300], value[4][64];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", device, names[i]);
        if (!read_line(path, value[i], sizeof(value[i]))) return false;
    }
    long width = strtol(value[0], NULL, 10);
    bool less =
        width < strtol(value[1], NULL, 10) || strtod(value[2], NULL) < strtod(value[3], NULL);
    snprintf(text, text_bytes, "%.24s x%.8s %.20s", device, value[0], value[2]);
    return less && width > 0;
}

static void look_at(const char *device, struct pci_count *count)
{
    char path[300], text[sizeof(count->first)];
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class", device);
    long kind = read_number(path, 0) >> 8;
    if (kind == 0x0604) {
        int state = redirects(device);
        count->bridges++;
        count->redirecting += state == 1;
        count->unreadable += state < 0;
    }
    bool matters = kind >> 8 == 0x02 || kind >> 8 == 0x03 || kind >> 8 == 0x12;
    if (!matters || !is_narrow(device, text, sizeof(text))) return;
    if (count->narrow++ == 0) snprintf(count->first, sizeof(count->first), "%s", text);
}

static void check_pci(json_t *host)
{
    struct pci_count count = {0};
    DIR *folder = opendir("/sys/bus/pci/devices");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] != '.') look_at(entry->d_name, &count);
    }
    if (folder) closedir(folder);
    enum state acs = count.unreadable ? NOTE : OK;
    add(host, "PCIe ACS", count.redirecting ? MEND : acs,
        "switch ACS off in the firmware or by setpci where devices talk to each other",
        "%d bridge(s), %d with redirection, %d not readable (root only)", count.bridges,
        count.redirecting, count.unreadable);
    add(host, "PCIe links", count.narrow ? MEND : OK,
        "reseat the card, look at the firmware's settings: the link is narrower or slower than it "
        "can be",
        "%d GPU(s) or network card(s) below their best%s%s", count.narrow, count.narrow ? ": " : "",
        count.first);
}

static void check_iommu(json_t *host)
{
    char line[2048];
    DIR *folder = opendir("/sys/class/iommu");
    bool some = false;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        some |= entry->d_name[0] != '.';
    if (folder) closedir(folder);
    read_line("/proc/cmdline", line, sizeof(line));
    bool passes = strstr(line, "iommu=pt") || strstr(line, "iommu.passthrough=1");
    add(host, "IOMMU", some && !passes ? MEND : OK,
        "boot with iommu=pt where GPUs and network cards exchange data", "%s",
        !some    ? "off, or not visible"
        : passes ? "on, passes through"
                 : "on, translates");
}

/* ---- plugins ---- */

static void check_plugin(json_t *host, const char *variable, const char *kind, const char *symbol,
                         int newest)
{
    char file[600], name[64];
    const char *value = getenv(variable);
    if (!value || !*value || !strcmp(value, "none") || !strcmp(value, "STATIC_PLUGIN")) return;
    void *library = dlopen(value, RTLD_LAZY | RTLD_LOCAL);
    snprintf(file, sizeof(file), "libnccl-%s-%s.so", kind, value);
    if (!library) library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        add(host, "plugin", MEND, "correct the variable, or LD_LIBRARY_PATH", "%s=%s: %s", variable,
            value, dlerror());
        return;
    }
    int version = newest;
    for (; version > 0; version--) {
        snprintf(name, sizeof(name), "%s_v%d", symbol, version);
        if (dlsym(library, name)) break;
    }
    dlclose(library);
    add(host, "plugin", version ? OK : MEND, "this file is another plugin, or too old",
        "%s=%s: version %d", variable, value, version);
}

json_t *preflight_host(void)
{
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    json_t *host = json_pack("{s:s, s:s, s:I, s:[]}", "host", name, "version", TUTTI_VERSION,
                             "time", (json_int_t)time(NULL), "checks");
    if (!host) return NULL;
    check_network(host);
    check_limits(host);
    check_cores(host);
    check_pci(host);
    check_iommu(host);
    check_plugin(host, "NCCL_NET_PLUGIN", "net", "ncclNetPlugin", 12);
    check_plugin(host, "NCCL_TUNER_PLUGIN", "tuner", "ncclTunerPlugin", 6);
    check_plugin(host, "NCCL_PROFILER_PLUGIN", "profiler", "ncclProfiler", 7);
    return host;
}
