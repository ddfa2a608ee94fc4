/* Clients of the two ports: lines come in, answers go out, never waiting for a client. The
 * watchdog's thread does this beside its looks. Both ports speak RAS's protocol; DOCTOR and FLIGHT
 * are commands of ours. */
#include "watch/ras/serve.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "plugin/profiler/profiler.h"
#include "watch/flight/flight.h"
#include "watch/ras/diagnose.h"
#include "watch/ras/doctor.h"
#include "watch/ras/ras.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_NSEC 60000000000ull
#define REPORT_NSEC 5000000000ull /* RAS's own time-out of a client that names none */
#define DEAF_NSEC 100000000ull    /* no listening after an accept that found no descriptor */
#define NSEC 1000000000ull
enum { OUT_LIMIT_BYTES = 64 << 20, SLOW_LIMIT_BYTES = 64 << 10 };

struct serve_job { /* what is asked about, and when */
    struct tt_inquiry *inquiry;
    const struct tt_watch *watches;
    uint64_t now;
};

/* How long the ranks have for their answers when the client does not say. */
static uint64_t usual_timeout_nsec(void)
{
    const char *text = tt_param_str("NCCL_RAS_TIMEOUT_FACTOR");
    char *end = NULL;
    double factor = text && *text ? strtod(text, &end) : 1;
    bool good = factor > 0 && factor <= 1000 && (!end || !*end);
    return (uint64_t)((double)REPORT_NSEC * (good ? factor : 1));
}

static void accept_client(struct tt_serve *serve, int listener, uint64_t now)
{
    int slot = 0;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        if (exhausted) serve->deaf_until_nsec = now + DEAF_NSEC;
        return;
    }
    while (slot < TT_SERVE_CLIENTS && serve->clients[slot])
        slot++;
    struct tt_serve_client *client = NULL;
    bool proved = false;
    if (slot < TT_SERVE_CLIENTS && tt_ports_may_ask(fd, listener == serve->ports.local_fd, &proved))
        client = tt_calloc(1, sizeof(*client));
    if (!client) {
        close(fd);
        return;
    }
    client->fd = fd;
    client->received_nsec = now;
    client->proved = proved;
    client->timeout_nsec = usual_timeout_nsec();
    serve->clients[slot] = client;
}

/* ---- talk ---- */

static void client_close(struct tt_serve_client **client_at)
{
    struct tt_serve_client *client = *client_at;
    *client_at = NULL;
    close(client->fd);
    free(client->out);
    free(client);
}

static void say_bytes(struct tt_serve_client *client, const char *text, size_t bytes)
{
    char *grown = NULL;
    if (client->out_bytes + bytes <= OUT_LIMIT_BYTES)
        grown = realloc(client->out, client->out_bytes + bytes + 1);
    if (!grown) {
        client->last = true;
        return;
    }
    client->out = grown;
    memcpy(client->out + client->out_bytes, text, bytes);
    client->out_bytes += bytes;
}

