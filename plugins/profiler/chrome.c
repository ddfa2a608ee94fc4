/* TUTTI_TRACE_OUTPUTS=chrome: events as Chrome's Trace Event Format has them, for ui.perfetto.dev
 * and chrome://tracing, an object a line once an event has ended. An event stands on a lane; what
 * would lie across another one gets a further lane. Arrows join ranks: from where the kernel of an
 * operation begins at one rank to where that of the next rank ends, which is later whatever the
 * operation, and from a Send to its Recv. Their names are made of communicator, function and number
 * alone, so they meet when the files of several processes are put together. */
#include "outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATES_MOST = 6, OPEN_MOST = 32768, LANES_MOST = 2048, RECENT = 8192, PAIRS = 4096 };
enum { HOST_SHIFT = 22 }; /* a process number is below; so those of several hosts differ */

struct open_event {
    struct trace_record start; /* id 0: free */
    int tid;
    uint32_t nstates;
    struct {
        uint64_t at_nsec;
        uint32_t state;
    } states[STATES_MOST];
};

/* Where events of one kind stand side by side. */
struct lane {
    uint64_t key;
    uint32_t next; /* a further one of the key, plus 1; 0: none */
    uint64_t end_nsec;
};

/* An operation, as its kernels name it when it has ended itself. */
struct recent {
    uint64_t id, flow, flow_before; /* flow_before: of the rank before this one; 0: none */
    int channel;                    /* the first one whose kernel began; -1: none has */
};

struct trace_chrome {
    struct open_event *open; /* owned; a hash table of OPEN_MOST places */
    uint32_t nopen, nlanes;
    uint64_t given_up;
    uint64_t pid;
    uint64_t base_nsec; /* of the monotonic clock: the year's begin on the wall clock */
    struct lane lanes[LANES_MOST];
    struct recent recent[RECENT];
    struct {
        uint64_t key;
        uint64_t count;
    } pairs[PAIRS];
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t key = (a ^ a >> 32) * 0xd6e8feb86659fd93u + b;
    return (key ^ key >> 32) * 0xd6e8feb86659fd93u;
}

static struct recent *recent_of(struct trace_chrome *chrome, uint64_t id)
{
    return &chrome->recent[mix(id, 0) >> 32 & (RECENT - 1)];
}

static uint64_t year_begin_nsec(uint64_t wall_nsec)
{
    struct tm when;
    time_t seconds = (time_t)(wall_nsec / 1000000000u);
    if (!gmtime_r(&seconds, &when)) return 0;
    uint64_t since = (uint64_t)when.tm_yday * 86400 + (uint64_t)when.tm_hour * 3600 +
                     (uint64_t)when.tm_min * 60 + (uint64_t)when.tm_sec;
    return ((uint64_t)seconds - since) * 1000000000u;
}

struct trace_chrome *trace_chrome_create(const char *host)
{
    struct trace_chrome *chrome = calloc(1, sizeof(*chrome));
    struct open_event *open = calloc(OPEN_MOST, sizeof(*open)); /* taken as it is used */
    uint64_t wall_nsec = trace_wall_nsec(), hash = 0;
    if (!chrome || !open) {
        free(chrome);
        free(open);
        return NULL;
    }
    for (; *host; host++)
        hash = mix(hash, (unsigned char)*host);
    chrome->open = open;
    chrome->pid = (uint64_t)trace_process.pid | (hash & 0xff) << HOST_SHIFT;
    chrome->base_nsec = trace_clock_nsec() - (wall_nsec - year_begin_nsec(wall_nsec));
    return chrome;
}

void trace_chrome_destroy(struct trace_chrome *chrome)
{
    if (chrome) free(chrome->open);
    free(chrome);
}

/* ---- text ---- */

static char *text(char *at, const char *more)
{
    return stpcpy(at, more);
}

static const char *word_of(uint8_t word)
{
    return word ? trace_process.words[word - 1] : "";
}

/* Microseconds with three digits behind the point. */
static char *usec(char *at, uint64_t nsec)
{
    uint64_t rest = nsec % 1000;
    at = trace_number(at, nsec / 1000);
    *at++ = '.';
    *at++ = (char)('0' + (int)(rest / 100));
    *at++ = (char)('0' + (int)(rest / 10 % 10));
    *at++ = (char)('0' + (int)(rest % 10));
    return at;
}

static uint64_t since_base(const struct trace_chrome *chrome, uint64_t nsec)
{
    return nsec - chrome->base_nsec;
}

size_t trace_chrome_head(const struct trace_chrome *chrome, const char *host, char *line)
{
    return (size_t)snprintf(line, TRACE_CHROME_BYTES,
                            "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%llu,\"tid\":0,"
                            "\"args\":{\"name\":\"%s, process %d\"}},\n",
                            (unsigned long long)chrome->pid, host, trace_process.pid);
}

