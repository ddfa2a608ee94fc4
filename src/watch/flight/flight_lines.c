/* The lines of the flight recorder. A signal handler may write them: everything here calls nothing
 * but write() and looks at atomic fields, takes no lock and no memory. */
#include "base/mem.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "exec/exec.h"
#include "plugin/profiler/profiler.h"
#include "watch/inquiry/status.h"
#include "watch/process.h"
#include "watch/watch_state.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { ID_SHIFT = 40 };

/* ---- text ---- */

static void flush(struct flight_out *out)
{
    size_t done = 0;
    while (done < out->used && !out->error) {
        ssize_t n = write(out->fd, out->text + done, out->used - done);
        if (n > 0) done += (size_t)n;
        if (n < 0 && errno != EINTR) out->error = errno;
        if (n == 0) out->error = ENOSPC;
    }
    out->used = 0;
}

static void put(struct flight_out *out, char c)
{
    if (out->used == sizeof(out->text)) flush(out);
    out->text[out->used++] = c;
}

static void text(struct flight_out *out, const char *from)
{
    while (*from)
        put(out, *from++);
}

/* A text from outside, inside quotes. */
static void quoted(struct flight_out *out, const char *from)
{
    put(out, '"');
    for (; *from; from++) {
        bool plain = *from >= ' ' && *from <= '~' && *from != '"' && *from != '\\';
        put(out, (char)(plain ? *from : '?'));
    }
    put(out, '"');
}

