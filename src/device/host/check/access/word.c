/* Words that streams write and wait for. A wait knows what all those writes know that may have
 * ended it: of those whose value does, the ones in whose place no later write has come for certain.
 * One that nothing has ended yet is remembered, and knows what the first write knows that ends it.
 */
#include "device/host/check/access.h"
#include "device/host/check/shadow/shadow.h"
#include "device/host/host.h"

#include <stdlib.h>
#include <string.h>

enum { WRITES_MOST = 32, WAITS_MOST = 32 };

struct word_write { /* what a stream wrote to a word, the host (before all), or a copy */
    size_t task;
    uint64_t epoch, value;
    bool known;                   /* the value is */
    struct tt_check_clock *clock; /* counted; what was over then, and the write itself */
};
struct word_wait { /* one that nothing has ended yet */
    uint64_t fence;
    struct tt_word what;
};
struct tt_check_word {
    const void *key;
    struct tt_check_clock *all; /* counted; what any of its writes knows */
    struct word_write writes[WRITES_MOST];
    size_t nwrites;
    struct word_wait waits[WAITS_MOST];
    size_t nwaits;
};

enum compare { GEQ, EQ, AND, NOR }; /* CU_STREAM_WAIT_VALUE_* */

bool tuttiHostWordHolds(const struct tt_word *word, uint64_t now)
{
    switch ((enum compare)word->compare) { /* >= goes round, as sequence numbers do */
    case GEQ:
        return word->wide ? (int64_t)(now - word->value) >= 0
                          : (int32_t)((uint32_t)now - (uint32_t)word->value) >= 0;
    case EQ: return now == word->value;
    case AND: return (now & word->value) != 0;
    case NOR: break;
    }
    return (~(now | word->value) & (word->wide ? UINT64_MAX : UINT32_MAX)) != 0;
}

uint64_t tuttiHostWordNow(const struct tt_word *word)
{
    const void *at = tuttiHostView(word->address);
    return word->wide ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
                      : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
}

/* What is in a device's memory the program's own loads do not see. */
static bool is_hidden(const void *word)
{
    struct tt_pointer found;
    return !tuttiHostLocate(word, &found) && found.kind == TT_MEMORY_DEVICE;
}

static void forget_writes(struct tt_check_word *word, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tt_check_clock_drop(word->writes[i].clock);
    }
    word->nwrites -= count;
    memmove(word->writes, word->writes + count, word->nwrites * sizeof(word->writes[0]));
}

static struct word_write *add_write(struct tt_check_word *word)
{
    if (word->nwrites == WRITES_MOST) forget_writes(word, 1);
    struct word_write *write = &word->writes[word->nwrites++];
    *write = (struct word_write){.known = true};
    return write;
}

static struct tt_check_word *word_of(struct tt_host_check *check, const struct tt_word *what)
{
    for (size_t i = 0; i < check->nwords; i++) {
        if (check->words[i]->key == what->address) return check->words[i];
    }
    if (check->nwords == check->word_room) {
        size_t room = check->word_room ? 2 * check->word_room : 16;
        struct tt_check_word **wider = realloc(check->words, room * sizeof(struct tt_check_word *));
        if (!wider) return NULL;
        check->words = wider;
        check->word_room = room;
    }
    struct tt_check_word *word = calloc(1, sizeof(*word));
    if (!word) return NULL;
    word->key = what->address;
    return check->words[check->nwords++] = word;
}

/* Before the first write of a stream: what it holds, unless something that runs may change it. */
static void note_first(struct tt_host_check *check, struct tt_check_word *word,
                       const struct tt_word *what)
{
    size_t same, bytes = what->wide ? 8 : 4;
    struct tt_pointer found;
    bool quiet = !check->any_opaque && !tuttiHostLocate(what->address, &found) && found.base &&
                 tt_check_flight_at(check, what->address, bytes, &same) != TT_CHECK_WRITTEN;
    if (quiet) add_write(word)->value = tuttiHostWordNow(what);
}

static bool knows(const struct tt_check_clock *clock, const struct word_write *write)
{
    return tt_check_clock_of(clock, write->task) >= write->epoch;
}

/* Has another write come in its place, for all that the task knows? */
static bool is_covered(const struct tt_check_word *word, size_t i, const struct tt_check_clock *now,
                       size_t task)
{
    const struct word_write *one = &word->writes[i];
    for (size_t j = i + 1; j < word->nwrites; j++) {
        const struct word_write *other = &word->writes[j];
        if ((other->task == task || knows(now, other)) &&
            (one->task == other->task || knows(other->clock, one)))
            return true;
    }
    return false;
}