size_t trace_chrome_tail(const struct trace_chrome *chrome, char *line)
{
    return (size_t)snprintf(line, TRACE_CHROME_BYTES,
                            "{\"ph\":\"M\",\"name\":\"end\",\"pid\":%llu,\"tid\":0,\"args\":{"
                            "\"lost\":%llu,\"open\":%u,\"given_up\":%llu}}\n]\n",
                            (unsigned long long)chrome->pid, (unsigned long long)trace_lost(),
                            chrome->nopen, (unsigned long long)chrome->given_up);
}

/* ---- open events ---- */

static struct open_event *place_of(const struct trace_chrome *chrome, uint64_t id)
{
    uint32_t at = (uint32_t)(id * 0x9e3779b97f4a7c15u >> 40) % OPEN_MOST;
    while (chrome->open[at].start.id && chrome->open[at].start.id != id)
        at = (at + 1) % OPEN_MOST;
    return &chrome->open[at];
}

/* Those behind it move up, so that each is found from its place on. */
static void forget(struct trace_chrome *chrome, struct open_event *event)
{
    uint32_t hole = (uint32_t)(event - chrome->open), at = hole;
    chrome->nopen--;
    for (;;) {
        at = (at + 1) % OPEN_MOST;
        uint64_t id = chrome->open[at].start.id;
        if (!id) break;
        uint32_t home = (uint32_t)(id * 0x9e3779b97f4a7c15u >> 40) % OPEN_MOST;
        if ((at - home) % OPEN_MOST < (at - hole) % OPEN_MOST) continue;
        chrome->open[hole] = chrome->open[at];
        hole = at;
    }
    chrome->open[hole].start.id = 0;
}

/* ---- lanes ---- */

enum lane_kind {
    LANE_CALLS,
    LANE_WORK,
    LANE_KERNEL,
    LANE_PHASE,
    LANE_OP,
    LANE_STEP,
    LANE_NET,
    LANE_CTRL,
    LANE_COPY
};

static enum lane_kind kind_of(uint32_t type)
{
    switch (1u << type) {
    case ncclProfileGroupApi:
    case ncclProfileCollApi:
    case ncclProfileP2pApi:
    case ncclProfileKernelLaunch: return LANE_CALLS;
    case ncclProfileKernelCh: return LANE_KERNEL;
    case ncclProfileKernelPhase: return LANE_PHASE;
    case ncclProfileProxyOp: return LANE_OP;
    case ncclProfileProxyStep: return LANE_STEP;
    case ncclProfileNetPlugin: return LANE_NET;
    case ncclProfileProxyCtrl: return LANE_CTRL;
    case ncclProfileCeColl:
    case ncclProfileCeSync:
    case ncclProfileCeBatch: return LANE_COPY;
    default: return LANE_WORK;
    }
}

/* Which lanes an event may stand on. Calls of one thread lie within each other. */
static uint64_t key_of(const struct trace_chrome *chrome, const struct open_event *event,
                       enum lane_kind kind)
{
    const struct trace_record *start = &event->start;
    uint64_t of = kind == LANE_CALLS ? (uint32_t)event->tid : start->context & 0xffffff;
    uint64_t channel = start->channel, sends = start->flag;
    if (kind == LANE_STEP) {
        const struct open_event *above = place_of(chrome, start->parent);
        channel = above->start.id ? above->start.channel : 0;
        sends = above->start.id ? above->start.flag : 0;
    }
    if (kind == LANE_CALLS || kind == LANE_WORK || kind >= LANE_NET) channel = sends = 0;
    if (kind == LANE_COPY) channel = start->type;
    return of << 32 | channel << 16 | sends << 8 | (uint64_t)kind | (uint64_t)1 << 63;
}