static void say(struct tt_serve_client *client, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct tt_serve_client *client, const char *fmt, ...)
{
    char text[TT_SERVE_LINE_BYTES + 64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    say_bytes(client, text, strlen(text));
}

/* The rest of a line after a word that begins it, whatever its case; NULL: another line. */
static const char *after(const char *line, const char *word)
{
    size_t len = strlen(word);
    if (strncasecmp(line, word, len) != 0) return NULL;
    if (line[len] == 0) return line + len;
    return line[len] == ' ' ? line + len + strspn(line + len, " ") : NULL;
}

static void set_timeout(struct tt_serve_client *client, const char *text)
{
    char *end;
    double sec = strtod(text, &end);
    if (end == text || *end || !(sec >= 0 && sec <= 86400)) {
        say(client, "ERROR: Invalid timeout value %s\n", text);
        return;
    }
    client->timeout_nsec = sec > 0 ? (uint64_t)(sec * 1e9) : 86400 * NSEC;
    say(client, "OK\n");
}

static void set_format(struct tt_serve_client *client, const char *text)
{
    bool json = !strcasecmp(text, "json");
    if (!json && strcasecmp(text, "text") != 0) {
        say(client, "ERROR: Invalid format %s\n", text);
        return;
    }
    client->json = json;
    say(client, "OK\n");
}

static void set_monitor(struct tt_serve_client *client, const char *text)
{
    static const struct {
        const char *name;
        int groups;
    } names[] = {{"lifecycle", TT_MONITOR_LIFECYCLE},
                 {"trace", TT_MONITOR_TRACE},
                 {"all", TT_MONITOR_LIFECYCLE | TT_MONITOR_TRACE}};
    int groups = *text ? 0 : TT_MONITOR_LIFECYCLE;
    for (const char *name = text; *text; name++) {
        size_t len = strcspn(name, ","), i = 0;
        while (i < 3 && (strncasecmp(name, names[i].name, len) != 0 || names[i].name[len]))
            i++;
        if (i == 3) {
            say(client, "ERROR: Invalid event group '%.*s'\n", (int)len, name);
            return;
        }
        groups |= names[i].groups;
        name += len;
        if (!*name) break;
    }
    client->monitors = groups;
    say(client, "OK\n");
}

/* The only thing that a client can change. False: there is nothing to ask the ranks. */
static bool take_control(struct tt_serve_client *client, const char *text, uint64_t *asks)
{
    const char *value = after(text, "PROFILER_MASK");
    uint32_t mask = 0;
    if (!value) {
        say(client, "ERROR: Unknown command CONTROL %s\n", text);
    } else if (!tt_profiler_read_mask(value, &mask)) {
        say(client, "ERROR: Invalid profiler mask value '%s'\n", value);
    } else if (!client->proved) {
        say(client, "ERROR: CONTROL is for this user's processes on this host\n");
    } else {
        *asks = (uint64_t)mask << 32 | TT_INQUIRY_PROFILERS;
        return true;
    }
    return false;
}

static bool is_busy(const struct tt_serve *serve)
{
    for (int i = 0; i < TT_SERVE_CLIENTS; i++) {
        if (serve->clients[i] && serve->clients[i]->report == TT_SERVE_DIAGNOSTICS) return true;
    }
    return false;
}

/* What the flight recorder would write now, and the end of the talk. */
static void say_flight(struct tt_serve_client *client)
{
    int fd = memfd_create("tutti-flight", MFD_CLOEXEC);
    char text[4096];
    ssize_t bytes;
    client->last = true;
    if (fd < 0) return;
    tt_flight_write(fd, "asked for by tutti doctor");
    for (off_t at = 0; (bytes = pread(fd, text, sizeof(text), at)) > 0; at += bytes)
        say_bytes(client, text, (size_t)bytes);
    close(fd);
}

static void take_line(struct tt_serve *serve, struct tt_serve_client *client, const char *line,
                      const struct serve_job *job)
{
    uint64_t asks = 0;
    const char *rest;
    if (after(line, "CLIENT PROTOCOL")) {
        say(client, "SERVER PROTOCOL 2\n");
    } else if ((rest = after(line, "TIMEOUT"))) {
        set_timeout(client, rest);
    } else if ((rest = after(line, "SET FORMAT"))) {
        set_format(client, rest);
    } else if (after(line, "STATUS") || after(line, "VERBOSE STATUS")) {
        client->verbose = after(line, "VERBOSE STATUS") != NULL;
        client->report = TT_SERVE_STATUS;
    } else if (after(line, "DOCTOR")) {
        client->report = TT_SERVE_DOCTOR;
    } else if (after(line, "FLIGHT")) {
        say_flight(client);
    } else if ((rest = after(line, "MONITOR"))) {
        set_monitor(client, rest);
    } else if (after(line, "DIAGNOSTICS") && is_busy(serve)) {
        say(client, "BUSY: diagnostics already in progress\n");
        client->last = true;
    } else if (after(line, "DIAGNOSTICS")) {
        asks = TT_INQUIRY_SETTINGS;
        client->report = TT_SERVE_DIAGNOSTICS;
    } else if ((rest = after(line, "CONTROL"))) {
        if (take_control(client, rest, &asks)) client->report = TT_SERVE_CONTROL;
    } else {
        say(client, "ERROR: Unknown command %s\n", line);
    }
    if (!client->report) return;
    client->wants =
        tt_inquiry_want(job->inquiry, job->watches, job->now, client->timeout_nsec, asks);
    client->until_nsec = job->now + client->timeout_nsec;
}

static void receive(struct tt_serve_client *client, uint64_t now)
{
    size_t room = sizeof(client->line) - 1 - client->got;
    ssize_t bytes = recv(client->fd, client->line + client->got, room, 0);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (bytes <= 0 || room == 0) {
        client->last = true; /* gone, or its line is too long: what it asked for is still sent */
        if (bytes < 0 || room == 0) client->report = TT_SERVE_NOTHING;
        return;
    }
    client->received_nsec = now;
    client->got += (size_t)bytes;
    client->line[client->got] = 0;
}

/* One after the other: a client that waits for a report is read again afterwards. */
static void take_lines(struct tt_serve *serve, struct tt_serve_client *client,
                       const struct serve_job *job)
{
    char *line = client->line, *end;
    while (!client->report && (end = strchr(line, '\n'))) {
        *end = 0;
        if (end > line && end[-1] == '\r') end[-1] = 0;
        if (*line) take_line(serve, client, line, job);
        line = end + 1;
    }
    client->got -= (size_t)(line - client->line);
    memmove(client->line, line, client->got + 1);
}

/* A rank that has not answered has not got it. */
static void print_control(FILE *out, const struct tt_inquiry *inquiry)
{
    int missing = 0;
    for (size_t i = 0; i < inquiry->ncomms; i++)
        missing += inquiry->comms[i].nranks - inquiry->comms[i].nfound;
    if (missing) {
        fprintf(out, "ERROR: %d ranks have not answered\n", missing);
    } else {
        fprintf(out, "OK\n");
    }
}

static void send_report(struct tt_serve_client *client, const struct tt_inquiry *inquiry,
                        const struct tt_watch *watches)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out && client->report == TT_SERVE_DOCTOR) {
        tt_doctor_json(out, inquiry, watches);
    } else if (out && client->report == TT_SERVE_DIAGNOSTICS) {
        tt_diagnose_report(out, inquiry, 0);
    } else if (out && client->report == TT_SERVE_CONTROL) {
        print_control(out, inquiry);
    } else if (out && client->json) {
        tt_ras_json(out, inquiry, watches);
    } else if (out) {
        tt_ras_text(out, inquiry, watches, client->verbose);
    }
    if (out) fclose(out);
    if (text) say_bytes(client, text, bytes);
    free(text);
    client->last = client->report != TT_SERVE_CONTROL;
    client->report = TT_SERVE_NOTHING;
}