static void digits(struct flight_out *out, uint64_t number, unsigned int base)
{
    char reversed[20];
    int n = 0;
    do {
        reversed[n++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    for (; base == 16 && n < 16; n++)
        reversed[n] = '0';
    while (n > 0)
        put(out, reversed[--n]);
}

/* ,"name":number */
static void number(struct flight_out *out, const char *name, int64_t value)
{
    text(out, ",\"");
    text(out, name);
    text(out, "\":");
    if (value < 0) put(out, '-');
    digits(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
}

static void word(struct flight_out *out, const char *name, const char *value)
{
    text(out, ",\"");
    text(out, name);
    text(out, "\":");
    quoted(out, value);
}

/* ---- one communicator ---- */

struct own { /* of a communicator, while it is written */
    const struct tt_watch *watch;
    int c; /* its number in the file */
    uint64_t now, begun, ended, first;
    uint64_t starts, stops;
};

/* Since when the counter is `least` or more, as far as it was seen; `now` where it was not. */
static uint64_t seen_at(const struct own *own, uint64_t least, bool ends)
{
    const struct tt_flight *flight = &own->watch->flight;
    uint64_t n = atomic_load_explicit(&flight->nlooks, memory_order_acquire);
    uint64_t at_nsec = own->now;
    for (uint64_t k = 0; k < n && k < TT_CALL_LOG_LEN; k++) { /* newest first */
        const struct tt_flight_look *look = &flight->looks[(n - 1 - k) % TT_CALL_LOG_LEN];
        if (atomic_load_explicit(ends ? &look->ended : &look->begun, memory_order_relaxed) < least)
            break;
        at_nsec = atomic_load_explicit(&look->nsec, memory_order_relaxed);
    }
    return at_nsec;
}

static void put_event(struct flight_out *out, struct own *own, uint64_t id,
                      const struct tt_call *call, uint64_t since_nsec)
{
    text(out, "{\"t\":\"ev\"");
    number(out, "id", (int64_t)((uint64_t)own->c << ID_SHIFT | id));
    number(out, "c", own->c);
    number(out, "tid", own->c);
    number(out, "ts", (int64_t)since_nsec);
    own->starts++;
    word(out, "func", tt_func_name((enum tt_func)call->func));
    word(out, "datatype", tt_prof_type_name((ncclDataType_t)call->type));
    number(out, "count", (int64_t)call->count);
}

static void put_operation(struct flight_out *out, struct own *own, uint64_t k)
{
    struct tt_call call;
    uint64_t since_nsec = seen_at(own, k, false);
    if (!tt_call_log_get(own->watch->subject.transport, k, &call)) return; /* just overwritten */
    put_event(out, own, k, &call, since_nsec);
    if (k <= own->ended) {
        number(out, "dur", (int64_t)(seen_at(own, k, true) - since_nsec));
        own->stops++;
    }
    word(out, "type", "Coll");
    number(out, "seq", (int64_t)k);
    number(out, "root", call.root);
    number(out, "redop", call.op);
    word(out, "algo", tt_algo_name((enum tt_algo)call.algo));
    word(out, "proto", tt_proto_name((enum tt_proto)call.proto));
    number(out, "channels", call.nchannels);
    text(out, "}\n");
}

static bool is_message(const struct tt_wait *wait, struct tt_call *call)
{
    memcpy(call, wait->call, sizeof(*call));
    return call->known && tt_func_is_message((enum tt_func)call->func);
}

/* How far the rank is, whom it waits for, and messages that wait. */
static void put_state(struct flight_out *out, struct own *own, const struct tt_wait *waits,
                      int nwaits)
{
    const struct tt_watch_subject *subject = &own->watch->subject;
    uint64_t served = atomic_load(&subject->queue->served);
    uint64_t issued = atomic_load(&subject->queue->issued);
    uint64_t left = issued > served ? issued - served : 0;
    uint64_t queued = left && own->begun > own->ended ? left - 1 : left;
    text(out, "{\"t\":\"flight\"");
    number(out, "c", own->c);
    number(out, "begun", (int64_t)own->begun);
    number(out, "ended", (int64_t)own->ended);
    number(out, "issued", (int64_t)issued);
    number(out, "queued", (int64_t)queued);
    number(out, "abort", (int64_t)tt_member_abort_code(subject->member));
    if (nwaits > 0) {
        word(out, "waits", waits[0].what);
        number(out, "peer", waits[0].peer);
        number(out, "since", (int64_t)waits[0].since_nsec);
    }
    text(out, "}\n");
    for (int i = 0; i < nwaits; i++) {
        struct tt_call call;
        if (!is_message(&waits[i], &call)) continue;
        put_event(out, own, (uint64_t)1 << (ID_SHIFT - 1) | (uint64_t)i, &call,
                  waits[i].since_nsec);
        word(out, "type", "P2p");
        number(out, "peer", call.root);
        text(out, "}\n");
    }
    for (int r = 0; subject->transport && r < subject->member->nranks; r++) {
        uint32_t sent = tt_transport_messages(subject->transport, r, true);
        uint32_t received = tt_transport_messages(subject->transport, r, false);
        if (!sent && !received) continue;
        text(out, "{\"t\":\"messages\"");
        number(out, "c", own->c);
        number(out, "peer", r);
        number(out, "sent", sent);
        number(out, "received", received);
        text(out, "}\n");
    }
}

uint64_t tt_flight_ended(const struct tt_flight *flight, uint64_t begun, bool idle,
                         const struct tt_wait *waits, int nwaits)
{
    uint64_t n = atomic_load_explicit(&flight->nlooks, memory_order_acquire);
    /* the newest look; before the first one it says 0 */
    const struct tt_flight_look *look = &flight->looks[(n + TT_CALL_LOG_LEN - 1) % TT_CALL_LOG_LEN];
    uint64_t least = atomic_load_explicit(&look->ended, memory_order_relaxed);
    if (idle) least = begun;
    if (idle || begun == 0) return least;
    uint64_t ended = begun - 1;
    for (int i = 0; i < nwaits; i++) {
        if (waits[i].op_seq > 0 && waits[i].op_seq <= ended) ended = waits[i].op_seq - 1;
    }
    return tt_max_size(ended, least);
}

static void put_member(struct flight_out *out, struct own *own)
{
    const struct tt_watch_subject *subject = &own->watch->subject;
    const struct tt_member *member = subject->member;
    struct tt_wait waits[TT_STATUS_WAITS];
    uint64_t served = atomic_load(&subject->queue->served);
    bool idle = served == atomic_load(&subject->queue->issued);
    int nwaits = tt_wait_list(member, waits, TT_STATUS_WAITS);
    own->begun = subject->transport ? atomic_load(tt_transport_begun(subject->transport)) : 0;
    own->ended = tt_flight_ended(&own->watch->flight, own->begun, idle, waits, nwaits);
    text(out, "{\"t\":\"comm\"");
    number(out, "c", own->c);
    text(out, ",\"comm\":\"");
    digits(out, member->comm_id, 16);
    put(out, '"');
    word(out, "name", member->name ? member->name : "");
    number(out, "rank", member->rank);
    number(out, "nranks", member->nranks);
    text(out, "}\n{\"t\":\"thread\"");
    number(out, "tid", own->c);
    text(out, ",\"name\":\"operations\"}\n");
    uint64_t most = (uint64_t)tt_watches.flights.most;
    own->first = own->begun > most ? own->begun - most + 1 : 1;
    for (uint64_t k = own->first; k <= own->begun; k++)
        put_operation(out, own, k);
    put_state(out, own, waits, nwaits);
}

/* ---- all ---- */

void tt_flight_lines(struct flight_out *out, const char *reason)
{
    struct own own = {.now = tt_now_nsec()};
    text(out, "{\"t\":\"head\",\"v\":1");
    word(out, "flight", reason);
    word(out, "host", tt_watches.flights.host);
    number(out, "pid", tt_watches.flights.pid);
    word(out, "exe", tt_watches.flights.exe);
    number(out, "start_wall_ns",
           (int64_t)(tt_watches.flights.wall_nsec + (own.now - tt_watches.flights.mono_nsec)));
    number(out, "start_mono_ns", (int64_t)own.now);
    text(out, ",\"clock\":\"monotonic\",\"api\":0,\"mask\":0}\n");
    atomic_fetch_add(&tt_watches.flights.readers,
                     1); /* pairs with the wait in tt_flight_remove() */
    for (int slot = 0; slot < FLIGHT_LISTED_MOST; slot++) {
        own.watch = atomic_load(&tt_watches.flights.listed[slot]);
        if (!own.watch) continue;
        own.c++;
        put_member(out, &own);
    }
    atomic_fetch_sub(&tt_watches.flights.readers, 1);
    text(out, "{\"t\":\"end\"");
    number(out, "starts", (int64_t)own.starts);
    number(out, "states", 0);
    number(out, "stops", (int64_t)own.stops);
    number(out, "open", (int64_t)(own.starts - own.stops));
    text(out, "}\n");
    flush(out);
    if (out->error) atomic_store(&tt_watches.flights.complaint, out->error);
}

const char *tt_flight_numbered(struct flight_out *out, const char *path, uint64_t k)
{
    out->used = 0;
    for (; *path && out->used + 16 < sizeof(out->text); path++)
        put(out, *path);
    put(out, '.');
    digits(out, k, 10);
    put(out, '\0');
    return out->text;
}
