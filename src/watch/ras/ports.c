/* The two ports, and which processes may ask there. Only processes of this user (and root's) are
 * answered: the local socket knows the process that connects, and of a TCP connection over loopback
 * /proc/net shows whose it is. */
#include "watch/ras/ports.h"

#include "base/log.h"
#include "base/network/socket.h"
#include "base/param.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 8 };

static int open_local(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int len = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "tutti-watch-%u-%d", geteuid(),
                       (int)getpid());
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    if (fd < 0) return -1;
    if (!bind(fd, (struct sockaddr *)&addr, bytes) && !listen(fd, BACKLOG)) return fd;
    tt_info(TT_LOG_RAS, "no local port for tutti doctor: %m");
    close(fd);
    return -1;
}

/* All processes of a user listen at one address; the kernel picks one of them per connection. */
static int listen_at(const struct addrinfo *at)
{
    const int on = 1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    if (!bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, BACKLOG)) return fd;
    close(fd);
    return -1;
}

void tt_ports_resolve(struct tt_ports *ports)
{
    char host[256] = "localhost", port[16] = "28028";
    const char *text = tt_param_str("NCCL_RAS_ADDR");
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    if (!tt_param_bool("NCCL_RAS_ENABLE")) return;
    if (text && *text) {
        const char *colon = strrchr(text, ':');
        size_t len = colon ? (size_t)(colon - text) : strlen(text);
        bool brackets = len > 1 && text[0] == '[' && text[len - 1] == ']';
        snprintf(host, sizeof(host), "%.*s", (int)(brackets ? len - 2 : len), text + brackets);
        if (colon) snprintf(port, sizeof(port), "%s", colon + 1);
    }
    bool local = !strcmp(host, "localhost"); /* no resolver needed, and IPv4 as NCCL has it */
    int error = getaddrinfo(local ? "127.0.0.1" : host, port, &hints, &ports->ras_at);
    if (!error) return;
    ports->ras_at = NULL;
    tt_info(TT_LOG_RAS, "RAS: no client port at %s:%s: %s", host, port, gai_strerror(error));
}

static int open_ras(struct tt_ports *ports)
{
    const char *text = tt_param_str("NCCL_RAS_ADDR");
    int fd = -1;
    for (const struct addrinfo *at = ports->ras_at; at && fd < 0; at = at->ai_next)
        fd = listen_at(at);
    if (ports->ras_at && fd < 0)
        tt_info(TT_LOG_RAS, "RAS: no client port at %s: %m", text && *text ? text : "localhost");
    if (ports->ras_at) freeaddrinfo(ports->ras_at);
    ports->ras_at = NULL;
    return fd;
}

void tt_ports_open(struct tt_ports *ports)
{
    if (ports->opened) return;
    ports->opened = true;
    ports->local_fd = open_local();
    ports->ras_fd = open_ras(ports);
}

void tt_ports_close(struct tt_ports *ports)
{
    if (ports->ras_at) freeaddrinfo(ports->ras_at);
    ports->ras_at = NULL;
    if (ports->opened && ports->local_fd >= 0) close(ports->local_fd);
    if (ports->opened && ports->ras_fd >= 0) close(ports->ras_fd);
    ports->opened = false;
}

static bool is_loopback(const union tt_addr *addr)
{
    if (addr->sa.sa_family == AF_INET) return ntohl(addr->v4.sin_addr.s_addr) >> 24 == 127;
    if (addr->sa.sa_family != AF_INET6) return false;
    return IN6_IS_ADDR_LOOPBACK(&addr->v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&addr->v6.sin6_addr) && addr->v6.sin6_addr.s6_addr[12] == 127);
}

/* "ADDRESS:PORT" as the tables of sockets in /proc/net have it; "" when that family's has none. */
static void table_address(const union tt_addr *addr, bool v6, char text[48])
{
    uint32_t words[4] = {0, 0, htonl(0xffff), addr->v4.sin_addr.s_addr};
    bool is_v4 = addr->sa.sa_family == AF_INET;
    if (!is_v4) memcpy(words, &addr->v6.sin6_addr, sizeof(words));
    bool mapped = is_v4 || IN6_IS_ADDR_V4MAPPED(&addr->v6.sin6_addr);
    unsigned port = ntohs(is_v4 ? addr->v4.sin_port : addr->v6.sin6_port);
    *text = 0;
    if (v6) {
        snprintf(text, 48, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], port);
    } else if (mapped) {
        snprintf(text, 48, "%08X:%04X", words[3], port);
    }
}

/* Owner of the socket with these two addresses; -1: there is none. One that its process has closed
 * has no inode, and says root's uid for any user's. */
static long owner_in(const char *path, const char *local, const char *remote)
{
    enum { LOCAL = 1, REMOTE = 2, UID = 7, INODE = 9, FIELDS };
    char line[512], *rest = NULL, *fields[FIELDS];
    long owner = -1;
    FILE *table = fopen(path, "re");
    if (!table) return -1;
    while (owner < 0 && fgets(line, sizeof(line), table)) {
        for (int i = 0; i < FIELDS; i++)
            fields[i] = strtok_r(i ? NULL : line, " ", &rest);
        bool is_it = fields[INODE] && !strcmp(fields[LOCAL], local) &&
                     !strcmp(fields[REMOTE], remote) && strcmp(fields[INODE], "0") != 0;
        if (is_it) owner = strtol(fields[UID], NULL, 10);
    }
    fclose(table);
    return owner;
}

/* Owner of the other end of a loopback connection, which is a socket of this host; -1: unknown. */
static long owner_of(const union tt_addr *peer, const union tt_addr *own)
{
    char local[48], remote[48];
    long owner = -1;
    for (int v6 = 0; v6 < 2 && owner < 0; v6++) { /* IPv4 may come from a socket of IPv6 */
        table_address(peer, v6, local);
        table_address(own, v6, remote);
        if (*local && *remote)
            owner = owner_in(v6 ? "/proc/net/tcp6" : "/proc/net/tcp", local, remote);
    }
    return owner;
}

bool tt_ports_may_ask(int fd, bool is_local, bool *proved_out)
{
    struct ucred who = {0};
    socklen_t bytes = sizeof(who);
    union tt_addr peer = {0}, own = {0};
    if (is_local) {
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes)) return false;
        *proved_out = who.uid == geteuid() || who.uid == 0;
        return *proved_out;
    }
    socklen_t peer_bytes = sizeof(peer), own_bytes = sizeof(own);
    if (getpeername(fd, &peer.sa, &peer_bytes) || getsockname(fd, &own.sa, &own_bytes))
        return false;
    if (!is_loopback(&own)) return true; /* the user has opened the port to a network */
    long owner = owner_of(&peer, &own);
    *proved_out = owner == 0 || owner == (long)geteuid();
    return *proved_out;
}