static void client_send(struct tt_serve_client *client)
{
    while (client->sent < client->out_bytes) {
        ssize_t bytes = send(client->fd, client->out + client->sent,
                             client->out_bytes - client->sent, MSG_NOSIGNAL);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (bytes <= 0) {
            client->sent = client->out_bytes;
            client->last = true;
            return;
        }
        client->sent += (size_t)bytes;
    }
    client->sent = client->out_bytes = 0; /* the buffer stays for what comes next */
}

/* ---- the room's thread ---- */

int tt_serve_poll(struct tt_serve *serve, struct pollfd *fds, uint64_t now)
{
    tt_ports_open(&serve->ports);
    bool deaf = now < serve->deaf_until_nsec;
    fds[0] = (struct pollfd){.fd = deaf ? -1 : serve->ports.local_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = deaf ? -1 : serve->ports.ras_fd, .events = POLLIN};
    for (int i = 0; i < TT_SERVE_CLIENTS; i++) {
        const struct tt_serve_client *client = serve->clients[i];
        fds[2 + i] = (struct pollfd){.fd = client ? client->fd : -1};
        if (!client) continue;
        bool unsent = client->sent < client->out_bytes;
        if (!client->last && !client->report && !unsent) fds[2 + i].events |= POLLIN;
        if (unsent) fds[2 + i].events |= POLLOUT;
    }
    return TT_SERVE_FDS;
}

