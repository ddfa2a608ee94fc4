/* TCP as its users see it: bytes in order or an error, some time later, in pieces of any length. */
#include "simulation.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

enum { GIVE_UP_SEC = 10, LONG_SEC = 11 }; /* as tt_socket_guard() asks for */

static uint64_t latency(void)
{
    return 1000 + sim_chance(sim->plan.latency_nsec);
}

static bool parts(const struct sim_trouble *trouble, int a, int b, int way)
{
    if (trouble->way >= 0 && trouble->way != way) return false;
    bool meant = trouble->other < 0 || a == trouble->other || b == trouble->other;
    return a != b && meant && (a == trouble->victim || b == trouble->victim);
}

/* Until when no packet passes between two processes; a moment that is over: they are together. */
static uint64_t apart_until(int a, int b, int way)
{
    uint64_t until = 0;
    for (int t = 0; t < SIM_FAULTS; t++) {
        if (!parts(&sim->plan.troubles[t], a, b, way)) continue;
        if (sim->part_until[t] > until) until = sim->part_until[t];
    }
    return until;
}

/* When a packet that leaves now is there. */
static uint64_t arrival(int from, int to, int way)
{
    uint64_t at = sim->now + latency(), until = apart_until(from, to, way);
    return sim->now < until ? until + sim_chance(SIM_SEC / 2) : at;
}

static struct sim_socket *peer_of(const struct sim_socket *at)
{
    return at->peer < 0 ? NULL : &sim->sockets[at->peer];
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- what can be waited for ---- */

static uint64_t bytes_at(const struct sim_socket *at)
{
    return at->nsegments ? at->segments[at->first].at : SIM_NEVER;
}

static uint64_t stream_ready_at(const struct sim_socket *at, uint32_t events, uint32_t *now)
{
    const struct sim_socket *peer = peer_of(at);
    uint64_t in = earliest(bytes_at(at), at->fin_at), out = at->up_at, first = at->error_at;
    if (peer && peer->tail - peer->head >= SIM_BUFFER_BYTES) out = SIM_NEVER;
    if (in < at->up_at) in = at->up_at;
    if (at->error_at <= sim->now) *now |= EPOLLERR | EPOLLHUP | EPOLLIN | EPOLLOUT;
    if (in <= sim->now) *now |= EPOLLIN;
    if (at->fin_at <= sim->now) *now |= EPOLLIN | EPOLLRDHUP;
    if (out <= sim->now) *now |= EPOLLOUT;
    if (events & (EPOLLIN | EPOLLRDHUP))
        first = earliest(first, events & EPOLLIN ? in : at->fin_at);
    if (events & EPOLLOUT) first = earliest(first, out);
    *now &= events | EPOLLERR | EPOLLHUP;
    return first;
}

static const struct sim_socket *first_waiting(const struct sim_socket *listener)
{
    const struct sim_socket *first = NULL;
    for (int i = 0; i < SIM_SOCKETS && listener->nwaiting; i++) {
        const struct sim_socket *at = &sim->sockets[i];
        if (at->kind != SIM_STREAM || at->listener != (int)(listener - sim->sockets)) continue;
        if (!first || at->up_at < first->up_at) first = at;
    }
    return first;
}

uint64_t sim_ready_at(const struct sim_socket *at, uint32_t events, uint32_t *now_out)
{
    uint64_t when = SIM_NEVER;
    *now_out = 0;
    if (at->kind == SIM_STREAM) return stream_ready_at(at, events, now_out);
    if (at->kind == SIM_EVENT && at->count) when = sim->now;
    if (at->kind == SIM_LISTENER && first_waiting(at)) when = first_waiting(at)->up_at;
    if (when <= sim->now) *now_out = EPOLLIN;
    return when;
}

uint64_t sim_set_ready_at(const struct sim_socket *set)
{
    uint64_t first = SIM_NEVER;
    for (uint32_t i = 0; i < set->nwatched; i++) {
        const struct sim_watch *watch = &set->watched[i];
        uint32_t now;
        first = earliest(first, sim_ready_at(&sim->sockets[watch->socket], watch->events, &now));
    }
    return first;
}

/* ---- life ---- */

int sim_socket_new(int proc, enum sim_kind kind)
{
    for (int i = 0; i < SIM_SOCKETS; i++) {
        struct sim_socket *at = &sim->sockets[i];
        if (at->kind != SIM_NOTHING) continue;
        *at = (struct sim_socket){.kind = kind,
                                  .proc = proc,
                                  .open = true,
                                  .way = -1,
                                  .peer = -1,
                                  .listener = -1,
                                  .fin_at = SIM_NEVER,
                                  .error_at = SIM_NEVER};
        return i;
    }
    return -EMFILE;
}

static int descriptors(int proc)
{
    int n = 0;
    for (int i = 0; i < SIM_SOCKETS; i++) {
        const struct sim_socket *at = &sim->sockets[i];
        n += at->kind != SIM_NOTHING && at->open && at->proc == proc;
    }
    return n;
}

void sim_network_fill(int proc, uint64_t nsec)
{
    sim->procs[proc].most = descriptors(proc);
    sim->procs[proc].full_until = sim->now + nsec;
}

bool sim_network_is_full(int proc)
{
    const struct sim_proc *at = &sim->procs[proc];
    return sim->now < at->full_until && descriptors(proc) >= at->most;
}

/* The other end hears of it, after all bytes that are under way. */
static void report_end(const struct sim_socket *at, int error)
{
    struct sim_socket *peer = peer_of(at);
    if (!peer) return;
    uint64_t when = arrival(at->proc, peer->proc, at->way);
    if (when < peer->last_at) when = peer->last_at;
    if (error && when < peer->error_at) {
        peer->error_at = when;
        peer->error = error;
    }
    if (!error) peer->fin_at = earliest(peer->fin_at, when);
}

/* No set looks at it any more. */
static void unwatch(int socket)
{
    for (int i = 0; i < SIM_SOCKETS; i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < sim->sockets[i].nwatched; k++) { /* NOLINT: `sim` is mapped */
            struct sim_watch watch = sim->sockets[i].watched[k];
            if (watch.socket != socket) sim->sockets[i].watched[kept++] = watch;
        }
        sim->sockets[i].nwatched = kept;
    }
}

