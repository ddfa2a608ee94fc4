/* Which warnings ranks have in common. A rank that gives one twice has given it twice: as often as
 * the rank with the most has, it is printed. What is not in the short list any more is printed
 * again. A process may have several ranks of a communicator: who gives a warning about one ("comm
 * 0x1 rank 3 ...") is the rank that it names. */
#include "same.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAYINGS = 16, SHOWN_BYTES = 100, RANGES_BYTES = 160, GATHER_MSEC = 300, GIVERS = 1 << 20 };

struct giver {
    uint16_t times; /* it gave the warning */
    bool repeats;   /* to be named */
};

struct saying {
    struct launch_keys keys; /* empty: there is none */
    char words[SHOWN_BYTES];
    char
        why[LAUNCH_KEY_BYTES]; /* behind "comm 0x1 rank 0: ": what breaks the communicator; or "" */
    struct giver *givers;      /* owned; by rank */
    int ngivers;
    uint16_t most; /* of their times */
    bool untold;   /* some repeats */
    bool inner;    /* a giver's number is that of its communicator, not of its process */
    struct timespec since;
};

struct launch_same {
    struct saying sayings[SAYINGS];
    int next;
    bool hushed;
};

struct launch_same *launch_same_create(void)
{
    return calloc(1, sizeof(struct launch_same));
}

void launch_same_destroy(struct launch_same *same)
{
    if (!same) return;
    for (int k = 0; k < SAYINGS; k++)
        free(same->sayings[k].givers);
    free(same);
}

/* ---- what is the same ---- */

/* What the measuring program fails with, as a consequence of what the library warned of. */
static bool is_perfs(const char *line, size_t bytes)
{
    static const char mark[] = "tutti perf: ";
    return bytes >= sizeof(mark) && !memcmp(line, mark, sizeof(mark) - 1);
}

/* The sentence of a warning, or of what tutti perf fails with, behind "host:pid:tid [device]
 * file:line (function) NCCL WARN ". NULL: the line is none. */
static const char *sentence_of(const char *line, size_t bytes, size_t *sentence_bytes)
{
    static const char mark[] = " NCCL WARN ";
    const char *at = memmem(line, bytes, mark, sizeof(mark) - 1);
    if (is_perfs(line, bytes)) {
        *sentence_bytes = bytes;
        return line;
    }
    if (!at || !memmem(line, (size_t)(at - line), " [", 2)) return NULL;
    at += sizeof(mark) - 1;
    *sentence_bytes = bytes - (size_t)(at - line);
    return at;
}

/* Bytes of an address or a size in hex at `at` that each process has its own of; of a
 * communicator's hash, which all share, 0. */
static size_t address_bytes(const char *sentence, size_t at, size_t bytes)
{
    static const char comm[] = "comm ", communicator[] = "communicator ";
    size_t end = at + 2;
    if (bytes - at < 3 || sentence[at] != '0' || sentence[at + 1] != 'x') return 0;
    if (at >= sizeof(comm) - 1 && !memcmp(sentence + at - 5, comm, 5)) return 0;
    if (at >= sizeof(communicator) - 1 && !memcmp(sentence + at - 13, communicator, 13)) return 0;
    while (end < bytes && isxdigit((unsigned char)sentence[end]))
        end++;
    return end - at;
}

/* Bytes of "; rank 12 waits in " at `at`: which rank waits differs between who says so. */
static size_t waiter_bytes(const char *sentence, size_t at, size_t bytes)
{
    static const char mark[] = "; rank ", wait[] = " waits in ";
    size_t end = at + sizeof(mark) - 1;
    if (bytes - at < sizeof(mark) || memcmp(sentence + at, mark, sizeof(mark) - 1) != 0) return 0;
    while (end < bytes && isdigit((unsigned char)sentence[end]))
        end++;
    if (bytes - end < sizeof(wait) || memcmp(sentence + end, wait, sizeof(wait) - 1) != 0) return 0;
    return end - at;
}

/* "rank 12" becomes "rank *" where that is the rank's own number, `most` times; addresses become
 * "0x*". */