static char *name_lane(const struct trace_chrome *chrome, char *at, uint64_t key, uint32_t lane)
{
    static const char *const names[] = {"calls", "operations",     "kernel", "phases", "network",
                                        "steps", "network plugin", "proxy",  "copies"};
    enum lane_kind kind = (enum lane_kind)(key & 0xff);
    uint32_t of = (uint32_t)(key >> 32 & 0x7fffffff);
    const struct trace_rank *rank = NULL;
    if (kind != LANE_CALLS)
        rank = trace_outputs_rank((uint64_t)(uint32_t)trace_process.pid << 24 | of);
    at = text(at, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":");
    at = trace_number(at, chrome->pid);
    at = trace_number(text(at, ",\"tid\":"), lane);
    at = text(at, ",\"args\":{\"name\":\"");
    if (kind == LANE_CALLS) {
        at = trace_number(text(at, "calls of thread "), of);
    } else {
        if (rank && rank->rank >= 0)
            at = text(trace_number(text(at, "rank "), (uint64_t)rank->rank), " ");
        at = text(at, names[kind]);
    }
    if (kind >= LANE_KERNEL && kind <= LANE_STEP)
        at = trace_number(text(at, " of channel "), key >> 16 & 0xff);
    if (kind == LANE_OP || kind == LANE_STEP)
        at = text(at, key >> 8 & 1 ? ", sends" : ", receives");
    at = text(at, "\"}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":");
    at = trace_number(at, chrome->pid);
    at = trace_number(text(at, ",\"tid\":"), lane);
    uint64_t order = kind == LANE_CALLS ? 0 : (uint64_t)(rank ? rank->rank + 1 : 0) * 16 + kind;
    return text(trace_number(text(at, ",\"args\":{\"sort_index\":"), order), "}},\n");
}

/* The number of the event's lane, whose name is written if it is new. */
static uint32_t lane_of(struct trace_chrome *chrome, const struct open_event *event,
                        uint64_t end_nsec, char **at)
{
    enum lane_kind kind = kind_of(event->start.type);
    uint64_t key = key_of(chrome, event, kind);
    uint32_t last = 0, lane = 0;
    while (lane < chrome->nlanes && chrome->lanes[lane].key != key)
        lane++;
    while (lane < chrome->nlanes && kind != LANE_CALLS &&
           chrome->lanes[lane].end_nsec > event->start.ts_nsec) {
        last = lane + 1;
        lane = chrome->lanes[lane].next ? chrome->lanes[lane].next - 1 : chrome->nlanes;
    }
    if (lane == LANES_MOST) lane = last ? last - 1 : 0; /* then they do lie across each other */
    if (lane == chrome->nlanes) {
        chrome->lanes[chrome->nlanes++] = (struct lane){.key = key};
        if (last) chrome->lanes[last - 1].next = lane + 1;
        *at = name_lane(chrome, *at, key, lane + 1);
    }
    chrome->lanes[lane].end_nsec = end_nsec;
    return lane + 1;
}

/* ---- arrows ---- */

/* How many such messages went between the two before. */
static uint64_t count_message(struct trace_chrome *chrome, uint64_t key)
{
    enum { PROBES = 64 };
    uint32_t at = (uint32_t)(key >> 32) % PAIRS;
    for (int k = 0; k < PROBES && chrome->pairs[at].key && chrome->pairs[at].key != key; k++)
        at = (at + 1) % PAIRS;
    chrome->pairs[at].key = key;
    return chrome->pairs[at].count++;
}

/* An operation begins: the names of its arrows. */
static void remember(struct trace_chrome *chrome, const struct trace_record *start)
{
    const struct trace_rank *rank = trace_outputs_rank(start->context);
    struct recent *recent = recent_of(chrome, start->id);
    const char *func = word_of(start->func);
    uint64_t name = rank ? mix(rank->comm, 1) : 0;
    *recent = (struct recent){.id = start->id, .channel = -1};
    if (!rank || rank->rank < 0) return;
    if (1u << start->type == ncclProfileP2p) {
        bool sends = !strcmp(func, "Send");
        uint64_t from = (uint64_t)(uint32_t)(sends ? rank->rank : start->peer);
        uint64_t to = (uint64_t)(uint32_t)(sends ? start->peer : rank->rank);
        uint64_t pair = mix(mix(name, from), to) | 1;
        uint64_t flow = mix(pair, count_message(chrome, mix(pair, sends) | 1));
        recent->flow = sends ? flow : 0;
        recent->flow_before = sends ? 0 : flow;
        return;
    }
    for (; *func; func++)
        name = mix(name, (unsigned char)*func);
    name = mix(name, start->seq);
    if (rank->rank + 1 < rank->nranks) recent->flow = mix(name, (uint64_t)rank->rank);
    if (rank->rank > 0) recent->flow_before = mix(name, (uint64_t)rank->rank - 1);
}

static char *arrow(const struct trace_chrome *chrome, char *at, uint64_t flow, uint64_t nsec,
                   uint32_t lane, bool begins)
{
    at = text(at, begins ? "{\"ph\":\"s\"" : "{\"ph\":\"f\",\"bp\":\"e\"");
    at = text(at, ",\"cat\":\"ranks\",\"name\":\"ranks\",\"id\":\"");
    at += snprintf(at, 32, "0x%llx", (unsigned long long)flow);
    at = trace_number(text(at, "\",\"pid\":"), chrome->pid);
    at = trace_number(text(at, ",\"tid\":"), lane);
    return text(usec(text(at, ",\"ts\":"), since_base(chrome, nsec)), "},\n");
}

/* ---- an event ---- */

static char *number_member(char *at, const char *name, int64_t value)
{
    at = text(text(text(at, "\""), name), "\":");
    if (value < 0) *at++ = '-';
    return text(trace_number(at, value < 0 ? 0 - (uint64_t)value : (uint64_t)value), ",");
}

static char *word_member(char *at, const char *name, uint8_t word)
{
    if (!word) return at;
    return text(text(text(text(text(at, "\""), name), "\":\""), word_of(word)), "\",");
}

static char *members(char *at, const struct open_event *event)
{
    const struct trace_record *start = &event->start;
    const struct trace_rank *rank = trace_outputs_rank(start->context);
    uint32_t type = 1u << start->type;
    bool work = type == ncclProfileColl || type == ncclProfileP2p || type == ncclProfileCeColl;
    bool call = type == ncclProfileCollApi || type == ncclProfileP2pApi;
    if (rank) {
        at += snprintf(at, 64, "\"comm\":\"%016llx\",", (unsigned long long)rank->comm);
        at = number_member(at, "rank", rank->rank);
    }
    if (work || call) {
        at = number_member(at, "count", (int64_t)start->count);
        at = word_member(at, "datatype", start->datatype);
    }
    if (type == ncclProfileColl || type == ncclProfileCeColl)
        at = number_member(at, "seq", (int64_t)start->seq);
    at = word_member(at, "algorithm", start->algo);
    at = word_member(at, "protocol", start->proto);
    if (type == ncclProfileP2p || type == ncclProfileProxyOp)
        at = number_member(at, "peer", start->peer);
    if (type == ncclProfileProxyStep) at = number_member(at, "step", start->steps);
    for (uint32_t k = 0; k < event->nstates; k++) {
        const char *name = trace_state_name(event->states[k].state);
        at = text(text(text(at, "\""), name ? name : "unknown"), " after us\":");
        at = text(usec(at, event->states[k].at_nsec - start->ts_nsec), ",");
    }
    return at[-1] == ',' ? at - 1 : at;
}

static size_t report(struct trace_chrome *chrome, const struct open_event *event, uint64_t end_nsec,
                     char *lines)
{
    const struct trace_record *start = &event->start;
    char *at = lines;
    if (end_nsec < start->ts_nsec) end_nsec = start->ts_nsec;
    uint32_t lane = lane_of(chrome, event, end_nsec, &at);
    const char *type = trace_type_name(start->type), *func = word_of(start->func);
    at = text(at, "{\"ph\":\"X\",\"name\":\"");
    at = text(text(at, *func ? func : type), "\",\"cat\":\"");
    at = trace_number(text(text(at, type), "\",\"pid\":"), chrome->pid);
    at = trace_number(text(at, ",\"tid\":"), lane);
    at = usec(text(at, ",\"ts\":"), since_base(chrome, start->ts_nsec));
    at = usec(text(at, ",\"dur\":"), end_nsec - start->ts_nsec);
    at = text(members(text(at, ",\"args\":{"), event), "}},\n");
    const struct recent *recent = recent_of(chrome, start->parent);
    bool joins = 1u << start->type == ncclProfileKernelCh && start->channel == 0 && start->parent &&
                 recent->id == start->parent;
    if (joins && recent->flow) at = arrow(chrome, at, recent->flow, start->ts_nsec, lane, true);
    if (joins && recent->flow_before)
        at = arrow(chrome, at, recent->flow_before, end_nsec, lane, false);
    return (size_t)(at - lines);
}

static void begin(struct trace_chrome *chrome, struct open_event *event,
                  const struct trace_record *record, int tid)
{
    uint32_t type = 1u << record->type;
    if (chrome->nopen + 1 >= OPEN_MOST * 3 / 4) { /* what has been open for so long stays so */
        chrome->given_up += chrome->nopen;
        memset(chrome->open, 0, OPEN_MOST * sizeof(*chrome->open));
        chrome->nopen = 0;
        event = place_of(chrome, record->id);
    }
    if (!event->start.id) chrome->nopen++;
    event->start = *record;
    event->tid = tid;
    event->nstates = 0;
    if (type == ncclProfileColl || type == ncclProfileP2p) remember(chrome, record);
    if (type != ncclProfileKernelCh) return;
    struct recent *recent = recent_of(chrome, record->parent);
    if (recent->id == record->parent && recent->channel < 0) recent->channel = record->channel;
}

size_t trace_chrome_take(struct trace_chrome *chrome, const struct trace_record *record, int tid,
                         char *lines)
{
    struct open_event *event = place_of(chrome, record->id);
    if (record->kind == TRACE_START) begin(chrome, event, record, tid);
    if (record->kind == TRACE_START || !event->start.id) return 0;
    if (record->kind == TRACE_STATE) {
        bool known = event->nstates < STATES_MOST && record->ts_nsec >= event->start.ts_nsec;
        if (known) event->states[event->nstates].at_nsec = record->ts_nsec;
        if (known) event->states[event->nstates++].state = record->type;
        return 0;
    }
    size_t bytes = report(chrome, event, record->ts_nsec, lines);
    forget(chrome, event);
    return bytes;
}