void sim_socket_close(struct sim_socket *at)
{
    int own = (int)(at - sim->sockets);
    if (at->kind == SIM_LISTENER) {
        for (int i = 0; i < SIM_SOCKETS; i++) {
            struct sim_socket *waits = &sim->sockets[i];
            if (waits->kind == SIM_STREAM && waits->listener == own) sim_socket_close(waits);
        }
    }
    if (at->kind == SIM_STREAM) {
        if (at->listener >= 0) sim->sockets[at->listener].nwaiting--;
        /* unread bytes: the other end gets a reset, as from a kernel */
        report_end(at, at->tail != at->head ? ECONNRESET : 0);
        if (peer_of(at)) peer_of(at)->peer = -1;
    }
    unwatch(own);
    at->kind = SIM_NOTHING;
    at->open = false;
}

void sim_shutdown(struct sim_socket *at)
{
    at->fin_at = sim->now;
    report_end(at, 0);
}

/* ---- connections ---- */

int sim_connect(struct sim_socket *at, uint16_t port, int way)
{
    struct sim_socket *listener = NULL;
    if (at->kind == SIM_STREAM) { /* asked for before */
        if (at->error_at <= sim->now) return -at->error;
        return at->up_at <= sim->now ? 0 : -EALREADY;
    }
    for (int i = 0; i < SIM_SOCKETS && !listener; i++) {
        struct sim_socket *one = &sim->sockets[i];
        const bool serves = one->way < 0 || one->way == way;
        if (one->kind == SIM_LISTENER && one->port == port && serves) listener = one;
    }
    at->way = way;
    at->kind = SIM_STREAM;
    at->up_at = SIM_NEVER;
    at->port = sim->next_port++;
    at->peer_port = port;
    at->peer_proc = listener ? listener->proc : 0;
    if (!listener) {
        at->error_at = sim->now + latency();
        at->error = ECONNREFUSED;
        return -EINPROGRESS;
    }
    int other = sim_socket_new(listener->proc, SIM_STREAM);
    if (other < 0) return other;
    struct sim_socket *peer = &sim->sockets[other];
    peer->open = false;
    peer->listener = (int)(listener - sim->sockets);
    listener->nwaiting++;
    peer->port = port;
    peer->peer_port = at->port;
    peer->way = way;
    peer->peer_proc = at->proc;
    peer->peer = (int)(at - sim->sockets);
    peer->up_at = peer->last_at = arrival(at->proc, peer->proc, way);
    at->peer = other;
    at->up_at = at->last_at = peer->up_at + latency();
    return -EINPROGRESS;
}