static void make_key(int rank, const char *sentence, size_t bytes, int most,
                     char key[LAUNCH_KEY_BYTES])
{
    char own[24];
    size_t used = 0, at = 0, own_bytes = (size_t)snprintf(own, sizeof(own), "rank %d", rank);
    while (at < bytes && used + sizeof(own) < LAUNCH_KEY_BYTES) {
        const size_t address = address_bytes(sentence, at, bytes);
        const size_t waiter = waiter_bytes(sentence, at, bytes);
        bool is_own =
            most > 0 && bytes - at >= own_bytes && !memcmp(sentence + at, own, own_bytes) &&
            (at + own_bytes == bytes || !isdigit((unsigned char)sentence[at + own_bytes]));
        if (waiter) {
            memcpy(key + used, "; rank *", 8);
            used += 8;
            at += waiter;
        } else if (is_own) {
            memcpy(key + used, "rank *", 6);
            used += 6;
            at += own_bytes;
            most--;
        } else if (address) {
            memcpy(key + used, "0x*", 3);
            used += 3;
            at += address;
        } else {
            key[used++] = sentence[at++];
        }
    }
    key[used] = '\0';
}

/* The words as they were printed, for the line that names the others. */
static void keep_words(struct saying *saying, const char *sentence, size_t bytes)
{
    bool whole = bytes < sizeof(saying->words);
    size_t kept = whole ? bytes : sizeof(saying->words) - 5;
    while (!whole && kept > sizeof(saying->words) / 2 && sentence[kept] != ' ')
        kept--; /* whole words */
    (void)snprintf(saying->words, sizeof(saying->words), "%.*s%s", (int)kept, sentence,
                   whole ? "" : " ...");
    const char *why = memmem(sentence, bytes, ": ", 2);
    bool of_comm = bytes > 5 && !memcmp(sentence, "comm ", 5) && why;
    (void)snprintf(saying->why, sizeof(saying->why), "%.*s",
                   of_comm ? (int)(bytes - (size_t)(why + 2 - sentence)) : 0,
                   of_comm ? why + 2 : "");
}

/* "AllReduce: rank 0: communicator 0x1 is broken: " and why, which was printed before. */
static bool is_consequence(const struct launch_same *same, const char *sentence, size_t bytes)
{
    static const char mark[] = " is broken: ";
    const char *why = memmem(sentence, bytes, mark, sizeof(mark) - 1);
    if (!why) return false;
    why += sizeof(mark) - 1;
    size_t why_bytes = bytes - (size_t)(why - sentence);
    for (int k = 0; k < SAYINGS; k++) {
        const char *known = same->sayings[k].why;
        if (*known && strlen(known) == why_bytes && !memcmp(known, why, why_bytes)) return true;
    }
    return false;
}

/* The rank of the communicator that the sentence begins with; else the process's. */
static int giver_of(int rank, const char *sentence, size_t bytes)
{
    static const char mark[] = "comm 0x", number[] = " rank ";
    const char *at = sentence + sizeof(mark) - 1, *end = sentence + bytes;
    if (bytes < sizeof(mark) || memcmp(sentence, mark, sizeof(mark) - 1) != 0) return rank;
    at = memmem(at, bytes - (sizeof(mark) - 1), number, sizeof(number) - 1);
    if (!at || memchr(sentence, ':', (size_t)(at - sentence))) return rank;
    int giver = 0;
    at += sizeof(number) - 1;
    if (at == end || !isdigit((unsigned char)*at)) return rank;
    for (; at < end && isdigit((unsigned char)*at) && giver < GIVERS; at++)
        giver = 10 * giver + *at - '0';
    return giver;
}

const char *launch_same_keys(int rank, const char *line, size_t bytes, struct launch_keys *keys,
                             size_t *sentence_bytes)
{
    const char *sentence = sentence_of(line, bytes, sentence_bytes);
    if (!sentence || *sentence_bytes == 0 || *sentence_bytes >= LAUNCH_KEY_BYTES) return NULL;
    const int giver = giver_of(rank, sentence, *sentence_bytes);
    make_key(giver, sentence, *sentence_bytes, INT_MAX, keys->all);
    make_key(giver, sentence, *sentence_bytes, 1, keys->first);
    return sentence;
}

bool launch_same_keys_match(const struct launch_keys *left, const struct launch_keys *right)
{
    return !strcmp(left->all, right->all) || !strcmp(left->first, right->first);
}

static struct saying *find(struct launch_same *same, const struct launch_keys *keys)
{
    for (int k = 0; k < SAYINGS; k++) {
        if (launch_same_keys_match(&same->sayings[k].keys, keys)) return &same->sayings[k];
    }
    return NULL;
}

