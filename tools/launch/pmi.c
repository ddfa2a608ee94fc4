/* The server of PMI's wire protocol. Version 1 has lines "cmd=put key=a value=b"; version 2, which
 * a rank asks for in its first line, has "cmd=kvs-put;key=a;value=b;" behind six characters with
 * the length. Both are a table of texts that all ranks share, and a barrier. What a rank sends is
 * checked: a rank that breaks the protocol loses its connection, the launcher goes on. */
#include "pmi.h"

#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEY_BYTES = 256, VALUE_BYTES = 4096, MESSAGE_BYTES = 16384, HEAD_BYTES = 6 };

struct pair {
    char key[KEY_BYTES];
    char value[VALUE_BYTES];
};

struct client {
    int fd;
    int version; /* 0: has not said init yet */
    bool inside; /* between init and finalize */
    bool in_barrier;
    bool in_spawn;                  /* lines up to "endcmd" belong to a request that is refused */
    char awaited[KEY_BYTES];        /* node attribute that the rank waits for; "": none */
    char thread[32];                /* version 2: "thrid=..;" of that wait or of the barrier */
    char buffer[MESSAGE_BYTES + 1]; /* a message that has not come whole */
    size_t used;
};

struct launch_pmi {
    int nranks;
    int nbarrier; /* ranks that wait in the barrier */
    void *pairs;  /* tree of struct pair */
    struct client clients[];
};

struct launch_pmi *launch_pmi_create(int nranks)
{
    struct launch_pmi *pmi = calloc(1, sizeof(*pmi) + (size_t)nranks * sizeof(pmi->clients[0]));
    if (!pmi) return NULL;
    pmi->nranks = nranks;
    for (int r = 0; r < nranks; r++) {
        pmi->clients[r].fd = -1;
    }
    return pmi;
}

static void drop(struct client *client)
{
    if (client->fd >= 0) close(client->fd);
    client->fd = -1;
}

void launch_pmi_destroy(struct launch_pmi *pmi)
{
    if (!pmi) return;
    for (int r = 0; r < pmi->nranks; r++) {
        drop(&pmi->clients[r]);
    }
    tdestroy(pmi->pairs, free);
    free(pmi);
}

int launch_pmi_connect(struct launch_pmi *pmi, int rank)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return -1;
    pmi->clients[rank].fd = ends[0];
    return ends[1];
}

int launch_pmi_fd(const struct launch_pmi *pmi, int rank)
{
    return pmi->clients[rank].fd;
}

/* ---- what all ranks share ---- */

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static const char *find(const struct launch_pmi *pmi, const char *key)
{
    struct pair wanted;
    snprintf(wanted.key, sizeof(wanted.key), "%s", key);
    void *const *found = tfind(&wanted, &pmi->pairs, compare_pairs);
    return found ? ((const struct pair *)*found)->value : NULL;
}

static bool put(struct launch_pmi *pmi, const char *key, const char *value)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    if (!pair) return false;
    snprintf(pair->key, sizeof(pair->key), "%s", key);
    void **found_at = tsearch(pair, &pmi->pairs, compare_pairs);
    struct pair *kept = found_at ? *found_at : NULL;
    if (kept != pair) free(pair);
    if (kept) snprintf(kept->value, sizeof(kept->value), "%s", value);
    return kept != NULL;
}

/* ---- messages ---- */

/* Text behind "key=" up to the end of a word (version 1, where a value goes on to the end of the
 * line) or to a ';' that is not doubled (version 2). False: not there, or too long. */
static bool field(const struct client *client, const char *message, const char *key, char *out,
                  size_t out_bytes)
{
    const char *split = client->version == 2 ? ";" : " ";
    size_t key_len = strlen(key);
    const char *at = message;
    out[0] = 0;
    while (strncmp(at, key, key_len) != 0 || at[key_len] != '=') {
        at = strstr(at, split);
        if (!at) return false;
        at++;
    }
    at += key_len + 1;
    bool to_the_end = client->version != 2 && !strcmp(key, "value");
    for (size_t n = 0; n + 1 < out_bytes; n++) {
        bool doubled = client->version == 2 && at[0] == ';' && at[1] == ';';
        if (doubled) at++;
        if (!*at || (!doubled && !to_the_end && *at == *split)) return true;
        out[n] = *at++;
        out[n + 1] = 0;
    }
    out[0] = 0;
    return false;
}