int sim_accept(struct sim_socket *at)
{
    const struct sim_socket *first = first_waiting(at);
    if (sim_network_is_full(at->proc)) return -EMFILE;
    if (!first || first->up_at > sim->now) return -EAGAIN;
    int own = (int)(first - sim->sockets);
    sim->sockets[own].open = true;
    sim->sockets[own].listener = -1;
    at->nwaiting--;
    return own;
}

/* ---- bytes ---- */

static size_t cut(size_t len)
{
    bool shorter = len > 1 && sim_chance((uint64_t)sim->plan.short_one_in) == 0;
    return shorter ? 1 + (size_t)sim_chance(len - 1) : len;
}

static unsigned char *byte_at(const struct sim_socket *at, uint64_t k)
{
    return &sim->bytes[at - sim->sockets][k % SIM_BUFFER_BYTES];
}

/* One more; with the last one where there is no room. */
static void append(struct sim_segment *segments, uint32_t first, uint32_t *n,
                   struct sim_segment one)
{
    if (*n < SIM_SEGMENTS) (*n)++;
    segments[(first + *n - 1) % SIM_SEGMENTS] = one;
}

/* The other host's kernel answers when the bytes have come. */
static void expect_answer(struct sim_socket *at, uint64_t when)
{
    while (at->nanswers && at->answers[at->first_answer].at <= sim->now) {
        at->answered = at->answers[at->first_answer].end;
        at->first_answer = (at->first_answer + 1) % SIM_SEGMENTS;
        at->nanswers--;
    }
    append(at->answers, at->first_answer, &at->nanswers, (struct sim_segment){at->sent, when});
}

uint64_t sim_missing(const struct sim_socket *at)
{
    uint64_t answered = at->answered;
    for (uint32_t i = 0; i < at->nanswers; i++) {
        const struct sim_segment *answer = &at->answers[(at->first_answer + i) % SIM_SEGMENTS];
        if (answer->at <= sim->now) answered = answer->end;
    }
    return at->sent - answered;
}

bool sim_repeats(const struct sim_socket *at)
{
    const struct sim_socket *peer = peer_of(at);
    return peer && apart_until(at->proc, peer->proc, at->way) > sim->now;
}

static void maybe_flip(const struct sim_socket *from, const struct sim_socket *to, size_t len)
{
    for (int t = 0; t < SIM_FAULTS; t++) {
        int victim = sim->plan.troubles[t].victim;
        if (!sim->flip_due[t] || (from->proc != victim && to->proc != victim)) continue;
        uint64_t bit = sim_chance(8 * len);
        *byte_at(to, to->tail + bit / 8) ^= (unsigned char)(1u << bit % 8);
        sim->flip_due[t] = false;
        sim->injected[t] = true;
    }
}

ssize_t sim_send(struct sim_socket *at, const void *bytes, size_t len)
{
    struct sim_socket *peer = peer_of(at);
    if (at->error_at <= sim->now) return -at->error;
    if (at->up_at > sim->now) return -EAGAIN;
    if (!peer) { /* its kernel will say that no listener is there */
        if (at->fin_at <= sim->now && at->error_at == SIM_NEVER) {
            at->error_at = sim->now + latency();
            at->error = ECONNRESET;
        }
        return (ssize_t)len;
    }
    size_t room = SIM_BUFFER_BYTES - (size_t)(peer->tail - peer->head);
    if (len > room) len = room;
    if (!len) return -EAGAIN;
    len = cut(len);
    for (size_t i = 0; i < len; i++)
        *byte_at(peer, peer->tail + i) = ((const unsigned char *)bytes)[i];
    maybe_flip(at, peer, len);
    peer->tail += len;
    sim->procs[at->proc].happened++;
    uint64_t when = arrival(at->proc, peer->proc, at->way);
    if (when < peer->last_at) when = peer->last_at;
    peer->last_at = when;
    append(peer->segments, peer->first, &peer->nsegments, (struct sim_segment){peer->tail, when});
    at->sent += len;
    expect_answer(at, when + latency());
    return (ssize_t)len;
}