void tt_serve_report(struct tt_serve *serve, const struct tt_inquiry *inquiry,
                     const struct tt_watch *watches, uint64_t now)
{
    for (int i = 0; i < TT_SERVE_CLIENTS; i++) {
        struct tt_serve_client *client = serve->clients[i];
        if (client && client->report &&
            tt_inquiry_is_due(inquiry, client->wants, client->until_nsec, now))
            send_report(client, inquiry, watches);
    }
}

static void report_event(void *to, const struct tt_monitor_event *event)
{
    struct tt_serve *serve = to;
    char *texts[2] = {NULL, NULL}; /* made when the first client wants it */
    for (int i = 0; i < TT_SERVE_CLIENTS; i++) {
        struct tt_serve_client *client = serve->clients[i];
        if (!client || !(client->monitors & event->group)) continue;
        if (!texts[client->json]) texts[client->json] = tt_monitor_text(event, client->json);
        if (texts[client->json])
            say_bytes(client, texts[client->json], strlen(texts[client->json]));
        if (client->out_bytes - client->sent > SLOW_LIMIT_BYTES) {
            client->sent = client->out_bytes; /* it does not read */
            client->last = true;
        }
    }
    free(texts[0]);
    free(texts[1]);
}

void tt_serve_monitor(struct tt_serve *serve, const struct tt_watch *watches, uint64_t now)
{
    bool any = false;
    for (int i = 0; i < TT_SERVE_CLIENTS; i++)
        any |= serve->clients[i] && serve->clients[i]->monitors;
    if (any) {
        tt_monitor_look(&serve->monitor, watches, now, report_event, serve);
    } else if (serve->monitor.looked_nsec) {
        tt_monitor_reset(&serve->monitor);
    }
}

void tt_serve_step(struct tt_serve *serve, const struct pollfd *fds, struct tt_inquiry *inquiry,
                   const struct tt_watch *watches, uint64_t now)
{
    const struct serve_job job = {.inquiry = inquiry, .watches = watches, .now = now};
    for (int i = 0; i < TT_SERVE_CLIENTS; i++) {
        struct tt_serve_client *client = serve->clients[i];
        if (!client) continue;
        if (fds[2 + i].revents &
            (POLLHUP | POLLERR | POLLNVAL)) { /* the client reads nothing any more */
            client_close(&serve->clients[i]);
            continue;
        }
        if (fds[2 + i].revents & POLLIN) receive(client, now);
        if (!client->last) take_lines(serve, client, &job);
        client_send(client);
        bool sent = client->sent == client->out_bytes;
        bool idle = !client->report && !client->monitors && now - client->received_nsec > IDLE_NSEC;
        if ((client->last && sent && !client->report) || idle) client_close(&serve->clients[i]);
    }
    if (fds[0].revents & POLLIN) accept_client(serve, serve->ports.local_fd, now);
    if (fds[1].revents & POLLIN) accept_client(serve, serve->ports.ras_fd, now);
}

void tt_serve_close(struct tt_serve *serve)
{
    for (int i = 0; i < TT_SERVE_CLIENTS; i++) {
        if (serve->clients[i]) client_close(&serve->clients[i]);
    }
    tt_ports_close(&serve->ports);
    tt_monitor_reset(&serve->monitor);
}