static void answer(struct client *client, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void answer(struct client *client, const char *fmt, ...)
{
    char text[HEAD_BYTES + MESSAGE_BYTES];
    char head[HEAD_BYTES + 1];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text + HEAD_BYTES, MESSAGE_BYTES, fmt, args);
    va_end(args);
    if (n < 0 || n >= MESSAGE_BYTES) {
        drop(client);
        return;
    }
    size_t skip = client->version == 2 ? 0 : HEAD_BYTES;
    snprintf(head, sizeof(head), "%*d", HEAD_BYTES, n);
    memcpy(text, head, HEAD_BYTES);
    size_t len = HEAD_BYTES + (size_t)n - skip;
    /* a rank has one question open, so the socket has room for the answer */
    ssize_t sent = send(client->fd, text + skip, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != (ssize_t)len) drop(client);
}

/* The value of a key in version 2, with each ';' doubled. */
static void answer_value(struct client *client, const char *command, const char *value)
{
    char escaped[2 * VALUE_BYTES];
    size_t n = 0;
    for (const char *at = value ? value : ""; *at; at++) {
        if (*at == ';') escaped[n++] = ';';
        escaped[n++] = *at;
    }
    escaped[n] = 0;
    const char *found = value ? "TRUE" : "FALSE";
    answer(client, "cmd=%s-response;%sfound=%s;flag=%s;value=%s;rc=0;", command, client->thread,
           found, found, escaped);
}

static void enter_barrier(struct launch_pmi *pmi, struct client *client)
{
    if (client->in_barrier) return;
    client->in_barrier = true;
    if (++pmi->nbarrier < pmi->nranks) return;
    pmi->nbarrier = 0;
    for (int r = 0; r < pmi->nranks; r++) {
        struct client *one = &pmi->clients[r];
        if (!one->in_barrier) continue;
        one->in_barrier = false;
        if (one->version == 2) {
            answer(one, "cmd=kvs-fence-response;%src=0;", one->thread);
        } else {
            answer(one, "cmd=barrier_out\n");
        }
    }
}

/* Which hosts have which ranks: one block of one host. */
static const char *mapping(const struct launch_pmi *pmi, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "(vector,(0,1,%d))", pmi->nranks);
    return out;
}

/* ---- version 1 ---- */

static void get_1(const struct launch_pmi *pmi, struct client *client, const char *line)
{
    char key[KEY_BYTES];
    char map[64];
    const char *found = NULL;
    if (field(client, line, "key", key, sizeof(key))) found = find(pmi, key);
    if (!found && !strcmp(key, "PMI_process_mapping")) found = mapping(pmi, map, sizeof(map));
    answer(client, "cmd=get_result rc=%d msg=%s value=%s\n", found ? 0 : -1,
           found ? "success" : "key_not_found", found ? found : "unknown");
}

static void handle_1(struct launch_pmi *pmi, struct client *client, const char *line,
                     const char *command)
{
    char key[KEY_BYTES];
    char value[VALUE_BYTES];
    if (!strcmp(command, "get_maxes")) {
        answer(client, "cmd=maxes kvsname_max=64 keylen_max=%d vallen_max=%d\n", KEY_BYTES,
               VALUE_BYTES - 64);
    } else if (!strcmp(command, "get_appnum")) {
        answer(client, "cmd=appnum appnum=0\n");
    } else if (!strcmp(command, "get_universe_size")) {
        answer(client, "cmd=universe_size size=%d\n", pmi->nranks);
    } else if (!strcmp(command, "get_my_kvsname")) {
        answer(client, "cmd=my_kvsname kvsname=tutti\n");
    } else if (!strcmp(command, "put")) {
        bool good = field(client, line, "key", key, sizeof(key)) &&
                    field(client, line, "value", value, sizeof(value)) && put(pmi, key, value);
        answer(client, "cmd=put_result rc=%d msg=%s\n", good ? 0 : -1,
               good ? "success" : "refused");
    } else if (!strcmp(command, "get")) {
        get_1(pmi, client, line);
    } else if (!strcmp(command, "barrier_in")) {
        enter_barrier(pmi, client);
    } else if (!strcmp(command, "finalize")) {
        client->inside = false;
        answer(client, "cmd=finalize_ack\n");
    } else { /* publish_name and the like: no server for them */
        answer(client, "cmd=%.64s_result rc=-1 info=not_supported_by_tutti_run\n", command);
    }
}