ssize_t sim_recv(struct sim_socket *at, void *bytes, size_t len)
{
    uint64_t end = at->head;
    for (uint32_t i = 0; i < at->nsegments; i++) {
        const struct sim_segment *segment = &at->segments[(at->first + i) % SIM_SEGMENTS];
        if (segment->at <= sim->now) end = segment->end;
    }
    if (end == at->head) {
        if (at->error_at <= sim->now) return -at->error;
        return at->fin_at <= sim->now ? 0 : -EAGAIN;
    }
    if (len > end - at->head) len = (size_t)(end - at->head);
    len = cut(len);
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = *byte_at(at, at->head + i);
    at->head += len;
    sim->procs[at->proc].happened++;
    while (at->nsegments && at->segments[at->first].end <= at->head) {
        at->first = (at->first + 1) % SIM_SEGMENTS;
        at->nsegments--;
    }
    return (ssize_t)len;
}

/* ---- faults ---- */

static void lose(struct sim_socket *at, uint64_t when)
{
    if (at->error_at <= when) return;
    at->error_at = when;
    at->error = ETIMEDOUT;
}

static void put_off(uint64_t *at, uint64_t when)
{
    if (*at != SIM_NEVER && *at > sim->now && *at < when) *at = when;
}

/* What is under way to this end comes when the cut is mended. */
static void delay(struct sim_socket *at, uint64_t until)
{
    uint64_t when = until + sim_chance(SIM_SEC / 2);
    for (uint32_t s = 0; s < at->nsegments; s++)
        put_off(&at->segments[(at->first + s) % SIM_SEGMENTS].at, when);
    for (uint32_t s = 0; s < at->nanswers; s++)
        put_off(&at->answers[(at->first_answer + s) % SIM_SEGMENTS].at, when);
    put_off(&at->last_at, when);
    put_off(&at->fin_at, when);
    put_off(&at->up_at, when);
}

/* Connections that are cut end when they have been silent for too long. */
static void silence(const struct sim_trouble *trouble, uint64_t until)
{
    for (int i = 0; i < SIM_SOCKETS; i++) {
        struct sim_socket *at = &sim->sockets[i];
        struct sim_socket *peer = peer_of(at);
        if (at->kind != SIM_STREAM || !peer || peer->proc != trouble->victim) continue;
        if (!parts(trouble, at->proc, peer->proc, at->way)) continue;
        if (until - sim->now > LONG_SEC * SIM_SEC) {
            uint64_t when = sim->now + GIVE_UP_SEC * SIM_SEC + sim_chance(SIM_SEC);
            lose(at, when);
            lose(peer, when);
        }
        if (until == SIM_NEVER) continue;
        delay(at, until);
        delay(peer, until);
    }
}

void sim_network_part(int t)
{
    const struct sim_trouble *trouble = &sim->plan.troubles[t];
    sim->part_until[t] = sim->now + trouble->nsec;
    silence(trouble, sim->part_until[t]);
}

void sim_network_drop(int proc, bool silent)
{
    const struct sim_trouble gone = {.victim = proc, .other = -1, .way = -1};
    if (silent) silence(&gone, SIM_NEVER);
    for (int i = 0; i < SIM_SOCKETS; i++) {
        struct sim_socket *at = &sim->sockets[i];
        if (at->kind == SIM_NOTHING || at->proc != proc) continue;
        if (silent && peer_of(at)) peer_of(at)->peer = -1;
        if (silent) at->peer = -1;
        sim_socket_close(at);
    }
}

bool sim_network_reset(int proc)
{
    int n = 0, chosen = -1;
    for (int i = 0; i < SIM_SOCKETS; i++) {
        const struct sim_socket *at = &sim->sockets[i];
        if (at->kind != SIM_STREAM || at->proc != proc || !peer_of(at)) continue;
        if (sim_chance((uint64_t)++n) == 0) chosen = i;
    }
    if (chosen < 0) return false;
    struct sim_socket *at = &sim->sockets[chosen];
    at->error_at = peer_of(at)->error_at = sim->now;
    at->error = peer_of(at)->error = ECONNRESET;
    return true;
}
