/* Nothing is sent: deaths are what bootstrap reports, and on the own host /proc says which process
 * is stopped or gone. So a process of another host that is stopped is not noticed here; a report
 * asks.
 */
#include "watch/ras/monitor.h"

#include "base/member.h"
#include "bootstrap/bootstrap.h"
#include "transport/transport.h"
#include "watch/inquiry/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NSEC 200000000ull

static struct tt_monitor_peer *peer_of(struct tt_monitor *monitor, const char *host, int pid)
{
    for (size_t i = 0; i < monitor->count; i++) {
        struct tt_monitor_peer *peer = &monitor->peers[i];
        if (peer->pid == pid && !strcmp(peer->host, host)) return peer;
    }
    if (monitor->count == monitor->room) {
        size_t more = monitor->room ? 2 * monitor->room : 16;
        struct tt_monitor_peer *grown = realloc(monitor->peers, more * sizeof(*grown));
        if (!grown) return NULL;
        monitor->peers = grown;
        monitor->room = more;
    }
    struct tt_monitor_peer *peer = &monitor->peers[monitor->count++];
    memset(peer, 0, sizeof(*peer));
    peer->pid = pid;
    memcpy(peer->host, host, sizeof(peer->host));
    return peer;
}

struct teller {
    void (*report)(void *to, const struct tt_monitor_event *event);
    void *to;
    bool first;
};

static void say(const struct teller *teller, const struct tt_monitor_peer *peer, int group,
                const char *name, const char *details)
{
    const struct tt_monitor_event event = {
        .name = name, .details = details, .group = group, .peer = peer};
    if (!teller->first) teller->report(teller->to, &event);
}

static void change(const struct teller *teller, struct tt_monitor_peer *peer,
                   enum tt_peer_state state)
{
    if (state == peer->state || peer->state == TT_PEER_DEAD) return;
    peer->state = state;
    if (state == TT_PEER_DEAD) {
        say(teller, peer, TT_MONITOR_LIFECYCLE, "PEER_DEAD", "its process has ended");
    } else if (state == TT_PEER_STOPPED) {
        say(teller, peer, TT_MONITOR_TRACE, "PEER_UNRESPONSIVE", "its process is stopped");
    } else {
        say(teller, peer, TT_MONITOR_TRACE, "PEER_RECOVERED", "");
    }
}

static void look_at_rank(struct tt_monitor *monitor, const struct tt_watch *watch, int rank,
                         const struct teller *teller)
{
    const struct tt_watch_subject *subject = &watch->subject;
    char host[TT_STATUS_HOST_BYTES] = "";
    int pid = -1;
    snprintf(host, sizeof(host), "%s", tt_bootstrap_peer(subject->bootstrap, rank, &pid));
    tt_status_clean(host);
    bool here = subject->peers && subject->peers[rank].same_pids;
    if (rank == subject->member->rank || (here && pid == (int)getpid())) return;
    size_t before = monitor->count;
    struct tt_monitor_peer *peer = peer_of(monitor, host, pid);
    if (!peer) return;
    bool is_new = monitor->count > before;
    if (is_new) tt_bootstrap_address(subject->bootstrap, rank, peer->addr, sizeof(peer->addr));
    int device = subject->peers ? subject->peers[rank].device : -1;
    peer->here = here;
    if (device >= 0 && device < 64) peer->devices |= 1ull << device;
    peer->seen = true;
    if (is_new) say(teller, peer, TT_MONITOR_LIFECYCLE, "PEER_NEW", "");
    if (tt_bootstrap_rank_died(subject->bootstrap, rank)) change(teller, peer, TT_PEER_DEAD);
}

/* A process whose communicators have ended is forgotten, unless it has ended itself. */
static void look_at_process(struct tt_monitor_peer *peer, const struct teller *teller)
{
    if (peer->state == TT_PEER_DEAD || !peer->here) return;
    switch (tt_verdict_process(peer->pid)) {
    case TT_VERDICT_ENDED: change(teller, peer, TT_PEER_DEAD); break;
    case TT_VERDICT_STOPPED: change(teller, peer, TT_PEER_STOPPED); break;
    default: change(teller, peer, TT_PEER_RUNS);
    }
}

void tt_monitor_look(struct tt_monitor *monitor, const struct tt_watch *watches, uint64_t now,
                     void (*report)(void *to, const struct tt_monitor_event *event), void *to)
{
    const struct teller teller = {.report = report, .to = to, .first = !monitor->looked_nsec};
    if (!teller.first && now - monitor->looked_nsec < LOOK_NSEC) return;
    monitor->looked_nsec = now;
    for (size_t i = 0; i < monitor->count; i++)
        monitor->peers[i].seen = false;
    for (const struct tt_watch *watch = watches; watch; watch = watch->next) {
        const struct tt_member *member = watch->subject.member;
        for (int rank = 0; rank < member->nranks; rank++)
            look_at_rank(monitor, watch, rank, &teller);
    }
    size_t kept = 0;
    for (size_t i = 0; i < monitor->count; i++) {
        struct tt_monitor_peer *peer = &monitor->peers[i];
        look_at_process(peer, &teller);
        if (peer->seen) monitor->peers[kept++] = *peer;
    }
    monitor->count = kept;
}

void tt_monitor_reset(struct tt_monitor *monitor)
{
    free(monitor->peers);
    memset(monitor, 0, sizeof(*monitor));
}

/* ---- words ---- */

static void print_devices(FILE *out, uint64_t devices, const char *separator)
{
    for (int d = 0, n = 0; d < 64; d++) {
        if (devices >> d & 1) fprintf(out, "%s%d", n++ ? separator : "", d);
    }
}

char *tt_monitor_text(const struct tt_monitor_event *event, bool json)
{
    const struct tt_monitor_peer *peer = event->peer;
    char *text = NULL, when[32] = "";
    size_t bytes = 0;
    struct tm parts;
    time_t now = time(NULL);
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    if (localtime_r(&now, &parts)) strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &parts);
    if (json) {
        fprintf(out,
                "{\n  \"timestamp\": \"%s\",\n  \"group\": \"%s\",\n  \"event\": \"%s\",\n"
                "  \"peer\": {\n    \"host\": \"%s\",\n    \"pid\": %d,\n    \"cuda_devs\": [",
                when, event->group == TT_MONITOR_TRACE ? "TRACE" : "LIFECYCLE", event->name,
                peer->addr, peer->pid);
        print_devices(out, peer->devices, ", ");
        fprintf(out, "],\n    \"nvml_devs\": [");
        print_devices(out, peer->devices, ", ");
        fprintf(out, "]\n  },\n  \"details\": \"%s\"\n}\n", event->details);
    } else {
        bool several = peer->devices & (peer->devices - 1);
        fprintf(out, "[%s] %s: Process %d on node %s managing GPU%s ", when, event->name, peer->pid,
                peer->addr, several ? "s" : "");
        print_devices(out, peer->devices, ", ");
        fprintf(out, "%s%s\n", *event->details ? " " : "", event->details);
    }
    fclose(out);
    return text;
}