/* ---- version 2 ---- */

static void put_attribute(struct launch_pmi *pmi, struct client *client, const char *key,
                          const char *value)
{
    bool good = put(pmi, key, value);
    answer(client, "cmd=info-putnodeattr-response;%src=%d;", client->thread, good ? 0 : -1);
    for (int r = 0; good && r < pmi->nranks; r++) {
        struct client *one = &pmi->clients[r];
        if (strcmp(one->awaited, key) != 0) continue;
        one->awaited[0] = 0;
        answer_value(one, "info-getnodeattr", value);
    }
}

static void get_attribute(const struct launch_pmi *pmi, struct client *client, const char *message,
                          const char *key)
{
    char wait[8];
    const char *found = find(pmi, key);
    bool waits = field(client, message, "wait", wait, sizeof(wait)) && !strcmp(wait, "TRUE");
    if (found || !waits) {
        answer_value(client, "info-getnodeattr", found);
    } else {
        snprintf(client->awaited, sizeof(client->awaited), "%s", key);
    }
}

static void handle_2(struct launch_pmi *pmi, struct client *client, const char *message,
                     const char *command)
{
    char key[KEY_BYTES - 8];
    char node_key[KEY_BYTES];
    char value[VALUE_BYTES];
    char text[64];
    char thread[16];
    bool has_key = field(client, message, "key", key, sizeof(key));
    bool has_value = field(client, message, "value", value, sizeof(value));
    snprintf(node_key, sizeof(node_key), "node: %s", key);
    client->thread[0] = 0;
    if (field(client, message, "thrid", thread, sizeof(thread)))
        snprintf(client->thread, sizeof(client->thread), "thrid=%s;", thread);
    if (!strcmp(command, "fullinit")) {
        answer(client,
               "cmd=fullinit-response;%spmi-version=2;pmi-subversion=0;rank=%d;size=%d;appnum=0;"
               "debugged=FALSE;pmiverbose=FALSE;rc=0;",
               client->thread, (int)(client - pmi->clients), pmi->nranks);
    } else if (!strcmp(command, "job-getid")) {
        answer(client, "cmd=job-getid-response;%sjobid=tutti;rc=0;", client->thread);
    } else if (!strcmp(command, "kvs-put")) {
        bool good = has_key && has_value && put(pmi, key, value);
        answer(client, "cmd=kvs-put-response;%src=%d;", client->thread, good ? 0 : -1);
    } else if (!strcmp(command, "kvs-get")) {
        answer_value(client, command, find(pmi, key));
    } else if (!strcmp(command, "kvs-fence")) {
        enter_barrier(pmi, client);
    } else if (!strcmp(command, "info-getjobattr")) {
        bool known = true;
        if (!strcmp(key, "PMI_process_mapping")) {
            mapping(pmi, text, sizeof(text));
        } else if (!strcmp(key, "universeSize")) {
            snprintf(text, sizeof(text), "%d", pmi->nranks);
        } else {
            known = false;
        }
        answer_value(client, command, known ? text : NULL);
    } else if (!strcmp(command, "info-putnodeattr")) {
        put_attribute(pmi, client, node_key, value);
    } else if (!strcmp(command, "info-getnodeattr")) {
        get_attribute(pmi, client, message, node_key);
    } else if (!strcmp(command, "finalize")) {
        client->inside = false;
        answer(client, "cmd=finalize-response;%src=0;", client->thread);
    } else { /* spawn, job-connect, name-publish and the like: no server for them */
        answer(client, "cmd=%.64s-response;%src=-1;errmsg=tutti run does not know it;", command,
               client->thread);
    }
}