/* In place of the oldest one whose repeats are told. NULL: there is none. */
static struct saying *add(struct launch_same *same, const struct launch_keys *keys)
{
    for (int k = 0; k < SAYINGS; k++) {
        struct saying *saying = &same->sayings[(same->next + k) % SAYINGS];
        if (saying->untold) continue;
        same->next = (same->next + k + 1) % SAYINGS;
        saying->keys = *keys;
        free(saying->givers);
        saying->givers = NULL;
        saying->ngivers = saying->most = 0;
        saying->inner = false;
        return saying;
    }
    return NULL;
}

/* NULL: memory is short. */
static struct giver *giver_at(struct saying *saying, int rank)
{
    if (rank >= GIVERS) return NULL;
    if (rank >= saying->ngivers) {
        struct giver *givers =
            reallocarray(saying->givers, (size_t)rank + 1, sizeof(*saying->givers));
        if (!givers) return NULL;
        memset(givers + saying->ngivers, 0, (size_t)(rank + 1 - saying->ngivers) * sizeof(*givers));
        saying->givers = givers;
        saying->ngivers = rank + 1;
    }
    return &saying->givers[rank];
}

bool launch_same_is_warning(const char *line, size_t bytes)
{
    size_t sentence_bytes = 0;
    return sentence_of(line, bytes, &sentence_bytes) != NULL;
}

void launch_same_hush(struct launch_same *same)
{
    if (same) same->hushed = true;
}

bool launch_same_repeats(struct launch_same *same, int rank, const char *line, size_t bytes)
{
    struct launch_keys keys;
    size_t sentence_bytes = 0;
    if (same->hushed && launch_same_is_warning(line, bytes)) return true;
    const char *sentence = launch_same_keys(rank, line, bytes, &keys, &sentence_bytes);
    if (!sentence) return false;
    if (is_consequence(same, sentence, sentence_bytes)) return true;
    struct saying *saying = find(same, &keys);
    if (!saying) saying = add(same, &keys);
    const int number = giver_of(rank, sentence, sentence_bytes);
    struct giver *giver = saying ? giver_at(saying, number) : NULL;
    if (!giver || giver->times == UINT16_MAX) return false;
    saying->inner |= number != rank;
    bool repeats = ++giver->times <= saying->most;
    if (!repeats) {
        saying->most = giver->times;
        keep_words(saying, sentence, sentence_bytes);
        return false;
    }
    if (is_perfs(line, bytes)) return true; /* not worth a line of ours */
    if (!saying->untold) clock_gettime(CLOCK_MONOTONIC, &saying->since);
    saying->untold = giver->repeats = true;
    return true;
}

/* ---- saying so ---- */

/* "1", "1 and 2", "1-3, 5 and 7-9"; the end is cut where there are too many. Returns how many. */
static int list_ranks(const struct saying *saying, char text[RANGES_BYTES])
{
    int count = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int r = 0; r < saying->ngivers; r++) {
        int last = r;
        if (!saying->givers[r].repeats) continue;
        while (last + 1 < saying->ngivers && saying->givers[last + 1].repeats)
            last++;
        count += last - r + 1;
        if (used + 32 < RANGES_BYTES) {
            used += (size_t)snprintf(text + used, RANGES_BYTES - used, "%s%d", used ? ", " : "", r);
            if (last > r) used += (size_t)snprintf(text + used, RANGES_BYTES - used, "-%d", last);
        } else if (text[used - 1] != '.') {
            used += (size_t)snprintf(text + used, RANGES_BYTES - used, " ...");
        }
        r = last;
    }
    return count;
}

static bool is_due(const struct saying *saying)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - saying->since.tv_sec) * 1000 +
               (now.tv_nsec - saying->since.tv_nsec) / 1000000 >=
           GATHER_MSEC;
}

bool launch_same_report(struct launch_same *same, const char *name, bool all, FILE *to)
{
    bool later = false;
    for (int k = 0; same && k < SAYINGS; k++) {
        struct saying *saying = &same->sayings[k];
        char ranks[RANGES_BYTES];
        if (!saying->untold) continue;
        if (!all && !is_due(saying)) {
            later = true;
            continue;
        }
        int count = list_ranks(saying, ranks);
        fprintf(to, "tutti %s: rank%s %s%s warn%s of the same: %s\n", name, count > 1 ? "s" : "",
                ranks, saying->inner ? " of the communicator" : "", count > 1 ? "" : "s",
                saying->words);
        saying->untold = false;
        for (int r = 0; r < saying->ngivers; r++)
            saying->givers[r].repeats = false;
    }
    return later;
}