/* The host has waited for all writes, and the word has changed since: so the host changed it. */
static bool is_reset(const struct tt_host_check *check, const struct tt_check_word *word,
                     const struct tt_word *what)
{
    for (size_t i = 0; i < word->nwrites; i++) {
        if (!knows(check->waited, &word->writes[i])) return false;
    }
    return !tuttiHostWordHolds(what, tuttiHostWordNow(what));
}

/* The host may look at the word, which is not observed, so it is taken to know; of a word in a
 * device's memory only when a kernel or host function may have reported it. */
void tt_check_write_word(struct tt_host_check *check, size_t task, const struct tt_word *what)
{
    struct tt_check_word *word = word_of(check, what);
    if (!word) return;
    if (!word->nwrites) note_first(check, word, what);
    struct word_write *write = add_write(word);
    write->task = task;
    write->epoch = check->tasks[task].epoch;
    write->value = what->value;
    tt_check_task_report(check, task, &write->clock);
    tt_check_clock_merge(&word->all, write->clock);
    size_t kept = 0;
    for (size_t i = 0; i < word->nwaits; i++) {
        const struct word_wait *wait = &word->waits[i];
        if (tuttiHostWordHolds(&wait->what, what->value)) {
            tt_check_fence_update(check, wait->fence, write->clock);
            tt_check_fence_close(check, wait->fence);
        } else {
            word->waits[kept++] = *wait;
        }
    }
    word->nwaits = kept;
    if (check->any_opaque || !is_hidden(what->address))
        tt_check_task_report(check, task, &check->tasks[TT_CHECK_HOST].now);
}

/* A word that no stream has written will be written by the host or a host function, which may
 * have waited for everything. */
void tt_check_await_word(struct tt_host_check *check, size_t task, const struct tt_word *what)
{
    struct tt_check_word *word = word_of(check, what);
    struct tt_check_task *own = &check->tasks[task];
    struct tt_check_clock *learned = NULL;
    size_t count = 0;
    if (!word) return;
    for (size_t i = 0; i < word->nwrites; i++) {
        const struct word_write *write = &word->writes[i];
        if (!write->known || !tuttiHostWordHolds(what, write->value) ||
            is_covered(word, i, own->now, task))
            continue;
        if (count++) {
            tt_check_clock_limit(&learned, write->clock);
        } else {
            learned = tt_check_clock_hold(write->clock);
        }
    }
    bool reset = count && is_reset(check, word, what);
    if (reset) forget_writes(word, word->nwrites);
    if (!reset) tt_check_clock_merge(&own->now, learned);
    tt_check_clock_drop(learned);
    if (count && !reset) return;
    if (word->nwaits < WAITS_MOST) {
        word->waits[word->nwaits++] =
            (struct word_wait){tt_check_fence_open(check, task, own->epoch), *what};
    }
    for (size_t i = 0; !word->nwrites && i < check->ntasks; i++) {
        if (i != task) tt_check_task_report(check, i, &own->now);
    }
}

static bool is_within(const struct tt_check_word *word, const struct tt_check_touch *touch)
{
    return (uintptr_t)word->key - (uintptr_t)touch->ptr < touch->bytes;
}

void tt_check_see_words(struct tt_host_check *check, size_t task,
                        const struct tt_check_touch *touch)
{
    for (size_t i = 0; i < check->nwords; i++) {
        const struct tt_check_word *word = check->words[i];
        if (is_within(word, touch)) {
            tt_check_clock_merge(&check->tasks[task].now, word->all);
        }
    }
}

void tt_check_report_words(struct tt_host_check *check, struct tt_check_clock **into)
{
    for (size_t i = 0; i < check->nwords; i++) {
        tt_check_clock_merge(into, check->words[i]->all);
    }
}

void tt_check_cover_words(struct tt_host_check *check, size_t task,
                          const struct tt_check_touch *touch)
{
    for (size_t i = 0; i < check->nwords; i++) {
        if (!is_within(check->words[i], touch) || !check->words[i]->nwrites) continue;
        struct word_write *write = add_write(check->words[i]);
        write->task = task;
        write->epoch = check->tasks[task].epoch;
        write->known = false;
        tt_check_task_report(check, task, &write->clock);
    }
}