/* ---- both ---- */

/* The first line of a program, in version 1's form: which version it speaks. */
static void greet(struct client *client, const char *line, const char *command)
{
    char text[16];
    if (strcmp(command, "init") != 0) {
        drop(client);
        return;
    }
    bool second = field(client, line, "pmi_version", text, sizeof(text)) && text[0] == '2';
    answer(client, "cmd=response_to_init pmi_version=%d pmi_subversion=%d rc=0\n", second ? 2 : 1,
           second ? 0 : 1);
    client->version = second ? 2 : 1;
    client->inside = true;
}

static enum launch_pmi_event handle(struct launch_pmi *pmi, struct client *client,
                                    const char *message, int *status_out)
{
    char command[KEY_BYTES];
    char text[16];
    if (!strncmp(message, "mcmd=", 5)) client->in_spawn = true;
    if (client->in_spawn) {
        if (strcmp(message, "endcmd") != 0) return LAUNCH_PMI_NONE;
        client->in_spawn = false;
        answer(client, "cmd=spawn_result rc=-1\n");
        return LAUNCH_PMI_NONE;
    }
    if (!field(client, message, "cmd", command, sizeof(command))) {
        drop(client);
        return LAUNCH_PMI_NONE;
    }
    if (!strcmp(command, "abort")) {
        long status = 1;
        if (field(client, message, "exitcode", text, sizeof(text))) status = strtol(text, NULL, 10);
        *status_out = (int)(status & 255);
        client->inside = false;
        return LAUNCH_PMI_ABORT;
    }
    switch (client->version) {
    case 0: greet(client, message, command); break;
    case 1: handle_1(pmi, client, message, command); break;
    default: handle_2(pmi, client, message, command); break;
    }
    if (!client->inside) client->version = 0; /* a next program may begin */
    return LAUNCH_PMI_NONE;
}

/* Length of the first whole message and of what precedes and follows it; 0: none is whole. */
static size_t whole(const struct client *client, size_t *head_out, size_t *message_out)
{
    char head[HEAD_BYTES + 1];
    if (client->version != 2) {
        const char *end = memchr(client->buffer, '\n', client->used);
        *head_out = 0;
        *message_out = end ? (size_t)(end - client->buffer) : 0;
        return end ? *message_out + 1 : 0;
    }
    if (client->used < HEAD_BYTES) return 0;
    memcpy(head, client->buffer, HEAD_BYTES);
    head[HEAD_BYTES] = 0;
    *head_out = HEAD_BYTES;
    *message_out = strtoul(head, NULL, 10);
    return *message_out <= client->used - HEAD_BYTES ? HEAD_BYTES + *message_out : 0;
}

enum launch_pmi_event launch_pmi_read(struct launch_pmi *pmi, int rank, int *status_out)
{
    struct client *client = &pmi->clients[rank];
    enum launch_pmi_event event = LAUNCH_PMI_NONE;
    size_t head = 0;
    size_t len = 0;
    ssize_t n =
        recv(client->fd, client->buffer + client->used, MESSAGE_BYTES - client->used, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return event;
    if (n <= 0) { /* also where a message is longer than the buffer */
        drop(client);
        return event;
    }
    client->used += (size_t)n;
    for (size_t all = whole(client, &head, &len); all && event == LAUNCH_PMI_NONE;
         all = whole(client, &head, &len)) {
        char message[MESSAGE_BYTES + 1];
        memcpy(message, client->buffer + head, len);
        message[len] = 0;
        client->used -= all;
        memmove(client->buffer, client->buffer + all, client->used);
        event = handle(pmi, client, message, status_out);
        if (client->fd < 0) break;
    }
    return event;
}

bool launch_pmi_ended(struct launch_pmi *pmi, int rank)
{
    struct client *client = &pmi->clients[rank];
    bool good = !client->inside;
    client->inside = false;
    return good;
}
