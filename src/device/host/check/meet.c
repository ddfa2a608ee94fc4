/* What operations tell each other: ranks that meet in a collective, words that streams write and
 * await, events amid a graph. */
#include "access.h"

#include "device/host/host.h"

#include <stdlib.h>

/* The tasks that wait there, this one perhaps among them, know what those did that tell, before and
 * after. */
static void gather_at(struct host_check *check, struct check_mark *mark, size_t task,
                      enum tt_meeting meeting)
{
    size_t *tasks = mark ? realloc(mark->tasks, (mark->ntasks + 1) * sizeof(*tasks)) : NULL;
    if (!tasks) return;
    mark->tasks = tasks;
    bool is_there = false;
    for (size_t i = 0; i < mark->ntasks; i++) {
        is_there = is_there || mark->tasks[i] == task;
    }
    if (meeting != TT_MEETING_GIVES && !is_there) mark->tasks[mark->ntasks++] = task;
    if (meeting != TT_MEETING_TAKES) check_task_tell(check, task, &mark->clock);
    for (size_t i = 0; i < mark->ntasks; i++) {
        check_clock_merge(&check->tasks[mark->tasks[i]].now, mark->clock);
    }
}

/* Ranks of one process that are in a collective wait for those whose data they need: what these did
 * before it is over when it ends. Who comes later tells those that are there already. */
void check_meet(struct host_check *check, size_t task, const struct check_touch *touch)
{
    struct check_mark *count = check_mark(&check->counts, touch->ptr, 0);
    uint64_t turn = count ? ++count->turn : 0;
    uint64_t number = touch->group * 0x9e3779b97f4a7c15ull + turn;
    struct check_mark *mark = &check->meetings[number % CHECK_MEETINGS];
    if (mark->number != number) {
        check_clock_drop(mark->clock);
        mark->clock = NULL;
        mark->ntasks = 0;
        mark->number = number;
    }
    gather_at(check, mark, task, touch->meeting);
}

/* What is in a device's memory the program's own loads do not see. */
static bool is_hidden(const void *word)
{
    struct tt_pointer found;
    return !tuttiHostLocate(word, &found) && found.kind == TT_MEMORY_DEVICE;
}

/* The host may look at the word, which nobody sees, so it is taken to know; of a word in a device's
 * memory only when a kernel or host function may have told it. A word that no stream has written
 * somebody else will write, the host or a host function, who may have waited for everything. */
void check_pass_word(struct host_check *check, size_t task, const struct check_touch *touch)
{
    bool tells = touch->kind == CHECK_TOUCH_WORD_WRITE;
    struct check_mark *word = check_mark(&check->words, touch->ptr, 0);
    for (size_t i = 0; !tells && word && !word->clock && i < check->ntasks; i++) {
        if (i != task) check_task_tell(check, i, &check->tasks[task].now);
    }
    gather_at(check, word, task, tells ? TT_MEETING_ALL : TT_MEETING_TAKES);
    if (tells && (check->any_opaque || !is_hidden(touch->ptr)))
        check_task_tell(check, task, &check->tasks[CHECK_HOST].now);
}

/* Who copies a word may have waited for it to change. */
void check_see_words(struct host_check *check, size_t task, const struct check_touch *touch)
{
    for (size_t i = 0; check->words.count && i < check->words.room; i++) {
        const struct check_mark *word = &check->words.at[i];
        size_t at = (uintptr_t)word->key - (uintptr_t)touch->ptr; /* of unused ones: beyond */
        if (at < touch->bytes) check_clock_merge(&check->tasks[task].now, word->clock);
    }
}

/* Who waits for the event from now on knows what the task did, and nothing else. */
void check_tell_event(struct host_check *check, size_t task, const struct check_touch *touch)
{
    struct check_mark *mark = check_mark(&check->events, touch->ptr, 0);
    if (!mark) return;
    check_clock_drop(mark->clock);
    mark->clock = NULL;
    check_task_tell(check, task, &mark->clock);
}

/* Who waits for all work of the member knows what the task did. */
void check_tell_member(struct host_check *check, size_t task, const void *member)
{
    struct check_mark *mark = check_mark(&check->counts, member, 0);
    if (mark) check_task_tell(check, task, &mark->clock);
}

/* Another member may come to its address, and counts anew. */
void tuttiHostMemberOver(const void *member)
{
    struct host_check *check = host_checks() ? host_check_lock() : NULL;
    struct check_mark *mark = check ? check_mark(&check->counts, member, 0) : NULL;
    if (mark && check->ntasks) {
        check_clock_merge(&check->tasks[CHECK_HOST].now, mark->clock);
        check_clock_drop(mark->clock);
        mark->clock = NULL;
        mark->turn = 0;
    }
    host_check_unlock(check);
}
